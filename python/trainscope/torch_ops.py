"""ONNX ops on torch tensors, part one: arithmetic, comparison, reductions, shapes and movement.

A row of OPS is a function (node, inputs) -> tensor or tuple of tensors. node is an onnx_graph.Node;
inputs is a list of torch tensors, None where one is left out. Meanings are those of the ONNX
operator documents, opsets 7 to 23.
"""
import functools

import numpy
import torch

from .errors import TrainscopeError

OPS = {}
# Of TensorProto's data types; FLOAT and DOUBLE become the type that the graph runs in.
TYPES = {2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64,
         9: torch.bool, 10: torch.float16, 16: torch.bfloat16}


def op(*names):
    """Enters a function into OPS."""
    def enter(function):
        for name in names:
            OPS[name] = function
        return function
    return enter


def attribute(node, name, default=None):
    return node.attributes.get(name, default)


def integers(node, inputs, name, position, default=None):
    """A list of int: the attribute of this name (old opsets) or the input at this position
    (new)."""
    if name in node.attributes:
        value = node.attributes[name]
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if len(inputs) > position and inputs[position] is not None:
        return inputs[position].reshape(-1).tolist()
    return default


def input_at(inputs, position):
    return inputs[position] if len(inputs) > position else None


def _enter_elementwise():
    one = {"Neg": torch.neg, "Abs": torch.abs, "Sqrt": torch.sqrt, "Exp": torch.exp,
           "Log": torch.log, "Erf": torch.erf, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid,
           "Relu": torch.relu, "Sin": torch.sin, "Cos": torch.cos, "Floor": torch.floor,
           "Ceil": torch.ceil, "Round": torch.round, "Reciprocal": torch.reciprocal,
           "Sign": torch.sign, "Not": torch.logical_not, "IsNaN": torch.isnan,
           "Softplus": torch.nn.functional.softplus, "Softsign": torch.nn.functional.softsign,
           "Tan": torch.tan, "Atan": torch.atan, "Mish": torch.nn.functional.mish}
    two = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Equal": torch.eq,
           "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt,
           "LessOrEqual": torch.le, "And": torch.logical_and, "Or": torch.logical_or,
           "Xor": torch.logical_xor, "PRelu": lambda x, a: torch.where(x < 0, a * x, x)}
    for name, function in one.items():
        OPS[name] = lambda node, x, f=function: f(x[0])
    for name, function in two.items():
        OPS[name] = lambda node, x, f=function: f(x[0], x[1])
    folds = {"Sum": torch.add, "Max": torch.maximum, "Min": torch.minimum}
    for name, function in folds.items():
        OPS[name] = lambda node, x, f=function: functools.reduce(f, x)


_enter_elementwise()


@op("Div")
def divide(node, x):
    whole = not x[0].is_floating_point()
    return torch.div(x[0], x[1], rounding_mode="trunc" if whole else None)


@op("Mod")
def modulo(node, x):
    return torch.fmod(x[0], x[1]) if attribute(node, "fmod", 0) else torch.remainder(x[0], x[1])


@op("Pow")
def power(node, x):
    return torch.pow(x[0], x[1].to(x[0].dtype)).to(x[0].dtype)


@op("Mean")
def mean(node, x):
    return functools.reduce(torch.add, x) / len(x)


@op("Where")
def where(node, x):
    return torch.where(x[0], x[1], x[2])


@op("Clip")
def clip(node, x):
    least = attribute(node, "min") if "min" in node.attributes else input_at(x, 1)
    most = attribute(node, "max") if "max" in node.attributes else input_at(x, 2)
    y = x[0]
    if least is not None:
        y = torch.maximum(y, torch.as_tensor(least, dtype=y.dtype))
    if most is not None:
        y = torch.minimum(y, torch.as_tensor(most, dtype=y.dtype))
    return y


@op("Identity", "Cast", "CastLike")
def converted(node, x):
    if node.op == "Identity":
        return x[0]
    if node.op == "CastLike":
        return x[0].to(x[1].dtype)
    to = attribute(node, "to")
    if to in (1, 11):
        return x[0].to(torch.get_default_dtype())
    if to not in TYPES:
        raise TrainscopeError(f"node '{node.name}' casts to type {to}, which is not supported")
    return x[0].to(TYPES[to])


@op("Constant")
def constant(node, x):
    for name in ("value", "value_float", "value_floats", "value_int", "value_ints"):
        if name in node.attributes:
            return tensor_of(numpy.asarray(node.attributes[name]))
    raise TrainscopeError(f"node '{node.name}': a constant of this kind is not supported")


def tensor_of(array):
    """A torch tensor of a numpy array; f32 and f64 become torch's default type.

    Raises TrainscopeError for text and the integers that torch 1.13 lacks.
    """
    array = numpy.array(array)  # a copy that may be written to
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(numpy.float32)).to(torch.bfloat16)
    try:
        tensor = torch.from_numpy(array)
    except TypeError as error:
        raise TrainscopeError(f"elements of type {array.dtype} are not supported") from error
    if tensor.dtype in (torch.float32, torch.float64):
        tensor = tensor.to(torch.get_default_dtype())
    return tensor


@op("ConstantOfShape")
def constant_of_shape(node, x):
    fill = tensor_of(attribute(node, "value", numpy.zeros(1, numpy.float32))).reshape(())
    return fill.expand(x[0].tolist()).clone()


@op("Shape", "Size")
def shape(node, x):
    if node.op == "Size":
        return torch.tensor(x[0].numel())
    sizes = list(x[0].shape)[attribute(node, "start", 0):attribute(node, "end")]
    return torch.tensor(sizes, dtype=torch.int64)


