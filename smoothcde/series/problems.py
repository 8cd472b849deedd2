"""Everything that is wrong with an input, told at once, each with its remedy."""

from collections.abc import Iterable

MOST_SHOWN = 20


class SeriesError(ValueError):
    """Input that cannot be a set of series. `problems` holds every finding, the message the first of them."""

    def __init__(self, problems: Iterable[str]):
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = [f"  - {problem}" for problem in self.problems[:MOST_SHOWN]]
        if count > MOST_SHOWN:
            shown.append(f"  ... and {count - MOST_SHOWN} more (see `.problems` of this error)")
        heading = "1 problem with the series:" if count == 1 else f"{count} problems with the series:"
        super().__init__("\n".join([heading, *shown]))

    def __reduce__(self):
        return type(self), (self.problems,)  # by default a pickle would take the message for the list of problems


class Problems:
    """Collects findings; `raise_if_any` turns them into one `SeriesError`."""

    def __init__(self):
        self._found: list[str] = []

    def add(self, problem: str) -> None:
        """Note one finding: what is wrong, where, and what to do."""
        self._found.append(problem)

    def raise_if_any(self) -> None:
        """Raise `SeriesError` with all findings so far, or do nothing."""
        if self._found:
            raise SeriesError(self._found)


def counted(count: int, noun: str) -> str:
    """`1 channel`, `2 channels`, `12,000 rows`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(items: Iterable, most: int = 5) -> str:
    """`3, 8, 13 and 2 more`: a readable excerpt of a long list."""
    items = [str(item) for item in items]
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")
