#!/usr/bin/env python3
"""Writes models of several losses and heads with what PyTorch's usual loops make of them.

    PYTHONPATH=python python3 make.py

Needs torch alone. For each name below: NAME.onnx, NAME.safetensors (the batches of ten steps one
after the other, by input), NAME-trained.safetensors (parameters and running statistics after the
last step) and, in losses.json, the losses of the steps. The program and its tests need none of it.
"""
import json
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python"))
from trainscope.tensor_file import write_tensors  # noqa: E402

STEPS, BATCH = 10, 6


class Autoencoder(nn.Module):
    """A variational autoencoder (Kingma, Welling 2013): scores of x again, and the KL divergence."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 8)
        self.mean, self.log_variance = nn.Linear(8, 3), nn.Linear(8, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 12))

    def forward(self, x, noise):
        h = torch.tanh(self.encoder(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + noise * torch.exp(0.5 * log_variance)
        kl = -0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).sum(1).mean()
        return self.decoder(z), kl


class Speech(nn.Module):
    """Scores of the labels at each time, [N, T, C]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(5, 7, batch_first=True)
        self.head = nn.Linear(7, 5)

    def forward(self, x):
        return self.head(self.layer(x)[0])


class Pairs(nn.Module):
    """Pictures and texts that belong together (Radford et al. 2021): the loss itself."""

    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(nn.Linear(10, 8), nn.GELU(), nn.Linear(8, 4))
        self.table, self.text = nn.Embedding(11, 6), nn.Linear(6, 4)
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, picture, ids):
        a = functional.normalize(self.picture(picture), dim=1)
        b = functional.normalize(self.text(self.table(ids).mean(1)), dim=1)
        scores = self.logit_scale.exp() * a @ b.t()
        which = torch.arange(scores.shape[0])
        return 0.5 * (functional.cross_entropy(scores, which) +
                      functional.cross_entropy(scores.t(), which))


class Nets(nn.Module):
    """A generator and a discriminator with batch norms, and both losses."""

    def __init__(self):
        super().__init__()
        # A bias before a batch norm has no gradient but rounding, which Adam makes steps of.
        self.generator = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(),
                                       nn.Linear(8, 6))
        self.discriminator = nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8),
                                           nn.LeakyReLU(0.2), nn.Linear(8, 1))

    @staticmethod
    def of_discriminator(real, fake):
        return functional.softplus(-real).mean() + functional.softplus(fake).mean()

    @staticmethod
    def of_generator(fake):
        return functional.softplus(-fake).mean()

    def forward(self, x, z):
        real = self.discriminator(x)
        fake = self.discriminator(self.generator(z))
        return self.of_discriminator(real, fake), self.of_generator(fake)


def export(name, module, batch, outputs):
    """The exporter runs the module once: the file and the module go on with the same statistics."""
    module = module.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(batch.values()), str(HERE / f"{name}.onnx"),
                          input_names=list(batch), output_names=outputs, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          dynamo=False)


def finish(name, module, batches, losses):
    joined = {key: torch.cat([batch[key] for batch in batches]).numpy() for key in batches[0]}
    write_tensors(HERE / f"{name}.safetensors", joined)
    trained = {key: value.detach().numpy() for key, value in module.state_dict().items()
               if value.dtype == torch.float32}
    write_tensors(HERE / f"{name}-trained.safetensors", trained)
    return losses


def vae():
    torch.manual_seed(31)
    module = Autoencoder()
    batches = [{"x": torch.rand(BATCH, 12), "noise": torch.randn(BATCH, 3)} for _ in range(STEPS)]
    export("vae", module, batches[0], ["scores", "kl"])
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    losses = {"loss": [], "bce_with_logits(scores)": [], "kl": []}
    for batch in batches:
        optimizer.zero_grad()
        scores, kl = module(**batch)
        reconstruction = functional.binary_cross_entropy_with_logits(scores, batch["x"])
        loss = reconstruction + 0.05 * kl
        loss.backward()
        optimizer.step()
        for key, value in zip(losses, (loss, reconstruction, kl)):
            losses[key].append(value.item())
    return finish("vae", module, batches, losses)


def ctc():
    torch.manual_seed(32)
    module = Speech()
    batches = []
    for _ in range(STEPS):
        # The third text is empty, the fourth longer than its time, the fifth repeats one label.
        counts = torch.tensor([3, 4, 0, 4, 4, 2])
        times = torch.tensor([8, 7, 8, 3, 8, 5])
        labels = torch.randint(1, 5, (BATCH, 4))
        labels[4] = 2
        batches.append({"x": torch.randn(BATCH, 8, 5), "labels": labels, "input_lengths": times,
                        "label_lengths": counts})
    export("ctc", module, {"x": batches[0]["x"]}, ["scores"])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    function = nn.CTCLoss(zero_infinity=True)
    losses = {"loss": []}
    for batch in batches:
        optimizer.zero_grad()
        log_probs = module(batch["x"]).transpose(0, 1).log_softmax(2)
        loss = function(log_probs, batch["labels"], batch["input_lengths"], batch["label_lengths"])
        loss.backward()
        optimizer.step()
        losses["loss"].append(loss.item())
    return finish("ctc", module, batches, losses)


def pairs():
    torch.manual_seed(33)
    module = Pairs()
    batches = [{"picture": torch.randn(BATCH, 10), "ids": torch.randint(11, (BATCH, 5))}
               for _ in range(STEPS)]
    export("pairs", module, batches[0], ["loss"])
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.1)
    losses = {"loss": []}
    for batch in batches:
        optimizer.zero_grad()
        loss = module(**batch)
        loss.backward()
        optimizer.step()
        losses["loss"].append(loss.item())
    return finish("pairs", module, batches, losses)


def gan():
    torch.manual_seed(34)
    module = Nets()
    batches = [{"x": torch.randn(BATCH, 6) + 1, "z": torch.randn(BATCH, 4)} for _ in range(STEPS)]
    export("gan", module, batches[0], ["d_loss", "g_loss"])
    d, g = module.discriminator, module.generator
    of_d = torch.optim.Adam(d.parameters(), lr=0.02, betas=(0.5, 0.999))
    of_g = torch.optim.SGD(g.parameters(), lr=0.05, momentum=0.5)
    losses = {"loss": [], "d_loss": [], "g_loss": []}
    for batch in batches:
        fake = g(batch["z"])
        of_d.zero_grad()
        d_loss = module.of_discriminator(d(batch["x"]), d(fake.detach()))
        d_loss.backward()
        of_d.step()
        of_g.zero_grad()
        g_loss = module.of_generator(d(fake))
        g_loss.backward()
        of_g.step()
        for key, value in zip(losses, (d_loss + g_loss, d_loss, g_loss)):
            losses[key].append(value.item())
    return finish("gan", module, batches, losses)


if __name__ == "__main__":
    numbers = {"torch": torch.__version__, "steps": STEPS, "batch": BATCH,
               "losses": {case.__name__: case() for case in (vae, ctc, pairs, gan)}}
    (HERE / "losses.json").write_text(json.dumps(numbers, indent=1) + "\n")
