#!/usr/bin/python3
"""What the profiler has no name for, of each thread's part of the standard workloads' steps, in bench/results.

    bench/unnamed_time.py [w1-sgd w1-adamw lenet resnet18 w3 w4 w5] [--steps 20] [--rounds 5]

Each workload is profiled --rounds times, --steps steps each. Of a thread's steps (`query --by thread`) that is the share
in which it works, wakes others, waits for them or has nothing to do, is in a library, copies, waits for data, is between
calls (dispatch), and the rest, which nothing was recorded for: 0.5 % at most, in the median of the rounds. Exit code 1:
more.
"""
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import measure
from roof_shares import arguments, profile_of, run

MOST = 0.005


def threads_of(options, workload, folder):
    profile = profile_of(options, workload, folder)
    facts = json.loads(run(options, "query", profile, "--by", "thread", "--json"))
    shutil.rmtree(profile)
    return {"step_ms": facts["step_ms"], "threads": facts["threads"]}


def rows_of(workload, rounds):
    step_ms = statistics.median(each["step_ms"] for each in rounds)
    rows = []
    for thread in range(len(rounds[0]["threads"])):
        unnamed = [each["threads"][thread]["unnamed"] for each in rounds]
        dispatch = statistics.median(each["threads"][thread]["dispatch"] for each in rounds)
        rows.append([workload, thread, f"{step_ms:.4g}", f"{dispatch:.3%}", f"{statistics.median(unnamed):.3%}",
                     f"{min(unnamed):.3%}", f"{max(unnamed):.3%}", "yes" if statistics.median(unnamed) <= MOST else "NO"])
    return rows


def main():
    options = arguments(__doc__, "unnamed-time",
                        lambda parser: parser.add_argument("--rounds", type=int, default=5))
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for workload in options.workloads:
            results[workload] = [threads_of(options, workload, Path(folder)) for _ in range(options.rounds)]
    rows = [row for workload, rounds in results.items() for row in rows_of(workload, rounds)]
    body = measure.table(["workload", "thread", "a step, ms", "dispatch (median)", "unnamed (median)", "least", "most",
                          "at most 0.5 %"], rows)
    measure.write_report(options.name, "Time of steps that has no name", body, {"results": results}, options.out)
    return 1 if any(row[-1] == "NO" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
