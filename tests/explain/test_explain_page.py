"""The page is one well-formed, self-contained HTML file whose numbers are those of the explanation."""

import base64
import hashlib
import re

import numpy as np
import pytest
import torch
from explained_series import CHANNELS, SERIES, WITHOUT_PATH, Document, small_predictor

from smoothcde import Explanation, explain
from smoothcde.explain import page as page_module
from smoothcde.explain.page import script_json
from smoothcde.series import SeriesSet

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"quoted\" & 'apostrophe'",
    "$dollar ${title} \\u003c",
    "\u2028 line separator \x00",
    "<!-- comment <script>",
)


def told(name="mvc-gp", series=SERIES, **given) -> Explanation:
    return explain(small_predictor(name, series), series, **given)


def test_the_page_is_well_formed_and_says_what_it_is():
    document = Document(told(title="Two <wards>").html())
    assert document.all("html")[0]["lang"] == "en"
    assert [e["text"] for e in document.all("title")] == ["Two <wards>"]
    assert [e["text"] for e in document.all("h1")] == ["Two <wards>"]
    assert document.all("meta", charset="utf-8")
    assert "width=device-width" in document.all("meta", name="viewport")[0]["content"]
    ids = [e["id"] for e in document.elements if "id" in e]
    assert len(ids) == len(set(ids))


def test_every_control_has_a_label():
    document = Document(told().html())
    labelled = {e["for"] for e in document.all("label") if "for" in e}
    for control in document.all("select") + document.all("input"):
        assert control["id"] in labelled or control.get("aria-label"), control
    for section in document.all("section"):
        heading = section.get("aria-labelledby")
        assert section.get("aria-label") or document.all("h2", id=heading)
    assert document.all("div", id="charts")[0]["aria-label"]


