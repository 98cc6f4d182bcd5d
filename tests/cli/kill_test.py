#!/usr/bin/python3
"""Kills runs that save checkpoints with SIGKILL at random moments, and resumes them.

Usage: kill_test.py TRAINSCOPE [--rounds N] [--seed S]. After each kill every checkpoint on disk must
be byte for byte that of an uninterrupted run, the newest at least as new as the last one that the log
says was saved; so every resume is bit-exact, also on another number of threads
(--deterministic strict).
"""
import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from kept_plans import keep  # noqa: E402

MODEL = Path(__file__).resolve().parents[1] / "data/models/gpt2-dropout/model.onnx"
STEPS = 60
KEEP = 3
SETTINGS = ["--data", "synthetic,examples=64", "--seed", "5", "--lr", "1e-2", "--clip", "1",
            "--accumulate", "2", "--schedule", "cosine", "--warmup", "5", "--eval-every", "7",
            "--save-every", "1", "--deterministic", "strict", "--progress", "none"]


def command(program, folder, *more):
    return [program, "train", str(MODEL), "--steps", str(STEPS), "--run-dir", str(folder), *SETTINGS,
            *more]


def fail(message):
    print(f"FAILED: {message}")
    sys.exit(1)


def manifest_of(checkpoint):
    """The manifest without its own hash and without facts about the machine."""
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest.pop("xxh3")
    manifest["settings"].pop("about")
    return manifest


def is_same(checkpoint, reference):
    names = sorted(path.name for path in checkpoint.iterdir())
    if names != sorted(path.name for path in reference.iterdir()):
        return False
    tensors = [name for name in names if name.endswith(".safetensors")]
    same = all((checkpoint / n).read_bytes() == (reference / n).read_bytes() for n in tensors)
    return same and manifest_of(checkpoint) == manifest_of(reference)


def last_saved(folder):
    """The last step of the log's "step N: saved a checkpoint" lines; 0 without one."""
    log = folder / "log.jsonl"
    steps = [0]
    for line in log.read_text().split("\n")[:-1] if log.exists() else []:
        message = json.loads(line)["message"]
        if message.endswith(": saved a checkpoint"):
            steps.append(int(message.split()[1].rstrip(":")))
    return steps[-1]


class Counts:
    def __init__(self):
        self.kills = 0
        self.in_a_save = 0
        self.compared = 0
        self.resumes = 0
        self.finished = 0

    def text(self):
        return (f"{self.kills} kills, {self.in_a_save} of them in a save; {self.compared} checkpoints "
                f"compared; {self.resumes} resumes, all bit-exact; {self.finished} runs to the end")


def newest_step(folder):
    steps = [int(p.name[5:]) for p in (folder / "checkpoints").glob("step-*")]
    return max(steps, default=0)


def check_checkpoints(folder, reference, counts):
    """Nothing torn, nothing lost; returns the newest step."""
    root = folder / "checkpoints"
    if not root.exists():
        return 0
    steps = sorted(int(p.name[5:]) for p in root.glob("step-*"))
    for step in steps:
        name = f"step-{step:08}"
        if not is_same(root / name, reference / "checkpoints" / name):
            fail(f"{root / name} differs from the uninterrupted run's")
        counts.compared += 1
    newest = max(steps, default=0)
    if newest < last_saved(folder):
        fail(f"step {last_saved(folder)} was saved, the newest checkpoint is {newest}")
    if len(steps) < min(KEEP, newest):
        fail(f"only {len(steps)} checkpoints are left at step {newest}: {steps}")
    best = root / "best.json"
    if best.exists() and json.loads(best.read_text())["step"] not in steps:
        fail(f"the best checkpoint is gone: {best.read_text()}, there are {steps}")
    return newest


def run_for(seconds, words, errors):
    """None when it had to be killed after so many seconds, else its exit code."""
    with open(errors, "w") as file:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file)
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return None


def play_round(arguments, folder, reference, generator, counts, span):
    """One start (or resume) and one kill; True when the run came to its end."""
    before = newest_step(folder)
    errors = folder.parent / "errors.txt"
    words = command(arguments.program, folder, "--keep", str(KEEP), "--resume", "auto", "--threads",
                    str(generator.randint(1, 3)))
    code = run_for(generator.uniform(0.0, span), words, errors)
    counts.kills += code is None
    counts.in_a_save += any((folder / "checkpoints").glob(".saving-*"))
    if code not in (None, 0) or "not usable" in errors.read_text():
        fail(f"exit code {code}: {errors.read_text()}")
    newest = check_checkpoints(folder, reference, counts)
    counts.resumes += 0 < before < newest
    if code is None:
        return False
    if (folder / "model.onnx").read_bytes() != (reference / "model.onnx").read_bytes():
        fail("the trained model differs from the uninterrupted run's")
    counts.finished += 1
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="trainscope-kill-") as scratch:
        reference = Path(scratch) / "reference"
        start = time.monotonic()
        words = command(arguments.program, reference, "--keep", str(STEPS), "--threads", "1", "-q")
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        keep(reference)
        # Long enough for a few steps, short enough for several kills in each run.
        span = 0.4 * (time.monotonic() - start)
        number = 0
        while counts.kills < arguments.rounds or counts.resumes == 0:
            if counts.kills >= 20 * arguments.rounds:
                fail(f"nothing was resumed: {counts.text()}")
            if counts.kills >= arguments.rounds:
                span *= 1.1  # the machine became slower since the first run: kill later
            folder = Path(scratch) / f"run-{number}"
            number += play_round(arguments, folder, reference, generator, counts, span)
        folder = Path(scratch) / f"run-{number}"
        if not play_round(arguments, folder, reference, generator, counts, 1e6):
            fail("the last run did not end")
    print(counts.text())
    if counts.compared == 0:
        fail("no checkpoint was compared")


if __name__ == "__main__":
    main()
