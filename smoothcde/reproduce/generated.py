"""Generated data of PEMS-SF's shape, for cost at 963 channels where the real set is not at hand."""

import numpy as np

from smoothcde.series import SeriesSet

GENERATED = "generated-like-PEMS-SF"
SERIES, CHANNELS, LENGTH, DAYS = 440, 963, 144, 7


def generated_traffic(seed: int = 0) -> tuple[SeriesSet, np.ndarray]:
    """440 days of 963 sensors every ten minutes, and which of seven days of the week each is.

    A sensor sees two rush hours, of heights and moments that are its own and differ a little between weekdays, under
    noise. Nothing about accuracy on real roads follows from these.
    """
    generator = np.random.default_rng(seed)
    clock, days = np.linspace(0.0, 24.0, LENGTH), np.arange(SERIES) % DAYS
    values = np.full((SERIES, CHANNELS, LENGTH), 0.05)
    for hour in (8.0, 17.5):
        height = generator.gamma(2.0, 0.05, size=(DAYS, CHANNELS)) * 0.3 + generator.gamma(2.0, 0.05, size=CHANNELS)
        moment = hour + generator.normal(scale=0.7, size=CHANNELS) + generator.normal(scale=0.3, size=(DAYS, CHANNELS))
        moment = moment[days] + generator.normal(scale=0.3, size=(SERIES, 1))
        values += height[days][:, :, None] * np.exp(-0.5 * ((clock - moment[:, :, None]) / 1.2) ** 2)
    values += generator.normal(scale=0.03, size=values.shape)
    return SeriesSet.from_arrays(list(values)), days
