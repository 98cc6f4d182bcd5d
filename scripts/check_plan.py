#!/usr/bin/python3
"""Replays memory plans of runs against their graphs: order, lifetimes, bytes, waits, recomputation.

    scripts/check_plan.py RUN... [--budget BYTES]

Reads RUN's plan (scripts/plan_file.py) and the last stages' ONNX files alone, and shares no code
with the planner. Every value gets a content (scripts/plan_stages.py). Going through the calls,
those of each batch tile and of each trip of a body too, each must find the contents of its inputs
in the bytes that the plan gives them; what two tiles of a section touch at once neither may write.
A stage with another order or with recomputation must compute what the one before it does. Exit code
0: nothing found; 1: faults, one a line; 2: one is no run.
"""
import argparse
import json
import sys
from pathlib import Path

import google.protobuf.message
import numpy

from plan_file import read_plan
from plan_memory import (COMPUTING, GARBAGE, HELD, Access, Memory, TileBytes, calls_in_order,
                         copies_of, slice_bytes, tells_operands, tiled_times, unit_of)
from plan_stages import TRANSFERS, BodyStage, Stage, digest

MOST_FAULTS = 20
AFTER_PASSES = ("order", "recompute", "batch_tiles")  # stages that change when ops run, not what is computed
TRIPS = 3  # of a body: what the first leaves, the second finds


