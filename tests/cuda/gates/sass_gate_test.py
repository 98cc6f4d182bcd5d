#!/usr/bin/python3
"""scripts/sass_gate.py over libraries written by hand: each gate is seen to hold and to break. What takes NVIDIA's
disassembler's place here prints as that does, by a number that each instruction of these libraries has."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from synthetic_library import cubin, fatbin, image, library

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
# An instruction as it is printed: its opcode, and bits 73 to 75, which are 6 of an access of 16 bytes.
ENCODED = {"LDG.E.128": (0x981, 6), "@P0 LDG.E.128": (0x981, 6), "LDG.E": (0x381, 4), "LDG.E.64": (0x981, 5),
           "@!UP1 STG.E.128": (0x986, 6), "STG.E.128": (0x386, 6), "HMMA.16816.F32": (0x23C, 0),
           "LDSM.16.M88.4": (0x83B, 6), "LDGSTS.E.128": (0xFAE, 6), "BAR.SYNC": (0xB1D, 0), "EXIT": (0x94D, 0),
           "NOP": (0x918, 0), "LDL": (0x983, 4), "@P1 LDL.64": (0x983, 5), "LDL.64": (0x383, 5), "STL": (0x387, 4),
           "FADD": (0x221, 0), "LDG.E.128.NEW": (0x982, 6)}
TEXTS = list(ENCODED)
SCALE, ADD = "norm scale_rows (sm_90a)", "norm add_rows (sm_90a)"
DISASSEMBLER = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from cubin import Elf

if sys.argv[1:] == ["--version"]:
    print("Cuda compilation tools, release 13.1, V13.1.80")
    sys.exit()
with open(sys.argv[-1], "rb") as file:
    sections = Elf(memoryview(file.read()), "a cubin").sections
for name, (_, code, _) in sections.items():
    if name.startswith(".text."):
        print(f'//---- {{name}} ----\\n\\t.section\\t{{name}},"ax",@progbits\\n        .align\\t\\t128\\n{{name}}:')
        for at in range(0, len(code), 16):
            print(f"        /*{{at:04x}}*/                   {{{TEXTS!r}[code[at + 12]]}} ;")
print('\\t.section\\t.debug_line,"",@progbits\\n        /*0000*/ .byte 0x01')
"""
TENSOR_PTX = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {};\nldmatrix.sync.aligned.x4.m8n8.shared.b16 {};\n" \
             "cp.async.cg.shared.global [%r1], [%rd1], 16;"
TENSOR = ("HMMA.16816.F32", "LDSM.16.M88.4", "LDGSTS.E.128")
WIDE = ("LDG.E.128", "@P0 LDG.E.128", "@!UP1 STG.E.128")
PLAIN = (*WIDE, "LDG.E", "BAR.SYNC", "EXIT", "NOP", "NOP")


def code(*instructions):
    return b"".join((ENCODED[each][0] | ENCODED[each][1] << 73 | TEXTS.index(each) << 96).to_bytes(16, "little")
                    for each in instructions)


