#!/usr/bin/python3
"""scripts/gpu.sh from end to end with our programs on the simulated GPU, at toy sizes: gpu_script_test.py BUILD NVCC

Every stage runs, in two calls of the script, whose results are merged; a third call finds all done. What is absent on
the machine (a GPU for the small programs that NVCC compiles, PyTorch) must say so. Exit code 77: the back end is not
built.
"""
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import MODELS, expect, program

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts/gpu.sh"
COMMIT = "abcdef0123"
# Who a stage's lines come from; the others need PyTorch.
OURS = ("self_test", "verify", "train", "ours", "ours_g3", "ours_g4", "ours_g5", "profiles")
PROGRAMS = ("launches", "bandwidth", "matmuls", "matmul_bits", "functions", "fragments", "activity",
            "activity_overhead", "counters")
OTHERS = ("environment", "build", "warm", "warmed")
FIRST_CALL = ("environment", "self_test")
LEAST_TORCH = (2, 5)


def has_torch():
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(map(int, version.split(".")[:2])) >= LEAST_TORCH


def write_bundle(build, bundle):
    """The programs on the simulated GPU, and a model, where bundle.sh would have them."""
    (bundle / "data").mkdir(parents=True)
    for name in ("trainscope", "device_self_test"):
        (bundle / name).symlink_to(program(build, name))
    (bundle / "data/mlp").symlink_to(MODELS / "mlp")


class Runs:
    """Calls of the script in one folder for work."""

    def __init__(self, scratch, bundle, nvcc):
        self.scratch, self.bundle = scratch, bundle
        self.environment = {**os.environ, "PYTHON": sys.executable, "COMMIT": COMMIT,
                            "PATH": f"{Path(nvcc).parent}:{os.environ['PATH']}"}

    def call(self, results, *stages):
        command = ["bash", SCRIPT, self.scratch / results, "--work", self.scratch / "work", "--bundle", self.bundle,
                   "--toy", "--peer-device", "cpu", "--seconds", 3000, *stages]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                              env=self.environment)
        print(done.stdout, done.stderr, flush=True)
        expect(f"{results}: exit code", done.returncode == 0, str(done.returncode))
        return done.stdout

    def found(self, results):
        return json.loads((self.scratch / results / "gpu.json").read_text(encoding="utf-8"))


def lines_of(stages, name, kind):
    return [line for line in stages[name]["lines"] if line.get("kind") == kind]


def check_programs(stages):
    """What nvcc compiles says that there is no GPU, or what it measured; what it was not compiled for, why."""
    built = {line["program"] for line in lines_of(stages, "build", "built")}
    absent = {line["what"] for line in lines_of(stages, "build", "absent")}
    expect("build", built | absent == set(PROGRAMS) - {"activity_overhead"} and not built & absent,
           f"built {sorted(built)}, absent {lines_of(stages, 'build', 'absent')}")
    expect("build: those that need the toolkit alone", {"launches", "bandwidth", "functions", "fragments"} <= built)
    for name in PROGRAMS:
        stage = stages[name]
        errors = lines_of(stages, name, "error") + lines_of(stages, name, "absent")
        expect(f"{name}: results, or why there are none", len(stage["lines"]) > len(errors) or
               (errors and all(line.get("error") or line.get("why") for line in errors)), str(errors[:2]))


def check_torch(stages):
    """PyTorch's stages have results, or say that it is not here."""
    names = [name for name in stages if name not in (*OURS, *PROGRAMS, *OTHERS)]
    expect("stages of PyTorch", {"traces", "attention", "ops", "peers_g1", "peers_g5"} <= set(names), str(names))
    for name in names:
        absent = lines_of(stages, name, "absent")
        results = len(stages[name]["lines"]) - len(absent)
        if has_torch():
            expect(f"{name}: results", results > 0 or all("after at most" in line["why"] for line in absent))
        else:
            expect(f"{name}: says that there is no PyTorch", results == 0 and absent and
                   all("PyTorch" in line["why"] for line in absent), str(absent[:1]))


