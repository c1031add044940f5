"""Private preprocessing: ranges, scales, quantiles, means, categories, gaps and smoothness constants, with their cost.

The transformers fit into a scikit-learn pipeline; each has a `guarantee_` after fit, and `pipeline_guarantee` composes
those of all steps, or says which step allows no statement. How to use them: docs/preprocessing.md; proofs:
docs/guarantees/preprocessing.md.
"""

from __future__ import annotations

from discreet.estimators.reading.column_clipper import ColumnClipper
from discreet.preprocessing.categories import DeclaredOneHotEncoder
from discreet.preprocessing.frequent_categories import PrivateFrequentCategories
from discreet.preprocessing.imputer import DeclaredImputer, PrivateImputer
from discreet.preprocessing.means import private_means
from discreet.preprocessing.pipeline import check_pipeline, pipeline_guarantee
from discreet.preprocessing.quantiles import PrivateQuantiles
from discreet.preprocessing.ranges import PrivateBounds
from discreet.preprocessing.release import Released
from discreet.preprocessing.scaler import PrivateScaler
from discreet.preprocessing.smoothness import private_smoothness

__all__ = [
    "ColumnClipper",
    "DeclaredImputer",
    "DeclaredOneHotEncoder",
    "PrivateBounds",
    "PrivateFrequentCategories",
    "PrivateImputer",
    "PrivateQuantiles",
    "PrivateScaler",
    "Released",
    "check_pipeline",
    "pipeline_guarantee",
    "private_means",
    "private_smoothness",
]
