"""Tables of results inside Markdown pages, between markers, so that no number in them is typed by hand.

python -m smoothcde.report.markdown docs/paper.md results
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from smoothcde.reproduce.blocks import Cell, TableBlock
from smoothcde.reproduce.catalogue import EXPERIMENTS, experiment_of
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.verdicts import judge
from smoothcde.storage import replace_file

MARKED = re.compile(r"(<!-- results: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, store: Store) -> str:
    """A page with what stands between its markers made anew.

    `<!-- results: verdicts -->` is the table of claims, any other name the tables of that experiment; `<!-- end -->`
    ends them.
    """

    def tables(found: re.Match[str]) -> str:
        return found[1] + "".join(f"{table}\n" for table in _tables(found["name"], store)) + found[3]

    return MARKED.sub(tables, page)


def _tables(name: str, store: Store) -> Iterator[str]:
    if name == "verdicts":
        yield "\n" + _markdown(
            ("claim", "paper", "here", "verdict"),
            [[v.claim, v.paper, v.ours, f"**{v.verdict}**"] for v in judge(store)],
        )
        return
    experiment = experiment_of(name)
    results = Results(store.found(experiment.trials()))
    if not len(results):
        yield "\nNot run yet.\n"
        return
    for block in experiment.show(results):
        if isinstance(block, TableBlock):
            rows = [[_text(cell) for cell in row] for row in block.rows]
            yield f"\n{block.title}:\n\n{_markdown(block.headings, rows)}"


def _text(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell.text} [{cell.paper}]" if cell.paper else cell.text


def _markdown(headings, rows) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


if __name__ == "__main__":
    file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    replace_file(file, filled(file.read_text(encoding="utf-8"), Store(folder)).encode())
    print(f"{file}: tables of {', '.join(EXPERIMENTS)} as far as they are asked for")
