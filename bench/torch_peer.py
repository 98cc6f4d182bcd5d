#!/usr/bin/python3
"""PyTorch on the workloads of `trainscope bench`: prints one JSON line.

    torch_peer.py w3 --steps 5 --threads 2

A step is zero_grad + forward + loss + backward + update on synthetic data that is there already.
Defined as in cli/bench_workloads.cpp; FLOPs are counted as `trainscope bench` counts them.
"""
import argparse
import json
import statistics
import time

import torch

import torch_models

WARM_UP_STEPS = 3


def mlp_workload(optimizer):
    def make(batch, _):
        model = torch_models.Mlp((784, 512, 512, 10))
        data = torch.randn(batch, 784), torch.randint(10, (batch,))
        return model, optimizer(model), data, model.flops(batch)
    return make, 128, 0


def gpt_workload():
    def make(batch, length):
        model = torch_models.Gpt(layers=6, heads=6, width=384, vocab=65, context=length)
        data = torch.randint(65, (batch, length)), torch.randint(65, (batch, length))
        return model, adamw(model), data, model.flops(batch, length)
    return make, 12, 256


def sgd(model):
    return torch_models.sgd(model, lr=0.01)


def adamw(model):
    return torch_models.adamw(model, lr=3e-4, betas=(0.9, 0.95))


# A function that makes model, optimizer, data and FLOPs; batch; tokens of an example or 0.
WORKLOADS = {"w1-sgd": mlp_workload(sgd), "w1-adamw": mlp_workload(adamw), "w3": gpt_workload()}


def step(model, optimizer, data):
    """The loss as a number: its tensor would keep this step's graph alive through the next one."""
    optimizer.zero_grad(set_to_none=True)
    loss = model(*data)
    loss.backward()
    optimizer.step()
    return loss.item()


def peak_rss_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=20, help="timed ones; 3 more come before them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seq", type=int)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    make, batch, length = WORKLOADS[options.workload]
    batch, length = options.batch or batch, options.seq or length
    model, optimizer, data, flops = make(batch, length)
    losses, times = [], []
    for _ in range(WARM_UP_STEPS + options.steps):
        start = time.perf_counter()
        losses.append(step(model, optimizer, data))
        times.append(1e3 * (time.perf_counter() - start))
    times = times[WARM_UP_STEPS:]
    median = statistics.median(times)
    result = {"peer": f"torch {torch.__version__}", "workload": options.workload,
              "step_ms": median, "step_ms_min": min(times), "step_ms_max": max(times),
              "samples_per_s": 1e3 * batch / median, "batch": batch, "steps": options.steps,
              "threads": options.threads, "gflop_per_step": flops / 1e9,
              "gflops": flops / median / 1e6, "peak_rss_mb": peak_rss_mb(),
              "parameters": sum(p.numel() for p in model.parameters()),
              "loss_first": losses[0], "loss_last": losses[-1]}
    if length:
        result.update(tokens_per_s=1e3 * batch * length / median, seq=length)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
