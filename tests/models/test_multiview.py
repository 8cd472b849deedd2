"""Several views in one model: each as if alone, joined at the readout, with gradients to all that shapes them."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
import torchcde
from small_models import LONG, MIDDLE, NOTHING, SHORT, TIME_SCALE, series_of, small_model
from torch.func import functional_call

from smoothcde.models import NeuralCDE, geometric, homogeneous, silverman
from smoothcde.models.bandwidths import Bandwidths
from smoothcde.series import SeriesSet
from smoothcde.solve import ControlTerm, Rows, SolverOptions, integrate
from smoothcde.training import CrossEntropy, Recipe, train

MULTIPLE = ["mv-kernel", "mv-gp", "mvc-kernel", "mvc-gp"]
SERIES = series_of(LONG, SHORT, MIDDLE)
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def double_batch(series=SERIES):
    return series.batch(dtype=torch.float64)


class TestViews:
    @pytest.mark.parametrize("name", MULTIPLE)
    def test_are_single_view_models_joined_at_the_readout(self, name):
        bandwidths = (0.15, 0.3, 0.9)
        model, batch = small_model(name, bandwidths=bandwidths), double_batch()
        with torch.no_grad():
            outcome = model.solve(batch)
            expected = model.readout.bias
            for view, part in enumerate(model.readout.weight.split(model.hidden, dim=1)):
                single = small_model(name, bandwidths=bandwidths[view : view + 1], seed=1)
                weights = dict(model.state_dict())
                for key in weights:
                    if key.startswith(("field.", "attention.queries")):
                        weights[key] = weights[key][view : view + 1]
                weights["readout.weight"] = part
                single.load_state_dict(weights)
                alone = single.solve(batch)
                expected = expected + alone.solution.state @ part.T
                rows = slice(view * len(batch), (view + 1) * len(batch))
                assert (outcome.solution.stats.accepted[rows] == alone.solution.stats.accepted).all()
        torch.testing.assert_close(outcome.outputs, expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("name", MULTIPLE)
    def test_never_interact_within_the_solve(self, name):
        model, batch = small_model(name), double_batch()
        first, second = model.solve(batch).solution.state.chunk(2)
        for state, own in ((first, 0), (second, 1)):
            shaping = [model.attention.queries, *model.field.parameters()]
            for gradient in torch.autograd.grad(state.square().sum(), shaping, retain_graph=True):
                assert gradient[own].abs().max() > 0
                assert (gradient[1 - own] == 0).all()

    @pytest.mark.parametrize("name", MULTIPLE)
    def test_keep_their_pace_whatever_another_view_does(self, name):
        calm, hectic = small_model(name), small_model(name)
        with torch.no_grad():
            hectic.field.outer.weight[1] *= 20
            hectic.attention.queries[1] *= -3
            before, after = calm.solve(double_batch()).solution, hectic.solve(double_batch()).solution
        n = len(SERIES)
        assert (after.stats.nfe[n:] > before.stats.nfe[n:]).any()
        assert (after.stats.nfe[:n] == before.stats.nfe[:n]).all()
        torch.testing.assert_close(after.state[:n], before.state[:n], rtol=1e-10, atol=1e-10)

    def test_of_smaller_bandwidth_take_more_evaluations(self):
        rough = small_model("mv-gp", bandwidths=(0.05, 1.4), noise=0.01).solve(double_batch()).solution.stats.nfe
        assert rough[: len(SERIES)].mean() > 1.5 * rough[len(SERIES) :].mean()


class TestBandwidthChoices:
    def test_homogeneous_repeats_one(self):
        assert homogeneous(0.2, 3) == (0.2, 0.2, 0.2)

    def test_geometric_keeps_a_constant_ratio(self):
        chosen = geometric(0.1, 1.6, 5)
        np.testing.assert_allclose(chosen, (0.1, 0.2, 0.4, 0.8, 1.6))
        assert geometric(0.3, 0.9, 1) == (pytest.approx(0.3),)

    def test_silverman_is_the_rule_over_observation_times_averaged_over_series(self):
        rules = []
        for values, times in (LONG, SHORT, MIDDLE):
            seen = np.asarray(times)[np.isfinite(values).any(axis=0)]
            deviation = np.sqrt(((seen - seen.mean()) ** 2).sum() / (len(seen) - 1))
            spread = (np.percentile(seen, 75) - np.percentile(seen, 25)) / 1.34
            rules.append(0.9 * min(deviation, spread) / len(seen) ** 0.2)
        expected = np.mean(rules) / (15.2 - 10.0)
        np.testing.assert_allclose(silverman(series_of(LONG, SHORT, MIDDLE, NOTHING), views=2), (expected, expected))

    def test_silverman_does_not_depend_on_the_unit_of_time(self):
        slower = replace(SERIES, times=SERIES.times * 60, start=SERIES.start * 60, end=SERIES.end * 60)
        np.testing.assert_allclose(silverman(slower), silverman(SERIES))

    def test_silverman_asks_for_bandwidths_where_it_has_nothing_to_go_by(self):
        with pytest.raises(ValueError, match="needs at least one series with two observations; give bandwidths"):
            silverman(series_of(NOTHING))

    def test_are_fractions_of_the_time_scale(self):
        np.testing.assert_allclose(Bandwidths((0.1, 0.5), time_scale=40.0).values, (4.0, 20.0))


class TestLearntBandwidths:
    def test_start_where_they_were_told(self):
        learnt = Bandwidths((0.1, 0.5, 3.0), time_scale=40.0, learn=True)
        np.testing.assert_allclose(learnt.values.detach(), (4.0, 20.0, 120.0), rtol=1e-12)

    def test_stay_above_the_floor(self):
        learnt = Bandwidths((0.1, 0.5), time_scale=40.0, learn=True, floor=0.05)
        with torch.no_grad():
            learnt.raw.fill_(-60.0)
            np.testing.assert_allclose(learnt.values, (2.0, 2.0))
        assert (learnt.values >= 2.0).all()

    def test_have_a_floor_of_a_quarter_of_the_smallest(self):
        assert Bandwidths((0.4, 0.1), time_scale=1.0, learn=True).floor == pytest.approx(0.025)

    def test_have_nodes_enough_for_the_floor(self):
        learnt = Bandwidths((0.4, 0.2), time_scale=10.0, learn=True, floor=0.1)
        assert learnt.nodes(10.0) == Bandwidths((0.1, 0.1), time_scale=10.0).nodes(10.0)

    def test_have_nodes_that_do_not_depend_on_windows_below_the_time_scale(self):
        fixed = Bandwidths((0.4, 0.2), time_scale=10.0)
        assert fixed.nodes(0.0) == fixed.nodes(2.0) == fixed.nodes(10.0)
        assert fixed.nodes(10.1) == fixed.nodes(20.0) > fixed.nodes(10.0)

    @pytest.mark.parametrize("name", MULTIPLE)
    def test_move_in_training(self, name):
        model = small_model(name, torch.float32, learn_bandwidths=True, bandwidth_floor=0.1)
        before = model.bandwidths.values.detach().clone()
        train(model, SERIES, np.arange(3), CrossEntropy(), Recipe(epochs=4, batch_size=3, learning_rate=0.1))
        after = model.bandwidths.values.detach()
        assert (after != before).all()
        assert (after > 0.1 * TIME_SCALE).all()


class TestLearntNoise:
    def test_starts_where_it_was_told_and_moves_in_training(self):
        model = small_model("mvc-gp", torch.float32, learn_noise=True, noise=0.2)
        assert float(model.noise.detach()) == pytest.approx(0.2)
        train(model, SERIES, np.arange(3), CrossEntropy(), Recipe(epochs=4, batch_size=3, learning_rate=0.1))
        assert float(model.noise.detach()) != pytest.approx(0.2)

    def test_gives_the_path_of_the_same_noise_fixed(self):
        learnt, fixed = small_model("mv-gp", learn_noise=True, noise=0.25), small_model("mv-gp", noise=0.25)
        fixed.load_state_dict(learnt.state_dict(), strict=False)
        with torch.no_grad():
            torch.testing.assert_close(learnt(double_batch()), fixed(double_batch()))

    def test_stays_positive(self):
        model = small_model("mvc-gp", learn_noise=True)
        with torch.no_grad():
            model.log_noise -= 20
            assert model.noise > 0
            assert model(double_batch()).isfinite().all()


def tiny(name, **settings):
    """Two views of hidden size two, and a batch of two series with five stamps."""
    learnt = {"learn_bandwidths": True, "learn_noise": name == "mvc-gp"}
    sizes = {"hidden": 2, "width": 3, "outputs": 1, "encoder_width": 3, "bandwidths": (0.5, 1.0), "noise": 0.3}
    model = small_model(name, **(sizes | learnt | TIGHT | {"solver": "dopri8"} | settings))
    generator = np.random.default_rng(0)
    values = generator.normal(size=(2, 2, 5))
    values[0, 1, 2] = np.nan
    times = np.sort(generator.uniform(0, 4, (2, 5)), axis=1)
    return model, SeriesSet.from_arrays(values, times).batch(dtype=torch.float64)


def agrees(function, *tensors, fast_mode):
    # Steps of 1e-4, since outputs are only as smooth as the solver's tolerance of 1e-9.
    settings = {"eps": 1e-4, "atol": 1e-6, "rtol": 1e-4, "check_undefined_grad": False}
    return torch.autograd.gradcheck(function, tensors, fast_mode=fast_mode, **settings)


GROUPS = ("attention.queries", "encoder.", "bandwidths.", "log_noise", "field.")


class TestGradients:
    @pytest.mark.parametrize("group", GROUPS)
    @pytest.mark.parametrize("name", ["mvc-kernel", "mvc-gp"])
    def test_of_parameters_are_those_of_finite_differences(self, name, group):
        model, batch = tiny(name)
        chosen = {
            key: p.detach().clone().requires_grad_() for key, p in model.named_parameters() if key.startswith(group)
        }
        if not chosen:
            assert (name, group) == ("mvc-kernel", "log_noise")
            return

        def outputs(*tensors):
            return functional_call(model, dict(zip(chosen, tensors, strict=True)), (batch,))

        # Every entry of a few by itself, many along random directions.
        assert agrees(outputs, *chosen.values(), fast_mode=sum(p.numel() for p in chosen.values()) > 6)

    @pytest.mark.parametrize("name", ["mvc-kernel", "mvc-gp"])
    def test_of_the_observations_are_those_of_finite_differences(self, name):
        model, batch = tiny(name)
        values = batch.values.clone().requires_grad_()
        assert agrees(lambda x: model(replace(batch, values=x * batch.mask)), values, fast_mode=True)

    @pytest.mark.parametrize("name", MULTIPLE)
    @pytest.mark.parametrize("gradient", ["backprop", "checkpoint", "adjoint"])
    def test_reach_the_queries_through_the_solve_and_not_only_through_the_initial_state(self, name, gradient):
        model, batch = small_model(name), double_batch()
        path, _, _ = model.smooth(batch)
        z0 = model.initial(path.evaluate(path.start)).detach()
        options = asdict(replace(model.options, gradient=gradient))
        solution = integrate(ControlTerm(model.field, path), z0, path.start, path.end, views=model.views, **options)
        solution.state.square().sum().backward()
        assert (model.attention.queries.grad.abs().amax(dim=1) > 1e-6).all()

    @pytest.mark.parametrize("name", ["linear", "mvc-kernel", "mvc-gp"])
    def test_agree_between_backprop_checkpoint_and_adjoint(self, name):
        settings = {"learn_bandwidths": True} if name in MULTIPLE else {}
        model = small_model(name, **TIGHT, solver="dopri8", **settings)
        batch = double_batch(series_of(SHORT, MIDDLE))
        gradients = {}
        for how in ("backprop", "checkpoint", "adjoint"):
            outcome = model.solve(batch, options=replace(model.options, gradient=how))
            gradients[how] = torch.autograd.grad(outcome.outputs.square().sum(), list(model.parameters()))
        for (key, _), one, two, three in zip(model.named_parameters(), *gradients.values(), strict=True):
            torch.testing.assert_close(
                two, one, rtol=1e-10, atol=1e-12, msg=lambda m, key=key: f"{key}, checkpoint: {m}"
            )
            torch.testing.assert_close(three, one, rtol=1e-6, atol=1e-6, msg=lambda m, key=key: f"{key}, adjoint: {m}")


class TestAgainstTorchcde:
    """A neural CDE on one path is torchcde's, weight for weight."""

    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize(
        ("path", "fit", "control"),
        [
            ("linear", torchcde.linear_interpolation_coeffs, torchcde.LinearInterpolation),
            ("hermite", torchcde.hermite_cubic_coefficients_with_backward_differences, torchcde.CubicSpline),
            ("cubic", torchcde.natural_cubic_coeffs, torchcde.CubicSpline),
        ],
    )
    def test_outputs_are_those_of_cdeint(self, path, fit, control, missing):
        times = torch.tensor([0.0, 0.7, 1.9, 2.0, 3.1, 4.4], dtype=torch.float64)
        values = np.random.default_rng(0).normal(size=(3, 2, 6))
        if missing:
            values[0, 0, [0, 3]] = values[1, 1, [1, 2, 5]] = np.nan
        torch.manual_seed(0)
        options = SolverOptions(rtol=1e-10, atol=1e-10)
        model = NeuralCDE(path=path, channels=2, outputs=3, hidden=5, width=6, options=options).double()
        peer = control(fit(torch.tensor(values).mT.contiguous(), times), times)
        with torch.no_grad():
            states = torchcde.cdeint(
                X=peer,
                func=lambda t, z: model.field.matrix(z, Rows.all(len(z))),
                z0=model.initial(peer.evaluate(peer.interval[0])),
                t=peer.interval,
                adjoint=False,
                method="dopri5",
                rtol=1e-9,
                atol=1e-9,
                options={"jump_t": times[1:-1]},
            )
            expected = model.readout(states[:, -1])
            outputs = model(SeriesSet.from_arrays(values, times).batch(dtype=torch.float64))
        torch.testing.assert_close(outputs, expected, rtol=1e-6, atol=1e-6)


def test_silvermans_rule_sees_what_the_window_shows():
    times = np.arange(0.0, 101.0)
    series = SeriesSet.from_arrays([np.sin(times)[None]], [times]).with_window(0.0, 10.0)
    assert silverman(series) == silverman(series.cropped())
