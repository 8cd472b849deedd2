"""The tables of docs/benchmarks.md, made from the results; no number in them is typed by hand.

python -m benchmarks.page
"""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.entries import OURS
from benchmarks.many_channels import DATA as TRAINED_ON
from benchmarks.precision import IMAGE
from benchmarks.record import read
from benchmarks.settings import SETTINGS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_FILES = (
    *(f"peers_{data}" for data in SETTINGS),
    "latency",
    *(f"precision_{data}" for data in SETTINGS),
    *("smoothing", "many_channels", "frozen_plans", "steps", "amplification"),
)
"""Results that the page shows."""
_BLOCK = re.compile(r"(<!-- table: (?P<name>[\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def rendered(page: str) -> str:
    """The page with every table as the results have it now."""
    return _BLOCK.sub(lambda block: block[1] + _table(block["name"]) + "\n" + block[3], page)


def update() -> None:
    """Write the page anew."""
    PAGE.write_text(rendered(PAGE.read_text()))


def _table(name: str) -> str:
    kind, _, data = name.partition(" ")
    makers = {
        "peers": peers,
        "precision": precision,
        "latency": latency,
        "smoothing": smoothing,
        "many_channels": many_channels,
        "frozen_plans": frozen_plans,
        "steps": steps,
        "amplification": amplification,
    }
    if kind not in (*makers, "picture", "machine") or (data and data not in SETTINGS):
        raise ValueError(f"the page asks for a table {name!r}; use any of: {', '.join(makers)}, with a setting")
    if kind == "picture":
        return "![Error against time](images/precision.png)" if IMAGE.exists() else "*Not drawn yet.*"
    if kind == "machine":
        return machines({name: report for name in _FILES if (report := read(name)) is not None})
    file = f"{kind}_{data}" if data else kind
    report = read(file)
    if report is None:
        return f"*Not measured yet: `make bench` writes `benchmarks/results/{file}.json`.*"
    return makers[kind](report)


def frozen_plans(report: dict[str, Any]) -> str:
    """Steps, nearness to the adaptive solver, and flags of every plan."""
    headings = ("tolerance", "held to", "steps per view", "frozen within 1", "within 10", "adaptive within 1")
    headings += ("within 10", "same class", "flagged", *(f"flagged {name}" for name in _rougher(report)))
    rows = []
    for plan in report["plans"]:
        shares = ("frozen within one", "frozen within ten", "adaptive within one", "adaptive within ten")
        rough = [f"{share:.1%}" for share in plan["rougher flagged"].values()]
        cells = [f"{plan[name]:.1%}" for name in (*shares, "same class", "flagged")]
        steps = " / ".join(map(str, plan["steps"]))
        rows.append((f"{plan['tolerance']:g}", f"{plan['within']:g} tolerances", steps, *cells, *rough))
    head = f"{report['series']} unseen series of {report['data']}, test accuracy {report['accuracy']:.1%}."
    return f"{head}\n\n{table_of(headings, rows)}"


def steps(report: dict[str, Any]) -> str:
    """What a tolerance buys, entry by entry."""
    rows = [
        (f"{data}, {line['tolerance']:g}, {line['entry']}", line)
        for data, lines in report["settings"].items()
        for line in lines
    ]
    table = _errors("data, tolerance, solver", rows)
    return f"{report['series']} series of each data set, all views; errors in tolerances.\n\n{table}"


def amplification(report: dict[str, Any]) -> str:
    """Errors of rows by how much their own flow enlarges a difference."""
    rows = [(f"{_range_of(line)} ({line['rows']} rows), {line['entry']}", line) for line in report["lines"]]
    table = _errors("a difference grows by, solver", rows)
    return f"Tolerances 1e-2, 1e-3 and 1e-4 together; errors in tolerances.\n\n{table}"


def _errors(what: str, lines: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Evaluations and errors of named measurements."""
    headings = (what, "evaluations per row", "median error", "worst error", "rows beyond ten")
    rows = [
        (
            name,
            f"{line['evaluations']:.0f}",
            f"{line['median']:.1f}",
            f"{line['worst']:.1f}",
            f"{line['beyond ten']:.0%}",
        )
        for name, line in lines
    ]
    return table_of(headings, rows)


def _range_of(line: dict[str, Any]) -> str:
    if line["up to"] is None:
        return f"over {line['from']:g} times"
    return f"{line['from']:g} to {line['up to']:g} times" if line["from"] else f"under {line['up to']:g} times"


def _rougher(report: dict[str, Any]) -> list[str]:
    return list(report["plans"][0]["rougher flagged"])


def table_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first column is text, the others are numbers."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def peers(report: dict[str, Any]) -> str:
    """Time, memory, evaluations and errors of every entry."""
    entries, ours = report["entries"], report["entries"][OURS]
    headings = ("entry", "training step", "", "inference", "", "peak memory", "evaluations per row", "computed")
    headings += ("largest error", "rms error", "gradient error", "compiling")
    rows = []
    for name, found in entries.items():
        errors, evaluations = found["errors"], found["evaluations"]
        backward = f" + {evaluations['backward']:.0f}" if evaluations["backward"] else ""
        tolerance = "" if found["tolerance"] == ours["tolerance"] else f" (tolerance {found['tolerance']:g})"
        rows.append(
            [
                name + tolerance,
                _seconds(found["training step"]),
                _ratio(found["training step"], ours["training step"]),
                _seconds(found["inference"]),
                _ratio(found["inference"], ours["inference"]),
                f"{found['peak megabytes']:,.0f} MB" if "peak megabytes" in found else "",
                f"{evaluations['needed']:.0f}",
                f"{evaluations['computed']:.0f}{backward}",
                *(f"{errors[what]:.1e}" for what in ("largest", "rms", "gradient")),
                _seconds(sum(found["compile"].values())) if found["compile"] else "",
            ]
        )
    text = [f"{report['series']} series: {report['data']}. Medians of {report['rounds']} rounds.", ""]
    text += [table_of(headings, rows)]
    products = report["products"]
    total, speed = sum(products["operations"].values()), products["operations per second of a large product"]
    text += [
        f"\nThe matrix products of field and encoder in smoothcde's step are {total / 1e9:.1f} GFLOP; the step reaches "
        f"{products['share']:.0%} of the {speed / 1e9:.0f} GFLOP/s of a large float32 product in the same run."
    ]
    check = report["reference check"]
    text += [
        f"The reference agrees with torchdiffeq in float64 to {check['largest']:.0e} in outputs and "
        f"{check['gradient']:.0e} in gradients."
    ]
    return "\n".join(text)


def precision(report: dict[str, Any]) -> str:
    """A row per tolerance, the entries side by side."""
    entries = report["points"]
    headings = ["tolerance", *(f"{name}: {what}" for name in entries for what in ("rms error", "training step"))]
    rows = [
        [
            f"{points[0]['tolerance']:.0e}",
            *(text for p in points for text in (f"{p['rms']:.1e}", _seconds(p["training step"]))),
        ]
        for points in zip(*entries.values(), strict=True)
    ]
    return f"{report['series']} series per batch, medians of {report['rounds']}.\n\n" + table_of(headings, rows)


def many_channels(report: dict[str, Any]) -> str:
    """Accuracy by rank, and a training step on 963 channels."""
    trained = [
        [
            f"{data}, {found['channels']} channels, {field}",
            f"{mean(found['accuracies']):.1%}",
            f"{min(found['accuracies']):.1%} to {max(found['accuracies']):.1%}",
            f"{found['weights']:,}",
            f"{found['seconds']:.1f} s",
        ]
        for data in TRAINED_ON
        for field, found in report[data].items()
    ]
    steps = [
        [
            f"{found['channels']} channels, {field}",
            f"{found['seconds']:.1f} s",
            f"{found['megabytes']:,.0f} MB",
            f"{found['evaluations']:.0f}",
            f"{found['weights']:,}",
        ]
        for field, found in report["training step"].items()
    ]
    return "\n".join(
        [
            f"Trained for {report['epochs']} epochs, {report['seeds']} seeds:\n",
            table_of(("data and field", "test accuracy", "over seeds", "weights", "training"), trained),
            f"\nOne training step of {report['series']} generated series of PEMS-SF's shape:\n",
            table_of(("field", "processor time", "peak memory", "evaluations per row", "weights"), steps),
        ]
    )


def latency(report: dict[str, Any]) -> str:
    """Milliseconds of one series."""
    rows = [
        [
            name,
            f"{found['median']:.1f} ms",
            f"{found['p99']:.1f} ms",
            f"{found['evaluations']:.0f}" if "evaluations" in found else "",
            f"{found['largest error']:.1e}",
        ]
        for name, found in report["entries"].items()
    ]
    steps = " / ".join(map(str, report["steps of the plan"]))
    head = f"{report['data']}, tolerance {report['tolerance']:g}, one core, {report['rounds']} rounds. "
    head += f"Frozen steps per view: {steps}."
    return head + "\n\n" + table_of(("entry", "median", "99th percentile", "evaluations", "largest error"), rows)


def smoothing(report: dict[str, Any]) -> str:
    """What splines cost over mvc-gp."""
    rows = []
    for name, found in report["variants"].items():
        over = found["over mvc-gp"]
        cells = [f"{found['parameters']:,}", f"{found['training accuracy']:.1%}"]
        for what in ("joint evaluations", "training step, joint", "evaluations per row", "training step, row"):
            value = _seconds(found[what]) if what.startswith("training") else f"{found[what]:,.0f}"
            cells.append(f"{value} ({over[what]:.1f} x)")
        rows.append([name, *cells])
    headings = ("path", "parameters", "accuracy in training", "joint evaluations", "training step, joint")
    headings += ("evaluations per row", "training step, row")
    head = f"{report['series']} series: {report['data']}, after {report['epochs']} epochs; training steps of "
    head += f"{report['series of a step']} of them, medians of {report['rounds']} rounds."
    return head + "\n\n" + table_of(headings, rows)


def machines(reports: dict[str, dict[str, Any]]) -> str:
    """Where the numbers are from: a line per machine, with what was measured on it if there are several."""
    parts: dict[str, list[str]] = {}
    for name, report in reports.items():
        parts.setdefault(_machine(report), []).append(name.replace("_", " "))
    if len(parts) < 2:
        return "".join(f"{name}." for name in parts)
    return "\n\n".join(f"{', '.join(measured)}: {name}." for name, measured in parts.items())


def _machine(report: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    vectors = f" with {report['vectors']}" if report.get("vectors") else ""
    cores, threads = _several(report["cores"], "core"), _several(report["torch threads"], "thread")
    return (
        f"{report['processor']}{vectors} ({report['machine']}), {cores}, {threads} in torch; "
        f"Python {report['python']}, {versions}; {report['date']}"
    )


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _ratio(seconds: float, ours: float) -> str:
    return f"{seconds / ours:.2f} x"


if __name__ == "__main__":
    update()
