"""`smoothcde forecast`: from a table of recordings to what comes next."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from smoothcde.cli.options import (
    MODEL,
    OUTPUT,
    TABLE,
    Channels,
    Device,
    Duplicates,
    Hidden,
    LearningRate,
    Time,
    Value,
    Variable,
    layout_of,
    listed_channels,
    listed_numbers,
    looks_tidy,
    option,
)
from smoothcde.cli.remembered import KEY, check_times
from smoothcde.cli.telling import AsJson, Teller, choice, telling
from smoothcde.data.tables import (
    PARQUET,
    TableError,
    TableLayout,
    check_output,
    learned_channels,
    read_header,
    read_table,
    write_table,
    write_whole,
)
from smoothcde.estimators import CDEForecaster, Forecast
from smoothcde.evaluation import Backtest
from smoothcde.explain.times import look_like_dates
from smoothcde.models import FORECASTERS
from smoothcde.series import SeriesError, SeriesSet
from smoothcde.series.duplicates import POLICIES
from smoothcde.series.frames import column_of, holds_dates
from smoothcde.series.problems import counted, listed
from smoothcde.storage import refuse_strangers

_FORECAST = "The forecast"
DATES = "times are dates"
"""Where a saved forecaster's record tells so."""
HELD_BACK = 0.2
"""Share of each series' time, its end, that a backtest judges."""


