"""Tables for held-out scores: two of scikit-learn with declared bounds, four stored ones with nothing declared."""

import functools

from framework import Dataset
from sklearn.datasets import load_breast_cancer, load_diabetes
from stored_tables import load_benchmark

from discreet.demo import declared_bounds

STORED = {  # name: source, whether a classification
    "electricity": ("Elec2, OpenML 151", True),
    "adult": ("UCI Adult, categories as indicators", True),
    "acsincome_co": ("folktables, ACSIncome, Colorado", True),
    "california": ("StatLib houses, as scikit-learn gives it", False),
}


def signs(load):
    """Labels -1 and +1."""
    X, y = load()
    return X, 2.0 * y - 1.0


accuracy_tables = [
    Dataset(
        "breast cancer, declared bounds",
        "scikit-learn",
        functools.partial(signs, functools.partial(load_breast_cancer, return_X_y=True)),
        True,
        ("accuracy",),
        facts={"declared": {"bounds": declared_bounds()}},
    ),
    Dataset(
        "diabetes, declared bounds",
        "scikit-learn",
        functools.partial(load_diabetes, return_X_y=True),
        False,
        ("accuracy",),
        facts={"declared": {"bounds": (-0.2, 0.2), "y_bounds": (0.0, 350.0)}},
    ),
    *(
        Dataset(
            f"{name}, nothing declared",
            source,
            functools.partial(signs, functools.partial(load_benchmark, name))
            if labels
            else functools.partial(load_benchmark, name),
            labels,
            ("accuracy",),
            name,
        )
        for name, (source, labels) in STORED.items()
    ),
]
