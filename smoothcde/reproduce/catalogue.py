"""All experiments, in the order of the page."""

from collections.abc import Mapping

from smoothcde.checks import check_known
from smoothcde.reproduce.experiment import Experiment
from smoothcde.reproduce.experiments import (
    archive,
    attention,
    breakdown,
    channels,
    components,
    diversity,
    dropping,
    forecasting,
    heads,
    landscape,
    main,
    memory,
    noise,
    orders,
    smoothing_splines,
    speech,
    tolerances,
    workflow,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        main,
        workflow,
        noise,
        components,
        heads,
        landscape,
        tolerances,
        breakdown,
        attention,
        diversity,
        dropping,
        orders,
        smoothing_splines,
        memory,
        forecasting,
        speech,
        channels,
        archive,
    )
}


def experiment_of(name: str) -> Experiment:
    """An experiment by name."""
    check_known("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
