"""Runs of a torch module for a reference: gradients of a batch, steps of an optimizer, in f64 and
f32.

The module in double precision, from the same float32 weights and inputs, is the oracle; float32
runs on other orders of the batch's examples measure what rounding alone does.
"""
import copy

import numpy
import torch

from .losses import loss_of
from .optimizers import Stepper
from .torch_recorder import first_tensor

DTYPES = {"f32": torch.float32, "f64": torch.float64}


class ModuleRuns:
    """A module, its batches and its loss.

    module: torch.nn.Module, in training mode; batches: [{name: tensor}], inputs by the name of the
    argument of forward() and labels; loss: an entry of meta.json; names: {parameter's name in the
    module: its name in the ONNX file}, of what is trained.
    """

    def __init__(self, module, batches, loss, names):
        self._module, self._batches, self._loss, self._names = module, batches, loss, names

    def fresh(self, dtype):
        """A copy of the module in "f32" or "f64", its batch norms without a past."""
        module = copy.deepcopy(self._module).to(DTYPES[dtype]).train()
        for each in module.modules():
            if hasattr(each, "reset_running_stats"):
                each.reset_running_stats()
        return module

    def parameters(self, module):
        """{name in the file: parameter} of what is trained."""
        own = dict(module.named_parameters())
        return {name: own[path] for path, name in self._names.items()}

    def loss(self, module, batch, dtype):
        """The loss of a batch, a scalar tensor. batch: {name: tensor}."""
        given = {name: tensor.to(DTYPES[dtype]) if tensor.is_floating_point() else tensor
                 for name, tensor in batch.items()}
        labels = given.pop(self._loss["label"])
        return loss_of(self._loss, first_tensor(module(**given)), labels)

    def gradients(self, dtype, order=0):
        """(loss, {name: f64 array}) of batch 0, its examples in order number `order`."""
        module = self.fresh(dtype)
        loss = self.loss(module, reordered(self._batches[0], order), dtype)
        loss.backward()
        return float(loss.detach()), {
            name: numpy.zeros(tuple(p.shape)) if p.grad is None else as_f64(p.grad)
            for name, p in self.parameters(module).items()}

    def train(self, about, steps, dtype, order=0):
        """An OptimizerRun of `steps` steps, step s on batch (s - 1) mod the number of batches."""
        module = self.fresh(dtype)
        stepper = Stepper(about, self.parameters(module))
        run = OptimizerRun()
        for step in range(1, steps + 1):
            batch = reordered(self._batches[(step - 1) % len(self._batches)], order)
            module.zero_grad(set_to_none=True)
            loss = self.loss(module, batch, dtype)
            loss.backward()
            run.losses.append(float(loss.detach()))
            run.norms.append(stepper.step(step))
            if step in (1, steps):
                run.parameters[step] = {name: as_f64(p) for name, p in
                                        self.parameters(module).items()}
                run.statistics[step] = {name: as_f64(buffer)
                                        for name, buffer in module.named_buffers()
                                        if name.endswith(("running_mean", "running_var"))}
        return run


class OptimizerRun:
    """losses, norms: a float a step, before the update and before clipping; parameters, statistics:
    {step: {name: f64 array}} after the first and the last step."""

    def __init__(self):
        self.losses, self.norms, self.parameters, self.statistics = [], [], {}, {}


def as_f64(tensor):
    """A float64 array that shares nothing with the tensor."""
    return tensor.detach().double().numpy().copy()


def reordered(batch, order):
    """A batch with its examples (the first dimension of its largest tensors) in another order.

    order: 0 as they are, 1 reversed, others a permutation drawn with this seed.
    """
    examples = max((tensor.shape[0] for tensor in batch.values() if tensor.dim() > 0), default=0)
    if order == 0 or examples < 2:
        return batch
    places = (torch.arange(examples - 1, -1, -1) if order == 1 else
              torch.randperm(examples, generator=torch.Generator().manual_seed(order)))
    return {name: tensor[places] if tensor.dim() > 0 and tensor.shape[0] == examples else tensor
            for name, tensor in batch.items()}


def relative(found, expected):
    """The L2 norm of the difference over that of `expected`, of finite elements; 0 of zeros."""
    finite = numpy.isfinite(expected)
    norm = numpy.linalg.norm(expected[finite])
    gap = numpy.linalg.norm((found - expected)[finite]) if finite.any() else 0.0
    return float(gap / norm) if norm > 0.0 else float(gap)


def joined(arrays):
    """One vector of all arrays of {name: array}, in the order of the names."""
    return numpy.concatenate([arrays[name].reshape(-1) for name in sorted(arrays)])
