#!/usr/bin/env python3
"""PyTorch on a large workload: prints one JSON line.

    peers.py g1 --precision bf16 --mode max-autotune
    peers.py g1 --device cpu --toy            # the same path at a size that a CPU runs in seconds

A step is zero_grad + forward + loss + backward + update on random data that lies on the device.
Times are between events, one a step, with one synchronization in all: the host may run ahead.
"""
import argparse
import contextlib
import json
import statistics
import time

import torch

import peer_models
import workloads

PAPER_FLOPS = 989e12  # bf16 of an H100 or H200 by its data sheet


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=workloads.WORKLOADS)
    parser.add_argument("--mode", default="eager",
                        choices=("eager", "default", "reduce-overhead", "max-autotune",
                                 "max-autotune-no-cudagraphs"), help="eager or torch.compile's")
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="bf16",
                        help="bf16 is autocast over weights in f32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--optimizer", choices=("sgd", "adamw", "lamb"))
    parser.add_argument("--accumulate", type=int, default=1, help="batches for an update")
    parser.add_argument("--recompute", action="store_true", help="checkpoint around every block")
    parser.add_argument("--toy", action="store_true", help="a tiny model of the same kind")
    return parser.parse_args()


def sizes_of(args):
    sizes = workloads.sizes_of(args.workload, args.toy)
    for name in ("batch", "length", "optimizer"):
        if getattr(args, name) is not None:
            sizes[name] = getattr(args, name)
    if args.recompute:
        sizes["recompute"] = True
    return sizes


def set_precision(name):
    reduced = name != "f32"
    torch.set_float32_matmul_precision("high" if reduced else "highest")
    torch.backends.cudnn.allow_tf32 = reduced
    torch.backends.cudnn.benchmark = True


class Training:
    """A model with its data and its update."""

    def __init__(self, args):
        self.args, self.sizes = args, sizes_of(args)
        torch.manual_seed(1)
        set_precision(args.precision)
        model = peer_models.make_model(self.sizes)
        self.flops = model.flops() * args.accumulate
        self.parameters = sum(p.numel() for p in model.parameters())
        generator = torch.Generator().manual_seed(2)
        self.batches = [self.placed(model.batch(generator)) for _ in range(2)]
        model.to(args.device)
        if self.sizes["kind"] == "images":
            model.to(memory_format=torch.channels_last)
        self.optimizer = peer_models.make_optimizer(model, self.sizes["optimizer"])
        self.model = model if args.mode == "eager" else torch.compile(model, mode=args.mode)

    def placed(self, batch):
        batch = [t.to(self.args.device) for t in batch]
        return [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t
                for t in batch]

    def step(self, number):
        self.optimizer.zero_grad(set_to_none=True)
        for part in range(self.args.accumulate):
            reduced = self.args.precision == "bf16"
            with (torch.autocast(self.args.device, torch.bfloat16) if reduced
                  else contextlib.nullcontext()):
                loss = self.model(*self.batches[(number + part) % 2])
            (loss / self.args.accumulate).backward()
        self.optimizer.step()
        return loss.detach().clone()


def times_on_device(training, steps):
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for number in range(steps):
        loss = training.step(number)
        marks[number + 1].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])], loss


def times_on_host(training, steps):
    times = []
    for number in range(steps):
        start = time.perf_counter()
        loss = training.step(number)
        times.append(1e3 * (time.perf_counter() - start))
    return times, loss


def report(training, times, first, last, warm_up_seconds):
    args, sizes, middle = training.args, training.sizes, statistics.median(times)
    rate = 1e3 / middle * args.accumulate
    result = {
        "kind": "peer", "workload": args.workload, "mode": args.mode,
        "precision": args.precision, "torch": torch.__version__, "device": args.device,
        "toy": args.toy, "batch": sizes["batch"], "length": sizes.get("length"),
        "optimizer": sizes["optimizer"], "accumulate": args.accumulate,
        "recompute": args.recompute, "parameters": training.parameters, "steps": len(times),
        "step_ms": round(middle, 4), "step_ms_min": round(min(times), 4),
        "step_ms_max": round(max(times), 4), "samples_per_s": round(rate * sizes["batch"], 2),
        "gflop_per_step": round(training.flops / 1e9, 3),
        "tflops": round(training.flops / middle / 1e9, 3),
        "of_989_tflops": round(training.flops / middle / 1e9 / (PAPER_FLOPS / 1e12), 4),
        "warm_up_s": round(warm_up_seconds, 1), "loss_first": first, "loss_last": last,
    }
    if sizes.get("length"):
        result["tokens_per_s"] = round(rate * sizes["batch"] * sizes["length"], 1)
    if args.device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
        result["peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
        result["reserved_mib"] = round(torch.cuda.max_memory_reserved() / 2**20, 1)
    return result


def main():
    args = arguments()
    training = Training(args)
    start, first = time.perf_counter(), None
    for number in range(args.warm_up):
        loss = training.step(number)
        first = loss.item() if first is None else first
    warm_up_seconds = time.perf_counter() - start
    measure = times_on_device if args.device == "cuda" else times_on_host
    times, loss = measure(training, args.steps)
    print(json.dumps(report(training, times, first, loss.item(), warm_up_seconds)), flush=True)


if __name__ == "__main__":
    main()
