#!/usr/bin/env python3
"""Small traces of PyTorch on the device, as torch.profiler writes them, and a memory snapshot.

    traces.py FOLDER [--device cpu]

Three profiled steps of a GPT-2 of 2 layers: waiting for the device after each step, not waiting,
and replaying a step as a CUDA graph; with shapes, stacks, memory and FLOPs. The snapshot is what
torch.cuda.memory._snapshot() gives after two steps, as JSON, with stacks of at most 6 frames.
"""
import argparse
import gzip
import json
import re
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import peer_models
from workloads import WORKLOADS

STEPS = 3
STACK = 6  # frames of an allocation
HERE = str(Path(__file__).resolve().parents[2]) + "/"
# Where Python keeps modules: of no interest, and of the machine alone.
FOLDERS = re.compile(r"/[^\s\"':()]*/(?:site-packages|dist-packages|python3\.\d+)/")


def without_folders(text):
    """Names of files without the folders that only this machine has."""
    text = FOLDERS.sub("", text.replace(HERE, ""))
    return re.sub(r'("(?:host_name|traceName)": ")[^"]*', r"\1removed", text)


class Training:
    def __init__(self, device, capturable):
        torch.manual_seed(1)
        self.device, sizes = device, WORKLOADS["small"]
        self.model = peer_models.make_model(sizes).to(device)
        generator = torch.Generator().manual_seed(2)
        self.batch = [t.to(device) for t in self.model.batch(generator)]
        options = {"lr": 3e-4, "fused": True} if device == "cuda" else {"lr": 3e-4}
        if capturable:
            options["capturable"] = True
        self.optimizer = torch.optim.AdamW(self.model.parameters(), **options)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with record_function("forward"), torch.autocast(self.device, torch.bfloat16):
            loss = self.model(*self.batch)
        with record_function("backward"):
            loss.backward()
        with record_function("update"):
            self.optimizer.step()
        return loss


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def profiled(path, device, step, waits):
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True, with_stack=True, with_flops=True,
                 profile_memory=True, schedule=schedule(wait=0, warmup=2, active=STEPS, repeat=1),
                 on_trace_ready=lambda made: made.export_chrome_trace(str(path))) as recorded:
        for _ in range(STEPS + 2):
            step()
            if waits:
                wait(device)
            recorded.step()
        wait(device)
    packed = path.with_suffix(".json.gz")
    text = without_folders(path.read_text(encoding="utf-8"))
    with gzip.open(packed, "wt", 9, encoding="utf-8") as target:
        target.write(text)
    path.unlink()
    events = json.loads(text)["traceEvents"]
    on_device = sum(1 for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    print(json.dumps({"kind": "trace", "file": packed.name, "bytes": len(text),
                      "packed_bytes": packed.stat().st_size, "events": len(events),
                      "device_events": on_device}), flush=True)


def replayed(training):
    """A function that replays a step as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            training.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    return graph.replay


def shortened(value):
    """The snapshot with stacks cut, so that it stays small."""
    if isinstance(value, dict):
        return {k: shortened(v[:STACK] if k == "frames" else v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(v) for v in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


def snapshot(folder):
    torch.cuda.memory._record_memory_history(max_entries=20000, stacks="python")
    training = Training("cuda", False)
    for _ in range(2):
        training.step()
    torch.cuda.synchronize()
    taken = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    packed = folder / "memory-snapshot.json.gz"
    with gzip.open(packed, "wt", 9) as target:
        target.write(without_folders(json.dumps(shortened(taken))))
    print(json.dumps({"kind": "snapshot", "file": packed.name,
                      "packed_bytes": packed.stat().st_size,
                      "segments": len(taken["segments"]),
                      "trace_entries": sum(len(t) for t in taken["device_traces"])}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    training = Training(args.device, False)
    training.step()
    profiled(args.folder / "pytorch-gpt-waiting.json", args.device, training.step, True)
    profiled(args.folder / "pytorch-gpt.json", args.device, training.step, False)
    if args.device == "cpu":
        print(json.dumps({"kind": "absent", "what": "CUDA graph and memory snapshot",
                          "why": "no CUDA device"}))
        return
    snapshot(args.folder)
    replay = replayed(Training("cuda", True))
    profiled(args.folder / "pytorch-gpt-graph.json", "cuda", replay, False)


if __name__ == "__main__":
    main()
