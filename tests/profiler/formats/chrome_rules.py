"""The rules that Perfetto and HTA have for trace event JSON, as far as rows of the host go.

faults(text) gives a line for each rule that a trace breaks. Standard library only.
"""
import collections
import json
import re
from decimal import Decimal

ORDER = ["schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
         "baseTimeNanoseconds", "traceEvents", "traceName"]
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
HOST_CATEGORIES = {"cpu_op", "user_annotation"}


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


def span_faults(row):
    lacking = {"cat", "name", "pid", "tid", "ts", "dur", "args"} - set(row)
    if lacking:
        yield f"a span lacks {sorted(lacking)}"
        return
    if row["cat"] not in HOST_CATEGORIES:
        yield f"a host row has the category {row['cat']}"
    if {"stream", "correlation", "device"} & set(row["args"]):
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


def row_faults(rows):
    names = set()
    for row in rows:
        if row["ph"] == "M":
            if row["name"] not in METADATA:
                yield f"nobody reads the metadata {row['name']}"
            if row["name"] == "thread_name":
                names.add((row["pid"], row["tid"]))
        elif row["ph"] == "X":
            yield from span_faults(row)
        elif row["ph"] == "C":
            if not row["args"] or not all(isinstance(v, (int, Decimal)) for v in row["args"].values()):
                yield f"the counter {row['name']} has no numbers"
        elif row["ph"] not in "sf":
            yield f"an event of kind {row['ph']}"
    for row in rows:
        if row["ph"] == "X" and (row["pid"], row["tid"]) not in names:
            yield f"thread {row['tid']} has no name"


def faults(text):
    try:
        trace = json.loads(text, parse_float=Decimal, parse_constant=refuse_constant)
    except ValueError as error:
        return [f"no JSON: {error}"]
    rows = trace.get("traceEvents", [])
    found = list(top_level_faults(text, trace)) + list(row_faults(rows))
    if found:
        return found
    spans = [row for row in rows if row["ph"] == "X"]
    found += nesting_faults(spans)
    found += arrow_faults(rows, spans)
    ids = [row["args"]["External id"] for row in spans]
    if len(set(ids)) != len(ids):
        found.append("two spans have one External id")
    steps = [int(row["name"].split("#")[1]) for row in spans if row["name"].startswith("ProfilerStep#")]
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        found.append(f"steps are {steps}")
    return found
