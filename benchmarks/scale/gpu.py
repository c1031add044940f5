"""Sums and fits on a GPU against the processor beside it, in one run: the parts of experiments/gpu.py."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from discreet import LogisticRegression
from discreet.data.gpu_rows import GpuRows
from discreet.data.loading import CheckedTable
from discreet.data.rows import Data
from discreet.estimators.fitting import declarations, keep_fit, plan_fit, run_settings
from discreet.kernels import tensors
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.problem.scaled_block import BlockScaling, PartOfScaled
from discreet.solvers._shared.full_batch import clipped_sum
from discreet.solvers.run import run_plan

COLUMNS, CLIP, STEP = 50, 2.0, 2.0**-20
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True, eq=False)
class HostRows(Data):
    """Rows in memory whose plan is that of rows on a GPU: with the same seed they get the same noise."""

    @property
    def in_memory(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class TimedRows(GpuRows):
    """Rows on a GPU that note which sums took how long."""

    def sum(self, part):
        inner = getattr(part, "part", part)
        began, found = time.perf_counter(), super().sum(part)
        TIMES[getattr(inner, "func", inner).__name__].append(time.perf_counter() - began)
        return found


TIMES: dict[str, list[float]] = defaultdict(list)


def median_seconds(task, repeats):
    """The median time of a task, after one call to warm up."""
    task()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        task()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def table(rows, seed=0):
    """Normal columns and labels that follow from three of them, made on the device."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    X = torch.empty(rows, COLUMNS, device=DEVICE)
    for start in range(0, rows, 1 << 22):
        X[start : start + (1 << 22)].normal_(generator=generator)
    noise = torch.empty(rows, device=DEVICE).normal_(generator=generator)
    y = torch.where(X[:, 0] - 0.5 * X[:, 1] + 0.25 * X[:, 2] + noise > 0.0, 1.0, -1.0)
    return X, y.double().cpu().numpy()


def gradient_part(loss, w, clip=CLIP, step=STEP):
    """The sum of the clipped and rounded gradients of a block at w."""
    return PartOfScaled(partial(clipped_sum, w=w, clip=clip, step=step), BlockScaling(SCALING, loss, True, False))


SCALING = identity_scaling(COLUMNS)


def check_sums(rows=200_000):
    """Largest differences, in steps, between device and processor, and laws that hold to the last bit."""
    X, y = table(rows, seed=1)
    host, w = X.cpu().numpy(), np.linspace(-0.3, 0.3, COLUMNS + 1)
    found = {}
    for loss in (Logistic(), SmoothedHinge(0.5), Huber(1.0), Squared()):
        part = gradient_part(loss, w)
        gpu, cpu = GpuRows(X, y).sum(part), Data(host, y).sum(part)
        found[f"{loss.name}: steps between GPU and CPU"] = float(np.abs(gpu - cpu).max() / STEP)
        order = torch.randperm(rows, device=DEVICE)
        mixed = GpuRows(X[order].contiguous(), y[order.cpu().numpy()]).sum(part)
        found[f"{loss.name}: same bits in another order"] = bool((mixed == gpu).all())
        last, less = (GpuRows(X[part_of], y[part_of]).sum(part) for part_of in (slice(-1, None), slice(0, -1)))
        found[f"{loss.name}: a row less takes its own term away"] = bool((less + last == gpu).all())
        plain = gradient_by_operations(X, y, loss, w)
        found[f"{loss.name}: steps between the kernel and plain operations"] = float(np.abs(plain - gpu).max() / STEP)
    whole = torch.round(4.0 * X)
    part = gradient_part(Squared(), np.round(8.0 * w) / 8.0, clip=1e6, step=0.125)
    exact = GpuRows(whole, y).sum(part) == Data(whole.cpu().numpy(), y).sum(part)
    found["integers, squared loss: the same sums"] = bool(exact.all())
    X[:5, :3] = torch.tensor([[1e38, -1e38, 0.0]], device=DEVICE)
    found["huge entries: finite sums"] = bool(np.isfinite(GpuRows(X, y).sum(gradient_part(Squared(), w * 1e300))).all())
    return found


