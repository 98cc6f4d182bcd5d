"""Waits of one stream for another in trainings on the simulated GPU, lost one at a time.

The simulated runtime logs what orders its work (tests/cuda/simulated/order_log.h). A wait that others imply, so that
all work, all lists and all waits of the host come after the same work without it, is no mutant. The others are lost in
a training of their own: it must fail, or give other losses or parameters, as late as CUDA allows or in another order.
"""
import csv
import json
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutant_verdicts import Verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import call, finished, graph_of, program  # noqa: E402  (its folder is not a package)

STEPS = 3
# As late as CUDA allows; within a list either stream as early as it may; and as seeds say.
ORDERS = ({}, {"TRAINSCOPE_SIMULATED_FIRST": 8}, {"TRAINSCOPE_SIMULATED_FIRST": 7}, {"TRAINSCOPE_SIMULATED_SEED": 1},
          {"TRAINSCOPE_SIMULATED_SEED": 2}, {"TRAINSCOPE_SIMULATED_SEED": 3})


def read_log(path):
    """(what, stream, moment) of each call."""
    with open(path, encoding="utf-8") as file:
        words = [line.split() for line in file]
    return [(what, int(stream), moment) for what, stream, moment in words]


def join(clock, other):
    for stream, count in other.items():
        clock[stream] = max(clock.get(stream, 0), count)


def orders(log, without=0):
    """What each piece of work, each end of a capture and each wait of the host comes after, as how much work of each
    stream; where the wait of the number `without`, from 1 on, is lost."""
    clocks, host, moments, after = {}, {}, {}, []
    capture = None  # clocks of the streams in it
    waits = 0
    for what, stream, moment in log:
        is_captured = capture is not None and stream in capture
        clock = (capture if is_captured else clocks).setdefault(stream, {})
        if what in ("work", "replay"):
            if not is_captured:
                join(clock, host)
            clock[stream] = clock.get(stream, 0) + 1
            after.append((what, stream, dict(clock)))
        elif what == "record":
            moments[moment] = is_captured, dict(clock)
        elif what == "wait":
            waits += 1
            of_capture, before = moments.get(moment, (False, {}))
            if waits == without:
                continue
            if of_capture and capture is not None:
                clock = capture.setdefault(stream, {})
            join(clock, before)
        elif what == "begin":
            capture = {stream: {}}
        elif what == "end":
            after.append((what, stream, dict(clock)))
            capture = None
        else:  # "drain" of a stream, "finish" of a moment
            join(host, clock if what == "drain" else moments[moment][1])
            after.append((what, stream, dict(host)))
    return after


def waits_that_order(log):
    """Numbers of the waits without which something would come after less."""
    whole = orders(log)
    waits = sum(what == "wait" for what, _, _ in log)
    return [number for number in range(1, waits + 1) if orders(log, number) != whole]


def roles(log):
    """What each wait is for, in words: who waits for whom, and where."""
    numbers = sorted({stream for _, stream, _ in log if stream})
    names = dict(zip(numbers, ("compute", "transfer")))
    recorded = {}  # by moment: its stream, whether it is a capture's, what the stream was given last
    last, capture, found = {}, None, []
    for at, (what, stream, moment) in enumerate(log):
        if what in ("work", "replay"):
            last[stream] = what
        elif what == "begin":
            capture = {stream}
        elif what == "end":
            capture = None
        elif what == "record":
            recorded[moment] = stream, capture is not None and stream in capture, last.get(stream)
        elif what == "wait":
            other, is_captured, before = recorded.get(moment, (0, False, None))
            behind = (each for each, of, _ in log[at + 1:] if of == stream)
            following = next((each for each in behind if each in ("work", "replay", "end")), None)
            if is_captured and capture is not None:
                place = "at the end of a list" if following == "end" else "in a list"
                place = place if stream in capture else "at the beginning of a list"
                capture.add(stream)
            elif following == "replay":
                place = "before a list"
            else:
                place = "behind a list" if before == "replay" else "between calls"
            found.append(f"{names.get(stream, stream)} waits for {names.get(other, other)}, {place}")
    return found


class Training:
    """A training of GPT-2 on the simulated GPU, again and again."""

    def __init__(self, build, scratch, name, *words):
        self.build, self.scratch, self.name, self.words = build, scratch, name, words
        folder = Path(tempfile.mkdtemp(dir=scratch))
        self.whole = self.run(TRAINSCOPE_SIMULATED_ORDER=folder / "order",
                              TRAINSCOPE_SIMULATED_REPORT=folder / "report")
        if self.whole is None:
            raise SystemExit(f"{name}: the training fails as it is")
        self.log = read_log(folder / "order")
        counted = json.loads((folder / "report").read_text(encoding="utf-8"))["stream_waits"]
        logged = sum(what == "wait" for what, _, _ in self.log)
        if counted != logged:
            raise SystemExit(f"{name}: {logged} waits are logged, {counted} were counted")

    def command(self, run):
        return [program(self.build), "train", graph_of("gpt2"), "--data", "synthetic", "--seed", 3, "--device", "cuda",
                "--steps", STEPS, "--validation", "none", "--run-dir", run, *self.words, "--json"]

    def run(self, **environment):
        """Losses and parameters; None where it failed."""
        run = Path(tempfile.mkdtemp(dir=self.scratch)) / "run"
        if finished(self.command(run), **environment).returncode != 0:
            return None
        with open(run / "metrics.csv", encoding="utf-8") as file:
            losses = [row["loss"] for row in csv.DictReader(file) if row["kind"] == "step"]
        checkpoint = max(run.glob("checkpoints/step-*"))
        return losses, (checkpoint / "model.safetensors").read_bytes()

    def verdict(self, number, role):
        """Of the mutant that loses this wait."""
        for order in ORDERS:
            result = self.run(TRAINSCOPE_SIMULATED_DROP_WAIT=number, **order)
            if result != self.whole:
                how = "stopped" if result is None else "other results"
                return Verdict("stream", True, how, self.name, role, f"wait {number}")
        return Verdict("stream", False, f"the same results in {len(ORDERS)} orders", self.name, role, f"wait {number}")


def offload_words(build, scratch):
    """Of a machine whose ops take a millisecond each, and a transfer of these small values a hundredth of that."""
    run = Path(tempfile.mkdtemp(dir=scratch)) / "run"
    call([program(build), "train", graph_of("gpt2"), "--data", "synthetic", "--seed", 3, "--device", "cuda",
          "--steps", 1, "--validation", "none", "--run-dir", run, "--json"])
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    costs = run.parent / "costs.csv"
    values = [each["outputs"][0] for each in plan["calls"] if each["kind"] == "kernel"]
    costs.write_text("value,seconds\n" + "".join(f"{value},1e-3\n" for value in values), encoding="utf-8")
    return "--offload", "--link-rate", "10TB", "--max-overhead", "5%", "--costs", costs


def stream_verdicts(build, scratch, count, seed, jobs):
    """Of `count` mutants that the seed chooses; None: of all."""
    trainings = [Training(build, scratch, "gpt2"),
                 Training(build, scratch, "gpt2 --offload", *offload_words(build, scratch))]
    mutants = []
    for training in trainings:
        numbers, of_waits = waits_that_order(training.log), roles(training.log)
        print(f"{training.name}: {len(numbers)} of {len(of_waits)} waits order what others do not", flush=True)
        mutants += [(training, number, of_waits[number - 1]) for number in numbers]
    if count is not None and count < len(mutants):
        mutants = random.Random(seed).sample(mutants, count)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda each: each[0].verdict(*each[1:]), mutants))
