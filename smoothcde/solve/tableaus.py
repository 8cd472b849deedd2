"""Embedded Runge-Kutta pairs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial

from smoothcde.native import Method


@dataclass(frozen=True, eq=False)
class Tableau:
    """An explicit embedded pair whose last stage is the next step's first (FSAL).

    Attributes:
        name: as users say it.
        order: of the solution that is propagated.
        nodes: c, where in the step each stage is evaluated.
        stages: a, row i combines the slopes before stage i. The last row is the solution's weights b.
        error: weights of the error estimate, one per slope.
        dense: `[slopes, degree]`, row j holds the coefficients of theta, theta^2, ... in slope j's weight, so that
            z(t + theta h) = z + h sum_j b_j(theta) k_j.
        trust: by how much a long step's error exceeds its estimate, see `solve/estimate.py`; zero for methods whose
            last stage but one does not end where the step does, or whose estimate serves long steps too.
    """

    name: str
    order: int
    nodes: np.ndarray
    stages: tuple[np.ndarray, ...]
    error: np.ndarray
    dense: np.ndarray
    trust: float = 0.0

    @property
    def slopes(self) -> int:
        """Evaluations per step, the reused first one included."""
        return len(self.nodes)

    @property
    def weights(self) -> np.ndarray:
        """b, one weight per slope; the last slope has none."""
        return np.append(self.stages[-1], 0.0)

    @cached_property
    def departure(self) -> np.ndarray | None:
        """From the result to the state of the stage before it, one weight per slope; None without `trust`."""
        if not self.trust:
            return None
        before = self.stages[-2]
        return np.append(before, np.zeros(self.slopes - len(before))) - self.weights

    @cached_property
    def compiled(self) -> Method:
        """As compiled steps take it."""
        return Method.of(self.stages, self.error, self.departure)


def _tableau(name: str, order: int, nodes, stages, lower, dense, trust: float = 0.0, doubt: float = 1.0) -> Tableau:
    """Build a tableau from the embedded weights `lower`, one per slope; their error is taken `doubt` times."""
    stages = tuple(np.array(row, dtype=np.float64) for row in stages)
    error = doubt * (np.append(stages[-1], 0.0) - np.array(lower, dtype=np.float64))
    return Tableau(name, order, np.array([0.0, *nodes]), stages, error, np.array(dense, dtype=np.float64), trust)


def _expanded(*factors: tuple[float | int, ...]) -> list[float]:
    """Coefficients of theta, theta^2, ... of a product of polynomials, each given lowest power first."""
    product = Polynomial([1.0])
    for factor in factors:
        product = product * Polynomial(factor)
    coefficients = list(product.coef[1:])
    return coefficients + [0.0] * (4 - len(coefficients))


# Bogacki and Shampine (1989), "A 3(2) pair of Runge-Kutta formulas"; dense output is the cubic Hermite polynomial.
BOSH3 = _tableau(
    "bosh3",
    3,
    nodes=[1 / 2, 3 / 4, 1],
    stages=[[1 / 2], [0, 3 / 4], [2 / 9, 1 / 3, 4 / 9]],
    lower=[7 / 24, 1 / 4, 1 / 3, 1 / 8],
    dense=[[1, -4 / 3, 5 / 9], [0, 1, -2 / 3], [0, 4 / 3, -8 / 9], [0, -1, 1]],
)

# Dormand and Prince (1980), "A family of embedded Runge-Kutta formulae", with the error weights and the quartic dense
# output of Shampine (1986), "Some practical Runge-Kutta formulas": torchdiffeq's constants, and SciPy's except for the
# error weights, which are two thirds of SciPy's.
DOPRI5 = _tableau(
    "dopri5",
    5,
    nodes=[1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1],
    stages=[
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ],
    lower=[1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60],
    dense=[
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ],
    trust=7.4,
)

# Tsitouras (2011), "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption".
_TSIT5_ERROR = [
    -0.00178001105222577714,
    -0.0008164344596567469,
    0.007880878010261995,
    -0.1447110071732629,
    0.5823571654525552,
    -0.45808210592918697,
    0.015151515151515152,
]
_TSIT5_WEIGHTS = [
    0.09646076681806523,
    0.01,
    0.4798896504144996,
    1.379008574103742,
    -3.290069515436081,
    2.324710524099774,
]
TSIT5 = _tableau(
    "tsit5",
    5,
    nodes=[0.161, 0.327, 0.9, 0.9800255409045097, 1, 1],
    stages=[
        [0.161],
        [-0.008480655492356989, 0.335480655492357],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
        [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
        _TSIT5_WEIGHTS,
    ],
    lower=[w + e for w, e in zip([*_TSIT5_WEIGHTS, 0.0], _TSIT5_ERROR, strict=True)],
    dense=[
        _expanded(
            (-1.0530884977290216,), (0, 1), (-1.3299890189751412, 1), (0.7139816917074209, -1.4364028541716351, 1)
        ),
        _expanded((0.1017,), (0, 0, 1), (1.2949852507374631, -2.1966568338249754, 1)),
        _expanded((2.490627285651252793,), (0, 0, 1), (1.57803468208092486, -2.38535645472061657, 1)),
        _expanded((-16.54810288924490272,), (0, 0, 1), (-1.21712927295533244, 1), (-0.61620406037800089, 1)),
        _expanded((47.37952196281928122,), (0, 0, 1), (-1.203071208372362603, 1), (-0.658047292653547382, 1)),
        _expanded((-34.87065786149660974,), (0, 0, 1), (-1.2, 1), (-0.666666666666666667, 1)),
        _expanded((2.5,), (0, 0, 1), (-1, 1), (-0.6, 1)),
    ],
    trust=4.5,
)

# Bogacki and Shampine (1996), "An efficient Runge-Kutta (4,5) pair", with the second of its two estimates. It hardly
# looks at the slopes at a step's end and is taken one and a half times: as it stands, one in 120 rows of random
# equations ended beyond ten tolerances of 1e-5. The dense output is the polynomial of degree 4 that keeps order 4 and
# the slopes at both ends, ends like dopri5's (last row) and treats the fifth slope and the seventh alike: that is free.
BS5 = _tableau(
    "bs5",
    5,
    nodes=[1 / 6, 2 / 9, 3 / 7, 2 / 3, 3 / 4, 1, 1],
    stages=[
        [1 / 6],
        [2 / 27, 4 / 27],
        [183 / 1372, -162 / 343, 1053 / 1372],
        [68 / 297, -4 / 11, 42 / 143, 1960 / 3861],
        [597 / 22528, 81 / 352, 63099 / 585728, 58653 / 366080, 4617 / 20480],
        [174197 / 959244, -30942 / 79937, 8152137 / 19744439, 666106 / 1039181, -29421 / 29068, 482048 / 414219],
        [587 / 8064, 0, 4440339 / 15491840, 24353 / 124800, 387 / 44800, 2152 / 5985, 7267 / 94080],
    ],
    lower=[2479 / 34992, 0, 123 / 416, 612941 / 3411720, 43 / 1440, 2272 / 6561, 79937 / 1113912, 3293 / 556956],
    dense=[
        [1, -6409 / 2016, 1051 / 288, -11269 / 8064],
        [0, 0, 0, 0],
        [0, 12398103 / 3872960, -2907981 / 553280, 7254279 / 3098368],
        [0, 302869 / 280800, -386561 / 280800, 110789 / 224640],
        [0, -1161 / 11200, 387 / 1600, -1161 / 8960],
        [0, -28192 / 17955, 11744 / 2565, -9512 / 3591],
        [0, -7267 / 7840, 7267 / 3360, -7267 / 6272],
        [0, 3 / 2, -4, 5 / 2],
    ],
    trust=16.7,
    doubt=1.5,
)

# Prince and Dormand (1981), "High order embedded Runge-Kutta formulae", RK8(7)13M, made FSAL by a 14th evaluation; the
# dense output's constants are those of torchdiffeq.
DOPRI8 = _tableau(
    "dopri8",
    8,
    nodes=[
        1 / 18,
        1 / 12,
        1 / 8,
        5 / 16,
        3 / 8,
        59 / 400,
        93 / 200,
        5490023248 / 9719169821,
        13 / 20,
        1201146811 / 1299019798,
        1,
        1,
        1,
    ],
    stages=[
        [1 / 18],
        [1 / 48, 1 / 16],
        [1 / 32, 0, 3 / 32],
        [5 / 16, 0, -75 / 64, 75 / 64],
        [3 / 80, 0, 0, 3 / 16, 3 / 20],
        [29443841 / 614563906, 0, 0, 77736538 / 692538347, -28693883 / 1125000000, 23124283 / 1800000000],
        [
            16016141 / 946692911,
            0,
            0,
            61564180 / 158732637,
            22789713 / 633445777,
            545815736 / 2771057229,
            -180193667 / 1043307555,
        ],
        [
            39632708 / 573591083,
            0,
            0,
            -433636366 / 683701615,
            -421739975 / 2616292301,
            100302831 / 723423059,
            790204164 / 839813087,
            800635310 / 3783071287,
        ],
        [
            246121993 / 1340847787,
            0,
            0,
            -37695042795 / 15268766246,
            -309121744 / 1061227803,
            -12992083 / 490766935,
            6005943493 / 2108947869,
            393006217 / 1396673457,
            123872331 / 1001029789,
        ],
        [
            -1028468189 / 846180014,
            0,
            0,
            8478235783 / 508512852,
            1311729495 / 1432422823,
            -10304129995 / 1701304382,
            -48777925059 / 3047939560,
            15336726248 / 1032824649,
            -45442868181 / 3398467696,
            3065993473 / 597172653,
        ],
        [
            185892177 / 718116043,
            0,
            0,
            -3185094517 / 667107341,
            -477755414 / 1098053517,
            -703635378 / 230739211,
            5731566787 / 1027545527,
            5232866602 / 850066563,
            -4093664535 / 808688257,
            3962137247 / 1805957418,
            65686358 / 487910083,
        ],
        [
            403863854 / 491063109,
            0,
            0,
            -5068492393 / 434740067,
            -411421997 / 543043805,
            652783627 / 914296604,
            11173962825 / 925320556,
            -13158990841 / 6184727034,
            3936647629 / 1978049680,
            -160528059 / 685178525,
            248638103 / 1413531060,
            0,
        ],
        [
            14005451 / 335480064,
            0,
            0,
            0,
            0,
            -59238493 / 1068277825,
            181606767 / 758867731,
            561292985 / 797845732,
            -1041891430 / 1371343529,
            760417239 / 1151165299,
            118820643 / 751138087,
            -528747749 / 2220607170,
            1 / 4,
        ],
    ],
    lower=[
        13451932 / 455176623,
        0,
        0,
        0,
        0,
        -808719846 / 976000145,
        1757004468 / 5645159321,
        656045339 / 265891186,
        -3867574721 / 1518517206,
        465885868 / 322736535,
        53011238 / 667516719,
        2 / 45,
        0,
        0,
    ],
    dense=[
        [1.0, -6.69101817378376, 19.9990069333684, -30.061056828966645, 22.139650499809407, -6.34483493928604],
        [0.0] * 6,
        [0.0] * 6,
        [0.0] * 6,
        [0.0] * 6,
        [0.0, -7.614265804587268, 52.22735327929455, -121.49996277313346, 116.44221495503422, -39.61079198522025],
        [0.0, 10.728139263042887, -46.89191641810936, 83.17210046398477, -67.14513188259572, 20.376121380879144],
        [0.0, 0.5526637063753649, -0.18908932250105955, 9.572450755599366, -16.567224352749652, 7.334709882679536],
        [0.0, 4.21865626256651538, -35.70759759462221, 87.84060576772056, -89.9916014847245, 32.880177435245916],
        [0.0, -0.6627209125361598, 6.273644808324035, -17.415210777076297, 22.623748964853285, -10.158899052642676],
        [0.0, -1.2636789001135462, 10.316088127245075, -28.590328951479098, 32.23623401673554, -12.540126809878256],
        [0.0, 5.410603789859042, -34.76507698666118, 81.66309505843414, -82.10203154883598, 29.555300148451604],
        [0.0, -7.032137906794574, 47.74579710782255, -114.93752913770094, 116.26621857911195, -41.79234864243906],
        [0.0, 2.3537586759714983, -19.008209934160803, 50.2558364226176, -53.90207774663854, 20.300692582210083],
    ],
)

TABLEAUS = {tableau.name: tableau for tableau in (BOSH3, BS5, DOPRI5, TSIT5, DOPRI8)}
