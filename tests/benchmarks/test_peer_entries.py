"""Every contender computes the same thing: outputs and all gradients, against one another at a tight tolerance."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

pytest.importorskip("torchdiffeq")
pytest.importorskip("torchode", reason="the benchmarks' extra is not installed")

from benchmarks.entries import ENTRIES, OurEntry
from benchmarks.products import step_operations
from benchmarks.reference import Reference, compare
from benchmarks.settings import SETTINGS, Work, resampled
from smoothcde import SeriesSet

TORCH = [
    "smoothcde",
    "smoothcde, adjoint",
    "smoothcde, nothing compiled",
    "paper's stack, as published",
    "paper's stack, backprop",
    "paper's stack, adjoint",
    "torchode",
]


@pytest.fixture(scope="module")
def work():
    return Work.of(SETTINGS["CharacterTrajectories"], 3)


@pytest.fixture(scope="module")
def reference(work):
    """By torchdiffeq and an exact Gaussian process, in float64."""
    return Reference.by_torchdiffeq(work)


def test_smoothcdes_own_reference_is_torchdiffeqs(work, reference):
    ours = Reference.of(work)
    found = reference.errors_of(ours.outputs, ours.gradients)
    assert found.largest < 1e-6
    assert found.gradient < 1e-6


@pytest.mark.parametrize("name", TORCH)
def test_torch_entries_meet_the_reference(work, reference, name):
    entry = ENTRIES[name](work)
    entry.tolerance = 1e-5
    errors = reference.errors_of(entry.infer(), entry.gradients())
    assert errors.largest < 1e-3
    assert errors.gradient < 2e-3


def test_the_published_adjoint_leaves_out_what_goes_through_the_path(work, reference):
    entry = ENTRIES["paper's stack, as published, adjoint"](work)
    entry.tolerance = 1e-5
    assert reference.errors_of(entry.infer(), reference.gradients).largest < 1e-3
    found = entry.gradients()
    off = {name: np.linalg.norm(found[name] - g) / np.linalg.norm(g) for name, g in reference.gradients.items()}
    assert all(error < 2e-3 for name, error in off.items() if name.startswith(("field", "initial", "readout")))
    assert off["attention.queries"] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diffrax, joint steps", "diffrax, own steps (vmap)"])
def test_diffrax_entries_meet_the_reference(work, reference, name):
    pytest.importorskip("diffrax", reason="the benchmarks' extra is not installed")
    entry = ENTRIES[name](work)
    entry.tolerance = 1e-5
    errors = reference.errors_of(reference.outputs, entry.gradients())
    assert errors.gradient < 2e-3
    assert entry.compile_seconds["training step"] > 0


def test_diffrax_gives_the_same_outputs_and_counts_what_it_evaluates(work, reference):
    jax = pytest.importorskip("jax", reason="the benchmarks' extra is not installed")
    entry = ENTRIES["diffrax, joint steps"](work)
    calls = []
    field = entry.model.field

    def counted(*arguments):
        jax.debug.callback(lambda: calls.append(1))
        return field(*arguments)

    entry.model.field = counted
    entry.tolerance = 1e-5
    assert reference.errors_of(entry.infer(), reference.gradients).largest < 1e-3
    jax.effects_barrier()
    assert entry.counts().computed == len(calls)


@pytest.mark.parametrize("name", ["paper's stack, adjoint", "paper's stack, as published, adjoint"])
def test_an_adjoint_counts_its_backward_evaluations(work, name):
    entry = ENTRIES[name](work)
    entry.infer()
    forward = entry.counts()
    assert forward.backward == 0
    entry.step()
    assert entry.counts().needed == forward.needed
    assert entry.counts().backward > 6


def test_an_entry_that_lacks_a_gradient_is_caught(work, reference):
    gradients = dict(reference.gradients)
    del gradients["attention.queries"]
    with pytest.raises(ValueError, match=r"missing or unknown: \['attention.queries'\]"):
        reference.errors_of(reference.outputs, gradients)


def test_an_entry_that_is_wrong_is_not_timed(work, reference):
    entry = OurEntry(work)
    entry.batch.values.mul_(1.5)
    with pytest.raises(AssertionError, match="outputs are"):
        compare(entry, reference)


def test_a_step_changes_no_weight(work):
    entry = OurEntry(work)
    before = {name: p.detach().clone() for name, p in work.model.named_parameters()}
    entry.step()
    assert all(torch.equal(before[name], p) for name, p in work.model.named_parameters())


def test_operations_are_those_that_torch_counts(work):
    model, batch = work.model, work.batch()
    entry = ENTRIES["smoothcde, nothing compiled"](work)  # torch sees nothing of what is done in compiled code
    assert isinstance(entry, OurEntry)
    entry.infer()
    # Torch's counter leaves this one out.
    in_place = {torch.ops.aten.addmm_: lambda total, a, b, **_: 2 * a[0] * a[1] * b[1]}
    with FlopCounterMode(display=False, custom_mapping=in_place) as whole:
        entry.step()
    with torch.no_grad():
        weights = model.weights(batch)
    weights.requires_grad_()
    with FlopCounterMode(display=False, custom_mapping=in_place) as fitting:
        # All that a loss would send back through the path.
        model.fit_path(batch, weights).derivative(1.0).sum().backward()
    counted = whole.get_total_flops() - fitting.get_total_flops()
    operations = step_operations(work.setting, entry.outcome.solution.stats, filtered=False)
    # What the slopes of the paths take on the way is in torch's count alone.
    assert sum(operations.values()) == pytest.approx(counted, rel=0.05)


def test_resampling_keeps_straight_lines_and_ends():
    lines = [np.array([np.linspace(0, 1, n), np.linspace(3, -1, n)]) for n in (5, 9)]
    series = resampled(SeriesSet.from_arrays(lines), 7)
    values = series.batch(dtype=torch.float64).values.numpy()
    expected = np.stack([np.linspace(0, 1, 7), np.linspace(3, -1, 7)], axis=1)
    np.testing.assert_allclose(values, np.stack([expected, expected]), atol=1e-12)
