#!/usr/bin/python3
"""scripts/kernel_report.py over libraries written by hand: each gate is seen to hold and to break."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from synthetic_library import cubin, fatbin, image, library

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/kernel_report.py"
sys.path.insert(0, str(SCRIPT.parent))
from cubin import Kernel  # noqa: E402
from kernel_report import resident_blocks  # noqa: E402

SCALE = "norm scale_rows (sm_90a)"


def check_occupancy():
    """As NVIDIA's occupancy calculator has it: registers, threads, shared bytes, blocks."""
    for arch, registers, threads, shared, blocks in (
            ("sm_90a", 32, 256, 0, 8), ("sm_90a", 33, 256, 0, 6), ("sm_90a", 64, 256, 0, 4),
            ("sm_90a", 128, 256, 0, 2), ("sm_90a", 168, 128, 0, 3), ("sm_90a", 255, 128, 0, 2),
            ("sm_90a", 255, 256, 0, 1), ("sm_90a", 16, 32, 0, 32), ("sm_90a", 65, 1024, 0, 0),
            ("sm_90a", 32, 128, 35840, 6), ("sm_80", 32, 128, 35840, 4), ("sm_80", 32, 128, 0, 16)):
        kernel = Kernel(arch=arch, folder="", name="", compiler="", registers=registers, stack=0,
                        shared=shared, threads=threads)
        assert resident_blocks(kernel) == blocks, (kernel, resident_blocks(kernel))


