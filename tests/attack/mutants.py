"""Twelve kinds of structural mutants of ONNX models: files that parse and are wrong inside.

A mutant is a function of (kind, model, seed). Each kind changes a parsed ModelProto in place; what
several kinds need is in graph_edits.py, kinds that make graphs grow are in grown_graphs.py.
"""
import dataclasses

import onnx
from onnx import TensorProto, helper

import hostile
from graph_edits import (add_shape_node, all_names, all_values, all_tensors, initializer_names,
                         integer_tensors, rename, set_dims, set_shape_values, some)
from grown_graphs import grown_graphs
from tensor_damage import cast_tensor, damage_tensor

OPSETS = [-1, 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 21, 25, 1000, 2**31,
          2**63 - 1, -2**63]
DOMAINS = ["ai.onnx", "ai.onnx.ml", "ai.onnx.training", "com.microsoft", "", "x" * 1000, "\n"]
DTYPES = list(range(0, 24)) + [-1, 2**31 - 1]
REAL_DTYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16]
SCHEMAS = {}
for _schema in onnx.defs.get_all_schemas():
    if _schema.domain == "":
        SCHEMAS[_schema.name] = _schema
OPS = sorted(SCHEMAS)


@dataclasses.dataclass
class Mutant:
    model: onnx.ModelProto
    dice: object
    flags: list = dataclasses.field(default_factory=list)  # that go with what was changed
    files: dict = dataclasses.field(default_factory=dict)  # beside the model: name to content

    @property
    def graph(self):
        return self.model.graph

    def serialized(self):
        return hostile.without_utf8(self.model.SerializeToString())


# Sizes.


def extreme_dims(mutant):
    """Extents of 0, negative, around 2^31, 2^32 and 2^63, and ranks of 0 and 20."""
    dice, graph = mutant.dice, mutant.graph
    way = dice.choice(["batch", "batch", "batch", "input", "initializer", "rank", "output"])
    size = hostile.extent(dice)
    if way == "batch":  # the same for all inputs, so that it comes through shape inference
        axis = dice.choice([0, 0, 0, -1, -2])
        for value in list(graph.input) + list(graph.output):
            dims = value.type.tensor_type.shape.dim
            if len(dims) >= max(1, -axis):
                dims[axis].dim_value = size
        del graph.value_info[:]
        if dice.random() < 0.4:
            mutant.flags += ["--batch", str(dice.choice([abs(size) + 1, 1, 2, 2**31, 2**32]))]
    elif way == "initializer" and graph.initializer:
        tensor = dice.choice(graph.initializer)
        dims = list(tensor.dims) or [1]
        dims[dice.randrange(len(dims))] = size
        set_dims(tensor, dims)
    for value in some(list(graph.input) + list(graph.output) if way == "rank" else [], dice):
        dims = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        for _ in range(dice.choice([1, 2, 20])):
            dims = dims[1:] if dice.random() < 0.5 else [dice.choice([1, 1, 2, size])] + dims
        value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
    for value in some({"input": graph.input, "output": graph.output}.get(way, []), dice):
        for dim in some(value.type.tensor_type.shape.dim, dice):
            dim.dim_value = size


def symbolic_dims(mutant):
    """Dimensions with names that agree, disagree, are hostile or absent; sizes given by flags."""
    dice, graph = mutant.dice, mutant.graph
    words = dice.choice([["batch"], ["batch", "seq"], ["N", "M", "N"], [hostile.name(dice), "b"]])
    dims = [d for value in graph.input for d in value.type.tensor_type.shape.dim]
    for dim in dims:
        if dice.random() < 0.7:
            dim.dim_param = dice.choice(words)
        elif dice.random() < 0.3:
            dim.Clear()
    if dice.random() < 0.5:  # the batch alone, everywhere: what exporters write
        for value in list(graph.input) + list(graph.output):
            shape = value.type.tensor_type.shape
            if shape.dim:
                shape.dim[0].dim_param = words[0]
    for value in list(graph.input) + list(graph.output):
        if dice.random() < 0.1:
            value.type.tensor_type.ClearField("shape")
        if dice.random() < 0.04:
            value.ClearField("type")
    del graph.value_info[:]
    size = dice.choice([1, 2, 3, 16, 0, -1, 2**31, 2**32, 2**62])
    name = dice.choice(words + [value.name for value in graph.input])
    shape = ",".join(str(dice.choice([1, 2, 3, 24, 33, size])) for _ in range(dice.randint(1, 4)))
    mutant.flags += dice.choice([[], ["--batch", str(dice.choice([1, 2, size]))],
                                 ["--batch", "2"], ["--seq", str(size)],
                                 ["--batch", "2", "--seq", "8"],
                                 ["--shape", f"{name}={shape}"]])


