#!/usr/bin/python3
"""Ops of the interpreter against ONNX's own node tests (Debian's libonnx-testdata).

Every node test whose ops the interpreter has must give the stored outputs; what it has no op for is
counted. Exit code 77 (skipped) without the tests, numpy, torch or onnx.
"""
import sys
import unittest
from pathlib import Path

from support import SKIPPED, skip_without

skip_without("numpy", "torch", "onnx")
import numpy  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from trainscope.elements import array_of, elements_of  # noqa: E402
from trainscope.errors import TrainscopeError  # noqa: E402
from trainscope.interpreter import Interpreter  # noqa: E402
from trainscope.onnx_graph import Graph  # noqa: E402

TESTS = Path("/usr/share/libonnx-testdata/data/node")
if not TESTS.is_dir():
    print("skipped: libonnx-testdata is not installed")
    sys.exit(SKIPPED)

# What the interpreter or torch says that it does not do: such tests must be refused, not be wrong.
REFUSED_TEXT = ("auto_pad", "not supported", "has ops that the interpreter lacks", "cannot inline",
                "inlines from version", "not implemented for")


def tensors(folder, kind):
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [numpy_helper.to_array(onnx.load_tensor(str(file))) for file in files]


def verdict(folder):
    """ "passed", or "refused", or what is wrong."""
    try:
        graph = Graph(folder / "model.onnx", "running")
        module = Interpreter(graph, ())
        data = folder / "test_data_set_0"
        values = module.run(dict(zip(graph.inputs, tensors(data, "input"))))
        expected = tensors(data, "output")
    except TrainscopeError as error:
        return "refused" if any(text in str(error) for text in REFUSED_TEXT) else str(error)
    for name, array in zip(graph.outputs, expected):
        found = array_of(elements_of(values[name]))
        if found.shape != array.shape:
            return f"{name} has the shape {found.shape}, expected {array.shape}"
        if not numpy.allclose(found, array, rtol=1e-3, atol=1e-6, equal_nan=True):
            return f"{name} is off by {numpy.abs(found - array).max()}"
    return "passed"


def is_left_out(folder):
    """Random numbers, files of sequences or optionals, and bf16, which those tests cut off and hold
    in a way that later versions of onnx read as something else."""
    name = folder.name
    random = name.startswith(("test_training_dropout", "test_bernoulli"))
    return (random or "BFLOAT16" in name or "sequence" in name or "optional" in name
            or name == "test_identity_opt")


class NodeTests(unittest.TestCase):
    def test_give_the_stored_outputs_or_a_refusal(self):
        torch.set_num_threads(1)
        counts, wrong = {"passed": 0, "refused": 0}, {}
        for folder in sorted(TESTS.iterdir()):
            if is_left_out(folder):
                continue
            found = verdict(folder)
            if found in counts:
                counts[found] += 1
            else:
                wrong[folder.name] = found
        print(counts, *(f"\n{name}: {text}" for name, text in wrong.items()))
        self.assertEqual(wrong, {})
        self.assertGreater(counts["passed"], 300)


if __name__ == "__main__":
    unittest.main()
