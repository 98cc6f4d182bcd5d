"""Mutants that are larger or deeper: chains, fans, copies, subgraphs, functions."""
from onnx import TensorProto, helper

import hostile
from graph_edits import all_names, all_values


def edge(graph, dice):
    """(position of a node, slot of an input); None without any."""
    places = [(i, slot) for i, node in enumerate(graph.node) for slot in range(len(node.input))]
    return dice.choice(places) if places else None


def insert_nodes(graph, position, nodes):
    after = list(graph.node)[position:]
    del graph.node[position:]
    graph.node.extend(nodes)
    graph.node.extend(after)


def add_chain(mutant):
    """A few thousand ops, one after the other, in one edge."""
    dice, graph = mutant.dice, mutant.graph
    place = edge(graph, dice)
    if place is None:
        return
    position, slot = place
    op = dice.choice(["Identity", "Relu", "Neg", "Tanh", "Add", "Mul", "Dropout", "Exp"])
    value, nodes = graph.node[position].input[slot], []
    for i in range(dice.choice([1, 10, 200, 1000])):
        inputs = [value, value] if op in ("Add", "Mul") else [value]
        value = f"chain_{i}"
        nodes.append(helper.make_node(op, inputs, [value]))
    graph.node[position].input[slot] = value
    insert_nodes(graph, position, nodes)


def add_fan(mutant):
    """One value read by many nodes, whose results are added up, or all at once."""
    dice, graph = mutant.dice, mutant.graph
    place = edge(graph, dice)
    if place is None:
        return
    position, slot = place
    value = graph.node[position].input[slot]
    op = dice.choice(["Relu", "Sigmoid", "Identity", "Abs"])
    count = dice.choice([2, 30, 500])
    nodes = [helper.make_node(op, [value], [f"fan_{i}"]) for i in range(count)]
    join = dice.choice(["Sum", "Max", "Mean", "Concat"])
    facts = {"axis": dice.choice([0, -1, 1])} if join == "Concat" else {}
    nodes.append(helper.make_node(join, [f"fan_{i}" for i in range(count)], ["fan"], **facts))
    graph.node[position].input[slot] = "fan"
    insert_nodes(graph, position, nodes)


def add_copies(mutant):
    """The graph some more times beside itself, the parameters shared; the outputs added up."""
    dice, graph = mutant.dice, mutant.graph
    if not graph.output:
        return
    made = set(all_names(graph))
    first, output = list(graph.node), graph.output[0].name
    copies = dice.choice([1, 2, 5])
    for copy in range(copies):
        for node in first:
            twin = graph.node.add()
            twin.CopyFrom(node)
            for slots in (twin.input, twin.output):
                for i, name in enumerate(slots):
                    if name in made:
                        slots[i] = f"{name}.{copy}"
    outputs = [output] + [f"{output}.{copy}" for copy in range(copies)]
    graph.node.add().CopyFrom(helper.make_node("Sum", outputs, ["all_copies"]))
    if dice.random() < 0.7:
        graph.output[0].name = "all_copies"
        mutant.flags += ["--loss", dice.choice(["cross_entropy:output=all_copies",
                                                "mse:output=all_copies"])]


def body_of(dice, depth):
    """A subgraph that itself may have one."""
    value = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Constant", [], ["inner"], value_float=1.0)]
    if depth > 0:
        nodes.append(helper.make_node("If", ["condition"], ["deeper"],
                                      then_branch=body_of(dice, depth - 1),
                                      else_branch=body_of(dice, 0)))
    return helper.make_graph(nodes, hostile.name(dice) or "body", [], [value])


def add_subgraph(mutant):
    """If, Loop or Scan in front of a node, up to a hundred deep."""
    dice, graph = mutant.dice, mutant.graph
    place = edge(graph, dice)
    if place is None:
        return
    position, slot = place
    graph.initializer.append(helper.make_tensor("condition", TensorProto.BOOL, [], [True]))
    graph.initializer.append(helper.make_tensor("trips", TensorProto.INT64, [],
                                                [hostile.integer(dice)]))
    depth = dice.choice([0, 1, 5, 40])
    way = dice.choice(["If", "If", "Loop", "Scan"])
    value = graph.node[position].input[slot]
    if way == "If":
        node = helper.make_node("If", ["condition"], ["branched"], then_branch=body_of(dice, depth),
                                else_branch=body_of(dice, depth))
    elif way == "Loop":
        node = helper.make_node("Loop", ["trips", "condition", value], ["branched"],
                                body=body_of(dice, depth))
    else:
        node = helper.make_node("Scan", [value], ["branched"], body=body_of(dice, depth),
                                num_scan_inputs=hostile.integer(dice))
    graph.node[position].input[slot] = "branched"
    insert_nodes(graph, position, [node])


def add_function(mutant):
    """A local function in place of a node: right, calling itself, or with other inputs."""
    dice, graph = mutant.dice, mutant.graph
    if not graph.node:
        return
    node = dice.choice(graph.node)
    domain = dice.choice(["local", "local", "", "ai.onnx"])
    inputs = [f"in_{i}" for i in range(len(node.input))]
    outputs = [f"out_{i}" for i in range(len(node.output))]
    inner = helper.make_node(node.op_type, inputs, outputs)
    inner.attribute.extend(node.attribute)
    name = dice.choice(["Own", "Own", node.op_type])
    if dice.random() < 0.3:  # calls itself
        inner.op_type, inner.domain = name, domain
    function = helper.make_function(domain, name, inputs[:len(inputs) - dice.choice([0, 0, 1])],
                                    outputs, [inner], [helper.make_opsetid("", 17)])
    mutant.model.functions.extend([function] * dice.choice([1, 1, 2]))
    if dice.random() < 0.8:
        mutant.model.opset_import.append(helper.make_opsetid(domain, 1))
    node.op_type, node.domain = name, domain
    del node.attribute[:]


def add_initializers(mutant):
    """Thousands of parameters, unused, or all added to one value."""
    dice, graph = mutant.dice, mutant.graph
    count = dice.choice([10, 1000])
    for i in range(count):
        graph.initializer.append(helper.make_tensor(f"more_{i}", TensorProto.FLOAT, [1], [0.5]))
    place = edge(graph, dice)
    if place is None or dice.random() < 0.3:
        return
    position, slot = place
    value = graph.node[position].input[slot]
    inputs = [value] + [f"more_{i}" for i in range(count)]
    graph.node[position].input[slot] = "with_more"
    insert_nodes(graph, position, [helper.make_node("Sum", inputs, ["with_more"])])


def add_inputs_and_outputs(mutant):
    dice, graph = mutant.dice, mutant.graph
    count = dice.choice([1, 20, 300])
    values = all_values(graph)
    for i in range(count):
        if dice.random() < 0.5:
            dims = dice.choice([[1], [], ["batch", 3], [hostile.extent(dice)]])
            graph.input.append(helper.make_tensor_value_info(f"unused_{i}", TensorProto.FLOAT,
                                                             dims))
        else:
            graph.output.append(helper.make_tensor_value_info(dice.choice(values),
                                                              TensorProto.FLOAT, None))


def grown_graphs(mutant):
    """Long chains, wide fans, copies, subgraphs, functions, thousands of parameters."""
    way = mutant.dice.choice([add_chain, add_chain, add_fan, add_copies, add_copies, add_subgraph,
                              add_function, add_function, add_initializers, add_inputs_and_outputs])
    way(mutant)
    del mutant.graph.value_info[:]
