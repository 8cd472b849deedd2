"""The error that tells everything at once."""

import pickle

import pytest

from smoothcde.series import SeriesError
from smoothcde.series.problems import Problems, listed


def test_one_problem_and_several_read_differently():
    assert str(SeriesError(["a; do b"])) == "1 problem with the series:\n  - a; do b"
    assert str(SeriesError(["a", "b"])) == "2 problems with the series:\n  - a\n  - b"


def test_a_long_list_is_cut_in_the_message_but_whole_in_problems():
    error = SeriesError(f"series {i}" for i in range(100))
    assert "series 19" in str(error)
    assert "series 20" not in str(error)
    assert str(error).endswith("... and 80 more (see `.problems` of this error)")
    assert len(error.problems) == 100


def test_it_is_a_value_error():
    with pytest.raises(ValueError, match="a"):
        raise SeriesError(["a"])


def test_it_survives_the_way_back_from_a_worker_process():
    error = SeriesError(["a", "b"])
    returned = pickle.loads(pickle.dumps(error))
    assert returned.problems == error.problems
    assert str(returned) == str(error)


def test_nothing_found_raises_nothing():
    Problems().raise_if_any()


def test_listed_tells_how_many_it_left_out():
    assert listed([1, 2, 3]) == "1, 2, 3"
    assert listed(range(7)) == "0, 1, 2, 3, 4 and 2 more"
