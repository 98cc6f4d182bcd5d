#!/usr/bin/python3
"""What profiling costs, and what `compare` finds: pairs of runs in turn, with results in bench/results.

    bench/profiler_pairs.py cost [w1-sgd w3] [--pairs 10]       plain and profiled runs of one command
    bench/profiler_pairs.py alarms [w1-sgd w3 lenet] [--pairs 20]    profiled runs of one command
    bench/profiler_pairs.py busy [w1-sgd w3 lenet] [--pairs 20]      one of each pair slowed in an op or node

cost: the ratio of the median step times of plain and profiled runs; the median of the pairs' ratios is
to be 1.02 at most. alarms: `compare` of two runs of one command is to name nothing; one pair may. A pair
whose machine `compare` says was not alike is made again, and counted. busy: both runs are
busy_wait_bench's, in which a listener waits, busily, for a share of the time of each call of one op or node:
none of it in the first run, a tenth in the second; `compare` is to name it in each pair, and in 20 pairs one
other row at most. Five ops or nodes of each workload, the smallest that take 3 % of the step, take turns; the
result has the share of each, of a run that was alone.

Both runs of a pair are there at once and take turns of a fraction of a second (w3, in cost and alarms: of
some steps), one stopped while the other runs: a machine that is another one every few seconds, as a virtual
one is, is so for both. In busy a run stops between two calls, none is lengthened by a turn that ends.
Which begins alternates. With --runs each side of a pair has several short runs, each made beside
one of the other's, which `compare` takes pair by pair where they are six or more. With --error E busy adds two runs
to each side until `compare` knows the change of the slowed row within E (one standard error of its
logarithm), or a side has 40: on a machine that is less steady it takes more of them.

Twenty pairs of w3 take hours. With --keep FILE the rows of busy are in FILE, with day, commit and machine,
as soon as each is there; started again, busy makes the pairs that FILE lacks.
"""
import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
from slowed_rows import Kept, judged, made_when, runs_text

ADAMW = ["--optimizer", "adamw", "--betas", "0.9,0.95", "--weight-decay", "0.1", "--decay", "matrices",
         "--lr", "3e-4"]
# Model, flags of train, steps of a run, of which some warm up: of the only run of a side, and of one of
# several.
WORKLOADS = {
    "w1-sgd": (["mlp", "--dims", "784,512,512,10"],
               ["--batch", "128", "--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.01"], (4010, 510)),
    "w3": (["gpt2", "--layers", "6", "--heads", "6", "--embedding", "384", "--vocab", "65", "--no-bias",
            "--activation", "gelu", "--context", "256"], ["--batch", "12", "--seq", "256", *ADAMW], (34, 8)),
    "lenet": (["lenet"], ["--batch", "32", *ADAMW], (12010, 1210)),
}
TURN_SECONDS = {"w1-sgd": 0.05, "w3": 4.0, "lenet": 0.05}
SECONDS_BETWEEN_CALLS = 0.05  # after which a run that stops by itself does so
MOST_WARM_UP = 10
SLOWED_BY = 0.1
LEAST_PAIRS = 6  # that `compare` takes pair by pair
LEAST_SHARE = 0.03
OPS = 5
MOST_RUNS = 40
MOST_COST = 1.02
MOST_AGAIN = 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "alarms", "busy"])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--pairs", type=int, help="of each workload; default: 10 of cost, else 20")
    parser.add_argument("--steps", type=int, help="of a run, those that warm up among them")
    parser.add_argument("--runs", type=int, default=1, help="of a side, in alarms and busy")
    parser.add_argument("--error", type=float, help="of the slowed row's change, in busy: at most; "
                        f"an eighth of what is to be found, log 1.1, is {math.log(1 + SLOWED_BY) / 8:.4f}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", help="of the files: DATE-NAME.md; default: profiler-WHAT")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON of the pairs of busy that are made")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build/release")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    if options.keep and options.what != "busy":
        parser.error("--keep is of busy alone")
    if options.error and (options.what != "busy" or options.runs < LEAST_PAIRS):
        parser.error(f"--error is of busy alone, with --runs {LEAST_PAIRS} or more")
    options.workloads = options.workloads or (["w1-sgd", "w3"] if options.what == "cost"
                                              else list(WORKLOADS))
    options.pairs = options.pairs or (10 if options.what == "cost" else 20)
    for name in set(options.workloads) - set(WORKLOADS):
        parser.error(f"there is no workload '{name}': {', '.join(WORKLOADS)}")
    return options


