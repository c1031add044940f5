"""Federated averaging with differential privacy as Flower ships it, for comparison at the same guarantee."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from discreet.federated.flower.in_process import InProcessGrid, task_identity
from discreet.federated.plan import FederatedPlan
from discreet.federated.simulation import Parts
from discreet.privacy import accounting

LOCAL_STEPS = 5


def averaged(plan: FederatedPlan, X: Any, y: Any, parts: Parts, step: float, clip: float, seed: int) -> Any:
    """The model of FedAvg inside DifferentialPrivacyServerSideFixedClipping: weights in scaled columns.

    The noise is such that the models of all rounds keep the plan's budget in the central model, for whole clients.
    Flower draws it from NumPy's global generator.
    """
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    logging.getLogger("flwr").setLevel(logging.ERROR)
    rows = {name: _scaled(plan, X[part], y[part]) for name, part in parts.items()}
    alpha = plan.problem.penalty.strong_convexity
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        A, target = rows[str(context.node_config["client"])]
        w = np.array(message.content["arrays"].to_numpy_ndarrays()[0])
        for _ in range(LOCAL_STEPS):
            slopes = -target / (1.0 + np.exp(target * (A @ w)))
            ridge = alpha * w
            ridge[-1] = 0.0
            w -= step * (A.T @ slopes / target.size + ridge)
        content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": 1})})
        return Message(content, reply_to=message)

    np.random.seed(seed)
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_train=1.0, fraction_evaluate=0.0), noise_multiplier(plan), clip, plan.clients
    )
    with task_identity():
        grid = InProcessGrid(app, list(parts))
        start = ArrayRecord([np.zeros(plan.dimension)])
        result = strategy.start(grid, start, num_rounds=plan.rounds)
    return result.arrays.to_numpy_ndarrays()[0]


def noise_multiplier(plan: FederatedPlan) -> float:
    """Flower's multiplier is relative to the clipping norm; a replaced client moves the mean by twice as much."""
    if plan.budget.is_infinite:
        return 0.0
    least = accounting.calibrate(lambda z: accounting.gaussian_event(z, plan.rounds), plan.budget, plan.relation)
    return float(plan.relation.factor * least)


def _scaled(plan: FederatedPlan, X: Any, y: Any) -> tuple[Any, Any]:
    from discreet.data.rows import Data

    return plan.scaling.matrix(Data(X, y), "C", plan.problem.fit_intercept).astype(np.float64), y
