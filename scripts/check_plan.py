#!/usr/bin/python3
"""Replays the memory plan of a run against its graph: order, lifetimes, bytes, recomputation.

    scripts/check_plan.py RUN [--budget BYTES]

Reads RUN/plan.json and the last stage's ONNX file alone, and shares no code with the planner. Every
value gets a content: what made it, from which contents. Going through the instructions, each must
find the contents of its inputs in the bytes that the plan gives them. A stage with another order
or with recomputation must compute the same contents as the one before it. Exit code 0: nothing found; 1: faults, one a
line; 2: the run cannot be read.
"""
import argparse
import hashlib
import json
import sys
from pathlib import Path

import numpy
import onnx

NOTHING = 0
GARBAGE = -1
MOST_FAULTS = 20
AFTER_PASSES = ("order", "recompute")  # stages that change when ops run, not what is computed


class Faults:
    def __init__(self):
        self.lines = []

    def __call__(self, line):
        if len(self.lines) < MOST_FAULTS:
            self.lines.append(line)


class Stage:
    """The graph of a stage file, and the content of each of its values."""

    def __init__(self, path):
        model = onnx.load(path, load_external_data=False)
        note = next(p.value for p in model.metadata_props if p.key == "ai.trainscope.stage")
        self.note = json.loads(note)
        self.nodes = {}  # by the first value that it makes
        self.order = []
        self.content = {name: digest("given", name) for name, _ in self.note["values"]}
        for node in model.graph.node:
            first = next(name for name in node.output if name)
            self.nodes[first] = node
            self.order.append(first)
            self.add_contents(node)

    def add_contents(self, node):
        if node.op_type in ("Offload", "Fetch"):  # the same elements elsewhere
            self.content[node.output[0]] = self.content[node.input[0]]
            return
        attributes = sorted((a.name, a.SerializeToString()) for a in node.attribute)
        inputs = [self.content[name] if name else 0 for name in node.input]
        made = digest(node.domain, node.op_type, attributes, inputs)
        for index, name in enumerate(node.output):
            if name:
                self.content[name] = digest(made, index)

    def results(self):
        """What the step is for: contents of updates, gradients, outputs and the loss."""
        pairs = [(state, self.content[value]) for state, value in self.note["updates"]]
        pairs += [(of, self.content[value]) for of, value in self.note["gradients"]]
        pairs += [(name, self.content[name]) for name in self.note["outputs"]]
        if self.note["loss"]:
            pairs.append(("loss", self.content[self.note["loss"]]))
        return pairs


def digest(*parts):
    """A content: 62 bits, never NOTHING or GARBAGE."""
    whole = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return (int.from_bytes(whole, "little") >> 2) + 1


