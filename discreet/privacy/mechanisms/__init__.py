"""Mechanisms: one object draws the noise and states what it costs, so the two cannot disagree.

A mechanism stores only its noise multiplier, the ratio of the noise (standard deviation or Laplace
scale) to the sensitivity of what it protects; additive.py says what it offers. How far a released quantity can
move between neighbouring tables is computed in privacy/relation.py and nowhere else, so the factor 2 of the replace
relation is applied exactly once.
What most solvers use is named here; the rest is in the modules of this folder. The proofs are in
docs/guarantees/mechanisms.md.
"""

from discreet.privacy.mechanisms.additive import Additive as Additive
from discreet.privacy.mechanisms.additive import AdditiveMechanism as AdditiveMechanism
from discreet.privacy.mechanisms.additive import Gaussian as Gaussian
from discreet.privacy.mechanisms.additive import Laplace as Laplace
from discreet.privacy.mechanisms.additive import Mechanism as Mechanism
from discreet.privacy.mechanisms.additive import additive as additive
from discreet.privacy.mechanisms.aggregation import AnchoredGaussian as AnchoredGaussian
from discreet.privacy.mechanisms.aggregation import FixedSizeGaussian as FixedSizeGaussian
from discreet.privacy.mechanisms.aggregation import PoissonGaussian as PoissonGaussian
from discreet.privacy.mechanisms.aggregation import SampledMechanism as SampledMechanism
from discreet.privacy.mechanisms.aggregation import anchored_ratio as anchored_ratio
from discreet.privacy.mechanisms.selections import GumbelGreedy as GumbelGreedy
from discreet.privacy.mechanisms.selections import LaplaceGreedy as LaplaceGreedy
from discreet.privacy.mechanisms.selections import PointSelection as PointSelection
from discreet.privacy.mechanisms.selections import QuantileSelection as QuantileSelection
from discreet.privacy.mechanisms.selections import RandomTrials as RandomTrials
from discreet.privacy.mechanisms.selections import SelectionsThenFit as SelectionsThenFit
from discreet.privacy.mechanisms.selections import TopSelections as TopSelections
from discreet.privacy.mechanisms.selections import VertexSelections as VertexSelections
from discreet.privacy.relation import Sensitivity as Sensitivity
from discreet.privacy.relation import bounded_between as bounded_between
from discreet.privacy.relation import bounded_fractions as bounded_fractions
from discreet.privacy.relation import bounded_moments as bounded_moments
from discreet.privacy.relation import bounded_values as bounded_values
from discreet.privacy.relation import clipped_sum as clipped_sum
from discreet.privacy.relation import concordant_pairs as concordant_pairs
from discreet.privacy.relation import counted_rows as counted_rows
from discreet.privacy.relation import counted_values as counted_values
from discreet.privacy.relation import grouped_sums as grouped_sums
from discreet.privacy.relation import histograms_and_fractions as histograms_and_fractions
from discreet.privacy.relation import one_hot_counts as one_hot_counts
from discreet.privacy.relation import outer_products as outer_products
from discreet.privacy.relation import rank_error as rank_error
