"""Trains an ONNX graph by PyTorch, node by node, and records every value: a trace of mode "all".

`python -m trainscope interpret --help` says how to run it from a shell.
"""
import contextlib
from pathlib import Path

import torch

from . import __version__
from .errors import TrainscopeError
from .interpreter import Interpreter
from .losses import loss_of
from .onnx_graph import Graph
from .optimizers import Stepper, states_of
from .torch_ops import tensor_of
from .trace import Name, TraceWriter, is_recorded_by_default, model_hash


class GraphTraining:
    """Training steps of a model as `trainscope train` does them, by PyTorch's kernels.

    model: path of an ONNX file; loss: the entry of a reference's meta.json ("kind", "output",
    "label", ...); optimizer: its optimizer's entry (see optimizers.Stepper); trainable: names, or
    None; statistics: {name: numpy array} in place of the file's running statistics; batch_norm: see
    onnx_graph.Graph.
    """

    def __init__(self, model, loss, optimizer, trainable=None, dtype="f32", statistics=None,
                 batch_norm="batch"):
        self.model = Path(model)
        self.loss = loss
        self.dtype = dtype
        self.interpreter = Interpreter(Graph(model, batch_norm), trainable, dtype)
        for name, array in (statistics or {}).items():
            self.interpreter.statistics[name] = tensor_of(array).to(self.interpreter.dtype)
        self.stepper = Stepper(optimizer, self.interpreter.parameters)
        self.losses, self.gradient_norms = [], []  # a float a step
        self._names = {id(p): name for name, p in self.interpreter.parameters.items()}

    def train(self, micro_batches_of, steps, run_dir=None, recorded=None, full=()):
        """Trains for `steps` steps; the losses, each before its update (the mean over
        micro-batches).

        micro_batches_of: function of the step (from 1) -> list of {name: array}, inputs and labels.
        run_dir: where the trace goes (in numerics/), None: none is made. recorded: steps, default
        1, 2, 5, 10, 20, 50 ... and the last. full: patterns of the values to keep whole.
        """
        with contextlib.ExitStack() as stack:
            writer = None
            if run_dir is not None:
                writer = stack.enter_context(self._writer(run_dir, full))
                self._add_states(writer, 0)
            for step in range(1, steps + 1):
                wanted = step in recorded if recorded else (is_recorded_by_default(step)
                                                           or step == steps)
                self._step(step, micro_batches_of(step), writer if wanted else None)
        return self.losses

    def _writer(self, run_dir, full):
        writer = TraceWriter(Path(run_dir) / "numerics", "pytorch", torch.__version__,
                             model_hash(self.model), "all", full=full,
                             more={"recorder": f"trainscope.interpreter {__version__}",
                                   "device": "cpu", "dtype": self.dtype,
                                   "threads": torch.get_num_threads(),
                                   "loss": self.loss, "optimizer": self.stepper.about})
        writer.write_names(self._fates())
        return writer

    def _fates(self):
        graph = self.interpreter.graph
        names = [Name(f"act:{name}", "kept", f"input:{name}", "An input.") for name in graph.inputs]
        for name in graph.initializers:
            kept = ("param" if name in self.interpreter.parameters else
                    "state" if name in self.interpreter.statistics else None)
            names.append(Name(f"act:{name}", "kept", f"{kept}:{name}" if kept else "",
                              "An initializer that is trained." if kept == "param" else
                              "A running statistic." if kept else "A constant of the model."))
        for node in graph.nodes:
            row = "" if node.op == "Constant" else "act:"
            reason = "A constant of the model." if node.op == "Constant" else "Run as it is."
            names += [Name(f"act:{name}", "kept", row and row + name, reason)
                      for name in node.outputs
                      if name and name not in graph.added]
        return names

    def _step(self, step, micro_batches, writer):
        torch_module, values = self.interpreter, {}
        for parameter in torch_module.parameters.values():
            parameter.grad = None
        total = 0.0
        if writer is not None:
            writer.set_micro_batches(len(micro_batches))
        for place, batch in enumerate(micro_batches):
            self._watch(writer, step, place)
            if writer is not None:
                for name, tensor in batch.items():
                    writer.add(step, "input", "input", name, tensor, place)
            values = torch_module.run(batch)
            loss = self._loss(values, batch)
            if writer is not None:
                writer.add(step, "forward", "loss", "loss", loss, place, op=self.loss["kind"])
            loss.backward()
            torch_module.update_statistics(values)
            total += float(loss.detach())
        self._watch(None, step, 0)
        if len(micro_batches) > 1:
            for gradient in torch_module.gradients().values():
                gradient /= len(micro_batches)
        self.gradient_norms.append(self.stepper.step(step))
        self.losses.append(total / len(micro_batches))
        if writer is not None:
            self._add_states(writer, step)
            writer.flush()

    def _loss(self, values, batch):
        output, label = self.loss["output"], self.loss.get("label", "labels")
        if output not in values:
            raise TrainscopeError(f"the loss reads '{output}', which is no value of '{self.model}'",
                                  2)
        if label not in batch:
            raise TrainscopeError(f"a batch has no labels '{label}'", 2)
        labels = batch[label]
        return loss_of(self.loss, values[output],
                       labels if torch.is_tensor(labels) else tensor_of(labels))

    def _watch(self, writer, step, place):
        """Has the interpreter tell of what it makes in this micro-batch, or of nothing more."""
        interpreter = self.interpreter
        if writer is None:
            interpreter.watch = interpreter.watch_gradient = None
            return

        def value(node, name, tensor):
            if node.op != "Constant":
                writer.add(step, "forward", "act", name, tensor, place, node.op, node.name)

        def gradient(name, tensor):
            kind = "grad" if name in interpreter.parameters else "dact"
            writer.add(step, "backward", kind, name, tensor, place)

        interpreter.watch, interpreter.watch_gradient = value, gradient

    def _add_states(self, writer, step):
        for name, parameter in self.interpreter.parameters.items():
            writer.add(step, "update", "param", name, parameter)
        for name, tensor in (*states_of(self.stepper.optimizer, self._names),
                             *self.interpreter.statistics.items()):
            writer.add(step, "update", "state", name, tensor)