# Structure.


def rewired_inputs(mutant):
    """Inputs of nodes come from other values: of other shapes, of later nodes, of nowhere."""
    dice, graph = mutant.dice, mutant.graph
    for node in some(graph.node, dice):
        if not node.input:
            continue
        slot = dice.randrange(len(node.input))
        way = dice.choice(["any", "any", "any", "own", "unknown", "swap", "same"])
        if way == "any":
            node.input[slot] = dice.choice(all_values(graph))
        elif way == "own" and node.output:
            node.input[slot] = dice.choice(node.output)
        elif way == "unknown":
            node.input[slot] = hostile.name(dice) or "nowhere"
        elif way == "swap":
            other = dice.randrange(len(node.input))
            node.input[slot], node.input[other] = node.input[other], node.input[slot]
        else:
            for i in range(len(node.input)):
                node.input[i] = node.input[slot]
    if dice.random() < 0.1 and graph.output:
        value = dice.choice(all_values(graph))
        dice.choice(graph.output).name = value
        mutant.flags += ["--loss", f"output:{value}"]


def dropped_parts(mutant):
    """Nodes, initializers, inputs and outputs are missing, or are there twice, or out of order."""
    dice, graph = mutant.dice, mutant.graph
    for _ in range(dice.choice([1, 1, 2, 4])):
        way = dice.choice(["node", "bridge", "bridge", "initializer", "input", "output", "twice",
                           "order", "outputs of a node", "attribute", "optional", "extra", "all"])
        field = {"node": graph.node, "initializer": graph.initializer, "input": graph.input,
                 "output": graph.output}.get(way)
        nodes = list(graph.node)
        node = dice.choice(nodes) if nodes else onnx.NodeProto()
        if field:
            del field[dice.randrange(len(field))]
        elif way == "bridge" and node.input and node.output:
            rename(graph, node.output[0], node.input[0])
            graph.node.remove(node)
        elif way == "twice" and nodes:
            graph.node.insert(dice.randrange(len(nodes)), node)
        elif way == "order":
            dice.shuffle(nodes)
            del graph.node[:]
            graph.node.extend(nodes)
        elif way == "outputs of a node":
            del node.output[dice.randrange(len(node.output) + 1):]
        elif way == "attribute" and node.attribute:
            del node.attribute[dice.randrange(len(node.attribute))]
        elif way == "optional" and node.input:
            slot = dice.randrange(len(node.input))
            if dice.random() < 0.5:
                node.input[slot] = ""
            else:
                del node.input[slot:]
        elif way == "extra":
            slots = dice.choice([node.input, node.output])
            slots.extend(dice.choice([[""], ["", "", all_values(graph)[0]], ["made_up"],
                                      [dice.choice(all_values(graph))] * dice.choice([1, 40])]))
        elif way == "all" and dice.random() < 0.2:
            del dice.choice([graph.node, graph.initializer, graph.input, graph.output])[:]


def swapped_ops(mutant):
    """Nodes with another op, domain, opset or version of the format."""
    dice, graph = mutant.dice, mutant.graph
    if dice.random() < 0.75:
        for node in some(graph.node, dice):
            count = len(node.input)
            fitting = [op for op in OPS if SCHEMAS[op].min_input <= count <= SCHEMAS[op].max_input]
            node.op_type = dice.choice(dice.choice([fitting or OPS, fitting or OPS, OPS]))
            if dice.random() < 0.3:
                del node.attribute[:]
            if dice.random() < 0.05:
                node.op_type = hostile.name(dice)
            if dice.random() < 0.08:
                node.domain = dice.choice(DOMAINS)
        return
    imports = mutant.model.opset_import
    way = dice.choice(["version", "version", "version", "more", "none", "ir"])
    if way == "version":
        imports[0].version = dice.choice(OPSETS)
    elif way == "more":
        for _ in range(dice.choice([1, 2, 1000])):
            imports.append(helper.make_opsetid(dice.choice(DOMAINS), dice.choice(OPSETS)))
    elif way == "none":
        del imports[:]
    else:
        mutant.model.ir_version = dice.choice([0, -1, 1, 2, 3, 4, 9, 10, 100, 2**31, 2**63 - 1])