def check_ours(stages, with_cupti):
    for name in OURS:
        expect(f"{name}: exit code", stages[name]["exit_code"] == 0, str(lines_of(stages, name, "error")))
    total = lines_of(stages, "self_test", "self_test")[0]
    expect("self_test", total["examples"] > 0 and total["failed"] == 0, str(total))
    verified = lines_of(stages, "verify", "verify")
    expect("verify", [line["precision"] for line in verified] == ["f32", "tf32", "bf16", "fp16"] and
           all(line["rows"] > 0 and line["beyond"] == 0 for line in verified), str(verified))
    trained = lines_of(stages, "train", "training")
    expect("train", len(trained) == 3 and all(line["same_bits"] and line["predicted_bytes"] == line["used_bytes"]
                                              for line in trained), str(trained))
    timed = [line for name in OURS for line in lines_of(stages, name, "ours")]
    expect("ours", [line["workload"] for line in timed] == [
        "toy g1", "toy g2", "toy g1", "toy g3", "toy g3", "toy g3-phase2", "toy g4", "toy g5"], str(timed))
    expect("ours: bytes", all(line["predicted_bytes"] == line["used_bytes"] > 0 for line in timed))
    expect("ours: times", all(0 < line["step_ms_min"] <= line["step_ms"] <= line["step_ms_max"] for line in timed))
    expect("ours: g3's labels, LAMB", [line["labels"] for line in timed[3:6]] == [4, 4, 4] and
           timed[4]["optimizer"] == "lamb" and timed[4]["accumulate"] == 4)
    ops = {line["op"] for line in lines_of(stages, "ours", "ours_op")}
    expect("ours: ops", {"CrossEntropy", "SgdStep"} <= ops, str(sorted(ops)))
    check_profiles(stages, with_cupti)


def check_profiles(stages, with_cupti):
    profile, = lines_of(stages, "profiles", "profile")
    expect("profiles: steps", profile["steps"] == 3 and profile["step_ms"] > 0 and profile["outside_life"] == 0)
    nodes = lines_of(stages, "profiles", "profile_node")
    expect("profiles: nodes", len(nodes) > 10 and nodes[0]["ms"] >= nodes[-1]["ms"] >= 0, str(nodes[:2]))
    exports = {line["format"]: line for line in lines_of(stages, "profiles", "export")}
    expect("profiles: exports", set(exports) == {"chrome", "speedscope", "pprof"} and
           all(line["packed_bytes"] > 0 for line in exports.values()) and exports["chrome"]["events"] > 0, str(exports))
    if with_cupti:
        expect("profiles: what the GPU did", profile["tied_work"] > 0 and exports["chrome"]["device_events"] > 0)
        expect("profiles: nothing is lost", profile["untied_work"] == profile["dropped_records"] ==
               profile["untimed_work"] == profile["unread_bytes"] == 0, str(profile))


def main():
    build, nvcc = Path(sys.argv[1]), sys.argv[2]
    if not program(build).is_file():
        print("skipped: the CUDA back end is not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_bundle(build, scratch / "bundle")
        runs = Runs(scratch, scratch / "bundle", nvcc)
        all_stages = re.findall(r"^stage_(\w+)\(\)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
        expect("stages", {*OURS, *PROGRAMS, *OTHERS} < set(all_stages))
        runs.call("first", *FIRST_CALL)
        expect("a call's stages", list(runs.found("first")["stages"]) == list(FIRST_CALL))
        said = runs.call("second", *all_stages)
        expect("resumed", said.count("done before") == len(FIRST_CALL), said)
        said = runs.call("third", *all_stages)
        expect("all done, and told in another folder", set(runs.found("third")["stages"]) == set(all_stages))
        expect("all done", said.count("done before") == len(all_stages), said)
        merged = scratch / "merged"
        merged.mkdir()
        subprocess.run([sys.executable, ROOT / "bench/gpu/results.py", "merge", scratch / "first/gpu.json",
                        scratch / "second/gpu.json", merged], check=True)
        found = runs.found("merged")
        stages = found["stages"]
        expect("merged", found["commit"] == COMMIT and found["toy"] and set(stages) == set(all_stages))
        expect("every stage says something", all(stage["lines"] for stage in stages.values()),
               str([name for name, stage in stages.items() if not stage["lines"]]))
        check_programs(stages)
        check_torch(stages)
        check_ours(stages, (build / "simulated/lib/libcupti.so.13").is_file())
        shown = (merged / "gpu.md").read_text(encoding="utf-8")
        expect("markdown", all(each in shown for each in ("Toy sizes", "| toy g4 |", "| toy g5 |", "## Absent",
                                                          "## The longest nodes of a profile")))
        with tarfile.open(scratch / "second/gpu.tar.gz") as packed:
            expect("the archive has the traces", "./files/ours-g1.chrome.json.gz" in packed.getnames())


if __name__ == "__main__":
    main()
