"""Architectures of the zoo that are written here in plain PyTorch."""
import torch
from torch import nn

from zoo_entries import BATCH, CLASSES, VOCAB, ZOO, One, classes, images, tokens


def plain(name, inputs, labels, loss="cross_entropy"):
    """The module that the function makes, with these inputs."""
    def add(make):
        ZOO[name] = ("plain", lambda: (make(), inputs(), labels(), loss))
        return make
    return add


def vector(width):
    return lambda: {"x": torch.randn(BATCH, width)}


def target(*shape):
    return lambda: torch.randn(BATCH, *shape)


@plain("mlp", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("mlp_norms", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 32),
                         nn.LayerNorm(32), nn.Tanh(), nn.Linear(32, CLASSES))


class Affine(nn.Module):
    """alpha * x + beta, as a residual MLP has it (Touvron et al., 2021)."""

    def __init__(self, size):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, size))
        self.beta = nn.Parameter(torch.zeros(1, size))

    def forward(self, x):
        return torch.addcmul(self.beta, self.alpha, x)


class Multiplied(nn.Module):
    """A linear layer whose call is given the bias first."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.3)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


@plain("affine_mlp", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), Affine(32), nn.GELU(), Multiplied(32, 32), Affine(32),
                         nn.Tanh(), Multiplied(32, 32), Affine(32), nn.Linear(32, CLASSES))


@plain("mlp_batch_norm", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32),
                         nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("activations", vector(12), target(4), "mse")
def _():
    kinds = [nn.ELU, nn.SELU, nn.CELU, nn.Hardswish, nn.Hardsigmoid, nn.Mish, nn.Softplus,
             nn.Softsign, nn.SiLU, nn.LogSigmoid, nn.Tanhshrink, nn.ReLU6, nn.Hardtanh, nn.PReLU,
             nn.LeakyReLU]
    layers = [layer for kind in kinds for layer in (nn.Linear(12, 12), kind())]
    return nn.Sequential(*layers, nn.Linear(12, 4))


@plain("lenet", lambda: images(28, 1), classes)
def _():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("conv_batch_norm", lambda: images(16), classes)
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                         nn.Conv2d(8, 8, 3, groups=2), nn.BatchNorm2d(8), nn.Hardswish(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


@plain("norms", lambda: images(12), classes)
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3),
                         nn.InstanceNorm2d(8, affine=True), nn.ReLU(), nn.LocalResponseNorm(3),
                         nn.Conv2d(8, 8, 3), nn.GroupNorm(4, 8), nn.Flatten(),
                         nn.Linear(288, CLASSES))


@plain("autoencoder", lambda: images(16), lambda: torch.randn(BATCH, 3, 16, 16), "mse")
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
                         nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.ReLU(),
                         nn.Upsample(scale_factor=2, mode="bilinear"),
                         nn.Conv2d(8, 3, 3, padding=1))


@plain("text_cnn", lambda: {"ids": tokens(20)}, classes)
def _():
    class TextCnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 16)
            self.convolutions = nn.ModuleList(nn.Conv1d(16, 12, k) for k in (3, 4, 5))
            self.head = nn.Linear(36, CLASSES)

        def forward(self, ids):
            x = self.table(ids).transpose(1, 2)
            return self.head(torch.cat([torch.relu(c(x)).amax(2) for c in self.convolutions], 1))
    return TextCnn()


@plain("transformer_encoder", lambda: {"ids": tokens(12)}, classes)
def _():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 32)
            self.place = nn.Parameter(torch.randn(12, 32) * 0.1)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True,
                                               norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, CLASSES)

        def forward(self, ids):
            return self.head(self.layers(self.table(ids) + self.place).mean(1))
    return Encoder()


@plain("tied_language_model", lambda: {"ids": tokens(12)}, lambda: tokens(12))
def _():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 32)
            self.mix = nn.Linear(32, 32)
            self.norm = nn.LayerNorm(32)
            self.head = nn.Linear(32, VOCAB, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            x = self.table(ids)
            mask = torch.triu(torch.full((12, 12), float("-inf")), 1)
            weights = torch.softmax(x @ x.transpose(1, 2) * 0.2 + mask, -1)
            return self.head(self.norm(x + self.mix(weights @ x)))
    return Tied()


@plain("fourier_features", vector(3), target(2), "mse")
def _():
    class Fourier(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", torch.randn(3, 8))
            self.net = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 2))

        def forward(self, x):
            angles = 2.0 * x @ self.frequencies
            return self.net(torch.cat([angles.sin(), angles.cos()], -1)) * 0.5
    return Fourier()


@plain("contrastive_scale", vector(12), classes)
def _():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.left = nn.Linear(12, 16)
            self.anchors = nn.Parameter(torch.randn(CLASSES, 16))
            self.logit_scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, x):
            a = nn.functional.normalize(self.left(x), dim=-1)
            b = nn.functional.normalize(self.anchors, dim=-1)
            return self.logit_scale.exp() * a @ b.t()
    return Scaled()


@plain("squeeze_excite", lambda: images(12), classes)
def _():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.wide = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
            self.head = nn.Linear(8, CLASSES)

        def forward(self, x):
            x = self.wide(torch.relu(self.conv(x)))
            gate = torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))
            return self.head((x * gate).amax((2, 3)))
    return Block()


@plain("dilated_time_net", lambda: {"x": torch.randn(BATCH, 4, 40)}, target(4, 40), "mse")
def _():
    class TimeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(4, 8, 1)
            self.filters = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2, 4))
            self.mixes = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))
            self.last = nn.Conv1d(8, 4, 1)

        def forward(self, x):
            x = self.first(x)
            for d, wide, mix in zip((1, 2, 4), self.filters, self.mixes):
                a, b = wide(nn.functional.pad(x, (d, 0))).chunk(2, 1)
                x = x + mix(a.tanh() * b.sigmoid())
            return self.last(x)
    return TimeNet()


@plain("masked_pooling", lambda: {"x": torch.randn(BATCH, 10, 6),
                                  "mask": (torch.rand(BATCH, 10) > 0.3).long()}, classes)
def _():
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.value = nn.Linear(6, 1), nn.Linear(6, 16)
            self.head = nn.Linear(16, CLASSES)

        def forward(self, x, mask):
            scores = self.score(x).squeeze(-1).masked_fill(mask == 0, -1e9)
            return self.head((scores.softmax(-1).unsqueeze(-1) * self.value(x)).sum(1))
    return Pooled()


@plain("weight_norm", vector(12), classes)
def _():
    wrap = nn.utils.parametrizations.weight_norm
    return nn.Sequential(wrap(nn.Linear(12, 16)), nn.ReLU(), wrap(nn.Linear(16, CLASSES)))


@plain("powers", vector(6), target(3), "mse")
def _():
    class Powers(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            h = self.a(x)
            h = h ** 3 * 0.1 + h ** 2 / 3.0 - h.abs().clamp(0.1, 2.0).sqrt() + h.clamp(-1, 1)
            return self.b(torch.where(h > 0.2, h, torch.full_like(h, 0.2)))
    return Powers()


def recurrent(layer):
    """A classifier of texts: what an embedding's tokens leave in the layers, and what they gave."""
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.layers = nn.Embedding(VOCAB, 12), layer()
            width = self.layers.hidden_size * (2 if self.layers.bidirectional else 1)
            self.head = nn.Linear(2 * width, CLASSES)

        def forward(self, ids):
            y, last = self.layers(self.table(ids).transpose(0, 1))
            last = last[0] if isinstance(last, tuple) else last
            last = last[-2:].transpose(0, 1).flatten(1) if self.layers.bidirectional else last[-1]
            return self.head(torch.cat([y.mean(0), last], 1))
    return Classifier()


@plain("lstm", lambda: {"ids": tokens(14)}, classes)
def _():
    return recurrent(lambda: nn.LSTM(12, 16, num_layers=2, bidirectional=True))


@plain("gru", lambda: {"ids": tokens(14)}, classes)
def _():
    return recurrent(lambda: nn.GRU(12, 16, num_layers=2))


@plain("rnn", lambda: {"ids": tokens(14)}, classes)
def _():
    return recurrent(lambda: nn.RNN(12, 16, bidirectional=True))


@plain("rnn_relu", lambda: {"ids": tokens(14)}, classes)
def _():
    return recurrent(lambda: nn.RNN(12, 16, nonlinearity="relu"))
