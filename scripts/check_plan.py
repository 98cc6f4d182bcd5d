#!/usr/bin/python3
"""Replays memory plans of runs against their graphs: order, lifetimes, bytes, waits, recomputation.

    scripts/check_plan.py RUN... [--budget BYTES]

Reads RUN/plan.json and the last stages' ONNX files alone, and shares no code with the planner. Every
value gets a content: what made it, from which contents; what Slice, Split or Concat move in one
piece keeps its own. Going through the calls, each must find the contents of its inputs in the
bytes that the plan gives them. A stage with another order or with recomputation must compute what
the one before it does. Exit code 0: nothing found; 1: faults, one a line; 2: one is no run.
"""
import argparse
import hashlib
import json
import sys
from pathlib import Path

import google.protobuf.message
import numpy
import onnx.numpy_helper

TRANSFERS = ("Offload", "Fetch")
NOTHING, GARBAGE, HELD, MOST_FAULTS = 0, -1, -2, 20
AFTER_PASSES = ("order", "recompute")  # stages that change when ops run, not what is computed


class Stage:
    """The graph of a stage file, and the content of each of its values."""
    def __init__(self, path):
        model = onnx.load(path, load_external_data=False)
        self.note = json.loads({p.key: p.value for p in model.metadata_props}["ai.trainscope.stage"])
        self.nodes = {}  # in order, by the first value that each makes
        self.content = {name: digest("given", name) for name, _ in self.note["values"]}
        graph = model.graph
        self.constants = {t.name: t for t in graph.initializer}
        self.types = {t.name: (t.data_type, t.dims) for t in graph.initializer}
        for info in [*graph.input, *graph.value_info, *graph.output]:
            kind = info.type.tensor_type
            self.types[info.name] = kind.elem_type, [d.dim_value for d in kind.shape.dim]
        for node in graph.node:
            self.nodes[next(name for name in node.output if name)] = node
            self.add_contents(node)

    def add_contents(self, node):
        if node.op_type in TRANSFERS:  # the same elements elsewhere
            self.content[node.output[0]] = self.content[node.input[0]]
            return
        attributes = sorted((a.name, a.SerializeToString()) for a in node.attribute)
        inputs = [self.content[name] if name else 0 for name in node.input]
        made = digest(node.domain, node.op_type, attributes, inputs)
        self.content.update((n, digest(made, i)) for i, n in enumerate(node.output) if n)

    def array(self, name):
        """Of the value's type, never filled: for what numpy knows of places in it."""
        kind, dims = self.types[name]
        bf16 = kind == onnx.TensorProto.BFLOAT16
        size = 2 if bf16 else onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[kind].itemsize
        return numpy.empty(dims, f"V{size}")

    def pieces(self, node):
        """(large value, small one, byte, bytes) of what is taken out or put in in one piece."""
        def numbers(i, absent=None):
            given = i < len(node.input) and node.input[i]
            return onnx.numpy_helper.to_array(self.constants[node.input[i]]) if given else absent

        joins = node.op_type == "Concat"
        large, small = (node.output[0], node.input) if joins else (node.input[0], node.output)
        array = self.array(large)
        if node.op_type == "Slice":
            axes, steps = numbers(3, range(array.ndim)), numbers(4, [1] * array.ndim)
            cut = [slice(None)] * array.ndim
            for axis, *where in zip(axes, numbers(1), numbers(2), steps):
                cut[axis] = slice(*where)
            parts = [array[tuple(cut)]]
        else:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            sizes = [self.types[name][1][axis] for name in small] if joins else numbers(1)
            ends = len(small) if sizes is None else numpy.cumsum(sizes)[:-1]
            parts = numpy.split(array, ends, axis)
        first = array.__array_interface__["data"][0]
        return [(large, name, part.__array_interface__["data"][0] - first, part.nbytes)
                for name, part in zip(small, parts)
                if name and part.size and part.flags.c_contiguous]

    def results(self):
        """What the step is for: contents of updates, gradients, outputs and the loss."""
        pairs = self.note["updates"] + self.note["gradients"]
        pairs += [(name, name) for name in self.note["outputs"] + [self.note["loss"]] if name]
        return {(of, self.content[value]) for of, value in pairs}


