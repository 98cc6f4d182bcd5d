#!/usr/bin/python3
"""From PyTorch to ONNX, trained here, and back: both sides then compute the same.

Usage: torch_round_trip_test.py TRAINSCOPE. Exit code 77 (skipped) without PyTorch or python3-onnx.

The trained ONNX file's weights go back into the PyTorch module by name. What the module computes
with them is written as a test of ONNX's backend suite, which the program must then pass.
"""
import json
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from kept_plans import keep  # noqa: E402

try:
    import onnx
    import torch
    from onnx import numpy_helper
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = Path(sys.argv.pop()).resolve()
CONTEXT = 16


class Cnn(nn.Sequential):
    """Convolutions with batch norm and dropout: what training and inference form differ in."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=2), nn.GELU(), nn.Flatten(), nn.Dropout(0.1),
            nn.Linear(16 * 6 * 6, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("future", torch.ones(CONTEXT, CONTEXT).triu(1).bool(), False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class RoundTrip(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def program(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def export(self, model, example, dynamic):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, example, str(self.folder / "model.onnx"), input_names=["x"],
                              output_names=["logits"], opset_version=17,
                              dynamic_axes={"x": dynamic, "logits": dynamic},
                              training=torch.onnx.TrainingMode.TRAINING,
                              do_constant_folding=False)

    def train(self, data, *more):
        result = self.program("train", "model.onnx", "--data", data, "--steps", "60", "--lr", "3e-3",
                              "--run-dir", "run", "--threads", "2", "-q", "--json", *more)
        self.assertEqual(result["status"], "finished")
        keep(self.folder / "run")
        return result

    def load_back(self, model):
        """Every weight of the module comes from the trained file, and training has changed it."""
        trained = onnx.load(str(self.folder / "run" / "model.onnx"))
        onnx.checker.check_model(trained)
        weights = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy())
                   for t in trained.graph.initializer}
        before = {name: value.clone() for name, value in model.state_dict().items()}
        missing = model.load_state_dict(weights, strict=False).missing_keys
        self.assertTrue(all(name.endswith("num_batches_tracked") for name in missing), missing)
        for name, parameter in model.named_parameters():
            self.assertFalse(torch.equal(parameter, before[name]), name)
        model.eval()

    def compare_outputs(self, model, x):
        """The trained file against the module, by ONNX's own test format and tolerances."""
        case = self.folder / "case"
        data = case / "test_data_set_0"
        data.mkdir(parents=True)
        (case / "model.onnx").write_bytes((self.folder / "run" / "model.onnx").read_bytes())
        with torch.no_grad():
            logits = model(x)
        for name, tensor in (("input_0", x), ("output_0", logits)):
            proto = numpy_helper.from_array(tensor.numpy())
            (data / f"{name}.pb").write_bytes(proto.SerializeToString())
        result = self.program("conformance", "case", "--json")
        self.assertEqual(result["pass"], 1, result)
        # Outputs that are one percent off are told apart.
        proto = numpy_helper.from_array((logits * 1.01).numpy())
        (data / "output_0.pb").write_bytes(proto.SerializeToString())
        done = subprocess.run([PROGRAM, "conformance", "case"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 9, done.stdout)

    def test_convolutions_on_images(self):
        self.program("data", "make", "mnist", "--dir", "digits", "--examples", "400")
        model = Cnn()
        self.export(model, torch.randn(2, 1, 28, 28), {0: "batch"})
        files = "digits/train-images-idx3-ubyte,digits/train-labels-idx1-ubyte"
        result = self.train(f"idx:{files}", "--batch", "20")
        self.assertLess(result["validation"]["loss"], 1.5)  # ln 10 = 2.3 knows nothing
        self.load_back(model)
        self.compare_outputs(model, torch.rand(4, 1, 28, 28))

    def test_transformer_on_text(self):
        self.program("data", "make", "text", "--dir", "book", "--examples", "400")
        text = (self.folder / "book" / "text.txt").read_text(encoding="utf-8")
        vocabulary = len(set(text))
        model = Transformer(vocabulary)
        self.export(model, torch.randint(vocabulary, (2, CONTEXT)), {0: "batch", 1: "length"})
        result = self.train("text:book/text.txt", "--batch", "16", "--seq", str(CONTEXT))
        self.assertLess(result["validation"]["loss"], 0.8 * torch.log(torch.tensor(vocabulary)))
        self.load_back(model)
        self.compare_outputs(model, torch.randint(vocabulary, (3, 11)))


if __name__ == "__main__":
    unittest.main()
