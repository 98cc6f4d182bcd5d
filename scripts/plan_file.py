"""The plan of a run as its file has it, a dict with the keys of plan.json (docs/plan-format.md).

read_plan(RUN) reads plan.bin, of which large plans have nothing else, and where there is none or
one of an older version plan.json. It is written from the layout in docs/plan-format.md, and shares
no code with the engine.
"""
import json
import struct

VERSION = 4
OLDEST = 2         # with rows of the same sizes but for nodes: what it does not know is 0
NONE = 0xFFFFFFFF  # in place of a row
MAGIC = b"TSPLAN\r\n"
MOST_DEEP = 16     # bodies within each other

# Section -> (name, fields of a row): as in struct, x a byte that is not used.
SECTIONS = {
    1: ("sizes", "qqIIIII4x"), 2: ("recompute", "qqqqqddd"), 3: ("text_ends", "I"),
    4: ("text_bytes", "B"), 5: ("dims", "q"), 6: ("values", "IIIIIIIIB3xIqq"),
    7: ("buffers", "BBBBIIIIIIIqq"), 8: ("members", "I"), 9: ("nodes", "IIIIIBB2xIII"),
    10: ("calls", "BBHIII" + "II" * 4 + "IIII" + "q" * 8 + "II"), 11: ("operands", "IIqB3xIII"),
    12: ("waits", "I"), 13: ("names", "I"), 14: ("other_kernels", "II"), 15: ("sections", "III"),
    16: ("spaces", "qqqIIBB6x"), 17: ("inputs", "I"), 18: ("outputs", "I"),
    19: ("bodies", "QQIII4x"), 20: ("carried", "II"), 21: ("body_bytes", "B")}
OLDER_NODES = "IIIIIBB2xII"  # before version 4
PHASES = ("forward", "backward", "update")
SPACES = ("device", "host")
VALUES = ("input", "parameter", "state", "constant", "node", "freed")
CLASSES = ("parameter", "state", "constant", "input", "gradient", "activation", "update",
           "workspace", "held")
KINDS = dict(zip(CLASSES, 3 * ["persistent"] + ["input"] + 3 * ["value"] + ["workspace", "held"]))
CALLS = ("kernel", "transfer", "add_partials", "state_copy", "program")
OP_CLASSES = ("unstated", "matmul", "attention", "norm", "activation", "pointwise", "reduction",
              "movement", "loss", "optimizer", "other")
SLICES = ("whole", "examples", "partial", "elements")


