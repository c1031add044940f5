"""How much is lost by a private choice, a random linear term in the objective, or noise on a minimiser.

Choices are those of one candidate, of a draw, and of the vertices of Frank-Wolfe. Theorems and proofs:
docs/guarantees/utility.md, Lemmas S1 and S2, Theorems S4 and S6 to S8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet.theory.bound import Bound, excess_bound
from discreet.theory.distance import NoiseKind, NoiseNorm

MANY_CANDIDATES = 10**100  # for more, ln^2(candidates) + pi^2 / 3 stands for the dilogarithm


@dataclass(frozen=True)
class SelectionError:
    """The gap e between the largest score and that of the selected candidate, whatever the scores are.

    Parameters
    ----------
    scale : float
        b: candidate j is selected with probability proportional to exp(score_j / b).
    candidates : int
        How many there are.

    Examples
    --------
    >>> from discreet.theory.selections import SelectionError
    >>> error = SelectionError(scale=0.5, candidates=10)
    >>> round(error.mean, 3), round(error.quantile(0.01), 3)
    (1.151, 3.396)
    """

    scale: float
    candidates: int

    def __post_init__(self) -> None:
        number_in("scale", self.scale, 0.0)
        whole("candidates", self.candidates, least=1)

    @property
    def mean(self) -> float:
        """A bound on the expected gap: b ln(candidates)."""
        return self.scale * math.log(self.candidates)

    @property
    def mean_square(self) -> float:
        """A bound on the expected squared gap: -2 b^2 Li_2(1 - candidates), about b^2 (ln^2(candidates - 1) + 3.3)."""
        from scipy.special import spence

        square = self.scale * self.scale  # infinite where ** would raise
        if self.candidates > MANY_CANDIDATES:
            return square * (math.log(self.candidates) ** 2 + math.pi**2 / 3.0)
        return max(-2.0 * square * float(spence(float(self.candidates))), 0.0)

    def quantile(self, failure: float) -> float:
        """Return what the gap exceeds with probability at most `failure`."""
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        odds = (self.candidates - 1) * (1.0 - failure) / failure
        return self.scale * math.log(max(odds, 1.0))

    def weighted_sum(self, total: float, largest: float, failure: float | None) -> float:
        """Bound the sum of the gaps of many selections, each of which may depend on those before it.

        The gaps have weights that sum up to `total`, each at most `largest`. The bound is one on the expectation, or on
        what is exceeded with probability at most `failure`.
        """
        if failure is None:
            return total * self.mean
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        return total * self.mean + largest * self.scale * math.log(1.0 / failure)


S8_SOURCE = "docs/guarantees/utility.md, Theorem S8; Thakurta's chapter, (6.15), has a larger constant"


def exponential_bound(
    rate: float,
    *,
    columns: int | None = None,
    candidates: int | None = None,
    covering: float = 0.0,
    objective: Literal["mean", "sum"] = "sum",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss of one draw with probability proportional to exp(-rate * loss).

    Parameters
    ----------
    rate : float
        c, what the loss is multiplied by.
    columns : int, optional
        For a density on a convex, bounded set of this dimension and a convex loss.
    candidates : int, optional
        For a draw from this many candidates, any loss. Give one of the two.
    covering : float, default=0
        With candidates: by how much the best of them may exceed the optimum, n L h for a sum of n losses with Lipschitz
        constant L and candidates within distance h of every point.
    objective : {"sum", "mean"}
        Which loss the rate multiplies and the bound is about.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound
        For a convex set, `settings["printed"]` is the larger bound of the literature, (4/c)((p+1) ln 3 + t) with
        t = ln(1/failure).

    Examples
    --------
    >>> from discreet.theory import exponential_bound
    >>> exponential_bound(0.1, columns=2).value
    20.0
    >>> bound = exponential_bound(0.1, columns=2, failure=0.01)
    >>> round(bound.value, 1), round(bound.settings["printed"], 1)
    (97.8, 316.0)
    """
    rate, covering = number_in("rate", rate, 0.0, above=True), number_in("covering", covering, 0.0)
    one_of("objective", objective, ("mean", "sum"))
    if (columns is None) == (candidates is None):
        raise ValueError("give columns (a convex set) or candidates (a finite list), and not both.")
    settings, assumptions = {"rate": rate}, ["the draw is exact"]
    if candidates is not None:
        error = SelectionError(1.0 / rate, whole("candidates", candidates, least=1))
        value = covering + (error.mean if failure is None else error.quantile(failure))
        where = f"over {candidates} candidates"
    else:
        if covering:
            raise ValueError("covering belongs to candidates; a density on the whole set has none.")
        p = whole("columns", columns, least=1)
        value = p / rate if failure is None else _gamma_tail(p, failure) / rate
        where = "over the set"
        assumptions.append("loss and set are convex, and the set is bounded")
        if failure is not None:
            settings["printed"] = 4.0 / rate * ((p + 1) * math.log(3.0) + math.log(1.0 / failure))
    return excess_bound(value, f"{objective} of the losses {where}", S8_SOURCE, failure, assumptions, settings)


