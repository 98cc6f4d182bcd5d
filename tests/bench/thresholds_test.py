#!/usr/bin/python3
"""bench/thresholds.py: what counts as a loss, its tables, and its models.

Usage: thresholds_test.py TRAINSCOPE
"""
import json
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import thresholds  # noqa: E402  (found through the line above)

PROGRAM = Path(sys.argv.pop())


def case(threshold, chosen_ms, best_ms):
    return {"threshold": threshold, "case": f"{chosen_ms} and {best_ms}", "chosen": "a.own",
            "chosen_ms": chosen_ms, "best": "a.other", "best_ms": best_ms}


class Thresholds(unittest.TestCase):
    def test_a_choice_loses_where_another_is_a_twentieth_quicker(self):
        text = thresholds.kernel_section([case("t", 1.0, 1.0), case("t", 1.04, 1.0),
                                          case("t", 3.0, 2.0), case("u", 1.0, 1.0)])
        self.assertIn("| t | 3 | 1 | 1.04 | 1.50 | 1.260 |", text)
        self.assertIn("| u | 1 | 0 | 1.00 | 1.00 | 1.000 |", text)
        worst = text.split("The worst cases")[1].splitlines()[4]
        self.assertIn("| 3.0 and 2.0 | a.own | 3.000 | a.other | 2.000 | 1.50 |", worst)

    def test_tiles_are_beside_the_step_without(self):
        ms = {"none": 2.0, "a quarter": 1.0, "as built in": 1.9, "four times": 2.5}
        slow = {"none": 1.0, "a quarter": 1.0, "as built in": 1.1, "four times": 1.0}
        text = thresholds.tile_section([{"model": "m", "ms": ms}, {"model": "n", "ms": slow}])
        self.assertIn("| m | 2.000 | 0.50 | 0.95 | 1.25 |", text)
        self.assertIn("loses on 1 of 2", text)

    def test_the_program_takes_its_machine_files_and_models(self):
        """With the real program: short steps of one model without and one with a sequence."""
        options = types.SimpleNamespace(build=PROGRAM.parent, threads=2, quick=True)
        with tempfile.TemporaryDirectory() as folder:
            machine = thresholds.machine_file(options, folder, 4.0)
            self.assertEqual(json.loads(machine.read_text())["seconds_per_fork"], 4 * 3e-4 / 128)
            for words, _, _ in thresholds.MODELS.values():
                subprocess.run([PROGRAM, "model", *words, "--out", Path(folder) / "m.onnx", "-q"],
                               check=True, stdout=subprocess.DEVNULL)
        names = [next(iter(thresholds.MODELS)), "gpt2 2 layers of 48, batch 6, 24 tokens"]
        with unittest.mock.patch.object(thresholds, "MODELS",
                                        {name: thresholds.MODELS[name] for name in names}):
            rows = thresholds.tile_rows(options)
        self.assertEqual([row["model"] for row in rows], names)
        self.assertTrue(all(ms > 0 for row in rows for ms in row["ms"].values()))


if __name__ == "__main__":
    unittest.main()
