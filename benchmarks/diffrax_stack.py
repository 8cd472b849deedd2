"""MVC-CDE in JAX on diffrax, jitted: exact Gaussian process by Cholesky, one step size for the batch or one per row."""

import math
import time
from typing import Any, Literal

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from benchmarks.settings import HIDDEN, Setting

# Single arrays may then be float64; all that is made below is float32 unless it says otherwise.
jax.config.update("jax_enable_x64", True)

Weights = dict[str, Array]
Steps = Literal["joint", "row"]
EVALUATIONS_BEFORE = 1
"""The first slope; all others are six to a step."""
FIRST_STEP = 1 / 15
"""Share of the window, the best of six tried on the three settings. Left to itself, diffrax 0.7.2 begins with 0.01 time
units whatever the equation, and takes three steps more."""


class DiffraxMVC:
    """The same forward pass as `ExactMVC`, as pure functions of weights by smoothcde's names.

    Args:
        setting: what to be.
        steps: "joint", one step size for the batch; "row", `vmap` over the rows, each with its own.
        gram_dtype: of the Gaussian process solve.
        most_steps: that a solve may take, which also sizes the checkpoints of the backward pass.
        tuned: False for what the library does if nothing is said: its own first step, room for 4,096 steps, a linear
            solve that knows nothing of the matrix.
    """

    def __init__(
        self,
        setting: Setting,
        steps: Steps = "joint",
        gram_dtype: Any = jnp.float32,
        most_steps: int | None = None,
        tuned: bool = True,
    ):
        self.setting, self.steps, self.gram_dtype, self.tuned = setting, steps, gram_dtype, tuned
        self.most_steps = most_steps or (256 if tuned else 4096)
        self.times = jnp.arange(setting.length, dtype=jnp.float32)
        self.bandwidths = jnp.asarray(setting.bandwidths, dtype=jnp.float32)

    def forward(self, weights: Weights, x: Array, tolerance: Array) -> tuple[Array, Array]:
        """Logits of `[n, length, channels]`, and the steps of each solve."""
        dual, z0 = self.begin(weights, x)
        solve = self._joint if self.steps == "joint" else self._by_row
        states, steps = solve(weights, dual, z0, tolerance)
        return self.read(weights, states), steps

    def begin(self, weights: Weights, x: Array) -> tuple[Array, Array]:
        """Coefficients `[views, n, length, channels]` and initial states `[views, n, hidden]`."""
        noise = (self.setting.noise**2 / (self._attention(weights, x) + 1e-5)).astype(self.gram_dtype)
        stamps, bandwidths = self.times.astype(self.gram_dtype), self.bandwidths.astype(self.gram_dtype)
        gram = jnp.exp(-0.5 * ((stamps[:, None] - stamps) / bandwidths[:, None, None]) ** 2)
        values = jnp.broadcast_to(x.astype(self.gram_dtype), (self.setting.views, *x.shape))

        def posterior(covariance: Array, right: Array) -> Array:
            if not self.tuned:
                return jnp.linalg.solve(covariance, right)
            # By Cholesky, with the gradient of a linear solve: quicker than a gradient through the factor.
            return jax.scipy.linalg.solve(covariance, right, assume_a="pos")

        covariance = gram[:, None] + noise[..., None] * jnp.eye(self.setting.length, dtype=self.gram_dtype)
        dual = jax.vmap(jax.vmap(posterior))(covariance, values).astype(jnp.float32)
        at_start = jnp.exp(-0.5 * ((self.times[0] - self.times) / self.bandwidths[:, None]) ** 2)
        first = jnp.einsum("vl,vnlc->vnc", at_start, dual)
        return dual, first @ weights["initial.weight"].T + weights["initial.bias"]

    def read(self, weights: Weights, states: Array) -> Array:
        """Logits of final states."""
        return jnp.concatenate(list(states), axis=1) @ weights["readout.weight"].T + weights["readout.bias"]

    def _attention(self, weights: Weights, x: Array) -> Array:
        """`[views, n, length]`."""
        context = x
        for layer in range(2):
            kernel = weights[f"encoder.layers.{layer}.weight"].transpose(2, 1, 0)
            padded = jnp.pad(context, ((0, 0), (1, 1), (0, 0)), mode="edge")
            shapes = ("NWC", "WIO", "NWC")
            context = jax.lax.conv_general_dilated(padded, kernel, (1,), "VALID", dimension_numbers=shapes)
            context = jax.nn.relu(context + weights[f"encoder.layers.{layer}.bias"])
        scores = jnp.einsum("vw,nlw->vnl", weights["attention.queries"], context) / math.sqrt(HIDDEN)
        return jax.nn.softmax(scores, axis=-1)

    def field(self, weights: Weights, z: Array, dx: Array) -> Array:
        """f(z) dX/dt of `[views, n, hidden]` and `[views, n, channels]`."""
        inner = jnp.tanh(z @ weights["field.inner.weight"] + weights["field.inner.bias"][:, None])
        outer = jnp.tanh(inner @ weights["field.outer.weight"] + weights["field.outer.bias"][:, None])
        return jnp.einsum("vnch,vnc->vnh", outer.reshape(*dx.shape, -1), dx)

    def _slope(self, t: Array, bandwidth: Array) -> Array:
        distance = (t - self.times) / bandwidth[..., None]
        return -distance / bandwidth[..., None] * jnp.exp(-0.5 * distance**2)

    def _joint(self, weights: Weights, dual: Array, z0: Array, tolerance: Array) -> tuple[Array, Array]:
        def derivative(t, z, args):
            weights, dual = args
            return self.field(weights, z, jnp.einsum("vl,vnlc->vnc", self._slope(t, self.bandwidths), dual))

        return self._solve(derivative, z0, (weights, dual), diffrax.PIDController(rtol=tolerance, atol=tolerance))

    def _by_row(self, weights: Weights, dual: Array, z0: Array, tolerance: Array) -> tuple[Array, Array]:
        def derivative(t, z, args):
            weights, dual, bandwidth = args
            dx = self._slope(t, bandwidth) @ dual
            inner = jnp.tanh(z @ weights["field.inner.weight"] + weights["field.inner.bias"])
            outer = jnp.tanh(inner @ weights["field.outer.weight"] + weights["field.outer.bias"])
            return dx @ outer.reshape(dx.shape[0], -1)

        def solve(field: Weights, dual: Array, bandwidth: Array, z0: Array) -> tuple[Array, Array]:
            controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
            return self._solve(derivative, z0, (field, dual, bandwidth), controller)

        field = {name: array for name, array in weights.items() if name.startswith("field.")}
        over_series = jax.vmap(solve, in_axes=(None, 0, None, 0))
        return jax.vmap(over_series)(field, dual, self.bandwidths, z0)

    def follow(self, weights: Weights, x: Array, ends: tuple[tuple[float, ...], ...]) -> Array:
        """Logits by fixed steps, those of each view for itself."""
        dual, z0 = self.begin(weights, x)
        states = []
        for view, of_view in enumerate(ends):
            own = {name: array[view : view + 1] for name, array in weights.items() if name.startswith("field.")}
            stops = self.times[-1] * jnp.asarray([0.0, *of_view], dtype=jnp.float32)

            def derivative(t, z, args, bandwidth=self.bandwidths[view : view + 1]):
                weights, dual = args
                return self.field(weights, z, jnp.einsum("vl,vnlc->vnc", self._slope(t, bandwidth), dual))

            part = slice(view, view + 1)
            state, _ = self._solve(derivative, z0[part], (own, dual[part]), diffrax.StepTo(ts=stops))
            states.append(state)
        return self.read(weights, jnp.concatenate(states))

    def _solve(self, derivative, z0: Array, args: Any, controller: Any) -> tuple[Array, Array]:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(derivative),
            diffrax.Dopri5(),
            t0=self.times[0],
            t1=self.times[-1],
            dt0=FIRST_STEP * self.times[-1] if self.tuned and not isinstance(controller, diffrax.StepTo) else None,
            y0=z0,
            args=args,
            stepsize_controller=controller,
            max_steps=self.most_steps,
        )
        return solution.ys[-1], solution.stats["num_steps"]

    def loss(self, weights: Weights, x: Array, labels: Array, tolerance: Array) -> Array:
        """Cross-entropy."""
        logits, _ = self.forward(weights, x, tolerance)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def array_of(weights: dict[str, np.ndarray]) -> Weights:
    """Weights as JAX holds them."""
    return {name: jnp.asarray(array) for name, array in weights.items()}


