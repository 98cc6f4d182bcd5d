#!/usr/bin/python3
"""The campaign finds what it is for, and a small one of it finds nothing.

Usage: attack_test.py TRAINSCOPE. Programs that do one thing wrong stand for Trainscope: each must
be reported, and one that does right must not. Then a few cases of each part attack Trainscope.
"""
import sys
import tempfile
import unittest
from pathlib import Path

import campaign
import data_files
import mutant_cases
import mutants
import process
import run_files
from cases import Case, Step, run_case
from sandbox import Sandbox

PROGRAM = sys.argv.pop()
REFUSAL = "echo \"error: 'x' is no model\" >&2; exit 3"
MANIFEST = '{"sessions": [{"status": "STATUS", "exit_code": 3}]}'


class Stub:
    """A part whose cases are one `train` of a run that is not there yet."""
    NAME = "stub"

    @staticmethod
    def build(case, shared, sandbox):
        (sandbox.given / "model.onnx").write_bytes(b"model")
        (sandbox.work / "link").symlink_to("../outside/notes.txt")
        yield Step(["train", "../given/model.onnx", "--run-dir", "run"], ("work/run",), "work/run")


class Faults(unittest.TestCase):
    def verdict(self, script, seconds=20.0, words=()):
        """When this script is the program; `words`: of another command than the usual one."""
        part = type("Part", (Stub,), {"build": lambda *_: [Step(list(words))]}) if words else Stub
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program"
            path.write_text(f"#!/bin/bash\n{script}\n")
            path.chmod(0o755)
            return run_case(campaign.describe(path), part, Case("stub", "a", "b", 1), None,
                            process.Limits(seconds=seconds))

    def fault(self, script, **options):
        return self.verdict(script, **options).fault

    def test_what_is_right(self):
        self.assertEqual(self.fault(REFUSAL), "")
        self.assertEqual(self.fault("mkdir run; echo done > run/model.onnx"), "")
        self.assertEqual(self.fault(f"mkdir run; echo '{MANIFEST}' | sed s/STATUS/failed/ "
                                    f"> run/manifest.json; {REFUSAL}"), "")

    def test_signals(self):
        self.assertEqual(self.fault("kill -SEGV $$"), "signal SIGSEGV")
        self.assertEqual(self.fault("kill -FPE $$"), "signal SIGFPE")

    def test_codes(self):
        self.assertEqual(self.fault("echo \"error: 'x'\" >&2; exit 42"), "undocumented code 42")
        self.assertIn("code 1: run_failed", self.fault("echo \"error: 'x'\" >&2; exit 1"))
        self.assertIn("code 130", self.fault("echo \"error: 'x'\" >&2; exit 130"))

    def test_texts(self):
        self.assertEqual(self.fault("exit 3"), "code 3 without an error")
        self.assertEqual(self.fault("echo 'error: bad' >&2; exit 3"), "code 3 and names nothing")
        self.assertEqual(self.fault("echo \"error: 'x'\" >&2"), "code 0 with an error")
        self.assertEqual(self.fault("echo \"error: 'x' could not create a primitive\" >&2; exit 3"),
                         "code 3 in a library's own words")
        self.assertEqual(self.fault(r"printf 'node \033[31m\n'"), "control characters on stdout")
        self.assertEqual(self.fault(r"printf 'error: \377\n' >&2; exit 3"), "stderr is not UTF-8")

    def test_json(self):
        words = ["check", "model.onnx", "--json"]
        self.assertEqual(self.fault(REFUSAL, words=words), "no JSON with --json")
        self.assertEqual(self.fault("echo '{\"error\": {\"code\": 2}}'; " + REFUSAL, words=words),
                         "another code in the JSON")
        self.assertEqual(self.fault("echo '{\"error\": {\"code\": 3}}'; " + REFUSAL, words=words),
                         "")

    def test_sanitizers(self):
        for line in ("==1==ERROR: AddressSanitizer: heap-buffer-overflow",
                     "a.cpp:1:2: runtime error: signed integer overflow"):
            self.assertEqual(self.fault(f"echo '{line}' >&2; exit {process.SANITIZER_CODE}"),
                             "a sanitizer's report")
        refused = "==1==ERROR: AddressSanitizer: allocation-size-too-big"
        self.assertEqual(self.fault(f"echo '{refused}' >&2; exit {process.SANITIZER_CODE}"), "")

    def test_hanging(self):
        self.assertIn("time-out", self.fault("sleep 60", seconds=0.2))

    def test_writes_outside(self):
        for script in ("echo x >> ../outside/notes.txt", "echo x > ../given/model.onnx",
                       "touch new", "echo x >> link", "rm ../outside/taken/data",
                       "touch ../outside/home/.cache", "touch ../given/a; rm ../given/a"):
            self.assertEqual(self.fault(script), "a write outside the run", script)

    def test_sessions(self):
        write = f"mkdir run; echo '{MANIFEST}' > run/manifest.json; "
        self.assertIn("stays `running`", self.fault(write.replace("STATUS", "running") + REFUSAL))
        self.assertEqual(self.fault(write), "code 0, 3 in the run's manifest")

    def test_memory_is_limited(self):
        take = ("/usr/bin/python3 -c 'b\"x\" * ({} << 20)' 2>/dev/null || "
                "{{ echo 'error: memory' >&2; exit 5; }}")
        self.assertEqual(self.verdict(take.format(3000)).code, 5)
        small = self.verdict(take.format(300))
        self.assertEqual(small.code, 0)
        self.assertGreater(small.peak_bytes, 300 << 20)