class Replay:
    def __init__(self, plan, stage, fault):
        self.plan, self.stage, self.fault = plan, stage, fault
        self.values = {row["id"]: row for row in plan.get("values", [])}
        self.memory = Memory(plan, unit_of(plan, self.values), fault)
        self.calls, self.copies = calls_in_order(plan), copies_of(plan)
        self.first = [row for row in self.calls if row.get("kind", "kernel") in COMPUTING
                      and not row.get("tile")]  # of a node's
        self.sections = tiled_times(plan)
        self.place = {}      # value -> (offset, bytes)
        self.life = {}       # value -> range of times
        self.buffers = {}    # id -> its offset
        self.workspaces = {}  # place -> ranges of times
        self.held = []       # (death, place) of what is there for others
        self.in_host = set()  # values
        self.inside = {}     # value -> (another one, the unit of it where this one begins)
        self.joined = {}     # value -> its units, where they are those of others
        self.partials = {}   # (value, tile) -> where the tile's sum begins
        self.tiles = {}      # section -> what its tiles have touched
        self.touched = []    # (call, (begin, end, whether it is written) of its bytes)
        self.states = {state for state, _ in stage.note["updates"]}
        for begin, rows in ((0, "buffers"), (self.memory.host_begin, "host_buffers")):
            for row in plan[rows]:
                self.add_buffer(row, begin)

    def add_buffer(self, row, begin):
        where = (begin + row["offset"], row["bytes"])
        self.buffers[row.get("id")] = where[0]
        if row["offset"] % self.plan["alignment_bytes"]:
            self.fault(f"'{row['name']}' is not aligned")
        if begin == 0 and sum(where) > self.memory.host_begin:
            self.fault(f"'{row['name']}' ends outside the arena")
        self.in_host.update(row["values"] if begin else [])
        if row["kind"] == "workspace":
            self.workspaces.setdefault(where, []).append(range(row["birth"], row["death"]))
        if row["kind"] == "held":  # from the begin on
            self.held.append((row["death"], where))
            self.memory[where][:] = HELD
        slices = {each["value"]: (begin + each["offset"], each["bytes"]) for each in row["slices"]}
        for value in row["values"]:
            self.place[value] = offset, size = slices.get(value, where)
            self.life[value] = range(row["birth"], row["death"])
            if not where[0] <= offset <= offset + size <= sum(where):
                self.fault(f"'{value}' does not lie inside '{row['name']}'")
            if size < self.stage.size(value):
                self.fault(f"'{value}' has too few bytes")

    def begin(self):
        """What is there before the first call."""
        self.check_ids()
        self.check_order()
        for name, _ in self.stage.note["values"]:
            if name in self.place:
                self.put(name)

    def run(self):
        self.begin()
        self.run_calls()
        self.check_end()
        self.check_bound()
        self.check_waits()
        self.check_rematerialized()

    def run_calls(self):
        count = 0
        for index, row in enumerate(self.calls):
            count += any(row is first for first in self.first[count:count + 1])
            time = row.get("time", index)
            if time != max(0, count - 1):
                self.fault(f"call {row['id']} ({row['op']}) is at another time than {count - 1}")
            self.execute(time, row)

    def run_trips(self, body):
        """As run(), of what runs several times: of that, outputs become inputs after each trip."""
        self.begin()
        inputs, outputs = ([self.values[i]["name"] for i in self.plan[key]]
                           for key in ("inputs", "outputs"))
        for _ in range(TRIPS):
            self.run_calls()
            self.check_end()
            carried = {inputs[row["to"]]: outputs[row["from"]] for row in body["carried"]}
            units = {to: self.units(name, self.place[name][1]) for to, name in carried.items()}
            self.stage.begin({to: self.stage.content[name] for to, name in carried.items()})
            self.inside, self.joined = {}, {}
            self.check_order()
            for to, there in units.items():
                self.memory[self.place[to]][:] = there
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
        for row in self.first:
            buffer = buffers.get(row["workspace"])
            if buffer and buffer["owner"] != {"call": row["id"]}:
                self.fault(f"call {row['id']} does not own its workspace")
        for section in plan["sections"]:
            tiles = [row.get("tile") for row in plan["calls"][section["begin"]:section["end"]]]
            if tiles != [i % section["tiles"] for i in range(len(tiles))]:
                self.fault(f"the calls from {section['begin']} on are not one for each batch tile")

    def check_rematerialized(self):
        """What is computed once more is what a call before it computed, by the same op."""
        made = {}  # node -> what computes it first
        for row in self.first:
            node = row.get("rematerialized_of")
            if node is not None and made.get(node, {}).get("op") != row["op"]:
                self.fault(f"call {row['id']} computes node {node} once more, which is none such")
            made.setdefault(row.get("node_id"), row)

    def check_order(self):
        """Each node of the graph is a call, or a view: its result is its input's bytes."""
        computed = {(row["outputs"] or [""])[0] for row in self.first}
        if len(computed) != len(self.first):
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
            whole = self.stage.size(large)
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

    def accesses(self, row, key):
        """What the call reads or writes; None where an operand's bytes are no slice of its value."""
        if not tells_operands(self.plan):
            names = row["outputs"]
            if key == "reads":
                names = [name for name in self.stage.nodes[names[0]].input if name]
            return [Access(name, self.place[name], self.units(name, self.place[name][1]))
                    if name in self.place else None for name in names]
        return [self.access(row, i, operand) for i, operand in enumerate(row[key]) if operand]

    def access(self, row, index, operand):
        value = self.values.get(operand["value"])
        if not value or operand["buffer"] not in self.buffers or value["name"] not in self.place:
            return None
        name, size = value["name"], slice_bytes(value, operand)
        begin = self.buffers[operand["buffer"]] + operand["offset"]
        if operand["slice"] == "partial":
            return self.partial(row, index, Access(name, (begin, size), None))
        first = begin - self.place[name][0]
        if operand["slice"] == "whole":
            whole = first == 0 and size == self.stage.size(name)
            size = self.place[name][1]
            return Access(name, (begin, size), self.units(name, size)) if whole else None
        if first < 0 or first + size > value["bytes"]:
            return None
        if operand["slice"] == "examples" and first != row["tile"] * size:
            return None
        return Access(name, (begin, size), self.units(name, first + size)[first // self.memory.unit:])

    def partial(self, row, index, access):
        """A sum over one tile's examples: of a call that adds them up, over those of tile `index`."""
        name, (begin, size), _ = access
        tile = index if row["kind"] == "add_partials" else row["tile"]
        whole = self.partials.setdefault((name, tile), begin)
        content = digest(self.stage.content[name], "partial", tile)
        first, last = (begin - whole) // self.memory.unit, -(-(begin - whole + size) // self.memory.unit)
        return Access(name, (begin, size), content + numpy.arange(first, last))

    def execute(self, time, row):
        kind = row.get("kind", "kernel")
        where = f"call at {time} ({row['op'] or kind}):"
        node = self.stage.nodes.get((row["outputs"] or [""])[0])
        if node is None and kind != "state_copy":
            return self.fault(f"{where} makes nothing of the graph")
        reads, writes = self.accesses(row, "reads"), self.accesses(row, "writes")
        if None in reads + writes:
            return self.fault(f"{where} an operand has no place, or is no slice of its value")
        if [access.name for access in writes] != row["outputs"]:
            return self.fault(f"{where} its outputs are not what it writes")
        if kind in COMPUTING:
            self.check_node(where, row, node, reads)
        for name in {access.name for access in reads + writes}:
            if time not in self.life[name]:
                self.fault(f"{where} '{name}' is alive in {self.life[name]} only")
        for name, place, units in reads:
            if not numpy.array_equal(self.memory[place], units):
                self.fault(f"{where} the bytes of '{name}' hold something else")
        if kind == "state_copy":  # the same elements elsewhere
            writes = [Access(writes[0].name, writes[0].place, reads[0].units)]
        if kind == "program" and "body" in row:
            self.run_body(where, row)
        for _, place, units in writes:
            self.memory[place][:] = units
        self.use_workspace(where, time, row, {access.name for access in reads + writes})
        self.check_left(where, time, reads, writes)
        self.note_bytes(where, row, reads, writes)

    def check_node(self, where, row, node, reads):
        names = [name for name in node.output if name]
        inputs = [name for name in node.input if name]
        if names != row["outputs"]:
            self.fault(f"{where} the plan and the graph differ in what it makes")
        if inputs != [access.name for access in reads]:
            self.fault(f"{where} the plan and the graph differ in what it reads")
        for name in inputs + names:
            if (name in self.in_host) != (row["op"] == TRANSFERS[name in inputs]):
                self.fault(f"{where} '{name}' is in the wrong memory")

    def run_body(self, where, row):
        body = self.plan["bodies"][row["body"]]
        if body["plan"]["arena_bytes"] > row["workspace_bytes"]:
            self.fault(f"{where} its body needs more than its workspace")
        Replay(body["plan"], BodyStage(body["plan"]),
               lambda fault: self.fault(f"{where} in its body: {fault}")).run_trips(body)

    def use_workspace(self, where, time, row, names):
        """The call leaves garbage in its own bytes; what it touches lives as long as its section."""
        place = row["workspace_offset"], row["workspace_bytes"]
        there = [life for life in self.workspaces.get(place, []) if time in life][:1]
        if not there and place[1]:
            self.fault(f"{where} the workspace is not there")
        self.memory[self.own_workspace(row)][:] = GARBAGE
        for begin, end in self.sections:
            lives = [*there, *map(self.life.get, names)] if begin <= time < end else []
            if any(life.start > begin or life.stop < end for life in lives):
                self.fault(f"{where} what it touches does not live as long as its section")

    def own_workspace(self, row):
        begin = row["workspace_offset"] + row.get("tile_workspace_offset", 0)
        return begin, row.get("tile_workspace_bytes", row["workspace_bytes"])

    def check_left(self, where, time, reads, writes):
        """After a call: what others have there, what it read and what it wrote."""
        if any(time < death and (self.memory[place] != HELD).any() for death, place in self.held):
            self.fault(f"{where} what is held for others is written over")
        in_place = {access.place for access in writes}
        left = [access for access in reads if access.place not in in_place] + writes
        for name, place, units in left:
            if not numpy.array_equal(self.memory[place], units):
                self.fault(f"{where} '{name}' is written over")

    def note_bytes(self, where, row, reads, writes):
        places = [(access.place, False) for access in reads]
        places += [(access.place, True) for access in writes] + [(self.own_workspace(row), True)]
        self.touched.append((row, [(a, a + size, w) for (a, size), w in places if size]))
        if "tile" not in row:
            return
        tiles = self.tiles.setdefault(row["section"], TileBytes(self.memory))
        if any([tiles.clash(row["tile"], place, w) for place, w in places]):
            self.fault(f"{where} tile {row['tile']} and another one touch the same bytes")

    def check_waits(self):
        """A call waits for what another stream does with its bytes, or comes behind such a wait."""
        done = {}     # stream -> the last call of another one that it has waited for
        touched = {}  # stream -> (call, ranges) so far
        if len({row.get("stream", 0) for row, _ in self.touched}) < 2:
            return
        for row, mine in self.touched:
            stream = row["stream"]
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
        unit = self.plan["alignment_bytes"]
        change = numpy.zeros(len(self.first) + 2, numpy.int64)
        for row in self.plan["buffers"]:
            size = -(-row["bytes"] // unit) * unit
            change[[row["birth"], row["death"]]] += size, -size
        alive, arena = int(numpy.cumsum(change).max(initial=0)), self.plan["arena_bytes"]
        if not alive <= (bound := self.plan["lower_bound_bytes"]) <= arena:
            self.fault(f"{alive} bytes alive at once, the bound {bound}, the arena {arena}")


def check(run, budget):
    plan = read_plan(run)
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
