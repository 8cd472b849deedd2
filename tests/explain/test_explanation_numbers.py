"""An explanation holds the numbers of `model.solve`, in the user's units and the user's time."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from explained_series import CHANNELS, IDS, SERIES, WITHOUT_PATH, small_predictor

from smoothcde import explain
from smoothcde.estimators import CDEClassifier
from smoothcde.models import MODELS
from smoothcde.series import SeriesSet
from smoothcde.solve import SolveError


def test_observations_are_the_users_own():
    for place, entry in enumerate(explain(small_predictor(), SERIES).series):
        begin, end = SERIES.offsets[place : place + 2]
        assert entry.id == IDS[place]
        np.testing.assert_allclose(entry.portrait.times + entry.portrait.origin, SERIES.times[begin:end])
        np.testing.assert_allclose(entry.portrait.values, SERIES.values[begin:end], rtol=1e-5)


@pytest.mark.parametrize("name", ["mvc-gp", "mv-kernel", "cubic", "log-ncde", "neural-rde"])
def test_paths_are_those_of_the_model_in_the_users_units(name):
    predictor = small_predictor(name)
    _, outcome = predictor.solve(SERIES)
    entry = explain(predictor, SERIES).series[0]
    assert len(entry.portrait.views) == outcome.path.rows // len(SERIES)
    for moment in (0, 100, -1):
        time = entry.portrait.moments[moment]
        with torch.no_grad():
            standardised = outcome.path.evaluate(float(time))[:, :3].double().numpy()
        for index, view in enumerate(entry.portrait.views):
            expected = standardised[index * len(SERIES)] * predictor.scaler.scale + predictor.scaler.mean
            np.testing.assert_allclose(view.path[moment], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["mvc-gp", "linear"])
def test_steps_costs_and_attention_are_those_of_the_solve(name):
    predictor = small_predictor(name)
    _, outcome = predictor.solve(SERIES)
    stats = outcome.solution.stats
    for place, entry in enumerate(explain(predictor, SERIES).series):
        for index, view in enumerate(entry.portrait.views):
            row = index * len(SERIES) + place
            counts = (stats.nfe[row], stats.accepted[row], stats.rejected[row])
            assert (view.nfe, view.accepted, view.rejected) == counts
            np.testing.assert_array_equal(view.steps, outcome.solution.steps[row])
            if outcome.attention is None:
                assert view.attention is None
            else:
                stamps = int(SERIES.lengths[place])
                np.testing.assert_allclose(view.attention, outcome.attention[place, index, :stamps])
        assert entry.portrait.nfe == sum(view.nfe for view in entry.portrait.views)
    assert stats.nfe[0] > 0


def test_probabilities_are_the_predictors_calibrated_ones():
    predictor = small_predictor(temperature=3.0)
    told = explain(predictor, SERIES)
    np.testing.assert_allclose([entry.answer.numbers for entry in told.series], predictor.probabilities(SERIES))
    assert [entry.answer.text.split(" (")[0] for entry in told.series] == list(predictor.predict(SERIES))


def test_regression_answers_are_in_the_targets_units():
    predictor = small_predictor(task="regression")
    told = explain(predictor, SERIES)
    np.testing.assert_allclose([entry.answer.numbers for entry in told.series], predictor.predict(SERIES))
    days, dose = predictor.predict(SERIES)[0]
    assert told.series[0].answer.text == f"days = {days:.5g}, dose = {dose:.5g}"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_explained(name):
    told = explain(small_predictor(name), SERIES)
    assert told.model == name
    assert told.has_path == (name not in WITHOUT_PATH)
    assert len(told.html()) > 1000


def test_an_ode_rnn_tells_its_cost_without_having_a_path():
    predictor = small_predictor("ode-rnn")
    told = explain(predictor, SERIES)
    assert [entry.portrait.nfe for entry in told.series] == predictor.solve(SERIES)[1].nfe.tolist()
    assert told.series[0].portrait.nfe > 0


def test_series_are_picked_by_id_in_the_order_asked_for_and_text_will_do():
    told = explain(small_predictor(), SERIES, ids=["17", "ward 1"], truth=["a", "b", "c", "d"])
    assert [entry.id for entry in told.series] == [17, "ward 1"]
    assert [entry.answer.truth for entry in told.series] == ["b", "a"]
    assert [entry.id for entry in explain(small_predictor(), SERIES, ids="brief").series] == ["brief"]


def test_many_series_are_solved_in_several_batches_and_told_in_order():
    rng = np.random.default_rng(0)
    series = SeriesSet.from_arrays(rng.normal(size=(130, 2, 6)))
    predictor = small_predictor(series=series)
    told = explain(predictor, series)
    numbers = [entry.answer.numbers for entry in told.series]
    np.testing.assert_allclose(numbers, predictor.probabilities(series), rtol=1e-4)


def test_channels_come_most_observed_first():
    assert explain(small_predictor(), SERIES).channel_order == [0, 1, 2]
    swapped = SeriesSet.from_arrays([np.array([[np.nan, 1.0, np.nan], [1.0, 2.0, 3.0], [np.nan, 1.0, 2.0]])])
    assert explain(small_predictor(series=swapped), swapped).channel_order == [1, 2, 0]


def test_channels_in_another_order_are_shown_under_their_own_names():
    predictor = small_predictor()
    turned = SeriesSet.from_arrays(
        [np.asarray(v)[::-1] for v in VALUES_AS_ARRAYS],
        TIMES_OF_SERIES,
        channel_names=CHANNELS[::-1],
        static=SERIES.static,
    )
    straight, other = explain(predictor, SERIES), explain(predictor, turned)
    assert other.channel_names == CHANNELS
    np.testing.assert_allclose(other.series[0].portrait.values, straight.series[0].portrait.values)
    np.testing.assert_allclose(other.series[0].answer.numbers, straight.series[0].answer.numbers)


VALUES_AS_ARRAYS = [SERIES.values[a:b].T for a, b in zip(SERIES.offsets[:-1], SERIES.offsets[1:], strict=True)]
TIMES_OF_SERIES = [SERIES.times[a:b] for a, b in zip(SERIES.offsets[:-1], SERIES.offsets[1:], strict=True)]


def test_only_what_the_window_shows_is_shown():
    entry = explain(small_predictor(), SERIES[[0]].with_window(end=102.5)).series[0]
    assert entry.portrait.times.max() + entry.portrait.origin == 102.0
    assert entry.portrait.origin + entry.portrait.span == 102.5


def test_a_fitted_classifier_is_explained_from_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2, 8)), np.array(["a", "b"] * 6)
    classifier = CDEClassifier("gp", hidden=4, epochs=1, validation_fraction=0.25, random_state=0).fit(X, y)
    told = explain(classifier, X, ids=[3], truth=y)
    np.testing.assert_allclose(told.series[0].answer.numbers, classifier.predict_proba(X)[3], rtol=1e-4)
    assert told.series[0].answer.names == ("a", "b")
    assert told.series[0].answer.truth == "b"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ["ward 2", 18]}, "there is no series ward 2, 18; the ids begin with ward 1, 17, empty, brief"),
        ({"ids": ["17", 17]}, "series 17 is asked for more than once; name each series once"),
        ({"ids": []}, "there is no series to explain; give at least one"),
        ({"truth": ["a"]}, "there are 1 true values for 4 series; give one per series"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        explain(small_predictor(), SERIES, **arguments)


def test_a_model_that_has_not_learnt_is_told_to():
    with pytest.raises(ValueError, match="this CDEClassifier has not learnt anything yet; call `fit` before `explain`"):
        explain(CDEClassifier(), SERIES)


def test_other_things_than_models_are_refused():
    with pytest.raises(
        TypeError, match="explain takes a fitted CDEClassifier or CDERegressor, or a Predictor, not a str"
    ):
        explain("mvc-gp", SERIES)


def test_gaps_are_long_against_the_window_and_the_channels_own_rhythm():
    portrait = explain(small_predictor(), SERIES).series[0].portrait
    assert portrait.gaps(0) == [(3.0, 10.0)]
    assert portrait.gaps(2) == [(0.0, 10.0)]
    steady = SeriesSet.from_arrays(np.ones((1, 3, 4)))
    assert explain(small_predictor(series=steady), steady).series[0].portrait.gaps(0) == []


def test_a_solve_that_does_not_finish_names_the_series():
    predictor = small_predictor()
    with torch.no_grad():
        for parameter in predictor.model.field.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(SolveError, match=r"no answer to explain for series ward 1, 17(?s:.*)NaN or infinite"):
        explain(predictor, SERIES)


def test_what_is_not_known_to_be_true_is_not_shown():
    told = explain(small_predictor(), SERIES, truth=[None, np.nan, "stays", 2.5])
    assert [entry.answer.truth for entry in told.series] == [None, None, "stays", "2.5"]


def test_static_features_are_those_that_the_model_sees():
    more = replace(SERIES, static=np.hstack([np.ones((4, 1)), SERIES.static]), static_names=("site", "static 0"))
    told = explain(small_predictor(), more)
    assert told.static_names == ("static 0",)
    assert [entry.static.tolist() for entry in told.series] == SERIES.static.tolist()
    without = small_predictor(series=replace(SERIES, static=None, static_names=()))
    assert explain(without, more).static_names == ()


def test_truths_of_a_table_are_taken_by_place():
    truth = pd.Series(["a", "b", "c", "a"], index=[3, 2, 1, 0])
    told = explain(small_predictor(), SERIES, truth=truth)
    assert [entry.answer.truth for entry in told.series] == ["a", "b", "c", "a"]
