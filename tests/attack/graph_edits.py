"""Small edits of ONNX graphs that several kinds of mutants are made of."""
import numpy
from onnx import TensorProto, helper

import hostile


def some(items, dice):
    """One to a few of them, all different; none of an empty list."""
    items = list(items)
    count = min(len(items), dice.choice([1, 1, 1, 2, 3, 8]))
    return dice.sample(items, count)


def all_values(graph):
    """Names that a node could read, in the graph's order, each once."""
    found = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    found += [name for node in graph.node for name in node.output]
    return list(dict.fromkeys(found)) or ["x"]


def all_names(graph):
    """Values that nodes make."""
    return list(dict.fromkeys(name for node in graph.node for name in node.output if name))


def initializer_names(graph):
    return [tensor.name for tensor in graph.initializer]


def all_tensors(graph):
    """Initializers, and the tensors of Constant nodes."""
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t


def integer_tensors(graph):
    return [tensor for tensor in all_tensors(graph)
            if tensor.data_type == TensorProto.INT64 and tensor.raw_data]


def raw_numbers(tensor):
    """A copy of the float32 or int64 numbers that its raw data are enough for."""
    width = "<f4" if tensor.data_type == TensorProto.FLOAT else "<i8"
    size = numpy.dtype(width).itemsize
    whole = len(tensor.raw_data) // size * size
    return numpy.frombuffer(tensor.raw_data[:whole], width).copy()


def set_dims(tensor, dims):
    del tensor.dims[:]
    tensor.dims.extend(dims)


def rename(graph, old, new):
    """Everywhere, so that the graph means the same."""
    for value in list(graph.input) + list(graph.output) + list(graph.value_info):
        if value.name == old:
            value.name = new
    for tensor in graph.initializer:
        if tensor.name == old:
            tensor.name = new
    for node in graph.node:
        for slots in (node.input, node.output):
            for i, name in enumerate(slots):
                if name == old:
                    slots[i] = new


def set_shape_values(tensor, dice):
    """Other numbers, more or fewer of them, or another rank."""
    numbers = raw_numbers(tensor).tolist()
    way = dice.choice(["one", "one", "one", "all", "more", "fewer", "rank"])
    if way == "one" and numbers:
        numbers[dice.randrange(len(numbers))] = hostile.extent(dice)
    elif way == "all":
        numbers = [hostile.extent(dice) for _ in numbers]
    elif way == "more":
        numbers += [hostile.extent(dice)] * dice.choice([1, 30])
    elif way == "fewer":
        numbers = numbers[1:]
    shape = {"more": [len(numbers)], "fewer": [len(numbers)]}.get(way, list(tensor.dims))
    if way == "rank":
        shape = dice.choice([[], [1], [1, len(numbers)], [len(numbers), 1], [2, len(numbers)]])
    tensor.raw_data = numpy.array(numbers, dtype="<i8").tobytes()
    set_dims(tensor, shape)


