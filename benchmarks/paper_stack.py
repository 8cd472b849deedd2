"""MVC-CDE with Gaussian process paths as its authors would write it: batched exact solve, torchdiffeq."""

import math

import torch
from torch import Tensor, nn
from torchdiffeq import odeint

from smoothcde.models import MultiViewCDE


class PaperMVC(nn.Module):
    """The paper's forward pass on a shared regular grid, in float32 throughout."""

    def __init__(
        self, channels: int, outputs: int, bandwidths: tuple[float, ...], length: int, noise: float, tolerance: float
    ):
        super().__init__()
        views, hidden = len(bandwidths), 128
        self.encoder = nn.Sequential(
            nn.Conv1d(channels, 128, 3, padding=1, padding_mode="replicate"),
            nn.ReLU(),
            nn.Conv1d(128, 128, 3, padding=1, padding_mode="replicate"),
            nn.ReLU(),
        )
        self.queries = nn.Parameter(torch.randn(views, 128))
        self.initial = nn.Linear(channels, hidden)
        self.fields = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, 128), nn.Tanh(), nn.Linear(128, hidden * channels), nn.Tanh())
            for _ in range(views)
        )
        self.readout = nn.Linear(views * hidden, outputs)
        self.noise, self.tolerance, self.hidden, self.channels = noise, tolerance, hidden, channels
        times = torch.arange(length, dtype=torch.float32)
        self.register_buffer("times", times)
        self.register_buffer("bandwidths", torch.tensor(bandwidths))
        distance = times[:, None] - times
        self.register_buffer("gram", torch.exp(-0.5 * (distance / self.bandwidths[:, None, None]) ** 2))
        self.evaluations = 0

    def forward(self, x: Tensor) -> Tensor:
        """Logits of series `[n, length, channels]`."""
        context = self.encoder(x.mT)
        weights = torch.softmax(self.queries @ context / math.sqrt(128), dim=-1)  # [n, views, length]
        noise = self.noise**2 / (weights + 1e-5)
        dual = torch.linalg.solve(self.gram + torch.diag_embed(noise), x[:, None].expand(-1, len(self.fields), -1, -1))

        def kernel(t: Tensor) -> tuple[Tensor, Tensor]:
            distance = (t - self.times) / self.bandwidths[:, None]
            value = torch.exp(-0.5 * distance**2)
            return value, -distance / self.bandwidths[:, None] * value

        def derivative(t: Tensor, z: Tensor) -> Tensor:
            self.evaluations += 1
            dx = torch.einsum("vl,nvlc->nvc", kernel(t)[1], dual)
            parts = [
                (field(state).view(-1, self.hidden, self.channels) @ dx[:, view, :, None]).squeeze(-1)
                for view, (field, state) in enumerate(zip(self.fields, z.chunk(len(self.fields), dim=1), strict=True))
            ]
            return torch.cat(parts, dim=1)

        first = torch.einsum("vl,nvlc->nvc", kernel(self.times[0])[0], dual)
        z0 = self.initial(first).flatten(1)
        window = torch.stack([self.times[0], self.times[-1]])
        states = odeint(derivative, z0, window, rtol=self.tolerance, atol=self.tolerance, method="dopri5")
        return self.readout(states[-1])

    @torch.no_grad()
    def take_weights(self, model: MultiViewCDE) -> None:
        """The same weights as one of our models."""
        assert model.encoder is not None
        for ours, theirs in zip(model.encoder.layers, (self.encoder[0], self.encoder[2]), strict=True):
            theirs.load_state_dict(ours.state_dict())
        self.queries.copy_(model.attention.queries)
        self.initial.load_state_dict(model.initial.state_dict())
        self.readout.load_state_dict(model.readout.state_dict())
        for view, field in enumerate(self.fields):
            inner, outer = model.field.inner, model.field.outer
            field[0].weight.copy_(inner.weight[view].T)
            field[0].bias.copy_(inner.bias[view])
            # Our rows are (channel, hidden), theirs (hidden, channel).
            swapped = outer.weight[view].view(-1, self.channels, self.hidden).transpose(1, 2).flatten(1)
            field[2].weight.copy_(swapped.T)
            field[2].bias.copy_(outer.bias[view].view(self.channels, self.hidden).T.flatten())
