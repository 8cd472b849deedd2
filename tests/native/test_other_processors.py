"""The same code on processors with narrower vectors, or without matrix tiles."""

import os
import platform
import subprocess
import sys

import pytest

from smoothcde.native import library, march, panels, tanh_field

CHECK = """
import copy, sys, torch
from smoothcde.native import library

library._TUNED = ((f"-march={sys.argv[1]}", "-fopenmp"),)
from smoothcde.models import TanhField
from smoothcde.models.attention import ConvEncoder, QueryAttention, _plain_scores, compiled_scores
from smoothcde.models.selective_scan import selective_scan
from smoothcde.native import panels, without_compiled_code
from smoothcde.paths import GPPath
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, Rows, integrate

torch.manual_seed(0)
field, rows = TanhField(2, 37, 3, 21), Rows.all(26, 2)
z, dx = torch.randn(26, 37, requires_grad=True), torch.randn(26, 3)
packed, exact = field.prepared(), copy.deepcopy(field).double()
assert packed is not field
found, expected = packed.product(z, dx, rows), exact.product(z.double(), dx.double(), rows)
torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6)
(one,), (other,) = (torch.autograd.grad(x.square().sum(), z) for x in (found, expected))
torch.testing.assert_close(one, other, rtol=0, atol=1e-5)

encoder, attention = ConvEncoder(2, 21), QueryAttention(3, 21)
features, lengths = torch.randn(5, 19, 2), torch.tensor([19, 4, 1, 0, 18])
found = compiled_scores(encoder, attention, features, lengths)
weights = [w.double() for w in (*encoder.weights, attention.queries * attention.scale)]
expected = _plain_scores(weights, features.double(), lengths)
torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6)
(one,), (other,) = (torch.autograd.grad(x.square().sum(), attention.queries) for x in (found, expected))
torch.testing.assert_close(one, other, rtol=0, atol=1e-5)

shapes = [(3, 70, 21)] * 2 + [(21, 5), (3, 70, 5), (3, 70, 5), (21,)]
parts = [torch.rand(shape, requires_grad=True) for shape in shapes]
doubled = [part.detach().double().requires_grad_() for part in parts]
found, expected = (selective_scan(*p[:2], -p[2], *p[3:]) for p in (parts, doubled))
torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
for one, other in zip(*(torch.autograd.grad(x.sum(), p) for x, p in ((found, parts), (expected, doubled)))):
    torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)

times = [torch.rand(n).double().sort().values.numpy() * 9 for n in (12, 30, 21)]
series = SeriesSet.from_arrays([torch.randn(3, len(t)).double().numpy() for t in times], times)
weights = torch.rand(3, 2, 30, requires_grad=True)


def solved(model, dtype):
    path = GPPath.fit(series.batch(dtype=dtype), [2.0, 4.0], 0.1, weights.to(dtype))
    term = ControlTerm(model, path)
    return integrate(term, z[:6].to(dtype), path.start, path.end, rtol=1e-6, atol=1e-6, views=2).state


found = solved(field, torch.float32)
assert type(found.grad_fn).__name__ == "_MarchBackward"
with without_compiled_code():
    expected = solved(exact, torch.float64)
torch.testing.assert_close(found.double(), expected, rtol=0, atol=3e-5)
(one,), (other,) = (torch.autograd.grad(x.square().sum(), weights) for x in (found, expected))
torch.testing.assert_close(one, other, rtol=0, atol=1e-3 * float(other.abs().max()))
print(panels.panel_columns("tanh_field.c"))
"""


def checked(processor, **environment):
    """Columns of a panel on a processor of this kind, where everything is as exact."""
    command = [sys.executable, "-c", CHECK, processor]
    said = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return int(said.stdout)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of one family")
@pytest.mark.parametrize(("processor", "columns"), [("x86-64-v3", 16), ("x86-64", 8)])
def test_narrower_vectors_give_the_same(processor, columns):
    assert checked(processor) == columns


def test_vectors_and_tiles_give_the_same():
    assert checked("native", SMOOTHCDE_TILES="0") == checked("native", SMOOTHCDE_TILES="1")


def test_tiles_are_not_asked_for_where_they_are_switched_off(monkeypatch):
    monkeypatch.setenv(library.TILES, "0")
    assert not library.tiles_allowed.__wrapped__()


def test_whole_solves_read_weights_only_in_their_own_order(monkeypatch):
    packed = tanh_field.PackedField.__new__(tanh_field.PackedField)
    packed.panel, packed.tiles = panels.panel_columns(march.SOURCE), panels.by_tiles(march.SOURCE)
    assert march.reads(packed)
    packed.tiles = not packed.tiles
    assert not march.reads(packed)
