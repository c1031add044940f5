"""Categories and missing values in a pipeline.

A messy table: texts with declared categories, gaps that are filled with a declared number, and one guarantee for all
steps.
"""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from discreet import LogisticRegression
from discreet.preprocessing import DeclaredImputer, DeclaredOneHotEncoder, pipeline_guarantee

rng = np.random.default_rng(0)
n = 8_000
people = pd.DataFrame(
    {
        "age": rng.normal(45, 12, n).clip(18, 95),
        "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(10, 0.6, n)),
        "region": rng.choice(["north", "south", "abroad", None], n, p=[0.4, 0.4, 0.1, 0.1]),
    }
)
moved = (rng.logistic(size=n) < (45 - people["age"]) / 8 + (people["region"] == "south")).astype(int)

columns = ColumnTransformer(
    [
        ("region", DeclaredOneHotEncoder(categories=["north", "south"], missing_indicator=True), ["region"]),
        ("gaps", DeclaredImputer(fill_value={"income": 20_000}, add_indicator=True), ["income"]),
        ("rest", "passthrough", ["age"]),
    ],
    sparse_threshold=0,
    verbose_feature_names_out=False,
).set_output(transform="pandas")
bounds = {"age": (18, 100), "income": (0, None), "missingindicator_income": (0, 1)}
pipeline = make_pipeline(columns, LogisticRegression(epsilon=1.0, bounds=bounds, classes=[0, 1])).fit(people, moved)

promise = pipeline_guarantee(pipeline)  # refuses a pipeline with a step that learned without noise
print("columns:", ", ".join(columns.get_feature_names_out()))
print(f"accuracy {pipeline.score(people, moved):.2f}")
print(f"all steps together: epsilon {promise.epsilon:.2f} at delta {promise.delta:.1e}")
