#!/usr/bin/env python3
"""What the machine is: GPU, driver, libraries and clocks, as JSON lines. Nothing is changed."""
import json
import os
import platform
import shutil
import subprocess
import sys

QUERIES = ("name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,"
           "clocks.max.mem,power.draw,power.limit,temperature.gpu,pstate,mig.mode.current,"
           "compute_mode,persistence_mode,ecc.mode.current,pcie.link.gen.current,"
           "pcie.link.width.current,vbios_version")


def output(*command):
    """What a program prints, or why it printed nothing."""
    if shutil.which(command[0]) is None:
        return f"absent: {command[0]}"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout or done.stderr).strip()


def line(kind, **fields):
    print(json.dumps({"kind": kind, **fields}), flush=True)


def gpu():
    text = output("nvidia-smi", f"--query-gpu={QUERIES}", "--format=csv,noheader,nounits")
    values = [v.strip() for v in text.splitlines()[0].split(",")] if text else []
    names = QUERIES.split(",")
    if len(values) != len(names):
        line("absent", what="nvidia-smi's query", why=text[:200])
        return
    line("gpu", **dict(zip(names, values)))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((t.split(":", 1)[1].strip() for t in file if t.startswith("model name")), "?")
    line("machine", cpu=model, cores=os.cpu_count(),
         system=f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}",
         python=sys.version.split()[0],
         nvcc=output("nvcc", "--version").splitlines()[-1],
         nvcc_release=output("nvcc", "--version").splitlines()[-2:][0],
         compiler=output("g++", "--version").splitlines()[0],
         ncu=output("ncu", "--version").splitlines()[-1])


def pytorch():
    try:
        import torch
    except ImportError as error:
        line("absent", what="torch", why=str(error))
        return
    found = {"torch": torch.__version__, "cuda": torch.version.cuda,
             "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else 0}
    try:
        import triton
        found["triton"] = triton.__version__
    except ImportError:
        found["triton"] = "absent"
    if torch.cuda.is_available():
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        made = torch.cuda.get_device_properties(0)
        line("device", **{name: getattr(made, name) for name in dir(made)
                          if isinstance(getattr(made, name), (int, str)) and name[0] != "_"})
    else:
        line("absent", what="CUDA device", why="torch.cuda.is_available() is false")
    line("pytorch", **found)


def packages():
    from importlib import metadata
    names = sorted((d.metadata["Name"], d.version) for d in metadata.distributions()
                   if (d.metadata["Name"] or "").lower().startswith(("nvidia-", "torch", "triton")))
    line("packages", **dict(names))


def main():
    gpu()
    machine()
    packages()
    pytorch()


if __name__ == "__main__":
    main()
