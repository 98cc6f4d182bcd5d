"""The memory of a plan that is replayed, and what a plan says of its calls and their operands."""
import math
from typing import NamedTuple

import numpy

NOTHING, GARBAGE, HELD = 0, -1, -2  # what a unit holds besides contents
COMPUTING = ("kernel", "transfer", "program")  # kinds of calls that are a node's


class Memory:
    """What each unit of the arena holds, and behind it of the arena in host memory."""
    def __init__(self, plan, unit, fault):
        self.unit, self.fault = unit, fault
        alignment = plan["alignment_bytes"]
        sizes = [-(-plan[key] // alignment) * alignment
                 for key in ("arena_bytes", "host_arena_bytes")]
        self.host_begin = sizes[0]
        self.units = numpy.full(sum(sizes) // unit, NOTHING, numpy.int64)

    def range(self, place):
        offset, size = place
        return slice(offset // self.unit, -(-(offset + size) // self.unit))

    def __getitem__(self, place):
        offset, size = place
        span = self.range(place)
        if 0 <= offset and offset % self.unit == 0 and span.stop <= len(self.units):
            return self.units[span]
        self.fault(f"bytes {offset} to {offset + size} are outside the arena or not aligned")
        return numpy.full(span.stop - span.start, NOTHING)


class Access(NamedTuple):
    """What of a value a call reads or writes: its bytes, and what they hold or get to hold."""
    name: str
    place: tuple  # (offset, bytes)
    units: numpy.ndarray


def tells_operands(plan):
    """Earlier programs said of operands only which values they are."""
    return any("reads" in row for row in plan.get("calls", []))


def calls_in_order(plan):
    """All calls; where the plan does not say what each tile touches, those that compute a node."""
    if "calls" not in plan:  # run format 1
        return plan["instructions"]
    if tells_operands(plan):
        return plan["calls"]
    return [row for row in plan["calls"] if row["kind"] in COMPUTING and row.get("tile", 0) == 0]


def copies_of(plan):
    """(from, to) of each copy of a state that calls_in_order leaves out."""
    if "calls" not in plan:  # run format 1
        return {(row["from"], row["to"]) for row in plan["copies"]}
    if tells_operands(plan):
        return set()
    return {(*row["inputs"], *row["outputs"])
            for row in plan["calls"] if row["kind"] == "state_copy"}


def tiled_times(plan):
    """(begin, end) on the time axis of each tiled section."""
    if "calls" not in plan:  # run format 1
        return [(row["begin"], row["end"]) for row in plan.get("chains", [])]
    sections = [plan["calls"][row["begin"]:row["end"]] for row in plan["sections"]]
    return [(calls[0]["time"], calls[-1]["time"] + 1) for calls in sections
            if calls and calls[0]["kind"] != "add_partials"]


def slice_bytes(plan_value, operand):
    """Of the operand: its share of the value's."""
    share = math.prod(operand["shape"]), math.prod(plan_value["shape"]) or 1
    return plan_value["bytes"] * share[0] // share[1]


def unit_of(plan, values):
    """The largest unit that every slice of a value begins and ends at."""
    unit = plan["alignment_bytes"]
    for row in plan["calls"] if tells_operands(plan) else ():
        for operand in (o for key in ("reads", "writes") for o in row[key] if o):
            if operand["slice"] != "whole":
                size = slice_bytes(values[operand["value"]], operand)
                unit = math.gcd(unit, operand["offset"], size)
        unit = math.gcd(unit, row.get("tile_workspace_offset", 0))
    return unit


class TileBytes:
    """What the tiles of a section touch: bytes that one of them writes, no other one may touch."""
    def __init__(self, memory):
        self.memory = memory
        self.written, self.read = (numpy.full(len(memory.units), -1, numpy.int16) for _ in "wr")

    def clash(self, tile, place, writes):
        span = self.memory.range(place)
        written, read = self.written[span], self.read[span]
        others = (written != -1) & (written != tile)
        if writes:
            others |= (read != -1) & (read != tile)
            written[:] = tile
        else:
            read[:] = numpy.where((read == -1) | (read == tile), tile, -2)
        return bool(others.any())
