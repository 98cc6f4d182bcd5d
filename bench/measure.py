"""Runs programs and measures them fairly: the load of others, the machine, the commit, a report."""
import datetime
import json
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / f"{datetime.date.today():%Y-%m}"
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-openmp")
ISA = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


def cpu_flags():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        line = next((line for line in file if line.startswith("flags")), "")
    return set(line.split())


def peer_environment(tier, threads):
    """T0: PyTorch as installed. T1: with OpenBLAS on PyTorch's own threads, in its fastest form.
    T2, T2c: a newer one, eager and compiled, by one process, whose load is then known."""
    if tier == "T0":
        return {}
    if tier.startswith("T2"):
        return {"OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    if not OPENBLAS.is_dir():
        sys.exit(f"T1 needs libopenblas0-openmp ({OPENBLAS}): scripts/setup.sh bench")
    # Debian's OpenBLAS does not know newer processors and would fall back to slower kernels.
    core = "SKYLAKEX" if "avx512f" in cpu_flags() else "HASWELL"
    return {"LD_LIBRARY_PATH": str(OPENBLAS), "OPENBLAS_CORETYPE": core,
            "OMP_NUM_THREADS": str(threads)}


def busy_seconds():
    """CPU time of the whole machine, what a hypervisor took from it included."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(x) for x in file.readline().split()[1:9]]
    idle_and_waiting = ticks[3] + ticks[4]
    return (sum(ticks) - idle_and_waiting) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_once(command, environment):
    """The JSON that the command prints last, with its wall time and the cores others used."""
    busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          text=True, check=False)
    wall = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {shlex.join(map(str, command))}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    foreign = max(0.0, (busy_seconds() - busy) - (own_seconds() - own)) / wall
    return {**result, "wall_s": round(wall, 2), "foreign_cores": round(foreign, 3)}


def until_quiet(run, load_limit, tries=10):
    """run(), which ends in run_once, until others used at most `load_limit` cores meanwhile."""
    for attempt in range(tries):
        result = run()
        if result["foreign_cores"] <= load_limit:
            return {**result, "rejected_runs": attempt}
        print(f"  rejected: others used {result['foreign_cores']} cores", file=sys.stderr)
        time.sleep(5)
    sys.exit(f"the machine is not quiet: {tries} runs in turn had more than {load_limit} cores of "
             "other load")


def roofs(programs, threads):
    """What roofs_bench measures: GFLOP/s in registers, GB/s of memory."""
    done = subprocess.run([programs / "roofs_bench", str(threads)], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def cores():
    """Physical cores behind the processors that this process may use: two threads may be of one."""
    def fact(processor, name):
        return Path(f"/sys/devices/system/cpu/cpu{processor}/topology/{name}").read_text("ascii")
    processors = os.sched_getaffinity(0)
    try:
        return len({(fact(p, "physical_package_id"), fact(p, "core_id")) for p in processors})
    except OSError:
        return len(processors)


def machine():
    """Facts of the processor. Its name alone says little on rented machines: family and model tell
    the microarchitecture."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        pairs = [line.split(":", 1) for line in file if ":" in line]
    first = {}
    for key, value in pairs:
        first.setdefault(key.strip(), value.strip())
    flags = cpu_flags()
    return {"cpu": first.get("model name", platform.machine()),
            "family": first.get("cpu family", "?"), "model": first.get("model", "?"),
            "cores": cores(), "hardware_threads": len(os.sched_getaffinity(0)),
            "isa": [flag for flag in ISA if flag in flags], "system": platform.release()}


def processor(where):
    """Name, family and model of machine(), in words."""
    return f"{where['cpu']} (family {where['family']}, model {where['model']})"


def commit():
    """Of the sources; "+changes" when they differ from it, "unknown" without git."""
    if shutil.which("git") is None:
        return "unknown"

    def git(*words):
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True,
                              check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+changes" if changed else "")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_report(name, title, body, facts, folder=RESULTS):
    """DATE-NAME.md for people and .json with every run, in bench/results/MONTH if not elsewhere. A
    name may hold dots."""
    about = {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
             "command": shlex.join(["python3", os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]])}
    where = about["machine"]
    head = (f"# {title}\n\n{about['date']}, commit {about['commit']}, {processor(where)}, "
            f"{where['hardware_threads']} threads of "
            f"{where['cores']} cores, {' '.join(where['isa'])}\n\n    {about['command']}\n\n")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{about['date']}-{name}"
    Path(f"{path}.md").write_text(head + body, encoding="utf-8")
    Path(f"{path}.json").write_text(json.dumps({**about, **facts}, indent=1) + "\n",
                                    encoding="utf-8")
    print(head + body)
    print(f"written: {path}.md and .json")
