"""The rules that Perfetto and HTA have for trace event JSON.

faults(text) gives a line for each rule that a trace breaks; rows of a device are one of them unless
as_device allows these, of the host, or of_device, of a device of its own; steps that are left out unless they
are between windows. Standard library only.
"""
import bisect
import collections
import json
import re
from decimal import Decimal

ORDER = ["schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
         "baseTimeNanoseconds", "traceEvents", "traceName"]
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
HOST_CATEGORIES = {"cpu_op", "user_annotation"}
RUN_CATEGORY = "gpu_user_annotation"  # on a stream, around what a call did there
STEP = "ProfilerStep#"
LAUNCHES = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync"}
DEVICE_NUMBERS = ("totalGlobalMem", "computeMajor", "computeMinor", "numSms", "warpSize",
                  "maxThreadsPerMultiprocessor")
DEVICE_ARGS = {"External id", "queued", "device", "context", "stream", "correlation"}
NO_COMPUTATION = re.compile("nccl|Memcpy|Memset")  # by such a name readers tell other work from computing
MOST_CORRELATION = 0xffffffff


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


def properties_faults(trace, as_device, of_device):
    """A device is described where there are rows of one, and has the rank's number."""
    described = trace.get("deviceProperties")
    if not as_device and not of_device:
        if described != []:
            yield f"deviceProperties are {described} without a device"
        return
    if not isinstance(described, list) or len(described) != 1:
        yield f"deviceProperties are {described}"
        return
    device = described[0]
    if device.get("id") != trace["distributedInfo"]["rank"] or not device.get("name"):
        yield f"deviceProperties name the device {device.get('id')} '{device.get('name')}'"
    for name in DEVICE_NUMBERS if as_device else ():
        if not isinstance(device.get(name), int):
            yield f"deviceProperties have no number {name}"


def device_faults(row, as_device):
    args = row["args"]
    if DEVICE_ARGS - set(args) or args["stream"] <= 0 or args["correlation"] < 0:
        yield f"readers do not take it for a device's: {row['name']}"
        return
    if row["pid"] != args["device"] or row["tid"] != args["stream"]:
        yield f"a device row is not on its stream: {row['name']}"
    if row["cat"] == "gpu_memcpy":
        if not row["name"].startswith("Memcpy") or "bytes" not in args:
            yield f"a copy that readers do not know: {row['name']}"
        return
    if NO_COMPUTATION.match(row["name"]):
        yield f"readers do not take it for a computation: {row['name']}"
    for name in ("grid", "block") if as_device else ():
        sizes = args.get(name)
        if not (isinstance(sizes, list) and len(sizes) == 3 and all(isinstance(n, int) and n > 0 for n in sizes)):
            yield f"the kernel {row['name']} has the {name} {sizes}"


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


def step_faults(spans):
    """Each device row begins in the step that it is tied to."""
    steps = {row["args"].get("correlation"): row for row in spans if row["name"].startswith(STEP)}
    for row in spans:
        if row["cat"] not in LAUNCHES:
            continue
        step = steps.get(row["args"]["correlation"])
        if step is None or not step["ts"] <= row["ts"] <= step["ts"] + step["dur"]:
            yield f"the device row {row['name']} at {row['ts']} is not of its step"


def categories_of_host(as_device, of_device):
    return HOST_CATEGORIES | ({"cuda_runtime"} if as_device else set()) | ({RUN_CATEGORY} if of_device else set())


def span_faults(row, as_device, of_device):
    lacking = {"cat", "name", "pid", "tid", "ts", "dur", "args"} - set(row)
    if lacking:
        yield f"a span lacks {sorted(lacking)}"
        return
    if (as_device or of_device) and row["cat"] in LAUNCHES:
        yield from device_faults(row, as_device)
    elif row["cat"] not in categories_of_host(as_device, of_device):
        yield f"a host row has the category {row['cat']}"
    elif {"stream", "device"} & set(row["args"]) or (
            row["cat"] in HOST_CATEGORIES | {RUN_CATEGORY} and "correlation" in row["args"]
            and not (of_device and row["name"].startswith(STEP))):
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


class BoundSpans:
    """The spans that ends of arrows are bound to: of "ac2g" a launch around it or the device's row that begins
    with it, of any other a call that begins with it."""

    def __init__(self, spans):
        self.calls, self.launches, self.device = {}, {}, {}
        for row in spans:
            place, correlation = (row["pid"], row["tid"]), row["args"].get("correlation")
            if row["cat"] == "cuda_runtime":
                self.launches[place, correlation] = row
            elif row["cat"] in LAUNCHES:
                self.device[place, correlation, row["ts"]] = row
            elif "call" in row["args"]:
                self.calls[place, row["ts"]] = row

    def at(self, end):
        """None: there is no such."""
        place, correlation = (end["pid"], end["tid"]), end["id"] & MOST_CORRELATION
        if end["cat"] != "ac2g":
            return self.calls.get((place, end["ts"]))
        if end["ph"] == "f":
            return self.device.get((place, correlation, end["ts"]))
        launch = self.launches.get((place, correlation))
        return launch if launch and launch["ts"] <= end["ts"] <= launch["ts"] + launch["dur"] else None