def digest(*parts):
    """A content: 62 bits, above zero."""
    whole = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return (int.from_bytes(whole, "little") >> 2) + 1


class Memory:
    """What each unit of the arena holds, and behind it of the arena in host memory."""
    def __init__(self, plan, fault):
        self.unit, self.fault = plan["alignment_bytes"], fault
        sizes = [-(-plan[key] // self.unit) for key in ("arena_bytes", "host_arena_bytes")]
        self.host_begin = sizes[0] * self.unit
        self.units = numpy.full(sum(sizes), NOTHING, numpy.int64)

    def __getitem__(self, place):
        offset, size = place
        first, end = offset // self.unit, -(-(offset + size) // self.unit)
        if 0 <= offset and offset % self.unit == 0 and end <= len(self.units):
            return self.units[first:end]
        self.fault(f"bytes {offset} to {offset + size} are outside the arena or not aligned")
        return numpy.full(end - first, NOTHING)


def calls_by_time(plan):
    """The calls that compute a node, of a tiled section the first tile's."""
    if "calls" not in plan:  # run format 1
        return plan["instructions"]
    return [row for row in plan["calls"]
            if row["kind"] in ("kernel", "transfer", "program") and row.get("tile", 0) == 0]


def copies_of(plan):
    """(from, to) of each copy of a state."""
    if "calls" not in plan:  # run format 1
        return {(row["from"], row["to"]) for row in plan["copies"]}
    return {(*row["inputs"], *row["outputs"])
            for row in plan["calls"] if row["kind"] == "state_copy"}


def tiled_times(plan):
    """(begin, end) on the time axis of each tiled section."""
    if "calls" not in plan:  # run format 1
        return [(row["begin"], row["end"]) for row in plan.get("chains", [])]
    sections = [plan["calls"][row["begin"]:row["end"]] for row in plan["sections"]]
    return [(calls[0]["time"], calls[-1]["time"] + 1) for calls in sections
            if calls[0]["kind"] != "add_partials"]


class Replay:
    def __init__(self, plan, stage, fault):
        self.plan, self.stage, self.fault, self.memory = plan, stage, fault, Memory(plan, fault)
        self.calls, self.copies = calls_by_time(plan), copies_of(plan)
        self.sections = tiled_times(plan)
        self.place = {}      # value -> (offset, bytes)
        self.life = {}       # value -> range of times
        self.workspaces = {}  # place -> ranges of times
        self.held = []       # (death, place) of what is there for others
        self.in_host = set()  # values
        self.inside = {}     # value -> (another one, the unit of it where this one begins)
        self.joined = {}     # value -> its units, where they are those of others
        self.states = {state for state, _ in stage.note["updates"]}
        for begin, rows in ((0, "buffers"), (self.memory.host_begin, "host_buffers")):
            for row in plan[rows]:
                self.add_buffer(row, begin)

    def add_buffer(self, row, begin):
        where = (begin + row["offset"], row["bytes"])
        if begin == 0 and sum(where) > self.memory.host_begin:
            self.fault(f"'{row['name']}' ends outside the arena")
        self.in_host.update(row["values"] if begin else [])
        if row["kind"] == "workspace":
            self.workspaces.setdefault(where, []).append(range(row["birth"], row["death"]))
        if row["kind"] == "held":  # from the begin on
            self.held.append((row["death"], where))
            self.memory[where][:] = HELD
        parts = {part["value"]: (begin + part["offset"], part["bytes"]) for part in row["parts"]}
        for value in row["values"]:
            self.place[value] = offset, size = parts.get(value, where)
            self.life[value] = range(row["birth"], row["death"])
            if not where[0] <= offset <= offset + size <= sum(where):
                self.fault(f"'{value}' is no part of '{row['name']}'")
            if size < self.stage.array(value).nbytes:
                self.fault(f"'{value}' has too few bytes")

    def run(self):
        self.check_ids()
        self.check_order()
        for name, _ in self.stage.note["values"]:
            if name in self.place:
                self.put(name)
        for index, row in enumerate(self.calls):
            if row.get("time", index) != index:
                self.fault(f"call {row['id']} ({row['op']}) is at another time than {index}")
            self.execute(index, row)
        self.check_end()
        self.check_bound()
        self.check_waits()

    def check_ids(self):
        """An id is the position of its row, and a workspace belongs to the first call that has it."""
        plan = self.plan
        if "calls" not in plan:  # run format 1
            return
        buffers = {row["id"]: row for row in plan["buffers"] + plan["host_buffers"]}
        for ids in ([row["id"] for row in plan["calls"]], sorted(buffers)):
            if ids != [*range(len(ids))]:
                self.fault("the ids are not the positions of the rows")
        for row in self.calls:
            buffer = buffers.get(row["workspace"])
            if buffer and buffer["owner"] != {"call": row["id"]}:
                self.fault(f"call {row['id']} does not own its workspace")

    def check_order(self):
        """Each node of the graph is a call, or a view: its result is its input's bytes."""
        computed = {(row["outputs"] or [""])[0] for row in self.calls}
        if len(computed) != len(self.calls):
            self.fault("a call is there twice")
        for first in computed - set(self.stage.nodes):
            self.fault(f"'{first}' is made by no node of the graph")
        for first, node in self.stage.nodes.items():
            view = first not in computed
            if view and self.place.get(first) != self.place.get(node.input[0]):
                self.fault(f"'{first}' is neither computed nor a view of '{node.input[0]}'")
            if view or node.op_type in TRANSFERS:
                self.inside[first] = (node.input[0], 0)
            elif node.op_type in ("Slice", "Split", "Concat"):
                self.follow_pieces(node)

    def follow_pieces(self, node):
        """Parts that fill whole units of what they are in hold what that holds there."""
        unit = self.memory.unit
        for large, small, byte, size in self.stage.pieces(node):
            whole = self.stage.array(large).nbytes
            begin, units = byte // unit, self.units(small, size)
            if byte % unit or size % unit and byte + size < whole:
                continue
            if small in node.output:
                self.inside[small] = (large, begin)
            else:
                self.joined.setdefault(large, self.units(large, whole))
                self.joined[large][begin:begin + len(units)] = units

    def units(self, value, size):
        """What the first units of a value are: no two are alike unless they hold the same."""
        begin, count = 0, -(-size // self.memory.unit)
        while value in self.inside:
            value, there = self.inside[value]
            begin += there
        if value in self.joined:
            return self.joined[value][begin:begin + count]
        return self.stage.content[value] + numpy.arange(begin, begin + count)

    def put(self, value):
        self.memory[self.place[value]][:] = self.units(value, self.place[value][1])

    def holds(self, storage, value):
        held = self.memory[self.place[storage]]
        return numpy.array_equal(held, self.units(value, self.place[storage][1]))

    def execute(self, index, row):
        where = f"call at {index} ({row['op']}):"
        node = self.stage.nodes.get((row["outputs"] or [""])[0])
        if node is None:
            return self.fault(f"{where} makes nothing of the graph")
        inputs, outputs = ([name for name in l if name] for l in (node.input, node.output))
        if outputs != row["outputs"]:
            self.fault(f"{where} the plan and the graph differ in what it makes")
        for name in inputs + outputs:
            if name not in self.place:
                return self.fault(f"{where} '{name}' has no place")
            if index not in self.life[name]:
                self.fault(f"{where} '{name}' is alive in {self.life[name]} only")
            if (name in self.in_host) != (row["op"] == TRANSFERS[name in inputs]):
                self.fault(f"{where} '{name}' is in the wrong memory")
        for name in (name for name in inputs if not self.holds(name, name)):
            self.fault(f"{where} the bytes of '{name}' hold something else")
        for name in outputs:
            self.put(name)
        place = row["workspace_offset"], row["workspace_bytes"]
        there = [life for life in self.workspaces.get(place, []) if index in life][:1]
        if not there and place[1]:
            self.fault(f"{where} the workspace is not there")
        self.memory[place][:] = GARBAGE
        for begin, end in self.sections:
            lives = [*there, *map(self.life.get, inputs + outputs)] if begin <= index < end else []
            if any(l.start > begin or l.stop < end for l in lives):
                self.fault(f"{where} what it touches does not live as long as its section")
        in_place = {self.place[name] for name in outputs}
        if any(index < death and (self.memory[place] != HELD).any() for death, place in self.held):
            self.fault(f"{where} what is held for others is written over")
        for name in inputs + outputs:
            replaced = name in inputs and self.place[name] in in_place
            if not replaced and not self.holds(name, name):
                self.fault(f"{where} '{name}' is written over")

    def ranges(self, row):
        """(begin, end, whether it is written) of the bytes that a call touches."""
        places = [(self.place[name], key == "outputs") for key in ("inputs", "outputs")
                  for name in row[key] if name in self.place]
        if row["workspace_bytes"]:
            places.append(((row["workspace_offset"], row["workspace_bytes"]), True))
        return [(offset, offset + size, written) for (offset, size), written in places]

    def check_waits(self):
        """A call waits for what another stream does with its bytes, or comes behind such a wait."""
        calls = self.plan.get("calls", [])
        done = {}     # stream -> the last call of another one that it has waited for
        touched = {}  # stream -> (call, ranges) so far
        if len({row["stream"] for row in calls}) < 2:
            return
        for row in calls:
            stream, mine = row["stream"], self.ranges(row)
            done[stream] = max([done.get(stream, -1), *row["waits"]])
            for other, earlier in touched.items():
                for call, ranges in earlier if other != stream else ():
                    if call > done[stream] and any(
                            a < d and c < b and (w or v) for a, b, w in mine for c, d, v in ranges):
                        self.fault(f"call {row['id']} does not wait for call {call}")
                        done[stream] = call
            touched.setdefault(stream, []).append((row["id"], mine))

    def check_end(self):
        note = self.stage.note
        for state, value in note["updates"]:
            storage = value if (value, state) in self.copies else state
            if not self.holds(storage, value):
                self.fault(f"the update of '{state}' is lost")
        kept = [gradient for _, gradient in note["gradients"]] + note["outputs"] + [note["loss"]]
        kept += [name for name, kind in note["values"] if kind != "input" and name in self.place]
        for name in kept:
            if name and name not in self.states and not self.holds(name, name):
                self.fault(f"'{name}' is gone at the end of the step")

    def check_bound(self):
        """No layout is lower than the bytes alive at one step, and the plan says which they are."""
        unit = self.memory.unit
        change = numpy.zeros(len(self.calls) + 2, numpy.int64)
        for row in self.plan["buffers"]:
            size = -(-row["bytes"] // unit) * unit
            change[[row["birth"], row["death"]]] += size, -size
        alive, arena = int(numpy.cumsum(change).max(initial=0)), self.plan["arena_bytes"]
        if not alive <= (bound := self.plan["lower_bound_bytes"]) <= arena:
            self.fault(f"{alive} bytes alive at once, the bound {bound}, the arena {arena}")


def check(run, budget):
    plan = json.loads((run / "plan.json").read_text())
    rows = json.loads((run / "stages/stages.json").read_text())["stages"]
    first = max(i for i, row in enumerate(rows) if row["name"] not in AFTER_PASSES)
    stages = [Stage(run / "stages" / row["file"]) for row in rows[first:]]
    faults = [f"the stage {row['name']} changes '{result}'"
              for row, before, after in zip(rows[first + 1:], stages, stages[1:])
              for result, _ in after.results() - before.results()]
    Replay(plan, stages[-1], faults.append).run()
    if plan["arena_bytes"] > (budget or plan.get("recompute", {}).get("budget_bytes", sys.maxsize)):
        faults.append(f"the arena of {plan['arena_bytes']} bytes is above the budget")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--budget", type=int)
    worst, options = 0, parser.parse_args()
    for run in options.runs:
        try:
            lines = check(run, options.budget)
        except (OSError, ValueError, LookupError, StopIteration, TypeError, AttributeError,
                MemoryError, google.protobuf.message.DecodeError) as error:
            worst = 2
            print(f"cannot read {run}: {error!r}", file=sys.stderr)
            continue
        print(*lines[:MOST_FAULTS], f"{run}: {len(lines)} faults", sep="\n")
        worst = max(worst, 1 if lines else 0)
    return worst


if __name__ == "__main__":
    sys.exit(main())