def test_nothing_is_loaded_from_elsewhere():
    html = told().html()
    assert not re.search(r"\b(src|href)\s*=", html)
    assert "@import" not in html
    assert "url(" not in html
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_only_the_pages_own_script_and_style_may_run():
    document = Document(told().html())
    (policy,) = [e["content"] for e in document.all("meta") if e.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    (script,) = [e for e in document.all("script") if "type" not in e]
    for element in (script, *document.all("style")):
        digest = base64.b64encode(hashlib.sha256(element["text"].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_numbers_are_those_of_the_explanation():
    explanation = told()
    data = Document(explanation.html()).data()
    assert data["channels"] == list(CHANNELS)
    assert [s["id"] for s in data["series"]] == ["ward 1", "17", "empty", "brief"]
    for shown, entry in zip(data["series"], explanation.series, strict=True):
        portrait = entry.portrait
        assert (shown["origin"], shown["span"], shown["nfe"]) == (portrait.origin, portrait.span, portrait.nfe)
        np.testing.assert_allclose(shown["answer"]["numbers"], entry.answer.numbers, rtol=1e-5)
        assert shown["static"] == [["static 0", entry.static[0]]]
        for channel, drawn in enumerate(shown["channels"]):
            times, values = portrait.channel(channel)
            np.testing.assert_allclose(drawn["t"], times, atol=1e-4)
            np.testing.assert_allclose(drawn["x"], values, rtol=1e-6)
            height = drawn["high"] - drawn["low"]
            for view, (t, x) in zip(portrait.views, drawn["paths"], strict=True):
                if height > 0:
                    line = np.interp(portrait.moments, t, x)
                    np.testing.assert_allclose(line, view.path[:, channel], atol=1.2e-3 * height)
        for drawn, view in zip(shown["views"], portrait.views, strict=True):
            assert (drawn["nfe"], drawn["accepted"], drawn["rejected"]) == (view.nfe, view.accepted, view.rejected)
            np.testing.assert_allclose(drawn["steps"], view.steps, atol=1e-4 * max(portrait.span, 1.0))
        for view, weights in zip(portrait.views, shown["attention"]["weights"], strict=True):
            np.testing.assert_allclose(weights, view.attention[portrait.observed], rtol=1e-4)


def test_all_answers_stand_in_a_plain_table():
    explanation = told(truth=["goes home", "stays", "stays", "<unknown>"])
    document = Document(explanation.html())
    cells = [e["text"] for e in document.elements if e["tag"] in ("th", "td") and "tbody" in e["inside"]]
    rows = [cells[i : i + 5] for i in range(0, len(cells), 5)]
    assert [row[0] for row in rows] == ["ward 1", "17", "empty", "brief"]
    assert [row[1] for row in rows] == [entry.answer.text for entry in explanation.series]
    assert [row[2] for row in rows] == ["goes home", "stays", "stays", "<unknown>"]
    assert [row[3:] for row in rows] == [
        [str(entry.portrait.counts.sum()), str(entry.portrait.nfe)] for entry in explanation.series
    ]


@pytest.mark.parametrize("name", WITHOUT_PATH)
def test_a_model_without_a_path_says_so(name):
    document = Document(told(name).html())
    (lead,) = document.all("p", class_="lead")
    assert lead["text"].startswith(f"{name} has no path to draw")
    shown = document.data()["series"][0]
    assert shown["views"] == []
    assert shown["attention"] is None
    assert len(shown["channels"][0]["t"]) == 4
    assert len(shown["answer"]["numbers"]) == 2


def test_hostile_names_stay_text():
    series = SeriesSet.from_arrays(
        np.random.default_rng(0).normal(size=(6, 6, 5)), ids=HOSTILE, channel_names=HOSTILE, static=np.ones((6, 1))
    )
    series = SeriesSet(**{**series.__dict__, "static_names": (HOSTILE[0],)})
    predictor = small_predictor(series=series, labels=np.array(HOSTILE[:2]))
    page = explain(predictor, series, truth=HOSTILE, title=HOSTILE[0]).html()
    innocent = Document(told().html())
    document = Document(page)
    tags = {e["tag"] for e in document.elements}
    assert tags <= {e["tag"] for e in innocent.elements}
    assert len(document.all("script")) == 2
    assert page.count("<script") == 2
    assert document.all("title")[0]["text"] == HOSTILE[0]
    data = document.data()
    assert [s["id"] for s in data["series"]] == list(HOSTILE)
    assert data["channels"] == list(HOSTILE)
    assert data["series"][0]["answer"]["names"] == list(HOSTILE[:2])
    assert data["series"][0]["static"][0][0] == HOSTILE[0]


def test_json_never_holds_what_browsers_cannot_read():
    with pytest.raises(ValueError):
        script_json([float("nan")])
    assert script_json("</script>&") == '"\\u003c/script\\u003e\\u0026"'


def test_outputs_that_are_not_finite_are_no_answer():
    predictor = small_predictor("gru")
    with torch.no_grad():
        predictor.model.readout.bias.fill_(float("nan"))
    answer = Document(explain(predictor, SERIES).html()).data()["series"][0]["answer"]
    assert answer["text"] == "no answer: the outputs are not finite"
    assert answer["numbers"] == [None, None]


def test_the_same_explanation_gives_the_same_page():
    assert told().html() == told().html()


def test_the_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "new" / "page.html"
    explanation = told()
    assert explanation.save(file) == file
    assert file.read_text(encoding="utf-8") == explanation.html()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        told(title="another").save(file)
    assert file.read_text(encoding="utf-8") == explanation.html()
    assert [f.name for f in file.parent.iterdir()] == ["page.html"]


def test_a_directory_is_no_file_to_write_to(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a directory; give the name of a file, such as .*page\.html"):
        told().save(tmp_path)


def test_a_page_of_too_many_series_is_refused(monkeypatch):
    monkeypatch.setattr(page_module, "MOST_SERIES", 3)
    with pytest.raises(ValueError, match="a page of 4 series is too large to read; pick at most 3 by `ids`"):
        told().html()


def test_a_page_of_many_channels_stays_small():
    rng = np.random.default_rng(0)
    series = SeriesSet.from_arrays(np.cumsum(rng.normal(size=(1, 37, 100)), axis=2))
    assert len(explain(small_predictor(series=series, time_scale=99.0), series).html()) < 150_000
