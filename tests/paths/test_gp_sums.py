"""Sums over observations are those of products of polynomials, however few of them are added up."""

import pytest
import torch

from smoothcde.paths import chebyshev
from smoothcde.paths.gp_sums import sums_over


@pytest.mark.parametrize("count", [1, 2, 5, 44, 90])
@pytest.mark.parametrize("windows", [1, 4], ids=["everyone's window", "windows of their own"])
def test_sums_are_those_of_all_products(count, windows):
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(windows, 200, dtype=torch.float64, generator=generator) - 1
    precision = torch.rand(3, 4, 2, 200, dtype=torch.float64, generator=generator)
    pulled = torch.randn(3, 4, 5, 200, dtype=torch.float64, generator=generator)
    gram, pull = sums_over(x, precision, pulled, count)
    basis = chebyshev.features(x, count).expand(4, -1, -1)
    torch.testing.assert_close(gram, torch.einsum("vnsp,npi,npj->vnsij", precision, basis, basis), rtol=0, atol=1e-11)
    torch.testing.assert_close(pull, torch.einsum("vncp,npi->vnci", pulled, basis), rtol=0, atol=1e-11)
