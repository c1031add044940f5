"""Numbers per row of rows on a device are computed on the host, without the rows: a tensor of CUDA is no array."""

import numpy as np
import pytest

from discreet.problem.losses import Logistic, Squared
from discreet.problem.scaled_block import GpuBlock


class OnDevice:
    """Rows of which the host knows the shape alone."""

    def __init__(self, *shape):
        self.shape = shape

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


class Rows:
    def __init__(self, X):
        self.X, self.weight = X, None


@pytest.mark.parametrize("rows", [20, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["logistic", "squared"])
def test_slopes_and_curvatures_need_no_row_on_the_host(rows, loss):
    rng = np.random.default_rng(0)
    margins, y = rng.normal(size=rows), np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    compiled = loss.forms, (loss.code, float(loss.parameter))
    block = GpuBlock(Rows(OnDevice(rows, 3)), None, y, loss, True, False, *compiled)
    np.testing.assert_allclose(block.slopes_at(margins), loss.slope(margins, y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(block.curvatures_at(margins), loss.curvature(margins, y), rtol=1e-12, atol=1e-14)
    with pytest.raises(TypeError):
        np.asarray(block.data.X)
