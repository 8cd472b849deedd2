"""Running trials: here, on several processes of this machine (joblib), or on a cluster (Ray).

A trial is a function of its setting and seed alone, so it does not matter where it runs or after which kill.
"""

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from smoothcde.checks import check_known
from smoothcde.reproduce.measures import MEASURES
from smoothcde.reproduce.settings import as_done
from smoothcde.reproduce.store import Store, versions
from smoothcde.reproduce.trial import Trial


@dataclass(frozen=True)
class Ended:
    """How a trial ended: with a result, or with what went wrong.

    Attributes:
        trial: which.
        result: numbers, None if it failed.
        made_with: versions and threads of the process that ran it.
        failure: the error in a line; empty if it did not fail.
        details: the traceback of a failure.
    """

    trial: Trial
    result: dict[str, Any] | None
    made_with: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    details: str = ""


def attempt(trial: Trial, work: Path, threads: int) -> Ended:
    """Run one trial in this process; a failure is reported, not raised, so that the others go on."""
    torch.set_num_threads(threads)
    try:
        return Ended(trial, MEASURES[trial.measure](trial, work), versions())
    except Exception as error:
        return Ended(trial, None, versions(), f"{type(error).__name__}: {error}", traceback.format_exc())


Engine = Callable[[Sequence[Trial], Path, int, int], Iterator[Ended]]


def _here(trials: Sequence[Trial], work: Path, workers: int, threads: int) -> Iterator[Ended]:
    for trial in trials:
        yield attempt(trial, work, threads)


def _joblib(trials: Sequence[Trial], work: Path, workers: int, threads: int) -> Iterator[Ended]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    with parallel_config("loky", inner_max_num_threads=threads):
        # One at a time to each process: a trial takes minutes, and what is handed out early cannot be given to others.
        few: Any = {"pre_dispatch": workers, "batch_size": 1}
        pool = Parallel(workers, return_as="generator_unordered", **few)
        try:
            yield from pool(delayed(attempt)(trial, work, threads) for trial in trials)  # type: ignore[misc]
        except TerminatedWorkerError as error:
            raise ChildProcessError(
                "a process was killed, most likely for want of memory; results so far are kept and trials under way go "
                "on from their checkpoints: run the same again, with fewer workers"
            ) from error


def _ray(trials: Sequence[Trial], work: Path, workers: int, threads: int) -> Iterator[Ended]:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError('the engine "ray" needs Ray; install it with: pip install "smoothcde[ray]"') from error
    if not ray.is_initialized():
        # A cluster that the environment names (RAY_ADDRESS), else one of our own on this machine.
        local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": workers * threads, "include_dashboard": False}
        ray.init(log_to_driver=False, **local)
    # Ray's workers know nothing of this process's environment: where the data are is part of the work.
    shared = {key: os.environ[key] for key in ("SMOOTHCDE_DATA",) if key in os.environ}
    environment = {"env_vars": {**shared, "OMP_NUM_THREADS": str(threads)}}
    remote = ray.remote(num_cpus=threads, runtime_env=environment)(attempt)
    waiting = [remote.remote(trial, work, threads) for trial in trials]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield from ray.get(done)


ENGINES: dict[str, Engine] = {"here": _here, "joblib": _joblib, "ray": _ray}


def run_trials(
    trials: Sequence[Trial],
    store: Store,
    work: Path,
    engine: str = "joblib",
    workers: int = 1,
    threads: int = 1,
    on_end: Callable[[Ended], None] | None = None,
) -> list[Ended]:
    """Run the trials that have no result yet; each result is on disk as soon as it is known. Gives the failures.

    Args:
        trials: in the order they should be begun; repeated ones run once.
        store: where results are kept.
        work: folder for checkpoints of trials under way.
        engine: one of `ENGINES`.
        workers: trials at a time.
        threads: of each.
        on_end: told how each trial ended.
    """
    check_known("engine", engine, ENGINES)
    missing = [trial for trial in dict.fromkeys(map(as_done, trials)) if store.find(trial) is None]
    failures = []
    for ended in ENGINES[engine](missing, Path(work).absolute(), workers, threads):
        if ended.result is None:
            failures.append(ended)
        else:
            store.add(ended.trial, ended.result, ended.made_with)
        if on_end is not None:
            on_end(ended)
    return failures
