"""The slopes and curvatures of the losses with NumPy: the same bits as `slopes`, and nothing to compile.

Losses that bring functions of their own are compiled all the same: NumPy cannot call these with arrays.
"""

from __future__ import annotations

import numpy as np

from discreet.kernels.elementary import minus_sigmoid
from discreet.kernels.forms import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED


@np.errstate(all="ignore")
def fill_slopes(code, parameter, margins, y, slopes):
    """The slopes of all rows."""
    if code == LOGISTIC:
        slopes[:] = y * minus_sigmoid(y * margins)
    elif code == SMOOTHED_HINGE:
        slopes[:] = -y * _between((1.0 + parameter - y * margins) * (0.5 / parameter), 0.0, 1.0)
    elif code == HUBER:
        slopes[:] = _between(margins - y, -parameter, parameter)
    elif code == SQUARED:
        slopes[:] = margins - y
    else:
        from discreet.kernels import slopes as compiled

        compiled.fill_slopes(code, parameter, margins, y, slopes)


@np.errstate(all="ignore")
def fill_curvatures(code, parameter, margins, y, curvatures):
    """The second derivatives of all rows, of a loss with one output; at a kink the larger one."""
    if code == LOGISTIC:
        less = np.abs(minus_sigmoid(np.abs(y * margins)))  # the probability of the less likely label
        curvatures[:] = less * (1.0 - less)
    elif code == SMOOTHED_HINGE:
        curvatures[:] = np.where(np.abs(1.0 - y * margins) <= parameter, 0.5 / parameter, 0.0)
    elif code == HUBER:
        curvatures[:] = np.abs(margins - y) <= parameter
    elif code == SQUARED:
        curvatures[:] = 1.0
    else:
        from discreet.kernels import slopes as compiled

        compiled.fill_curvatures(code, parameter, margins, y, curvatures)


def _between(value, low, high):
    """min(max(value, low), high) as Numba compiles it: NaN stays NaN."""
    value = np.where(low > value, low, value)
    return np.where(high < value, high, value)