def _gamma_tail(shape: int, failure: float) -> float:
    """The x >= shape with (x / shape)^shape e^(shape - x) = failure: Chernoff's bound on a Gamma variable."""
    from scipy.optimize import brentq

    wanted = math.log(1.0 / number_in("failure", failure, 0.0, 1.0, above=True))
    high = 2.0 * (shape + wanted)  # ln(x / shape) <= x / (2 shape) + ln 2 - 1 makes it enough

    def missing(x: float) -> float:
        return x - shape - shape * math.log(x / shape) - wanted

    while missing(high) < 0.0:
        high *= 2.0
    return float(brentq(missing, shape, high)) * (1.0 + 1e-12) if wanted > 0.0 else float(shape)


S4_SOURCE = "docs/guarantees/utility.md, Theorem S4; after Jaggi (2013), with the steps of Thakurta's chapter corrected"


def frank_wolfe_bound(
    steps: int,
    vertices: int,
    *,
    selection_scale: float,
    curvature: float,
    schedule: Literal["2/(t+2)", "constant"] = "2/(t+2)",
    gap: float | None = None,
    objective: Literal["mean", "sum"] = "mean",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss after Frank-Wolfe with Gumbel noise in the choices.

    At step t = 0, 1, ... a vertex s is selected with probability proportional to exp(-<s, gradient> / scale), and w
    moves its share of the way to s: 2/(t+2), or ln(T+1)/T at all T steps.

    Parameters
    ----------
    steps : int
        T, the number of selections.
    vertices : int
        Number of vertices of the set.
    selection_scale : float
        Scale of the noise on <s, gradient>.
    curvature : float
        Gamma: f(w + a (s - w)) <= f(w) + a <s - w, gradient> + a^2 Gamma / 2 for w and s in the set and a in [0, 1].
        At most the squared diameter of the set times the smoothness, in any norm.
    schedule : {"2/(t+2)", "constant"}
    gap : float, optional
        Bound on the excess of the start; needed with constant shares, which do not forget it at once.
    objective : {"mean", "sum"}
        Whether scale, curvature and gap are those of the mean of the losses or of their sum; so is the bound.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import frank_wolfe_bound
    >>> bound = frank_wolfe_bound(100, 20, selection_scale=0.001, curvature=1.0)
    >>> round(bound.value, 4)
    0.022
    """
    steps, curvature = whole("steps", steps, least=1), number_in("curvature", curvature, 0.0)
    one_of("schedule", schedule, ("2/(t+2)", "constant"))
    one_of("objective", objective, ("mean", "sum"))
    error = SelectionError(selection_scale, whole("vertices", vertices, least=1))
    if schedule == "2/(t+2)":
        harmonic = math.fsum(1.0 / k for k in range(1, steps + 2))
        bent = 2.0 * curvature * (steps + 1.0 - harmonic) / (steps * (steps + 1.0))
        value = bent + error.weighted_sum(1.0, 2.0 / (steps + 1.0), failure)
    else:
        if gap is None:
            raise ValueError("schedule='constant' needs gap: a bound on the excess of the start.")
        share = math.log(steps + 1.0) / steps
        left = (1.0 - share) ** steps
        value = left * number_in("gap", gap, 0.0) + (1.0 - left) * 0.5 * share * curvature
        value += error.weighted_sum(1.0 - left, share, failure)
    assumptions = ("the loss is convex", "no entry of a row's gradient is clipped", "there is no intercept")
    of, settings = f"{objective} of the losses over the set", {"steps": float(steps)}
    return excess_bound(value, of, S4_SOURCE, failure, assumptions, settings)


S7_SOURCE = "docs/guarantees/utility.md, Theorem S7; Thakurta's chapter, (6.36), has four times the first term"


def objective_perturbation_bound(
    columns: int,
    *,
    noise: float,
    radius: float,
    ridge: float | None = None,
    kind: NoiseKind = "gaussian",
    objective: Literal["mean", "sum"] = "sum",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss of the minimiser of loss + ridge/2 |w|^2 + <b, w>, b random.

    Parameters
    ----------
    columns : int
        Number of coefficients, the intercept included.
    noise : float
        Standard deviation of an entry of b ("gaussian"), or the scale of its density exp(-norm / scale) ("spherical":
        the norm has a Gamma distribution).
    radius : float
        Norm of the vector with which the result is compared: the optimum.
    ridge : float, optional
        Delta; by default the one for which the bound is least. Privacy asks for one that is large enough.
    kind : {"gaussian", "spherical"}
    objective : {"sum", "mean"}
        Which loss the noise, the ridge and the bound belong to. Going from the sum over n rows to the mean divides all
        three by n.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound
        E|b|^2 / (2 Delta) + Delta/2 radius^2. `settings["printed"]` is the bound of the literature, whose first term is
        2 E|b|^2 / Delta.

    Examples
    --------
    >>> from discreet.theory import objective_perturbation_bound
    >>> bound = objective_perturbation_bound(4, noise=3.0, radius=2.0)
    >>> bound.value, bound.settings["ridge"]
    (12.0, 3.0)
    """
    one_of("objective", objective, ("mean", "sum"))
    radius, norm = number_in("radius", radius, 0.0), NoiseNorm(kind, noise, columns)
    square = norm.mean_square if failure is None else norm.quantile(failure) ** 2
    if ridge is None:
        if radius == 0.0 or square == 0.0:
            raise ValueError("without radius or noise there is no best ridge; give ridge.")
        ridge = math.sqrt(square) / radius
    ridge = number_in("ridge", ridge, 0.0, above=True)
    bias = 0.5 * ridge * radius**2
    assumptions = ("the loss is convex", "the perturbed objective is minimised exactly")
    settings = {"ridge": ridge, "printed": 2.0 * square / ridge + bias}
    of = f"{objective} of the losses over the optimum"
    return excess_bound(0.5 * square / ridge + bias, of, S7_SOURCE, failure, assumptions, settings)


S6_SOURCE = "docs/guarantees/utility.md, Theorem S6"


def output_perturbation_bound(
    columns: int,
    *,
    noise: float,
    kind: NoiseKind = "gaussian",
    smoothness: float = math.inf,
    lipschitz: float = math.inf,
    ridge: float = 0.0,
    radius: float | None = None,
    error: float = 0.0,
    objective: Literal["mean", "sum"] = "mean",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of loss plus ridge at its minimiser with noise added.

    Parameters
    ----------
    columns : int
        Number of coefficients, the intercept included.
    noise : float
        Standard deviation of an entry of the noise ("gaussian"), or the scale of the density exp(-norm / scale)
        ("spherical", pure differential privacy).
    kind : {"gaussian", "spherical"}
    smoothness : float, optional
        Bound on the curvature of the loss, without the ridge.
    lipschitz : float, optional
        Bound on the norm of the loss's gradient, without the ridge. Give this one, smoothness, or both.
    ridge : float, default=0
        The objective is the loss plus ridge/2 |w|^2.
    radius : float, optional
        Bound on the norm of the minimiser: needed for `lipschitz` with a ridge and `failure`.
    error : float, default=0
        How far from the minimiser the vector may be that gets the noise; needs smoothness.
    objective : {"mean", "sum"}
        Whether the constants are those of the mean of the losses or of their sum; so is the bound.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import output_perturbation_bound
    >>> round(output_perturbation_bound(10, noise=0.1, smoothness=0.25, ridge=0.01).value, 6)
    0.013
    """
    one_of("objective", objective, ("mean", "sum"))
    smoothness, lipschitz = at_least_zero("smoothness", smoothness), at_least_zero("lipschitz", lipschitz)
    ridge, error = number_in("ridge", ridge, 0.0), number_in("error", error, 0.0)
    if math.isinf(smoothness) and (math.isinf(lipschitz) or error > 0.0):
        raise ValueError("give smoothness or lipschitz; an error of the minimiser needs smoothness.")
    norm = NoiseNorm(kind, noise, columns)
    if failure is None:
        bent = _product(0.5 * smoothness, norm.mean_square)
        value = min(bent, _product(lipschitz, norm.mean)) + _product(0.5 * ridge, norm.mean_square)
        value += _product(0.5 * (smoothness + ridge), error**2)
    else:
        length = norm.quantile(failure) + error
        steep = math.inf
        if not math.isinf(lipschitz) and (ridge == 0.0 or radius is not None):
            steep = lipschitz * length + ridge * length * (number_in("radius", radius or 0.0, 0.0) + 0.5 * length)
        value = min(_product(0.5 * (smoothness + ridge), length**2), steep)
        if math.isinf(value):
            raise ValueError("lipschitz with a ridge and failure needs radius: a bound on the norm of the minimiser.")
    assumptions = ("the loss is convex", "there is no other penalty and no constraint")
    of, settings = f"{objective} of the losses plus ridge", {"noise": norm.scale}
    return excess_bound(value, of, S6_SOURCE, failure, assumptions, settings)


def _product(factor: float, square: float) -> float:
    """A product in which a factor of 0 makes 0, whatever the other one is: no noise, or nothing that it acts on."""
    return 0.0 if square == 0.0 or factor == 0.0 else factor * square
