"""Optimizers of PyTorch: made as a reference's meta.json says, and the names of their states.

A trace has the engine's names: "ai.trainscope.adamw.m/PARAMETER".
"""
import torch

from .errors import TrainscopeError

# Class of torch.optim, lower case -> {key of its state: what the engine calls it}.
_STATES = {
    "adam": {"exp_avg": "adam.m", "exp_avg_sq": "adam.v"},
    "adamw": {"exp_avg": "adamw.m", "exp_avg_sq": "adamw.v"},
    "sgd": {"momentum_buffer": "sgd.momentum"},
    "rmsprop": {"square_avg": "rmsprop.square", "grad_avg": "rmsprop.mean",
                "momentum_buffer": "rmsprop.momentum"},
}
_SCALARS = ("step",)  # counters, which traces leave out


def states_of(optimizer, names):
    """[(name in the trace, tensor)] of the moments that an optimizer keeps, after at least one
    step.

    names: {id of a parameter: its name}. Of an optimizer that is not known here the names are
    "torch.CLASS.KEY/PARAMETER".
    """
    kind = type(optimizer).__name__.lower()
    known = _STATES.get(kind, {})
    found = {}
    for parameter, state in optimizer.state.items():
        name = names.get(id(parameter))
        if name is None:
            continue
        for key, tensor in state.items():
            if key in _SCALARS or not torch.is_tensor(tensor):
                continue
            prefix = f"ai.trainscope.{known[key]}" if key in known else f"torch.{kind}.{key}"
            found.setdefault(key, []).append((f"{prefix}/{name}", tensor))
    return [row for rows in found.values() for row in rows]


class Stepper:
    """An optimizer of a reference's meta.json: clips, takes the step's learning rate, steps.

    about: {"kind": "sgd", "adam", "adamw" or "rmsprop", "lr": number or list by step,
    "weight_decay", "decay": "matrices" (only parameters of two or more dimensions), "clip_norm",
    and "betas", "eps", "momentum", "nesterov", "alpha", "centered" as torch.optim has them};
    parameters: {name: tensor}.
    """

    def __init__(self, about, parameters):
        self.about = about
        self.parameters = list(parameters.values())
        decay = about.get("weight_decay", 0.0)
        matrices_only = about.get("decay") == "matrices"
        groups = [{"params": [p for p in self.parameters if (p.dim() >= 2) == matrix],
                   "weight_decay": decay if matrix or not matrices_only else 0.0}
                  for matrix in (True, False)]
        self.optimizer = self._made([group for group in groups if group["params"]])

    def _made(self, groups):
        about, kind = self.about, self.about["kind"]
        taken = {"sgd": (torch.optim.SGD, ("momentum", "nesterov", "dampening")),
                 "adam": (torch.optim.Adam, ("betas", "eps")),
                 "adamw": (torch.optim.AdamW, ("betas", "eps")),
                 "rmsprop": (torch.optim.RMSprop, ("alpha", "eps", "momentum", "centered"))}
        if kind not in taken:
            raise TrainscopeError(f"unknown optimizer '{kind}': known are {', '.join(taken)}", 2)
        make, keys = taken[kind]
        return make(groups, lr=self.rate(1), **{key: about[key] for key in keys if key in about})

    def rate(self, step):
        """The learning rate of a step, from 1; the last of a list goes on."""
        rates = self.about.get("lr", 1e-3)
        return rates[min(step, len(rates)) - 1] if isinstance(rates, (list, tuple)) else rates

    def step(self, step):
        """Updates the parameters by their gradients; the gradients' norm before clipping."""
        norms = torch.stack([p.grad.norm() for p in self.parameters if p.grad is not None])
        norm = float(norms.norm())
        if self.about.get("clip_norm", 0.0) > 0.0:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.about["clip_norm"])
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.step()
        return norm
