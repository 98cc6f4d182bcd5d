#!/usr/bin/python3
"""Manual pages: every verb has one with all its flags, and groff has nothing to warn of.

Usage: man_test.py TRAINSCOPE
"""
import json
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "ENVIRONMENT", "EXIT STATUS"]


def output_of(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout


class Man(unittest.TestCase):
    def setUp(self):
        self.verbs = json.loads(output_of("help", "--json"))["verbs"]

    def test_sections(self):
        for verb in self.verbs:
            page = output_of("help", "--man", verb["name"])
            for section in SECTIONS:
                self.assertIn(f"\n.SH {section}\n", page, verb["name"])
            self.assertIn(f'trainscope\\-{verb["name"]} \\- ', page)

    def test_every_flag(self):
        for verb in self.verbs:
            page = output_of("help", verb["name"], "--man")
            for flag in verb["flags"]:
                self.assertIn(flag["name"].lstrip("-").replace("-", "\\-"), page)

    def test_page_of_the_program(self):
        page = output_of("help", "--man")
        for verb in self.verbs:
            self.assertIn(f'\\fB{verb["name"]}\\fR', page)
        for code in ("0", "2", "9", "130", "143"):
            self.assertIn(f"\\fB{code}\\fR", page)

    def test_groff_has_no_warnings(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        for words in [[], *[[verb["name"]] for verb in self.verbs]]:
            page = output_of("help", "--man", *words)
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page, text=True,
                                  capture_output=True, check=True)
            self.assertEqual("", done.stderr, words)
            self.assertIn("EXIT STATUS", re.sub(".\x08", "", done.stdout))

    def test_no_line_is_taken_for_a_request(self):
        for verb in self.verbs:
            for line in output_of("help", "--man", verb["name"]).split("\n"):
                if line.startswith((".", "'")):
                    self.assertRegex(line, r'^\.(TH|SH|TP|EX|EE|BR|\\")')


if __name__ == "__main__":
    unittest.main()
