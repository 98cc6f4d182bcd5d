"""Runs an ONNX graph node by node on torch tensors, with autograd: every value and its gradient.

    module = Interpreter(Graph("model.onnx"), dtype="f32")
    values = module.run({"x": x})
    loss_of(about, values["logits"], labels).backward()

Each op is one call or a few of PyTorch, as torch_ops and torch_layer_ops have them: nothing is
fused, so that a value of the graph is a tensor of the run.
"""
import contextlib

import torch

from . import torch_layer_ops, torch_recurrent_ops  # noqa: F401  (enter their ops)
from .errors import TrainscopeError
from .torch_ops import OPS, tensor_of

DTYPES = {"f32": torch.float32, "f64": torch.float64}


@contextlib.contextmanager
def floats_as(dtype):
    """Floats that are made within have this torch type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Interpreter:
    """A graph with its parameters and running statistics.

    graph: onnx_graph.Graph; trainable: names of the initializers to train (default:
    graph.trainable()); dtype: "f32" or "f64", of all that is float32 or float64 in the file.

    parameters: {name: leaf tensor}; statistics: {name: tensor} of batch norms; watch: called with
    (node, name, tensor) for every output of a node as it is made, if set; watch_gradient: with
    (name, gradient) for every gradient of such an output, and of a parameter, as it is made.

    Raises TrainscopeError for an op that is not known, naming all of them, and for names in
    `trainable` that are no float initializers.
    """

    def __init__(self, graph, trainable=None, dtype="f32"):
        self.graph = graph
        self.dtype = DTYPES[dtype]
        self.watch = None
        self.watch_gradient = None
        unknown = sorted({node.domain and f"{node.domain}.{node.op}" or node.op
                          for node in graph.nodes if node.domain or node.op not in OPS})
        if unknown:
            raise TrainscopeError(f"'{graph.path}' has ops that the interpreter lacks: "
                                  f"{', '.join(unknown)}")
        names = graph.trainable() if trainable is None else list(trainable)
        for name in names:
            if name not in graph.initializers or graph.initializers[name].dtype.kind != "f":
                raise TrainscopeError(f"'{name}' is no float initializer of '{graph.path}'", 2)
        with floats_as(self.dtype):
            held = {name: tensor_of(array) for name, array in graph.initializers.items()}
        self.updates = graph.statistics()
        self.statistics = {name: held[name] for name in self.updates}
        self.parameters = {name: held[name].requires_grad_() for name in names}
        self._constants = {name: tensor for name, tensor in held.items()
                           if name not in self.parameters and name not in self.statistics}
        for name, parameter in self.parameters.items():
            parameter.register_hook(self._told_of(name))

    def _told_of(self, name):
        def told(gradient):
            if self.watch_gradient is not None and gradient is not None:
                self.watch_gradient(name, gradient)
        return told

    def run(self, inputs):
        """{name: tensor} of all values. inputs: {name: tensor or numpy array}; floats are
        converted.

        Running statistics stay as they are until update_statistics(). Raises TrainscopeError for
        inputs that are missing or do not fit.
        """
        values = {**self._constants, **self.statistics, **self.parameters}
        with floats_as(self.dtype):
            for name in self.graph.inputs:
                if name not in inputs:
                    raise TrainscopeError(f"input '{name}' of '{self.graph.path}' is missing", 2)
                values[name] = self._fed(name, inputs[name])
            for node in self.graph.nodes:
                self._run_node(node, values)
        return values

    def _fed(self, name, tensor):
        tensor = tensor if torch.is_tensor(tensor) else tensor_of(tensor)
        expected = self.graph.inputs[name]
        fits = len(expected) == tensor.dim() and all(
            not isinstance(size, int) or size == 0 or size == actual
            for size, actual in zip(expected, tensor.shape))
        if expected and not fits:
            raise TrainscopeError(f"input '{name}' has the shape {list(tensor.shape)}: the model "
                                  f"takes {list(expected)}", 2)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _run_node(self, node, values):
        given = [values[name] if name else None for name in node.inputs]
        try:
            made = OPS[node.op](node, given)
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise TrainscopeError(f"'{self.graph.path}', node '{node.name}' ({node.op}): "
                                  f"{line}") from error
        made = made if isinstance(made, tuple) else (made,)
        if any(node.outputs[len(made):]):
            raise TrainscopeError(f"'{self.graph.path}', node '{node.name}' ({node.op}): output "
                                  f"'{node.outputs[len(made)]}' is not supported")
        for name, tensor in zip(node.outputs, made):
            if not name:
                continue
            # A value is a tensor of its own, so that its gradient is its own.
            if any(tensor is each for each in given):
                tensor = tensor.view_as(tensor)
            values[name] = tensor
            if tensor.requires_grad and self.watch_gradient is not None:
                tensor.register_hook(self._told_of(name))
            if self.watch is not None and name not in self.graph.added:
                self.watch(node, name, tensor)

    def update_statistics(self, values):
        """Takes the next running statistics from what run() returned."""
        for name, output in self.updates.items():
            self.statistics[name] = values[output].detach()

    def gradients(self):
        """{name: gradient} of the parameters that have one."""
        return {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
