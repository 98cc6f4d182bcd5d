#!/usr/bin/python3
"""ONNX's backend tests through `trainscope conformance`: all that can run pass, in every way.

Usage: onnx_conformance_test.py TRAINSCOPE. Exit code 77 (skipped) without libonnx-testdata.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

DATA = Path("/usr/share/libonnx-testdata/data")
PROGRAM = Path(sys.argv.pop()).resolve()
TESTS = 1072
LEAST_PASSES = 987

if not DATA.is_dir():
    print("skipped: libonnx-testdata is not installed")
    sys.exit(77)


def conformance(*words):
    done = subprocess.run([PROGRAM, "conformance", *words, "--json"], capture_output=True,
                          text=True, check=False, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    return done.returncode, json.loads(done.stdout)


class Conformance(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.code, cls.facts = conformance(DATA, "--threads", "1")

    def verdicts(self, facts):
        return {test["name"]: test["verdict"] for test in facts["tests"]}

    def test_all_that_can_run_pass(self):
        bad = [test for test in self.facts["tests"] if test["verdict"] in ("wrong", "error")]
        self.assertEqual(bad, [])
        self.assertEqual(self.code, 0)
        self.assertEqual(len(self.facts["tests"]), TESTS)
        self.assertGreaterEqual(self.facts["pass"], LEAST_PASSES)

    def test_counts_are_those_of_the_list(self):
        counts = Counter(self.verdicts(self.facts).values())
        for verdict in ("pass", "wrong", "error", "unsupported"):
            self.assertEqual(self.facts[verdict], counts[verdict])

    def test_unsupported_ones_say_what_is_missing(self):
        for test in self.facts["tests"]:
            self.assertEqual(test["why"] == "", test["verdict"] == "pass", test)

    def test_without_passes_and_with_all_inputs_known_it_is_the_same(self):
        for words in (["--passes", "none"], ["--known-inputs", "all"],
                      ["--passes", "none", "--kernels", "reference"], ["--threads", "2"]):
            with self.subTest(words=words):
                code, facts = conformance(DATA, *words)
                self.assertEqual(code, 0)
                different = {name: verdict for name, verdict in self.verdicts(facts).items()
                             if verdict != self.verdicts(self.facts)[name]}
                self.assertEqual(different, {})

    def test_exit_code_tells_of_a_wrong_one(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("test_relu", "test_abs"):
                shutil.copytree(DATA / "node" / name, Path(folder) / name)
            code, facts = conformance(folder)
            self.assertEqual((code, facts["pass"]), (0, 2))
            shutil.copy(DATA / "node/test_abs/test_data_set_0/input_0.pb",
                        Path(folder) / "test_abs/test_data_set_0/output_0.pb")
            code, facts = conformance(folder)
            self.assertEqual((code, facts["pass"], facts["wrong"]), (9, 1, 1))
            (Path(folder) / "test_relu/model.onnx").write_bytes(b"no model")
            code, facts = conformance(folder)
            self.assertEqual((code, facts["error"], facts["wrong"]), (9, 1, 1))


if __name__ == "__main__":
    unittest.main()
