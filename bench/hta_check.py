#!/usr/bin/env python3
"""Whether HTA (HolisticTraceAnalysis) takes our traces, and says what `query` says.

Two runs, as ranks 0 and 1, are exported with --as-device, each with one step more than is compared,
because HTA leaves out the last (query's sums are taken of the same steps); HTA's breakdown, kernel, idle, memory, launch and critical-path
analyses run on them, and its times are held against query's. Where the package `perfetto` is there,
its trace processor opens the plain trace too.

Usage: HTA_DISABLE_NS_ROUNDING=1 hta_check.py TRAINSCOPE     (Python with HolisticTraceAnalysis)
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")

import pandas as pd  # noqa: E402  after the setting that it is imported under
from hta.trace_analysis import TraceAnalysis  # noqa: E402

PROGRAM = str(Path(sys.argv[1]).resolve())
MOST = 0.005  # relative difference
STEPS = 6


def run(folder, *words):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=folder, check=True, capture_output=True,
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


def of_query(folder, rank):
    """Microseconds of calls by kernel in the steps that HTA keeps; of calls and copies in the second step."""
    run(folder, "export", f"rank-{rank}", "--format", "calls-csv", "-o", "calls.csv")
    trace = folder / "plain-of-rank.json"
    run(folder, "export", f"rank-{rank}", "--format", "chrome", "-o", trace.name)
    rows = json.loads(trace.read_text())["traceEvents"]
    steps = [row for row in rows if row["name"].startswith("ProfilerStep#")]
    last = max(steps, key=lambda row: row["ts"])
    whole = json.loads(run(folder, "query", f"rank-{rank}", "--by", "kernel", "--json"))
    assert abs(sum(row["dur"] for row in steps) - whole["total_ns"] / 1000) < 1e-2 * len(steps)
    calls = pd.read_csv(folder / "calls.csv")
    assert abs(calls["ns"].sum() - sum(row["busy_ms"] for row in whole["rows"] if row["is_call"]) * 1e6 *
               whole["steps"]) < 1000, "calls-csv and query differ"
    inside = calls[calls["begin_ns"] < last["ts"] * 1000]
    kernels = inside[inside["kind"] != "state_copy"].groupby("kernel")["ns"].sum() / 1000
    second = sorted(steps, key=lambda row: row["ts"])[1]
    busy_us = sum(row["dur"] for row in rows if row.get("cat") == "cpu_op" and row["tid"] == second["tid"] and
                  second["ts"] <= row["ts"] < second["ts"] + second["dur"] and not row["name"].endswith("work"))
    return kernels.to_dict(), busy_us


def compare(what, theirs, ours):
    difference = abs(theirs - ours) / max(abs(ours), 1e-9)
    print(f"{what:40} {theirs:14.3f} {ours:14.3f} {100 * difference:8.4f} %")
    assert difference <= MOST, f"{what}: HTA {theirs}, query {ours}"


def check_kernels(analysis, expected):
    """Each kernel's sum, and all of them together."""
    by_kind, by_kernel = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000,
                                                           duration_ratio=1.0,
                                                           include_memory_kernels=True)
    for rank, (kernels, _) in enumerate(expected):
        own = by_kernel[(by_kernel["rank"] == rank) & (by_kernel["kernel_type"] == "COMPUTATION")]
        found = own.groupby("name")["sum (us)"].sum().to_dict()
        assert set(found) == set(kernels), (sorted(found), sorted(kernels))
        compare(f"rank {rank}, all kernels, us", sum(found.values()), sum(kernels.values()))
        for name in sorted(kernels, key=kernels.get)[-3:]:
            compare(f"rank {rank}, {name[:28]}, us", found[name], kernels[name])
    print(by_kind.to_string())


def check_temporal(analysis, expected):
    table = analysis.get_temporal_breakdown(visualize=False)
    print(table.to_string())
    for rank, (kernels, _) in enumerate(expected):
        row = table[table["rank"] == rank].iloc[0]
        busy = row["compute_time(us)"] + row["non_compute_time(us)"]
        assert abs(busy + row["idle_time(us)"] - row["kernel_time(us)"]) < 1
        one_stream = min(sum(kernels.values()), row["kernel_time(us)"])
        print(f"rank {rank}: compute {row['compute_time(us)']:.1f} us of {one_stream:.1f} us of calls on all threads")


def check_others(analysis, expected):
    idle = analysis.get_idle_time_breakdown(ranks=[0, 1], visualize=False)
    print("idle:", idle[0].to_string())
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0, 1], visualize=False)
    assert all(len(table) > 0 for table in launches.values())
    print("launches:", {rank: len(table) for rank, table in launches.items()})
    bandwidth = analysis.get_memory_bw_summary([0, 1])
    assert bandwidth is not None and len(bandwidth) > 0
    print("memory:", bandwidth.to_string())
    path, is_found = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
    assert is_found
    total = sum(path.edges[edge.begin, edge.end]["weight"] for edge in path.critical_path_edges_set)
    compare("critical path of step 2, us", total, expected[0][1])  # its gaps weigh nothing


def check_perfetto(folder, expected_us):
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
    compare("perfetto, steps, us", ns / 1000, expected_us)
    processor.close()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_traces(folder)
        expected = [of_query(folder, rank) for rank in (0, 1)]
        analysis = TraceAnalysis(trace_dir=str(folder / "traces"))
        assert sorted(analysis.t.traces) == [0, 1], "HTA does not see two ranks"
        check_kernels(analysis, expected)
        check_temporal(analysis, expected)
        check_others(analysis, expected)
        total = json.loads(run(folder, "query", "rank-0", "--json"))["total_ns"] / 1000
        check_perfetto(folder, total)


if __name__ == "__main__":
    main()
