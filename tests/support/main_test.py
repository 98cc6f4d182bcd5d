#!/usr/bin/python3
"""Exit codes of a test program: 0, 1, 77 when every matching case is skipped, 1 when none matches."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()


def exit_code(test_cases, **environment):
    run = subprocess.run([PROGRAM, f"--test-case={test_cases}"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env={**os.environ, **environment}, check=False)
    return run.returncode


class ExitCodes(unittest.TestCase):
    def test_all_pass(self):
        self.assertEqual(0, exit_code("*"))

    def test_one_fails(self):
        self.assertEqual(1, exit_code("*", TRAINSCOPE_TEST_FAIL="1"))

    def test_all_skipped(self):
        self.assertEqual(77, exit_code("left out*"))

    def test_some_skipped(self):
        self.assertEqual(0, exit_code("runs*,left out*"))

    def test_what_leaves_avx512_unused_is_skipped_without_it(self):
        has_it = " avx512f " in Path("/proc/cpuinfo").read_text(encoding="ascii")
        self.assertEqual(0 if has_it else 77, exit_code("*", TRAINSCOPE_TEST_NEEDS="avx512"))

    def test_no_match(self):
        self.assertEqual(1, exit_code("no such case"))


if __name__ == "__main__":
    unittest.main()