class Compiled:
    """A function compiled for the shapes of its first arguments, and how long that took."""

    def __init__(self, function, *arguments: Any):
        begin = time.perf_counter()
        shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(jnp.shape(a), jnp.asarray(a).dtype), arguments)
        self._call = jax.jit(function).lower(*shapes).compile()
        self.seconds = time.perf_counter() - begin

    def __call__(self, *arguments: Any) -> Any:
        """Run, and wait for the result."""
        return jax.block_until_ready(self._call(*arguments))


def training_step(model: DiffraxMVC, optimiser: optax.GradientTransformation, parts: int = 1):
    """A step of the optimiser as a function of weights, its state, series, labels and tolerance; gradients beside.

    With several parts, that many equal shares of the series are worked on one after the other, and gradients add up.
    """

    def step(weights: Weights, state: Any, x: Array, labels: Array, tolerance: Array):
        def add(total: Weights, part: tuple[Array, Array]) -> tuple[Weights, None]:
            found = jax.grad(model.loss)(weights, *part, tolerance)
            return jax.tree.map(lambda a, b: a + b / parts, total, found), None

        if parts == 1:
            gradients = jax.grad(model.loss)(weights, x, labels, tolerance)
        else:
            shares = (x.reshape(parts, -1, *x.shape[1:]), labels.reshape(parts, -1))
            gradients, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), shares)
        updates, state = optimiser.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, gradients

    return step
