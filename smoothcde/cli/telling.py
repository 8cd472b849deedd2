"""What commands say: results on standard output, messages on standard error, errors as a sentence and an exit code."""

import json as json_format
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from smoothcde.checks import check_known
from smoothcde.data.tables import write_whole
from smoothcde.native import tanh_field, why_not
from smoothcde.series import SeriesError
from smoothcde.solve import SolveError
from smoothcde.training.errors import TrainingError

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object.", rich_help_panel="For scripts")
]

FAILED = 1

_AS_OPTIONS = {
    'pass duplicates="mean", "last" or "first"': "add --duplicates mean, last or first",
    "name the channels with `channels`": "name the channels with --channels",
    "lower learning_rate, or set a smaller clip": "or lower --learning-rate",
    "to go on with it, or another directory, or delete this one": "to go on with it, or another --out, or delete it",
    "name another storage, or go on": "name another --storage, or go on",
    "give `validation`, more series, or a larger validation_fraction": "give --validation, or more series",
    "or end its window where it has some": "or give another --end",
    "so the last epoch is kept; give validation series": "so the last epoch is kept",
    "load it with CDEForecaster.load": "use it with `smoothcde forecast --model-dir`",
    "load it with StreamingPredictor.load": "use it from Python, with StreamingPredictor.load",
    "no forecaster; load it with Predictor.load": "no forecaster; use it with `smoothcde predict`",
}
"""Remedies that the library words for Python, in the words of the command line."""


class Teller:
    """Says what happens.

    Args:
        json: whether the result is for a script.
    """

    def __init__(self, json: bool = False):
        self.json = json
        # Of several processes that train together, the first one speaks.
        self.first = int(os.environ.get("RANK", "0")) == 0
        self._messages = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not self.first)
        self._noted: set[str] = set()

    def note(self, *sentences: str) -> None:
        """Something worth knowing that stops nothing; said once, however often it comes up."""
        for sentence in sentences:
            if sentence in self._noted:
                continue
            self._noted.add(sentence)
            self._messages.print(f"[yellow]Note:[/] {_plain(sentence)}")

    def note_on_speed(self) -> None:
        """Tell those who train on a CPU without a C compiler what they are missing."""
        reason = why_not(tanh_field.SOURCE)
        if reason is not None and not torch.cuda.is_available():
            self.note(f"training runs in plain torch, at about half its speed: {reason}")

    def say(self, sentence: str) -> None:
        """What is going on."""
        self._messages.print(_plain(sentence))

    def fail(self, sentence: str) -> None:
        """Why it ends here."""
        if self.json and self.first:
            print(json_format.dumps({"error": sentence}, ensure_ascii=False))
        self._messages.print(f"[red]Error:[/] {_plain(sentence)}")

    def result(self, document: dict[str, Any], show: Callable[[Console], None]) -> None:
        """The result: `document` for a script, or what `show` prints for a person."""
        if not self.first:
            return
        if self.json:
            print(json_format.dumps(document, ensure_ascii=False, allow_nan=False))
        else:
            # What it prints may be anybody's words, so square brackets are no markup.
            show(Console(highlight=False, markup=False))


@contextmanager
def telling(json: bool = False) -> Iterator[Teller]:
    """A `Teller` for one command: errors of input and of files become a sentence and exit code 1."""
    teller = Teller(json)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, category, *_, **__: (
            teller.note(as_options(str(message))) if issubclass(category, UserWarning) else None
        )
        try:
            yield teller
        except BrokenPipeError:
            # Whoever read the output has seen enough (`| head`); Python must not try again to write it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except SeriesError as error:
            teller.fail(as_options(error.problems[0] if len(error.problems) == 1 else str(error)))
        except (ValueError, OSError, ImportError, SolveError, TrainingError) as error:
            teller.fail(as_options(str(error)))
        except KeyboardInterrupt:
            teller.fail("interrupted")
        else:
            return
    raise typer.Exit(FAILED)


def as_options(sentence: str) -> str:
    """A sentence of the library with its remedies as options."""
    for python, option in _AS_OPTIONS.items():
        sentence = sentence.replace(python, option)
    return sentence


def save_text(file: Any, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(file, lambda part: part.write_text(text, encoding="utf-8"))


def choice(option: str, asked: str, known: Any) -> str:
    """An option's value, refused with all that are known if it is none of them."""
    try:
        check_known(option, asked, known)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return asked


def _plain(sentence: str) -> str:
    """Square brackets as they are, instead of as rich's markup."""
    return sentence.replace("[", r"\[")
