"""A block of rows on a GPU in scaled columns. Nothing here adds noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_slopes
from discreet.problem.scaled_block import UnscaledBlock

if TYPE_CHECKING:
    from discreet.kernels.tensors import TensorRows


class RowVector(np.ndarray[Any, Any]):
    """One number per row, on the host and, as `tensor`, on the device: what is asked for at every step stays there.

    It cannot be written to, as the other copy would not follow; what NumPy computes of it has no tensor.
    """

    tensor: Any = None

    @classmethod
    def of(cls, tensor: Any) -> RowVector:
        """The vector of a tensor."""
        vector: RowVector = np.asarray(tensor.cpu().numpy(), dtype=np.float64).view(cls)
        vector.tensor = tensor
        vector.flags.writeable = False
        return vector


@dataclass(frozen=True, eq=False)
class GpuBlock(UnscaledBlock):
    """Rows in a tensor, `data.X`, scaled on its device whenever they are read, in double precision.

    Numbers per row are arrays on the host, as in every block; targets, weights and norms have a copy on the device.
    """

    @cached_property
    def _on_device(self) -> TensorRows:
        from discreet.kernels.tensors import TensorRows

        return TensorRows(self.data.X, self._columns, self.intercept)

    @cached_property
    def _targets(self) -> Any:
        return self._on_device.tensor(self.y)

    @cached_property
    def _weights(self) -> Any:
        return None if self.weight is None else self._on_device.tensor(self.weight)

    @property
    def X(self) -> Any:  # noqa: N802 - the name of the field in the other blocks
        return self._on_device.matrix()

    @cached_property
    def norms(self) -> FloatArray:
        return RowVector.of(self._on_device.norms())

    def mapped_norms(self, matrix: FloatArray) -> FloatArray:
        return RowVector.of(self._on_device.norms(matrix))

    def outer_products(self, factors: FloatArray, unit: float, matrix: FloatArray | None = None) -> FloatArray:
        return self._on_device.outer_products(self._tensor(factors), unit, matrix)

    def margins(self, w: FloatArray) -> FloatArray:
        return RowVector.of(self._on_device.margins(w))

    def slopes(self, w: FloatArray) -> FloatArray:
        if "tensor_slope" not in self.forms:
            return self.loss.slope(np.asarray(self.margins(w)), self.y)
        return RowVector.of(self._on_device.slopes(w, self._targets, self.code))

    def gradient_sum(self, w: FloatArray, norms: FloatArray, clip: float, step: float = 0.0) -> FloatArray:
        rows = self._on_device
        if "tensor_slope" in self.forms:
            return rows.gradient_sum(w, self._targets, self.code, self._tensor(norms), clip, self._weights, step)
        factors = clipped_slopes(self.slopes(w), np.asarray(norms), clip, self.weight)
        sums = rows.factor_sum(self._tensor(factors.reshape(self.y.size, -1)), step)
        return sums if w.ndim > 1 else sums[0]

    def _tensor(self, values: FloatArray) -> Any:
        """One number per row on the device: the copy that lies there, if there is one."""
        kept = getattr(values, "tensor", None)
        return self._on_device.tensor(np.asarray(values)) if kept is None else kept
