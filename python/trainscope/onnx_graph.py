"""An ONNX file as this package reads it: nodes in order, initializers, what is fed and what comes
out.

Needs the package onnx; nothing here computes.
"""
import re
from collections import namedtuple

import numpy

from .errors import TrainscopeError

# op: str; domain: "" for ONNX's own; name: str; inputs, outputs: tuples of str, "" where one is
# left out; attributes: {name: int, float, str, list of these, or numpy array}; opset: int of its
# domain.
Node = namedtuple("Node", "op domain name inputs outputs attributes opset")

# Inputs of ops that are sizes, limits or fills: (op, position).
_SETTINGS = {("Clip", 1), ("Clip", 2), ("Pad", 2), ("Resize", 1), ("Resize", 2), ("Dropout", 1),
             ("Range", 0), ("Range", 1), ("Range", 2), ("OneHot", 2), ("Pow", 1),
             ("BatchNormalization", 3), ("BatchNormalization", 4)}
_MOVEMENT = {"Mul", "MatMul", "Unsqueeze", "Expand", "Concat", "Reshape", "Transpose", "Cast", "Slice"}
# Names that exporters give to constants.
_MADE_NAMES = re.compile(r"(val_|onnx::|scalar_tensor|[_/]).*|(.*_)?Constant.*|[0-9]+")


class Graph:
    """nodes: list of Node, in order; initializers: {name: numpy array}; inputs: {name: shape}, of
    what is fed; outputs: list of names; shapes: {value: shape}, as the file says. A shape is a
    tuple of int and str (or None) for sizes that are open. proto: the ModelProto.

    batch_norm: what batch norms of a file that was exported to evaluate normalize by: "batch" (the
    engine's default too), or "running". added: outputs that such nodes have here and not in the
    file.

    Raises TrainscopeError for what is no model or lies in several files of which one is missing.
    """

    def __init__(self, path, batch_norm="batch"):
        onnx = _onnx()
        self.path = str(path)
        self.added = set()
        self._batch_norm = batch_norm
        try:
            self.proto = onnx.load(self.path)
        except OSError as error:
            raise TrainscopeError(f"'{path}' cannot be read: {error.strerror or error}",
                                  6) from error
        except Exception as error:  # protobuf's own kinds of error differ between its versions
            raise TrainscopeError(f"'{path}' is no ONNX model: {_first_line(error)}") from error
        self.proto = _inlined(onnx, self.proto)
        opsets = {entry.domain: entry.version for entry in self.proto.opset_import}
        graph = self.proto.graph
        self.initializers = {each.name: onnx.numpy_helper.to_array(each)
                             for each in graph.initializer}
        self.nodes = [self._node(onnx, node, opsets) for node in graph.node]
        self.inputs = {value.name: _shape(value) for value in graph.input
                       if value.name not in self.initializers}
        self.outputs = [value.name for value in graph.output]
        self.shapes = {value.name: _shape(value)
                       for value in (*graph.value_info, *graph.output, *graph.input)}

    def _node(self, onnx, node, opsets):
        attributes = {}
        for each in node.attribute:
            if each.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                continue  # of an If, Loop or Scan: its values are within the node
            value = onnx.helper.get_attribute_value(each)
            if each.type == onnx.AttributeProto.TENSOR:
                value = onnx.numpy_helper.to_array(value)
            elif isinstance(value, bytes):
                value = value.decode()
            attributes[each.name] = value
        domain = "" if node.domain == "ai.onnx" else node.domain
        outputs = tuple(node.output)
        if node.op_type == "BatchNormalization":
            if self.proto.producer_name == "pytorch":
                attributes["sample_variance"] = 1  # PyTorch's running variance, as the engine keeps it
            if not attributes.get("training_mode", 0) and self._batch_norm == "batch":
                attributes["training_mode"] = 1
                outputs = (outputs[0], f"{outputs[0]}/mean", f"{outputs[0]}/variance")
                self.added.update(outputs[1:])
        opset = opsets.get(node.domain, opsets.get(domain, 1))
        return Node(node.op_type, domain, node.name, tuple(node.input), outputs,
                    attributes, opset)

    def statistics(self):
        """{initializer: output that is its next value} of the batch norms of a training graph."""
        updates = {}
        for node in self.nodes:
            if node.op != "BatchNormalization" or not node.attributes.get("training_mode", 0):
                continue
            for position in (1, 2):
                name = node.inputs[position + 2]
                if len(node.outputs) > position and name in self.initializers:
                    updates[name] = node.outputs[position]
        return updates

    def trainable(self):
        """Initializers that are trained where nobody says which: floats that a node reads as
        something else than a size, limit, fill or running statistic; no masks, no frequencies of
        rotary positions, and no single numbers under names that exporters make. docs/exporting.md
        has the engine's rule, which knows more."""
        read = {}
        for node in self.nodes:
            for position, name in enumerate(node.inputs):
                read.setdefault(name, []).append((node.op, position) in _SETTINGS)
        angles = self._angles()
        return [name for name, array in self.initializers.items()
                if array.dtype.kind == "f" and name in read and not all(read[name])
                and (array.size > 1 or not _MADE_NAMES.fullmatch(name))
                and name not in angles and not _is_mask(array)]

    def _angles(self):
        """Values of which nothing but Cos and Sin is computed, by way of products and movement."""
        readers = {}
        for node in self.nodes:
            for name in node.inputs:
                readers.setdefault(name, []).append(node)
        angles = set()
        for node in reversed(self.nodes):
            for name in (*node.inputs, *node.outputs):
                if name in readers and all(
                        each.op in ("Cos", "Sin") or each.op in _MOVEMENT
                        and all(output in angles for output in each.outputs)
                        for each in readers[name]):
                    angles.add(name)
        return angles


def _is_mask(array):
    """Zeros and large negative numbers, or ones on one side of the diagonal and zeros elsewhere."""
    if array.size > 1 and array.min() <= -1e4:
        return True
    square = array.reshape(array.shape[-2:]) if array.ndim >= 2 and array.size == numpy.prod(
        array.shape[-2:]) else None
    if square is None or square.shape[0] != square.shape[1] or len(square) < 2:
        return False
    ones = numpy.ones_like(square)
    return bool((square == numpy.tril(ones)).all() or (square == numpy.triu(ones)).all())


def _onnx():
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise TrainscopeError("the package onnx is not installed", 2) from error
    return onnx


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _inlined(onnx, model):
    """The model without functions of its own."""
    if not model.functions:
        return model
    try:
        from onnx.inliner import inline_local_functions
    except ImportError as error:
        raise TrainscopeError("the model holds functions, which onnx inlines from version 1.15 on: "
                              "install a newer onnx", 2) from error
    return inline_local_functions(model)


def _shape(value):
    dims = value.type.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
                 for dim in dims)
