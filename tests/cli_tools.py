"""What the tests of the command line share: a table, and a way to run commands that accepts no crash."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from discreet.cli.app import app

ROWS = 1_500


def make_table(rows=ROWS, task="binary"):
    """Three columns of uneven scale and a target they explain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 0.0]
    margin = 2.0 * X[:, 0] - 0.1 * (X[:, 1] - 5.0) + 0.3 * rng.normal(size=rows)
    y = (margin > 0).astype(int) if task == "binary" else 10.0 * margin + 4.0
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def run(*arguments, code=0, piped=None):
    """Run a command; an error must be one line on stderr, and nothing may look like a crash."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=piped)
    assert "Traceback" not in result.output
    assert result.exit_code == code, result.output
    if code:
        lines = result.stderr.strip().splitlines()
        assert [line for line in lines if not line.startswith("warning: ")] == lines[-1:]
        assert lines[-1].startswith("error: ")
        assert result.stdout == ""
    return result
