"""Values of a reference's graph by the interpreter in f64 and f32: noise of each, and kinks.

A kink is where a derivative jumps (Relu at 0, a tie in MaxPool): an element nearer to it than its
rounding error may go the other way in a correct run.
"""
from collections import namedtuple

import numpy
import torch
from torch.nn import functional

from .interpreter import Interpreter
from .losses import loss_of
from .reference_runs import as_f64, relative
from .summary import statistics_of

# Of a float value: node: int, its place; value, op: str; exact, single: f64 arrays, by f64 and f32
# runs; gradient, single_gradient: the same of the loss's gradient, or None.
ValueRow = namedtuple("ValueRow", "node value op exact single gradient single_gradient")


class GraphNumbers:
    """All float values of a batch. loss: float, by f64; rows: [ValueRow]; gradients: {parameter:
    f64 array}; kink: (margin in units of the f32 error, value), (inf, "") without kinks."""

    def __init__(self, graph, trainable, loss, batch):
        exact, single = (_run(graph, trainable, loss, batch, dtype) for dtype in ("f64", "f32"))
        self.loss = exact[2]
        self.gradients = {name: as_f64(exact[1][name]) if name in exact[1] else
                          numpy.zeros(graph.initializers[name].shape) for name in trainable}
        self.rows, self.kink = [], (float("inf"), "")
        for place, node in enumerate(graph.nodes):
            if node.op == "Constant":
                continue
            for name in node.outputs:
                if name and exact[0][name].is_floating_point():
                    self.rows.append(ValueRow(
                        place, name, node.op, as_f64(exact[0][name]), as_f64(single[0][name]),
                        _or_none(exact[1], name), _or_none(single[1], name)))
            self._meet_kink(node, exact[0], single[0])

    def _meet_kink(self, node, exact, single):
        distance = _distance_to_kink(node, exact)
        if distance is None or distance.size == 0:
            return
        source = node.inputs[0]
        error = numpy.abs(as_f64(single[source]) - as_f64(exact[source])).max()
        margin = float(distance.min() / error) if error > 0.0 else float("inf")
        if margin < self.kink[0]:
            self.kink = (margin, node.outputs[0])


def _or_none(gradients, name):
    return as_f64(gradients[name]) if name in gradients else None


def _run(graph, trainable, loss, batch, dtype):
    """(values, gradients, loss) of a batch, in f64 or f32."""
    module, gradients = Interpreter(graph, trainable, dtype), {}
    module.watch_gradient = gradients.__setitem__
    values = module.run(batch)
    result = loss_of(loss, values[loss["output"]], batch[loss["label"]])
    result.backward()
    return values, gradients, float(result.detach())


def _distance_to_kink(node, values):
    """f64 [..]: how far elements are from where the node's derivative jumps, or None.

    Elements that are exactly there in f64 are left out: they are there in every precision (a Relu
    of a Relu, padding).
    """
    x = values[node.inputs[0]].detach().double() if node.inputs else None
    if node.op in ("Relu", "LeakyRelu", "Abs", "PRelu", "Elu"):
        distance = x.abs()
    elif node.op == "HardSwish":
        distance = torch.minimum((x - 3.0).abs(), (x + 3.0).abs())
    elif node.op == "Clip":
        limits = [float(values[name]) for name in node.inputs[1:] if name]
        limits += [node.attributes[key] for key in ("min", "max") if key in node.attributes]
        if not limits:
            return None
        distance = torch.stack([(x - limit).abs() for limit in limits]).amin(0)
    elif node.op == "MaxPool" and x.dim() == 4:
        distance = _gap_of_largest(node, x)
    else:
        return None
    distance = distance.numpy().reshape(-1)
    return distance[distance > 0.0]


def _gap_of_largest(node, x):
    """f64 [windows]: the largest element of each window of [N, C, H, W] less the one after it."""
    height, width = node.attributes["kernel_shape"]
    top, left, bottom, right = node.attributes.get("pads", [0] * 4)
    padded = functional.pad(x, [left, right, top, bottom], value=-1e300)
    windows = functional.unfold(padded.flatten(0, 1)[:, None], (height, width),
                                dilation=tuple(node.attributes.get("dilations", (1, 1))),
                                stride=tuple(node.attributes.get("strides", (1, 1))))
    if windows.shape[1] < 2:
        return torch.zeros(0)
    largest = windows.topk(2, 1).values
    return (largest[:, 0] - largest[:, 1]).reshape(-1)


def values_table(rows):
    """The text of values.tsv."""
    lines = ["\t".join(("node", "value", "op", "shape", "nonfinite", "mean", "std", "min", "max", "l2",
                        "f32_rel_l2", "f32_max_abs", "grad_l2", "grad_f32_rel_l2",
                        "grad_f32_max_abs"))]
    for row in rows:
        s = statistics_of(row.exact.reshape(-1))
        finite = numpy.isfinite(row.exact)
        gap = numpy.abs(row.single[finite] - row.exact[finite])
        cells = [row.node, row.value, row.op, shape_text(row.exact.shape),
                 int((~finite).sum()), *map(digits, (s.mean, s.std, s.least, s.most, s.l2)),
                 digits(relative(row.single, row.exact)), digits(gap.max() if gap.size else 0.0)]
        if row.gradient is None or row.single_gradient is None:
            cells += ["-"] * 3
        else:
            gap = numpy.abs(row.single_gradient - row.gradient)
            cells += [digits(numpy.linalg.norm(row.gradient)),
                      digits(relative(row.single_gradient, row.gradient)),
                      digits(gap.max() if gap.size else 0.0)]
        lines.append("\t".join(str(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def shape_text(shape):
    return "x".join(str(size) for size in shape) or "scalar"


def digits(number):
    """A number of a table, to four digits."""
    return f"{float(number):.4g}"
