#!/usr/bin/env python3
"""Writes pytorch.json: losses with their gradients and trained parameters, by PyTorch in float64.

    python3 make.py > pytorch.json

Needs torch, torchvision (its focal loss) and timm (its Lion: torch.optim has none); the file says
with which versions it was made. The program and its tests need none of them.
"""
import json

import timm
import torch
import torchvision
from timm.optim import Lion
from torchvision.ops import sigmoid_focal_loss

STEPS = 10
RATE = 0.05


def numbers(shape):
    return torch.randn(shape, dtype=torch.float64)


def loss_case(spec, scores, labels, lengths, function):
    scores = scores.clone().requires_grad_(True)
    loss = function(scores, labels)
    loss.backward()
    return {"loss": spec, "shape": list(scores.shape), "scores": scores.flatten().tolist(),
            "label_shape": list(labels.shape), "labels": labels.flatten().tolist(),
            "lengths": lengths, "value": loss.item(), "gradient": scores.grad.flatten().tolist()}


def losses():
    x, t = 3 * numbers((3, 4)), numbers((3, 4))
    yes = (t > 0).double()
    for delta in (1.0, 0.4):
        yield loss_case(f"huber:delta={delta}", x, t, None,
                        lambda a, b, d=delta: torch.nn.functional.huber_loss(a, b, delta=d))
    for alpha, gamma in ((0.25, 2.0), (0.7, 1.5), (-1, 2.0), (0.25, 0.0)):
        word = "none" if alpha < 0 else alpha
        yield loss_case(f"focal:alpha={word},gamma={gamma}", 4 * x, yes, None,
                        lambda a, b, al=alpha, ga=gamma: sigmoid_focal_loss(
                            a, b, alpha=al, gamma=ga, reduction="mean"))
    scores = numbers((7, 3, 5))
    for blank, labels, times, counts, zero in (
            (0, [[1, 2, 2, 3], [4, 1, 1, 1], [2, 3, 4, 1]], [7, 6, 5], [4, 2, 3], False),
            (4, [[0, 1, 2, 0], [3, 3, 1, 1], [2, 0, 0, 1]], [7, 7, 4], [3, 1, 0], False),
            (0, [[1, 1, 1, 1], [2, 1, 3, 1], [4, 4, 1, 1]], [4, 7, 7], [4, 4, 2], True)):
        ctc = torch.nn.CTCLoss(blank=blank, zero_infinity=zero)
        yield loss_case(
            f"ctc:blank={blank},most_labels=4,zero_infinity={int(zero)}", scores,
            torch.tensor(labels), [times, counts],
            lambda a, b, c=ctc, t=times, n=counts: c(
                a.log_softmax(2), b, torch.tensor(t), torch.tensor(n)))


def steps():
    cases = [("rmsprop", {}, torch.optim.RMSprop, {}),
             ("rmsprop", {"alpha": 0.9, "momentum": 0.8, "weight_decay": 0.1}, torch.optim.RMSprop,
              {"alpha": 0.9, "momentum": 0.8, "weight_decay": 0.1}),
             ("rmsprop", {"centered": True, "eps": 1e-3}, torch.optim.RMSprop,
              {"centered": True, "eps": 1e-3}),
             ("rmsprop", {"centered": True, "momentum": 0.5, "eps": 1e-3}, torch.optim.RMSprop,
              {"centered": True, "momentum": 0.5, "eps": 1e-3}),
             ("lion", {"weight_decay": 0.1}, Lion, {"weight_decay": 0.1}),
             ("lion", {"beta1": 0.8, "beta2": 0.95}, Lion, {"betas": (0.8, 0.95)})]
    for name, ours, make, theirs in cases:
        start, target = numbers((2, 3)), numbers((2, 3))
        w = start.clone().requires_grad_(True)
        optimizer = make([w], lr=RATE, **theirs)
        averages = torch.optim.swa_utils.AveragedModel(
            torch.nn.ParameterList([torch.nn.Parameter(start.clone())]),
            multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
        model = torch.nn.ParameterList([w])
        averages.update_parameters(torch.nn.ParameterList([torch.nn.Parameter(start.clone())]))
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(w, target).backward()
            optimizer.step()
            averages.update_parameters(model)
        yield {"optimizer": name, "options": ours, "start": start.flatten().tolist(),
               "target": target.flatten().tolist(), "trained": w.flatten().tolist(),
               "average": next(averages.module.parameters()).flatten().tolist()}


torch.manual_seed(11)
print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__,
                  "timm": timm.__version__, "steps": STEPS, "rate": RATE, "ema": 0.9,
                  "losses": list(losses()), "optimizers": list(steps())}, indent=1))
