#!/usr/bin/python3
"""What profiling costs, and what `compare` finds: pairs of runs in turn, with results in bench/results.

    bench/profiler_pairs.py cost [w1-sgd w3] [--pairs 10]       plain and profiled runs of one command
    bench/profiler_pairs.py alarms [w1-sgd w3 lenet] [--pairs 20]    profiled runs of one command
    bench/profiler_pairs.py busy [w1-sgd w3 lenet] [--pairs 20]      one of each pair slowed in one op

cost: the ratio of the median step times of plain and profiled runs; the median of the pairs' ratios is
to be 1.02 at most. alarms: `compare` of two runs of one command is to name nothing; one pair may. A pair
whose machine `compare` says was not alike is made again, and counted. busy: both runs are
busy_wait_bench's, in which a listener waits, busily, for a share of the time of each call of one op: none
of it in the first run, a tenth in the second; `compare` is to name that op in each pair, and in 20 pairs
one other row at most. Five ops or nodes of each workload, of 3 % of the step at least, take turns.

Both runs of a pair are there at once and take turns of a fraction of a second (w3, in cost and alarms: of
some steps), one stopped while the other runs: a machine that is another one every few seconds, as a virtual
one is, is so for both. In busy a run stops between two calls, none is lengthened by a turn that ends.
Which begins alternates. With --runs each side of a pair has several short runs, each made beside
one of the other's, which `compare` takes pair by pair where they are six or more.

Twenty pairs of w3 take hours. With --keep FILE the rows of busy are in FILE, with day, commit and machine,
as soon as each is there; started again, busy makes the pairs that FILE lacks.
"""
import argparse
import collections
import contextlib
import datetime
import json
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
LEAST_SHARE = 0.03
OPS = 5
MOST_COST = 1.02
MOST_AGAIN = 20
# Rows named beside the slowed one, of a comparison. Where nothing changed a row is beyond four errors by
# chance once in 16,000 if they are known, once in 760 if six pairs and what counts like eight more tell
# them (Student's t): of the 30 rows of 1 % that a step has at most, one in 25 comparisons.
MOST_WRONG = 1 / 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "alarms", "busy"])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--pairs", type=int, help="of each workload; default: 10 of cost, else 20")
    parser.add_argument("--steps", type=int, help="of a run, those that warm up among them")
    parser.add_argument("--runs", type=int, default=1, help="of a side, in alarms and busy")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", help="of the files: DATE-NAME.md; default: profiler-WHAT")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON of the pairs of busy that are made")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build/release")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    if options.keep and options.what != "busy":
        parser.error("--keep is of busy alone")
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
        """(by, name) of five ops or nodes that take a share of the step worth naming."""
        run = self.start().run_to_end()
        found = []
        for by in ("op", "node"):
            rows = json.loads(self.program("query", run, "--by", by, "--json"))["rows"]
            large = [row["name"] for row in rows if row["is_call"] and row["share"] >= LEAST_SHARE]
            # The smallest that will do stands first: it is the hardest to find.
            found += [(by, name) for name in reversed(large)]
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


def sides(runs, pair, first, second):
    """The runs of both sides, in turn."""
    turns = [in_turn(runs, pair + i, first, second) for i in range(runs.options.runs)]
    return [a for a, _ in turns], [b for _, b in turns]


def alike_sides(runs, pair, first, second):
    """The runs of both sides, made again while the machine was not alike; how often that was."""
    for again in range(MOST_AGAIN):
        a, b = sides(runs, pair, first, second)
        if runs.compared(a, b, "op")["machine"]["alike"]:
            return a, b, again
        for run in a + b:
            shutil.rmtree(run)
    raise SystemExit(f"the machine changed within {MOST_AGAIN} pairs of runs")


def tell(runs, pair, found):
    print(f"{runs.workload} pair {pair}: {found}", file=sys.stderr, flush=True)


def cost(runs, pairs):
    ratios = []
    for pair in range(pairs):
        plain, profiled = in_turn(runs, pair, lambda: runs.start(profiled=False), runs.start)
        ratios.append(runs.step_ms(profiled) / runs.step_ms(plain))
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
        named = [name for each in found if each["pair"] == pair for name in each["changed"]]
        tell(runs, pair, f"named {', '.join(named) or 'nothing'}; made again {unlike} times")
    alarmed = len({each["pair"] for each in found})
    return {"workload": runs.workload, "pairs": pairs, "again": again, "alarms": found,
            "pairs_with_alarm": alarmed, "holds": alarmed <= 1}