class Training:
    """A process that makes a run."""

    def __init__(self, run, words):
        self.run = run
        self.said = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.said)

    def send(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def has_ended(self):
        return self.process.poll() is not None

    def wait_for_stop(self):
        """Until the process has stopped itself, or has ended."""
        pid = self.process.pid
        if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED:
            os.waitid(os.P_PID, pid, os.WSTOPPED)

    def run_to_end(self):
        if self.process.wait() != 0:
            self.said.seek(0)
            raise SystemExit(f"{' '.join(map(str, self.process.args))}: {self.said.read()}")
        return self.run

    def kill(self):
        self.process.kill()
        self.process.wait()


def take_turns(running, waiting, seconds):
    """Until one of both has ended, each runs for so many seconds while the other is stopped."""
    waiting.send(signal.SIGSTOP)
    while not (running.has_ended() or waiting.has_ended()):
        time.sleep(seconds)
        running.send(signal.SIGSTOP)
        waiting.send(signal.SIGCONT)
        running, waiting = waiting, running
    waiting.send(signal.SIGCONT)
    running.send(signal.SIGCONT)


def hand_over(running, waiting):
    """Until both have ended, each runs until it stops itself, and then the other one."""
    while not (running.has_ended() and waiting.has_ended()):
        if not running.has_ended():
            running.send(signal.SIGCONT)
            running.wait_for_stop()
        running, waiting = waiting, running


class Runs:
    """Runs of a workload, each in a folder of its own."""

    def __init__(self, options, workload, folder):
        model, self.flags, steps = WORKLOADS[workload]
        self.options, self.workload, self.folder, self.count = options, workload, folder, 0
        self.steps = options.steps or steps[0 if options.runs == 1 else 1]
        self.warm_up = min(MOST_WARM_UP, self.steps // 4)
        self.stop_themselves = options.what == "busy"  # between calls, as busy_wait_bench does
        self.model = folder / f"{workload}.onnx"
        if not self.model.exists():
            self.program("model", *model, "-o", self.model, "-q")

    def program(self, *words):
        done = subprocess.run([str(self.options.build / "bin/trainscope"), *map(str, words)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(done.args[1:])}: {done.stderr}")
        return done.stdout

    def start(self, profiled=True, slow_op=None, share=0.0):
        self.count += 1
        run = self.folder / f"{self.workload}-{self.count}"
        words = ["train", self.model, *self.flags, "--data", "synthetic", "--validation", "none",
                 "--steps", self.steps, "--threads", self.options.threads, "--seed", 1, "--run-dir",
                 run, "-q"]
        if profiled:
            words += ["--profile", f"steps={self.warm_up + 1}:{self.steps}"]
        program = ["trainscope"]
        if slow_op is not None:
            program = ["busy_wait_bench", slow_op, str(share), str(SECONDS_BETWEEN_CALLS)]
        return Training(run, [self.options.build / "bin" / program[0], *program[1:], *map(str, words)])

    def compared(self, first, second, by):
        sides = [",".join(map(str, side)) for side in (first, second)]
        return json.loads(self.program("compare", *sides, "--by", by, "--json"))

    def step_ms(self, run):
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        times = [row["step_ms"] for row in rows if row.get("step", 0) > self.warm_up and "step_ms" in row]
        return statistics.median(times)

    def slowed(self):
        """(by, name, share of the step) of five ops or nodes that take at least LEAST_SHARE of it."""
        run = self.start().run_to_end()
        found = []
        for by in ("op", "node"):
            rows = json.loads(self.program("query", run, "--by", by, "--json"))["rows"]
            large = [row for row in rows if row["is_call"] and row["share"] >= LEAST_SHARE]
            # The smallest that will do stands first: it is the hardest to find.
            found += [(by, row["name"], row["share"]) for row in reversed(large)]
        return found[:OPS]


def in_turn(runs, pair, first, second):
    """Both runs, made beside each other; the second one begins in every other pair."""
    with contextlib.ExitStack() as stack:
        a = first()
        stack.callback(a.kill)
        if runs.stop_themselves:
            a.wait_for_stop()  # at its first call
        b = second()
        stack.callback(b.kill)
        begins, waits = (a, b) if pair % 2 == 0 else (b, a)
        if runs.stop_themselves:
            b.wait_for_stop()
            hand_over(begins, waits)
        else:
            take_turns(begins, waits, TURN_SECONDS[runs.workload])
        return a.run_to_end(), b.run_to_end()


def sides(runs, pair, first, second, is_enough=lambda a, b: True):
    """The runs of both sides, in turn: so many as asked for, and two more until they are enough."""
    a, b = [], []
    wanted = runs.options.runs
    while len(a) < wanted:
        for each, side in zip(in_turn(runs, pair + len(a), first, second), (a, b)):
            side.append(each)
        if len(a) == wanted and wanted + 2 <= MOST_RUNS and not is_enough(a, b):
            wanted += 2
    return a, b


def remove(runs):
    """Folders that nobody needs any more: each has its last checkpoint, of w3 parameters and AdamW's states."""
    for run in runs:
        shutil.rmtree(run)


def alike_sides(runs, pair, first, second, is_enough=lambda a, b: True):
    """The runs of both sides, made again while the machine was not alike; how often that was."""
    for again in range(MOST_AGAIN):
        a, b = sides(runs, pair, first, second, is_enough)
        if runs.compared(a, b, "op")["machine"]["alike"]:
            return a, b, again
        remove(a + b)
    raise SystemExit(f"the machine changed within {MOST_AGAIN} pairs of runs")


def tell(runs, pair, found):
    print(f"{runs.workload} pair {pair}: {found}", file=sys.stderr, flush=True)


def cost(runs, pairs):
    ratios = []
    for pair in range(pairs):
        plain, profiled = in_turn(runs, pair, lambda: runs.start(profiled=False), runs.start)
        ratios.append(runs.step_ms(profiled) / runs.step_ms(plain))
        remove([plain, profiled])
        tell(runs, pair, f"{ratios[-1]:.4f}")
    return {"workload": runs.workload, "pairs": pairs, "ratios": ratios,
            "median": statistics.median(ratios), "holds": statistics.median(ratios) <= MOST_COST}


def alarms(runs, pairs):
    found = []
    again = 0
    for pair in range(pairs):
        a, b, unlike = alike_sides(runs, pair, runs.start, runs.start)
        again += unlike
        for by in ("op", "node"):
            facts = runs.compared(a, b, by)
            if facts["changed"]:
                found.append({"pair": pair, "by": by, "changed": facts["changed"]})
        remove(a + b)
        named = [name for each in found if each["pair"] == pair for name in each["changed"]]
        tell(runs, pair, f"named {', '.join(named) or 'nothing'}; made again {unlike} times")
    alarmed = len({each["pair"] for each in found})
    return {"workload": runs.workload, "pairs": pairs, "again": again, "alarms": found,
            "pairs_with_alarm": alarmed, "holds": alarmed <= 1}


def busy(runs, pairs):
    options = runs.options
    kept = Kept(options.keep, runs.workload,
                {"runs": options.runs, "steps": runs.steps, "threads": options.threads, "error": options.error})
    for pair in range(len(kept.rows), pairs):
        slowed = kept.slowed(runs)
        by, name, _ = slowed[pair % len(slowed)]

        def row_of(facts):
            return next(each for each in facts["rows"] if each["name"] == name)

        def is_enough(a, b):
            return options.error is None or row_of(runs.compared(a, b, by))["error"] <= options.error

        a, b, again = alike_sides(runs, pair, lambda: runs.start(slow_op=name),
                                  lambda: runs.start(slow_op=name, share=SLOWED_BY), is_enough)
        facts = runs.compared(a, b, by)
        remove(a + b)
        row = row_of(facts)
        kept.add({"pair": pair, "by": by, "op": name, "named": facts["changed"], "runs": len(a),
                  "change": row["change"], "error": row["error"], "again": again})
        tell(runs, pair, f"{name} slowed, named {', '.join(facts['changed']) or 'nothing'}; "
                         f"made again {again} times")
    rows = kept.rows[:pairs]
    return {"workload": runs.workload, "pairs": pairs, "slowed": kept.slowed(runs), "rows": rows, **judged(rows)}


def body_of(what, results):
    if what == "cost":
        return measure.table(
            ["workload", "pairs", "median ratio", "least", "largest", "at most 1.02"],
            [[r["workload"], r["pairs"], f"{r['median']:.4f}", f"{min(r['ratios']):.4f}",
              f"{max(r['ratios']):.4f}", "yes" if r["holds"] else "NO"] for r in results])
    if what == "alarms":
        return measure.table(
            ["workload", "pairs", "made again", "pairs with an alarm", "what was named",
             "at most one"],
            [[r["workload"], r["pairs"], r["again"], r["pairs_with_alarm"],
              "; ".join(f"pair {a['pair']}: {', '.join(a['changed'])}" for a in r["alarms"]) or "nothing",
              "yes" if r["holds"] else "NO"] for r in results])
    rows = []
    for result in results:
        for by, name, share in result["slowed"]:
            own = [r for r in result["rows"] if r["by"] == by and r["op"] == name]
            if own:
                told = judged(own)
                rows.append([result["workload"], f"{by} `{name}`", f"{share:.1%}", len(own), runs_text(own),
                             f"{statistics.median(r['change'] for r in own):+.1%}",
                             told["found"], told["wrong"], sum(r["again"] for r in own), ""])
        rows.append([result["workload"], "all of them", "", result["pairs"], runs_text(result["rows"]), "",
                     result["found"], result["wrong"], sum(r["again"] for r in result["rows"]),
                     "yes" if result["holds"] else "NO"])
    sessions = "".join(f"\n{result['workload']}:\n{made_when(result['rows'])}\n" for result in results)
    return measure.table(["workload", "op or node slowed by 10 %", "share of the step", "pairs",
                          "runs of a side", "median change found", "named",
                          "other rows named", "made again", "each named, one other of 20"],
                         rows) + sessions


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no run is left behind, stopped
    results = []
    for workload in options.workloads:
        with tempfile.TemporaryDirectory() as folder:
            runs = Runs(options, workload, Path(folder))
            results.append(globals()[options.what](runs, options.pairs))
        print(f"{workload}: {'holds' if results[-1]['holds'] else 'does NOT hold'}", flush=True)
    titles = {"cost": "What profiling costs", "alarms": "Pairs of runs of one command",
              "busy": "Ops or nodes that take a tenth longer"}
    measure.write_report(options.name or f"profiler-{options.what}", titles[options.what],
                         body_of(options.what, results), {"results": results}, options.out)


if __name__ == "__main__":
    main()
