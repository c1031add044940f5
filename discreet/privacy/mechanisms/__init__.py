"""Mechanisms: one object draws the noise and states what it costs, so the two cannot disagree.

A mechanism stores only its noise multiplier, the ratio of the noise (standard deviation or Laplace
scale) to the sensitivity of what it protects; additive.py says what it offers. How far a released quantity can
move between neighbouring tables is computed in sensitivity.py and nowhere else, so the factor 2 of the replace
relation is applied exactly once.
What most solvers use is named here; the rest is in the modules of this folder. The proofs are in
docs/guarantees/mechanisms.md.
"""

from discreet.privacy.mechanisms.additive import (
    Additive,
    AdditiveMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    SampledMechanism,
    additive,
)
from discreet.privacy.mechanisms.greedy_selections import GumbelGreedy, LaplaceGreedy
from discreet.privacy.mechanisms.random_trials import RandomTrials
from discreet.privacy.mechanisms.sampled import AnchoredGaussian, FixedSizeGaussian, PoissonGaussian, anchored_ratio
from discreet.privacy.mechanisms.selections import (
    PointSelection,
    QuantileSelection,
    SelectionsThenFit,
    TopSelections,
    VertexSelections,
)
from discreet.privacy.mechanisms.sensitivity import (
    Sensitivity,
    bounded_between,
    bounded_fractions,
    bounded_moments,
    bounded_values,
    clipped_sum,
    concordant_pairs,
    counted_rows,
    counted_values,
    grouped_sums,
    histograms_and_fractions,
    one_hot_counts,
    outer_products,
    rank_error,
)

__all__ = [
    "Additive",
    "AdditiveMechanism",
    "AnchoredGaussian",
    "FixedSizeGaussian",
    "Gaussian",
    "GumbelGreedy",
    "Laplace",
    "LaplaceGreedy",
    "Mechanism",
    "PointSelection",
    "PoissonGaussian",
    "QuantileSelection",
    "RandomTrials",
    "SampledMechanism",
    "SelectionsThenFit",
    "Sensitivity",
    "TopSelections",
    "VertexSelections",
    "additive",
    "anchored_ratio",
    "bounded_between",
    "bounded_fractions",
    "bounded_moments",
    "bounded_values",
    "clipped_sum",
    "concordant_pairs",
    "counted_rows",
    "counted_values",
    "grouped_sums",
    "histograms_and_fractions",
    "one_hot_counts",
    "outer_products",
    "rank_error",
]
