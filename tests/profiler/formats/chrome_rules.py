"""The rules that Perfetto and HTA have for trace event JSON.

faults(text) gives a line for each rule that a trace breaks; rows of a device are one of them unless
as_device allows these. Standard library only.
"""
import collections
import json
import re
from decimal import Decimal

ORDER = ["schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
         "baseTimeNanoseconds", "traceEvents", "traceName"]
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
HOST_CATEGORIES = {"cpu_op", "user_annotation"}
LAUNCHES = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync"}


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def top_level_faults(text, trace):
    if list(trace) != ORDER:
        yield f"keys are {list(trace)}"
    if trace.get("schemaVersion") != 1 or trace.get("displayTimeUnit") != "ms":
        yield "schemaVersion or displayTimeUnit"
    if not isinstance(trace.get("baseTimeNanoseconds"), int):
        yield "baseTimeNanoseconds is no integer"
    rank = re.search(r'"rank":\s+(\d+)', text)
    if not rank or rank.start() > text.index('"traceEvents"'):
        yield 'no "rank": with a blank after the colon before the events'


def device_faults(row):
    args = row["args"]
    if row["pid"] != 0 or row["tid"] != args.get("stream") or args.get("device") != 0:
        yield f"a device row is not on its stream: {row['name']}"
    if args.get("stream", 0) <= 0 or "correlation" not in args or "External id" not in args:
        yield f"readers do not take it for a device's: {row['name']}"
    if row["cat"] == "gpu_memcpy" and not (row["name"].startswith("Memcpy") and "bytes" in args):
        yield f"a copy that readers do not know: {row['name']}"


def launch_faults(spans):
    """Each device row has one launch before it, of its kind."""
    launches = collections.defaultdict(list)
    for row in spans:
        if row["cat"] == "cuda_runtime":
            launches[row["args"]["correlation"]].append(row)
    for row in spans:
        if row["cat"] not in LAUNCHES:
            continue
        own = launches.pop(row["args"]["correlation"], [])
        if len(own) != 1 or own[0]["name"] != LAUNCHES[row["cat"]]:
            yield f"the device row {row['name']} has no launch of its own"
        elif own[0]["ts"] + own[0]["dur"] > row["ts"]:
            yield f"the device row {row['name']} begins within its launch"
    for correlation in launches:
        yield f"the launch {correlation} launches nothing"


def span_faults(row, as_device):
    lacking = {"cat", "name", "pid", "tid", "ts", "dur", "args"} - set(row)
    if lacking:
        yield f"a span lacks {sorted(lacking)}"
        return
    if as_device and row["cat"] in LAUNCHES:
        yield from device_faults(row)
    elif row["cat"] not in HOST_CATEGORIES | ({"cuda_runtime"} if as_device else set()):
        yield f"a host row has the category {row['cat']}"
    elif {"stream", "device"} & set(row["args"]) or (
            row["cat"] in HOST_CATEGORIES and "correlation" in row["args"]):
        yield f"a host row looks like a device's: {row['name']}"
    if row["dur"] < 0 or abs(row["ts"]) >= 10**12:
        yield f"ts {row['ts']} and dur {row['dur']} are not microseconds from the base"
    for key in ("ts", "dur"):
        if row[key] != row[key].quantize(Decimal("0.001")):
            yield f"{key} {row[key]} is finer than a nanosecond"


def nesting_faults(spans):
    by_thread = collections.defaultdict(list)
    for row in spans:
        by_thread[row["pid"], row["tid"]].append((row["ts"], -row["dur"], row["name"]))
    for place, rows in by_thread.items():
        open_ends = []
        for begin, negative, name in sorted(rows):
            end = begin - negative
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                yield f"'{name}' at {begin} on {place} overlaps the span that it begins in"
            open_ends.append(end)