class Gates:
    """A folder of gates that hold for what library() makes of no words."""

    def __init__(self, folder):
        self.folder, self.library = folder / "gates", folder / "library.so"
        self.folder.mkdir()
        self.write("stack.tsv", "folder\tkernel\tbytes\treason\nn*\tadd_*\t16\tit walks through an array\n")
        self.write("instructions.tsv", "folder\tkernel\tinstruction\tleast\nnorm\tscale_*\tload128\t2\n")
        self.make()
        self.run("--update", code=0, says="2 rows")
        self.holds()

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def make(self, *more, **scale):
        self.library.write_bytes(library(fatbin(
            image(cubin("scale_rows", **{"registers": 40, "shared": 64, **scale})),
            image(cubin("add_rows", stack=16, version=scale.get("version", "13.0.88"))), *more)))

    def run(self, *words, code, says):
        done = subprocess.run([sys.executable, SCRIPT, *words, self.folder, self.library],
                              capture_output=True, text=True, check=False, timeout=60)
        shown = done.stdout + done.stderr
        assert done.returncode == code and says in shown, (code, says, done.returncode, shown)
        assert "Traceback" not in shown, shown
        return shown

    def holds(self):
        self.run("--check", code=0, says="0 findings")

    def breaks(self, says):
        self.run("--check", code=1, says=says)

    def check_gates(self):
        self.make(stack=8)
        self.breaks(f"{SCALE}: 8 bytes of stack, at most 0 are allowed")
        self.make(registers=72)
        self.breaks(f"{SCALE}: 72 registers and 64 shared bytes leave room for 3 blocks of 256 threads, 4 are")
        self.make(registers=128, blocks=3)
        self.breaks("leave room for 2 blocks of 256 threads, 3 are declared")
        self.make(shared=60000)
        self.breaks("leave room for 3 blocks")
        self.make(arch="sm_75")
        self.breaks("the limits of this architecture are not known")
        self.library.write_bytes(library(fatbin(image(cubin("scale_rows", registers=40, shared=64)))))
        self.breaks("stack.tsv: no kernel is n* add_*")
        self.make()
        self.write("instructions.tsv", "folder\tkernel\tinstruction\tleast\nnorm\tscale_*\tmma\t1\n")
        self.breaks(f"{SCALE}: 0 mma, at least 1 are meant")
        self.write("instructions.tsv", "folder\tkernel\tinstruction\tleast\nnorm\tgone\tmma\t1\n")
        self.breaks("instructions.tsv: no kernel is norm gone")
        self.write("instructions.tsv", "folder\tkernel\tinstruction\tleast\n")
        self.holds()

    def check_table(self):
        for words in ({"registers": 33}, {"registers": 24}, {"shared": 0}):
            self.make(**words)  # as many eights of registers, or fewer; fewer bytes
            self.holds()
        self.make(registers=41)
        self.breaks(f"{SCALE}: 41 registers, kernels.tsv has 40 (--update)")
        self.make(shared=65)
        self.breaks(f"{SCALE}: 65 shared bytes, kernels.tsv has 64")
        self.make(threads=128)
        self.breaks(f"{SCALE}: 128 threads declared, kernels.tsv has 256")
        self.make(more="ld.global.v4.f32 {};")
        self.breaks(f"{SCALE}: 3 load128, kernels.tsv has 2")
        self.make(image(cubin("new_rows")))
        self.breaks("norm new_rows (sm_90a) is not in kernels.tsv (--update)")
        self.run("--update", code=0, says="3 rows")
        self.holds()
        self.make()
        self.breaks("norm new_rows (sm_90a) is in kernels.tsv alone (--update)")

        self.make(image(cubin("scale_rows", registers=56, shared=0)))  # of another source of the folder
        self.breaks(f"{SCALE}: 56 registers, kernels.tsv has 40 (--update)")
        self.run("--update", code=0, says="2 rows")
        self.holds()
        self.make(registers=56)
        self.holds()
        self.make(registers=57)
        self.breaks(f"{SCALE}: 57 registers, kernels.tsv has 56 (--update)")

    def check_compilers(self):
        """Rows of another compiler are not compared, which is said; the gates hold all the same."""
        self.make()
        self.run("--update", code=0, says="2 rows")
        self.make(version="13.1.5", registers=48)
        self.run("--check", code=0, says="sm_90a is not compared with kernels.tsv: compiled by ptxas 13.1.5, "
                                         "the rows are of 13.0.88")
        self.make(version="13.1.5", stack=8)
        self.breaks("8 bytes of stack")
        self.make()
        both = image(cubin("scale_rows", arch="sm_80", registers=32))
        self.make(both)
        self.run("--check", code=0, says="sm_80 is not compared")
        self.run("--update", code=0, says="3 rows")
        self.make()
        self.run("--update", code=0, says="3 rows")  # those of sm_80 stay
        self.make(both)
        assert "not compared" not in self.run("--check", code=0, says="3 kernels, 0 findings")

    def check_bad_tables(self):
        good = (self.folder / "kernels.tsv").read_text(encoding="utf-8")
        row = good.splitlines()[-1]
        for name, text, says in (
                ("stack.tsv", "folder\tkernel\tbytes\treason\na\tb\t8\t \n", "a b has a stack without a reason"),
                ("stack.tsv", "folder\tkernel\tbytes\treason\na\tb\tmany\tno\n", "stack.tsv:2: 'many' is no number"),
                ("instructions.tsv", "folder\tkernel\tinstruction\tleast\na\tb\thmma\t1\n", ":2: 'hmma' is none of"),
                ("kernels.tsv", good + "sm_90a\tnorm\n", "kernels.tsv:7: 2 columns instead of 13"),
                ("kernels.tsv", good + row + "\n", "kernels.tsv:7: a second row for norm")):
            kept = (self.folder / name).read_text(encoding="utf-8")
            self.write(name, text)
            shown = self.run("--check", code=2, says=says)
            assert shown.count("\n") == 1, shown
            self.write(name, kept)
        whole = self.library.read_bytes()
        self.library.write_bytes(whole[:200])
        shown = self.run("--check", code=2, says="ends early")
        assert shown.count("\n") == 1, shown
        (self.folder / "kernels.tsv").unlink()
        self.library.write_bytes(whole)
        self.run("--check", code=2, says="kernels.tsv: No such file or directory")


if not shutil.which("c++filt"):
    print("skipped: no c++filt, which names kernels")
    sys.exit(77)
check_occupancy()
with tempfile.TemporaryDirectory() as at:
    gates = Gates(Path(at))
    gates.check_gates()
    gates.check_table()
    gates.check_compilers()
    gates.check_bad_tables()
