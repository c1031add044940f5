"""Opacus (PyTorch) on a linear model: stochastic gradient descent, in its own environment.

Gradients are clipped at 1; passes, batches, steps and noise are in the question. It is told the true range of every
column and of the target.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from exchange import answer
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

CLIP = 1.0
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
    model = train(X, torch.tensor(y, dtype=torch.float32), classes, asked)
    with torch.no_grad():
        found = model(held_out)[:, 0].numpy().astype(np.float64)
    return found if classes else 0.5 * (low + high) + 0.5 * (high - low) * found


def train(X: torch.Tensor, y: torch.Tensor, classes: int, asked: dict[str, np.ndarray]) -> torch.nn.Module:
    loss = torch.nn.BCEWithLogitsLoss() if classes else torch.nn.MSELoss()
    model = torch.nn.Linear(X.shape[1], 1)
    batches = int(asked["batches"])  # of a pass, in the mean: each row is in a batch with probability 1 / batches
    loader = DataLoader(Rows(X, y), batch_size=math.ceil(len(y) / batches), collate_fn=lambda batch: batch)
    if len(loader) != batches:
        raise ValueError(f"{len(y)} rows cannot be split into {batches} batches, for which the noise is")
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=float(asked["step"])),
        data_loader=loader,
        noise_multiplier=float(asked["noise_multiplier"]),
        max_grad_norm=CLIP,
    )
    for _ in range(int(asked["passes"])):
        for rows, targets in loader:
            optimizer.zero_grad()
            loss(model(rows)[:, 0], targets).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    answer(scores)
