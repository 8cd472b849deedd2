"""The paper's claims, each judged by the results there are: no verdict is typed by hand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smoothcde.reproduce.experiments import forecasting, heads, landscape, main, noise
from smoothcde.reproduce.published import FORECASTING, MAIN
from smoothcde.reproduce.results import Results, Spread
from smoothcde.reproduce.settings import PAPER_DATA
from smoothcde.reproduce.store import Store
from smoothcde.reproduce.trial import Trial

SHORT = {"CharacterTrajectories": "Characters", "SpokenArabicDigits": "Digits", "UWaveGestureLibrary": "UWave"}
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not run"
UNDECIDED = "within the spread of the seeds"


@dataclass(frozen=True)
class Verdict:
    """A claim, what was found, and whether it holds."""

    claim: str
    paper: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class _Found:
    """Our figure, and for each case that was run whether the claim is true of it; None where seeds differ by more."""

    text: str
    cases: Sequence[bool | None]

    @property
    def verdict(self) -> str:
        if not self.cases:
            return UNKNOWN
        if all(case is None for case in self.cases):
            return UNDECIDED
        return HOLDS if all(self.cases) else PARTLY if any(self.cases) else FAILS


def judge(store: Store) -> list[Verdict]:
    """Every claim of the abstract and the list of contributions, judged."""
    compared = Results(store.found(main.trials()))
    noisy = Results(store.found(noise.trials()))
    single = Results(store.found(landscape.trials()))
    views = Results(store.found(heads.trials()))
    forecasts = Results(store.found(forecasting.trials()))
    claims: list[tuple[str, str, Callable[[], _Found]]] = [
        (
            "Exact interpolation drives up the number of evaluations: linear and cubic paths need more than twice "
            "those of MVC-GP",
            _published_ratios("nfe"),
            lambda: _ratios(compared, "joint_nfe", least=2.0),
        ),
        (
            "Smoothing lets the user control regularity: evaluations fall as the bandwidth grows",
            "proportional to 1/h",
            lambda: _falling(single),
        ),
        (
            "Training is 5 to 14 times faster than standard neural CDEs (4.3 at least, by its section on results)",
            _published_ratios("seconds"),
            lambda: _ratios(compared, "train_seconds", least=4.3),
        ),
        (
            "Training is faster than that of ODE-RNN, up to 16 times",
            _published_ratios("seconds", ("ode-rnn",)),
            lambda: _ratios(compared, "train_seconds", least=1.0, models=("ode-rnn",)),
        ),
        (
            "Inference takes less time than with splines",
            "not given as a ratio",
            lambda: _ratios(compared, "test_seconds", least=1.0),
        ),
        (
            "MVC-GP is more accurate than linear and cubic neural CDEs",
            _published_gaps(("linear", "cubic")),
            lambda: _gaps(compared, ("linear", "cubic")),
        ),
        (
            "MVC-GP is state of the art: the best of all compared",
            _published_gaps(main.MAIN_MODELS[:-1]),
            lambda: _gaps(compared, main.MAIN_MODELS[:-1]),
        ),
        (
            "MVC-GP is competitive with Mamba (within two points, or better)",
            _published_gaps(("mamba",)),
            lambda: _gaps(compared, ("mamba",), slack=0.02),
        ),
        (
            "Several attentive views recover what smoothing loses: MVC-GP is more accurate than one GP path",
            _published_gaps(("gp",)),
            lambda: _gaps(compared, ("gp",)),
        ),
        (
            "More views lower the error where smoothing is strong (MVC-GP, all bandwidths 1.4, one view against four)",
            "lower, levelling off at four",
            lambda: _more_views(views),
        ),
        (
            "Evaluations hardly change under noise on the test series (MVC-GP, noise 0.7: less than half more)",
            "almost constant",
            lambda: _noise_growth(noisy, "mvc-gp", most=1.5),
        ),
        (
            "Evaluations of interpolants grow drastically under that noise (cubic: more than twice)",
            "drastic",
            lambda: _noise_growth(noisy, "cubic", least=2.0),
        ),
        (
            "The error of MVC-GP grows more slowly under noise than that of cubic paths",
            "significantly slower",
            lambda: _noise_error(noisy),
        ),
        (
            "Forecasts of ETTm1 with 30% dropped are better than those of a cubic neural CDE and of a GRU",
            ", ".join(f"{model} {error[0]:.3f}" for model, (error, _) in FORECASTING.items()),
            lambda: _forecasts(forecasts),
        ),
    ]
    made = []
    for claim, paper, find in claims:
        found = find()
        made.append(Verdict(claim, paper, found.text or "-", found.verdict))
    return made


def _ratios(results: Results, key: str, least: float, models: Sequence[str] = ("linear", "cubic")) -> _Found:
    """Of some models over mvc-gp, data set by data set."""
    texts, cases = [], []
    for data in PAPER_DATA:
        own = results.mean(Trial.of(data, "mvc-gp"), key)
        for model in models:
            other = results.mean(Trial.of(data, model), key)
            if own and other:
                texts.append(f"{SHORT[data]} {model} {other / own:.1f} x")
                cases.append(other / own >= least)
    return _Found(", ".join(texts), cases)


def _published_ratios(key: str, models: Sequence[str] = ("linear", "cubic")) -> str:
    texts = []
    for data in PAPER_DATA:
        for model in models:
            own, other = getattr(MAIN[data]["mvc-gp"], key), getattr(MAIN[data][model], key)
            texts.append(f"{SHORT[data]} {model} {other[0] / own[0]:.1f} x")
    return ", ".join(texts)


def _gaps(results: Results, models: Sequence[str], slack: float = 0.0) -> _Found:
    """Accuracy of mvc-gp over the best of some models, in points."""
    texts, cases = [], []
    for data in PAPER_DATA:
        own = results.spread(Trial.of(data, "mvc-gp"), "accuracy")
        others = {model: results.spread(Trial.of(data, model), "accuracy") for model in models}
        known = {model: accuracy for model, accuracy in others.items() if accuracy is not None}
        if own is not None and known:
            best = max(known, key=lambda model: known[model].mean)
            gap = own.mean - known[best].mean
            few = f" ({len(known)} of {len(models)} models run)" if len(known) < len(models) else ""
            texts.append(f"{SHORT[data]} {100 * gap:+.1f} points over {best}{few}")
            if few and gap >= -slack:
                continue  # those still to come may be better
            cases.append(None if abs(gap + slack) < _doubt(own, known[best]) else gap >= -slack)
    return _Found(", ".join(texts), cases)


def _doubt(one: Spread, other: Spread) -> float:
    """The standard error of the difference of two means over seeds; 0 where a spread is not known."""
    return math.sqrt(sum((found.deviation or 0.0) ** 2 / found.seeds for found in (one, other)))


def _published_gaps(models: Sequence[str]) -> str:
    texts = []
    for data in PAPER_DATA:
        best = max(models, key=lambda model: MAIN[data][model].accuracy[0])
        gap = MAIN[data]["mvc-gp"].accuracy[0] - MAIN[data][best].accuracy[0]
        texts.append(f"{SHORT[data]} {gap:+.1f} points over {best}")
    return ", ".join(texts)


def _falling(results: Results) -> _Found:
    texts, cases = [], []
    for model in ("gp", "kernel"):
        points = sorted(
            (dict(group.changes)["bandwidths"][0], results.mean(group, "joint_nfe") or 0.0)
            for group in results.groups
            if group.model == model
        )
        if len(points) > 2:
            (first, most), (last, fewest) = points[0], points[-1]
            texts.append(f"{model}: {most:.0f} at h = {first:g}, {fewest:.0f} at h = {last:g}")
            cases.append(most > fewest)
    return _Found(", ".join(texts), cases)


def _more_views(results: Results) -> _Found:
    one, four = (
        results.mean(Trial.of(heads.DATA, "mvc-gp", bandwidths=(1.4,) * views), "accuracy") for views in (1, 4)
    )
    if one is None or four is None:
        return _Found("", [])
    return _Found(f"UWave {100 * one:.1f}% with one, {100 * four:.1f}% with four", [four > one])


def _forecasts(results: Results) -> _Found:
    """Squared errors of the three models, for each way of asking; the claim is about the lowest."""
    texts, cases = [], []
    for group in results.groups:
        if group.model != "mvc-gp":
            continue
        changes = dict(group.changes)
        found = {
            model: results.mean(Trial.of(group.data, model, measure="forecast", **changes), "mse")
            for model in ("mvc-gp", "cubic", "gru")
        }
        known = {model: error for model, error in found.items() if error is not None}
        if len(known) < len(found):
            continue
        told = "time of day told" if changes["clock"] else "not told"
        texts.append(f"{changes['reading']} dropped, {told}: " + ", ".join(f"{m} {e:.3f}" for m, e in known.items()))
        cases.append(min(known, key=lambda model: known[model]) == "mvc-gp")
    return _Found("; ".join(texts), cases)


def _noise_growth(results: Results, model: str, least: float = 0.0, most: float = float("inf")) -> _Found:
    texts, cases = [], []
    for group in results.groups:
        if group.model == model:
            curves = [found["levels"] for found in results.of(group)]
            growth = sum(levels[-1]["joint_nfe"] / levels[0]["joint_nfe"] for levels in curves) / len(curves)
            texts.append(f"{SHORT[group.data]} x {growth:.2f}")
            cases.append(least <= growth <= most)
    return _Found(", ".join(texts), cases)


def _noise_error(results: Results) -> _Found:
    texts, cases = [], []
    for data in results.data():
        lost = {}
        for model in ("mvc-gp", "cubic"):
            curves = [found["levels"] for found in results.of(Trial.of(data, model, measure="noise"))]
            if curves:
                lost[model] = sum(c[0]["accuracy"] - c[-1]["accuracy"] for c in curves) / len(curves)
        if len(lost) == 2:
            texts.append(f"{SHORT[data]}: loses {100 * lost['mvc-gp']:.1f} points, cubic {100 * lost['cubic']:.1f}")
            cases.append(lost["mvc-gp"] < lost["cubic"])
    return _Found(", ".join(texts), cases)
