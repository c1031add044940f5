"""Sparse columns: words of short texts.

A vocabulary that is fixed beforehand, a sparse table of counts, and a logistic regression that never makes it dense.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from discreet import LogisticRegression

rng = np.random.default_rng(0)
ill = ["cough", "fever", "pain", "tired", "nausea"]
other = ["appointment", "bill", "address", "insurance", "letter"]
filler = [f"word{k}" for k in range(40)]


def message(urgent: bool) -> str:
    own = rng.choice(ill if urgent else other, 2)
    return " ".join([*own, *rng.choice(filler, 5)])


labels = rng.integers(0, 2, 12_000)
texts = [message(bool(label)) for label in labels]

# A vocabulary that is learned from the texts would tell who used a rare word: pass a public one.
words = CountVectorizer(vocabulary=[*ill, *other, *filler], binary=True)
X = words.transform(texts)
print(f"{X.shape[0]:,} texts, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in a text")

model = LogisticRegression(epsilon=1.0, bounds=(0, 1), classes=[0, 1]).fit(X, labels)
strongest = np.argsort(-np.abs(model.coef_[0]))[:10]
names = np.array([*ill, *other, *filler])
print("solver:", model.plan_.solver.name)
print("words with the largest coefficients:", ", ".join(names[strongest]))
print(f"accuracy {model.score(X, labels):.2f}")