def hostile_attribute(name, old, dice):
    """An attribute with a value of its own type, or of another one, or of two."""
    made = onnx.AttributeProto(name=name)
    types = onnx.AttributeProto.AttributeType
    made.type = old.type if old is not None and dice.random() < 0.7 else \
        dice.choice([types.INT, types.FLOAT, types.STRING, types.INTS, types.FLOATS, types.TENSOR,
                     types.STRINGS, types.GRAPH, types.UNDEFINED, types.SPARSE_TENSOR])
    ints = list(old.ints) if old is not None else []
    if ints and dice.random() < 0.7:
        ints[dice.randrange(len(ints))] = hostile.integer(dice)
    else:
        count = dice.choice([0, 1, len(ints), len(ints) + 1, 2 * len(ints), 30, 20000])
        ints = [hostile.integer(dice) for _ in range(count)]
    made.i, made.f = hostile.integer(dice), hostile.real(dice)
    made.s = dice.choice([b"SAME_UPPER", b"VALID", b"\xff\xfe", b"", b"x" * 100000, b"\x1b[2J"])
    if made.type == types.INTS or dice.random() < 0.1:
        made.ints.extend(ints)
    if made.type == types.FLOATS:
        made.floats.extend(hostile.real(dice) for _ in range(dice.choice([0, 1, 4, 1000])))
    if made.type == types.TENSOR:
        dims = [dice.choice([0, 1, 2, 3, -1, 2**40]) for _ in range(dice.randint(0, 3))]
        made.t.CopyFrom(TensorProto(data_type=dice.choice(DTYPES), dims=dims,
                                    raw_data=dice.randbytes(dice.choice([0, 4, 8, 100]))))
        if old is not None and old.HasField("t"):
            made.t.CopyFrom(old.t)
            damage_tensor(made.t, dice)
    if dice.random() < 0.05:
        made.ref_attr_name = hostile.name(dice)
    return made


def attribute_values(mutant):
    """Attributes with extreme values, of a wrong type, twice, or of no op."""
    dice, graph = mutant.dice, mutant.graph
    nodes = [node for node in graph.node if node.attribute and node.op_type != "Constant"]
    for node in some(nodes if nodes and dice.random() < 0.85 else graph.node, dice):
        if node.attribute and dice.random() < 0.7:
            old = dice.choice(node.attribute)
            old.CopyFrom(hostile_attribute(old.name, old, dice))
            continue
        known = sorted(SCHEMAS[node.op_type].attributes) if node.op_type in SCHEMAS else []
        name = dice.choice(known) if known and dice.random() < 0.85 else hostile.name(dice)
        old = next((a for a in node.attribute if a.name == name), None)
        made = hostile_attribute(name, old, dice)
        if known and name in SCHEMAS[node.op_type].attributes and dice.random() < 0.7:
            made.type = int(SCHEMAS[node.op_type].attributes[name].type)
        if old is not None and dice.random() < 0.7:
            node.attribute.remove(old)  # else it is there twice
        node.attribute.append(made)


# Types and numbers.


def wrong_dtypes(mutant):
    """Types that do not fit each other, or the data, or that nobody has."""
    dice, graph = mutant.dice, mutant.graph
    way = dice.choice(["all", "all", "input", "input", "tensor", "tensor", "cast", "output"])
    if way == "all":  # consistent: what comes through the import
        dtype = dice.choice(REAL_DTYPES[1:])
        for tensor in all_tensors(graph):
            if tensor.data_type == TensorProto.FLOAT and dice.random() < 0.97:
                cast_tensor(tensor, dtype)
        for value in list(graph.input) + list(graph.output) + list(graph.value_info):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = dtype
    elif way in ("input", "output"):
        for value in some(graph.input if way == "input" else graph.output, dice):
            value.type.tensor_type.elem_type = dice.choice(DTYPES)
    elif way == "tensor":
        for tensor in some(list(all_tensors(graph)), dice):
            dtype = dice.choice(DTYPES)
            if dtype in REAL_DTYPES and dice.random() < 0.7:
                cast_tensor(tensor, dtype)
            else:
                tensor.data_type = dtype
    else:
        for node in [node for node in some(graph.node, dice) if node.input]:
            made = f"cast_{dice.randrange(1000)}"
            slot = dice.randrange(len(node.input))
            cast = helper.make_node("Cast", [node.input[slot]], [made], to=dice.choice(DTYPES))
            node.input[slot] = made
            graph.node.insert(list(graph.node).index(node), cast)


