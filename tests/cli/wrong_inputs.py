"""Wrong inputs to the command line: exit code, arguments, files, and a part of the sentence each gets."""

import numpy as np
import pandas as pd
from cli_tables import per_series, tidy, waves

FIT = ("fit", "t.csv", "--target", "outcome", "--epochs", "1", "--out", "out")
FAILED, USAGE = 1, 2


def changed(**columns):
    """The usual table with other columns."""
    return waves().assign(**columns)


def labels(**columns):
    return {"labels.csv": per_series(waves(), "outcome").assign(**columns), "t.csv": waves().drop(columns="outcome")}


LABELS = ("fit", "t.csv", "--labels", "labels.csv", "--epochs", "1", "--out", "out")
TIDY = ("--variable", "variable", "--value", "value")
TWICE = pd.concat([waves(), waves().iloc[:1].assign(pulse=9.0)])

DOSES = per_series(waves(), "dose")
PENDING = labels(outcome=[f"{number:g}" if number else "pending" for number in np.arange(24) / 3])

WRONG = {
    "a cell that is no number": (
        FAILED,
        LABELS,
        PENDING,
        "target 'outcome' holds numbers, but for 'pending' of series 000; correct such cells, or empty them",
    ),
    "the same where numbers are asked for": (
        FAILED,
        (*LABELS, "--task", "regression"),
        PENDING,
        "target 'outcome' holds numbers, but for 'pending' of series 000; correct such cells, or empty them",
    ),
    "a stamp that is no number": (
        FAILED,
        FIT,
        {"t.csv": changed(time=["late", *map(str, waves()["time"][1:])])},
        "column 'time' holds 'late'; write stamps as numbers",
    ),
    # What is in the way of reading: exit code, arguments, files, sentence.
    "no such file": (FAILED, FIT, {}, "there is no file 't.csv'; check its name and folder"),
    "empty file": (FAILED, FIT, {"t.csv": ""}, "'t.csv' is empty; give a CSV"),
    "no rows": (FAILED, FIT, {"t.csv": "id,time,x,outcome\n"}, "'t.csv' has a header but no rows"),
    "no CSV": (FAILED, FIT, {"t.csv": b"\x89PNG\x00\xff\xfe\x01"}, "'t.csv' is not text in UTF-8; save it as CSV"),
    "no header": (FAILED, FIT, {"t.csv": "1,2,3\n4,5,6\n"}, "the first row of 't.csv' holds only numbers"),
    "ragged": (
        FAILED,
        FIT,
        {"t.csv": "id,time,x,outcome\na,1,2,y\na,2,3,y,5\n"},
        "line 3 has 5 fields where the header has 4",
    ),
    "no Parquet": (
        FAILED,
        ("fit", "t.parquet", *FIT[2:]),
        {"t.parquet": "id"},
        "'t.parquet' is no readable Parquet file",
    ),
    "spreadsheet": (FAILED, ("fit", "t.xlsx", *FIT[2:]), {"t.xlsx": b"PK\x03\x04"}, "export the sheet as CSV"),
    "same name twice": (
        FAILED,
        FIT,
        {"t.csv": "id,time,x,x,outcome\na,1,2,3,y\n"},
        "several columns called 'x'; rename them",
    ),
    "JSON": (FAILED, FIT, {"t.csv": '{"id": [1, 2]}'}, "'t.csv' looks like JSON; give a CSV"),
    "a comment": (FAILED, FIT, {"t.csv": "# exported\nid,time,x\n"}, "'t.csv' begins with a comment; remove what"),
    # Columns.
    "no id column": (
        FAILED,
        (*FIT, "--id", "patient"),
        {"t.csv": waves()},
        "'t.csv' has no column 'patient'; its columns are 'id', 'time'",
    ),
    "no time column": (
        FAILED,
        (*FIT, "--time", "hour"),
        {"t.csv": waves()},
        "no column 'hour'; the table has 'id', 'time', 'pulse'",
    ),
    "no target column": (
        FAILED,
        ("fit", "t.csv", "--target", "y", "--out", "out"),
        {"t.csv": waves()},
        "'t.csv' has no column 'y'; its columns are",
    ),
    "no such channel": (FAILED, (*FIT, "--channels", "pulse,x"), {"t.csv": waves()}, "no column 'x'; the table has"),
    "no such variable": (
        FAILED,
        (*LABELS, *TIDY, "--channels", "pulse,x"),
        labels() | {"t.csv": tidy(waves())},
        "column 'variable' never names 'x'; it names 'pulse', 'sat'",
    ),
    "variable without value": (
        FAILED,
        (*FIT, "--variable", "x"),
        {"t.csv": waves()},
        "a tidy table needs both its variable and its value column",
    ),
    "tidy without saying so": (
        FAILED,
        LABELS,
        labels() | {"t.csv": tidy(waves())},
        "'t.csv' looks tidy; add --variable variable --value value",
    ),
    "text among numbers": (
        FAILED,
        FIT,
        {"t.csv": changed(pulse=["high", *waves()["pulse"][1:]])},
        "column 'pulse' holds 'high', not a number, in 1 of",
    ),
    "text among numbers of several": (
        FAILED,
        FIT,
        {"t.csv": changed(pulse=["high", *waves()["pulse"][1:]], sat=["low", *waves()["sat"][1:]])},
        "column 'sat' holds 'low', not a number, in 1 of",
    ),
    "text values": (
        FAILED,
        (*LABELS, *TIDY),
        labels() | {"t.csv": tidy(waves()).assign(value="high")},
        "column 'value' holds no number; is it the right one?",
    ),
    "only constants": (
        FAILED,
        FIT,
        {"t.csv": waves()[["id", "time", "outcome"]].assign(x=1.0)},
        "no column is left to learn from besides 'id' and 'time' (column 'x' is always 1: left out)",
    ),
    "infinite value": (
        FAILED,
        FIT,
        {"t.csv": changed(pulse=np.inf)},
        "infinite values; use NaN for what was not observed",
    ),
    "nameless rows": (
        FAILED,
        FIT,
        {"t.csv": changed(id=["", *waves()["id"][1:]])},
        "1 rows of 't.csv' have no 'id'; fill it in or drop the rows",
    ),
    # Times.
    "clock times": (
        FAILED,
        FIT,
        {"t.csv": changed(time="00:07")},
        "column 'time' holds '00:07'; write stamps as numbers, dates, or ISO 8601 text",
    ),
    "no time": (
        FAILED,
        FIT,
        {"t.csv": changed(time=[np.nan, *waves()["time"][1:]])},
        "series 000: some time stamps are NaN or infinite",
    ),
    "duplicate times": (FAILED, FIT, {"t.csv": TWICE}, "merge the rows, or add --duplicates mean, last or first"),
    "no moment": (
        FAILED,
        (*FIT, "--end", "noon"),
        {"t.csv": waves()},
        "'noon' is neither a number nor an ISO 8601 date",
    ),
    # Targets.
    "varying target": (
        FAILED,
        ("fit", "t.csv", "--target", "pulse", "--out", "out"),
        {"t.csv": waves()},
        "'pulse' varies within series 000, 001, 002",
    ),
    "one class": (
        FAILED,
        FIT,
        {"t.csv": changed(outcome="loud")},
        "target 'outcome' has one class only, loud, in all 24 series",
    ),
    "a class each": (
        FAILED,
        FIT,
        {"t.csv": changed(outcome="n" + waves()["id"])},
        "target 'outcome' has 24 classes in 24 series, too many to learn",
    ),
    "text for regression": (
        FAILED,
        (*FIT, "--task", "regression"),
        {"t.csv": waves()},
        "target 'outcome' holds text such as 'quiet', no numbers; use --task classification",
    ),
    "two targets of classes": (
        FAILED,
        (*FIT, "--target", "dose", "--task", "classification"),
        {"t.csv": waves()},
        "classification has one target, and 'outcome', 'dose' are 2; choose one",
    ),
    "infinite target": (
        FAILED,
        ("fit", "t.csv", "--target", "dose", "--out", "out"),
        {"t.csv": changed(dose=np.inf)},
        "column 'dose' holds infinite values; give finite targets",
    ),
    "labels of others": (
        FAILED,
        LABELS,
        labels(id=[f"x{i}" for i in range(24)]),
        "no series of the table has a target (series 000, 001, 002 and 21 more in the table; x0, x1, x2 and 21 more in"
        " the labels)",
    ),
    "labels without id": (
        FAILED,
        LABELS,
        labels() | {"labels.csv": "patient,outcome\na,1\n"},
        "'labels.csv' has no column 'id'; its columns are 'patient', 'outcome'",
    ),
    "labels of several": (
        FAILED,
        LABELS,
        labels(more=1),
        "'labels.csv' has the columns 'outcome', 'more' besides 'id'; choose what to predict with --target",
    ),
    "no target at all": (
        USAGE,
        ("fit", "t.csv", "--out", "out"),
        {"t.csv": waves()},
        "say what to predict: --target COLUMN of the table, or --labels FILE",
    ),
    # Static columns.
    "static without id": (
        FAILED,
        (*FIT, "--static", "s.csv"),
        {"t.csv": waves(), "s.csv": "patient,age\na,3\n"},
        "'s.csv' has no column 'id'; its columns are 'patient', 'age'",
    ),
    "static without series": (
        FAILED,
        (*FIT, "--static", "s.csv"),
        {"t.csv": waves(), "s.csv": per_series(waves(), "dose")[1:]},
        "the static table has no row for series 000; add them",
    ),
    "static twice": (
        FAILED,
        (*FIT, "--static", "s.csv"),
        {"t.csv": waves(), "s.csv": waves()[["id", "dose"]].assign(dose=range(len(waves())))},
        "the static table has several rows for series 000",
    ),
    # Options.
    "unknown model": (
        USAGE,
        (*FIT, "--model", "transformer"),
        {"t.csv": waves()},
        "there is no model 'transformer'; use any of: 'linear'",
    ),
    "unknown recipe": (
        USAGE,
        (*FIT, "--recipe", "best"),
        {"t.csv": waves()},
        "there is no recipe 'best'; use any of: 'tuned'",
    ),
    "unknown task": (
        USAGE,
        (*FIT, "--task", "clustering"),
        {"t.csv": waves()},
        "there is no task 'clustering'; use any of: 'classification', 'regression'",
    ),
    "unknown rule": (
        USAGE,
        (*FIT, "--duplicates", "median"),
        {"t.csv": waves()},
        "there is no rule --duplicates 'median'; use any of: 'error', 'mean', 'last', 'first'",
    ),
    "unknown device": (
        FAILED,
        (*FIT, "--device", "quantum"),
        {"t.csv": waves()},
        "device is 'quantum'; use any of: 'auto', 'cpu', 'cuda'",
    ),
    "no epochs": (USAGE, (*FIT, "--epochs", "0"), {"t.csv": waves()}, "--epochs"),
    "learning rate": (
        FAILED,
        (*FIT, "--learning-rate", "-1"),
        {"t.csv": waves()},
        "learning_rate is -1.0; give a number above 0",
    ),
    "calibrated regression": (
        FAILED,
        ("fit", "t.csv", "--target", "dose", "--calibrate", "--out", "out"),
        {"t.csv": waves()},
        "--balanced and --calibrate are for classification",
    ),
    "folder in use": (
        USAGE,
        (*FIT[:-1], "."),
        {"t.csv": waves()},
        "'.' is there already; choose another --out, or add --overwrite",
    ),
    "not a folder of ours": (
        USAGE,
        (*FIT[:-1], "mine", "--overwrite"),
        {"t.csv": waves(), "mine/note.txt": "x"},
        "'mine' is there already and is no model; choose another --out",
    ),
    "unknown data set": (USAGE, ("datasets", "mnist"), {}, "there is no data set 'mnist'; use any of: 'physionet2012'"),
    "data set to nowhere": (
        USAGE,
        ("datasets", "BasicMotions"),
        {},
        "say where the tables shall go, with --out FOLDER",
    ),
    "unknown format": (
        USAGE,
        ("datasets", "BasicMotions", "--out", "d", "--format", "xlsx"),
        {},
        "there is no format 'xlsx'; use any of: 'csv', 'parquet'",
    ),
}

