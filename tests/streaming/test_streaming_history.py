"""What a stream keeps of its series, what it lets go, and what it refuses."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from streamed import Recorded, small_predictor

from smoothcde import CDEClassifier, ModelFileError, Predictor, SeriesError, StreamingPredictor

NAN = np.nan


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return small_predictor("gru")


def held(stream: StreamingPredictor, row: int = 0, at=None) -> tuple[list, list]:
    seen = stream.history(at)[row]
    return seen.times.tolist(), seen.values.tolist()


class TestStamps:
    def test_roll_out_of_the_window_and_its_edge_is_inside(self, predictor):
        stream = StreamingPredictor(predictor, 2.0)
        for time in range(6):
            stream.update(time, [time, -time])
        assert held(stream) == ([3, 4, 5], [[3, -3], [4, -4], [5, -5]])
        assert held(stream, at=6.5) == ([5], [[5, -5]])
        assert held(stream, at=99.0) == ([], [])

    def test_that_come_late_are_put_in_their_place_and_too_late_are_counted(self, predictor):
        stream = StreamingPredictor(predictor, 5.0, 2)
        stream.update([10.0, 20.0], [[1, 1], [2, 2]])
        stream.update([7.0, 14.0], [[3, 3], [4, 4]])
        stream.update([8.0, 9.0, 1.0], [[5, 5], [6, 6], [0, 0]], [0, 0, 0])
        assert held(stream, 0)[0] == [7, 8, 9, 10]
        assert held(stream, 1)[0] == [20]
        assert stream.dropped.tolist() == [1, 1]

    def test_of_one_call_may_be_many_of_one_series(self, predictor):
        stream = StreamingPredictor(predictor, 100.0, ["a", "b"])
        stream.update([3, 1, 2, 1], [[3, 3], [1, 1], [2, 2], [9, 9]], ["a", "a", "a", "b"])
        assert held(stream, 0)[0] == [1, 2, 3]
        assert held(stream, 1) == ([1], [[9, 9]])

    @pytest.mark.parametrize(
        ("policy", "expected"), [("mean", [3.0, 4.0]), ("last", [6.0, 4.0]), ("first", [1.0, 4.0])]
    )
    def test_that_are_equal_follow_the_rule(self, predictor, policy, expected):
        stream = StreamingPredictor(predictor, 5.0, duplicates=policy)
        stream.update([1.0, 1.0], [[1, NAN], [2, NAN]], [0, 0])
        stream.update(2.0, [0, 0])
        stream.update(1.0, [6, 4])
        assert held(stream) == ([1, 2], [expected, [0, 0]])

    def test_may_be_named_by_channel(self, predictor):
        stream = StreamingPredictor(predictor, 5.0)
        stream.update(1.0, {"channel 1": 4.0})
        assert np.isnan(held(stream)[1][0][0])
        assert held(stream)[1][0][1] == 4.0

    def test_take_no_more_room_than_two_windows_however_many_come(self, predictor):
        stream = StreamingPredictor(predictor, 9.5, 3)
        for time in range(500):
            stream.update(float(time), np.full((3, 2), time))
        assert stream._history.times.shape[1] <= 2 * 16
        assert held(stream, 2)[0] == list(range(490, 500))


class TestPredictions:
    def test_speak_the_model_s_labels_and_calibration(self, predictor):
        recorded = Recorded(predictor, 5.0, 2)
        recorded.update([1.0, 2.0, 3.0], [[1, 2], [NAN, 0], [3, NAN]], [0, 1, 0])
        offline = recorded.offline()
        assert recorded.stream.predict().tolist() == predictor.predict(offline).tolist()
        np.testing.assert_array_equal(recorded.stream.predict_proba(), predictor.probabilities(offline))

    def test_of_some_series_are_those_of_all(self):
        stream = StreamingPredictor(small_predictor(), 5.0, ["a", "b", "c"], method="incremental")
        stream.update(1.0, [[1, 2], [3, 4], [5, 6]])
        stream.update(2.0, [[1, 0], [3, NAN], [0, 6]])
        np.testing.assert_allclose(stream.outputs(series=["c", "a"]), stream.outputs()[[2, 0]], atol=1e-9)
        assert stream.predict(series="b").shape == (1,)

    @pytest.mark.parametrize("panels", [False, True])
    def test_of_windows_without_any_value_are_the_prior_s(self, panels):
        predictor = small_predictor()
        recorded = Recorded(predictor, 5.0, 2, panels, method="incremental")
        recorded.update([1.0, 2.0], [[NAN, NAN], [1.0, 2.0]], [0, 1])
        assert recorded.difference() < 1e-9
        assert recorded.difference(50.0) < 1e-9
        empty = StreamingPredictor(predictor, 5.0, method="incremental")
        np.testing.assert_allclose(empty.outputs(at=50.0), recorded.stream.outputs(50.0)[:1], atol=1e-9)


class TestSaved:
    @pytest.mark.parametrize("panels", [False, True])
    def test_streams_go_on_as_if_nothing_had_been(self, tmp_path, panels):
        generator = np.random.default_rng(0)
        recorded = Recorded(small_predictor(), 3.0, 2, panels, method="incremental", duplicates="mean")
        for k in range(30):
            recorded.update([k / 4, k / 4], generator.normal(size=(2, 2)), [0, 1])
            if k % 7 == 0:
                recorded.stream.outputs()
        recorded.stream.save(tmp_path / "stream")
        restored = StreamingPredictor.load(tmp_path / "stream")
        restored._incremental.use_panels = panels
        np.testing.assert_array_equal(restored.outputs(), recorded.stream.outputs())
        for stream in (restored, recorded.stream):
            stream.update(7.25, [[1, 2], [3, 4]])
            stream.update(6.1, [1, 2], series=1)
        np.testing.assert_array_equal(restored.outputs(), recorded.stream.outputs())
        assert restored.duplicates == "mean"

    def test_models_are_no_streams_and_streams_no_models(self, tmp_path, predictor):
        predictor.save(tmp_path / "model")
        with pytest.raises(ModelFileError, match="holds a model but no stream"):
            StreamingPredictor.load(tmp_path / "model")
        StreamingPredictor(predictor, 1.0).save(tmp_path / "stream")
        with pytest.raises(ModelFileError):
            Predictor.load(tmp_path / "stream")

    def test_names_must_be_text_or_integers(self, tmp_path, predictor):
        with pytest.raises(ModelFileError, match="name series by text or integers"):
            StreamingPredictor(predictor, 1.0, [(1, 2)]).save(tmp_path / "stream")


class TestRefusals:
    @pytest.mark.parametrize(
        ("time", "values", "series", "message"),
        [
            (1.0, [1.0], None, "needs the 2 channels channel 0, channel 1"),
            (1.0, {"pulse": 3.0}, None, "no channel pulse; its channels are channel 0, channel 1"),
            (1.0, [1.0, 2.0], "bed 9", "unknown series 'bed 9'; this stream follows 1: 0"),
            (NAN, [1.0, 2.0], None, "series 0: a time stamp is NaN"),
            (1.0, [np.inf, 2.0], None, "series 0, channel 0: infinite values"),
            ([1.0, 2.0], [[1.0, 2.0]] * 3, None, "2 times, 3 rows of values and 1 series"),
            ("noon", [1.0, 2.0], None, "time: not numbers"),
            ([5.0, 5.0], [[1.0, 2.0]] * 2, None, "series 0: duplicate time stamp 5"),
            (0.0, [1.0, 2.0], None, 'duplicate time stamp 0; merge them.*duplicates="mean"'),
        ],
    )
    def test_of_an_update_change_nothing(self, predictor, time, values, series, message):
        stream = StreamingPredictor(predictor, 3.0)
        stream.update(0.0, [1.0, 1.0])
        with pytest.raises(ValueError, match=message):
            stream.update(time, values, series)
        assert held(stream) == ([0], [[1, 1]])

    def test_of_late_stamps_where_asked_for(self, predictor):
        stream = StreamingPredictor(predictor, 3.0, 2, late="error")
        stream.update(5.0, [[1, 1], [1, 1]])
        with pytest.raises(SeriesError, match=r"series 1: time goes backwards \(5 then 4\)"):
            stream.update([6.0, 4.0], [[1, 1], [1, 1]])
        with pytest.raises(SeriesError, match=r"series 0: time goes backwards \(8 then 7\)"):
            stream.update([8.0, 7.0], [[1, 1], [1, 1]], [0, 0])
        stream.update([6.0, 7.0], [[1, 1], [1, 1]], [0, 0])
        assert held(stream)[0] == [5, 6, 7]

    def test_of_moments(self, predictor):
        stream = StreamingPredictor(predictor, 3.0, ["a", "b"])
        stream.update(5.0, [1, 1], "a")
        with pytest.raises(SeriesError, match="series b: no stamp yet; update first"):
            stream.predict()
        with pytest.raises(SeriesError, match="series a: at is 4, before its newest stamp 5"):
            stream.predict(at=4.0)
        with pytest.raises(ValueError, match="give a number or a date, or one per series"):
            stream.predict(at=[6.0, 7.0, 8.0])
        assert stream.predict(at=5.0).shape == (2,)

    def test_of_more_than_a_window_may_hold(self, predictor):
        stream = StreamingPredictor(predictor, 3.0, max_observations=4)
        stream.update([0, 1, 2, 3], np.ones((4, 2)), 0)
        with pytest.raises(ValueError, match="5 stamps in its window of 3, more than max_observations=4"):
            stream.update(2.5, [1, 1])
        stream.update(4.0, [1, 1])
        assert held(stream)[0] == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"window": 0.0}, "window is 0.0; give the length"),
            ({"series": []}, "series are not unique, or none"),
            ({"duplicates": "sum"}, "duplicates is 'sum'; use any of"),
            ({"late": "drop"}, "late is 'drop'; use any of: 'insert', 'error'"),
            ({"method": "incremental"}, "'gru' has no incremental form"),
            ({"static": [[1.0]]}, "trained without static features"),
        ],
    )
    def test_of_settings(self, predictor, settings, message):
        with pytest.raises(ValueError, match=message):
            StreamingPredictor(predictor, **({"window": 1.0} | settings))

    def test_of_models_that_are_none(self, predictor):
        with pytest.raises(TypeError, match="give a Predictor"):
            StreamingPredictor("model", 1.0)
        with pytest.raises(ValueError, match="not fitted yet"):
            StreamingPredictor(CDEClassifier(), 1.0)


def test_fitted_estimators_with_static_features_stream_as_well():
    generator = np.random.default_rng(0)
    series = generator.normal(size=(12, 1, 5))
    static = generator.normal(size=(12, 2))
    classifier = CDEClassifier("gru", hidden=4, epochs=1, random_state=0).fit(series, np.arange(12) % 2, static=static)
    with pytest.raises(ValueError, match="needs the static features"):
        StreamingPredictor(classifier, 4.0)
    stream = StreamingPredictor(classifier, 4.0, 3, static=static[:3])
    for k in range(5):
        stream.update(float(k), series[:3, :, k])
    np.testing.assert_allclose(stream.predict_proba(), classifier.predict_proba(series[:3], static=static[:3]))


def test_auto_fits_short_windows_anew_and_remembers_long_ones(monkeypatch):
    stream = StreamingPredictor(small_predictor(), 5.0)
    asked = []
    remembered = stream._incremental.outputs
    monkeypatch.setattr(stream._incremental, "outputs", lambda *given: asked.append(1) or remembered(*given))
    stream.update(np.linspace(0, 1, 999), np.zeros((999, 2)), 0)
    before = stream.outputs()
    assert not asked
    stream.update(1.001, [0.0, 0.0])
    np.testing.assert_allclose(stream.outputs(), before, atol=1e-2)
    assert asked


def test_an_empty_window_in_between_changes_no_answer():
    recorded = Recorded(small_predictor("mvc-gp"), 12.0, method="incremental")
    generator = np.random.default_rng(0)
    for time in range(13):
        recorded.update([float(time)], generator.normal(size=(1, 2)), [0])
    for at in (12.0, 20.0, 500.0, 12.0):
        offline = recorded.predictor.probabilities(recorded.offline(at))
        np.testing.assert_allclose(recorded.stream.predict_proba(at), offline, atol=1e-9)


@pytest.mark.parametrize("kind", [pd.Timestamp, np.datetime64, datetime.fromisoformat])
@pytest.mark.parametrize("hour", [3600.0, pd.Timedelta("1h")])
def test_dates_are_seconds_as_in_tables(predictor, kind, hour):
    stream = StreamingPredictor(predictor, hour)
    for moment in ("2024-01-01T00:00:00", "2024-01-01T00:30:00"):
        stream.update(kind(moment), [1.0, 2.0])
    assert held(stream)[0] == [1704067200.0, 1704069000.0]
    assert held(stream, at=kind("2024-01-01T01:15:00"))[0] == [1704069000.0]
    with pytest.raises(ValueError, match="values: not numbers"):
        stream.update(1704070000.0, np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"))


def test_frozen_steps_are_followed_as_they_are_offline():
    predictor = small_predictor("mvc-gp")
    recorded = Recorded(predictor, 10.0)
    generator = np.random.default_rng(0)
    for time in range(11):
        recorded.update([float(time)], generator.normal(size=(1, 2)), [0])
    frozen = predictor.frozen(recorded.offline())
    with pytest.raises(ValueError, match="on frozen steps has no incremental form"):
        StreamingPredictor(frozen, 10.0, method="incremental")
    stream = StreamingPredictor(frozen, 10.0)
    for time, value in recorded.told[0]:
        stream.update(time, value)
    np.testing.assert_allclose(stream.outputs(), frozen.outputs(recorded.offline()), atol=1e-12)


def test_names_and_counts_of_numpy_are_plain_ones(predictor, tmp_path):
    stream = StreamingPredictor(predictor, 5.0, series=np.array([7, 9]))
    stream.save(tmp_path / "stream")
    assert StreamingPredictor.load(tmp_path / "stream").series == (7, 9)
    assert StreamingPredictor(predictor, 5.0, series=np.int64(3)).series == (0, 1, 2)


def test_a_single_name_is_one_series(predictor):
    assert StreamingPredictor(predictor, 1.0, "bed 1").series == ("bed 1",)
