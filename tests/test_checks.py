"""Arguments that cannot be meant are refused in words that say what can."""

import numpy as np
import pytest

from smoothcde.checks import check_above_zero, check_choice, check_known, check_whole


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True, np.float64(2)])
def test_whole_numbers(value):
    check_whole("hidden", 1, 1)
    check_whole("hidden", np.int64(7), 1)
    with pytest.raises(ValueError, match=r"hidden is .*; give a whole number of at least 1"):
        check_whole("hidden", value, 1)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", None, True])
def test_numbers_above_zero(value):
    check_above_zero("rtol", 1, "give more")
    check_above_zero("rtol", np.float32(1e-3), "give more")
    with pytest.raises(ValueError, match=r"rtol is .*; give more"):
        check_above_zero("rtol", value, "give more")


def test_choices_and_names():
    check_choice("split", "all", ("train", "all"))
    check_known("model", "gp", {"gp": 1})
    with pytest.raises(ValueError, match=r"^split is 'al'; use any of: 'train', 'all'$"):
        check_choice("split", "al", ("train", "all"))
    with pytest.raises(ValueError, match=r"^there is no model 'pg'; use any of: 'gp'$"):
        check_known("model", "pg", {"gp": 1})
