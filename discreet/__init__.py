"""discreet: linear and generalised linear models on sensitive tables, with differential privacy.

Names are loaded on first use, so that `import discreet` and `discreet --help` stay cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "LogisticRegression": "estimators",
    "LinearSVC": "estimators",
    "LinearRegression": "estimators",
    "Ridge": "estimators",
    "Lasso": "estimators",
    "ElasticNet": "estimators",
    "HuberRegressor": "estimators",
    "PoissonRegressor": "estimators",
    "GammaRegressor": "estimators",
    "Budget": "privacy.budget",
    "Relation": "privacy.relation",
    "Ledger": "privacy.ledger",
    "Problem": "problem.problem",
    "PublicModel": "data.public_inputs",
    "PublicTable": "data.public_inputs",
    "solve": "solvers.run",
    "Guarantee": "privacy.guarantee",
    "save_model": "estimators.model_file",
    "load_model": "estimators.model_file",
    "pause_stream": "estimators.paused_stream",
    "resume_stream": "estimators.paused_stream",
    "PrivacyLeakWarning": "_common.exceptions",
    "InsecureRandomnessWarning": "_common.exceptions",
    "NotPrivateWarning": "_common.exceptions",
    "UtilityWarning": "_common.exceptions",
    "BudgetExceededError": "_common.exceptions",
    "IncompatibleSolverError": "_common.exceptions",
    "preprocessing": "preprocessing",
    "model_selection": "model_selection",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet import model_selection as model_selection
    from discreet import preprocessing as preprocessing
    from discreet._common.exceptions import BudgetExceededError as BudgetExceededError
    from discreet._common.exceptions import IncompatibleSolverError as IncompatibleSolverError
    from discreet._common.exceptions import InsecureRandomnessWarning as InsecureRandomnessWarning
    from discreet._common.exceptions import NotPrivateWarning as NotPrivateWarning
    from discreet._common.exceptions import PrivacyLeakWarning as PrivacyLeakWarning
    from discreet._common.exceptions import UtilityWarning as UtilityWarning
    from discreet.data.public_inputs import PublicModel as PublicModel
    from discreet.data.public_inputs import PublicTable as PublicTable
    from discreet.estimators import ElasticNet as ElasticNet
    from discreet.estimators import GammaRegressor as GammaRegressor
    from discreet.estimators import HuberRegressor as HuberRegressor
    from discreet.estimators import Lasso as Lasso
    from discreet.estimators import LinearRegression as LinearRegression
    from discreet.estimators import LinearSVC as LinearSVC
    from discreet.estimators import LogisticRegression as LogisticRegression
    from discreet.estimators import PoissonRegressor as PoissonRegressor
    from discreet.estimators import Ridge as Ridge
    from discreet.estimators.model_file import load_model as load_model
    from discreet.estimators.model_file import save_model as save_model
    from discreet.estimators.paused_stream import pause_stream as pause_stream
    from discreet.estimators.paused_stream import resume_stream as resume_stream
    from discreet.privacy.budget import Budget as Budget
    from discreet.privacy.guarantee import Guarantee as Guarantee
    from discreet.privacy.ledger import Ledger as Ledger
    from discreet.privacy.relation import Relation as Relation
    from discreet.problem.problem import Problem as Problem
    from discreet.solvers.run import solve as solve
