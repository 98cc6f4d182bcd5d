#!/usr/bin/env python3
"""Whether HTA (HolisticTraceAnalysis) takes our traces, and says what `query` says.

Two runs, as ranks 0 and 1, are exported with --as-device, each with one step more than is compared,
because HTA leaves out the last; HTA's breakdown, kernel, idle, memory, launch and critical-path analyses run
on them, and its times are held against those of `query --range` over the steps that it keeps. Where the
package `perfetto` is there, its trace processor opens the plain trace too. What was compared is written to
bench/results.

    HTA_DISABLE_NS_ROUNDING=1 hta_check.py [--build build/release]     (Python with HolisticTraceAnalysis)
"""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")

from hta.trace_analysis import TraceAnalysis  # noqa: E402  after the setting that it is imported under

import measure  # noqa: E402

PROGRAM = "bin/trainscope"
MOST = 0.005  # relative difference
STEPS = 6
COPIES = ("bind", "initial", "read", "state copy", "transfer")  # as query names them by kernel
LAUNCH_US = 0.001  # of the time of a call, which its kernel has not


class Compared:
    """What HTA says beside what query says."""

    def __init__(self):
        self.rows = []

    def add(self, what, theirs, ours):
        difference = abs(theirs - ours) / max(abs(ours), 1e-9)
        print(f"{what:40} {theirs:14.3f} {ours:14.3f} {100 * difference:8.4f} %")
        self.rows.append({"what": what, "hta": float(theirs), "query": float(ours), "difference": float(difference)})

    def holds(self):
        return all(row["difference"] <= MOST for row in self.rows)

    def table(self):
        return measure.table(["", "HTA", "query", "difference", f"at most {MOST:.1%}"],
                             [[row["what"], f"{row['hta']:.3f}", f"{row['query']:.3f}", f"{row['difference']:.4%}",
                               "yes" if row["difference"] <= MOST else "NO"] for row in self.rows])


def run(folder, *words):
    return subprocess.run([folder / PROGRAM, *map(str, words)], cwd=folder, check=True, capture_output=True,
                          text=True).stdout


def make_traces(folder):
    run(folder, "model", "gpt2", "--layers", "2", "--heads", "4", "--embedding", "64", "--vocab", "256",
        "--context", "32", "-o", "gpt.onnx")
    (folder / "traces").mkdir()
    for rank in (0, 1):
        run(folder, "profile", "gpt.onnx", "--data", "synthetic", "--seq", "32", "--batch", "8", "--threads",
            "2", "--seed", rank + 1, "--steps", STEPS + 5, "--profile", f"steps=5:{STEPS + 5}", "--run-dir",
            f"rank-{rank}", "-q")
        run(folder, "export", f"rank-{rank}", "--format", "chrome", "--as-device", "--rank", rank, "--ranks", 2,
            "-o", f"traces/rank-{rank}.json.gz")
    run(folder, "export", "rank-0", "--format", "chrome", "-o", "plain.json.gz")


def range_of(folder, rank, begin_ns, end_ns):
    """Rows of query, by kernel, of a part of the profile."""
    return json.loads(run(folder, "query", f"rank-{rank}", "--by", "kernel", "--range", f"{begin_ns}:{end_ns}",
                          "--json"))["rows"]


def of_query(folder, rank):
    """Of the steps that HTA keeps: microseconds of each kernel and of all copies, how many calls and copies there
    are, what lies between the first and the last of them without any, and all of them in the second step."""
    trace = folder / "plain-of-rank.json"
    run(folder, "export", f"rank-{rank}", "--format", "chrome", "-o", trace.name)
    rows = [row for row in json.loads(trace.read_text())["traceEvents"] if row["ph"] == "X"]
    steps = sorted(row["ts"] for row in rows if row["name"].startswith("ProfilerStep#"))
    work = [row for row in rows if row["cat"] == "cpu_op" and not row["name"].endswith("work")
            and steps[0] <= row["ts"] < steps[-1]]
    assert len({row["tid"] for row in work}) == 1, "calls side by side: HTA counts a moment once, query each"
    begin = min(row["ts"] for row in work)
    end = max(row["ts"] + row["dur"] for row in work)
    facts = range_of(folder, rank, round(1000 * begin), round(1000 * end))
    copies = [row for row in facts if row["name"] in COPIES]
    kernels = [row for row in facts if row["is_call"] and row not in copies]
    launches = sum(row["spans"] for row in kernels + copies)
    assert launches == len(work), (launches, len(work))
    kernel_us = {row["name"]: row["ns"] / 1000 for row in kernels}
    copy_us = sum(row["ns"] for row in copies) / 1000
    second = range_of(folder, rank, round(1000 * steps[1]), round(1000 * steps[2]))
    return {"kernels": kernel_us, "copies": copy_us, "launches": launches, "calls": sum(r["spans"] for r in kernels),
            "idle": end - begin - sum(kernel_us.values()) - copy_us,
            "second": sum(row["ns"] for row in second if row["is_call"] or row["name"] in COPIES) / 1000}


