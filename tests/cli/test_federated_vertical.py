"""`discreet federated vertical`: two files become one model, and what cannot be is said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from discreet.cli.federated import vertical


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    bank, shop = rng.uniform(0, 1, (200, 2)), rng.uniform(0, 1, (200, 1))
    spent = bank @ [0.3, -0.2] + 0.5 * shop[:, 0] + 0.1
    pd.DataFrame(bank, columns=["income", "debt"]).to_csv(tmp_path / "bank.csv", index=False)
    pd.DataFrame({"visits": shop[:, 0], "spent": spent}).to_csv(tmp_path / "shop.csv", index=False)
    return [f"bank={tmp_path / 'bank.csv'}", f"shop={tmp_path / 'shop.csv'}"]


def test_without_noise_two_files_give_the_joint_model(files, capsys):
    vertical(files, "shop", "spent", epsilon=float("inf"), alpha=1e-12, json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["coef"]["bank"] == pytest.approx({"income": 0.3, "debt": -0.2}, abs=1e-5)
    assert found["coef"]["shop"] == pytest.approx({"visits": 0.5}, abs=1e-5)
    assert found["intercept"] == pytest.approx(0.1, abs=1e-5)


def test_the_plan_and_the_promise_are_shown(files, capsys):
    vertical(files, "shop", "spent", epsilon=2.0, bounds="0,1", y_bounds="0,1", plan_only=True)
    assert "shop has the target" in capsys.readouterr().out
    vertical(files, "shop", "spent", epsilon=2.0, bounds="0,1", y_bounds="0,1")
    text = capsys.readouterr().out
    assert "promised about one person's row at bank" in text
    assert "shop.visits" in text


def test_what_does_not_fit_together_is_refused(files, tmp_path):
    with pytest.raises(ValueError, match="--labels must be"):
        vertical(files, "bank", "spent")
    with pytest.raises(ValueError, match="NAME=FILE"):
        vertical([files[0], files[0]], "bank", "income")
    with pytest.raises(ValueError, match="0 and 1"):
        vertical(files, "shop", "spent", task="classification")
    pd.DataFrame({"other": [1.0]}).to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(ValueError, match="same people"):
        vertical([*files, f"short={tmp_path / 'short.csv'}"], "shop", "spent")