def initializer_data(mutant):
    """Initializers whose data do not fit, lie in other files, hold NaN, or are there twice."""
    dice, graph = mutant.dice, mutant.graph
    tensors = list(all_tensors(graph)) if dice.random() < 0.3 else list(graph.initializer)
    for tensor in some(tensors, dice):
        damage_tensor(tensor, dice, mutant.files)
    if dice.random() < 0.1 and graph.initializer:
        graph.initializer.append(dice.choice(graph.initializer))
    if dice.random() < 0.05 and graph.initializer:
        values = dice.choice(graph.initializer)
        sparse = graph.sparse_initializer.add()
        sparse.values.CopyFrom(values)
        sparse.dims.extend([hostile.extent(dice)])


def shape_constants(mutant):
    """Extreme parameters of Reshape, Slice, Pad, Gather and others, there or put in."""
    dice, graph = mutant.dice, mutant.graph
    tensors = integer_tensors(graph)
    if tensors and dice.random() < 0.5:
        for tensor in some(tensors, dice):
            set_shape_values(tensor, dice)
    else:
        for _ in range(dice.choice([1, 1, 2])):
            add_shape_node(graph, dice)


def names(mutant):
    """Names that are long, empty, of control characters or paths, or that collide."""
    dice, graph = mutant.dice, mutant.graph
    way = dice.choice(["values", "values", "nodes", "collide", "collide", "inputs", "outputs",
                       "texts", "long"])
    if way == "values":
        for old in some(all_names(graph), dice):
            rename(graph, old, hostile.name(dice))
    elif way == "nodes":
        for node in graph.node:
            node.name = hostile.name(dice) if dice.random() < 0.5 else "same"
    elif way == "collide":  # not consistent: a value has two makers
        for node in [node for node in some(graph.node, dice) if node.output]:
            node.output[0] = dice.choice(all_values(graph))
    elif way in ("inputs", "outputs"):
        for value in some(graph.input if way == "inputs" else graph.output, dice):
            made = hostile.name(dice)
            rename(graph, value.name, made)
            if made and way == "outputs" and "\0" not in made and dice.random() < 0.7:
                mutant.flags += ["--loss", f"cross_entropy:output={made}"]
    elif way == "texts":
        model = mutant.model
        model.producer_name = model.domain = graph.doc_string = hostile.name(dice)
        graph.name = hostile.name(dice)
        model.metadata_props.add(key=hostile.name(dice), value="x" * dice.choice([0, 10, 1 << 20]))
    else:
        size = dice.choice([4000, 60000])
        for number, old in enumerate(some(initializer_names(graph) + all_names(graph), dice)):
            rename(graph, old, f"{number}" + "n" * size)
        for node in graph.node:
            if dice.random() < 0.2:
                node.name = f"{node.op_type}_" + "n" * size


def combined(mutant):
    """Three of the others at once."""
    single = [kind for name, kind in KINDS.items() if name != "combined"]
    for kind in mutant.dice.sample(single, 3):
        kind(mutant)


KINDS = {kind.__name__: kind for kind in (
    extreme_dims, symbolic_dims, rewired_inputs, dropped_parts, swapped_ops, attribute_values,
    wrong_dtypes, initializer_data, shape_constants, names, grown_graphs, combined)}


def make(kind, base, seed_words):
    """The mutant of the serialized model `base`: drawn again until something has changed. A kind
    may find nothing to change in a model (a stage of a run has no weights): then any other does."""
    dice = hostile.dice_of(*seed_words)
    for draw in range(10_000):
        mutant = Mutant(onnx.ModelProto.FromString(base), dice)
        KINDS[kind if draw < 100 else dice.choice(list(KINDS))](mutant)
        if mutant.flags or mutant.serialized() != base:
            return mutant
    raise ValueError(f"no kind of mutant changes this model: {kind}, {seed_words}")
