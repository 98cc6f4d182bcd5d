#!/usr/bin/python3
"""PyTorch on the workloads of `trainscope bench`: prints one JSON line.

    torch_peer.py w3 --steps 5 --threads 2

A step is zero_grad + forward + loss + backward + update on synthetic data that is there already.
Defined as in engine/run/bench/bench_workloads.cpp; FLOPs are counted as `trainscope bench` counts them.
"""
import argparse
import json
import statistics
import time

import torch

import torch_models

WARM_UP_STEPS = 3


def sgd(model):
    return torch_models.sgd(model, lr=0.01)


def adamw(model):
    return torch_models.adamw(model, lr=3e-4, betas=(0.9, 0.95))


def mlp(batch, _):
    return (torch_models.mlp((784, 512, 512, 10)),
            (torch.randn(batch, 784), torch.randint(10, (batch,))))


def lenet(batch, _):
    return torch_models.lenet(), (torch.randn(batch, 1, 32, 32), torch.randint(10, (batch,)))


def resnet18(batch, _):
    return torch_models.resnet18(), (torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,)))


def tokens(vocab, batch, length):
    return torch.randint(vocab, (batch, length)), torch.randint(vocab, (batch, length))


def character_gpt(batch, length):
    model = torch_models.Gpt(layers=6, heads=6, width=384, vocab=65, context=length, bias=False,
                             gelu="none")
    return model, tokens(65, batch, length)


def gpt2_124m(batch, length):
    model = torch_models.Gpt(layers=12, heads=12, width=768, vocab=50304, context=1024, bias=True,
                             gelu="tanh")
    return model, tokens(50304, batch, length)


def bert(batch, length):
    model = torch_models.Bert(layers=4, heads=12, width=768, vocab=30522, context=512, dropout=0.1)
    ids, labels = tokens(30522, batch, length)
    hidden = torch.rand((batch, length)) >= 0.15  # 15 % of the positions count
    return model, (ids, labels.masked_fill(hidden, -100), torch.randint(2, (batch, length)))


def lstm(batch, length):
    return torch_models.Recurrent(layers=2, width=512, vocab=10000), tokens(10000, batch, length)


# A function that makes model and data, the optimizer, the batch, tokens of an example or 0.
WORKLOADS = {"w1-sgd": (mlp, sgd, 128, 0), "w1-adamw": (mlp, adamw, 128, 0),
             "w2-lenet": (lenet, adamw, 32, 0), "w2-resnet18": (resnet18, adamw, 32, 0),
             "w3": (character_gpt, adamw, 12, 256), "w4": (gpt2_124m, adamw, 4, 64),
             "w4-b1t256": (gpt2_124m, adamw, 1, 256), "w4-b4t256": (gpt2_124m, adamw, 4, 256),
             "w5": (bert, adamw, 8, 128), "w6-lstm": (lstm, adamw, 16, 128)}


def step(model, optimizer, data, dtype):
    """The loss as a number: its tensor would keep this step's graph alive through the next one."""
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
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
    parser.add_argument("--compile", action="store_true", help="through torch.compile, 2.0 and up")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32",
                        help="bf16: forward and loss under torch.autocast, parameters in f32")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    make, make_optimizer, batch, length = WORKLOADS[options.workload]
    batch, length = options.batch or batch, options.seq or length
    model, data = make(batch, length)
    optimizer, flops = make_optimizer(model), model.flops(data[0])
    trained = torch.compile(model) if options.compile else model
    losses, times = [], []
    for _ in range(WARM_UP_STEPS + options.steps):
        start = time.perf_counter()
        losses.append(step(trained, optimizer, data, options.dtype))
        times.append(1e3 * (time.perf_counter() - start))
    times = times[WARM_UP_STEPS:]
    median = statistics.median(times)
    peer = " ".join(["torch", torch.__version__, *(["compiled"] if options.compile else []),
                     *(["autocast to bf16"] if options.dtype == "bf16" else [])])
    result = {"peer": peer, "workload": options.workload,
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