class PlanFile:
    """The rows of a plan.bin."""

    def __init__(self, data, depth=0):
        magic, version, count, size, _ = struct.unpack_from("<8sIIQQ", data)
        if magic != MAGIC or not OLDEST <= version <= VERSION or size != len(data) or depth > MOST_DEEP:
            raise ValueError(f"no plan.bin of versions {OLDEST} to {VERSION}")
        for number, width, begin, rows, _ in struct.iter_unpack("<IIQQQ", data[32:32 + 32 * count]):
            if number in SECTIONS:
                name, fields = SECTIONS[number]
                if name == "nodes" and version < 4:
                    fields = OLDER_NODES
                self.add_section(name, fields, width, data[begin:begin + width * rows], rows)
        ends = [0] + self.text_ends
        self.texts = [self.text_bytes[a:b].decode() for a, b in zip(ends, ends[1:])]
        self.depth = depth

    def add_section(self, name, fields, width, data, rows):
        """A list of the rows: numbers of one field, tuples of several; bytes as they are."""
        if struct.calcsize("<" + fields) != width or len(data) != width * rows:
            raise ValueError(f"plan.bin: section '{name}' has other rows, or ends early")
        rows = data if fields == "B" else list(struct.iter_unpack("<" + fields, data))
        setattr(self, name, [row for row, in rows] if len(fields) == 1 and fields != "B" else rows)

    def plan(self):
        persistent, workspace, times, update_begin, threads, update_call, device = self.sizes[0]
        arena, host = map(self.space, self.spaces)
        plan = {"arena_bytes": arena["bytes"], "host_arena_bytes": host["bytes"],
                "lower_bound_bytes": arena["lower_bound_bytes"],
                "gap_bytes": arena["bytes"] - arena["lower_bound_bytes"],
                **{key: arena[key] for key in ("proven", "method", "alignment_bytes")},
                "persistent_bytes": persistent, "workspace_bytes": workspace,
                "call_count": len(self.calls), "instruction_count": times,
                "update_begin": update_begin, "update_call": update_call, "threads": threads,
                "device": self.texts[device], "inputs": self.inputs, "outputs": self.outputs,
                "spaces": [arena, host], "bodies": [*map(self.body, range(len(self.bodies)))],
                "sections": [dict(zip(("begin", "end", "tiles"), row)) for row in self.sections],
                "calls": [*map(self.call, range(len(self.calls)))],
                "values": [self.value(i) for i, row in enumerate(self.values)
                           if VALUES[row[8]] != "freed"]}
        for key, space in (("buffers", "device"), ("host_buffers", "host")):
            plan[key] = [self.buffer(i) for i, row in enumerate(self.buffers)
                         if SPACES[row[1]] == space]
        plan["buffer_count"] = len(plan["buffers"])
        if self.recompute:
            plan["recompute"] = recompute(*self.recompute[0])
        return plan

    def space(self, row):
        size, bound, alignment, name, method, kind, proven = row
        return {"kind": SPACES[kind], "name": self.texts[name], "bytes": size,
                "lower_bound_bytes": bound, "proven": proven != 0, "method": self.texts[method],
                "alignment_bytes": alignment}

    def body(self, index):
        begin, size, first, count, trips = self.bodies[index]
        inner = PlanFile(self.body_bytes[begin:begin + size], self.depth + 1)
        return {"id": index, "trips_input": row_or_none(trips), "plan": inner.plan(),
                "carried": [{"from": a, "to": b} for a, b in self.carried[first:first + count]]}

    def value(self, index):
        (name, dtype, first, rank, buffer, producer, gradient_of, serial, kind, view_of, offset,
         size) = self.values[index]
        row = {"id": index, "serial": serial, "name": self.texts[name], "kind": VALUES[kind],
               "dtype": self.texts[dtype], "shape": self.dims[first:first + rank], "bytes": size,
               "buffer": row_or_none(buffer), "offset": offset, "producer": row_or_none(producer)}
        others = {"view_of": view_of, "gradient_of": gradient_of}
        return row | {key: value for key, value in others.items() if value != NONE}

    def buffer(self, index):
        (holds, _, owner_kind, external, owner, name, producer, first, count, birth, death, offset,
         size) = self.buffers[index]
        row = {"id": index, "name": self.texts[name], "kind": KINDS[CLASSES[holds]],
               "class": CLASSES[holds], "offset": offset, "bytes": size, "birth": birth,
               "death": death, "producer": self.texts[producer], "values": [], "slices": [],
               "owner": {("value", "call")[owner_kind - 1]: owner} if owner_kind else None}
        for value in self.members[first:first + count]:
            label, (begin, length) = self.texts[self.values[value][0]], self.values[value][-2:]
            row["values"].append(label)
            if not external and (begin, length) != (0, size):
                row["slices"].append({"value": label, "offset": offset + begin, "bytes": length})
        return row | ({"external": True} if external else {})

    def call(self, index):
        (kind, phase, stream, node, kernel, dtype, reads, read_count, writes, write_count, waits,
         wait_count, others, other_count, workspace, tile, section, time,
         *sizes, tile_offset, tile_bytes, body, behind) = self.calls[index]
        reads = self.operands[reads:reads + read_count]
        writes = self.operands[writes:writes + write_count]
        there = self.buffers[workspace][-2:] if workspace != NONE else (0, 0)
        numbers = ["flops", "bytes_read", "bytes_written"]
        row = {"id": index, "kind": CALLS[kind], "phase": PHASES[phase], "time": time,
               "kernel": self.texts[kernel], "dtype": self.texts[dtype], **self.node_of(node),
               "refused": self.kernels(others, other_count - behind),
               "behind": self.kernels(others + other_count - behind, behind),
               "inputs": self.names_of(reads), "outputs": self.names_of(writes),
               "reads": [*map(self.operand, reads)], "writes": [*map(self.operand, writes)],
               **dict(zip(numbers, sizes)),
               **{"kernel_" + key: known(size) for key, size in zip(numbers, sizes[3:])},
               "workspace": row_or_none(workspace), "workspace_offset": there[0],
               "workspace_bytes": there[1], "stream": stream,
               "waits": self.waits[waits:waits + wait_count]}
        if CALLS[kind] == "state_copy":
            row.update(op="", op_class="unstated")
        row.update((key, position) for key, position in (("body", body), ("section", section))
                   if position != NONE)
        if tile != NONE:
            row.update(tile=tile, tile_workspace_offset=tile_offset,
                       tile_workspace_bytes=known(tile_bytes))
        return row

    def kernels(self, first, count):
        return [{"kernel": self.texts[kernel], "reason": self.texts[reason]}
                for kernel, reason in self.other_kernels[first:first + count]]

    def node_of(self, node):
        if node == NONE:
            return {"node": None, "node_id": None, "serial": 0, "op": "", "op_class": "unstated",
                    "sources": []}
        name, op, _, first, count, _, op_class, serial, _, *original = self.nodes[node]
        row = {"node": self.texts[name], "node_id": node, "serial": serial, "op": self.texts[op],
               "op_class": OP_CLASSES[op_class],
               "sources": [self.texts[text] for text in self.names[first:first + count]]}
        return row | {"rematerialized_of": of for of in original if of != NONE}

    def names_of(self, operands):
        return [self.texts[self.values[value][0]] for value, *_ in operands if value != NONE]

    def operand(self, row):
        value, buffer, offset, kind, dtype, first, rank = row
        if value == NONE:
            return None
        operand = {"value": value, "buffer": row_or_none(buffer), "offset": offset,
                   "slice": SLICES[kind]}
        typed = {"dtype": self.texts[dtype], "shape": self.dims[first:first + rank]}
        return operand | (typed if dtype else {})


