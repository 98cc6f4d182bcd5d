#!/usr/bin/python3
"""ONNX's own checker and shape inference accept what `trainscope model` writes.

Usage: checker_test.py TRAINSCOPE. Exit code 77 (skipped) without python3-onnx.
"""
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

GPT2 = ["gpt2", "--layers", "2", "--heads", "2", "--embedding", "16", "--vocab", "11",
        "--context", "12", "--seed", "3"]
PROGRAM = Path(sys.argv.pop()).resolve()


class Checker(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = Path(self.folder.name) / "model.onnx"

    def build(self, *words):
        subprocess.run([PROGRAM, "model", *words, "-o", self.file], check=True,
                       stdout=subprocess.DEVNULL)
        model = onnx.load(self.file)
        onnx.checker.check_model(model, full_check=True)
        return model

    def dims(self, value):
        return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]

    def inferred(self, model):
        """The dims that ONNX's own rules give each value that is no scalar."""
        graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
        return {v.name: self.dims(v) for v in graph.value_info
                if not v.name.startswith(("/number/", "/integer/"))}

    def test_gpt2(self):
        for flags in ([], ["--no-bias", "--activation", "gelu"], ["--activation", "relu"],
                      ["--dropout", "0.1"]):
            with self.subTest(flags=flags):
                model = self.build(*GPT2, *flags)
                self.assertEqual(self.dims(model.graph.input[0]), ["batch", "sequence"])
                self.assertEqual(self.dims(model.graph.output[0]), ["batch", "sequence", 11])
                self.assertEqual([v.name for v in model.graph.output], ["logits"])
                self.assertEqual(model.opset_import[0].version, 17)
                self.assertEqual({n.domain for n in model.graph.node}, {""})
                shapes = self.inferred(model)
                self.assertEqual(shapes["/embedded"], ["batch", "sequence", 16])
                self.assertEqual(shapes["/h.1/attn/c_attn"][2], 48)
                self.assertEqual(shapes["/h.1/attn/k_transposed"][1:3], [2, 8])
                self.assertTrue(all(shapes.values()))

    def test_dropout_is_off_unless_training(self):
        model = self.build(*GPT2, "--dropout", "0.1")
        drops = [n for n in model.graph.node if n.op_type == "Dropout"]
        self.assertEqual(len(drops), 1 + 3 * 2)
        for node in drops:
            self.assertEqual(len(node.input), 2)  # no training_mode: false

    def test_every_float_initializer_is_a_parameter(self):
        for words in (GPT2, ["mlp", "--dims", "6,5,4"]):
            for each in self.build(*words).graph.initializer:
                self.assertTrue(each.name.endswith((".weight", ".bias")), each.name)

    def test_every_builder(self):
        for words, inputs, output in (
                (["bert", "--layers", "1", "--heads", "2", "--embedding", "16", "--vocab", "11",
                  "--mask"], ["ids", "segments", "mask"], ["batch", "sequence", 11]),
                (["llama", "--layers", "1", "--heads", "4", "--kv-heads", "2", "--embedding", "16",
                  "--vocab", "11"], ["ids"], ["batch", "sequence", 11]),
                (["vit", "--size", "small", "--layers", "1", "--dropout", "0.1"], ["x"],
                 ["batch", 1000]),
                (["resnet", "--size", "50-cifar", "--width", "4"], ["x"], ["batch", 10]),
                (["resnet", "--width", "4"], ["x"], ["batch", 1000]),
                (["lenet", "--image", "28"], ["x"], ["batch", 10]),
                (["unet", "--width", "2", "--image", "32", "--dropout", "0.5"], ["x"],
                 ["batch", 2, 32, 32])):
            with self.subTest(words=words):
                model = self.build(*words)
                self.assertEqual([v.name for v in model.graph.input], inputs)
                self.assertEqual([v.name for v in model.graph.output], ["logits"])
                self.assertEqual(self.dims(model.graph.output[0]), output)
                self.assertEqual(model.opset_import[0].version, 17)
                self.assertEqual({n.domain for n in model.graph.node}, {""})
                self.assertTrue(all(self.inferred(model).values()))

    def test_mlp(self):
        model = self.build("mlp", "--dims", "6,5,4", "--activation", "tanh", "--no-bias")
        self.assertEqual(self.dims(model.graph.input[0]), ["batch", 6])
        self.assertEqual(self.dims(model.graph.output[0]), ["batch", 4])
        self.assertEqual([n.op_type for n in model.graph.node], ["Gemm", "Tanh", "Gemm"])

    def test_flags_decide_about_biases(self):
        def biases(*words):
            names = [t.name for t in self.build(*words).graph.initializer]
            return sum(name.endswith(".bias") for name in names)
        self.assertEqual(biases(*GPT2), 2 * 6 + 1)
        self.assertEqual(biases(*GPT2, "--bias"), 2 * 6 + 1)
        self.assertEqual(biases(*GPT2, "--no-bias"), 0)
        self.assertEqual(biases("mlp", "--dims", "6,5,4"), 2)

    def test_same_seed_same_file(self):
        self.build(*GPT2)
        first = self.file.read_bytes()
        self.build(*GPT2)
        self.assertEqual(first, self.file.read_bytes())

    def test_refusals(self):
        for words in (["gpt2"], ["gpt3", "-o", "x"], ["mlp", "--layers", "2", "-o", "x"],
                      ["mlp", "--dims", "4,x", "-o", "x"], ["gpt2", "--heads", "5", "-o", "x"]):
            done = subprocess.run([PROGRAM, "model", *words], cwd=self.folder.name,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr)
            self.assertFalse((Path(self.folder.name) / "x").exists())


if __name__ == "__main__":
    unittest.main()
