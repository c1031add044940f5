"""A fitted model as an ONNX graph in double precision: clip, multiply, add, and turn scores into answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.estimators.reading.linear_form import LARGEST_LOG, LinearForm

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

OPSET = 17  # of the standard operators; runtimes since 2022 know it
IR_VERSION = 8  # the file format that belongs to it


def onnx_model(form: LinearForm, name: str, guarantee: Guarantee) -> Any:
    """The checked `onnx.ModelProto` of a form; its metadata hold the columns and the guarantee."""
    onnx = _onnx()
    graph = _Graph(onnx, form)
    graph.add_outputs()
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes, "".join(c for c in name if c.isalnum()), graph.inputs, graph.outputs, graph.constants
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="discreet",
        doc_string="Entries are clipped to the range of their column, as the private fit did, before the linear form.",
    )
    onnx.helper.set_model_props(
        made,
        {
            "estimator": name,
            "columns": json.dumps(form.shown_names),
            "epsilon": str(guarantee.epsilon),
            "delta": str(guarantee.delta),
            "relation": str(guarantee.relation),
            "leaks": json.dumps(guarantee.leaks),
        },
    )
    onnx.checker.check_model(made)
    return made


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise RuntimeError("to_onnx needs the package onnx: pip install 'discreet[onnx]'.") from None
    return onnx


class _Graph:
    """Nodes and constants of the graph, in the order in which they are added."""

    def __init__(self, onnx: Any, form: LinearForm) -> None:
        self.onnx, self.form = onnx, form
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs = [self._value("X", np.dtype(np.float64), [None, form.columns])]
        self.outputs: list[Any] = []

    def _value(self, name: str, dtype: Any, shape: list[Any]) -> Any:
        helper = self.onnx.helper
        text = np.dtype(dtype).kind in "OU"
        kind = self.onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, shape)

    def _constant(self, name: str, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype.kind in "OU":
            texts = [str(text).encode() for text in array.tolist()]
            made = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, list(array.shape), texts)
        else:
            made = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(made)
        return name

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _output(self, name: str, dtype: Any, shape: list[Any]) -> None:
        self.outputs.append(self._value(name, dtype, shape))

    def add_outputs(self) -> None:
        """Everything from the rows to the answers."""
        scores = self._scores()
        if self.form.link == "log":
            scores = self._exponential(scores)
        if self.form.classes is None:
            self._flat(scores, "prediction")
            self._output("prediction", np.float64, [None])
            return
        self._label(scores)
        if self.form.link != "none":
            self._probabilities(scores)

    def _scores(self) -> str:
        """One score per row and output."""
        form = self.form
        above = self._node("Max", ["X", self._constant("low", form.low)], "not_below")
        clipped = self._node("Min", [above, self._constant("high", form.high)], "clipped")
        products = self._node("MatMul", [clipped, self._constant("coef", form.coef.T)], "products")
        return self._node("Add", [products, self._constant("intercept", form.intercept)], "scores")

    def _exponential(self, scores: str) -> str:
        above = self._node("Max", [scores, self._constant("least_log", np.float64(-LARGEST_LOG))], "log_not_below")
        near = self._node("Min", [above, self._constant("largest_log", np.float64(LARGEST_LOG))], "log")
        return self._node("Exp", [near], "mean")

    def _flat(self, scores: str, name: str) -> str:
        return self._node("Squeeze", [scores, self._constant(f"{name}_axis", np.array([1]))], name)

    def _label(self, scores: str) -> None:
        """The class of the largest score, the first one of equals; for two classes the second if its score is > 0."""
        classes = np.array(self.form.labels)  # numbers as such, also where the model holds them as objects
        if classes.size == 2:
            score = self._flat(scores, "score")
            positive = self._node("Greater", [score, self._constant("zero", np.float64(0.0))], "positive")
            index = self._node("Cast", [positive], "index", to=self.onnx.TensorProto.INT64)
        else:
            self._node("Identity", [scores], "score")
            index = self._node("ArgMax", [scores], "index", axis=1, keepdims=0)
        self._node("Gather", [self._constant("classes", classes), index], "label", axis=0)
        self._output("label", classes.dtype, [None])
        self._output("score", np.float64, [None] if classes.size == 2 else [None, classes.size])

    def _probabilities(self, scores: str) -> None:
        outputs = len(self.form.labels)
        if self.form.link == "softmax":
            self._node("Softmax", [scores], "probabilities", axis=1)
        elif self.form.link == "sigmoid":
            both = self._node("Concat", [self._node("Neg", [scores], "negative"), scores], "both", axis=1)
            self._node("Sigmoid", [both], "probabilities")
        else:
            self._normalised(self._node("Sigmoid", [scores], "each"), outputs)
        self._output("probabilities", np.float64, [None, outputs])

    def _normalised(self, each: str, outputs: int) -> None:
        """Probabilities of one class against the rest, over their sum; all alike where every one is 0."""
        total = self._node("ReduceSum", [each, self._constant("class_axis", np.array([1]))], "total", keepdims=1)
        none = self._node("Equal", [total, self._constant("nothing", np.float64(0.0))], "none")
        divisor = self._node("Where", [none, self._constant("one", np.float64(1.0)), total], "divisor")
        shares = self._node("Div", [each, divisor], "shares")
        even = self._constant("even", np.full((1, outputs), 1.0 / outputs))
        self._node("Where", [none, even, shares], "probabilities")