def row_or_none(row):
    return None if row == NONE else row


def known(number):
    return None if number < 0 else number


def recompute(repeats, plain, offloaded, budget, bound, plain_seconds, seconds, bound_seconds):
    def overhead(of):
        return max(0.0, of / plain_seconds - 1.0)

    row = {}
    if repeats >= 0:
        row = {"repeats": repeats, "plain_bytes": plain, "plain_seconds": plain_seconds,
               "seconds": seconds, "overhead": overhead(seconds), "offloaded_bytes": offloaded}
    if budget >= 0:
        row["budget_bytes"] = budget
    if bound_seconds > 0:  # not of NaN
        row.update(bound_overhead=overhead(bound_seconds), bound_bytes=bound)
    return row


def with_current_keys(plan):
    """Older files call the slices of a buffer its parts."""
    for row in plan["buffers"]:
        if "parts" in row:
            row["slices"] = row.pop("parts")
    for body in plan.get("bodies", []):
        with_current_keys(body["plan"])
    return plan


def read_plan(run):
    path = run / "plan.bin"
    data = path.read_bytes() if path.exists() else b""
    older = len(data) >= 12 and data.startswith(MAGIC) and struct.unpack_from("<I", data, 8)[0] < OLDEST
    if not path.exists() or older:
        return with_current_keys(json.loads((run / "plan.json").read_text()))
    try:
        return PlanFile(data).plan()
    except (struct.error, KeyError) as error:
        raise ValueError(f"{path}: {error}") from error