def forecast(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file of the recordings.", show_default=False)],
    context: Annotated[int | None, option(_FORECAST, "Steps of history seen. 24 if not given.", min=2)] = None,
    horizon: Annotated[int | None, option(_FORECAST, "Steps to forecast. 24 if not given.", min=1)] = None,
    step: Annotated[
        float | None, option(_FORECAST, "Time between steps (seconds for dates). The median gap if not given.")
    ] = None,
    quantiles: Annotated[
        str | None, option(_FORECAST, "Levels such as 0.1,0.5,0.9, for an interval.", metavar="LEVELS")
    ] = None,
    period: Annotated[
        list[float] | None,
        option(_FORECAST, "Length of a cycle whose phase matters: 86400 for a day of dates. Repeat for several."),
    ] = None,
    end: Annotated[
        str | None, option(_FORECAST, "Forecast from this moment, if not from each series' end.", metavar="TIME")
    ] = None,
    id: Annotated[
        str | None, option(TABLE, "Column that names the series. 'id', if there is one.", metavar="COLUMN")
    ] = None,
    time: Time = "time",
    channels: Channels = None,
    variable: Variable = None,
    value: Value = None,
    duplicates: Duplicates = "error",
    model: Annotated[
        str | None,
        option(MODEL, "See: smoothcde models; or linear-forecast, last-value. mvc-gp if not given.", metavar="NAME"),
    ] = None,
    epochs: Annotated[int | None, option(MODEL, "Passes over the windows.", min=1, metavar="N")] = None,
    hidden: Hidden = None,
    learning_rate: LearningRate = None,
    seed: Annotated[int | None, option(MODEL, "Of weights and order. 0 if not given.", min=0, metavar="N")] = None,
    device: Device = "auto",
    model_dir: Annotated[
        Path | None,
        option(MODEL, "Folder of the forecaster: used if it is there, made if it is not.", metavar="FOLDER"),
    ] = None,
    overwrite: Annotated[bool, option(MODEL, "Train anew, and replace the forecaster there.", "--overwrite")] = False,
    backtest: Annotated[
        bool, option(OUTPUT, "Judge forecasts from rolling moments of the last fifth.", "--backtest")
    ] = False,
    out: Annotated[
        Path | None,
        option(OUTPUT, "CSV or Parquet file for the forecasts. Printed as CSV if not given.", metavar="FILE"),
    ] = None,
    plot: Annotated[
        Path | None, option(OUTPUT, "Picture (PNG, PDF, SVG) of the first series' forecast.", metavar="FILE")
    ] = None,
    json: AsJson = False,
) -> None:
    """Forecast the next steps of every series of a table.

    The table has one row per time, and a column per channel; or, with --variable and --value, one row per observation.
    Cells may be empty and times uneven. Without a column that names the series, it is one recording.

    A forecaster is trained on the table first, unless --model-dir holds one. With --backtest, the last fifth of each
    series is kept out of training and judged; without, it is trained on everything.
    """
    if model is not None:
        choice("model", model, FORECASTERS)
    choice("rule --duplicates", duplicates, POLICIES)
    if overwrite and model_dir is None:
        raise typer.BadParameter("--overwrite replaces the forecaster of a folder; name it with --model-dir")
    with telling(json) as teller:
        if plot is not None:
            _kind_of(plot)
        check_output(out, table)
        saved = model_dir is not None and _is_used(model_dir, overwrite)
        layout = layout_of(id or "id", time, channels, variable, value, duplicates, None, end)
        trained_on_dates = None
        if saved:
            assert model_dir is not None
            forecaster = CDEForecaster.load(model_dir)
            given = {"id": id, "time": time if time != "time" else None, "variable": variable, "value": value}
            given |= {"duplicates": duplicates if duplicates != "error" else None}
            given = {name: asked for name, asked in given.items() if asked is not None}
            layout = replace(_layout_of(forecaster, model_dir), end=layout.end, **given)
            trained = {
                "context": (context, forecaster.context),
                "horizon": (horizon, forecaster.horizon),
                "step": (step, forecaster.step_),
                "quantiles": (_levels(quantiles), tuple(forecaster.quantiles or ())),
                "period": (period and tuple(period), tuple(forecaster.periods)),
                "model": (model, forecaster.model),
                "channels": (listed_channels(channels) or None, layout.channels),
                "epochs": (epochs, forecaster.epochs),
                "hidden": (hidden, forecaster.hidden),
                "learning-rate": (learning_rate, forecaster.learning_rate),
                "seed": (seed, forecaster.random_state),
            }
            _check_same(trained, model_dir)
            teller.say(f"forecaster in '{model_dir}': {forecaster.model}, {forecaster.horizon} steps forecast")
            trained_on_dates = forecaster.predictor_.record.get(DATES)
        series, layout, named, dates = _read(table, layout, id is not None, teller, trained_on_dates)
        if not saved:
            forecaster = CDEForecaster(
                context or 24,
                horizon or 24,
                model or "mvc-gp",
                step=step,
                quantiles=_levels(quantiles),
                periods=tuple(period or ()),
                epochs=epochs,
                hidden=hidden,
                learning_rate=learning_rate,
                random_state=seed or 0,
                device=device,
                verbose=int(not json),
            )
            told = f"{len(series)} series, {counted(series.channels, 'channel')}, {series.lengths.sum()} times"
            teller.say(f"{forecaster.model}, {forecaster.context} steps seen, {forecaster.horizon} forecast: {told}")
            teller.note_on_speed()
            with _saying_why(backtest):
                forecaster.fit(series.with_window(end=_cut(series)) if backtest else series)
            _remember(forecaster, layout, dates is not None or look_like_dates(series.start, series.end))
            if model_dir is not None:
                forecaster.save(model_dir)
                teller.say(f"forecaster saved in '{model_dir}'")
        silent = np.isnan(series.values).all(axis=0)
        if silent.any():
            names = listed([repr(series.channel_names[channel]) for channel in np.flatnonzero(silent)])
            teller.note(f"never observed in the table: {names}; what is forecast there is a guess")
        found = forecaster.predict(series)
        judged = _judged(forecaster, series, saved, teller) if backtest else None
        answers = _table_of(found, layout, named, dates, typed=out is not None and out.suffix in PARQUET)
        if plot is not None:
            _draw(forecaster, series, dates is not None, f"Series {series.ids[0]}" if named else None, plot)
            teller.say(f"picture of series {series.ids[0]} written to '{plot}'" if named else f"picture in '{plot}'")
        _report(answers, judged, out, teller)


