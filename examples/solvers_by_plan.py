"""Solvers compared by their plans.

Plans see no rows, so comparing them costs nothing. Which solver auto takes, what noise it expects, and when it says
that a constant would do.
"""

from discreet import LogisticRegression

print(f"{'rows':>7} {'columns':>8} {'epsilon':>8}  auto takes  noise of a coefficient")
for rows, columns, epsilon in [
    (100, 5, 1.0),
    (1_000, 5, 1.0),
    (1_000, 20, 0.3),
    (50_000, 20, 0.3),
    (200_000, 100, 0.1),
]:
    plan = LogisticRegression(epsilon=epsilon, bounds=(0, 1), classes=[0, 1]).plan(rows, columns)
    noise = "not predicted" if plan.standard_error is None else f"{plan.standard_error:.3f}"
    warned = "  (warns: a constant may be as good)" if plan.warnings() else ""
    print(f"{rows:>7,} {columns:>8,} {epsilon:>8g}  {plan.solver.name:<10}  {noise}{warned}")

print("\nthe same table, several solvers: 5,000 rows, 20 columns, epsilon 1")
for solver in ("newton", "gd", "cd", "sgd"):
    plan = LogisticRegression(solver=solver, bounds=(0, 1), classes=[0, 1]).plan(5_000, 20)
    releases = sum(release.times for release in plan.releases)
    noise = "not predicted" if plan.standard_error is None else f"{plan.standard_error:.3f}"
    print(f"{solver:<8} {releases:>4} noisy releases, noise of a coefficient {noise}")
