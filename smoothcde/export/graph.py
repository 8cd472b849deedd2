"""A predictor on frozen steps as one fixed sequence of operations, from raw arrays to answers."""

from copy import deepcopy
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from smoothcde.estimators import Predictor
from smoothcde.models import MultiViewCDE, NeuralCDE, SeriesModel, TanhField
from smoothcde.paths import FourierBasis, FourierGPPath, JoinedPath, KernelPath, Path
from smoothcde.series import SeriesBatch
from smoothcde.solve import ControlTerm, StepPlan

MOST_UNKNOWNS = 400
"""Size of a Gaussian process system beyond which its unrolled elimination is no graph to hand around."""


class ScoringGraph(nn.Module):
    """Raw series in, answers out: scaling, encoder, smoothing, fixed steps, readout, calibration.

    Nothing in it depends on a value that it sees, so that `torch.export` can trace it for any number of series. The
    Gaussian process paths are those of `GPPath` up to 1e-6, on a basis that needs no factorisation (`FourierGPPath`).

    Args:
        predictor: with a plan (`Predictor.frozen`), of a model on Gaussian process or kernel paths.
        length: stamps per series; shorter ones are padded.
        longest: the longest window, in time units, that Gaussian process paths are made for; the model's time scale by
            default. Longer ones are reported as outside the plan.
        together: all channels are always observed together, so that a mask has no channels: quicker.
    """

    bandwidth: Tensor
    limits: Tensor
    noise: Tensor
    channel_mean: Tensor
    channel_scale: Tensor
    static_mean: Tensor
    static_scale: Tensor
    target_mean: Tensor
    target_scale: Tensor

    def __init__(self, predictor: Predictor, length: int, longest: float | None = None, together: bool = False):
        super().__init__()
        if predictor.plan is None:
            raise ValueError("only frozen steps can be exported; make them with predictor.frozen(calibration_series)")
        if length < 1:
            raise ValueError(f"length is {length}; give the most stamps that a series may have")
        model = predictor.model
        check_exportable(model)
        # A copy that wants no gradients: tracing would keep what a backward pass needs.
        self.model = cast("MultiViewCDE | NeuralCDE", deepcopy(model).requires_grad_(False).eval())
        self.plan: StepPlan = predictor.plan
        self.length, self.together, self.task = length, together, predictor.task
        self.longest = model.time_scale if longest is None else float(longest)
        if not self.longest > 0:
            raise ValueError(f"longest is {longest}; give the longest window in time units")
        bandwidth = self.model.bandwidths.values.detach()
        self._constants(bandwidth=bandwidth, limits=np.array(self.plan.limits))
        self._constants(channel_mean=predictor.scaler.mean, channel_scale=predictor.scaler.scale)
        if predictor.static_scaler is not None:
            self._constants(static_mean=predictor.static_scaler.mean, static_scale=predictor.static_scaler.scale)
        if predictor.targets is not None:
            self._constants(target_mean=predictor.targets.mean, target_scale=predictor.targets.scale)
        self.temperature = predictor.temperature
        self.basis: FourierBasis | None = None
        if smoother_of(self.model) == "gp":
            noise = torch.as_tensor(self.model.noise, dtype=torch.float64).detach()
            self._constants(noise=noise.expand(len(bandwidth)).clone())
            self.basis = FourierBasis.of(bandwidth.tolist(), self.longest)
            if self.basis.size > MOST_UNKNOWNS:
                raise ValueError(
                    f"bandwidths down to {float(bandwidth.min()):g} on windows up to {self.longest:g} need systems of "
                    f"{self.basis.size} unknowns, more than {MOST_UNKNOWNS}; give a shorter `longest` or train with "
                    "larger bandwidths"
                )

    def forward(
        self,
        values: Float64[Tensor, "n length channels"],
        times: Float64[Tensor, "n length"],
        mask: Bool[Tensor, "n length *channels"],
        lengths: Int[Tensor, "n"],
        start: Float64[Tensor, "n"],
        end: Float64[Tensor, "n"],
        static: Float64[Tensor, "n features"] | None = None,
    ) -> tuple[Float[Tensor, "n answers"], Float[Tensor, "n"], Bool[Tensor, "n"]]:
        """Probabilities (or values of the targets), the error ratio, and which series are outside the plan.

        Args:
            values: observations in their own units; anything where `mask` is False.
            times: stamps, increasing over the first `lengths` of each row; anything behind them.
            mask: what was observed; without the last dimension if channels are observed together.
            lengths: stamps of each series, all inside its window.
            start: where each window begins.
            end: where it ends: the moment of the prediction.
            static: features that do not change with time, for models that have some.
        """
        batch = self._batch(values, times, mask, lengths, start, end, static)
        path, gaps = self._path(batch)
        path, z0 = self.model.start(path)
        followed = self.plan.follow(ControlTerm(self.model.field, path), z0)
        outputs = self.model.read_views(followed.state, batch).double()
        if self.task == "classification":
            answers = torch.softmax(outputs / self.temperature, dim=1)
        else:
            answers = outputs * self.target_scale + self.target_mean
        worst = followed.ratios.double().amax(dim=1).unflatten(0, (self.model.views, values.shape[0]))
        ratio = (worst / self.limits[:, None]).amax(dim=0)
        ratio = torch.where(gaps | (batch.end > self.longest * (1 + 1e-9)), torch.inf, ratio)
        return answers, ratio, ~(ratio <= 1)

    def _batch(self, values, times, mask, lengths, start, end, static) -> SeriesBatch:
        """What `Predictor.prepare` and `SeriesSet.batch` would have made of it."""
        place = torch.arange(self.length, device=values.device)[None]
        last = (lengths[:, None] - 1).clamp(min=0)
        own = torch.where(lengths[:, None] > 0, times.gather(1, torch.minimum(place, last)) - start[:, None], 0.0)
        mask = mask[:, :, None].expand(values.shape) if self.together else mask
        mask = mask & (place < lengths[:, None])[:, :, None]
        dtype = self.model.readout.weight.dtype
        scaled = torch.where(mask, (values - self.channel_mean) / self.channel_scale, 0.0).to(dtype)
        features = None if static is None else ((static - self.static_mean) / self.static_scale).to(dtype)
        return SeriesBatch(scaled, own, mask, lengths, torch.zeros_like(start), end - start, start, features)

    def _path(self, batch: SeriesBatch) -> tuple[Path, Bool[Tensor, "n"]]:
        """The paths of all views, and which series have gaps that a plan knows nothing of."""
        model, weights = self.model, None
        if isinstance(model, MultiViewCDE):
            weights = model.weights(batch)
        kernels: list[KernelPath] = []
        if self.basis is not None:
            path: Path = FourierGPPath.fit(batch, self.basis, self.noise, weights, together=self.together)
        else:
            path = KernelPath.of(batch, self.bandwidth, weights, model.kernel, shared=self.together)
            kernels.append(path)
        if model.count_scale is not None:
            # Every stamp counts for all channels, so they share their stamps whatever the mask.
            counts = KernelPath.of(batch.counts(model.count_scale), self.bandwidth, shared=True)
            kernels.append(counts)
            path = JoinedPath.of(path, counts)
        gaps = torch.zeros_like(batch.start, dtype=torch.bool)
        for kernel in kernels:
            gaps = gaps | kernel.wide_gaps().unflatten(0, (model.views, -1)).any(dim=0)
        return path, gaps

    def _constants(self, **arrays: Any) -> None:
        for name, array in arrays.items():
            self.register_buffer(name, torch.as_tensor(array, dtype=torch.float64).clone(), persistent=False)


def smoother_of(model: MultiViewCDE | NeuralCDE) -> str:
    """What makes the model's paths."""
    return model.smoother if isinstance(model, MultiViewCDE) else model.path


def check_exportable(model: SeriesModel) -> None:
    """Refuse a model that cannot be exported, and say why."""
    if reason := _why_no_graph(model):
        raise ValueError(f"this model cannot be exported: {reason}")


def _why_no_graph(model: SeriesModel) -> str | None:
    if reason := model.why_no_plan():
        return reason
    if not isinstance(model, MultiViewCDE | NeuralCDE) or smoother_of(model) not in ("gp", "kernel"):
        return "graphs have Gaussian process and kernel paths only; train mvc-gp, mv-gp, gp or their kernel kin"
    if not isinstance(model.field, TanhField):
        return "graphs have fields with a full matrix only; train without `rank`"
    return None
