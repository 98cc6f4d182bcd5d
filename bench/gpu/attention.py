#!/usr/bin/env python3
"""Times of attention, forward and backward, by each of PyTorch's ways, at the large workloads'
shapes: JSON lines.

    attention.py [--device cpu --toy]

FLOPs: 4 batch heads length^2 width forward, halved when causal; 2.5 times that backward.
"""
import argparse
import json
import statistics
import time

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# batch, heads, length, width of a head, causal
SHAPES = {"g1": (32, 12, 1024, 64, True), "g2": (16, 16, 1024, 64, True),
          "g3": (128, 16, 128, 64, False), "g3-phase2": (32, 16, 512, 64, False),
          "g4": (4, 32, 2048, 64, True)}
WAYS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
        "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "matmuls": SDPBackend.MATH}


def times(device, work, repeats):
    for _ in range(3):
        work()
    if device == "cpu":
        found = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            found.append(1e3 * (time.perf_counter() - start))
        return statistics.median(found)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


def measured(device, shape, dtype, way, repeats):
    batch, heads, length, width, causal = shape
    q, k, v = (torch.randn(batch, length, heads, width, device=device, dtype=dtype)
               .transpose(1, 2).requires_grad_() for _ in range(3))
    flops = 4 * batch * heads * length * length * width / (2 if causal else 1)
    with sdpa_kernel(WAYS[way]):
        forward = times(device, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                        repeats)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        dy = torch.randn_like(y)
        backward = times(device,
                         lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), repeats)
    return {"forward_ms": round(forward, 5), "backward_ms": round(backward, 5),
            "forward_tflops": round(flops / forward / 1e9, 2),
            "backward_tflops": round(2.5 * flops / backward / 1e9, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--toy", action="store_true", help="a batch of 1, 2 heads")
    args = parser.parse_args()
    for name, shape in SHAPES.items():
        if args.toy:
            shape = (1, 2, 64, 32, shape[4])
        for dtype in (torch.bfloat16, torch.float32):
            for way in WAYS:
                line = {"kind": "attention", "workload": name, "shape": list(shape), "way": way,
                        "precision": "bf16" if dtype == torch.bfloat16 else "f32",
                        "toy": args.toy}
                try:
                    line.update(measured(args.device, shape, dtype, way, 3 if args.toy else 15))
                except (RuntimeError, torch.OutOfMemoryError) as error:
                    line["absent"] = str(error).splitlines()[0][:120]
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
