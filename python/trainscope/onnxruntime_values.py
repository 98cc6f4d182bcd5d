"""Values of a model's forward pass by an installed ONNX Runtime: each value, and as it optimises.

The graph is run twice: with every value as an output and no optimisation, and as ONNX Runtime makes
it with the model's own outputs alone, whose difference is reported. Needs onnx and onnxruntime;
whoever has a session of another kind gives it as `sessions`.
"""
from collections import namedtuple
from pathlib import Path

import numpy

from . import __version__
from .errors import TrainscopeError
from .onnx_graph import Graph
from .trace import Name, TraceWriter, model_hash

# Of an output of the model, between the two runs: name: str; max_abs, relative_l2: float.
Difference = namedtuple("Difference", "name max_abs relative_l2")


def with_all_outputs(proto):
    """A copy of a ModelProto whose outputs are all values of its nodes, those of the file first.

    Types are left out: ONNX Runtime infers them.
    """
    marked = type(proto)()
    marked.CopyFrom(proto)
    known = {value.name for value in marked.graph.output}
    for node in marked.graph.node:
        for name in node.output:
            if name and name not in known:
                marked.graph.output.add().name = name
                known.add(name)
    return marked


class OnnxRuntimeSessions:
    """Sessions of the installed onnxruntime. threads: of an op; providers: their names."""

    def __init__(self, threads=1, providers=("CPUExecutionProvider",)):
        try:
            import onnxruntime
        except ImportError as error:
            raise TrainscopeError("the package onnxruntime is not installed", 2) from error
        self._runtime = onnxruntime
        self._threads = threads
        self._providers = list(providers)
        self.version = onnxruntime.__version__

    def open(self, model, optimized):
        """A session of a model's bytes, which has run(output names, {input: array}) -> [array]."""
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = self._threads
        options.log_severity_level = 3
        levels = self._runtime.GraphOptimizationLevel
        options.graph_optimization_level = (levels.ORT_ENABLE_ALL if optimized
                                            else levels.ORT_DISABLE_ALL)
        return self._runtime.InferenceSession(model, options, providers=self._providers)

    def about(self):
        """What trace.json says of these sessions."""
        return {"providers": self._providers, "threads": self._threads}


def record_values(model, batch, run_dir, sessions=None, full=()):
    """Writes a trace with one step, the forward pass of a batch; returns [Difference].

    model: path of an ONNX file; batch: {name: array}, the inputs and what else shall be recorded of
    the batch (labels); run_dir: the trace goes into numerics/ below it; sessions:
    OnnxRuntimeSessions or an object with its version, open() and about(); full: patterns of the
    values to keep whole.

    Raises TrainscopeError for inputs that are missing and for what ONNX Runtime refuses.
    """
    sessions = sessions or OnnxRuntimeSessions()
    graph = Graph(model, "running")
    feeds = _feeds(graph, batch)
    marked = with_all_outputs(graph.proto)
    names = [value.name for value in marked.graph.output]
    values = dict(zip(names, _run(sessions, marked, False, names, feeds, model)))
    optimized = _run(sessions, graph.proto, True, graph.outputs, feeds, model)
    differences = [difference(name, values[name], array)
                   for name, array in zip(graph.outputs, optimized)]
    more = {"recorder": f"trainscope.onnxruntime_values {__version__}", **sessions.about(),
            "optimized": [each._asdict() for each in differences]}
    with TraceWriter(Path(run_dir) / "numerics", "onnxruntime", sessions.version,
                     model_hash(model), "all", full=full, more=more) as writer:
        for name in graph.trainable():
            writer.add(0, "update", "param", name, graph.initializers[name])
        for name, array in batch.items():
            writer.add(1, "input", "input", name, array)
        for node in graph.nodes:
            for name in node.outputs:
                if node.op != "Constant" and isinstance(values.get(name), numpy.ndarray):
                    writer.add(1, "forward", "act", name, values[name], op=node.op, node=node.name)
        for name, array in zip(graph.outputs, optimized):
            writer.add(1, "forward", "own", f"optimized {name}", array)
        writer.write_names(_fates(graph))
    return differences


def difference(name, expected, found):
    """The Difference of two arrays of one shape, in float64, over elements that are finite in
    both."""
    a, b = (numpy.asarray(array, numpy.float64).reshape(-1) for array in (expected, found))
    if a.shape != b.shape:
        raise TrainscopeError(f"output '{name}' has {b.size} elements optimised, {a.size} otherwise")
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    gaps = numpy.abs(a[finite] - b[finite])
    if not numpy.array_equal(a[~finite], b[~finite], equal_nan=True):
        return Difference(name, float("inf"), float("inf"))
    norm = numpy.linalg.norm(a[finite])
    relative = numpy.linalg.norm(gaps) / norm if norm > 0.0 else float(gaps.sum() > 0.0)
    return Difference(name, float(gaps.max()) if gaps.size else 0.0, float(relative))


def _feeds(graph, batch):
    missing = [name for name in graph.inputs if name not in batch]
    if missing:
        raise TrainscopeError(f"the batch has no input '{missing[0]}' of '{graph.path}'", 2)
    return {name: numpy.asarray(batch[name]) for name in graph.inputs}


def _run(sessions, proto, optimized, names, feeds, path):
    try:
        session = sessions.open(proto.SerializeToString(), optimized)
        return session.run(names, feeds)
    except TrainscopeError:
        raise
    except Exception as error:  # ONNX Runtime's own kinds of error share no class but this
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TrainscopeError(f"ONNX Runtime refuses '{path}': {line}") from error


def _fates(graph):
    names = [Name(f"act:{name}", "kept", f"input:{name}", "An input.") for name in graph.inputs]
    trained = set(graph.trainable())
    names += [Name(f"act:{name}", "kept", f"param:{name}" if name in trained else "",
                   "An initializer.") for name in graph.initializers]
    for node in graph.nodes:
        row = "" if node.op == "Constant" else "act:"
        reason = "A constant of the model." if node.op == "Constant" else "Marked as an output."
        names += [Name(f"act:{name}", "kept", row and row + name, reason)
                  for name in node.outputs if name]
    return names
