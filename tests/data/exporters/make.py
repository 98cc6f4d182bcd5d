#!/usr/bin/env python3
"""Makes what PyTorch has after training: MODEL-state.safetensors, and folded-ts.onnx with its batch.

Each module starts with the tensors of its -noopt or -ts file, where its names are PyTorch's, and is
trained in f64 for three steps as README.md says. Needs PyTorch, onnx and safetensors; the tests need
none of them.
"""
from pathlib import Path

import onnx
import torch
from safetensors.torch import load_file, save_file
from torch import nn

HERE = Path(__file__).resolve().parent


class Cube(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.h = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.h(self.l(x) ** 3 * 0.5)


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 1)
        self.register_buffer("freq", torch.zeros(4))

    def forward(self, x):
        return self.l(torch.sin(x * self.freq))


class Folded(nn.Module):
    """What the older exporter folds a Transpose, Unsqueeze or Reshape into, and a tied layer."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8, bias=False)])
        self.group, self.slope, self.norm = nn.GroupNorm(2, 8), nn.PReLU(8), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("shift", torch.arange(5))
        nn.init.normal_(self.slope.weight, std=0.3)
        nn.init.normal_(self.group.weight, mean=1.0, std=0.3)

    def forward(self, ids):
        x = self.table(torch.fmod(ids + self.shift, 11))
        x = x + self.attention(x, x, x, need_weights=False)[0]
        for layer in self.layers:
            x = torch.tanh(layer(x))
        x = self.norm(self.slope(self.group(x.transpose(1, 2))))
        return self.head(x.transpose(1, 2))


def sequence(*layers):
    return nn.Sequential(*layers)


MODELS = {
    "cube": (Cube, "cube-noopt", "reg"),
    "buffer": (Waves, "buffer-ts", "reg"),
    "bn_shared": (lambda: sequence(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 1)),
                  "bn_shared", "bn_shared"),
    "twoln": (lambda: sequence(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.LayerNorm(8),
                               nn.Linear(8, 1)), "twoln-noopt", "reg"),
    "convbn": (lambda: sequence(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4),
                                nn.Flatten(), nn.Linear(8, 1)), "convbn-noopt", "reg"),
}


def trained(module, batch, name):
    """Three steps; prints the losses, writes the state_dict in f32 without counters."""
    module = module.double().train()
    *inputs, labels = [batch[key].double() if batch[key].is_floating_point() else batch[key]
                       for key in sorted(batch, key=lambda key: key == "labels")]
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(module(*inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = {key: value.float() if value.is_floating_point() else value
             for key, value in module.state_dict().items() if "num_batches" not in key}
    save_file({key: value.detach().clone().contiguous() for key, value in state.items()},
              HERE / f"{name}-state.safetensors")
    print(name, *(f"{loss:.6f}" for loss in losses))


def make_folded():
    torch.manual_seed(3)
    module = Folded().train()
    batch = {"ids": torch.randint(0, 11, (6, 5)), "labels": torch.randn(6, 5, 11)}
    save_file(batch, HERE / "folded.safetensors")
    torch.onnx.export(module, (batch["ids"],), str(HERE / "folded-ts.onnx"), dynamo=False,
                      opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=True, input_names=["ids"], output_names=["logits"])
    trained(module, batch, "folded")


def main():
    for name, (make, file, batch) in MODELS.items():
        module = make()
        own = {each.name: torch.from_numpy(onnx.numpy_helper.to_array(each).copy())
               for each in onnx.load(HERE / f"{file}.onnx").graph.initializer}
        missed = module.load_state_dict({key: own[key] for key in module.state_dict() if key in own},
                                        strict=False).missing_keys
        print(name, "as PyTorch makes them:", [key for key in missed if "num_batches" not in key])
        trained(module, load_file(HERE / f"{batch}.safetensors"), name)
    make_folded()


if __name__ == "__main__":
    main()
