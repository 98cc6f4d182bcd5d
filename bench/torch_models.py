"""The benchmark models in PyTorch: the same networks as `trainscope model` builds.

FLOPs of a step: 2MNK per product, 2 * outputs * K per convolution; three times the forward pass,
less the gradient of the first layer's input where nobody needs it. Attention counts in full.
"""
import inspect
import math

import torch
from torch import nn
from torch.nn import functional as F

SDPA = hasattr(F, "scaled_dot_product_attention")


class Classifier(nn.Module):
    """Layers in a row; FLOPs are counted from what each layer makes."""

    def __init__(self, *layers):
        super().__init__()
        self.net = nn.Sequential(*layers)

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)

    def flops(self, x):
        seen = []

        def note(layer, _, result):
            seen.append(2 * result.numel() * layer.weight[0].numel())

        layers = [m for m in self.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
        hooks = [layer.register_forward_hook(note) for layer in layers]
        self.eval()  # running statistics stay as they are
        with torch.no_grad():
            self.net(x)
        self.train()
        for hook in hooks:
            hook.remove()
        return 3 * sum(seen) - seen[0]


def mlp(dims):
    layers = []
    for inputs, outputs in zip(dims, dims[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return Classifier(*layers[:-1])


def lenet():
    return Classifier(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                      nn.Linear(84, 10))


def conv_norm(inputs, outputs, kernel, stride=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return [conv, nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_norm(inputs, outputs, 3, stride), nn.ReLU(),
                                  *conv_norm(outputs, outputs, 3))
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Sequential(*conv_norm(inputs, outputs, 1, stride))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet18():
    """In the form for small images: a stem of 3x3, stages of 64 to 512 channels."""
    layers, inputs = [*conv_norm(3, 64, 3), nn.ReLU()], 64
    for stage, outputs in enumerate((64, 128, 256, 512)):
        layers += [Residual(inputs, outputs, 2 if stage else 1), Residual(outputs, outputs, 1)]
        inputs = outputs
    return Classifier(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Norm(nn.Module):
    def __init__(self, width, bias, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, self.heads, self.causal, self.drop = (sizes["width"], sizes["heads"],
                                                     sizes["causal"], sizes["dropout"])
        self.qkv = nn.Linear(width, 3 * width, bias=sizes["bias"])
        self.out = nn.Linear(width, width, bias=sizes["bias"])
        if self.causal:
            hidden = torch.ones(sizes["context"], sizes["context"], dtype=torch.bool).triu(1)
            self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3 * self.heads, width // self.heads)
        q, k, v = heads.transpose(1, 2).split(self.heads, 1)
        drop = self.drop if self.training else 0.0
        if SDPA:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=self.causal)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(q.shape[-1]))
            if self.causal:
                scores = scores.masked_fill(self.hidden[:length, :length], float("-inf"))
            y = F.dropout(scores.softmax(-1), drop) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, bias, epsilon = sizes["width"], sizes["bias"], sizes["epsilon"]
        self.norm1, self.norm2 = Norm(width, bias, epsilon), Norm(width, bias, epsilon)
        self.attention, self.drop = Attention(sizes), nn.Dropout(sizes["dropout"])
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.norm_last, self.gelu = sizes["norm_last"], sizes["gelu"]

    def mlp(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.gelu))

    def forward(self, x):
        if self.norm_last:
            x = self.norm1(x + self.drop(self.attention(x)))
            return self.norm2(x + self.drop(self.mlp(x)))
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """What GPT-2 and BERT share: tables, blocks, the first weights, FLOPs."""

    def __init__(self, sizes):
        super().__init__()
        width, self.sizes = sizes["width"], sizes
        self.tokens = nn.Embedding(sizes["vocab"], width)
        self.positions = nn.Embedding(sizes["context"], width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes["layers"]))
        self.drop = nn.Dropout(sizes["dropout"])

    def draw_weights(self):
        """Normal with 0.02, biases 0; GPT-2 shrinks what adds to its residual stream."""
        residual = {id(m) for b in self.blocks for m in (b.attention.out, b.down)}
        shrink = 1.0 if self.sizes["norm_last"] else math.sqrt(2 * self.sizes["layers"])
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                scale = shrink if id(module) in residual else 1.0
                nn.init.normal_(module.weight, 0.0, 0.02 / scale)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def flops(self, ids, *_):
        layers, width, vocab = (self.sizes[key] for key in ("layers", "width", "vocab"))
        tokens, length = ids.numel(), ids.shape[1]
        forward = layers * tokens * (24 * width * width + 4 * length * width)
        head = width * (vocab + (width if self.sizes["norm_last"] else 0))
        return 3 * (forward + 2 * tokens * head)


class Gpt(Transformer):
    """GPT-2: norms before the layers, a tied head."""

    def __init__(self, **sizes):
        super().__init__({"causal": True, "norm_last": False, "epsilon": 1e-5, "dropout": 0.0,
                          **sizes})
        self.norm = Norm(sizes["width"], sizes["bias"], 1e-5)
        self.draw_weights()

    def logits(self, ids):
        x = self.drop(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    def forward(self, ids, labels):
        return F.cross_entropy(self.logits(ids).flatten(0, 1), labels.flatten())


class Bert(Transformer):
    """BERT: norms after the layers, segments, and the head of the masked language model."""

    def __init__(self, **sizes):
        super().__init__({"causal": False, "norm_last": True, "epsilon": 1e-12, "bias": True,
                          "gelu": "none", **sizes})
        width = sizes["width"]
        self.segments, self.dense = nn.Embedding(2, width), nn.Linear(width, width)
        self.norm, self.head_norm = Norm(width, True, 1e-12), Norm(width, True, 1e-12)
        self.head_bias = nn.Parameter(torch.zeros(sizes["vocab"]))
        self.draw_weights()

    def logits(self, ids, segments):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]] + self.segments(segments)
        x = self.drop(self.norm(x))
        for block in self.blocks:
            x = block(x)
        x = self.head_norm(F.gelu(self.dense(x)))
        return F.linear(x, self.tokens.weight, self.head_bias)

    def forward(self, ids, labels, segments):
        return F.cross_entropy(self.logits(ids, segments).flatten(0, 1), labels.flatten())


class Recurrent(nn.Module):
    """A language model: an embedding, LSTM layers, a linear head of its own."""

    def __init__(self, layers, width, vocab):
        super().__init__()
        self.layers, self.width, self.vocab = layers, width, vocab
        self.tokens = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids, labels):
        x, _ = self.lstm(self.tokens(ids))
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())

    def flops(self, ids):
        cells = self.layers * 4 * 2 * self.width * self.width
        return 3 * 2 * ids.numel() * (cells + self.width * self.vocab)


def adamw(model, lr, betas):
    """Decay 0.1 of matrices only; the fastest variant that this PyTorch has."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return fastest(torch.optim.AdamW, groups, lr=lr, betas=betas, eps=1e-8)


def sgd(model, lr):
    return fastest(torch.optim.SGD, model.parameters(), lr=lr, momentum=0.9)


def fastest(kind, parameters, **options):
    parameters = list(parameters)
    known = inspect.signature(kind.__init__).parameters
    for way in ("fused", "foreach"):
        if way not in known:
            continue
        try:
            return kind(parameters, **{way: True}, **options)
        except RuntimeError:  # older versions fuse on CUDA only
            continue
    return kind(parameters, **options)