class Gates:
    """A folder of gates that hold for what make() makes of no words."""

    def __init__(self, folder):
        self.folder, self.library, self.nvdisasm = folder / "gates", folder / "library.so", folder / "nvdisasm"
        self.folder.mkdir()
        self.write("stack.tsv", "folder\tkernel\tbytes\treason\nnorm\tadd_*\t16\tit walks through an array\n")
        self.write("instructions.tsv", "folder\tkernel\tinstruction\tleast\nnorm\tscale_*\tload128\t2\n")
        self.disassemble_by(DISASSEMBLER)
        self.make()
        self.update("2 rows")
        self.holds()

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def disassemble_by(self, text):
        self.nvdisasm.write_text(text, encoding="utf-8")
        self.nvdisasm.chmod(0o755)

    def make(self, *more, scale=PLAIN, add=PLAIN, ptx="", version="13.0.88"):
        self.library.write_bytes(library(fatbin(
            image(cubin("scale_rows", code=code(*scale), more=ptx, version=version)),
            image(cubin("add_rows", code=code(*add), version=version), packed=True), *more)))

    def run(self, script, *words, says, exits=0):
        done = subprocess.run([sys.executable, SCRIPTS / script, *words, self.library], capture_output=True, text=True,
                              check=False, timeout=60)
        shown = done.stdout + done.stderr
        assert done.returncode == exits and says in shown, (exits, says, done.returncode, shown)
        assert "Traceback" not in shown, shown
        return shown

    def update(self, says, exits=0):
        """Writes both tables anew, or only kernels.tsv where the disassembler cannot be used."""
        self.run("kernel_report.py", "--update", self.folder, says="rows")
        return self.run("sass_gate.py", "--update", self.folder, "--nvdisasm", self.nvdisasm, says=says, exits=exits)

    def holds(self, says="0 findings"):
        self.run("sass_gate.py", "--check", self.folder, says=says)

    def breaks(self, says):
        self.run("sass_gate.py", "--check", self.folder, says=says, exits=1)

    def rows(self):
        lines = (self.folder / "sass.tsv").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if not line.startswith("#")]

    def check_table(self):
        text = (self.folder / "sass.tsv").read_text(encoding="utf-8")
        assert text.startswith("# sm_90a ptxas 13.0.88 nvdisasm 13.1.80\n"), text
        head, add, scale = self.rows()
        assert head.endswith("code\tinstructions\tLDG.128\tSTG.128\tLDGSTS\tLDSM\tHMMA\tBAR\tLDL\tSTL"), head
        for row, name in ((add, "add_rows"), (scale, "scale_rows")):
            assert row.startswith(f"sm_90a\tnorm\t{name}\t") and row.endswith("\t6\t2\t1\t0\t0\t0\t1\t0\t0"), row

    def check_code(self):
        """A kernel whose counts have changed needs a new row, no other one does."""
        self.make(scale=(*PLAIN, "BAR.SYNC", "FADD"))
        self.breaks(f"{SCALE}: 2 BAR where sass.tsv has 1: run scripts/sass_gate.sh")
        self.breaks(f"{SCALE}: 8 instructions where sass.tsv has 6: run scripts/sass_gate.sh")
        self.breaks("2 kernels, 2 findings")
        self.update("2 rows")
        self.holds()
        # As another compilation of the same source makes it: in another order, up to an eighth more or fewer.
        for add in ((*PLAIN, "BAR.SYNC", "FADD", "FADD"), ("FADD", "BAR.SYNC", *PLAIN), (*PLAIN, "BAR.SYNC")):
            self.make(scale=add)
            self.holds("1 kernels have other machine code than in sass.tsv, of the same counts\n2 kernels, 0 findings")
        self.make(scale=(*PLAIN, "BAR.SYNC", "LDL"))
        self.breaks(f"{SCALE}: 1 LDL and 0 STL, without a reason in stack.tsv")
        # Of one name, from another source of the folder.
        other = image(cubin("scale_rows", code=code(*PLAIN)))
        self.make(other, scale=(*PLAIN, "BAR.SYNC", "FADD"))
        self.breaks("3 kernels, 2 findings")
        self.update("3 rows")
        self.holds()
        self.make(other)
        self.breaks("no kernel has the machine code ")
        self.update("2 rows")
        # A new kernel, and one that is no more.
        self.make(image(cubin("new_rows", code=code(*PLAIN))))
        self.breaks("norm new_rows (sm_90a): it has no row: run scripts/sass_gate.sh")
        self.update("3 rows")
        self.make()
        self.breaks("norm new_rows (sm_90a): no kernel has the machine code ")
        self.update("2 rows")

    def check_gates(self):
        self.make(add=(*PLAIN, "@P1 LDL.64", "STL"))
        self.update("2 rows")
        self.holds()
        assert self.rows()[1].endswith("\t8\t2\t1\t0\t0\t0\t1\t1\t1"), self.rows()
        self.make(scale=(*PLAIN, "LDL.64", "STL", "STL"))
        self.update("2 rows")
        self.breaks(f"{SCALE}: 1 LDL and 2 STL, without a reason in stack.tsv")

        self.make(scale=(*WIDE, *TENSOR), ptx=TENSOR_PTX)
        self.update("2 rows")
        self.holds()
        for number, (column, name) in enumerate((("HMMA", "mma"), ("LDSM", "ldmatrix"), ("LDGSTS", "cp_async"))):
            self.make(scale=(*WIDE, *TENSOR[:number], *TENSOR[number + 1:]), ptx=TENSOR_PTX)
            self.update("2 rows")
            self.breaks(f"{SCALE}: 0 {column} of 1 {name}")

        self.make(scale=("LDG.E.128", "LDG.E.64", "STG.E.128"))
        self.update("2 rows")
        self.breaks(f"{SCALE}: 1 LDG.128, at least 2 are meant by instructions.tsv")
        self.make()
        self.update("2 rows")

    def check_other_table(self):
        """Its kernels and compilers are those of kernels.tsv."""
        good = (self.folder / "kernels.tsv").read_text(encoding="utf-8")
        self.write("kernels.tsv", good + good.splitlines()[-1].replace("scale_rows", "new_rows") + "\n")
        self.breaks("norm new_rows (sm_90a) is in kernels.tsv alone: run scripts/sass_gate.sh")
        self.write("kernels.tsv", "\n".join(good.splitlines()[:-1]) + "\n")
        self.breaks(f"{SCALE} is in sass.tsv alone")
        self.write("kernels.tsv", good.replace("13.0.88", "13.1.5"))
        self.breaks("sm_90a: rows of sass.tsv are of ptxas 13.0.88, of kernels.tsv of 13.1.5")
        self.write("kernels.tsv", good)
        # What another compiler makes is not compared, which is said.
        self.make(version="13.1.5", scale=(*WIDE, "FADD"))
        self.holds("sm_90a is not compared with sass.tsv: compiled by ptxas 13.1.5, the rows are of 13.0.88")
        self.make(version="13.1.5", scale=(*WIDE, "LDL"))  # the gates without a row hold of its code, too
        self.breaks(f"{SCALE}: 1 LDL and 0 STL, without a reason in stack.tsv")
        self.make(image(cubin("scale_rows", arch="sm_80", code=code(*PLAIN))))
        self.holds("sm_80 is not compared")
        self.update("3 rows")
        self.make()
        self.update("3 rows")  # those of sm_80 stay
        self.holds()
        text = (self.folder / "sass.tsv").read_text(encoding="utf-8")
        heads = [f"# {arch} ptxas 13.0.88 nvdisasm 13.1.80" for arch in ("sm_80", "sm_90a")]
        assert text.splitlines()[:2] == heads, text

    def check_bad_input(self):
        good = (self.folder / "sass.tsv").read_text(encoding="utf-8")
        row = good.splitlines()[-1]
        # An opcode that the disassembler names otherwise, as that of a later architecture may be.
        self.make(add=(*PLAIN, "LDG.E.128.NEW"))
        shown = self.update("shows 3 LDG.128 of add_rows, by OPCODES of scripts/sass_gate.py it has 2", exits=2)
        assert shown.count("\n") == 1, shown
        self.make()
        for text, says in ((good + row + "\n", f"a second row for {SCALE}"),
                           (good + "sm_90a\n", "1 columns instead of 13"),
                           (good.replace("\t6\t", "\tsix\t"), "'six' is no number")):
            self.write("sass.tsv", text)
            shown = self.run("sass_gate.py", "--check", self.folder, says=says, exits=2)
            assert shown.count("\n") == 1, shown
        self.write("sass.tsv", good)
        whole = self.nvdisasm.read_text(encoding="utf-8")
        for text, says in ((whole.replace("range(0, ", "range(16, "), "128 bytes of machine code of scale_rows"),
                           (whole.replace("V13.1.80", "?"), "does not tell its version"),
                           ("#!/bin/sh\necho 'no such chip' >&2\nexit 3\n", "no such chip")):
            self.disassemble_by(text)
            assert self.update(says, exits=2).count("\n") == 1
        self.nvdisasm.unlink()
        self.update("nvdisasm: No such file or directory", exits=2)
        assert (self.folder / "sass.tsv").read_text(encoding="utf-8") == good
        self.run("sass_gate.py", "--update", self.folder, says="--update needs --nvdisasm", exits=2)
        (self.folder / "sass.tsv").unlink()
        self.run("sass_gate.py", "--check", self.folder, says="sass.tsv: No such file or directory", exits=2)


if not shutil.which("c++filt"):
    print("skipped: no c++filt, which names kernels")
    sys.exit(77)
with tempfile.TemporaryDirectory() as at:
    gates = Gates(Path(at))
    gates.check_table()
    gates.check_code()
    gates.check_gates()
    gates.check_other_table()
    gates.check_bad_input()
