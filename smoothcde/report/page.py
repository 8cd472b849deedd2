"""The page: protocol, verdicts, and a section per experiment with the command that makes it."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from plotly.offline import get_plotlyjs

from smoothcde.report.figures import panels_of
from smoothcde.reproduce.blocks import Block, Cell, FigureBlock, TableBlock
from smoothcde.reproduce.catalogue import EXPERIMENTS
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.results import Results
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.verdicts import judge

PROTOCOL = (
    "Seeds change the split, the weights and the order of the series together. A data set's training and test parts "
    "are merged and split 60/20/20 at random, as in the paper; channels are standardised by the training part; the "
    "epoch is picked on the validation part and the test part is looked at once. Baselines have the learning rates, "
    "windows and tolerances that the paper gives for them, and the parameter count of MVC-GP. Times are processor "
    "seconds of one thread on a CPU; the paper's are of an NVIDIA L40, so only ratios between models can be compared. "
    "A triangle marks a figure that differs from the paper's by more than twice the larger of both spreads."
)


def report_page(store: Store) -> str:
    """The HTML document. It needs nothing but itself."""
    sections = [_section(experiment, store) for experiment in EXPERIMENTS.values()]
    shown = [(experiment, html) for experiment, html in zip(EXPERIMENTS.values(), sections, strict=True) if html]
    if not shown:
        raise ValueError(f"{store.folder} holds no results; run `smoothcde reproduce main --quick` first")
    links = "".join(f'<a href="#{experiment.name}">{escape(experiment.title)}</a>' for experiment, _ in shown)
    style = files("smoothcde.report").joinpath("page.css").read_text(encoding="utf-8")
    title = "Attentive kernel smoothing for neural CDEs, measured again"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{style}</style><script>{get_plotlyjs()}</script></head><body>",
            f"<h1>{title}</h1>",
            '<p class="faint">Figures of smoothcde beside those of <em>Efficient Neural Controlled Differential '
            "Equations via Attentive Kernel Smoothing</em> (Serov, Kuleshov, Zaytsev).</p>",
            f"<nav>{links}</nav><h2>Protocol</h2><p>{PROTOCOL}</p>",
            _verdicts(store),
            *(html for _, html in shown),
            '<p class="note">Each result file says with which versions it was made.</p>',
            # A panel that was drawn before its neighbours were there has their width, too.
            '<script>addEventListener("load", () => '
            'document.querySelectorAll(".js-plotly-plot").forEach((panel) => Plotly.Plots.resize(panel)))</script>',
            "</body></html>",
        ]
    )


def _verdicts(store: Store) -> str:
    rows = [[v.claim, v.paper, v.ours, v.verdict] for v in judge(store)]
    table = TableBlock("", ("claim", "paper", "here", "verdict"), rows)
    return f'<h2>The paper\'s claims</h2><div class="stack">{_table(table, wrap=True)}</div>'


def _section(experiment: Experiment, store: Store) -> str:
    """A section, empty if nothing of the experiment has been run."""
    trials, command = list(experiment.trials()), f"smoothcde reproduce {experiment.name}"
    found = store.found(trials)
    state = f"{len(found)} of {len(set(trials))} trials run."
    if not found:
        found = store.found(experiment.quick())
        command, state = command + " --quick", "The quick version: few epochs, one seed; not the paper's data."
    if not found:
        return ""
    blocks = "".join(_block(block) for block in experiment.show(Results(found)))
    says = f'<span class="faint">The paper ({escape(experiment.source)}):</span> ' if experiment.source else ""
    return (
        f'<h2 id="{experiment.name}">{escape(experiment.title)}</h2><p>{says}{escape(experiment.claim)}</p>{blocks}'
        f'<p class="note">{state} <code>{command}</code></p>'
    )


def _block(block: Block) -> str:
    shown = _table(block) if isinstance(block, TableBlock) else _figure(block)
    return f"<h3>{escape(block.title)}</h3>{shown}" + (
        f'<p class="note">{escape(block.note)}</p>' if block.note else ""
    )


def _table(block: TableBlock, wrap: bool = False) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in block.headings)
    body = "".join(f"<tr>{''.join(_cell(cell, wrap) for cell in row)}</tr>" for row in block.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str | Cell, wrap: bool) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>" if wrap else f'<td class="number">{escape(cell)}</td>'
    paper = f'<span class="paper">paper {escape(cell.paper)}</span>' if cell.paper else ""
    return f'<td class="number"><span class="{cell.mark}">{escape(cell.text)}</span>{paper}</td>'


def _figure(block: FigureBlock) -> str:
    panels: Sequence = panels_of(block)
    drawn = [
        panel.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "responsive": True})
        for panel in panels
    ]
    return f'<div class="panels">{"".join(f"<div>{html}</div>" for html in drawn)}</div>'
