#!/usr/bin/python3
"""Completion in the shells that are there: what bash offers, and that zsh and fish take the script.

Usage: completion_test.py TRAINSCOPE
"""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()

# Calls the function as readline does. COMP_WORDBREAKS has '=': it makes a word of its own.
CALL = """
source "$1"
shift
complete -p trainscope >/dev/null || exit 1
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
_trainscope
printf '%s\\n' "${COMPREPLY[@]}"
"""


def output_of(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True).stdout


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.script = Path(cls.folder.name) / "completion.bash"
        cls.script.write_text(output_of("completion", "bash"), encoding="utf-8")
        cls.verbs = json.loads(output_of("help", "--json"))["verbs"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def offers(self, *words):
        done = subprocess.run(
            ["bash", "--norc", "-c", CALL, "bash", str(self.script), "trainscope", *words],
            check=True, capture_output=True, text=True)
        self.assertEqual("", done.stderr)
        return [word for word in done.stdout.split("\n") if word]

    def test_the_script_is_valid(self):
        subprocess.run(["bash", "-n", str(self.script)], check=True)

    def test_verbs(self):
        self.assertEqual([verb["name"] for verb in self.verbs], self.offers(""))
        self.assertEqual(["train"], self.offers("tr"))
        self.assertEqual([], self.offers("nothing-like-it"))

    def test_flags_before_the_verb(self):
        self.assertEqual(["--threads"], self.offers("--thr"))
        self.assertEqual(["train"], self.offers("--threads", "4", "tr"))
        self.assertEqual(["train"], self.offers("--threads", "=", "4", "tr"))
        self.assertEqual(["train"], self.offers("-q", "tr"))

    def test_every_flag_of_every_verb(self):
        for verb in self.verbs:
            offered = self.offers(verb["name"], "-")
            for flag in verb["flags"]:
                self.assertIn(flag["name"], offered, verb["name"])
            self.assertIn("--json", offered)
            self.assertEqual(len(offered), len(set(offered)), verb["name"])

    def test_flags_begin_as_typed(self):
        self.assertEqual(["--save-every"], self.offers("train", "m.onnx", "--save"))
        self.assertEqual(["--bias", "--no-bias"],
                         self.offers("model", "gpt2", "--bias")
                         + self.offers("model", "gpt2", "--no-bias"))

    def test_choices(self):
        for verb in self.verbs:
            for flag in verb["flags"]:
                if flag["type"] == "choice":
                    choices = flag["value"].split("|")
                    self.assertEqual(choices, self.offers(verb["name"], flag["name"], ""))
        self.assertEqual(["cosine"], self.offers("train", "--schedule", "cos"))
        self.assertEqual(["cosine"], self.offers("train", "--schedule", "=", "cos"))
        self.assertIn("cosine", self.offers("train", "--schedule", "="))
        self.assertEqual(["always"], self.offers("--color", "al"))

    def test_values_are_no_flags(self):
        self.assertEqual([], self.offers("train", "--steps", ""))
        self.assertEqual([], self.offers("train", "--run-dir", ""))  # bash offers files then

    def test_arguments(self):
        # An action, or the verb of `config show VERB`.
        self.assertEqual(["show", "shot"], self.offers("config", "sh"))
        self.assertEqual(["validate"], self.offers("config", "val"))
        self.assertEqual(["bash", "zsh", "fish"], self.offers("completion", ""))
        self.assertEqual(["gradients"], self.offers("help", "grad"))
        self.assertEqual([], self.offers("train", "m"))


class OtherShells(unittest.TestCase):
    def check(self, shell, *flags):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script"
            script.write_text(output_of("completion", shell), encoding="utf-8")
            subprocess.run([shell, *flags, str(script)], check=True)

    def test_zsh(self):
        self.check("zsh", "-n")

    def test_fish(self):
        self.check("fish", "--no-execute")

    def test_every_flag_is_in_every_script(self):
        verbs = json.loads(output_of("help", "--json"))["verbs"]
        for shell, form in (("zsh", "--{}"), ("fish", "-l {}")):
            script = output_of("completion", shell)
            for verb in verbs:
                self.assertIn(verb["name"], script)
                for flag in verb["flags"]:
                    self.assertIn(form.format(flag["name"].lstrip("-")), script)


if __name__ == "__main__":
    unittest.main()