def _is_used(folder: Path, overwrite: bool) -> bool:
    """Whether a folder holds a forecaster to be used; refuses one that could not be written to after training."""
    if (folder / "manifest.json").exists():
        if overwrite:
            CDEForecaster.load(folder)  # nothing but a forecaster is replaced
            refuse_strangers(folder)
        return not overwrite
    if folder.exists() and not folder.is_dir():
        raise TableError(f"'{folder}' is a file; give a folder as --model-dir")
    if folder.exists() and any(folder.iterdir()):
        raise TableError(f"'{folder}' is there already and holds no model; choose another --model-dir")
    return False


def _read(
    file: Path, layout: TableLayout, asked: bool, teller: Teller, trained_on_dates: bool | None
) -> tuple[SeriesSet, TableLayout, bool, "_Dates | None"]:
    """Series of a table, its layout with the channels, whether series have names, and how dates are written, if any."""
    header = read_header(file)
    if not layout.tidy and not layout.channels and (hint := looks_tidy(file, header)):
        raise TableError(hint)
    named = asked or layout.id in header
    frame = read_table(file, text=layout.names, columns=layout.columns(header, without=() if named else [layout.id]))
    if not named:
        frame[layout.id] = pd.Categorical.from_codes(np.zeros(len(frame), dtype=int), categories=pd.Index(["series"]))
    check_times(frame, layout.time, trained_on_dates)
    layout, notes = learned_channels(frame, layout)
    teller.note(*notes)
    try:
        series = layout.series(frame)
    except SeriesError as error:
        if named or "duplicate time stamp" not in str(error):
            raise
        raise TableError(
            f"{error}. Does the table hold several recordings? Then name the column that tells them apart with --id"
        ) from error
    return series, layout, named, _Dates.of(column_of(frame, layout.time))


@dataclass(frozen=True)
class _Dates:
    """How a table writes dates.

    Attributes:
        zone: what stands behind them: "+00:00" if they have a time zone.
    """

    zone: str = ""

    @classmethod
    def of(cls, column: pd.Series) -> "_Dates | None":
        """None if times are numbers, or spans of time."""
        if not holds_dates(column):
            return None
        if pd.api.types.is_datetime64_any_dtype(column):
            zoned = getattr(column.dt, "tz", None) is not None
        else:
            zoned = bool(column.dropna().astype(str).str.contains(r"(?:Z|[+-]\d\d:?\d\d)\s*$").any())
        return cls("+00:00" if zoned else "")


@contextmanager
def _saying_why(backtest: bool) -> Iterator[None]:
    """Series may be long enough as a whole, and too short when a backtest has divided them."""
    try:
        yield
    except ValueError as error:
        if not backtest or "spans" not in str(error):
            raise
        raise TableError(f"{error} (--backtest judges the last fifth of each series, apart from the rest)") from error


def _cut(series: SeriesSet) -> np.ndarray:
    return series.end - HELD_BACK * (series.end - series.start)


def _judged(forecaster: CDEForecaster, series: SeriesSet, saved: bool, teller: Teller) -> Backtest:
    if saved:
        teller.note("the last fifth of the table is judged; that is fair if the saved forecaster never saw it")
    rolling = forecaster.predictor_.rolling
    begin = np.maximum(_cut(series) - (rolling.context - 1) * rolling.step, series.start)
    with _saying_why(backtest=True):
        return forecaster.backtest(series.with_window(start=begin))


def _levels(text: str | None) -> tuple[float, ...] | None:
    return listed_numbers(text, "--quantiles", "0.1,0.5,0.9")


def _remember(forecaster: CDEForecaster, layout: TableLayout, dates: bool) -> None:
    predictor = forecaster.predictor_
    record = {**predictor.record, KEY: replace(layout, end=None).as_dict(), DATES: dates}
    forecaster.predictor_ = replace(predictor, record=record)


def _layout_of(forecaster: CDEForecaster, folder: Path) -> TableLayout:
    try:
        return TableLayout.from_dict(forecaster.predictor_.record[KEY])
    except (KeyError, TypeError) as error:
        raise TableError(
            f"the forecaster in '{folder}' was not made by `smoothcde forecast`, so it does not know how to read a "
            "table; use it from Python, or choose another --model-dir"
        ) from error


