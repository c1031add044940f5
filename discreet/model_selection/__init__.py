"""Choosing among models privately, and what the models of a cross-validation cost together.

How to use it: docs/model_selection.md; proofs: docs/guarantees/model-selection.md and private-search.md.
"""

from __future__ import annotations

from discreet.model_selection.folds import folds_guarantee
from discreet.model_selection.private_grid_search import PrivateGridSearch
from discreet.model_selection.private_scores import PrivateScores, cross_val_score_private
from discreet.model_selection.private_search import PrivateSearchCV

__all__ = ["PrivateGridSearch", "PrivateScores", "PrivateSearchCV", "cross_val_score_private", "folds_guarantee"]
