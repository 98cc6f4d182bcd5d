"""The benchmark models in PyTorch: the same networks as `trainscope model mlp` and `gpt2` build."""
import inspect
import math

import torch
from torch import nn
from torch.nn import functional as F

SDPA = hasattr(F, "scaled_dot_product_attention")


class Mlp(nn.Module):
    def __init__(self, dims):
        super().__init__()
        layers = []
        for inputs, outputs in zip(dims, dims[1:]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.dims, self.net = dims, nn.Sequential(*layers[:-1])

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)

    def flops(self, batch):
        """2MNK per product, three products a layer; the first needs no gradient of its input."""
        products = [2 * batch * i * o for i, o in zip(self.dims, self.dims[1:])]
        return 3 * sum(products) - products[0]


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        hidden = torch.ones(context, context, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3 * self.heads, width // self.heads)
        q, k, v = heads.transpose(1, 2).split(self.heads, 1)
        if SDPA:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(q.shape[-1]))
            scores = scores.masked_fill(self.hidden[:length, :length], float("-inf"))
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.attention = Attention(width, heads, context)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """GPT-2 without biases, with the exact GELU and a tied head; initialised as GPT-2 is."""

    def __init__(self, layers, heads, width, vocab, context):
        super().__init__()
        self.sizes = layers, width, vocab
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = Norm(width)
        residual = [m for b in self.blocks for m in (b.attention.out, b.down)]
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                scale = math.sqrt(2 * layers) if any(module is r for r in residual) else 1.0
                nn.init.normal_(module.weight, 0.0, 0.02 / scale)

    def logits(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    def forward(self, ids, labels):
        return F.cross_entropy(self.logits(ids).flatten(0, 1), labels.flatten())

    def flops(self, batch, length):
        """2MNK per product; attention in full, although half of it is masked."""
        layers, width, vocab = self.sizes
        tokens = batch * length
        forward = layers * tokens * (24 * width * width + 4 * length * width)
        return 3 * (forward + 2 * tokens * width * vocab)


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
