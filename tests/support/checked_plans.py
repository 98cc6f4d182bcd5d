"""Runs whose plans scripts/check_plan.py is to check, as they are or with a fault planted in them.

Imported by tests that are run with the path of the program as their last argument; ends with exit
code 77 (skipped) without python3-onnx or numpy.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy  # noqa: F401  (the checker needs both)
    import onnx  # noqa: F401
except ImportError:
    print("skipped: python3-onnx or python3-numpy is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/data/models"
PROGRAM = Path(sys.argv.pop()).resolve()


class CheckedPlans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def train(self, model, *flags, threads=1):
        run = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        file = model if isinstance(model, Path) else MODELS / model / "model.onnx"
        done = subprocess.run(
            [PROGRAM, "train", file, "--data", "synthetic", "--steps", "1",
             "--threads", str(threads), "-q", "--run-dir", run, *flags], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def check(self, *words):
        done = subprocess.run(["/usr/bin/python3", ROOT / "scripts/check_plan.py", *words],
                              capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")  # 1 is also how Python ends with a traceback
        return done.stdout

    def arena(self, run):
        return json.loads((run / "plan.json").read_text())["arena_bytes"]

    def unet(self, *flags):
        """A run in which values lie inside others."""
        model = self.folder / "unet.onnx"
        subprocess.run([PROGRAM, "model", "unet", "--depth", "2", "--width", "8", "--image", "32",
                        "-q", "--out", model], check=True, capture_output=True)
        return self.train(model, "--batch", "1", "--loss", "cross_entropy:class_axis=1", *flags)

    def spoil(self, run, change):
        """What is found after a change to plan.json, which is read where there is no plan.bin."""
        (run / "plan.bin").unlink(missing_ok=True)
        path = run / "plan.json"
        plan = json.loads(path.read_text())
        change(plan)
        path.write_text(json.dumps(plan))
        return self.check(run)

    def worlds(self, *flags):
        """The plans of the devices of worlds, in the order of their names."""
        plans = self.folder / f"plans-{len(list(self.folder.iterdir()))}"
        subprocess.run([PROGRAM, "plan", MODELS / "gpt2/model.onnx", "--threads", "1",
                        "--target", "a100-40", "--plans", plans, *flags],
                       check=True, capture_output=True)
        return sorted(plans.glob("*/*"))
