"""Estimates with intervals as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet._common.blocks import Facts, Groups, Table, Text, numbers_of
from discreet._common.text import one_line, paragraph

if TYPE_CHECKING:
    from discreet.inference.results import Inference


def blocks_of(found: Inference, alpha: float, shown: Sequence[int] | None = None) -> Groups:
    """The table with what its words mean, or the reasons why there is none."""
    if not found.valid:
        return [[Text(paragraph(one_line(reason))) for reason in found.reasons]]
    names = header(alpha)
    return [
        [Table("", names, tuple(lines(found, alpha, shown)), numbers_of(names))],
        [Facts(tuple(notes(found, alpha).items()))],
    ]


def header(alpha: float) -> tuple[str, ...]:
    """The names of the columns of the table."""
    return "", "estimate", "std err", "of it noise", "z", "P>|z|", f"[{alpha / 2:.3g}", f"{1.0 - alpha / 2:.3g}]"


def lines(found: Inference, alpha: float, shown: Sequence[int] | None = None) -> list[tuple[str, ...]]:
    """One line for each of these columns, or for all, and one for the intercept."""
    size = len(found.names)
    places = range(size) if shown is None else [*shown, *range(size - found.has_intercept, size)]
    ends = found.conf_int(alpha)
    columns = (found.params, found.bse, found.noise, found.tvalues, found.pvalues, ends[:, 0], ends[:, 1])
    kinds = ("{:.4g}", "{:.3g}", "{:.3g}", "{:.2f}", "{:.3f}", "{:.4g}", "{:.4g}")
    return [
        (
            one_line(found.names[k], longest=30),
            *(kind.format(column[k]) for kind, column in zip(kinds, columns, strict=True)),
        )
        for k in places
    ]


def notes(found: Inference, alpha: float) -> dict[str, str]:
    """What the words mean."""
    told = {
        "estimate": "per unit of the column; not shrunk, so that it differs from coef_, which is for prediction.",
        "std err": "of sampling and privacy noise together: its square is that of the noise plus that of sampling.",
        "interval": f"holds the true coefficient in {1.0 - alpha:.4g} of fits; docs/inference.md says when.",
    }
    if found.robust:
        told["robust"] = "large residuals count less: the usual coefficient if errors are symmetric around 0."
    return told
