#!/usr/bin/python3
"""Plans that the tests make: a folder for them, then scripts/check_plan.py over all of them.

Usage: kept_plans.py begin|check FOLDER. `begin` empties the folder. `check` fails when there is no
plan or one has a fault. Exit code 77 (skipped) without python3-onnx or numpy. Tests in Python keep
the plan of a run with keep(RUN).
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "scripts/check_plan.py"


def keep(run):
    """The run's plan and stages, where the environment names a folder for them."""
    folder = os.environ.get("TRAINSCOPE_KEPT_PLANS")
    if folder:
        kept = Path(tempfile.mkdtemp(dir=folder))
        shutil.copy(run / "plan.bin", kept)
        shutil.copytree(run / "stages", kept / "stages")


def begin(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return 0


def check(folder):
    try:
        import numpy  # noqa: F401  (the checker needs both)
        import onnx  # noqa: F401
    except ImportError:
        print("skipped: python3-onnx or python3-numpy is not installed")
        return 77
    plans = sorted(folder.iterdir()) if folder.is_dir() else []
    if not plans:
        print(f"no test has left a plan in {folder}")
        return 1
    done = subprocess.run([sys.executable, CHECKER, *plans], stdout=subprocess.PIPE, text=True)
    verdicts = done.stdout.splitlines()
    print(*(line for line in verdicts if not line.endswith(": 0 faults")), sep="\n")
    print(f"{sum(line.endswith(': 0 faults') for line in verdicts)} of {len(plans)} plans are sound")
    return done.returncode


if __name__ == "__main__":
    sys.exit({"begin": begin, "check": check}[sys.argv[1]](Path(sys.argv[2])))