def check_kernels(analysis, expected, compared):
    """Each kernel's sum, and all of them together."""
    _, by_kernel = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0,
                                                     include_memory_kernels=True)
    for rank, ours in enumerate(expected):
        own = by_kernel[(by_kernel["rank"] == rank) & (by_kernel["kernel_type"] == "COMPUTATION")]
        found = own.groupby("name")["sum (us)"].sum().to_dict()
        kernels = ours["kernels"]
        assert set(found) == set(kernels), (sorted(found), sorted(kernels))
        compared.add(f"rank {rank}, all kernels, us", sum(found.values()), sum(kernels.values()))
        for name in sorted(kernels, key=kernels.get)[-3:]:
            compared.add(f"rank {rank}, {name}, us", found[name], kernels[name])


def check_temporal(analysis, expected, compared):
    """Computing, copies and neither. A launch's nanosecond is no kernel's, and so idle."""
    table = analysis.get_temporal_breakdown(visualize=False)
    for rank, ours in enumerate(expected):
        row = table[table["rank"] == rank].iloc[0]
        own_us = LAUNCH_US * (ours["launches"] - ours["calls"])
        compared.add(f"rank {rank}, computing, us", row["compute_time(us)"], sum(ours["kernels"].values()))
        compared.add(f"rank {rank}, copies, us", row["non_compute_time(us)"], ours["copies"] - own_us)
        compared.add(f"rank {rank}, idle, us", row["idle_time(us)"], ours["idle"] + LAUNCH_US * ours["launches"])


def check_idle(analysis, expected, compared):
    """By stream and cause: the sum."""
    table, _ = analysis.get_idle_time_breakdown(ranks=[0, 1], visualize=False)
    for rank, ours in enumerate(expected):
        theirs = table[table["rank"] == rank]["idle_time"].sum()
        compared.add(f"rank {rank}, idle by cause, us", theirs, ours["idle"] + LAUNCH_US * ours["launches"])


def check_launches(analysis, expected, compared):
    """How many launches of kernels and copies there are, what they take, and what they launch takes."""
    tables = analysis.get_cuda_kernel_launch_stats(ranks=[0, 1], visualize=False)
    for rank, ours in enumerate(expected):
        table = tables[rank]
        compared.add(f"rank {rank}, launches", len(table), ours["launches"])
        compared.add(f"rank {rank}, launches, us", table["cpu_duration"].sum(), LAUNCH_US * ours["launches"])
        compared.add(f"rank {rank}, what they launch, us", table["gpu_duration"].sum(),
                     sum(ours["kernels"].values()) + ours["copies"])


def check_others(analysis, expected, compared):
    bandwidth = analysis.get_memory_bw_summary([0, 1])
    assert bandwidth is not None and len(bandwidth) > 0
    path, is_found = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
    assert is_found
    total = sum(path.edges[edge.begin, edge.end]["weight"] for edge in path.critical_path_edges_set)
    compared.add("critical path of step 2, us", total, expected[0]["second"])  # its gaps weigh nothing


def check_perfetto(folder, expected_us, compared):
    try:
        from perfetto.trace_processor import TraceProcessor
    except ImportError:
        print("perfetto: the package is not here")
        return
    try:
        processor = TraceProcessor(trace=str(folder / "plain.json.gz"))
    except Exception as error:  # noqa: BLE001  the package downloads its program
        print(f"perfetto: its trace processor cannot be had: {str(error)[:100]}")
        return
    ns = list(processor.query("select sum(dur) as ns from slice where name glob 'ProfilerStep#*'"))[0].ns
    lost = list(processor.query("select name, value from stats where severity != 'info' and value > 0"))
    print("perfetto: problems", [(row.name, row.value) for row in lost])
    compared.add("perfetto, steps, us", ns / 1000, expected_us)
    processor.close()


def main():
    parser = argparse.ArgumentParser(description="What HTA says of exported profiles, beside query.")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build" / "release")
    parser.add_argument("--name", default="hta", help="of the files: DATE-NAME.md and .json")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    compared = Compared()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").symlink_to((options.build / "bin").resolve())
        make_traces(folder)
        expected = [of_query(folder, rank) for rank in (0, 1)]
        analysis = TraceAnalysis(trace_dir=str(folder / "traces"))
        assert sorted(analysis.t.traces) == [0, 1], "HTA does not see two ranks"
        for check in (check_kernels, check_temporal, check_idle, check_launches, check_others):
            check(analysis, expected, compared)
        total = json.loads(run(folder, "query", "rank-0", "--json"))["total_ns"] / 1000
        check_perfetto(folder, total, compared)
    body = compared.table() + f"\nHolisticTraceAnalysis {importlib.metadata.version('HolisticTraceAnalysis')}, " \
                              f"two runs as ranks, the {STEPS} steps of each that it keeps.\n"
    measure.write_report(options.name, "What HTA says, beside query", body, {"rows": compared.rows}, options.out)
    sys.exit(0 if compared.holds() else 1)


if __name__ == "__main__":
    main()
