#!/usr/bin/python3
"""References of torch modules: numbers that `trainscope verify` accepts, and no others.

Usage: reference_test.py TRAINSCOPE. Exit code 77 (skipped) without numpy, torch or onnx.
"""
import contextlib
import io
import subprocess
import sys
import unittest
from pathlib import Path

from support import MODELS, FolderCase, skip_without

skip_without("numpy", "torch", "onnx")
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from trainscope.__main__ import main  # noqa: E402
from trainscope.arguments import json_file  # noqa: E402
from trainscope.batches import reference_batches  # noqa: E402
from trainscope.onnx_graph import Graph  # noqa: E402
from trainscope.reference import export, load  # noqa: E402
from trainscope.tensor_file import read_elements, read_tensors, write_tensors  # noqa: E402

PROGRAM = Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else None

# What a user writes: batches of two sizes, tied weights, batch norm.
MODULES = '''
import torch
from torch import nn

class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        h = nn.functional.max_pool2d(h, 3, 2, 1)
        return self.head(h.mean((2, 3)))

class Words(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.layer(self.table(ids)))

def pictures():
    torch.manual_seed(3)
    batches = [{"x": torch.randn(6, 2, 7, 7), "labels": torch.randint(3, (6,))} for _ in range(2)]
    return {"module": Pictures(), "batches": batches, "loss": {"kind": "cross_entropy"}}

def words(dropout=0.0):
    torch.manual_seed(4)
    batches = [{"ids": torch.randint(11, (n, 5)), "labels": torch.randint(11, (n, 5))}
               for n in (3, 4)]
    return {"module": Words(dropout), "batches": batches, "output": "scores",
            "loss": {"kind": "cross_entropy"}, "name": "words",
            "optimizers": {"adamw": {"kind": "adamw", "lr": [2e-3] * 10, "weight_decay": 0.1,
                                     "betas": [0.9, 0.95], "decay": "matrices", "clip_norm": 0.5}},
            "dynamic_axes": {"ids": {0: "examples"}, "scores": {0: "examples"}}}

def dropping():
    return words(0.1)

def numbers():
    torch.manual_seed(5)
    batch = {"x": torch.randn(5, 3), "target": torch.randn(5, 2)}
    return {"module": nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
            "batches": [{"input": batch["x"], "target": batch["target"]}],
            "loss": {"kind": "mse", "label": "target"}}
'''


class References(FolderCase):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        (self.folder / "mine.py").write_text(MODULES)

    def export(self, function):
        words = ["reference", "export", f"{self.folder / 'mine.py'}:{function}", "--out",
                 str(self.folder / function)]
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main(words), 0)
        return self.folder / function

    def verify(self, folder):
        return subprocess.run([PROGRAM, "verify", folder], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    @unittest.skipUnless(PROGRAM, "the program was not named")
    def test_are_what_the_engine_computes(self):
        for function, rows in (("pictures", 60), ("words", 80), ("numbers", 30)):
            with self.subTest(function):
                result = self.verify(self.export(function))
                self.assertEqual(result.returncode, 0, result.stdout)
                self.assertGreater(sum(line.strip().startswith("ok") for line in
                                       result.stdout.splitlines()), rows)

    @unittest.skipUnless(PROGRAM, "the program was not named")
    def test_a_wrong_number_is_found(self):
        folder = self.export("pictures")
        path = folder / "reference.safetensors"
        tensors = {name: each.raw.copy() for name, each in read_elements(path).items()}
        tensors["grad.f64:norm.weight"] *= 1.00001
        write_tensors(path, tensors)
        result = self.verify(folder)
        self.assertEqual(result.returncode, 9, result.stdout)
        over = [line for line in result.stdout.splitlines() if "OVER" in line]
        self.assertTrue(over and all("norm.weight" in line for line in over), over)

    def test_say_what_a_reader_needs(self):
        folder = self.export("words")
        meta = json_file(folder / "meta.json")
        self.assertEqual(meta["tied"], {"head.weight": "table.weight"})
        self.assertNotIn("head.weight", meta["trainable"])
        self.assertEqual(sorted(meta["trainable"] + meta["frozen"]),
                         sorted(Graph(folder / "model.onnx").initializers))
        # A key bias under softmax is: here the middle third of one packed bias, which is not.
        self.assertEqual(meta["noise"]["vanishing_grads"], [])
        self.assertLess(meta["noise"]["graph_vs_module_f64"]["loss_rel"], 1e-7)
        self.assertLess(meta["noise"]["grad_all_rel_l2"], 1e-6)
        self.assertGreater(meta["noise"]["grad_all_rel_l2"], 1e-9)
        tensors = read_tensors(folder / "reference.safetensors")
        self.assertEqual([tensors[f"batch.{b}:ids"].shape for b in (0, 1)], [(3, 5), (4, 5)])

    def test_are_the_numbers_of_another_reference_of_the_same_module(self):
        shared = MODELS / "mlp"
        module = nn.Sequential(nn.Linear(33, 64), nn.ReLU(), nn.Linear(64, 48), nn.ReLU(),
                               nn.Linear(48, 10))
        module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in
                                Graph(shared / "model.onnx").initializers.items()})
        meta = json_file(shared / "meta.json")
        batches = [{"input" if name == "x" else name: array.copy() for name, array in batch.items()}
                   for batch in reference_batches(shared / "reference.safetensors")]
        made = export({"module": module, "batches": batches, "loss": meta["loss"],
                       "output": "logits", "optimizers": meta["optimizers"]}, self.folder / "mlp")
        for file in ("reference", "adamw", "sgdm"):
            expected = read_tensors(shared / f"{file}.safetensors")
            found = read_tensors(self.folder / "mlp" / f"{file}.safetensors")
            compared = 0
            for key, array in expected.items():
                if ".f64:" in key and key in found:
                    gap = numpy.linalg.norm(found[key] - array)
                    self.assertLessEqual(gap, 1e-12 * numpy.linalg.norm(array), key)
                    compared += 1
            self.assertGreater(compared, 7)
        # In units of an error that the other program measured by a run of its own.
        ratio = made["noise"]["kink_margin"] / meta["noise"]["kink_margin"]
        self.assertTrue(0.5 < ratio < 2.0, ratio)

    def test_refusals_say_what_to_do(self):
        where = str(self.folder / "mine.py")
        self.refuses("set its p to 0", 2, export, load(f"{where}:dropping"), self.folder / "d")
        self.refuses("expected FILE.py:FUNCTION", 2, load, "mine")
        self.refuses("cannot be called", 2, load, f"{where}:nothing")
        self.refuses("cannot be called", 2, load, f"{self.folder / 'none.py'}:f")
        self.refuses("has no 'loss'", 2, export, {"module": 1, "batches": []}, self.folder / "d")
        about = load(f"{where}:numbers")
        about["loss"] = {"kind": "mse", "label": "other"}
        self.refuses("no labels 'other'", 2, export, about, self.folder / "d")


if __name__ == "__main__":
    unittest.main()