class Cases(unittest.TestCase):
    def test_a_mutant_is_a_function_of_its_name(self):
        base = mutant_cases.base_model("mlp", None).read_bytes()
        for kind in mutants.KINDS:
            made = [mutants.make(kind, base, (kind, "mlp", seed)) for seed in (1, 1, 2)]
            self.assertEqual(made[0].serialized(), made[1].serialized(), kind)
            self.assertEqual(made[0].flags, made[1].flags, kind)
            self.assertTrue(made[0].flags or made[0].serialized() != base, kind)
        self.assertEqual(len(mutants.KINDS), 12)
        self.assertEqual(len(mutant_cases.SUBJECTS), 8)

    def test_kinds_and_subjects_take_turns(self):
        cases = list(campaign.cases_of(mutant_cases, 96, 1, []))
        self.assertEqual(len({(case.kind, case.subject) for case in cases}), 96)
        self.assertEqual(campaign.case_named(str(cases[5])), cases[5])

    def test_hashes_of_checkpoints_are_those_of_the_program(self):
        """Else no damaged checkpoint would reach what is behind the hashes."""
        with tempfile.TemporaryDirectory() as folder:
            run_files.prepare(campaign.describe(PROGRAM), Path(folder))
            for subject in run_files.SUBJECTS:
                paths = sorted(Path(folder).glob(f"{subject}/work/run/checkpoints/*/manifest.json"))
                self.assertEqual(len(paths), 3)
                for path in paths:
                    before = path.read_bytes()
                    run_files.seal_checkpoint(path)
                    run_files.seal_checkpoint(path.parent / "model.safetensors")
                    self.assertEqual(path.read_bytes(), before)


class Sample(unittest.TestCase):
    def test_a_few_cases_of_each_part(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.md"
            code = campaign.main([PROGRAM, "--mutants", "60", "--run-files", "30", "--data-files",
                                  "20", "--seconds", "120", "--seed", "7", "--out", str(out)])
            text = out.read_text()
        self.assertEqual(code, 0, text)
        for part, count in (("mutants", 60), ("run_files", 30), ("data_files", 20)):
            self.assertIn(f"## {part}: {count} cases", text)
        for code in ("0", "2", "3"):
            self.assertRegex(text, rf"\| kind \| cases \|.* {code} \|")


if __name__ == "__main__":
    unittest.main()
