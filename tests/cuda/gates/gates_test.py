#!/usr/bin/python3
"""Every kernel of the CUDA back end passes the gates of this folder: gates_test.py [LIBRARY]

Nothing is compiled or disassembled: scripts/kernel_report.py reads what ptxas reported out of the library,
scripts/sass_gate.py which machine code it made.
"""
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCRIPTS = FOLDER.parents[2] / "scripts"


def main():
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        print("skipped: the CUDA back end is not built")
        return 77
    if not shutil.which("c++filt"):
        print("skipped: no c++filt, which names kernels")
        return 77
    return max(subprocess.run([sys.executable, SCRIPTS / script, "--check", FOLDER, sys.argv[1]], check=False,
                              timeout=600).returncode for script in ("kernel_report.py", "sass_gate.py"))


sys.exit(main())
