"""The results of audits as a page: tables in Markdown, between two marks of a file that people have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.audit.campaign import NOT_PLACED, Tally
from discreet.audit.membership import AttackCurve
from discreet.audit.one_run import OneRun
from discreet.audit.planted import FaultAudit
from discreet.audit.reconstruction import Reconstruction
from discreet.audit.suite import SolverAudit

BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def results_page(
    campaign: Sequence[Tally],
    solvers: Sequence[SolverAudit],
    planted: Mapping[str, FaultAudit],
    one_runs: Mapping[str, OneRun],
    curves: Mapping[str, AttackCurve],
    found: Mapping[float, Reconstruction],
) -> str:
    """All results, in the order of the page."""
    parts = [
        "### Planted faults",
        planted_table(planted),
        "### A million replayed releases",
        campaign_summary(campaign),
        campaign_table(campaign),
        "### Every solver under every relation",
        solver_table(solvers),
        "### One run with canaries",
        "\n".join(f"- {name}: {result}." for name, result in one_runs.items()),
        "### Membership inference",
        membership_table(curves),
        "![Membership inference](audits-membership.png)",
        "### Reconstruction from gradients",
        reconstruction_table(found),
        "![Reconstruction](audits-reconstruction.png)",
    ]
    return "\n\n".join(parts)


def write_results(page: Path, text: str) -> None:
    """Put the results between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def planted_table(planted: Mapping[str, FaultAudit]) -> str:
    """Each fault, and whether it was found beside the right implementation."""
    rows = [
        [name, audit.tool, "accepted" if audit.right else "REJECTED", "found" if audit.wrong else "MISSED", audit.shown]
        for name, audit in planted.items()
    ]
    return _table(["fault", "found by", "right implementation", "fault", "what the audit says"], rows)


def solver_table(solvers: Sequence[SolverAudit]) -> str:
    """Each solver under each relation that it takes."""
    rows = []
    for audit in solvers:
        if audit.refused is not None:
            continue
        attained = "" if audit.attained is None else f"{audit.attained:.4f}"
        mu = "" if audit.mu is None else f"{audit.mu:.2f} of {audit.promised_mu:.2f}"
        fault = "MISSED" if audit.fault is None else f"found at {audit.fault:g}"
        verdict = "yes" if audit.passed else "NO: " + "; ".join(audit.problems)
        rows.append([audit.name, audit.relation, attained, f"{audit.epsilon:.2f}", mu, fault, verdict])
    return _table(
        ["solver", "relation", "epsilon attained", "epsilon shown", "mu shown", "less noise", "kept its promise"], rows
    )


def campaign_summary(tallies: Sequence[Tally]) -> str:
    """How many releases were replayed, and what contradicts a promise."""
    releases, replays = sum(tally.releases for tally in tallies), sum(tally.replays for tally in tallies)
    violations = [f"{tally.cell}: {text}" for tally in tallies for text in tally.violations]
    found = sum(tally.wrong is not None for tally in tallies)
    lines = [
        f"**{releases:,} releases in {replays:,} replays, {len(violations)} violations.** A wrong distance was planted "
        f"in each of {len(tallies)} combinations of a solver, a relation and a kind of table, and found in {found}."
    ]
    return "\n".join([*lines, *(f"- VIOLATION: {text}" for text in violations)])


def campaign_table(tallies: Sequence[Tally]) -> str:
    """The replays of each solver under each relation, over all kinds of tables."""
    rows = []
    for name, relation in dict.fromkeys((tally.cell.name, tally.cell.relation) for tally in tallies):
        own = [tally for tally in tallies if (tally.cell.name, tally.cell.relation) == (name, relation)]
        places = [tally.cell.place for tally in own if tally.cell.place != NOT_PLACED]
        replays, releases = sum(tally.replays for tally in own), sum(tally.releases for tally in own)
        factors = [tally.wrong for tally in own if tally.wrong is not None]
        wrong = f"found at {min(factors):g}" if len(factors) == len(own) else "MISSED"
        violations = sum(len(tally.violations) for tally in own)
        counts = [f"{replays:,}", f"{releases:,}", f"{max(tally.largest for tally in own):.4f}", str(violations)]
        rows.append([name, str(relation), ", ".join(places), *counts, wrong])
    header = ["what", "relation", "tables", "replays", "releases", "largest move", "violations", "wrong distance"]
    return _table(header, rows)


def membership_table(curves: Mapping[str, AttackCurve]) -> str:
    """How well membership was inferred."""
    rows = []
    for label, curve in curves.items():
        private = curve.guarantee is not None and curve.guarantee.is_private
        false, true = curve.allowed()
        most = f"{float((true - false).max()):.3f}" if private else "1"
        rows.append([label, f"{curve.area:.3f}", f"{curve.advantage:.3f}", most])
    return _table(["model", "area under the curve", "advantage", "most advantage that is allowed"], rows)


def reconstruction_table(found: Mapping[float, Reconstruction]) -> str:
    """How often records were found."""
    rows = [
        [f"{epsilon:g}", f"{result.rate:.3f}", f"{result.limits()[0]:.3f}", f"{result.allowed:.3f}", str(result.trials)]
        for epsilon, result in found.items()
    ]
    header = ["epsilon", "found", "the chance is at least (confidence 99.9 %)", "most that is allowed", "trials"]
    return _table(header, rows)