@op("Range")
def sequence(node, x):
    return torch.arange(*(end.item() for end in x), dtype=x[0].dtype)


@op("Reshape")
def reshape(node, x):
    sizes = integers(node, x, "shape", 1)
    if not attribute(node, "allowzero", 0):
        sizes = [x[0].shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return x[0].reshape(sizes)


@op("Flatten")
def flatten(node, x):
    axis = attribute(node, "axis", 1)
    axis = axis + x[0].dim() if axis < 0 else axis
    rows = int(numpy.prod(x[0].shape[:axis], dtype=int))
    return x[0].reshape(rows, -1 if x[0].numel() else 0)


@op("Squeeze")
def squeeze(node, x):
    axes = integers(node, x, "axes", 1)
    if axes is None:
        return x[0].squeeze()
    gone = {axis % x[0].dim() for axis in axes}
    return x[0].reshape([size for i, size in enumerate(x[0].shape) if i not in gone])


@op("Unsqueeze")
def unsqueeze(node, x):
    axes = integers(node, x, "axes", 1)
    dim = x[0].dim() + len(axes)
    new = {axis % dim for axis in axes}
    sizes = iter(x[0].shape)
    return x[0].reshape([1 if i in new else next(sizes) for i in range(dim)])


@op("Transpose")
def transpose(node, x):
    return x[0].permute(attribute(node, "perm", list(reversed(range(x[0].dim())))))


@op("Concat")
def concat(node, x):
    return torch.cat(x, attribute(node, "axis"))


@op("Split")
def split(node, x):
    axis = attribute(node, "axis", 0)
    sizes = integers(node, x, "split", 1)
    if sizes is None:
        each = -(-x[0].shape[axis] // len(node.outputs))
        return tuple(torch.split(x[0], each, axis))
    return tuple(torch.split(x[0], sizes, axis))


@op("Slice")
def slice_of(node, x):
    starts, ends = (integers(node, x, name, i) for i, name in enumerate(("starts", "ends"), 1))
    axes = integers(node, x, "axes", 3, list(range(len(starts))))
    steps = integers(node, x, "steps", 4, [1] * len(starts))
    y = x[0]
    for start, end, axis, step in zip(starts, ends, axes, steps):
        places = range(y.shape[axis])[start:end:step]
        if step > 0:
            index = [slice(None)] * y.dim()
            index[axis] = slice(start, end, step)
            y = y[tuple(index)]
        else:
            y = y.index_select(axis, torch.tensor(list(places), dtype=torch.int64))
    return y


@op("Expand")
def expand(node, x):
    return x[0].expand(torch.broadcast_shapes(tuple(x[0].shape), tuple(x[1].tolist())))


@op("Tile")
def tile(node, x):
    return x[0].repeat(x[1].tolist())


@op("Gather")
def gather(node, x):
    axis = attribute(node, "axis", 0) % x[0].dim()
    index = x[1].long()
    index = torch.where(index < 0, index + x[0].shape[axis], index)
    taken = x[0].index_select(axis, index.reshape(-1))
    return taken.reshape([*x[0].shape[:axis], *index.shape, *x[0].shape[axis + 1:]])


@op("GatherElements")
def gather_elements(node, x):
    axis = attribute(node, "axis", 0)
    index = torch.where(x[1] < 0, x[1] + x[0].shape[axis], x[1])
    return torch.gather(x[0], axis, index.long())


@op("Trilu")
def triangle(node, x):
    k = int(x[1]) if len(x) > 1 else 0
    return torch.triu(x[0], k) if attribute(node, "upper", 1) else torch.tril(x[0], k)


@op("Pad")
def pad(node, x):
    pads = integers(node, x, "pads", 1)
    axes = integers(node, x, "axes", 3, list(range(x[0].dim())))
    amounts = [0] * (2 * x[0].dim())
    for i, axis in enumerate(axes):  # torch begins with the last axis
        at = 2 * (x[0].dim() - 1 - axis % x[0].dim())
        amounts[at], amounts[at + 1] = pads[i], pads[i + len(axes)]
    mode = {"edge": "replicate"}.get(attribute(node, "mode", "constant"),
                                     attribute(node, "mode", "constant"))
    if mode != "constant":
        while len(amounts) > 2 and amounts[-2:] == [0, 0]:
            del amounts[-2:]
        return torch.nn.functional.pad(x[0], amounts, mode)
    fill = input_at(x, 2) if "value" not in node.attributes else node.attributes["value"]
    return torch.nn.functional.pad(x[0], amounts, mode, 0.0 if fill is None else float(fill))


@op("CumSum")
def cumulative_sum(node, x):
    if attribute(node, "exclusive", 0) or attribute(node, "reverse", 0):
        raise TrainscopeError(f"node '{node.name}': exclusive and reverse are not supported")
    return torch.cumsum(x[0], int(x[1]))


_REDUCTIONS = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: x.square().sum(axes, keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: x.square().sum(axes, keep),
    "ReduceLogSumExp": lambda x, axes, keep: x.logsumexp(axes, keep),
}


@op(*_REDUCTIONS)
def reduction(node, x):
    axes = integers(node, x, "axes", 1)
    if not axes:
        if attribute(node, "noop_with_empty_axes", 0):
            return x[0]
        axes = list(range(x[0].dim()))
    return _REDUCTIONS[node.op](x[0], axes, bool(attribute(node, "keepdims", 1)))


@op("ArgMax", "ArgMin")
def arg_extreme(node, x):
    if attribute(node, "select_last_index", 0):
        raise TrainscopeError(f"node '{node.name}': select_last_index is not supported")
    find = torch.argmax if node.op == "ArgMax" else torch.argmin
    return find(x[0], attribute(node, "axis", 0), bool(attribute(node, "keepdims", 1)))