def _check_same(options: Mapping[str, tuple[Any, Any]], folder: Path) -> None:
    """Refuse to promise what a saved forecaster does not do; `options` are what is asked for and what was trained."""
    for name, (asked, trained) in options.items():
        if asked is not None and asked != trained:
            asked, trained = (listed(each) if isinstance(each, tuple) else each for each in (asked, trained))
            raise TableError(
                f"--{name} is {asked}, and the forecaster in '{folder}' was trained with "
                f"{'none' if trained is None or trained == '' else trained}; leave the option out, add --overwrite to "
                "train anew, or choose another --model-dir"
            )


def _table_of(found: Forecast, layout: TableLayout, named: bool, dates: "_Dates | None", typed: bool) -> pd.DataFrame:
    """A row per series and time, times as the table had them; those with a zone in universal time.

    In files whose columns have types (`typed`) dates are dates, elsewhere text.
    """
    answers = found.to_frame(layout.id, layout.time)
    if dates:
        moments = pd.to_datetime(column_of(answers, layout.time), unit="s").dt.round("us")
    if dates and typed:
        answers[layout.time] = moments.dt.tz_localize("UTC") if dates.zone else moments
    elif dates:
        fraction = ".%f" if (moments.dt.microsecond != 0).any() else ""
        answers[layout.time] = moments.dt.strftime(f"%Y-%m-%dT%H:%M:%S{fraction}") + dates.zone
    return answers if named else answers.drop(columns=layout.id)


def _draw(forecaster: CDEForecaster, series: SeriesSet, dates: bool, title: str | None, file: Path) -> None:
    from smoothcde.plots import plot_forecast

    figure = plot_forecast(forecaster.predictor_, series, dates=dates, title=title)
    write_whole(file, lambda part: figure.savefig(part, dpi=150, format=_kind_of(file)))


def _kind_of(picture: Path) -> str:
    kind = picture.suffix.lstrip(".").lower()
    if kind not in ("png", "pdf", "svg"):
        raise TableError(f"--plot is '{picture}'; name a .png, .pdf or .svg file")
    return kind


def _report(answers: pd.DataFrame, judged: Backtest | None, out: Path | None, teller: Teller) -> None:
    document: dict[str, Any] = {"rows": len(answers), "columns": list(answers.columns)}
    if judged is not None:
        scores = judged.table.astype(object).where(judged.table.notna(), None)
        document["backtest"] = {"origins": judged.origins, "skipped": judged.skipped, **scores.to_dict("index")}
    if out is not None:
        write_table(answers, out)
        document["forecasts"] = str(out)
    else:
        document["forecasts"] = answers.astype(object).where(answers.notna(), None).to_dict("records")

    def show(console: Console) -> None:
        if judged is not None:
            # Forecasts on standard output are a table for the next program.
            (Console(stderr=True, highlight=False) if out is None else console).print(_scores(judged))
        if out is None:
            answers.to_csv(sys.stdout, index=False, lineterminator=os.linesep)
        else:
            console.print(f"{counted(len(answers), 'row')} written to '{out}'", soft_wrap=True)

    teller.result(document, show)


def _scores(judged: Backtest) -> Table:
    without = f", {judged.skipped} more without observations" if judged.skipped else ""
    table = Table(title=f"Backtest over {judged.origins} moments{without}")
    meant = "" if judged.interval is None else f" (meant: {judged.interval:.0%})"
    for heading in ("model", "MSE", "MAE", "MASE", f"coverage{meant}"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, row in judged.table.iterrows():
        coverage = "-" if np.isnan(row["coverage"]) else f"{row['coverage']:.1%}"
        table.add_row(str(name), *(f"{row[key]:.4g}" for key in ("MSE", "MAE", "MASE")), coverage)
    table.caption = "MSE and MAE in standard deviations of the training series"
    return table
