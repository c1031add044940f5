"""Pictures of attacks beside what the guarantee allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from discreet._common.plotting import picture
from discreet.audit.membership import AttackCurve
from discreet.audit.reconstruction import Reconstruction


def plot_membership(curves: Mapping[str, AttackCurve], path: str | Path) -> None:
    """Draw the curves of attacks; the area above what each guarantee allows is out of reach for any attack.

    Parameters
    ----------
    curves : mapping
        For each label an AttackCurve.
    path : str or Path
        Where to write the picture.
    """
    with picture(path, figsize=(6.0, 5.2), layout="constrained") as (_, axes):
        for i, (label, curve) in enumerate(curves.items()):
            colour = f"C{i}"
            axes.plot(curve.false_positives, curve.true_positives, color=colour, label=f"attack, {label}")
            if curve.guarantee is not None and curve.guarantee.is_private:
                axes.plot(*curve.allowed(), color=colour, linestyle="--", label=f"most that is allowed, {label}")
        axes.plot([0.0, 1.0], [0.0, 1.0], color="grey", linewidth=0.8, label="guessing")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.005), xlabel="non-members called members")
        axes.set(ylabel="members called members", title="Membership inference")
        axes.legend(loc="lower right", fontsize=8)


def plot_reconstruction(results: Mapping[float, Reconstruction], path: str | Path) -> None:
    """Draw how often a record was found at each epsilon, below the curve of what the guarantees allow.

    Parameters
    ----------
    results : mapping
        For each epsilon (infinity for no privacy) a Reconstruction.
    path : str or Path
        Where to write the picture.
    """
    private = {epsilon: result for epsilon, result in results.items() if np.isfinite(epsilon)}
    any_result = next(iter(results.values()))
    epsilons = np.array(sorted(private))
    low, high = np.array([private[e].limits() for e in epsilons]).T
    rates = np.array([private[e].rate for e in epsilons])
    with picture(path, figsize=(6.0, 4.4), layout="constrained") as (_, axes):
        axes.plot(epsilons, [private[e].allowed for e in epsilons], "--", color="C0", label="most that is allowed")
        axes.errorbar(epsilons, rates, [rates - low, high - rates], fmt="o", color="C0", capsize=3, label="found")
        if np.inf in results:
            axes.axhline(results[np.inf].rate, color="C1", label="found without privacy")
        guessing = f"guessing, 1/{any_result.candidates}"
        axes.axhline(1.0 / any_result.candidates, color="grey", linewidth=0.8, label=guessing)
        axes.set(xscale="log", ylim=(0.0, 1.03), xlabel="epsilon", ylabel="records found exactly")
        axes.set_title("Reconstruction of a record from gradients")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons], minor=False)
        axes.minorticks_off()
        axes.legend(loc="center left", fontsize=8)
