"""`smoothcde reproduce` and `smoothcde report`: the paper's tables and figures, measured again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smoothcde.cli.telling import choice, save_text, telling
from smoothcde.series.problems import counted

if TYPE_CHECKING:
    from smoothcde.reproduce.blocks import Block, Cell
    from smoothcde.reproduce.experiment import Experiment
    from smoothcde.reproduce.store import Store
    from smoothcde.reproduce.trial import Trial

Results = Annotated[Path, typer.Option(help="Folder of results; what it holds is not run again.")]


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment; see --list.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Show all experiments with their cost.")] = False,
    quick: Annotated[bool, typer.Option(help="A small version that takes minutes and needs no download.")] = False,
    data: Annotated[list[str] | None, typer.Option(help="Only these data sets; repeat for several.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models; repeat for several.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="At most so many seeds.")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="Run what fits into so many processor hours.")] = None,
    engine: Annotated[
        str, typer.Option(help="joblib (this machine), ray (a cluster), here (this process).")
    ] = "joblib",
    workers: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 2,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each.")] = 1,
    results: Results = Path("results"),
    work: Annotated[Path | None, typer.Option(help="Folder for checkpoints; below the results by default.")] = None,
) -> None:
    """Run an experiment of the paper and print its tables; what has been run before is not run again."""
    with telling() as teller:
        from smoothcde.reproduce.catalogue import EXPERIMENTS, experiment_of
        from smoothcde.reproduce.costs import within
        from smoothcde.reproduce.engine import ENGINES, Ended, run_trials
        from smoothcde.reproduce.results import Results as Found
        from smoothcde.reproduce.store import Store

        console, store = Console(highlight=False), Store(results)
        choice("engine", engine, ENGINES)
        if list_all or name is None:
            console.print(_listing(EXPERIMENTS.values(), store))
            return
        experiment = experiment_of(choice("experiment", name, EXPERIMENTS))
        trials = _chosen(experiment, quick, data, model, seeds)
        plan = within(trials, hours, store)
        done = len(trials) - len(plan.chosen) - len(plan.left)
        teller.say(
            f"{name}: {counted(len(plan.chosen), 'trial')} to run, about {plan.hours:.1f} processor hours; "
            f"{done} have a result" + (f", {len(plan.left)} do not fit into the budget" if plan.left else "")
        )

        def tell(ended: Ended) -> None:
            teller.say(f"{ended.trial.name}: {ended.failure or _in_short(ended.result or {})}")

        failures = run_trials(plan.chosen, store, work or results / "checkpoints", engine, workers, threads, tell)
        for block in experiment.show(Found(store.found(trials))):
            _print(block, console)
        if failures:
            places = ", ".join(ended.trial.name for ended in failures)
            raise ValueError(
                f"{counted(len(failures), 'trial')} failed, the others are kept: {places}\n{failures[0].details}"
            )


def report(
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
) -> None:
    """Write all tables and figures of the results there are into one HTML page."""
    with telling() as teller:
        from smoothcde.report import report_page
        from smoothcde.reproduce.store import Store

        if not results.is_dir():
            raise ValueError(f"there is no folder {results} of results; run `smoothcde reproduce main --quick` first")
        save_text(out, report_page(Store(results)))
        teller.say(f"Wrote {out}")


def _chosen(
    experiment: "Experiment", quick: bool, data: list[str] | None, model: list[str] | None, seeds: int | None
) -> "list[Trial]":
    """The experiment's trials that were asked for."""
    whole = list(experiment.quick() if quick else experiment.trials())
    if not whole:
        raise ValueError(f"{experiment.name} has no quick version; leave --quick out, and see --hours")
    for option, asked, known in (
        ("data set in it", data, dict.fromkeys(trial.data for trial in whole)),
        ("model in it", model, dict.fromkeys(trial.model for trial in whole)),
    ):
        for entry in asked or ():
            choice(option, entry, known)
    return [
        trial
        for trial in whole
        if (not data or trial.data in data)
        and (not model or trial.model in model)
        and (seeds is None or trial.seed < seeds)
    ]


def _listing(experiments, store: "Store") -> Table:
    from smoothcde.reproduce.costs import within

    table = Table(title="smoothcde reproduce NAME")
    for heading in ("name", "what", "in the paper", "trials", "run", "hours left"):
        table.add_column(heading, justify="left" if heading in ("name", "what", "in the paper") else "right")
    for experiment in experiments:
        trials = list(experiment.trials())
        plan = within(trials, None, store)
        quick = " (also --quick)" if experiment.quick() else ""
        run = len(trials) - len(plan.chosen)
        table.add_row(
            experiment.name,
            experiment.title + quick,
            experiment.source,
            f"{len(trials)}",
            f"{run}",
            f"{plan.hours:.1f}",
        )
    table.caption = "Processor hours of one core, estimated; experiments share trials, so the sum counts some twice."
    return table


def _in_short(result: dict) -> str:
    shown = {
        "accuracy": "accuracy {:.1%}",
        "mse": "MSE {:.3f}",
        "joint_nfe": "NFE {:.0f}",
        "train_seconds": "{:.0f} s",
        "megabytes": "{:.0f} MB",
    }
    return ", ".join(form.format(result[key]) for key, form in shown.items() if result.get(key) is not None) or "done"


def _print(block: "Block", console: Console) -> None:
    from smoothcde.reproduce.blocks import TableBlock

    if not isinstance(block, TableBlock):
        return  # figures are for the page
    table = Table(title=block.title, caption=block.note or None)
    for heading in block.headings:
        table.add_column(heading)
    for row in block.rows:
        table.add_row(*map(_shown, row))
    console.print(table)


def _shown(cell: "str | Cell") -> Text:
    if isinstance(cell, str):
        return Text(cell)
    return Text.assemble(cell.text, (f" paper {cell.paper}", "dim")) if cell.paper else Text(cell.text)