NO_MODEL = {
    "dates for numbers": (
        FAILED,
        ("predict", "MODEL", "t.csv", "--static", "s.csv"),
        {"t.csv": changed(time=pd.date_range("2024-05-17", periods=len(waves()), freq="h")), "s.csv": DOSES},
        "column 'time' holds dates, and the model was trained on numbers; write times in the unit",
    ),
    "output over input": (
        FAILED,
        ("predict", "MODEL", "t.csv", "--static", "s.csv", "--out", "t.csv"),
        {"t.csv": waves(), "s.csv": DOSES},
        "'t.csv' is the file that is read; choose another one for what is written",
    ),
    "output of another format": (
        FAILED,
        ("predict", "MODEL", "t.csv", "--static", "s.csv", "--out", "p.xlsx"),
        {"t.csv": waves(), "s.csv": DOSES},
        "'p.xlsx' would be a CSV file, and its name says otherwise; name a .csv or .parquet file",
    ),
    "empty truth": (
        FAILED,
        ("evaluate", "MODEL", "t.csv", "--static", "s.csv"),
        {"t.csv": changed(outcome=np.nan), "s.csv": DOSES},
        "target 'outcome' is empty for every series; fill it in, or name another column",
    ),
    "nothing there": (FAILED, ("predict", "nowhere", "t.csv"), {}, "the model directory 'nowhere' does not exist"),
    "no model in it": (FAILED, ("evaluate", ".", "t.csv"), {}, "has no file manifest.json, so the model is incomplete"),
    "no static file": (
        FAILED,
        ("predict", "MODEL", "t.csv"),
        {"t.csv": waves()},
        "this model was trained with the static columns dose; give --static FILE",
    ),
    "a channel less": (
        FAILED,
        ("predict", "MODEL", "t.csv"),
        {"t.csv": waves().drop(columns="sat")},
        "no column 'sat'; the table has 'id', 'time'",
    ),
    "static column less": (
        FAILED,
        ("predict", "MODEL", "t.csv", "--static", "s.csv"),
        {"t.csv": waves(), "s.csv": per_series(waves(), "pulse")},
        "the static table has no column 'dose'; its columns are 'id', 'pulse'",
    ),
    "unknown class": (
        FAILED,
        ("evaluate", "MODEL", "t.csv", "--static", "s.csv"),
        {"t.csv": changed(outcome="silent"), "s.csv": per_series(waves(), "dose")},
        "target 'outcome' holds silent, which the model does not know; it was trained on loud, quiet",
    ),
    "no truth": (
        FAILED,
        ("evaluate", "MODEL", "t.csv"),
        {"t.csv": waves().drop(columns="outcome")},
        "'t.csv' has no column 'outcome'; its columns are",
    ),
    "unknown series": (
        FAILED,
        ("explain", "MODEL", "t.csv", "--series", "77"),
        {"t.csv": waves()},
        "there is no series 77 in 't.csv'; column 'id' holds 000, 001",
    ),
    "no place for the output": (
        FAILED,
        ("predict", "MODEL", "t.csv", "--static", "s.csv", "--out", "t.csv/p.csv"),
        {"t.csv": waves(), "s.csv": per_series(waves(), "dose")},
        "'t.csv/p.csv' cannot be written",
    ),
}
