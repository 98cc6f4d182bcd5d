#!/usr/bin/env python3
"""Times of PyTorch's own kernels for single ops at the large workloads' shapes: JSON lines.

    ops.py [--device cpu --toy]

Bytes are compulsory ones: each input read once, each output written once.
"""
import argparse
import json
import statistics
import time

import torch
from torch.nn import functional as F


def timed(device, work, repeats=15):
    """Median milliseconds of work()."""
    for _ in range(3):
        work()
    if device == "cpu":
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


class Ops:
    """Each method of a name in NAMES gives (forward, backward, bytes of each)."""

    NAMES = ("add", "gelu", "layer_norm", "softmax", "cross_entropy", "embedding", "dropout",
             "column_sum", "transposed_copy", "cast")

    def __init__(self, device, dtype, toy):
        self.device, self.dtype = device, dtype
        self.rows, self.width, self.vocab = (64, 32, 128) if toy else (32768, 768, 50304)
        self.size = torch.empty((), dtype=dtype).element_size()

    def random(self, *shape):
        return torch.randn(*shape, device=self.device, dtype=self.dtype).requires_grad_()

    def differentiated(self, inputs, result, read_forward, read_backward):
        """`read_...`: bytes read and written by each pass."""
        y = result()
        dy = torch.randn_like(y)
        return (result, lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True),
                read_forward, read_backward)

    def matrix_bytes(self, count, width=None):
        return count * self.rows * (width or self.width) * self.size

    def add(self):
        x, y = self.random(self.rows, self.width), self.random(self.rows, self.width)
        return lambda: x.detach() + y.detach(), None, self.matrix_bytes(3), 0

    def gelu(self):
        x = self.random(self.rows, 4 * self.width)
        bytes_moved = self.matrix_bytes(1, 4 * self.width)
        return self.differentiated([x], lambda: F.gelu(x, approximate="tanh"), 2 * bytes_moved,
                                   3 * bytes_moved)

    def layer_norm(self):
        x, w, b = self.random(self.rows, self.width), self.random(self.width), self.random(self.width)
        return self.differentiated([x, w, b], lambda: F.layer_norm(x, (self.width,), w, b),
                                   self.matrix_bytes(2), self.matrix_bytes(3))

    def softmax(self):
        x = self.random(self.rows, 1024)
        return self.differentiated([x], lambda: F.softmax(x, -1), self.matrix_bytes(2, 1024),
                                   self.matrix_bytes(3, 1024))

    def cross_entropy(self):
        x = self.random(self.rows, self.vocab)
        labels = torch.randint(self.vocab, (self.rows,), device=self.device)
        return self.differentiated([x], lambda: F.cross_entropy(x, labels),
                                   self.matrix_bytes(1, self.vocab),
                                   self.matrix_bytes(2, self.vocab))

    def embedding(self):
        table = self.random(self.vocab, self.width)
        ids = torch.randint(self.vocab, (self.rows,), device=self.device)
        return self.differentiated([table], lambda: F.embedding(ids, table), self.matrix_bytes(2),
                                   self.matrix_bytes(1) + table.numel() * self.size)

    def dropout(self):
        x = self.random(self.rows, self.width)
        return self.differentiated([x], lambda: F.dropout(x, 0.1), self.matrix_bytes(2),
                                   self.matrix_bytes(2))

    def column_sum(self):
        x = self.random(self.rows, 4 * self.width).detach()
        return lambda: x.sum(0), None, self.matrix_bytes(1, 4 * self.width), 0

    def transposed_copy(self):
        x = self.random(self.rows // 32, 32, self.width).detach()
        return lambda: x.transpose(0, 1).contiguous(), None, self.matrix_bytes(2), 0

    def cast(self):
        x = torch.randn(self.rows, self.width, device=self.device)
        elements = self.rows * self.width
        return lambda: x.to(torch.bfloat16), None, elements * 6, 0


def updates(device, toy):
    """AdamW and the norm of all gradients over as many weights as GPT-2 124M has, in f32."""
    count = 1000 if toy else 124_475_904
    weights = torch.randn(count, device=device).requires_grad_()
    weights.grad = torch.randn(count, device=device)
    optimizer = torch.optim.AdamW([weights], lr=1e-4, fused=True)
    ms = timed(device, optimizer.step)
    yield {"op": "adamw fused", "precision": "f32", "forward_ms": round(ms, 5),
           "forward_gb_per_s": round(28 * count / ms / 1e6, 1)}
    ms = timed(device, lambda: torch.linalg.vector_norm(weights.grad))
    yield {"op": "norm of gradients", "precision": "f32", "forward_ms": round(ms, 5),
           "forward_gb_per_s": round(4 * count / ms / 1e6, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--toy", action="store_true", help="a few rows")
    args = parser.parse_args()
    for dtype in (torch.float32, torch.bfloat16):
        ops = Ops(args.device, dtype, args.toy)
        for name in Ops.NAMES:
            forward, backward, forward_bytes, backward_bytes = getattr(ops, name)()
            line = {"kind": "op", "op": name, "toy": args.toy,
                    "precision": "f32" if dtype == torch.float32 else "bf16"}
            ms = timed(args.device, forward)
            line.update(forward_ms=round(ms, 5),
                        forward_gb_per_s=round(forward_bytes / ms / 1e6, 1))
            if backward is not None:
                ms = timed(args.device, backward)
                line.update(backward_ms=round(ms, 5),
                            backward_gb_per_s=round(backward_bytes / ms / 1e6, 1))
            print(json.dumps(line), flush=True)
    for line in updates(args.device, args.toy):
        print(json.dumps({"kind": "op", "toy": args.toy, **line}), flush=True)


if __name__ == "__main__":
    main()
