"""Records a PyTorch training loop by hooks: outputs of modules, gradients, parameters, moments.

    with trainscope.record(model, optimizer, "runs/torch") as recorder:
        for x, labels in batches:
            loss = recorder.loss(criterion(model(x), labels))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

Works with torch 1.13 and later. docs/recorders.md has more.
"""
import inspect
import types
from pathlib import Path

import torch

from . import __version__
from .module_names import element_counts, module_values
from .onnx_graph import Graph
from .optimizers import states_of
from .trace import Name, TraceWriter, is_recorded_by_default, model_hash


class Recorder:
    """A context manager that records the steps of a loop that runs within it.

    model: torch.nn.Module; optimizer: a torch.optim.Optimizer or a list of them, of which the last
    ends a step; run_dir: a folder, the trace goes into numerics/ below it.

    steps: the steps to record, from 1, counted by the optimizer's; default 1, 2, 5, 10, 20, 50 ...
    names: the path of the model's ONNX file, or {module path: value, "input:ARGUMENT": input};
    without it values have the paths of their modules. full: patterns of the values to keep whole.
    loss_scale: what the loss is multiplied by before backward(), a number or a function without
    arguments (1 / micro-batches, or a GradScaler's get_scale): gradients are divided by it.

    A forward pass after a backward pass, without a step between, is another micro-batch. Passes
    under no_grad are not recorded. Raises TrainscopeError where run_dir holds a trace already.
    """

    def __init__(self, model, optimizer, run_dir, steps=None, names=None, full=(), loss_scale=1.0):
        self.model = model
        self.optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        self._steps = None if steps is None else set(steps)
        self._loss_scale = loss_scale if callable(loss_scale) else lambda: loss_scale
        self._graph = Graph(names) if isinstance(names, (str, Path)) else None
        self._values = module_values(self._graph) if self._graph else {}
        self._counts = element_counts(self._graph) if self._graph else {}
        self._given = names if isinstance(names, dict) else {}
        self._removers = []
        self._step, self._micro_batch, self._went_back = 1, 0, False
        self._seen, self._calls = set(), {}
        self._parameters = self._parameter_names()
        self._writer = TraceWriter(
            Path(run_dir) / "numerics", "pytorch", torch.__version__,
            model_hash(names) if self._graph else "", "modules", full=full,
            more={"recorder": f"trainscope.record {__version__}", "model": type(model).__name__,
                  "optimizer": [type(each).__name__ for each in self.optimizers],
                  "threads": torch.get_num_threads(),
                  "tf32": bool(torch.backends.cuda.matmul.allow_tf32)})

    def loss(self, loss):
        """Records the loss of this micro-batch, a scalar tensor, and returns it."""
        self._add("forward", "loss", "loss", loss)
        return loss

    def batch(self, **tensors):
        """Records tensors of the batch that the model is not given: batch(labels=labels)."""
        for name, tensor in tensors.items():
            self._add("input", "input", name, tensor)

    def __enter__(self):
        self._add_states(0)
        self._writer.flush()
        if self._graph:
            self._writer.write_names(self._fates())
        before = {"with_kwargs": True} if _takes_kwargs(self.model) else {}
        self._keep(self.model.register_forward_pre_hook(self._on_call, **before))
        for path, module in self.model.named_modules():
            self._keep(module.register_forward_hook(self._output_hook(path)))
        for parameter, name in self._parameters.values():
            if parameter.requires_grad:
                self._keep(parameter.register_hook(self._gradient_hook("grad", name)))
        self._watch_steps(self.optimizers[-1])
        return self

    def __exit__(self, *_):
        for remove in reversed(self._removers):
            remove()
        self._writer.close()

    def _keep(self, handle):
        self._removers.append(handle.remove)

    def _wanted(self):
        if self._steps is None:
            return is_recorded_by_default(self._step)
        return self._step in self._steps

    def _parameter_names(self):
        """{id: (parameter, name)}: of two names of a tied parameter the one that the file has."""
        names = {}
        known = self._graph.initializers if self._graph else {}
        for name, parameter in self.model.state_dict(keep_vars=True).items():
            if not isinstance(parameter, torch.nn.Parameter):
                continue
            if id(parameter) not in names or (name in known
                                              and names[id(parameter)][1] not in known):
                names[id(parameter)] = (parameter, name)
        return names

    def _watch_steps(self, optimizer):
        """Has _on_step called after each step of the optimizer."""
        if hasattr(optimizer, "register_step_post_hook"):
            self._keep(optimizer.register_step_post_hook(lambda *_: self._on_step()))
            return
        own = optimizer.__dict__.get("step")
        step = optimizer.step

        def stepped(_, *arguments, **named):
            result = step(*arguments, **named)
            self._on_step()
            return result

        stepped.__dict__.update(getattr(step, "__dict__", {}))  # what learning-rate schedules leave
        optimizer.step = types.MethodType(stepped, optimizer)

        def restore():
            del optimizer.step
            if own is not None:
                optimizer.step = own
        self._removers.append(restore)

    def _add(self, phase, kind, value, tensor, op=""):
        key = (self._micro_batch, kind, value)
        if not self._wanted() or key in self._seen:
            return
        self._seen.add(key)
        micro_batch = 0 if phase == "update" else self._micro_batch
        self._writer.add(self._step, phase, kind, value, tensor, micro_batch, op=op)

    def _on_call(self, module, arguments, named=None):
        """The whole model is called: another micro-batch, where the last one went back."""
        self._calls = {}
        if not torch.is_grad_enabled():
            return
        if self._went_back:
            self._micro_batch, self._went_back = self._micro_batch + 1, False
        if not self._wanted():
            return
        signature = inspect.signature(module.forward)
        given = signature.bind_partial(*arguments, **(named or {})).arguments
        tensors = [(name, tensor) for name, tensor in given.items() if torch.is_tensor(tensor)]
        inputs = list(self._graph.inputs) if self._graph else []
        for place, (name, tensor) in enumerate(tensors):
            if name not in inputs and len(inputs) == len(tensors):
                name = inputs[place]
            self._add("input", "input", self._given.get(f"input:{name}", name), tensor)

    def _output_hook(self, path):
        def called(module, _, output):
            call = self._calls.get(path, 0)
            self._calls[path] = call + 1
            tensor = first_tensor(output)
            if not self._wanted() or tensor is None or not torch.is_grad_enabled():
                return
            kind, name = self._named(path, call, tensor)
            if kind == "own" and isinstance(module, torch.nn.Identity):
                return
            self._add("forward", kind, name, tensor, op=type(module).__name__)
            if tensor.requires_grad:
                of_gradient = "dact" if kind == "act" else "own"
                name = name if kind == "act" else f"gradient of {name}"
                _hook_gradient(tensor, self._gradient_hook(of_gradient, name))
        return called

    def _named(self, path, call, tensor):
        """(kind, name) of a module's output: a value of the ONNX file, or the module's own path."""
        if path in self._given and call == 0:
            return "act", self._given[path]
        calls = self._values.get(path, [])
        if call < len(calls) and self._counts.get(calls[call], tensor.numel()) == tensor.numel():
            return "act", calls[call]
        name = (path or type(self.model).__name__) + (f" call {call + 1}" if call else "")
        return ("own" if self._graph else "act"), name

    def _gradient_hook(self, kind, name):
        def made(gradient):
            self._went_back = True
            if gradient is not None and self._wanted():
                scale = self._loss_scale()
                self._add("backward", kind, name, gradient if scale == 1.0 else gradient / scale)
        return made

    def _on_step(self):
        if self._wanted():
            self._writer.set_micro_batches(self._micro_batch + 1)
            self._add_states(self._step)
            self._writer.flush()
        self._step += 1
        self._micro_batch, self._went_back = 0, False
        self._seen = set()

    def _add_states(self, step):
        for parameter, name in self._parameters.values():
            if parameter.requires_grad:
                self._writer.add(step, "update", "param", name, parameter)
        names = {key: name for key, (_, name) in self._parameters.items()}
        for optimizer in self.optimizers:
            for name, tensor in states_of(optimizer, names):
                self._writer.add(step, "update", "state", name, tensor)
        kept = self._graph.statistics() if self._graph else None
        for name, buffer in self.model.named_buffers():
            if buffer.is_floating_point() and (kept is None or name in kept):
                self._writer.add(step, "update", "state", name, buffer)

    def _fates(self):
        """Of each value of the file: its row, or that no module's output is it."""
        outputs = {value for calls in self._values.values() for value in calls}
        parameters = {name for _, name in self._parameters.values()}
        statistics = self._graph.statistics()
        names = [Name(f"act:{name}", "kept", f"input:{name}", "An input.")
                 for name in self._graph.inputs]
        for name in self._graph.initializers:
            kind = "param" if name in parameters else "state" if name in statistics else ""
            names.append(Name(f"act:{name}", "kept", f"{kind}:{name}" if kind else "",
                              "A tensor of the module." if kind else "A constant of the model."))
        for node in self._graph.nodes:
            for name in node.outputs:
                if name in self._graph.added:
                    continue
                found = name in outputs
                names.append(Name(f"act:{name}", "kept" if found else "inside",
                                  f"act:{name}" if found else "",
                                  "The output of a module." if found else
                                  "Within a module: hooks see outputs of modules alone."))
        return [name for name in names if name.value != "act:"]


def _hook_gradient(tensor, function):
    """Has function(gradient) called with the gradient of a tensor as it is now.

    The node that made the tensor tells: in torch 1.13 hooks of the tensor itself are told another
    gradient once something works on it in place.
    """
    node, place = tensor.grad_fn, tensor.output_nr
    if node is None:
        tensor.register_hook(function)
        return

    def told(_, of_outputs):
        function(of_outputs[place])

    node.register_hook(told)


def _takes_kwargs(module):
    return "with_kwargs" in inspect.signature(module.register_forward_pre_hook).parameters


def first_tensor(output):
    """A module's output, or the first tensor of a tuple, list, dict or object with such fields."""
    if torch.is_tensor(output):
        return output
    parts = output.values() if isinstance(output, dict) else output
    if not isinstance(parts, (tuple, list)) and not isinstance(output, dict):
        return None
    return next((part for part in parts if torch.is_tensor(part)), None)
