"""Results as JSON files below `benchmarks/results/`."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def write(name: str, report: dict[str, Any]) -> None:
    """Keep a result."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to benchmarks/results/{name}.json", flush=True)


def read(name: str) -> dict[str, Any] | None:
    """A result, if there is one."""
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None
