"""python -m trainscope onnxruntime: values of a forward pass by the installed ONNX Runtime."""
from pathlib import Path

from .arguments import patterns_listed
from .batches import Batches
from .errors import TrainscopeError
from .onnxruntime_values import OnnxRuntimeSessions, record_values

SUMMARY = "Record every value of a forward pass by ONNX Runtime, and what its optimisation changes."


def add_arguments(parser):
    parser.add_argument("model", help="model.onnx, or a folder of reference numbers")
    parser.add_argument("--data", help="safetensors: see interpret; of a folder its "
                                       "reference.safetensors")
    parser.add_argument("--batch", type=int, help="examples in a batch, of the first of which it is")
    parser.add_argument("--run-dir", required=True, help="the run's folder; the trace is numerics/")
    parser.add_argument("--record-full", help="keep all elements of these values (patterns)")
    parser.add_argument("--threads", type=int, default=1, help="of ONNX Runtime [1]")
    parser.add_argument("--provider", action="append", help="execution provider [CPU]")
    parser.add_argument("--limit", type=float, help="exit with 9 where an optimised output is further "
                                                    "off than this (relative L2)")


def run(arguments):
    folder = Path(arguments.model) if Path(arguments.model).is_dir() else None
    model = folder / "model.onnx" if folder else Path(arguments.model)
    data = arguments.data or (folder and folder / "reference.safetensors")
    if not data:
        raise TrainscopeError("--data says which batch to run", 2)
    sessions = OnnxRuntimeSessions(arguments.threads,
                                   arguments.provider or ("CPUExecutionProvider",))
    differences = record_values(model, Batches(data, arguments.batch).of_step(1)[0],
                                arguments.run_dir, sessions,
                                patterns_listed(arguments.record_full))
    print(f"{'output':<32} {'max abs':>10} {'relative L2':>12}   optimised against not")
    for each in differences:
        print(f"{each.name:<32} {each.max_abs:>10.3g} {each.relative_l2:>12.3g}")
    limit = arguments.limit
    return 9 if limit is not None and any(d.relative_l2 > limit for d in differences) else 0
