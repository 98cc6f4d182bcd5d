#!/usr/bin/python3
"""Profiles of trainings on a simulated GPU, traced by a simulated CUPTI: profile_test.py BUILD_FOLDER CASE

What the profile has of the device is held against the plan. CASE is a function of this file, or empty for all.
Exit code 77: the back end is not built.
"""
import collections
import csv
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import MODELS, call, expect, program, run_cases

NAMES = ("gpt2", "bert", "resnet18", "lstm")
STEPS, FIRST = 6, 3  # of which these are profiled
PROFILED = STEPS - FIRST + 1


class Profile:
    """A profiled run: which calls the device's threads have, how often, and what the run says of its trace."""

    def __init__(self, build, scratch, model, *words, **environment):
        self.folder = Path(tempfile.mkdtemp(dir=scratch)) / "run"
        call([program(build), "profile", MODELS / model / "model.onnx", "--data", "synthetic", "--seed", 3,
              "--device", "cuda", "--steps", STEPS, "--profile", f"steps={FIRST}:{STEPS}", "--validation", "none",
              "--run-dir", self.folder, *words], **environment)
        rows = self.folder.parent / "calls.csv"
        call([program(build), "export", self.folder, "--format", "calls-csv", "-o", rows])
        with open(rows, encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        self.counts = collections.Counter(int(row["call"]) for row in self.rows)
        self.query = json.loads(call([program(build), "query", self.folder, "--json"]).stdout)
        self.counters = {name: each["greatest"] for name, each in self.query["counters"].items()}
        self.log = (self.folder / "log.jsonl").read_text(encoding="utf-8")
        plan = json.loads(call([program(build), "inspect", self.folder, "--calls", "--json"]).stdout)
        self.calls = plan["calls"]


def complete(profile, name):
    """Each call of the plan has its work in each step, and none is left out, dropped or of no call."""
    host = [row for row in profile.rows if row["thread"] == "0"]
    expect(f"{name}: calls are the device's", len(host) == 0 and len(profile.rows) > 0, f"{len(profile.rows)} rows")
    others = [(number, profile.counts[number]) for number in range(len(profile.calls)) if profile.counts[number] != PROFILED]
    expect(f"{name}: each call of the plan runs once a step", not others, f"{len(profile.calls)} calls {others[:5]}")
    losses = {what: profile.counters[what]
              for what in ("untied work", "untimed work", "dropped records", "unread bytes")}
    expect(f"{name}: nothing is lost", not any(losses.values()), str(losses))
    expect(f"{name}: counted", profile.counters["tied work"] >= len(profile.rows), str(profile.counters["tied work"]))
    in_steps = sum(profile.counts.values()) == sum(int(row["count"] * PROFILED + 0.5)
                                                   for row in profile.query["rows"] if row["is_call"])
    expect(f"{name}: within the steps", in_steps)
    expect(f"{name}: no call outside of a buffer's life", profile.query["outside_life"] == [])
    of_calls = sum(row["ns"] for row in profile.query["rows"] if row["is_call"])
    expect(f"{name}: time of the device", 0 < of_calls <= profile.query["total_ns"]
           and sum(row["ns"] for row in profile.query["rows"]) == profile.query["total_ns"])


def replayed(build, scratch):
    """By the ids of nodes: replayed graphs, in any order that CUDA allows, through small buffers."""
    for name in NAMES:
        profile = Profile(build, scratch, name)
        complete(profile, name)
        expect(f"{name}: level", profile.counters["trace level"] == 1 and "trace level 1: " in profile.log)
    for seed in (1, 2):
        complete(Profile(build, scratch, "gpt2", TRAINSCOPE_SIMULATED_SEED=seed), f"seed {seed}")
    small = Profile(build, scratch, "gpt2", TRAINSCOPE_SIMULATED_CUPTI_BUFFER=4000)
    complete(small, "small buffers")
    accumulated = Profile(build, scratch, "gpt2", "--accumulate", 2)
    expect("accumulation: ties", accumulated.counters["untied work"] == 0)


def recording(steps, *words):
    """Options by which these steps are launched call by call, though the device replays others."""
    return ("--record-numerics", "--record-steps", ",".join(map(str, steps)), *words)


def eager(build, scratch):
    """By correlations, where each call is launched by itself: the same work of the same calls."""
    for name in NAMES:
        graphs = Profile(build, scratch, name)
        alone = Profile(build, scratch, name, CUDA_LAUNCH_BLOCKING=1)
        complete(alone, name)
        expect(f"{name}: as replayed", alone.counts == graphs.counts)
        recorded = Profile(build, scratch, name, *recording([FIRST + 1]))
        complete(recorded, f"{name}, numbers of one step")
        expect(f"{name}: as replayed", recorded.counts == graphs.counts)
    # Of values that calls make, so that nothing waits for the update as for each call with CUDA_LAUNCH_BLOCKING.
    queued = recording(range(FIRST, STEPS + 1), "--record-values", "/h.0/*")
    complete(Profile(build, scratch, "gpt2", *queued), "the host ahead")
    for words, environment in (((), {"CUDA_LAUNCH_BLOCKING": 1}), (queued, {})):
        without = Profile(build, scratch, "gpt2", *words, **environment, TRAINSCOPE_SIMULATED_CUPTI_LAUNCHES="none")
        expect("no records of single calls: all are recorded", "all of the API are recorded" in without.log)
        first_step = sum(without.counts.values()) / (PROFILED - 1)
        expect("... from the second step on", 0 < first_step <= without.counters["untied work"]
               and all(count == PROFILED - 1 for count in without.counts.values()), str(first_step))


def dropped(build, scratch):
    """Records that the library has no memory for are counted, and the rest is tied as before."""
    whole = Profile(build, scratch, "gpt2")
    profile = Profile(build, scratch, "gpt2", TRAINSCOPE_SIMULATED_CUPTI_DROP=7)
    lost = profile.counters["dropped records"]
    all_work = whole.counters["tied work"] + whole.counters["work outside of calls"]
    expect("dropped", lost == all_work // 7, f"{lost} of {all_work}")
    expect("the rest", profile.counters["tied work"] + profile.counters["work outside of calls"] == all_work - lost)
    expect("tied", profile.counters["untied work"] == 0)
    expect("said", f"{int(lost)} records dropped" in profile.log and "left out" in profile.query["note"])
    full = Profile(build, scratch, "gpt2", TRAINSCOPE_SIMULATED_CUPTI_BUFFER=1000)
    expect("no more buffers", full.counters["dropped records"] > 0 and full.counters["tied work"] > 0)
    sum_of_all = sum(full.counters[what] for what in ("tied work", "work outside of calls", "dropped records"))
    expect("each record is there or counted", sum_of_all == all_work, f"{sum_of_all} of {all_work}")
    strange = Profile(build, scratch, "gpt2", TRAINSCOPE_SIMULATED_CUPTI_BUFFER=4000,
                      TRAINSCOPE_SIMULATED_CUPTI_UNKNOWN=50)
    read = strange.counters["tied work"] + strange.counters["work outside of calls"]
    unread = strange.counters["unread bytes"]
    expect("a kind that nobody knows", unread > 0 and strange.counters["dropped records"] == 0, f"{unread} bytes")
    expect("... hides what is behind it in its buffer", all_work / 2 < read < all_work, f"{read} of {all_work}")
    expect("... and is told of once", f"{int(unread)} bytes unread" in strange.log
           and strange.log.count("records of the device are left out") == 1)


def absent(build, scratch):
    """Without CUPTI, or where it refuses, training goes on, and a line says why."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    (folder / "libcupti.so.13").write_text("no library\n", encoding="utf-8")
    losses = []
    for what, word, environment in (
            ("no library", "CUPTI cannot be loaded: ", {"TRAINSCOPE_CUDA_LIBRARIES": folder}),
            ("subscribed", "cuptiSubscribe: error 39 (", {"TRAINSCOPE_SIMULATED_CUPTI_REFUSE": "cuptiSubscribe"}),
            ("no callbacks", "cuptiEnableCallback: error ",
             {"TRAINSCOPE_SIMULATED_CUPTI_REFUSE": "cuptiEnableCallback"}),
            ("no buffers", "cuptiActivityRegisterCallbacks: error ",
             {"TRAINSCOPE_SIMULATED_CUPTI_REFUSE": "cuptiActivityRegisterCallbacks"}),
            ("not enabled", "cuptiActivityEnable of kind 10: error ",
             {"TRAINSCOPE_SIMULATED_CUPTI_REFUSE": "cuptiActivityEnable"}),
            ("not asked for", None, {"TRAINSCOPE_TRACE_LEVEL": 0})):
        profile = Profile(build, scratch, "lstm", **environment, TRAINSCOPE_SIMULATED_REPORT=folder / "report")
        is_traced = json.loads((folder / "report").read_text(encoding="utf-8"))["is_traced"]
        expect(f"{what}: CUPTI knows of nobody unless it took all but a kind", is_traced == (what == "not enabled"))
        lines = [line for line in profile.log.splitlines() if "is not recorded" in line]
        expect(f"{what}: a line", len(lines) == (0 if word is None else 1) and (word or "") in "".join(lines), str(lines))
        expect(f"{what}: the host's steps", profile.query["steps"] == PROFILED and len(profile.rows) == 0)
        with open(profile.folder / "metrics.csv", encoding="utf-8") as file:
            losses.append([row["loss"] for row in csv.DictReader(file)])
    traced = Profile(build, scratch, "lstm")
    with open(traced.folder / "metrics.csv", encoding="utf-8") as file:
        losses.append([row["loss"] for row in csv.DictReader(file)])
    expect("the same bits", all(each == losses[0] for each in losses) and len(losses[0]) >= STEPS)


def levels(build, scratch):
    """Higher levels tie the same, and tell what recording took and what the host did."""
    first = Profile(build, scratch, "gpt2")
    of_host = {"trace overhead", "runtime call time", "driver call time", "device wait time", "allocations"}
    expect("level 1 tells of the device alone", not of_host & first.counters.keys())
    for level in (2, 3):
        for words in ({}, {"CUDA_LAUNCH_BLOCKING": 1}):
            profile = Profile(build, scratch, "gpt2", "--trace-level", level, **words)
            complete(profile, f"level {level}")
            expect(f"level {level}: as level 1", profile.counts == first.counts)
            expect(f"level {level}: overhead", profile.counters["trace overhead"] > 0)
            expect(f"level {level}: what the host did", profile.counters["runtime call time"] > 0
                   and profile.counters["device wait time"] > 0 and "the host was " in profile.log)
            all_calls = profile.counters["driver call time"] > 0  # the simulated driver has no single ones
            expect(f"level {level}: all calls", all_calls == (level == 3) == ("allocations" in profile.counters))
            expect(f"level {level}", profile.counters["trace level"] == level)


run_cases(replayed, eager, dropped, absent, levels)
