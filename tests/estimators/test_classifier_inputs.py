"""What a `CDEClassifier` may be given: series, labels, static features, names of channels."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import KFold, cross_val_score
from toy_series import irregular, quick_classifier, slopes

from smoothcde import SeriesSet
from smoothcde.estimators import CDEClassifier

LABELS = np.array(["down", "flat", "up"])


def test_labels_sorted_otherwise_than_the_series_are_refused():
    """Tables by series are sorted by id, series come as they appear: nothing else would show the mistake."""
    series, slope = irregular(12)
    named, _ = irregular(12, ids=[f"s{11 - i}" for i in range(12)])
    labels = pd.Series(LABELS[slope + 1], index=pd.Index(list(named.ids), name="patient"))
    with pytest.raises(ValueError, match=r"in another order than the series; give y.loc\[list\(series.ids\)\]"):
        quick_classifier("gru", epochs=1).fit(named, labels.sort_index())
    quick_classifier("gru", epochs=1).fit(named, labels)
    shuffled = pd.Series(LABELS[slope + 1], index=np.arange(12)[::-1])  # what a split of the data left: by place
    quick_classifier("gru", epochs=1).fit(series, shuffled)
    cross_val_score(quick_classifier("gru", epochs=1), series, shuffled, cv=KFold(3), error_score="raise")


def test_labels_of_both_text_and_numbers_are_refused():
    series, _ = irregular(12)
    with pytest.raises(ValueError, match="y holds both text and numbers; write all labels one way"):
        quick_classifier("gru", epochs=1).fit(series, np.array(["a", 1] * 6, dtype=object))


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_series_without_a_label_are_told(nothing):
    series, _ = irregular(12)
    for y in (pd.Series(["a", nothing, "b"] * 4), np.array(["a", nothing, "b"] * 4, dtype=object)):
        with pytest.raises(ValueError, match="y holds no label for 4 of the series; leave these series out"):
            quick_classifier("gru", epochs=1).fit(series, y)


def test_arrays_lists_tensors_and_sets_are_the_same_series():
    values, slope = slopes(12)
    forms = [values, list(values), torch.tensor(values), SeriesSet.from_arrays(values)]
    outputs = [quick_classifier().fit(form, slope).predict_proba(form) for form in forms]
    for other in outputs[1:]:
        np.testing.assert_array_equal(outputs[0], other)


def test_a_table_is_one_channel():
    values, slope = slopes(12, channels=1)
    expected = quick_classifier().fit(values, slope).predict_proba(values)
    table = values[:, 0]
    for form in (table, table.tolist(), pd.DataFrame(table)):
        classifier = quick_classifier().fit(form, slope)
        np.testing.assert_array_equal(classifier.predict_proba(form), expected)
        assert classifier.n_features_in_ == 8


def test_rows_of_unequal_length_are_series_of_one_channel():
    values, slope = slopes(12, channels=1)
    ragged = [row[0, : 5 + i % 3] for i, row in enumerate(values)]
    classifier = quick_classifier().fit(ragged, slope)
    expected = quick_classifier().fit(SeriesSet.from_arrays(ragged), slope).predict_proba(SeriesSet.from_arrays(ragged))
    np.testing.assert_array_equal(classifier.predict_proba(ragged), expected)
    assert classifier.n_features_in_ == 1


def test_times_given_beside_an_array_count():
    values, slope = slopes(12)
    times = np.linspace(0, 1, 8) ** 2
    beside = quick_classifier("mv-gp", epochs=1, bandwidths=(0.3,)).fit(values, slope, times=times)
    inside = quick_classifier("mv-gp", epochs=1, bandwidths=(0.3,)).fit(SeriesSet.from_arrays(values, times), slope)
    np.testing.assert_array_equal(
        beside.predict_proba(values, times=times), inside.predict_proba(SeriesSet.from_arrays(values, times))
    )
    assert not np.allclose(beside.predict_proba(values, times=times), beside.predict_proba(values))
    with pytest.raises(ValueError, match="brings its own times"):
        beside.predict(SeriesSet.from_arrays(values), times=times)


def test_static_features_join_and_need_no_common_unit():
    values, slope = slopes(60)
    static = np.stack([slope * 1e6 + 3e6, np.ones(60)], axis=1)  # tells everything, in an awkward unit
    noise = np.random.default_rng(0).normal(size=values.shape)
    classifier = quick_classifier(epochs=40, learning_rate=0.1).fit(noise, slope, static=static)
    assert classifier.score(noise, slope, static=static) == 1.0
    inside = SeriesSet.from_arrays(noise, static=static)
    np.testing.assert_array_equal(classifier.predict(inside), classifier.predict(noise, static=static))
    with pytest.raises(ValueError, match="needs the static features static 0, static 1"):
        classifier.predict(noise)
    with pytest.raises(ValueError, match="trained on 2 static features; found 1"):
        classifier.predict(noise, static=static[:, :1])


@pytest.mark.parametrize("labels", [["a", "b"], [3, 7], [True, False], [1.0, 2.0], np.array(["x", "y"], dtype=object)])
def test_labels_keep_their_type(labels):
    labels = np.asarray(labels)
    values, slope = slopes(12)
    predicted = quick_classifier(epochs=1).fit(values, labels[slope % 2]).predict(values)
    assert predicted.dtype == labels.dtype
    assert set(predicted.tolist()) <= set(labels.tolist())


def test_wrong_data_are_told():
    values, slope = slopes(12)
    with pytest.raises(ValueError, match="12 series and 11 targets"):
        quick_classifier().fit(values, slope[:-1])
    with pytest.raises(ValueError, match=r"no label for 1 of the series; leave these series out"):
        quick_classifier().fit(values, [None, *["a", "b"] * 5, "a"])
    with pytest.raises(ValueError, match="bandwidths is 'silverman'; give fractions of the longest series"):
        quick_classifier().set_params(bandwidths="silverman").fit(values, slope)
    with pytest.raises(ValueError, match="one class only"):
        quick_classifier().fit(values, np.zeros(12, dtype=int))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        quick_classifier().fit(values, slope, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        quick_classifier().fit(values, slope, sample_weight=-np.ones(12))
    with pytest.raises(ValueError, match="holds the label 3, which no training series has"):
        quick_classifier().fit(values, slope, validation=(values, slope + 4))
    with pytest.raises(ValueError, match="trained on 2 channels; the series have 1"):
        quick_classifier().fit(values, slope).predict(values[:, :1])


def test_channels_are_found_by_name():
    values, slope = slopes(12)
    values[:, 1] *= -3
    classifier = quick_classifier().fit(SeriesSet.from_arrays(values, channel_names=["a", "b"]), slope)
    expected = classifier.predict_proba(SeriesSet.from_arrays(values, channel_names=["a", "b"]))
    swapped = SeriesSet.from_arrays(values[:, [1, 0, 0]], channel_names=["b", "a", "more"])
    np.testing.assert_array_equal(classifier.predict_proba(swapped), expected)
    with pytest.raises(ValueError, match="needs the channels b, which the series lack; they have a, c"):
        classifier.predict(SeriesSet.from_arrays(values, channel_names=["a", "c"]))


def test_unnamed_channels_are_counted():
    values, slope = slopes()
    classifier = quick_classifier().fit(values, slope)
    for wrong in (np.swapaxes(values, 1, 2), np.concatenate([values, values], axis=1)):
        with pytest.raises(ValueError, match=rf"trained on 2 channels; the series have {wrong.shape[1]}"):
            classifier.predict(wrong)


def test_a_table_of_static_features_gives_them_their_names():
    values, slope = slopes()
    table = pd.DataFrame({"age": slope.astype(float), "weight": np.linspace(60, 90, len(slope))})
    classifier = quick_classifier().fit(values, slope, static=table)
    assert classifier.predictor_.static_names == ("age", "weight")
    expected = classifier.predict_proba(values, static=table)
    np.testing.assert_array_equal(classifier.predict_proba(values, static=table[["weight", "age"]]), expected)
    np.testing.assert_array_equal(classifier.predict_proba(values, static=table.to_numpy()), expected)


def test_validation_arrays_have_no_times_of_their_own():
    values, slope = slopes()
    times = np.linspace(0, 48, values.shape[2])
    with pytest.raises(ValueError, match="give the validation series as a SeriesSet"):
        quick_classifier().fit(values, slope, times=times, validation=(values, slope))
    held = SeriesSet.from_arrays(values, times)
    quick_classifier().fit(values, slope, times=times, validation=(held, slope))


def test_channel_names_of_any_kind_are_saved_as_text(tmp_path):
    values, slope = slopes()
    classifier = quick_classifier().fit(SeriesSet.from_arrays(values, channel_names=np.arange(2)), slope)
    classifier.save(tmp_path / "m")
    assert CDEClassifier.load(tmp_path / "m").predictor_.channel_names == ("0", "1")
