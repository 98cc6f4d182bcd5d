"""Training by ONNX Runtime Training's on-device API: losses, gradients, parameters of each step.

Needs onnxruntime-training-cpu (1.19.2 was tried) or another build of it, and the torch that its
Python part imports. Whoever has something of another kind gives it as `runtime`.
"""
import tempfile
from pathlib import Path

import numpy

from . import __version__
from .errors import TrainscopeError
from .onnx_graph import Graph
from .trace import TraceWriter, is_recorded_by_default, model_hash

_ROWS = "trainscope_rows"  # output of scores with two axes, of which the loss is


class OnDeviceRuntime:
    """The installed onnxruntime.training. Raises TrainscopeError where there is none."""

    def __init__(self):
        try:
            import onnxruntime
            from onnxruntime.training import api, artifacts, onnxblock
        except ImportError as error:
            raise TrainscopeError(f"ONNX Runtime Training is not installed: {error}", 2) from error
        self._api, self._artifacts, self._blocks = api, artifacts, onnxblock
        self.version = onnxruntime.__version__

    def open(self, model, loss, optimizer, trainable, values, folder):
        """(module, optimizer, state) of a ModelProto, made in a folder, which must stay.

        module(*inputs, labels) -> [loss, values ...]; state.parameters: by name, with data and
        grad.
        """
        blocks = self._blocks
        losses = {"cross_entropy": lambda: blocks.loss.CrossEntropyLoss(
                      ignore_index=loss.get("ignore_index", -100)),
                  "mse": blocks.loss.MSELoss, "l1": blocks.loss.L1Loss,
                  "bce_with_logits": blocks.loss.BCEWithLogitsLoss}
        if optimizer["kind"] == "sgd":
            update = blocks.optim.SGD(optimizer.get("clip_norm") and blocks.optim.ClipGradNorm(
                optimizer["clip_norm"]))
        else:
            clip = optimizer.get("clip_norm")
            update = blocks.optim.AdamW(
                betas=tuple(optimizer.get("betas", (0.9, 0.999))), eps=optimizer.get("eps", 1e-8),
                weight_decay=optimizer.get("weight_decay", 0.0),
                clip_grad=blocks.optim.ClipGradNorm(clip) if clip else None)
        self._artifacts.generate_artifacts(
            model, requires_grad=trainable, loss=losses[loss["kind"]](), optimizer=update,
            artifact_directory=str(folder), loss_input_names=[loss["output"]],
            additional_output_names=list(values) or None)
        state = self._api.CheckpointState.load_checkpoint(str(Path(folder) / "checkpoint"))
        module = self._api.Module(str(Path(folder) / "training_model.onnx"), state,
                                  str(Path(folder) / "eval_model.onnx"))
        return module, self._api.Optimizer(str(Path(folder) / "optimizer_model.onnx"), module), state


def record_training(model, loss, optimizer, batches_of, steps, run_dir, trainable=None, values=(),
                    recorded=None, full=(), runtime=None):
    """Trains and writes a trace; returns the losses, each before its update.

    model: path of an ONNX file; loss: as in a reference's meta.json (cross_entropy; nll, which is
    the same of log-probabilities; mse, l1, bce_with_logits); optimizer: {"kind": "adamw" or "sgd",
    "lr": number or list by step, "weight_decay", "betas", "eps", "clip_norm"}; batches_of: function
    of the step (from 1) -> list with one {name: array}; values: names of the values to record
    beside loss, gradients and parameters. recorded: steps, default 1, 2, 5, 10 ... and the last.

    Raises TrainscopeError (code 2) for what the on-device API does not offer, and for what it
    refuses.
    """
    runtime = runtime or OnDeviceRuntime()
    graph = Graph(model)
    names = list(trainable if trainable is not None else graph.trainable())
    _check(loss, optimizer)
    proto, made_of = _with_rows(graph, loss)
    with tempfile.TemporaryDirectory() as folder, TraceWriter(
            Path(run_dir) / "numerics", "onnxruntime", runtime.version, model_hash(model), "modules",
            full=full, more={"recorder": f"trainscope.onnxruntime_training {__version__}",
                             "loss": loss, "optimizer": optimizer}) as writer:
        session = _Session(*_quietly(model, lambda: runtime.open(
            proto, made_of, optimizer, names, values, folder)), names)
        session.add_parameters(writer, 0)
        losses = []
        for step in range(1, steps + 1):
            wanted = step in recorded if recorded else is_recorded_by_default(step) or step == steps
            rates = optimizer.get("lr", 1e-3)
            rate = rates[min(step, len(rates)) - 1] if isinstance(rates, (list, tuple)) else rates
            batch = _only(batches_of(step))
            inputs = [_fed(batch, name, graph) for name in graph.inputs]
            labels = _fed(batch, loss.get("label", "labels"), graph)
            flat = labels.reshape(-1) if made_of["output"] == _ROWS else labels
            outputs = _quietly(model, lambda: session.forward_backward([*inputs, flat]))
            losses.append(float(numpy.asarray(outputs[0]).reshape(-1)[0]))
            if wanted:
                for name, array in batch.items():
                    writer.add(step, "input", "input", name, array)
                for name, array in zip(values, outputs[1:]):
                    writer.add(step, "forward", "act", name, array)
                writer.add(step, "forward", "loss", "loss", numpy.float32(losses[-1]))
                session.add_gradients(writer, step)
            session.update(rate)
            if wanted:
                session.add_parameters(writer, step)
                writer.flush()
    return losses