def judged(rows):
    """How many slowed ops were named, how many rows beside them, and whether that is well."""
    found = sum(row["op"] in row["named"] for row in rows)
    wrong = sum(name != row["op"] for row in rows for name in row["named"])
    return {"found": found, "wrong": wrong,
            "holds": found == len(rows) and wrong <= MOST_WRONG * len(rows)}


class Kept:
    """What was measured of a workload so far, by any session: ops to slow, and a row for each pair. In a
    file, if one is given."""

    def __init__(self, path, workload, made_with):
        self.path, self.all = path, {}
        if path is not None and path.exists():
            self.all = json.loads(path.read_text("utf-8"))
        self.own = self.all.setdefault(workload, {**made_with, "slowed": [], "rows": []})
        self.rows = self.own["rows"]
        other = {name: self.own[name] for name in made_with if self.own[name] != made_with[name]}
        if other:
            raise SystemExit(f"{path}: the pairs of {workload} that are there were made with {other}")

    def slowed(self, runs):
        if not self.own["slowed"]:
            self.own["slowed"] = runs.slowed()
        return self.own["slowed"]

    def add(self, row):
        where = measure.machine()
        self.rows.append({**row, "date": f"{datetime.date.today():%Y-%m-%d}", "commit": measure.commit(),
                          "machine": f"{where['cpu']} (family {where['family']}, model {where['model']})"})
        if self.path is not None:
            whole = self.path.with_name(self.path.name + ".new")
            whole.write_text(json.dumps(self.all, indent=1) + "\n", "utf-8")
            whole.replace(self.path)


def busy(runs, pairs):
    options = runs.options
    kept = Kept(options.keep, runs.workload,
                {"runs": options.runs, "steps": runs.steps, "threads": options.threads})
    for pair in range(len(kept.rows), pairs):
        slowed = kept.slowed(runs)
        by, name = slowed[pair % len(slowed)]
        a, b, again = alike_sides(runs, pair, lambda: runs.start(slow_op=name),
                                   lambda: runs.start(slow_op=name, share=SLOWED_BY))
        facts = runs.compared(a, b, by)
        row = next(each for each in facts["rows"] if each["name"] == name)
        kept.add({"pair": pair, "by": by, "op": name, "named": facts["changed"],
                  "change": row["change"], "again": again})
        tell(runs, pair, f"{name} slowed, named {', '.join(facts['changed']) or 'nothing'}; "
                         f"made again {again} times")
    rows = kept.rows[:pairs]
    return {"workload": runs.workload, "pairs": pairs, "ops": slowed_of(rows), "rows": rows, **judged(rows)}


def slowed_of(rows):
    """(by, name) of what was slowed in the rows, in their order."""
    return list(dict.fromkeys((row["by"], row["op"]) for row in rows))


def made_when(rows):
    """A line for each day, commit and machine: how many of the pairs it made."""
    made = collections.Counter((row["date"], row["commit"], row["machine"]) for row in rows)
    return "".join(f"\n- {count} pairs: {date}, commit {commit}, {where}"
                   for (date, commit, where), count in made.items())


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
        for by, name in result["ops"]:
            own = [r for r in result["rows"] if r["by"] == by and r["op"] == name]
            if own:
                told = judged(own)
                rows.append([result["workload"], f"{by} `{name}`", len(own),
                             f"{statistics.median(r['change'] for r in own):+.1%}",
                             told["found"], told["wrong"], sum(r["again"] for r in own), ""])
        rows.append([result["workload"], "all of them", result["pairs"], "", result["found"],
                     result["wrong"], sum(r["again"] for r in result["rows"]),
                     "yes" if result["holds"] else "NO"])
    sessions = "".join(f"\n{result['workload']}:\n{made_when(result['rows'])}\n" for result in results)
    return measure.table(["workload", "slowed by 10 %", "pairs", "median change found", "named",
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
              "busy": "Ops that take a tenth longer"}
    measure.write_report(options.name or f"profiler-{options.what}", titles[options.what],
                         body_of(options.what, results), {"results": results}, options.out)


if __name__ == "__main__":
    main()
