#!/usr/bin/python3
"""gradients and verify on models with symbolic dimensions: the tensors of a batch say the sizes.

Usage: symbolic_sizes_test.py TRAINSCOPE. Reference models get symbols for sizes that the exporter
fixed; the numbers must be those of the fixed model to the last bit.
"""
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import onnx
except ImportError:
    print("skipped: python3-onnx is not installed")
    sys.exit(77)

MODELS = Path(__file__).resolve().parents[1] / "data/models"
PROGRAM = sys.argv.pop()


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)


def read_tensors(path):
    data = Path(path).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:end])
    tensors.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[slice(*(end + at for at in
                                                               entry["data_offsets"]))])
            for name, entry in tensors.items()}


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, elements) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(elements)]}
        data += elements
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def twice(tensor):
    """Every example a second time: means over the batch stay what they are."""
    dtype, shape, elements = tensor
    return dtype, [2 * shape[0], *shape[1:]], 2 * elements


class SymbolicSizes(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="trainscope-symbolic-")
        self.folder = Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def copy(self, name):
        return Path(shutil.copytree(MODELS / name, self.folder / name))

    def symbolic(self, name, symbols, outputs=True):
        """A copy of a reference folder whose model has symbols for its first dimensions."""
        folder = self.copy(name)
        self.set_symbols(folder, symbols, outputs)
        return folder

    def set_symbols(self, folder, symbols, outputs=True):
        model = onnx.load(str(folder / "model.onnx"))
        weights = {tensor.name for tensor in model.graph.initializer}
        ends = [end for end in model.graph.input if end.name not in weights]
        for end in ends + (list(model.graph.output) if outputs else []):
            for dim, symbol in zip(end.type.tensor_type.shape.dim, symbols):
                if symbol:
                    dim.dim_param = symbol
        onnx.save(model, str(folder / "model.onnx"))

    def change_tensors(self, folder, change):
        path = folder / "reference.safetensors"
        tensors = read_tensors(path)
        change(tensors)
        write_tensors(path, tensors)

    def gradients(self, folder, *more):
        out = self.folder / "gradients.safetensors"
        done = run("gradients", folder / "model.onnx", "--meta", folder / "meta.json", "--tensors",
                   folder / "reference.safetensors", "--out", out, *more)
        return done, out.read_bytes() if done.returncode == 0 else b""

    def check_refused(self, done, message, hint):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertIn(hint, done.stderr)
        self.assertNotIn("--batch", done.stderr)

    def test_gradients_are_those_of_the_fixed_model_to_the_last_bit(self):
        for name, symbols in (("mlp", ["N"]), ("gpt2", ["batch", "sequence"])):
            folder = self.symbolic(name, symbols)
            for more in (["--values", "all"], ["--dtype", "f64"], ["--batch", "1"]):
                with self.subTest(model=name, more=more):
                    done, fixed = self.gradients(MODELS / name, *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    done, symbolic = self.gradients(folder, *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(symbolic, fixed)

    def test_verify_finds_the_errors_of_the_fixed_model_to_the_last_bit(self):
        folder = self.symbolic("mlp", ["N"])
        for more in ([], ["--precision", "bf16"]):
            with self.subTest(more=more):
                fixed = run("verify", MODELS / "mlp", "--json", *more)
                self.assertEqual(fixed.returncode, 0, fixed.stderr)
                done = run("verify", folder, "--json", *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                rows = [json.loads(text)["references"][0]["rows"]
                        for text in (fixed.stdout, done.stdout)]
                self.assertGreater(len(rows[0]), 8)
                self.assertEqual(rows[0], rows[1])

    def test_batches_of_two_sizes_train_one_state(self):
        def change(tensors):
            for name in [name for name in tensors if name.startswith("batch.1:")]:
                tensors[name] = twice(tensors[name])

        folder = self.symbolic("mlp", ["N"])
        self.change_tensors(folder, change)
        done = run("verify", folder, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = json.loads(done.stdout)["references"][0]["rows"]
        plans = [row["name"] for row in rows if row["what"] == "plan"]
        self.assertEqual(plans.count("adamw: used - predicted bytes"), 2)

    def test_a_convergence_folder_says_the_length_of_its_windows(self):
        model, folder = self.copy("gpt2"), self.copy("convergence-gpt2")
        meta = json.loads((folder / "meta.json").read_text())
        meta["steps"], meta["valid_starts"]["count"] = 2, 6
        (folder / "meta.json").write_text(json.dumps(meta))
        offsets = folder / "offsets.bin"
        offsets.write_bytes(offsets.read_bytes()[:4 * 2 * meta["batch"]])
        fixed = run("verify", folder, "--json")
        self.set_symbols(model, ["", "sequence"])
        done = run("verify", folder, "--json")
        rows = [json.loads(text)["references"][0]["rows"] for text in (fixed.stdout, done.stdout)]
        self.assertEqual([row["what"] for row in rows[0]], ["validation", "losses", "plan"])
        self.assertTrue(rows[0][1]["ok"])
        self.assertEqual(rows[0], rows[1])

    def test_a_fixed_size_that_differs_is_refused(self):
        def change(tensors):
            tensors["batch.0:x"] = twice(tensors["batch.0:x"])

        folder = self.symbolic("mlp", [])
        self.change_tensors(folder, change)
        done, _ = self.gradients(folder)
        self.check_refused(done, "tensor 'x' is f32[32,33], the model has [16,33] there", "batch.0")
        self.check_refused(run("verify", folder), "tensor 'x' is f32[32,33]", str(folder))

    def test_labels_of_another_size_are_refused_by_name(self):
        def change(tensors):
            tensors["batch.0:labels"] = twice(tensors["batch.0:labels"])

        folder = self.symbolic("mlp", ["N"])
        self.change_tensors(folder, change)
        done, _ = self.gradients(folder)
        self.check_refused(done, "dimension 'N' of the model is 16 in tensor 'x', but 32 in 'labels'",
                           "batch.0")

    def test_a_size_that_no_tensor_gives_is_named(self):
        def change(tensors):
            del tensors["batch.0:x"]

        folder = self.symbolic("mlp", ["N"], outputs=False)
        self.change_tensors(folder, change)
        done, _ = self.gradients(folder)
        self.check_refused(done, "input 'x': dimension 0 'N'", "add a tensor batch.N:INPUT")

    def test_an_input_without_a_tensor_is_refused_where_the_labels_say_its_size(self):
        def change(tensors):
            del tensors["batch.0:x"]

        folder = self.symbolic("mlp", ["N"])
        self.change_tensors(folder, change)
        done, _ = self.gradients(folder)
        self.check_refused(done, "the batch holds no tensor 'x', which the step reads", "batch.0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
