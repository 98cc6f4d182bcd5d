#!/usr/bin/env python3
"""What recording the numbers of a run costs: time and bytes on the disk.

    bench/recording_cost.py [w1-sgd,lenet,w3] [--steps 400] [--pairs 3] [--load 0.1] [--out NAME]

A workload is trained in turn without a trace, with --record-numerics at its default steps (1, 2, 5,
10 ... and the last), and at every step; the three in another order in each round. A machine's speed drifts
by more than the cost between two runs, so the cost is taken from within: by how much recorded steps
are longer than the median of the 20 around them that are not (where every step is recorded, than that of
the round's run without a trace), and what the command takes beside its steps, less what it takes without a
trace; in shares of its steps without that. Wall times stand beside it. A run beside which others used
more than --load cores is repeated.
With --out writes bench/results/MONTH/DATE-NAME.md and .json.
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
from profiler_pairs import WORKLOADS

MODES = {"none": [], "default steps": ["--record-numerics"],
         "every step": ["--record-numerics", "--record-steps"]}
MOST_SHARE, MOST_BYTES = 0.05, 200e6  # of w3 at default steps


def bytes_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def recorded_steps(rows):
    """The steps of values.tsv; of a run without a trace none."""
    if not rows.exists():
        return set()
    lines = rows.read_text().splitlines()
    column = lines[0].split("\t").index("step")
    return {int(line.split("\t")[column]) for line in lines[1:]}


def longer_seconds(times, recorded):
    """By how much recorded steps are longer than those around them; None: there are no others."""
    plain = [step for step in times if step not in recorded]
    if not plain:
        return None
    total = 0.0
    for step in recorded & times.keys():
        around = sorted(plain, key=lambda other: abs(other - step))[:20]
        total += times[step] - statistics.median(times[other] for other in around)
    return round(total / 1e3, 3)


class Cost:
    def __init__(self, options, workload, folder):
        self.options, self.workload, self.folder = options, workload, folder
        model, self.flags, _ = WORKLOADS[workload]
        self.model = folder / f"{workload}.onnx"
        self.program("model", *model, "-o", self.model, "-q")

    def program(self, *words):
        subprocess.run([self.options.build / "bin/trainscope", *map(str, words)], check=True,
                       capture_output=True)

    def once(self, mode):
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        flags = list(MODES[mode])
        if mode == "every step":
            flags.append(",".join(map(str, range(1, self.options.steps + 1))))
        busy, own, start = measure.busy_seconds(), measure.own_seconds(), time.monotonic()
        self.program("train", self.model, *self.flags, "--data", "synthetic", "--steps",
                     self.options.steps, "--validation", "none", "--threads", self.options.threads,
                     "--seed", 1, "--run-dir", run, "--quiet", *flags)
        seconds = time.monotonic() - start
        foreign = (measure.busy_seconds() - busy) - (measure.own_seconds() - own)
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        trace = run / "numerics"
        rows = trace / "values.tsv"
        times = {step["step"]: step["step_ms"] for step in steps if "step_ms" in step}
        return {"mode": mode, "seconds": round(seconds, 3),
                "step_ms": statistics.median(times.values()),
                "longer_s": longer_seconds(times, recorded_steps(rows)),
                "beside_s": round(seconds - sum(times.values()) / 1e3, 3),
                "bytes": bytes_of(trace) if trace.exists() else 0,
                "rows": len(rows.read_text().splitlines()) - 1 if rows.exists() else 0,
                "foreign_cores": round(max(0.0, foreign) / seconds, 3)}

    def rounds(self):
        modes = self.options.modes
        for turn in range(self.options.pairs):
            order = modes[turn % len(modes):] + modes[:turn % len(modes)]
            for mode in order:
                run = measure.until_quiet(lambda m=mode: self.once(m), self.options.load)
                print(self.workload, run, flush=True)
                yield {"workload": self.workload, "round": turn, **run}


def summary(rows, workload, modes):
    def of(mode, key):
        return statistics.median(row[key] for row in rows
                                 if row["workload"] == workload and row["mode"] == mode)

    def share_of(row):
        """What recording adds to the steps, as a share of them."""
        without = next(other for other in rows if other["workload"] == workload
                       and other["round"] == row["round"] and other["mode"] == "none")
        longer = row["longer_s"]
        steps = row["seconds"] - row["beside_s"]
        if longer is None:
            longer = steps - (without["seconds"] - without["beside_s"])
        return (longer + row["beside_s"] - without["beside_s"]) / (steps - longer)

    lines = []
    for mode in modes:
        share = statistics.median(share_of(row) for row in rows
                                  if row["workload"] == workload and row["mode"] == mode)
        lines.append({"workload": workload, "mode": mode, "seconds": of(mode, "seconds"),
                      "share": share, "step_ms": of(mode, "step_ms"), "bytes": of(mode, "bytes"),
                      "rows": of(mode, "rows")})
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="?", default="w3")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--modes", default=",".join(MODES), help="of these, with 'none'")
    parser.add_argument("--pairs", type=int, default=3, help="rounds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--load", type=float, default=0.1, help="cores that others may use")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build" / "release")
    parser.add_argument("--out", help="name of the report")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    if not {"none"} <= set(options.modes) <= set(MODES):
        parser.error(f"--modes are 'none' and others of {', '.join(MODES)}")
    rows, lines = [], []
    for workload in options.workloads.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows += Cost(options, workload, Path(folder)).rounds()
        lines += summary(rows, workload, options.modes)
    body = measure.table(
        ["workload", "recorded", "s", "more", "median step, ms", "tensors", "MB"],
        [[line["workload"], line["mode"], f"{line['seconds']:.1f}", f"{100 * line['share']:+.1f} %",
          f"{line['step_ms']:.2f}", f"{line['rows']:.0f}", f"{line['bytes'] / 1e6:.1f}"]
         for line in lines])
    kept = [line for line in lines if line["mode"] == "default steps"
            and (line["share"] > MOST_SHARE or line["bytes"] > MOST_BYTES)]
    if "default steps" in options.modes:
        rounds = f"{options.pairs} round{'s' if options.pairs > 1 else ''}"
        body += (f"\nAt default steps at most 5 % of time and 200 MB: {'NO' if kept else 'yes'}, by the "
                 f"median of {rounds} of {options.steps} steps\n")
    if options.out:
        measure.write_report(options.out, "What recording numbers costs", body,
                             {"steps": options.steps, "lines": lines, "rows": rows})
    else:
        print(body)
    sys.exit(1 if kept else 0)


if __name__ == "__main__":
    main()