class Memory:
    """What each unit of the arena holds, and behind it of the arena in host memory."""

    def __init__(self, plan, faults):
        self.unit = plan["alignment_bytes"]
        self.fault = faults
        sizes = [-(-plan[key] // self.unit) for key in ("arena_bytes", "host_arena_bytes")]
        self.host_begin = sizes[0] * self.unit
        self.units = numpy.full(sum(sizes), NOTHING, numpy.int64)

    def part(self, place):
        offset, size = place
        if offset < 0 or offset % self.unit or offset + size > len(self.units) * self.unit:
            self.fault(f"bytes {offset} to {offset + size} are outside the arena or not aligned")
            return self.units[:0]
        return self.units[offset // self.unit:-(-(offset + size) // self.unit)]

    def put(self, place, content):
        self.part(place)[:] = content

    def holds(self, place, content):
        return bool((self.part(place) == content).all())


class Replay:
    def __init__(self, plan, stage, faults):
        self.plan = plan
        self.stage = stage
        self.fault = faults
        self.memory = Memory(plan, faults)
        self.place = {}     # value -> (offset, bytes)
        self.life = {}      # value -> (birth, death)
        self.workspace = {}  # instruction -> place
        self.in_host = set()  # values
        arena = [(0, row) for row in plan["buffers"]]
        host = [(self.memory.host_begin, row) for row in plan["host_buffers"]]
        for begin, row in arena + host:
            where = (begin + row["offset"], row["bytes"])
            if begin == 0 and sum(where) > self.memory.host_begin:
                faults(f"'{row['name']}' ends outside the arena")
            self.in_host.update(row["values"] if begin else [])
            if row["kind"] == "workspace":
                self.workspace[row["birth"]] = where
            for value in row["values"]:
                self.place[value] = where
                self.life[value] = (row["birth"], row["death"])
        self.states = {state for state, _ in stage.note["updates"]}

    def run(self):
        for name, _ in self.stage.note["values"]:
            if name in self.place:
                self.memory.put(self.place[name], self.stage.content[name])
        self.check_order()
        for index, row in enumerate(self.plan["instructions"]):
            self.execute(index, row)
        self.check_end()
        self.check_bound()

    def check_order(self):
        """Each node of the graph is an instruction, or a view: its result is its input's bytes."""
        listed = [row["outputs"][0] for row in self.plan["instructions"]]
        if len(set(listed)) != len(listed):
            self.fault("an instruction is there twice")
        for first in set(listed) - set(self.stage.order):
            self.fault(f"'{first}' is made by no node of the graph")
        self.views = {}
        computed = set(listed)
        for first in self.stage.order:
            if first in computed:
                continue
            node = self.stage.nodes[first]
            if self.place.get(first) != self.place.get(node.input[0]):
                self.fault(f"'{first}' is neither computed nor a view of '{node.input[0]}'")
            self.views[first] = node.input[0]

    def content(self, value):
        while value in self.views:
            value = self.views[value]
        return self.stage.content[value]

    def execute(self, index, row):
        node = self.stage.nodes[row["outputs"][0]]
        inputs = [name for name in node.input if name]
        outputs = [name for name in node.output if name]
        if outputs != row["outputs"]:
            self.fault(f"instruction {index}: the plan and the graph differ in what it makes")
        for name in inputs + outputs:
            if name not in self.place:
                return self.fault(f"instruction {index}: '{name}' has no place")
            birth, death = self.life[name]
            if not birth <= index < death:
                self.fault(f"instruction {index}: '{name}' is alive from {birth} to {death} only")
        for name in inputs:
            if not self.memory.holds(self.place[name], self.content(name)):
                self.fault(f"instruction {index} ({row['op']}): the bytes of '{name}' hold "
                           "something else")
        for name in outputs:
            if (name in self.in_host) != (row["op"] == "Offload"):
                self.fault(f"instruction {index} ({row['op']}): '{name}' is in the wrong memory")
        for name in inputs:
            if name in self.in_host and row["op"] != "Fetch":
                self.fault(f"instruction {index} ({row['op']}) reads '{name}' in host memory")
        self.check_apart(index, inputs, outputs)
        if index in self.workspace:
            if self.workspace[index][1] < row["workspace_bytes"]:
                self.fault(f"instruction {index}: the workspace is too small")
            self.memory.put(self.workspace[index], GARBAGE)
        for name in outputs:
            self.memory.put(self.place[name], self.content(name))

    def check_apart(self, index, inputs, outputs):
        """Outputs and workspace touch nothing of the instruction, but for results in place."""
        written = [(name, self.place[name]) for name in outputs]
        for k, (name, place) in enumerate(written):
            for other in inputs:
                if overlap(place, self.place[other]) and place != self.place[other]:
                    self.fault(f"instruction {index}: '{name}' is written over part of '{other}'")
            for other, there in written[:k]:
                if overlap(place, there):
                    self.fault(f"instruction {index}: '{name}' and '{other}' share bytes")
        scratch = self.workspace.get(index)
        for name in inputs + outputs if scratch else []:
            if overlap(scratch, self.place[name]):
                self.fault(f"instruction {index}: its workspace touches '{name}'")

    def check_end(self):
        note = self.stage.note
        copied = {(row["from"], row["to"]) for row in self.plan["copies"]}
        for state, value in note["updates"]:
            there = self.place[state]
            if self.memory.holds(there, self.content(value)):
                continue
            kept = self.memory.holds(self.place[value], self.content(value))
            if (value, state) not in copied or not kept:
                self.fault(f"the update of '{state}' is lost")
        last = [of_gradient for _, of_gradient in note["gradients"]]
        last += [name for name in note["outputs"] + [note["loss"]] if name]
        for name in last:
            if name not in self.states and not self.memory.holds(self.place[name],
                                                                 self.content(name)):
                self.fault(f"'{name}' is gone at the end of the step")
        for name, kind in note["values"]:
            if kind != "input" and name in self.place and name not in self.states:
                if not self.memory.holds(self.place[name], self.content(name)):
                    self.fault(f"{kind} '{name}' was overwritten")

    def check_bound(self):
        """No layout is lower than the bytes alive at one step, and the plan says which they are."""
        unit = self.plan["alignment_bytes"]
        change = numpy.zeros(len(self.plan["instructions"]) + 2, numpy.int64)
        for row in self.plan["buffers"]:
            size = -(-row["bytes"] // unit) * unit
            change[row["birth"]] += size
            change[row["death"]] -= size
        alive = int(numpy.cumsum(change).max(initial=0))
        if self.plan["lower_bound_bytes"] < alive:
            self.fault(f"{alive} bytes are alive at once, the bound is "
                       f"{self.plan['lower_bound_bytes']}")
        if self.plan["arena_bytes"] < self.plan["lower_bound_bytes"]:
            self.fault("the arena is below its own lower bound")


def overlap(a, b):
    return max(a[0], b[0]) < min(a[0] + a[1], b[0] + b[1])


def check_same(name, before, after, faults):
    """A stage after the passes computes what the one before it computes."""
    given = dict(before.results())
    for result, content in after.results():
        if given.get(result) != content:
            faults(f"the stage {name} changes '{result}'")


def check(run, budget):
    faults = Faults()
    plan = json.loads((run / "plan.json").read_text())
    rows = json.loads((run / "stages/stages.json").read_text())["stages"]
    first = len(rows) - 1
    while rows[first]["name"] in AFTER_PASSES:
        first -= 1
    stages = [Stage(run / "stages" / row["file"]) for row in rows[first:]]
    for row, before, after in zip(rows[first + 1:], stages, stages[1:]):
        check_same(row["name"], before, after, faults)
    Replay(plan, stages[-1], faults).run()
    if budget is not None and plan["arena_bytes"] > budget:
        faults(f"the arena of {plan['arena_bytes']} bytes is above the budget")
    return faults.lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--budget", type=int)
    options = parser.parse_args()
    try:
        lines = check(options.run, options.budget)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        print(f"cannot read {options.run}: {error!r}", file=sys.stderr)
        return 2
    for line in lines:
        print(line)
    print(f"{options.run}: {len(lines)} faults")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
