"""Scoring elsewhere: SQL and ONNX.

A model as one SELECT, run in SQLite, and as an ONNX graph; both clip as the model does and predict the same.
"""

import sqlite3

import numpy as np
import pandas as pd

from discreet import LogisticRegression

rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.normal(50, 15, 5_000), "income": rng.lognormal(10, 0.5, 5_000)})
y = np.where(rng.logistic(size=5_000) < 0.06 * (X["age"] - 50), "ill", "well")
model = LogisticRegression(bounds={"age": (18, 100), "income": (0, 200_000)}, classes=["ill", "well"]).fit(X, y)

query = model.to_sql("patients", keep="id")
print(query.splitlines()[0], "...", f"({len(query)} characters of standard SQL)")
database = sqlite3.connect(":memory:")
X.assign(id=range(len(X))).to_sql("patients", database, index=False)
scored = pd.read_sql_query(query, database).set_index("id").sort_index()
print("SQL predicts the same:", bool((scored["prediction"].to_numpy() == model.predict(X)).all()))
database.close()

graph = model.to_onnx()
print("ONNX graph:", ", ".join(node.op_type for node in graph.graph.node))

pipeline = model.to_pipeline()
print(
    "scikit-learn pipeline:",
    [name for name, _ in pipeline.steps],
    bool((pipeline.predict(X) == model.predict(X)).all()),
)
