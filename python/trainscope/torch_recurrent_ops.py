"""ONNX ops on torch tensors, part three: RNN, LSTM and GRU, a step after the other.

Entered into torch_ops.OPS; see there.
"""
import torch

from .errors import TrainscopeError
from .torch_ops import attribute, input_at, op

_FUNCTIONS = {"RNN": ["Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}
_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


def _rnn(x, states, r, b, _):
    return [torch.tanh(x + states[0] @ r.t() + b)]


def _lstm(x, states, r, b, _):
    """Gates i, o, f, c."""
    i, o, f, g = (x + states[0] @ r.t() + b).chunk(4, -1)
    cell = torch.sigmoid(f) * states[1] + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(cell), cell]


def _gru(x, states, r, b, linear_before_reset):
    """Gates z, r, h."""
    h, size = states[0], states[0].shape[-1]
    gates = torch.sigmoid(x[:, :2 * size] + h @ r[:2 * size].t() + b[:2 * size])
    update, reset = gates.chunk(2, -1)
    product = (h if linear_before_reset else reset * h) @ r[2 * size:].t() + b[2 * size:]
    new = torch.tanh(x[:, 2 * size:] + (reset * product if linear_before_reset else product))
    return [(1 - update) * new + update * h]


_CELLS = {"RNN": _rnn, "LSTM": _lstm, "GRU": _gru}


def _check(node, x, directions):
    named = [name if isinstance(name, str) else name.decode()
             for name in attribute(node, "activations", [])]
    plain = (named in ([], _FUNCTIONS[node.op] * directions) and not attribute(node, "clip", 0.0)
             and not attribute(node, "layout", 0) and not attribute(node, "input_forget", 0)
             and input_at(x, 7) is None)
    if not plain:
        raise TrainscopeError(f"node '{node.name}': other functions than the default ones, clip, "
                              "layout, input_forget and peepholes are not supported")


def _first(x, position, like):
    given = input_at(x, position)
    return torch.zeros_like(like) if given is None else given


def _direction(node, x, which, reverse):
    """Y [T, N, H] and the last states [N, H] of one direction."""
    columns = _GATES[node.op] * x[2].shape[-1]
    b = torch.zeros(2 * columns, dtype=x[0].dtype) if input_at(x, 3) is None else x[3][which]
    given = x[0] @ x[1][which].t() + b[:columns]
    like = torch.zeros(x[0].shape[1], x[2].shape[-1], dtype=x[0].dtype)
    states = [_first(x, position, x[0].new_zeros(len(x[2]), *like.shape))[which]
              for position in ((5, 6) if node.op == "LSTM" else (5,))]
    lengths = input_at(x, 4)
    steps = range(len(given))
    outputs = [None] * len(given)
    for t in reversed(steps) if reverse else steps:
        new = _CELLS[node.op](given[t], states, x[2][which], b[columns:],
                              bool(attribute(node, "linear_before_reset", 0)))
        counts = None if lengths is None else (t < lengths)[:, None]
        if counts is not None:
            new = [torch.where(counts, after, before) for after, before in zip(new, states)]
        outputs[t] = new[0] if counts is None else torch.where(counts, new[0], like)
        states = new
    return torch.stack(outputs), states


@op("RNN", "LSTM", "GRU")
def recurrent(node, x):
    """Y and the last states, those that the node has."""
    directions = len(x[2])
    _check(node, x, directions)
    reverse = attribute(node, "direction", "forward") == "reverse"
    made = [_direction(node, x, d, reverse or d == 1) for d in range(directions)]
    y = torch.stack([one for one, _ in made], 1)
    last = [torch.stack(states) for states in zip(*(states for _, states in made))]
    results = (y, *last)
    return results[:len(node.outputs)] if len(node.outputs) > 1 else y
