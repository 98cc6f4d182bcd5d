#!/usr/bin/python3
"""scripts/cubin.py over libraries written by hand: numbers of kernels, and a line for each damage."""
import random
import shutil
import sys
import tempfile
from pathlib import Path

from synthetic_library import cubin, elf, fatbin, image, library

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from cubin import CubinError, kernels_of  # noqa: E402

TENSOR = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {};\nldmatrix.sync.aligned.x4.m8n8.shared.b16 {};\n" \
         "cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.commit_group;"
MANGLED = "_ZN10trainscope4cuda39_GLOBAL__N__2d33726d_7_norm_cu_8cae27bc12sum_channelsILi4EfEEvNS1_9BatchNormIT0_EE"


class Cases:
    def __init__(self, folder):
        self.path = folder / "library.so"

    def kernels(self, data):
        self.path.write_bytes(data)
        return kernels_of(self.path)

    def refused(self, data, words):
        try:
            self.kernels(data)
        except CubinError as error:
            assert words in str(error) and "\n" not in str(error), error
            return
        raise AssertionError(f"nothing says '{words}'")

    def check_numbers(self):
        plain = cubin(registers=40, stack=24, shared=512, threads=128, blocks=3, more=TENSOR)
        older = cubin("add_rows", arch="sm_80", shared=16)
        kernels = self.kernels(library(
            fatbin(image(plain), image(older, source="/x/build/kernels/cuda/loss/unit_0.cu", packed=True)),
            fatbin(image(b"PTX is not read", kind=1), image(cubin(MANGLED)))))
        assert [(k.folder, k.name, k.arch) for k in kernels] == [
            ("loss", "add_rows", "sm_80"), ("norm", "scale_rows", "sm_90a"),
            ("norm", "sum_channels<4, float>", "sm_90a")], kernels
        add, scale, _ = kernels
        assert (scale.registers, scale.stack, scale.shared, scale.threads, scale.blocks) == (40, 24, 512, 128, 3)
        assert scale.compiler == "13.0.88" and (add.shared, add.blocks) == (16, 0)
        assert scale.counts == {"load128": 2, "store128": 1, "mma": 1, "ldmatrix": 1, "cp_async": 2}, scale
        assert add.counts == {"load128": 2, "store128": 1, "mma": 0, "ldmatrix": 0, "cp_async": 0}, add

    def check_damage(self):
        self.refused(b"#!/bin/sh\n", "is no ELF file")
        self.refused(elf(62, [(".text", 1, b"\xc3")]), "has no section .nv_fatbin")
        self.refused(library(fatbin(image(cubin()), magic=7)), "fat binary 0 does not begin as one")
        self.refused(library(fatbin(image(cubin(machine=62)))), "is for machine 62")
        self.refused(library(fatbin(image(cubin(ptx=False)))), "(norm/norm.cu) has no PTX text: nvcc leaves it with -lineinfo")
        self.refused(library(fatbin(image(cubin()))[:600]), "fat binary 0 ends early, at byte 600")
        self.refused(library(fatbin(image(cubin()[:300]))), "image 0 (norm/norm.cu)")
        packed = bytearray(library(fatbin(image(cubin(), packed=True))))
        packed[packed.index(b"\x28\xb5\x2f\xfd") + 9] ^= 0xFF
        self.refused(packed, "cannot be decompressed")
        try:
            kernels_of(self.path.parent / "nothing.so")
        except CubinError as error:
            assert str(error).endswith("No such file or directory"), error

    def check_any_damage(self):
        """Every prefix, and bytes changed at random: an error of one line, if any."""
        whole = library(fatbin(image(cubin(more=TENSOR)), image(cubin("add_rows"), packed=True)))
        assert len(self.kernels(whole)) == 2
        for size in range(len(whole)):
            self.refused(whole[:size], "")
        numbers, refused = random.Random(5), 0
        for _ in range(600):
            data = bytearray(whole)
            for _ in range(numbers.randint(1, 4)):
                data[numbers.randrange(len(data))] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF))
            try:
                self.kernels(data)
            except CubinError as error:
                assert str(error), "no word"
                refused += 1
        assert refused > 50, refused


if not shutil.which("c++filt"):
    print("skipped: no c++filt, which names kernels")
    sys.exit(77)
with tempfile.TemporaryDirectory() as at:
    cases = Cases(Path(at))
    cases.check_numbers()
    cases.check_damage()
    cases.check_any_damage()
