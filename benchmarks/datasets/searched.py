"""Tables on which searches over settings are compared, beside breast cancer of the scoreboard."""

from __future__ import annotations

import numpy as np
from framework import Dataset
from sklearn.datasets import load_digits, make_classification


def below_five():
    X, digit = load_digits(return_X_y=True)
    return X, np.where(digit < 5, 1.0, -1.0)


def drawn():
    X, y = make_classification(2_000, 10, n_informative=5, flip_y=0.1, random_state=2_000)
    return X, 2.0 * y - 1.0


searched = [
    Dataset("digits, below five", "scikit-learn", below_five, True, ("private_search",)),
    Dataset("drawn, 2,000 x 10", "generated", drawn, True, ("private_search",)),
]
