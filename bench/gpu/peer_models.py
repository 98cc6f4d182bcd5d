"""The large workloads in PyTorch: GPT-2, BERT, a LLaMA-style model and ResNet-50, with their FLOPs.

2MNK per matmul (attention in full, also when causal), 2 * outputs * K per convolution; a step
counts three times the forward pass, less the input gradient of a first layer that needs none.
Norms, activations, softmax, tables and the update count nothing, nor does what is computed again.
"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight, 1e-5).to(x.dtype)


def make_norm(sizes):
    if sizes.get("norm") == "rms":
        return RootMeanSquareNorm(sizes["width"])
    return nn.LayerNorm(sizes["width"], 1e-5, bias=sizes["bias"])


def turned(x, cos, sin):
    """Rotary positions: halves of a head's width are turned against each other."""
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, self.heads = sizes["width"], sizes["heads"]
        self.key_heads, self.head = sizes.get("key_heads", self.heads), width // self.heads
        self.causal, self.dropout = sizes["causal"], sizes["dropout"]
        self.qkv = nn.Linear(width, (self.heads + 2 * self.key_heads) * self.head,
                             bias=sizes["bias"])
        self.out = nn.Linear(width, width, bias=sizes["bias"])
        self.rotary = sizes.get("rotary", False)
        if self.rotary:
            powers = -torch.arange(0, self.head, 2).float() / self.head
            angle = torch.outer(torch.arange(sizes["length"]).float(), 10000.0 ** powers)
            self.register_buffer("cos", angle.cos().repeat(1, 2), persistent=False)
            self.register_buffer("sin", angle.sin().repeat(1, 2), persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, -1, self.head).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.key_heads, self.key_heads), 1)
        if self.rotary:
            q, k = turned(q, self.cos, self.sin), turned(k, self.cos, self.sin)
        if self.key_heads != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal,
                                           dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, self.activation = sizes["width"], sizes["activation"]
        hidden, gated = sizes.get("hidden", 4 * width), sizes["activation"] == "swiglu"
        self.up = nn.Linear(width, 2 * hidden if gated else hidden, bias=sizes["bias"])
        self.down = nn.Linear(hidden, width, bias=sizes["bias"])

    def forward(self, x):
        x = self.up(x)
        if self.activation == "swiglu":
            gate, x = x.chunk(2, -1)
            return self.down(F.silu(gate) * x)
        form = "tanh" if self.activation == "gelu_tanh" else "none"
        return self.down(F.gelu(x, approximate=form))


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.norm1, self.attention = make_norm(sizes), Attention(sizes)
        self.norm2, self.mlp = make_norm(sizes), Mlp(sizes)
        self.norm_last, self.drop = sizes.get("norm_last", False), nn.Dropout(sizes["dropout"])

    def forward(self, x):
        if self.norm_last:
            x = self.norm1(x + self.drop(self.attention(x)))
            return self.norm2(x + self.drop(self.mlp(x)))
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class LanguageModel(nn.Module):
    """GPT-2 (norms first, causal), BERT (norms last, masked tokens, next sentence) or LLaMA."""

    def __init__(self, sizes):
        super().__init__()
        width, self.sizes, self.bert = sizes["width"], sizes, sizes.get("bert", False)
        self.tokens = nn.Embedding(sizes["vocab"], width)
        self.positions = None if sizes.get("rotary") else nn.Embedding(sizes["context"], width)
        self.drop, self.norm = nn.Dropout(sizes["dropout"]), make_norm(sizes)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes["layers"]))
        if self.bert:
            self.segments, self.dense = nn.Embedding(2, width), nn.Linear(width, width)
            self.head_norm, self.pool = make_norm(sizes), nn.Linear(width, width)
            self.next_sentence = nn.Linear(width, 2)
        self.head = nn.Linear(width, sizes["vocab"], bias=self.bert)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0.0, 0.02)
        if sizes["tied"]:
            self.head.weight = self.tokens.weight

    def embedded(self, ids, segments):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        if self.bert:
            x = self.norm(x + self.segments(segments))
        return self.drop(x)

    def forward(self, ids, target, segments=None, where=None, follows=None):
        x = self.embedded(ids, segments)
        for block in self.blocks:
            recomputed = self.sizes.get("recompute", False)
            x = checkpoint(block, x, use_reentrant=False) if recomputed else block(x)
        if not self.bert:
            return F.cross_entropy(self.head(self.norm(x).flatten(0, 1)), target.flatten())
        hidden = self.head_norm(F.gelu(self.dense(x.flatten(0, 1)[where])))
        loss = F.cross_entropy(self.head(hidden), target)
        return loss + F.cross_entropy(self.next_sentence(torch.tanh(self.pool(x[:, 0]))), follows)

    def batch(self, generator):
        batch, length = self.sizes["batch"], self.sizes["length"]
        ids = torch.randint(self.sizes["vocab"], (batch, length + 1), generator=generator)
        if not self.bert:
            return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        segments = (torch.arange(length) >= length // 2).long().expand(batch, length).contiguous()
        ids = ids[:, 1:].contiguous()
        order = torch.rand((batch, length), generator=generator).argsort(1)
        where = order[:, : self.sizes["predictions"]].sort(1)[0]
        where = (where + length * torch.arange(batch)[:, None]).flatten()
        follows = torch.randint(2, (batch,), generator=generator)
        return ids, ids.flatten()[where], segments, where, follows

    def flops(self):
        s, width, length = self.sizes, self.sizes["width"], self.sizes["length"]
        rows = s["batch"] * length
        keys = 2 * width * s.get("key_heads", s["heads"]) // s["heads"]
        parts = 3 if s["activation"] == "swiglu" else 2
        mlp = parts * width * s.get("hidden", 4 * width)
        block = 2 * (width * (width + keys) + width * width + mlp) + 4 * length * width
        predicted = s["batch"] * s["predictions"] if self.bert else rows
        head = 2 * width * (s["vocab"] + (width if self.bert else 0))
        pooled = s["batch"] * 2 * width * (width + 2) if self.bert else 0
        return 3 * (rows * s["layers"] * block + predicted * head + pooled)


def conv_norm(inputs, outputs, kernel, stride=1):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(*conv_norm(inputs, width, 1), nn.ReLU(),
                                  *conv_norm(width, width, 3, stride), nn.ReLU(),
                                  *conv_norm(width, outputs, 1))
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Sequential(*conv_norm(inputs, outputs, 1, stride))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    """ResNet-50: FLOPs come from the layers' own shapes."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes, inputs = sizes, sizes["width"]
        layers = [*conv_norm(3, inputs, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        for stage, count in enumerate(sizes["blocks"]):
            for number in range(count):
                width = sizes["width"] << stage
                layers.append(Bottleneck(inputs, width, 2 if stage and not number else 1))
                inputs = 4 * width
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                 nn.Linear(inputs, sizes["classes"]))

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)

    def batch(self, generator):
        sizes = self.sizes
        images = torch.randn((sizes["batch"],) + sizes["image"], generator=generator)
        return images, torch.randint(sizes["classes"], (sizes["batch"],), generator=generator)

    def flops(self):
        seen = []

        def note(layer, _, result):
            seen.append(2 * result.numel() * layer.weight[0].numel())

        layers = [m for m in self.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
        hooks = [layer.register_forward_hook(note) for layer in layers]
        self.eval()  # running statistics stay as they are
        with torch.no_grad():
            self.net(torch.zeros((1,) + self.sizes["image"]))
        self.train()
        for hook in hooks:
            hook.remove()
        return (3 * sum(seen) - seen[0]) * self.sizes["batch"]


class Lamb(torch.optim.Optimizer):
    """LAMB over lists of tensors: AdamW's direction, scaled by |w| / |update| for each tensor."""

    def __init__(self, groups, lr, betas=(0.9, 0.999), eps=1e-6):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            weights = [p for p in group["params"] if p.grad is not None]
            if weights:
                self.update(group, weights, [p.grad for p in weights])

    def update(self, group, weights, gradients):
        first_decay, second_decay = group["betas"]
        for p in weights:
            if p not in self.state:
                self.state[p] = {"first": torch.zeros_like(p), "second": torch.zeros_like(p)}
        first = [self.state[p]["first"] for p in weights]
        second = [self.state[p]["second"] for p in weights]
        count = group["count"] = group.get("count", 0) + 1
        torch._foreach_mul_(first, first_decay)
        torch._foreach_add_(first, gradients, alpha=1 - first_decay)
        torch._foreach_mul_(second, second_decay)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - second_decay)
        below = torch._foreach_sqrt(torch._foreach_div(second, 1 - second_decay ** count))
        torch._foreach_add_(below, group["eps"])
        change = torch._foreach_div(torch._foreach_div(first, 1 - first_decay ** count), below)
        torch._foreach_add_(change, weights, alpha=group["weight_decay"])
        ratios = torch._foreach_div(torch._foreach_norm(weights), torch._foreach_norm(change))
        ratios = [torch.where(torch.isfinite(r) & (r > 0), r, torch.ones_like(r)) for r in ratios]
        torch._foreach_mul_(change, ratios)
        torch._foreach_add_(weights, change, alpha=-group["lr"])


def make_model(sizes):
    return (LanguageModel if sizes["kind"] == "language" else ResNet)(sizes)


def make_optimizer(model, name):
    """Fused where PyTorch has it: decay 0.1 on weights of rank 2 and more."""
    weights = list(model.parameters())
    if name == "sgd":
        return torch.optim.SGD(weights, lr=0.01, momentum=0.9, fused=True)
    groups = [{"params": [p for p in weights if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in weights if p.dim() < 2], "weight_decay": 0.0}]
    if name == "lamb":
        return Lamb(groups, lr=1e-3)
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True)
