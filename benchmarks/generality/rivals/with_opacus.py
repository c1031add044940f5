"""Opacus (PyTorch) on a linear model: stochastic gradient descent with its default accountant, in its own environment.

The settings are fixed and not tuned: 20 passes in batches of a quarter of the rows, gradients clipped at 1, steps of
0.5. It is told the true range of every column and of the target. Neighbours differ by one row more or less.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from pathlib import Path

import numpy as np
import torch
from exchange import answer
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset

PASSES, SHARE, CLIP, STEP = 20, 0.25, 1.0, 0.5
TOLERANCE = 0.02  # of epsilon, in the search for the noise
torch.set_num_threads(1)


class Rows(TensorDataset):
    """Rows that are read a batch at a time, which is much faster than one by one."""

    def __getitems__(self, places: list[int]) -> tuple[torch.Tensor, ...]:
        return self[places]


def scores(asked: dict[str, np.ndarray]) -> np.ndarray:
    warnings.simplefilter("ignore")
    torch.manual_seed(int(asked["seed"]))
    X, held_out = (torch.tensor(asked[name], dtype=torch.float32) for name in ("X", "held_out"))  # columns in [-1, 1]
    classes, low, high = int(asked["classes"]), float(asked["low"]), float(asked["high"])
    y = asked["y"] if classes else (2.0 * asked["y"] - low - high) / (high - low)
    model = train(X, torch.tensor(y, dtype=torch.float32), classes, float(asked["epsilon"]))
    with torch.no_grad():
        found = model(held_out)[:, 0].numpy().astype(np.float64)
    return found if classes else 0.5 * (low + high) + 0.5 * (high - low) * found


def train(X: torch.Tensor, y: torch.Tensor, classes: int, epsilon: float) -> torch.nn.Module:
    loss = torch.nn.BCEWithLogitsLoss() if classes else torch.nn.MSELoss()
    model = torch.nn.Linear(X.shape[1], 1)
    loader = DataLoader(Rows(X, y), batch_size=round(SHARE * len(y)), collate_fn=lambda batch: batch)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=STEP),
        data_loader=loader,
        noise_multiplier=noise_multiplier(len(y), epsilon),
        max_grad_norm=CLIP,
    )
    for _ in range(PASSES):
        for rows, targets in loader:
            optimizer.zero_grad()
            loss(model(rows)[:, 0], targets).backward()
            optimizer.step()
    return model


@functools.cache
def noise_multiplier(rows: int, epsilon: float) -> float:
    """Opacus' own search, which takes seconds; its results do not depend on data and are kept in a folder."""
    path = Path(os.environ["NOISE_MULTIPLIERS"]) / f"{rows}-{epsilon:g}.json"
    if not path.exists():
        found = get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=1.0 / rows**2,
            sample_rate=1.0 / round(1.0 / SHARE),
            steps=round(PASSES / SHARE),
            accountant="prv",
            epsilon_tolerance=TOLERANCE * epsilon,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return float(json.loads(path.read_text()))


if __name__ == "__main__":
    answer(scores)
