"""The paper's tables and figures, measured again: `smoothcde reproduce NAME`, `smoothcde report`."""