class ShapeNodes:
    """A node of each op whose parameters are shapes, places or counts, drawn at random."""

    def __init__(self, graph, dice, number):
        self.graph, self.dice, self.number = graph, dice, number

    def size(self):
        return hostile.extent(self.dice) if self.dice.random() < 0.5 else self.dice.choice(
            [0, 1, -1, 2, 3, 4])

    def sizes(self, count=None):
        return [self.size() for _ in range(self.dice.randint(1, 5) if count is None else count)]

    def constant(self, numbers, dtype=TensorProto.INT64):
        name = f"parameter_{self.number}_{len(self.graph.initializer)}"
        self.graph.initializer.append(helper.make_tensor(name, dtype, [len(numbers)], numbers))
        return name

    def reshape(self, value, made):
        return helper.make_node("Reshape", [value, self.constant(self.sizes())], [made],
                                allowzero=self.dice.choice([0, 1]))

    def slice(self, value, made):
        count = self.dice.randint(1, 3)
        inputs = [value] + [self.constant(self.sizes(count)) for _ in range(4)]
        return helper.make_node("Slice", inputs[:self.dice.randint(3, 5)], [made])

    def pad(self, value, made):
        pads = self.constant(self.sizes(self.dice.choice([2, 4, 6, 8])))
        mode = self.dice.choice(["constant", "reflect", "edge", "wrap"])
        return helper.make_node("Pad", [value, pads], [made], mode=mode)

    def gather(self, value, made):
        op = self.dice.choice(["Gather", "GatherElements"])
        return helper.make_node(op, [value, self.constant(self.sizes())], [made],
                                axis=self.dice.choice([0, 1, -1, -3, 7, 2**62]))

    def expand(self, value, made):
        return helper.make_node("Expand", [value, self.constant(self.sizes())], [made])

    def tile(self, value, made):
        return helper.make_node("Tile", [value, self.constant(self.sizes())], [made])

    def unsqueeze(self, value, made):
        op = self.dice.choice(["Squeeze", "Unsqueeze", "ReduceSum"])
        return helper.make_node(op, [value, self.constant(self.sizes())], [made])

    def split(self, value, made):
        return helper.make_node("Split", [value, self.constant(self.sizes())],
                                [made, made + "_more"], axis=self.dice.choice([0, 1, -1, 9]))

    def top(self, value, made):
        return helper.make_node("TopK", [value, self.constant([self.size()])], [made, made + "_at"],
                                axis=self.dice.choice([0, -1, 5]))

    def one_hot(self, value, made):
        values = self.constant([0.0, 1.0], TensorProto.FLOAT)
        return helper.make_node("OneHot", [value, self.constant([self.size()]), values], [made])

    def resize(self, value, made):
        sizes = self.constant(self.sizes(4))
        scales = self.constant([hostile.real(self.dice) for _ in range(4)], TensorProto.FLOAT)
        inputs = [value, "", scales] if self.dice.random() < 0.5 else [value, "", "", sizes]
        return helper.make_node("Resize", inputs, [made],
                                mode=self.dice.choice(["nearest", "linear", "cubic"]))

    def filled(self, value, made):
        constant = self.constant(self.sizes())
        self.graph.node.append(helper.make_node("ConstantOfShape", [constant], [made + "_ones"]))
        return helper.make_node("Add", [value, made + "_ones"], [made])

    def counted(self, value, made):
        limits = [self.constant([self.size()]) for _ in range(3)]
        self.graph.node.append(helper.make_node("Range", limits, [made + "_range"]))
        return helper.make_node("Add", [value, made + "_range"], [made])

    def pool(self, value, made):
        op = self.dice.choice(["MaxPool", "AveragePool", "LpPool"])
        count = self.dice.choice([1, 2, 3])
        facts = {"strides": self.sizes(count), "pads": self.sizes(2 * count),
                 "dilations": self.sizes(count), "ceil_mode": 1}
        keep = {key: fact for key, fact in facts.items() if self.dice.random() < 0.5}
        return helper.make_node(op, [value], [made], kernel_shape=self.sizes(count), **keep)


WAYS = ["reshape", "slice", "pad", "gather", "expand", "tile", "unsqueeze", "split", "top",
        "one_hot", "resize", "filled", "counted", "pool"]


def add_shape_node(graph, dice):
    """Puts one in front of a node's input."""
    nodes = [i for i, node in enumerate(graph.node) if node.input]
    if not nodes:
        return
    place = dice.choice(nodes)
    slot = dice.randrange(len(graph.node[place].input))
    number = len(graph.node)
    made = f"put_in_{number}"
    way = dice.choice(WAYS)
    node = getattr(ShapeNodes(graph, dice, number), way)(graph.node[place].input[slot], made)
    graph.node[place].input[slot] = made
    # What the way itself appended stands at the end: it goes in front, too.
    appended = [n for n in list(graph.node)[number:]]
    del graph.node[number:]
    for more in [*appended, node]:
        graph.node.insert(place, more)
        place += 1
    del graph.value_info[:]