def arrow_faults(rows, spans):
    inside = collections.defaultdict(list)
    for row in spans:
        inside[row["pid"], row["tid"]].append((row["ts"], row["ts"] + row["dur"]))
    ends = collections.defaultdict(list)
    for row in rows:
        if row["ph"] not in "sf":
            continue
        ends[row["id"], row["cat"], row["name"]].append(row)
        if not any(a <= row["ts"] <= b for a, b in inside[row["pid"], row["tid"]]):
            yield f"the arrow {row['id']} ends outside of every span"
        if row["ph"] == "f" and row.get("bp") != "e":
            yield f"the arrow {row['id']} has no bp"
    for key, both in ends.items():
        if [row["ph"] for row in both] != ["s", "f"] or both[0]["ts"] > both[1]["ts"]:
            yield f"the arrow {key} is not one beginning and then one end"


def row_faults(rows, as_device):
    names = set()
    for row in rows:
        if row["ph"] == "M":
            if row["name"] not in METADATA:
                yield f"nobody reads the metadata {row['name']}"
            if row["name"] == "thread_name":
                names.add((row["pid"], row["tid"]))
        elif row["ph"] == "X":
            yield from span_faults(row, as_device)
        elif row["ph"] == "C":
            if not row["args"] or not all(isinstance(v, (int, Decimal)) for v in row["args"].values()):
                yield f"the counter {row['name']} has no numbers"
        elif row["ph"] not in "sf":
            yield f"an event of kind {row['ph']}"
    for row in rows:
        if row["ph"] == "X" and (row["pid"], row["tid"]) not in names:
            yield f"thread {row['tid']} has no name"


def merged_faults(texts):
    """Of the traces of all ranks of a world, each by itself and as one trace: on one clock, with
    processes and arrows that no other rank has."""
    found = [f"rank {rank}: {fault}" for rank, text in enumerate(texts) for fault in faults(text)]
    if found:
        return found
    traces = [json.loads(text, parse_float=Decimal) for text in texts]
    about = [trace["distributedInfo"] for trace in traces]
    if [each["rank"] for each in about] != list(range(len(texts))):
        found.append(f"ranks are {[each['rank'] for each in about]}")
    if {each["world_size"] for each in about} != {len(texts)}:
        found.append(f"worlds are of {[each['world_size'] for each in about]} ranks")
    steps = [{row["name"] for row in trace["traceEvents"] if row["name"].startswith("ProfilerStep#")}
             for trace in traces]
    if any(each != steps[0] for each in steps):
        found.append("ranks have other steps")
    base = min(trace["baseTimeNanoseconds"] for trace in traces)
    rows, processes, arrows = [], {}, {}
    for rank, trace in enumerate(traces):
        shift = Decimal(trace["baseTimeNanoseconds"] - base) / 1000
        for row in trace["traceEvents"]:
            if processes.setdefault(row["pid"], rank) != rank:
                return found + [f"two ranks have the process {row['pid']}"]
            if row["ph"] in "sf" and arrows.setdefault((row["id"], row["cat"], row["name"]), rank) != rank:
                return found + [f"two ranks have the arrow {row['id']}"]
            rows.append(row if row["ph"] == "M" else {**row, "ts": row["ts"] + shift})
    spans = [row for row in rows if row["ph"] == "X"]
    return found + list(nesting_faults(spans)) + list(arrow_faults(rows, spans))


def faults(text, as_device=False):
    try:
        trace = json.loads(text, parse_float=Decimal, parse_constant=refuse_constant)
    except ValueError as error:
        return [f"no JSON: {error}"]
    rows = trace.get("traceEvents", [])
    found = list(top_level_faults(text, trace)) + list(row_faults(rows, as_device))
    if found:
        return found
    spans = [row for row in rows if row["ph"] == "X"]
    found += nesting_faults(spans)
    found += arrow_faults(rows, spans)
    if as_device:
        found += launch_faults(spans)
        if not any(row["name"] == "process_labels" and "shown as a device" in row["args"]["labels"]
                   for row in rows if row["pid"] == 0):
            found.append("nothing says that the device is none")
    ids = [row["args"]["External id"] for row in spans if row["cat"] in HOST_CATEGORIES]
    if len(set(ids)) != len(ids):
        found.append("two spans have one External id")
    steps = [int(row["name"].split("#")[1]) for row in spans if row["name"].startswith("ProfilerStep#")]
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        found.append(f"steps are {steps}")
    return found
