"""Which value of an ONNX file a PyTorch module's output is.

Exporters write a node's module into its name (/a/a.b/Relu: torch.onnx.export(dynamo=False)) or into
its metadata (dynamo=True). The output of module a.b is the last value below a.b.
"""
import ast

# Of torch.onnx.export(dynamo=True): the modules around a call, and the call, as a list in Python.
_SCOPES = "pkg.torch.onnx.name_scopes"


def module_values(graph):
    """{module path: [value of its first call, of its second ...]}, "" for the whole model.

    graph: onnx_graph.Graph. A module that is called again is PATH_1, PATH_2 ... in the names of
    nodes; in metadata it has its one path, and another call begins after a node that is not the
    module's.
    """
    calls, within = {}, set()
    for node, proto in zip(graph.nodes, graph.proto.graph.node):
        if node.op == "Constant" or not node.outputs:
            continue
        paths = _paths_around(node, proto)
        for path in paths:
            values = calls.setdefault(path, [])
            if path in within or values and not _has_scopes(proto):
                values[-1] = node.outputs[0]
            else:
                values.append(node.outputs[0])
        within = set(paths)
    for path in list(calls):
        while f"{path}_{len(calls[path])}" in calls:
            calls[path].append(calls[f"{path}_{len(calls[path])}"][0])
    if graph.outputs:
        calls[""] = [graph.outputs[0]]
    return calls


def _has_scopes(proto):
    return any(entry.key == _SCOPES for entry in getattr(proto, "metadata_props", ()))


def _paths_around(node, proto):
    """Paths of the modules around a node, outermost first."""
    for entry in getattr(proto, "metadata_props", ()):
        if entry.key == _SCOPES:
            try:
                return [path for path in ast.literal_eval(entry.value)[:-1] if path]
            except (ValueError, SyntaxError):
                return []
    if not node.name.startswith("/"):
        return []
    paths, path, before = [], "", ""
    for part in node.name.split("/")[1:-1]:
        # A module in a list or Sequential is written with its parent's name: layers, layers.0.
        if before and part.startswith(before + "."):
            path = path[:len(path) - len(before)] + part
        else:
            path = f"{path}.{part}" if path else part
        paths.append(path)
        before = part
    return paths


def element_counts(graph):
    """{value: number of elements} of the values whose sizes are all known, by ONNX's shape
    inference."""
    import onnx
    counts = {}
    inferred = onnx.shape_inference.infer_shapes(graph.proto)
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value")
                                                            for dim in dims):
            count = 1
            for dim in dims:
                count *= dim.dim_value
            counts[value.name] = count
    return counts