# What both spans of an arrow have to do with each other.
ARROWS = {
    "ac2g": lambda a, b: a["args"]["correlation"] == b["args"]["correlation"],
    "fwdbwd": lambda a, b: (a["args"]["phase"], b["args"]["phase"]) == ("forward", "backward"),
    "onnx_node": lambda a, b: a["args"]["onnx_node"] == b["args"]["onnx_node"],
}


def arrow_faults(rows, spans):
    bound = BoundSpans(spans)
    ends = collections.defaultdict(list)
    for row in rows:
        if row["ph"] not in "sf":
            continue
        if row["cat"] not in ARROWS or row["name"] != row["cat"]:
            yield f"nobody knows arrows of {row['cat']}"
            continue
        span = bound.at(row)
        ends[row["id"], row["cat"], row["name"]].append((row, span))
        if span is None:
            yield f"the arrow {row['cat']} {row['id']} has no span at its '{row['ph']}'"
        if row["ph"] == "f" and row.get("bp") != "e":
            yield f"the arrow {row['id']} has no bp"
    for key, both in ends.items():
        if [row["ph"] for row, _ in both] != ["s", "f"] or both[0][0]["ts"] > both[1][0]["ts"]:
            yield f"the arrow {key} is not one beginning and then one end"
        elif all(span for _, span in both) and not ARROWS[key[1]](both[0][1], both[1][1]):
            yield f"the arrow {key} joins two spans that have nothing in common"


def micro_step_begins(spans, of_device):
    """Of a device they begin with the first call that has run since the one before began."""
    if not of_device:
        return sorted(row["ts"] for row in spans if row["name"] == "micro-step")
    begins, ran = [], set()
    for row in sorted((row for row in spans if "call" in row["args"]), key=lambda row: row["ts"]):
        if row["args"]["call"] in ran:
            begins.append(row["ts"])
            ran = set()
        ran.add(row["args"]["call"])
    return begins


def lacking_arrows(rows, spans, of_device):
    """In a micro-step one call of an ONNX node begins first, and has an arrow to each other one."""
    begins = micro_step_begins(spans, of_device)
    calls = collections.defaultdict(int)
    for row in spans:
        node = "(" if row["cat"] in LAUNCHES else row["args"].get("onnx_node", "(")
        if not node.startswith("("):  # what training adds is of no node
            calls[node, bisect.bisect(begins, row["ts"])] += 1
    arrows = sum(row["ph"] == "s" and row["cat"] == "onnx_node" for row in rows)
    wanted = sum(count - 1 for count in calls.values())
    if arrows != wanted:
        yield f"{arrows} arrows lead from ONNX nodes to their calls, not {wanted}"


def row_faults(rows, as_device, of_device):
    names = set()
    for row in rows:
        if row["ph"] == "M":
            if row["name"] not in METADATA:
                yield f"nobody reads the metadata {row['name']}"
            if row["name"] == "thread_name":
                names.add((row["pid"], row["tid"]))
        elif row["ph"] == "X":
            yield from span_faults(row, as_device, of_device)
        elif row["ph"] == "C":
            if not row["args"] or not all(isinstance(v, (int, Decimal)) for v in row["args"].values()):
                yield f"the counter {row['name']} has no numbers"
        elif row["ph"] not in "sf":
            yield f"an event of kind {row['ph']}"
    for row in rows:
        if row["ph"] == "X" and (row["pid"], row["tid"]) not in names:
            yield f"thread {row['tid']} has no name"


def merged_faults(texts, as_device=False):
    """Of the traces of all ranks of a world, each by itself and as one trace: on one clock, with
    processes and arrows that no other rank has."""
    found = [f"rank {rank}: {fault}" for rank, text in enumerate(texts) for fault in faults(text, as_device)]
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


def faults(text, as_device=False, windows=1, of_device=False):
    """`windows`: how many pieces of steps that follow each other the profile has."""
    try:
        trace = json.loads(text, parse_float=Decimal, parse_constant=refuse_constant)
    except ValueError as error:
        return [f"no JSON: {error}"]
    rows = trace.get("traceEvents", [])
    found = list(top_level_faults(text, trace)) + list(row_faults(rows, as_device, of_device))
    found += properties_faults(trace, as_device, of_device)
    if found:
        return found
    spans = [row for row in rows if row["ph"] == "X"]
    found += nesting_faults(spans)
    found += arrow_faults(rows, spans)
    found += lacking_arrows(rows, spans, of_device)
    if of_device:
        found += step_faults(spans)
    if as_device:
        found += launch_faults(spans)
        if not any(row["name"] == "process_labels" and "shown as a device" in row["args"]["labels"]
                   for row in rows if row["pid"] == trace["distributedInfo"]["rank"]):
            found.append("nothing says that the device is none")
    ids = [row["args"]["External id"] for row in spans if row["cat"] in HOST_CATEGORIES]
    if len(set(ids)) != len(ids):
        found.append("two spans have one External id")
    steps = [int(row["name"].split("#")[1]) for row in spans if row["name"].startswith("ProfilerStep#")]
    behind = [later - step for step, later in zip(steps, steps[1:])]
    if not steps or any(by < 1 for by in behind) or sum(by > 1 for by in behind) != windows - 1:
        found.append(f"steps are {steps}")
    return found
