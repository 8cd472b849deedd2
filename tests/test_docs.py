"""Code on the pages is code: it parses, and what it imports is there."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(page, block) for page in PAGES for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]


def test_there_are_examples():
    assert len(BLOCKS) > 10


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=lambda part: part.name if isinstance(part, Path) else None)
def test_examples_parse_and_import_what_there_is(page, block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "smoothcde":
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = [target.split("#")[0] for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text())]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []
