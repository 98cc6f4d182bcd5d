#!/usr/bin/python3
"""Forms of a run's plan and profile for other tools, read as these tools read them.

Usage: formats_test.py TRAINSCOPE
"""
import csv
import gzip
import io
import json
import pickle
import pickletools
import re
import tempfile
from decimal import Decimal
from pathlib import Path

from chrome_rules import faults
from chrome_test import file_of_events, profiled_run, run


def exported(folder, form, *flags):
    run(folder, "export", "run", "--format", form, "-o", "out", *flags)
    return (folder / "out").read_bytes()


def times_of(plan):
    return max(buffer["death"] for buffer in plan["buffers"])


def live_peak(plan):
    live = [0] * times_of(plan)
    for buffer in plan["buffers"]:
        for time in range(buffer["birth"], buffer["death"]):
            live[time] += buffer["bytes"]
    return max(live)


def check_like_pytorch(ours, theirs):
    """Fields of ours are PyTorch's, of its types; it may have more."""
    theirs_event = {}
    for event in theirs["device_traces"][0]:
        theirs_event.update(event)
    assert set(ours) <= set(theirs), sorted(ours)
    kinds = [(ours["segments"][0], theirs["segments"][0]),
             (ours["segments"][0]["blocks"][0], theirs["segments"][0]["blocks"][0])]
    kinds += [(event, theirs_event) for event in ours["device_traces"][0]]
    kinds += [(frame, theirs_event["frames"][0]) for event in ours["device_traces"][0]
              for frame in event.get("frames", [])]
    for mine, other in kinds:
        for key, value in mine.items():
            assert key in other and type(value) is type(other[key]), (key, value, other.get(key))
    actions = {event["action"] for event in theirs["device_traces"][0]}
    assert {event["action"] for event in ours["device_traces"][0]} <= actions
    states = {block["state"] for segment in theirs["segments"] for block in segment["blocks"]}
    assert {block["state"] for block in ours["segments"][0]["blocks"]} <= states


def longest_append(data):
    """How many items a pickle adds to a list at a time, at most."""
    depth, marks, longest = 0, [], 0
    for opcode, _, _ in pickletools.genops(data):
        if opcode.code == "(":
            marks.append(depth)
        elif opcode.code in "eu":
            longest = max(longest, depth - marks[-1] if opcode.code == "e" else 0)
            depth = marks.pop()
        elif opcode.code not in "\x80.":
            depth += 1
    return longest


def check_long_lists(folder):
    """The viewer takes a thousand items at a time: a snapshot of more events comes in pieces."""
    run(folder, "model", "gpt2", "--layers", "8", "--heads", "2", "--embedding", "16", "--vocab", "64",
        "--context", "8", "-o", "deep.onnx")
    run(folder, "train", "deep.onnx", "--data", "synthetic", "--seq", "8", "--batch", "1", "--steps", "1",
        "--run-dir", "deep", "-q")
    run(folder, "export", "deep", "--format", "memory_viz", "-o", "deep.pickle")
    data = (folder / "deep.pickle").read_bytes()
    assert len(pickle.loads(data)["device_traces"][0]) > 1000 and longest_append(data) == 1000
    one_piece = b"\x80\x02](" + b"J\0\0\0\0" * 1001 + b"e."
    assert pickle.loads(one_piece) == [0] * 1001 and longest_append(one_piece) == 1001


