"""Compiled code is tested where it can be compiled."""

import pytest

from smoothcde.native import tanh_field, why_not


@pytest.fixture(autouse=True)
def _compiled():
    reason = why_not(tanh_field.SOURCE)
    if reason is not None:
        pytest.skip(f"no compiled code: {reason}")