class _Session:
    """The on-device API's three objects, and the parameters by name."""

    def __init__(self, module, optimizer, state, names):
        self._module, self._optimizer, self._state, self._names = module, optimizer, state, names
        module.train()

    def forward_backward(self, arrays):
        outputs = self._module(*arrays)
        return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]

    def update(self, rate):
        self._optimizer.set_learning_rate(rate)
        self._optimizer.step()
        self._module.lazy_reset_grad()

    def add_gradients(self, writer, step):
        for name in self._names:
            gradient = self._state.parameters[name].grad
            if gradient is not None:
                writer.add(step, "backward", "grad", name, gradient)

    def add_parameters(self, writer, step):
        for name in self._names:
            writer.add(step, "update", "param", name, self._state.parameters[name].data)


def _check(loss, optimizer):
    if loss["kind"] not in ("cross_entropy", "nll", "mse", "l1", "bce_with_logits"):
        raise TrainscopeError(f"loss '{loss['kind']}' is none of the on-device API", 2)
    if optimizer["kind"] not in ("adamw", "sgd"):
        raise TrainscopeError(f"optimizer '{optimizer['kind']}' is none of the on-device API", 2)
    if optimizer["kind"] == "sgd" and (optimizer.get("momentum") or optimizer.get("weight_decay")):
        raise TrainscopeError("the on-device API's sgd has no momentum and no weight decay", 2)
    if optimizer.get("decay") == "matrices":
        raise TrainscopeError("the on-device API decays all parameters: decay=matrices is not there", 2)


def _with_rows(graph, loss):
    """(ModelProto, loss) in which scores of three axes and more have two, as the API's loss
    needs."""
    import onnx
    proto = type(graph.proto)()
    proto.CopyFrom(graph.proto)
    about = {**loss, "kind": "cross_entropy" if loss["kind"] == "nll" else loss["kind"]}
    shape = graph.shapes.get(loss["output"], ())
    last = loss.get("class_axis", -1) in (-1, len(shape) - 1)
    if about["kind"] != "cross_entropy" or len(shape) <= 2 or not last:
        return proto, about
    sizes = onnx.helper.make_tensor(f"{_ROWS}_sizes", onnx.TensorProto.INT64, [2], [-1, shape[-1]])
    proto.graph.node.append(onnx.helper.make_node("Constant", [], [sizes.name], value=sizes))
    proto.graph.node.append(onnx.helper.make_node("Reshape", [loss["output"], sizes.name], [_ROWS]))
    whole = all(isinstance(size, int) for size in shape)
    rows = int(numpy.prod(shape[:-1])) if whole else "rows"
    proto.graph.output.append(onnx.helper.make_tensor_value_info(
        _ROWS, onnx.TensorProto.FLOAT, [rows, shape[-1]]))
    return proto, {**about, "output": _ROWS}


def _only(batches):
    if len(batches) != 1:
        raise TrainscopeError("the on-device API adds gradients up and does not average them: "
                              "record steps of one micro-batch", 2)
    return batches[0]


def _fed(batch, name, graph):
    if name not in batch:
        raise TrainscopeError(f"the batch has no '{name}', which '{graph.path}' or the loss reads", 2)
    return numpy.ascontiguousarray(batch[name])


def _quietly(model, call):
    """What a call returns; an error of ONNX Runtime's as one line."""
    try:
        return call()
    except TrainscopeError:
        raise
    except Exception as error:  # ONNX Runtime's own kinds of error share no class but this
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TrainscopeError(f"ONNX Runtime Training refuses '{model}': {line}") from error
