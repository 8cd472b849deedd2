"""The page in a real browser: it draws, obeys its controls, fits a phone, and the console stays silent."""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from explained_series import SERIES, small_predictor

from smoothcde import Explanation, explain
from smoothcde.series import SeriesSet

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = os.environ.get("SMOOTHCDE_CHROMIUM") or next(
    (path for name in BROWSERS if (path := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser found; install Chromium (looked for {', '.join(BROWSERS)}) to check the page"
)

# A frame stands in for the screen of a phone or a desk; what happens inside is reported as JSON in the title.
VISITOR = """<!DOCTYPE html><html><head><title>waiting</title></head><body>
<iframe id="screen" src="page.html" style="width:%dpx;height:900px;border:0"></iframe>
<script>
const screenFrame = document.getElementById("screen");
screenFrame.onload = () => {
  const inside = screenFrame.contentWindow, page = inside.document, found = {};
  const count = (selector) => page.querySelectorAll(selector).length;
  const texts = (selector) => [...page.querySelectorAll(selector)].map((e) => e.textContent);
  const click = (selector) => page.querySelector(selector).click();
  try { %s } catch (error) { found.error = String(error); }
  document.title = JSON.stringify(found);
};
</script></body></html>"""


def visit(folder: Path, explanation: Explanation, actions: str, width: int = 1200) -> dict:
    """What `actions` find on the page, after making sure that the console stayed silent."""
    explanation.save(folder / "page.html")
    (folder / "visitor.html").write_text(VISITOR % (width, actions), encoding="utf-8")
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        "--virtual-time-budget=4000",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width + 40},1000",
        "--dump-dom",
        (folder / "visitor.html").as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    spoken = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not spoken, spoken
    title = re.search(r"<title>(.*?)</title>", done.stdout, flags=re.DOTALL)
    assert title is not None, done.stderr[-2000:]
    found = json.loads(unescape(title[1]))
    assert "error" not in found, found
    return found


def test_the_page_draws_what_was_explained(tmp_path):
    explanation = explain(small_predictor(), SERIES)
    found = visit(
        tmp_path,
        explanation,
        """
        found.options = texts("#series option");
        found.charts = count("#charts svg");
        found.labels = [...page.querySelectorAll("#charts svg")].map((e) => e.getAttribute("aria-label"));
        found.dots = count("#charts svg:first-of-type circle.dot");
        found.lines = page.querySelector("#charts svg").querySelectorAll("polyline").length;
        found.ticks = count("#charts line.tick");
        found.cost = texts("#cost td");
        found.answer = texts("#answer .value");
        found.static = texts("#static th, #static td");
        """,
    )
    portrait, answer = explanation.series[0].portrait, explanation.series[0].answer
    assert found["options"] == ["ward 1", "17", "empty", "brief"]
    assert found["charts"] == 3 + 2
    assert found["labels"][0].startswith(
        "heart rate: 4 observations, from 71 to 90, 1 long gap; paths of view 1, view 2"
    )
    assert found["labels"][-2].startswith("Attention over time. view 1 attends most at ")
    assert all(found["labels"])
    assert found["dots"] == 4 + 3
    assert found["lines"] == 2
    assert found["ticks"] == sum(view.accepted + 1 for view in portrait.views)
    counts = [[str(view.nfe), str(view.accepted), str(view.rejected)] for view in portrait.views]
    assert found["cost"][:6] == counts[0] + counts[1]
    assert found["cost"][6] == str(portrait.nfe)
    assert found["answer"] == [f"{p:.3f}" for p in sorted(answer.numbers, reverse=True)]
    assert found["static"][-2:] == ["static 0", "64"]


def test_the_controls_do_what_they_say(tmp_path):
    found = visit(
        tmp_path,
        explain(small_predictor(), SERIES),
        """
        click("#next");
        found.second = page.getElementById("window").textContent;
        found.chosen = page.getElementById("series").value;
        click("#none");
        found.without = count("#charts svg");
        click("#all");
        found.everything = count("#charts svg");
        click("#views input");
        found.hidden = page.querySelector("#charts svg").querySelectorAll("polyline").length;
        page.getElementById("numbers").open = true;
        page.getElementById("numbers").dispatchEvent(new inside.Event("toggle"));
        found.numbers = texts("#numbers tbody tr:first-child > *");
        page.getElementById("charts").dispatchEvent(new inside.KeyboardEvent("keydown", {key: "ArrowRight"}));
        found.read = texts("#charts .read")[0];
        for (const place of ["2", "3", "0"]) {
          page.getElementById("series").value = place;
          page.getElementById("series").dispatchEvent(new inside.Event("change"));
          found["window" + place] = page.getElementById("window").textContent;
        }
        click("#overview tbody tr:nth-child(2) button");
        found.back = page.getElementById("series").value;
        found.current = texts("#overview tr.current th");
        """,
    )
    assert found["second"] == "From 3 to 6, 4 observations"
    assert (found["chosen"], found["without"], found["everything"], found["hidden"]) == ("1", 2, 5, 1)
    assert found["numbers"][:3] == ["heart rate", "3", "64"]
    assert found["read"].startswith("observed 64 at 3")
    assert found["window2"] == "From 0 to 0, 0 observations"
    assert found["window3"] == "From 50 to 50, 1 observation"
    assert (found["back"], found["current"]) == ("1", ["17"])


@pytest.mark.parametrize("name", ["gru", "ode-rnn", "rectilinear"])
def test_every_kind_of_model_is_drawn_without_complaint(name, tmp_path):
    found = visit(
        tmp_path, explain(small_predictor(name), SERIES), 'found.c = texts("#cost")[0]; found.n = count("svg")'
    )
    if name == "rectilinear":
        assert found["c"].startswith("View")
    else:
        assert found["c"].startswith(f"{name} has no path to draw, and no view to tell the cost of.")
        assert ("evaluated its vector field" in found["c"]) == (name == "ode-rnn")


def test_a_regression_of_several_targets_is_a_table(tmp_path):
    predictor = small_predictor(task="regression")
    found = visit(tmp_path, explain(predictor, SERIES), 'found.cells = texts("#answer tbody th, #answer tbody td")')
    assert found["cells"][::2] == ["days", "dose"]
    np.testing.assert_allclose(
        [float(x) for x in found["cells"][1::2]], explain(predictor, SERIES).series[0].answer.numbers, rtol=1e-3
    )


HOSTILE = ("</script><script>parent.bad = 1</script>", "<img src=x onerror='parent.bad = 1'>", "a" * 90)


def test_hostile_names_are_shown_as_text_and_a_phone_need_not_scroll_sideways(tmp_path):
    rng = np.random.default_rng(0)
    series = SeriesSet.from_arrays(rng.normal(size=(3, 3, 9)) * 1e5, ids=HOSTILE, channel_names=HOSTILE)
    explanation = explain(small_predictor(series=series, labels=np.array(HOSTILE[:2])), series, title=HOSTILE[2])
    found = visit(
        tmp_path,
        explanation,
        """
        found.bad = window.bad === 1;
        found.images = count("img");
        found.options = texts("#series option");
        found.names = texts("#charts b");
        found.wide = page.documentElement.scrollWidth;
        found.charts = [...page.querySelectorAll("#charts svg")].map((e) => e.getBoundingClientRect().right);
        """,
        width=360,
    )
    assert found["bad"] is False
    assert found["images"] == 0
    assert tuple(found["options"]) == HOSTILE
    assert tuple(found["names"][:3]) == HOSTILE
    assert found["wide"] <= 360
    assert max(found["charts"]) <= 360