def gradient_by_operations(X, y, loss, w):
    """The same sum without the fused kernel."""
    used = tensors.runs_fused
    tensors.runs_fused = lambda X: False
    try:
        return GpuRows(X, y).sum(gradient_part(loss, w))
    finally:
        tensors.runs_fused = used


def time_sums(rows):
    """Milliseconds of a clipped gradient sum on the device and on the processor, and of the copy."""
    X, y = table(rows)
    part = gradient_part(Logistic(), np.linspace(-0.3, 0.3, COLUMNS + 1))
    cores = os.cpu_count() or 1
    on_device = GpuRows(X, y, jobs=cores)
    found = {"gpu_ms": 1e3 * median_seconds(partial(on_device.sum, part), 20)}
    gpu = on_device.sum(part)
    host = X.cpu().numpy()
    del X, on_device
    began = time.perf_counter()
    again = torch.from_numpy(host).to(DEVICE)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    found["copy_ms"] = 1e3 * (time.perf_counter() - began)
    del again
    data = Data(host, y, jobs=cores)
    found["cpu_all_ms"] = 1e3 * median_seconds(partial(data.sum, part), 5)
    two = Data(host, y, jobs=2)
    two.__dict__["_views"] = data._views  # with the norms that are kept beside them
    found["cpu_two_ms"] = 1e3 * median_seconds(partial(two.sum, part), 3)
    found["steps_between"] = float(np.abs(gpu - data.sum(part)).max() / STEP)
    found |= {"rows": rows, "cores": cores}
    found |= {f"{who}_over_gpu": found[f"cpu_{who}_ms"] / found["gpu_ms"] for who in ("all", "two")}
    found["two_over_gpu_with_copy"] = found["cpu_two_ms"] / (found["gpu_ms"] + found["copy_ms"])
    return found


def model():
    return LogisticRegression(classes=[-1, 1], solver="newton", random_state=0)


def fit_rows(rows):
    """A fit of validated rows; with the same seed and plan the same noise, wherever the rows lie."""
    estimator = model()
    estimator.classes_, estimator.n_features_in_ = np.array([-1, 1]), rows.columns
    loaded = CheckedTable(rows, classes=estimator.classes_)
    plan = plan_fit(estimator, loaded.public(**declarations(estimator)))
    keep_fit(estimator, run_plan(plan, rows, **run_settings(estimator)), loaded)
    return estimator


def time_fits(rows):
    """Seconds of a whole private fit with learned scales, and how far the models are apart."""
    X, y = table(rows, seed=2)
    cores = os.cpu_count() or 1
    fit_rows(GpuRows(X[:1_000_000], y[:1_000_000], jobs=cores))
    TIMES.clear()
    began = time.perf_counter()
    gpu = fit_rows(TimedRows(X, y, jobs=cores))
    found = {"gpu_s": time.perf_counter() - began}
    found["gpu_sums_s"] = {name: [len(each), sum(each)] for name, each in TIMES.items()}
    began = time.perf_counter()
    if DEVICE == "cuda":
        model().fit(X, y)
        found["gpu_with_checks_s"] = time.perf_counter() - began
    host = X.cpu().numpy()
    fit_rows(HostRows(host[:100_000], y[:100_000], jobs=cores))
    for name, jobs in {"cpu_all_s": cores, "cpu_two_s": 2}.items():
        began = time.perf_counter()
        cpu = fit_rows(HostRows(host, y, jobs=jobs))
        found[name] = time.perf_counter() - began
    apart = np.abs(gpu.coef_ - cpu.coef_).max() / np.abs(cpu.coef_).max()
    return found | {"rows": rows, "steps": int(gpu.n_iter_), "largest_relative_difference": float(apart)}


PARTS = {"checks": check_sums, "sums": time_sums, "fits": time_fits}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    named = {"device": torch.cuda.get_device_name(0) if DEVICE == "cuda" else "cpu"}
    print(json.dumps(named | PARTS[sys.argv[1]](int(sys.argv[2]))))
