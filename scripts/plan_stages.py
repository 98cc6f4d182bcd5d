"""Graphs of stage files and of bodies, with the content of each of their values.

A content is a number: what made a value, from which contents. What Slice, Split or Concat move in
one piece keeps its own.
"""
import hashlib
import json

import numpy
import onnx.numpy_helper

TRANSFERS = ("Offload", "Fetch")


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

    def size(self, name):
        return self.array(name).nbytes

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


class BodyNode:
    """A node of a body, which no stage file has: what the plan's call says of it."""
    def __init__(self, op_type, inputs, outputs):
        self.op_type, self.input, self.output = op_type, inputs, outputs


class BodyStage:
    """The graph of a body as its plan tells it, and the contents in the trip that `begin` is for."""
    def __init__(self, plan):
        self.plan = plan
        self.values = {row["id"]: row for row in plan["values"]}
        self.names = {i: row["name"] for i, row in self.values.items()}
        self.sizes = {row["name"]: row["bytes"] for row in plan["values"]}
        outputs = [self.names[i] for i in plan["outputs"]]
        # An input that nothing reads, as the number of the trip may be, need hold nothing.
        read = {name for call in plan["calls"] for name in self.named(call["reads"])}
        read.update(self.names[row["view_of"]] for row in plan["values"] if "view_of" in row)
        self.note = {"values": [(row["name"], "given") for row in plan["values"]
                                if row["kind"] != "node" and row["name"] in read.union(outputs)],
                     "updates": [], "gradients": [], "loss": "", "outputs": outputs}
        calls = [row for row in plan["calls"]
                 if row["kind"] not in ("add_partials", "state_copy") and not row.get("tile")]
        made = [BodyNode(row["op"], self.named(row["reads"]), self.named(row["writes"]))
                for row in calls]
        made += [BodyNode("", [self.names[row["view_of"]]], [row["name"]])
                 for row in plan["values"] if "view_of" in row]
        self.nodes = {next(filter(None, node.output)): node for node in made}
        self.begin({})

    def named(self, operands):
        return [self.names[row["value"]] if row else "" for row in operands]

    def begin(self, given):
        """A trip in which these inputs have these contents, and the others what they had."""
        self.content = {name: digest("given", name) for name, _ in self.note["values"]} | given
        left = list(self.nodes.values())
        while left:  # views are behind the calls
            ready = [n for n in left if all(x in self.content for x in n.input if x)]
            for node in ready:
                self.add_contents(node)
            left = [n for n in left if n not in ready] if ready else []
        for name in self.sizes:  # of a call that is missing: nobody puts it there
            self.content.setdefault(name, digest("missing", name))

    def add_contents(self, node):
        if node.op_type in (*TRANSFERS, ""):
            self.content[node.output[0]] = self.content[node.input[0]]
            return
        made = digest(node.op_type, node.output[0], [self.content.get(n, 0) for n in node.input])
        self.content.update((n, digest(made, i)) for i, n in enumerate(node.output) if n)

    def size(self, name):
        return self.sizes[name]

    def pieces(self, node):
        """As Stage's, of those that lie in the large value's bytes: the plan says where."""
        joins = node.op_type == "Concat"
        large, small = (node.output[0], node.input) if joins else (node.input[0], node.output)
        rows = {row["name"]: row for row in self.plan["values"]}
        whole = rows[large]
        return [(large, name, rows[name]["offset"] - whole["offset"], rows[name]["bytes"])
                for name in small if name and rows[name]["buffer"] == whole["buffer"]
                and 0 <= rows[name]["offset"] - whole["offset"] <= whole["bytes"]]


def digest(*parts):
    """A content: 62 bits, above zero."""
    whole = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return (int.from_bytes(whole, "little") >> 2) + 1
