#!/usr/bin/python3
"""scripts/gpu.sh without a GPU: stages of a bundle run in their limits, are merged, and are not run
twice; what is wrong in its arguments is refused.
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/gpu.sh"


def run(*words, code=0):
    done = subprocess.run(["bash", SCRIPT, *map(str, words)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHON=sys.executable, COMMIT="abcdef0123"),
                          timeout=120, check=False)
    assert done.returncode == code, (words, done.returncode, done.stderr, done.stdout)
    return done


def write_stage(bundle, name, text):
    path = bundle / "stages" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text, encoding="utf-8")
    path.chmod(0o755)


def check_stages(folder):
    """Lines, exit codes and errors of stages, one of which fails."""
    bundle, results, work = folder / "bundle", folder / "results", folder / "work"
    write_stage(bundle, "self_test", 'echo \'{"kind": "ours", "workload": "g1", "step_ms": 12.5}\'\n')
    write_stage(bundle, "verify", "echo no JSON here; echo why >&2; exit 3\n")
    words = (results, "--work", work, "--bundle", bundle, "--device", "cpu", "self_test", "verify",
             "train")
    done = run(*words)
    assert "verify: exit code 3" in done.stdout and "why" in done.stdout, done.stdout
    found = json.loads((results / "gpu.json").read_text(encoding="utf-8"))
    assert found["commit"] == "abcdef0123"
    stages = found["stages"]
    assert list(stages) == ["self_test", "verify", "train"]
    assert stages["self_test"]["lines"] == [{"kind": "ours", "workload": "g1", "step_ms": 12.5}]
    assert stages["verify"]["exit_code"] == 3
    assert stages["verify"]["lines"] == [{"kind": "text", "text": "no JSON here"}]
    assert stages["train"]["lines"][0]["kind"] == "absent", "a stage that is not there is said"
    shown = (results / "gpu.md").read_text(encoding="utf-8")
    assert "| g1 |  | 12.5 |" in shown and "no bundle with stages/train" in shown, shown
    with tarfile.open(results / "gpu.tar.gz") as packed:
        assert "./verify.log" in packed.getnames()
    again = run(*words)
    assert again.stdout.count("done before") == 3, again.stdout


def check_time(folder):
    """A stage that would outlast what is left is ended, and those after it are left out."""
    bundle, results = folder / "slow", folder / "slow-results"
    write_stage(bundle, "self_test", "echo '{\"kind\": \"begun\"}'; sleep 300\n")
    done = run(results, "--work", folder / "slow-work", "--bundle", bundle, "--seconds", "91",
               "--limit", "2", "self_test", "verify")
    assert "self_test: exit code 124" in done.stdout, done.stdout
    found = json.loads((results / "gpu.json").read_text(encoding="utf-8"))
    assert found["stages"]["self_test"]["lines"] == [{"kind": "begun"}], "what it printed counts"
    left_out = run(results, "--work", folder / "no-work", "--bundle", bundle, "--seconds", "9",
                   "self_test")
    assert "self_test: left out" in left_out.stdout, left_out.stdout


def check_arguments(folder):
    assert "no stage nonsense" in run(folder / "none", "nonsense", code=2).stderr
    assert "unknown option" in run(folder / "none", "--nonsense", code=2).stderr
    assert "Usage" in run(code=2).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_arguments(folder)
        check_stages(folder)
        check_time(folder)


if __name__ == "__main__":
    main()
