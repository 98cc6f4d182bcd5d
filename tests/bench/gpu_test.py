#!/usr/bin/python3
"""scripts/gpu.sh with programs of this test in place of ours: what fails is told, stages end in their
limits, are merged by commit, and are not run twice; what is wrong in its arguments is refused. With
our programs on a simulated GPU: tests/cuda/runtime/gpu_script_test.py.
"""
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import gpu_model  # noqa: E402  (its folder is not a package)

SCRIPT = ROOT / "scripts/gpu.sh"
RESULTS = ROOT / "bench/gpu/results.py"
MOST_SECONDS = 480  # of a stage


def run(*words, code=0, commit="abcdef0123"):
    done = subprocess.run(["bash", SCRIPT, *map(str, words)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHON=sys.executable, COMMIT=commit),
                          timeout=120, check=False)
    assert done.returncode == code, (words, done.returncode, done.stderr, done.stdout)
    return done


def results(*words, code=0):
    done = subprocess.run([sys.executable, RESULTS, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, (words, done.returncode, done.stderr, done.stdout)
    return done


# What a program of ours prints, by its words: the script's branches.
TRAINSCOPE = r"""#!/bin/bash
case "$1" in
  model) touch "${@: -1}" ;;
  train)
    while [[ "$1" != --run-dir ]]; do shift; done
    mkdir -p "$2"
    printf 'kind,step,loss,step_ms\nstep,1,2.5,4\nstep,2,2.25,3\nstep,3,2.0,12.5\nevaluation,3,2,\n' >"$2/metrics.csv"
    echo '{"used_bytes": 1048576, "predicted_bytes": 1048576, "first_loss": 2.5, "last_loss": 2.0}' ;;
  bench)
    echo '{"ops": [{"op": "Add", "phase": "forward", "kernel": "add", "ms": 0.5, "kernel_flops": 1000000000,
      "kernel_bytes": 3000000}, {"op": "Add", "phase": "forward", "kernel": "add", "ms": 0.5,
      "kernel_flops": 1000000000, "kernel_bytes": 3000000}]}' ;;
  verify) echo "why" >&2; exit 3 ;;
esac
"""
SELF_TEST = """#!/bin/bash
echo 'ok   Gelu                 bf16  gelu      7      0       0.0100'
echo 'FAIL Attention            f16   attention 15     2       2.5000'
exit 1
"""


def write_program(bundle, name, text):
    path = bundle / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def write_bundle(bundle):
    write_program(bundle, "trainscope", TRAINSCOPE)
    write_program(bundle, "device_self_test", SELF_TEST)
    (bundle / "data/mlp").mkdir(parents=True)
    (bundle / "data/mlp/meta.json").touch()


def check_ours(lines):
    """The lines of the stages self_test and ours, of the programs above."""
    error, total, row = lines["self_test"]
    assert error["kind"] == "error" and "exit code 1" in error["error"], "what failed is told beside"
    assert total == {"kind": "self_test", "rows": 2, "examples": 22, "failed": 2, "worst_of_limit": 2.5}, total
    assert row["op"] == "Attention" and row["failed"] == 2 and row["type"] == "f16", row
    step, op, second, in_f32 = lines["ours"]
    assert step["workload"] == "toy g1" and step["step_ms"] == 12.5 and step["peak_mib"] == 1.0, step
    assert second["workload"] == "toy g2" and in_f32["workload"] == "toy g1" and in_f32["precision"] == "f32"
    assert op["calls"] == 2 and op["tflops"] == 2.0 and op["gb_per_s"] == 6.0, op


def check_stages(folder):
    """Lines, exit codes and errors of stages, one of which fails; one without a bundle."""
    bundle, out, work = folder / "bundle", folder / "results", folder / "work"
    write_bundle(bundle)
    words = (out, "--work", work, "--device", "cpu")
    done = run(*words, "--bundle", bundle, "self_test", "verify", "ours")
    assert "verify: exit code 1" in done.stdout, done.stdout
    run(*words, "--bundle", folder / "absent", "train")
    found = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    assert found["commit"] == "abcdef0123" and found["toy"] is True
    stages = found["stages"]
    assert list(stages) == ["self_test", "verify", "ours", "train"]
    check_ours({name: stage["lines"] for name, stage in stages.items()})
    assert stages["verify"]["exit_code"] == 1
    errors = stages["verify"]["lines"]
    assert len(errors) == 3 and all("exit code 3: why" in line["error"] for line in errors), errors
    assert stages["train"]["lines"][0]["kind"] == "absent", "a stage without programs is said"
    shown = (out / "gpu.md").read_text(encoding="utf-8")
    assert "| toy g1 | bf16 | 2 | 32 |  | adamw | 1 | 12.5 |" in shown and "no program trainscope" in shown, shown
    assert "Toy sizes" in shown
    with tarfile.open(out / "gpu.tar.gz") as packed:
        assert "./verify.log" in packed.getnames()
    again = run(*words, "--bundle", bundle, "self_test", "verify", "train")
    assert again.stdout.count("done before") == 3, again.stdout
    other = run(*words, "--bundle", bundle, "ours", commit="0123456789")
    assert "done before" not in other.stdout, "what another commit printed does not count"
    found = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    assert found["commit"] == "0123456789" and list(found["stages"]) == ["ours"]


def check_time(folder):
    """A stage that would outlast what is left is ended, and those after it are left out."""
    bundle, out = folder / "slow", folder / "slow-results"
    write_bundle(bundle)
    write_program(bundle, "trainscope", TRAINSCOPE.replace("bench)", "bench) sleep 300;"))
    done = run(out, "--work", folder / "slow-work", "--bundle", bundle, "--device", "cpu", "--seconds",
               "121", "--limit", "5", "ours")
    assert "ours: exit code 124" in done.stdout, done.stdout
    found = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    assert [line["kind"] for line in found["stages"]["ours"]["lines"]] == ["ours"], "what it printed counts"
    left_out = run(out, "--work", folder / "no-work", "--bundle", bundle, "--seconds", "9",
                   "self_test")
    assert "self_test: left out" in left_out.stdout, left_out.stdout


def check_model():
    """Modelled times by hand: a call is bound by its arithmetic, or by its bytes."""
    rates = {"matmul": 2e12, "attention": 1e12, "convolution": 5e11, "bytes": 1e9, "launch": 1e-6}
    bound = {"op": "MatMul", "flops": 4e9, "bytes_read": 1e6, "bytes_written": 5e5}
    assert abs(gpu_model.seconds_of(bound, rates) - 2.001e-3) < 1e-12
    moved = {"op": "Gelu", "flops": 4e12, "bytes_read": 2e6, "bytes_written": 1e6}
    assert abs(gpu_model.seconds_of(moved, rates) - 3.001e-3) < 1e-12, "other kinds are bound by bytes"
    grad = {"op": "ConvGradInput", "flops": 1e9, "bytes_read": 0, "bytes_written": 0}
    assert abs(gpu_model.seconds_of(grad, rates) - 2.001e-3) < 1e-12
    names = [op for op, _ in gpu_model.by_op([bound, moved, bound], rates)]
    assert names == ["MatMul", "Gelu"], "two of 2 ms before one of 3"
    assert abs(gpu_model.seconds_of(moved, rates, {"Gelu": 2.0}) - 6.001e-3) < 1e-12, "bytes as counted"
    factors = gpu_model.counted_factors()
    assert factors["GeluGrad"] == 1.0 and factors["Softmax"] == 2.0, "x three times and y, for x and y"
    for expected, counted, verdict in ((5e5, 4e5, ": not reached."), (6e5, 5e5, ": in between."),
                                       (7e5, 6e5, ": reached.")):
        line = gpu_model.goal_line({"workload": "g1", "per_second": expected, "per_second_counted": counted})
        assert line.strip().endswith(verdict), line
    g1, g5 = gpu_model.WORKLOADS["g1"], gpu_model.WORKLOADS["g5"]
    assert gpu_model.step_flags(g5)[-2:] == ["--momentum", "0.9"]
    assert "--seq" in gpu_model.step_flags(g1) and "--seq" not in gpu_model.step_flags(g5)


def stage(code, *lines):
    return {"exit_code": code, "seconds": 1, "lines": list(lines)}


def write_run(folder, name, stages, **facts):
    """A gpu.json as the script leaves one."""
    found = {"date": "2026-11-26", "time": "12:00:00", "commit": "abcdef0123", "toy": False, "command": f"run {name}",
             **facts, "stages": stages}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def check_merge(folder):
    """Several runs of a commit become one; those that do not belong together are refused."""
    h200 = {"kind": "gpu", "name": "NVIDIA H200"}
    step = {"kind": "ours", "workload": "g1", "step_ms": 63.0}
    first = write_run(folder, "first", {"environment": stage(0, h200), "ours": stage(124),
                                        "train": stage(0, {"kind": "training", "what": "kept"})})
    second = write_run(folder, "second", {"ours": stage(0, step), "train": stage(1)})
    out = folder / "merged"
    out.mkdir()
    results("merge", first, second, out)
    found = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    assert found["command"] == "run first; run second" and found["commit"] == "abcdef0123"
    assert {name: each["exit_code"] for name, each in found["stages"].items()} == {
        "environment": 0, "train": 0, "ours": 0}, "the last that went well"
    assert found["stages"]["train"]["lines"][0]["what"] == "kept"
    assert "| g1 |" in (out / "gpu.md").read_text(encoding="utf-8")
    results("publish", first, second, out)
    assert (out / "2026-11-26-h200-abcdef01.md").is_file() and (out / "2026-11-26-h200-abcdef01.json").is_file()
    other = write_run(folder, "other", {}, commit="0123456789")
    assert "is of commit 0123456789" in results("merge", first, other, out, code=2).stderr
    a100 = write_run(folder, "a100", {"environment": stage(0, {"kind": "gpu", "name": "NVIDIA A100"})})
    assert "several GPUs" in results("merge", first, a100, out, code=2).stderr
    toy = write_run(folder, "toy", {}, toy=True)
    assert "toy sizes are not published" in results("publish", toy, out, code=2).stderr
    assert "is of toy True" in results("merge", first, toy, out, code=2).stderr


def check_limits():
    """Every stage has a limit of at most eight minutes, by name or by default; no limit is of no stage."""
    script = SCRIPT.read_text(encoding="utf-8")
    stages = set(re.findall(r"^stage_(\w+)\(\)", script, re.MULTILINE))
    limits = dict(re.findall(r"\[(\w+)\]=(\d+)", script))
    assert limits and limits.keys() <= stages, limits.keys() - stages
    assert all(0 < int(seconds) <= MOST_SECONDS for seconds in limits.values()), limits
    default = re.search(r"^DEFAULT_STAGES=\(([^)]*)\)", script, re.MULTILINE).group(1).split()
    assert set(default) <= stages, set(default) - stages


def check_arguments(folder):
    assert "no stage nonsense" in run(folder / "none", "nonsense", code=2).stderr
    assert "unknown option" in run(folder / "none", "--nonsense", code=2).stderr
    assert "Usage" in run(code=2).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_model()
        check_limits()
        check_arguments(folder)
        check_merge(folder)
        check_stages(folder)
        check_time(folder)


if __name__ == "__main__":
    main()
