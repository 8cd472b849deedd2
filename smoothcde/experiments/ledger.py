"""Results on disk, each written as it is known, so that a run that was stopped goes on where it was."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smoothcde.storage import replace_file


class Ledger:
    """Results by the settings they were made with, in one JSON file.

    ```python
    ledger = Ledger(Path("comparison.json"))
    key = {"data": "JapaneseVowels", "model": "gru", "seed": 0}
    if ledger.find(key) is None:
        ledger.add(key, {"accuracy": 0.93})
    ```

    Without a file, results live as long as the object.
    """

    def __init__(self, file: Path | None = None):
        self._file, self._lines = file, []
        if file is not None and file.exists():
            try:
                self._lines = json.loads(file.read_text())["results"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise ValueError(f"{file} holds no results of a comparison; name another file, or remove it") from error

    def find(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result that was made with exactly these settings, if there is one."""
        for line in self._lines:
            if line["settings"] == settings:
                return line["result"]
        return None

    def add(self, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep a result; on return it is on disk."""
        self._lines.append({"settings": dict(settings), "result": dict(result)})
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # Whoever stops the run leaves the old file or the new one, never half of one.
        replace_file(self._file, (json.dumps({"results": self._lines}, indent=1) + "\n").encode())