def check_memory_viz(folder, plan):
    data = exported(folder, "memory_viz")
    opcodes = {opcode.code for opcode, _, _ in pickletools.genops(data)}
    assert opcodes <= set("}](ueXJ\x8a\x80."), opcodes
    snapshot = pickle.loads(data)
    live = peak = 0
    alive = {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            assert all(end <= event["addr"] or event["addr"] + event["size"] <= begin
                       for begin, end in alive.values()), "two live buffers overlap"
            alive[event["addr"]] = (event["addr"], event["addr"] + event["size"])
            live += event["size"]
            peak = max(peak, live)
        elif event["action"] == "free_completed":
            del alive[event["addr"]]
            live -= event["size"]
    assert peak == live_peak(plan), (peak, live_peak(plan))
    (segment,) = snapshot["segments"]
    assert segment["total_size"] == plan["arena_bytes"]
    assert sum(block["size"] for block in segment["blocks"]) == plan["arena_bytes"]
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at, "blocks are not side by side"
        at += block["size"]
    used = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
    assert used == live == segment["allocated_size"], (used, live)
    frames = [e["frames"] for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
    assert any("(gradient)" in frame[0]["name"] for frame in frames)
    real = Path(__file__).resolve().parents[2] / "data/traces/pytorch-gpu-memory.json.gz"
    check_like_pytorch(snapshot, json.loads(gzip.decompress(real.read_bytes())))


def check_ort_memory(folder, plan):
    rows = json.loads(exported(folder, "ort-memory"))
    names = {row["pid"]: row["args"]["name"] for row in rows if row["ph"] == "M"}
    summaries = [row for row in rows if row["name"] == "Summary"]
    assert len(summaries) == times_of(plan) and all(row["ts"] < 0 for row in summaries)
    assert max(row["args"]["used_bytes"] for row in summaries) == live_peak(plan)
    used = {}
    for row in rows:
        if row["ph"] == "X" and row["name"] != "Summary":
            assert row["pid"] in names and row["ts"] + row["dur"] <= plan["arena_bytes"]
            used[row["tid"]] = used.get(row["tid"], 0) + row["dur"]
    assert [used[row["tid"]] for row in summaries] == [row["args"]["used_bytes"] for row in summaries]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Number and value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def pprof_stacks(data):
    """The samples of a profile.proto: (stack from the outside in, values)."""
    messages = list(fields(gzip.decompress(data)))
    texts = [value.decode() for number, value in messages if number == 6]
    assert texts[0] == ""
    types = [tuple(texts[dict(fields(value))[key]] for key in (1, 2))
             for number, value in messages if number == 1]
    assert types == [("pieces", "count"), ("time", "nanoseconds")], types
    functions = {}
    locations = {}
    for number, value in messages:
        parts = dict(fields(value)) if number in (4, 5) else {}
        if number == 5:
            functions[parts[1]] = texts[parts[2]]
        elif number == 4:
            locations[parts[1]] = dict(fields(parts[4]))[1]
    for number, value in messages:
        if number == 2:
            parts = dict(fields(value))
            stack = [functions[locations[place]] for place in numbers(parts[1])]
            yield stack[::-1], list(numbers(parts[2]))


def query(folder, by):
    return json.loads(run(folder, "query", "run", "--by", by, "--json").stdout)


def check_stacks(stacks, folder):
    """Stacks are phase, layer, node, op, kernel; their times are those of query, to the nanosecond."""
    for depth, by in ((0, "phase"), (1, "layer"), (2, "node"), (3, "op"), (4, "kernel")):
        sums = {}
        for stack, ns in stacks:
            name = stack[depth] if len(stack) == 5 else stack[0]
            sums[name] = sums.get(name, 0) + ns
        facts = query(folder, by)
        wanted = {row["name"] if row["is_call"] else f"({row['name']})": row["ns"]
                  for row in facts["rows"] if row["ns"] > 0}
        assert {name: ns for name, ns in sums.items() if ns > 0} == wanted, by
        assert sum(sums.values()) == facts["total_ns"]


def check_flame_graphs(folder):
    check_stacks([(stack, values[1]) for stack, values in
                  pprof_stacks(exported(folder, "pprof"))], folder)
    scope = json.loads(exported(folder, "speedscope"))
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    (profile,) = scope["profiles"]
    assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds"
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    assert len(profile["samples"]) == len(profile["weights"])
    check_stacks([([names[i] for i in sample], ns) for sample, ns in
                  zip(profile["samples"], profile["weights"])], folder)


def check_calls(folder):
    rows = list(csv.DictReader(io.StringIO(exported(folder, "calls-csv").decode())))
    facts = query(folder, "call")
    runs = sum(row["count"] for row in facts["rows"] if row["is_call"])
    assert len(rows) == runs * facts["steps"], (len(rows), runs)
    assert {row["phase"] for row in rows} == {"forward", "backward", "update"}
    assert {row["thread"] for row in rows} <= {"0", "1"}
    assert all(int(row["ns"]) >= 0 and row["kernel"] for row in rows if row["kind"] == "kernel")


def check_dot(folder):
    dot = exported(folder, "dot", "--stage", "loss").decode()
    assert dot.startswith("digraph ") and dot.endswith("}\n") and "cluster_forward" in dot
    assert "cluster_backward" not in dot and "cluster_update" in exported(folder, "dot").decode()
    nodes = {line.split()[0] for line in dot.splitlines() if "label=" in line and "->" not in line}
    for line in dot.splitlines():
        if "->" in line:
            begin, _, end = line.split()[:3]
            assert begin in nodes and end.rstrip(";") in nodes, line
    run(folder, "export", "gpt.onnx", "--format", "dot", "--seq", "16", "--batch", "2", "-o", "m.dot")
    assert "cluster_update" in (folder / "m.dot").read_text()


def check_as_device(folder):
    plain = exported(folder, "chrome").decode()
    text = exported(folder, "chrome", "--as-device", "--rank", "1", "--ranks", "2").decode()
    assert not faults(text, as_device=True), faults(text, as_device=True)[:5]
    assert faults(text) and not faults(plain), "device rows without being asked for"
    trace = json.loads(text)
    assert trace["distributedInfo"]["rank"] == 1 and trace["distributedInfo"]["world_size"] == 2
    assert "--as-device" in trace["deviceProperties"][0]["name"] and "--as-device" not in plain
    rows = trace["traceEvents"]
    device = sum(row["dur"] for row in rows if row.get("cat") == "kernel")
    calls = sum(row["dur"] for row in rows if "call" in row.get("args", {}))
    launches = sum(row["dur"] for row in rows if row.get("cat") == "cuda_runtime")
    assert abs(device - calls) <= launches + 1e-3, (device, calls)
    kernel, copy = '"cat": "kernel", "name": "', '"cat": "gpu_memcpy", "name": "Memcpy'
    for old, new in (('"cat": "kernel"', '"cat": "cpu_op"'), ('"stream": 7', '"stream": 0'),
                     ('"name": "cudaLaunchKernel"', '"name": "launch"'), (kernel, kernel + "ncclKernel_"),
                     (kernel, kernel + "Memcpy of "), (kernel, kernel + "Memset "), (copy, copy[:-6]),
                     ('"warpSize": 1, ', ""), ('"deviceProperties": [{"id": 1,', '"deviceProperties": [{"id": 0,'),
                     ('"grid": [1, 1, 1], ', ""), ('"block": [1, 1, 1]', '"block": [1, 0, 1]'),
                     ('"queued": 0, ', "")):
        wrong = text.replace(old, new, 1)
        assert wrong != text and faults(wrong, as_device=True), f"the validator lets {old} pass as {new}"
    wrong = text.replace("shown as a device's", "of a device")
    assert wrong != text and faults(wrong, as_device=True), "the validator lets a device pass that is none"
    # An arrow's ends a nanosecond and more off: within the call and the kernel, but not where they are bound.
    for end, by in (("s", "0.002"), ("f", "0.001")):
        wrong = re.sub(rf'("ph": "{end}", "id": \d+, [^}}]*"ts": )([\d.]+)(, "cat": "ac2g")',
                       lambda m: m[1] + str(Decimal(m[2]) + Decimal(by)) + m[3], text, count=1)
        assert wrong != text and faults(wrong, as_device=True), f"the validator lets the arrow's {end} pass"


def device_events(plan, steps=4):
    """As a device records them that runs each call of a plan in two micro-steps and an update, each on one of two
    streams, in two pieces of work: begin, nanoseconds, id, kind, thread. The host is ahead, and reads at last."""
    update = plan["update_call"]
    calls = [*range(update), *range(update), *range(update, plan["call_count"])]
    spans, at = [], 0
    for step in range(1, steps + 1):
        begin, end = at, at + 600 + 700 * len(calls)
        spans += [(begin + 10, 50, 0, 3, 0), (begin + 100, 90, 0, 2, 0), (begin + 200, 90, 0, 2, 0),
                  (begin + 300, 90, 1, 2, 0), (begin + 450, end - begin - 500, 0, 6, 0),
                  (begin, end - begin, step, 1, 0)]
        at = begin + 500
        for call in calls:
            stream = 4 if call % 7 == 3 else 1
            spans += [(at, 300, call, 19, stream), (at + 350, 250, call, 19, stream), (at, 600, call, 7, stream)]
            at += 650 if call % 2 else 700
        at = end + 20
    return spans


def check_device_rows(folder, spans):
    """Work is on streams of a device, tied to the step that it began in; the host has none of it."""
    text = exported(folder, "chrome", "--rank", "1", "--ranks", "2").decode()
    found = faults(text, of_device=True)
    assert not found, "\n".join(found[:20])
    assert faults(text), "rows of a device without being told"
    rows = json.loads(text)["traceEvents"]
    work = [row for row in rows if row.get("cat") in ("kernel", "gpu_memcpy")]
    wanted = sum(ns for _, ns, _, kind, _ in spans if kind == 19)
    assert abs(1000 * sum(row["dur"] for row in work) - wanted) < 1, wanted
    assert {(row["pid"], row["tid"]) for row in work} == {(1, 8), (1, 11)}
    runs = [row for row in rows if "call" in row.get("args", {})]
    assert {row["cat"] for row in runs} == {"gpu_user_annotation"}
    assert len(runs) == sum(kind == 7 for _, _, _, kind, _ in spans)
    assert sum(row["name"] == "arena bytes" for row in rows) == len(runs)
    assert any(row["ph"] == "s" and row["cat"] == "fwdbwd" for row in rows)
    name = '"thread_name", "ts": 0, "pid": 1, "tid": 11'
    for old, new in (('"correlation": 2, "queued"', '"correlation": 3, "queued"'), ('"stream": 8', '"stream": 0'),
                     ('"cat": "gpu_user_annotation"', '"cat": "kernel"'), ('"queued": 0, ', ""),
                     (name, name.replace("thread", "process"))):
        wrong = text.replace(old, new, 1)
        assert wrong != text and faults(wrong, of_device=True), f"the validator lets {old} pass as {new}"
    (folder / "device.json").write_text(text)
    run(folder, "import", "device.json", "-o", "device")
    nodes = json.loads(run(folder, "query", "device", "--by", "node", "--json").stdout)["rows"]
    tied = {row["args"].get("onnx_node", row["name"]) for row in work}
    assert {row["name"] for row in nodes if row["is_call"]} == tied, (nodes, tied)
    refused = run(folder, "export", "run", "--format", "chrome", "--as-device", "-o", "x", code=2).stderr
    assert "--as-device is for calls of the CPU" in refused, refused


def check_device(folder, plan):
    """A profile of a device: all forms and ranges have the times of query, to the nanosecond."""
    file = folder / "run/events.cols"
    whole = file.read_bytes()
    spans = device_events(plan)
    file.write_bytes(file_of_events(spans))
    facts = query(folder, "op")
    assert facts["outside_life"] == [] and any(row["is_call"] for row in facts["rows"]), facts
    check_flame_graphs(folder)
    begin, end = spans[0][0] - 10, max(at + ns for at, ns, *_ in spans)
    sums = json.loads(run(folder, "query", "run", "--by", "op", "--range", f"{begin}:{end}", "--json").stdout)
    calls = [{row["name"]: row["ns"] for row in table["rows"] if row["is_call"]} for table in (facts, sums)]
    assert calls[0] == calls[1], calls
    copies = sum(row["ns"] for row in sums["rows"] if row["name"] == "read")
    assert copies == sum(row["ns"] for row in facts["rows"] if row["name"] == "copy"), sums
    check_device_rows(folder, spans)
    file.write_bytes(whole)


def check_refusals(folder):
    run(folder, "train", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--steps",
        "1", "--run-dir", "plain", "-q")
    run(folder, "export", "plain", "--format", "memory_viz", "-o", "x")
    assert "has no profile" in run(folder, "export", "plain", "--format", "pprof", "-o", "x", code=2).stderr
    assert "needs the folder of a run" in run(folder, "export", "gpt.onnx", "--format", "speedscope",
                                              "-o", "x", code=2).stderr
    assert "--as-device means nothing" in run(folder, "export", "run", "--format", "pprof",
                                              "--as-device", "-o", "x", code=2).stderr
    assert "--rank means nothing" in run(folder, "export", "run", "--format", "pprof", "--rank", "0",
                                         "-o", "x", code=2).stderr
    assert "counted from 0" in run(folder, "export", "run", "--format", "chrome", "--rank", "2",
                                   "--ranks", "2", "-o", "x", code=2).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profiled_run(folder)
        plan = json.loads((folder / "run/plan.json").read_text())
        check_memory_viz(folder, plan)
        check_long_lists(folder)
        check_ort_memory(folder, plan)
        check_flame_graphs(folder)
        check_calls(folder)
        check_dot(folder)
        check_as_device(folder)
        check_device(folder, plan)
        check_refusals(folder)


if __name__ == "__main__":
    main()
