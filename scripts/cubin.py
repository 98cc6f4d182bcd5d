"""The GPU kernels of a library or object that nvcc made, as ptxas left them: no tool of NVIDIA is needed.

kernels_of(FILE) reads section .nv_fatbin of an ELF file: fat binaries, each with images of which those
of kind ELF ("cubin") are read, compressed by zstd or not. Of a kernel an image tells registers and
stack (.nv.info), shared memory (.nv.shared.NAME), machine code (.text.NAME) and, where nvcc was given
-lineinfo, the PTX text that ptxas compiled (.nv_debug_ptx_txt), with the threads and blocks that
__launch_bounds__ declares.
A file that is not as it should be is a CubinError of one line.
"""
import ctypes
import re
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

FATBIN, CUDA_MACHINE, IMAGE_IS_ELF = 0xBA55ED50, 190, 2
FUNCTION, ENTRY = 2, 0x10                        # of a symbol: its type, a bit of its st_other
REGISTERS, FRAME, LEAST_STACK = 0x2F, 0x11, 0x12  # attributes of .nv.info: a symbol and a number each
OF_SYMBOL = 4                                    # its format: a payload of so many bytes
SHARED_BEGIN = 1024                              # from 9.0 on a section has what CUDA reserves, too
ZSTD = b"\x28\xb5\x2f\xfd"
MOST_BYTES = 1 << 28                             # of an image
ANONYMOUS = re.compile(r"(\d+)(?=_GLOBAL__N__[0-9a-f]{8}_)")  # nvcc's own, with hashes
NAMESPACES = ("trainscope::cuda::(anonymous namespace)::", "trainscope::cuda::", "trainscope::")
WIDE = {"load128": re.compile(r"ld\.global(?:\.[\w:]+)*?\.v(\d)\.[a-z]+(\d+)"),
        "store128": re.compile(r"st\.global(?:\.[\w:]+)*?\.v(\d)\.[a-z]+(\d+)")}
TENSOR = {"mma": ("mma.sync.",), "ldmatrix": ("ldmatrix.",), "cp_async": ("cp.async.ca.", "cp.async.cg.")}
COUNTED = (*WIDE, *TENSOR)
FUNCTIONS = re.compile(r"^(?:\.\w+ +)*\.(?:entry|func)\b[^\n]*?([\w$]+)\(", re.MULTILINE)


class CubinError(Exception):
    pass


@dataclass
class Kernel:
    """What ptxas made of one kernel for one architecture."""
    arch: str         # sm_90a
    folder: str       # of its source below kernels/cuda: norm
    name: str         # demangled, without parameters and this project's namespaces
    compiler: str     # the version of ptxas
    registers: int
    stack: int        # bytes of a thread
    shared: int       # bytes of a block, but for those that a launch adds
    threads: int = 0  # the most of a block; 0: not declared
    blocks: int = 0   # the fewest of a multiprocessor; 0: not declared
    counts: dict = field(default_factory=dict)  # of the PTX instructions COUNTED
    code: bytes = field(default=b"", repr=False)  # for the machine


def unpack(form, data, at, what):
    if at < 0 or at + struct.calcsize(form) > len(data):
        raise CubinError(f"{what} ends early, at byte {len(data)}")
    return struct.unpack_from(form, data, at)


def part(data, at, size, what):
    if at < 0 or size < 0 or at + size > len(data):
        raise CubinError(f"{what} ends early, at byte {len(data)} of {at + size}")
    return data[at:at + size]


def text_at(data, at):
    end = data.find(b"\0", at)
    return data[at:end if end >= 0 else len(data)].decode("utf-8", "replace")


class Elf:
    """Sections by name: (index, bytes, the size in memory)."""

    def __init__(self, data, what):
        if bytes(data[:6]) != b"\x7fELF\x02\x01":
            raise CubinError(f"{what} is no ELF file of 64 bits")
        self.what = what
        self.machine, = unpack("<H", data, 18, what)
        table, = unpack("<Q", data, 40, what)
        width, count, names = unpack("<HHH", data, 58, what)
        rows = [unpack("<IIQQQQIIQQ", data, table + width * i, f"{what}: the table of sections")
                for i in range(count)]
        if names >= count:
            raise CubinError(f"{what} has no names of sections")
        texts = bytes(part(data, rows[names][4], rows[names][5], f"{what}: the names of sections"))
        self.sections = {}
        for index, (name, kind, _, _, at, size, *_) in enumerate(rows):
            name = text_at(texts, name)
            there = b"" if kind in (0, 8) else part(data, at, size, f"{what}: section {name}")  # 8: no bits
            self.sections[name] = (index, there, size)

    def bytes_of(self, name):
        if name not in self.sections:
            raise CubinError(f"{self.what} has no section {name}")
        return bytes(self.sections[name][1])


def decompressed(data, size, what):
    try:
        zstd = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise CubinError(f"{what} is compressed, and libzstd.so.1 cannot be loaded") from error
    if size > MOST_BYTES:
        raise CubinError(f"{what} would have {size} bytes")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    to = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(to, ctypes.c_size_t(size), bytes(data), ctypes.c_size_t(len(data)))
    if got != size:
        raise CubinError(f"{what} is compressed, and cannot be decompressed")
    return to.raw


def images_of(section, what):
    """(source, bytes) of each image that is an ELF file, over all fat binaries of .nv_fatbin."""
    at, number = 0, 0
    while at < len(section):
        if not any(section[at:at + 8]):  # what aligns the next one
            at += 8
            continue
        fatbin = f"{what}: fat binary {number}"
        magic, _, header, size = unpack("<IHHQ", section, at, fatbin)
        if magic != FATBIN or header < 16:
            raise CubinError(f"{fatbin} does not begin as one")
        image, end = at + header, at + header + size
        part(section, image, size, fatbin)
        while image < end:
            kind, _, begin, length = unpack("<HHIQ", section, image, fatbin)
            stored, = unpack("<I", section, image + 16, fatbin)
            name_at, name_size = unpack("<II", section, image + 32, fatbin)
            full, = unpack("<Q", section, image + 56, fatbin)
            if begin < 64:
                raise CubinError(f"{fatbin} has an image with a header of {begin} bytes")
            data = part(section, image + begin, length, fatbin)
            source = bytes(part(section, image + name_at, name_size, fatbin)).rstrip(b"\0").decode("utf-8", "replace")
            if kind == IMAGE_IS_ELF:
                packed = bytes(data[:4]) == ZSTD
                yield source, decompressed(data[:stored], full, fatbin) if packed else data
            image += begin + length
        at, number = end, number + 1


def attributes(data, what):
    """{(attribute, symbol): number} of a section .nv.info."""
    found, at = {}, 0
    while at < len(data):
        form, attribute, size = unpack("<BBH", data, at, what)
        at += 4
        if form == OF_SYMBOL:
            if size == 8:
                symbol, number = unpack("<II", data, at, what)
                found[attribute, symbol] = number
            at += size
    return found


def ptx_of(text):
    """{name: the text of a function} of what is in .nv_debug_ptx_txt: lines that end with NUL."""
    text = text.replace(b"\0", b"\n").decode("utf-8", "replace")
    found = list(FUNCTIONS.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    return {one[1]: text[one.start():end] for one, end in zip(found, ends)}


def count_instructions(ptx):
    wide = {name: sum(int(width) * int(bits) == 128 for width, bits in form.findall(ptx))
            for name, form in WIDE.items()}
    return wide | {name: sum(map(ptx.count, begins)) for name, begins in TENSOR.items()}


def declared(ptx, directive):
    found = re.search(rf"^\.{directive} +(\d+)(?:, *(\d+), *(\d+))?", ptx[:ptx.find("\n{")], re.MULTILINE)
    return 0 if not found else int(found[1]) * int(found[2] or 1) * int(found[3] or 1)


def kernels_of_image(folder, data, what):
    elf = Elf(data, what)
    if elf.machine != CUDA_MACHINE:
        raise CubinError(f"{what} is for machine {elf.machine}, not a GPU of NVIDIA")
    note = elf.bytes_of(".note.nv.tkinfo").decode("utf-8", "replace")
    arch, version = re.search(r"-arch (sm_\w+)", note), re.search(r"\bV(\d[\d.]*\d)", note)
    if not arch or not version:
        raise CubinError(f"{what} does not tell its architecture and compiler")
    symbols, names = elf.bytes_of(".symtab"), elf.bytes_of(".strtab")
    entries = {}
    for index in range(len(symbols) // 24):
        name, info, other = unpack("<IBB", symbols, 24 * index, what)
        if info & 15 == FUNCTION and other & ENTRY:
            entries[index] = text_at(names, name)
    if not entries:
        return []
    if ".nv_debug_ptx_txt" not in elf.sections:
        raise CubinError(f"{what} has no PTX text: nvcc leaves it with -lineinfo")
    reserved = SHARED_BEGIN if int(re.search(r"\d+", arch[1])[0]) >= 90 else 0
    ptx, info = ptx_of(elf.bytes_of(".nv_debug_ptx_txt")), attributes(elf.bytes_of(".nv.info"), what)
    kernels = []
    for index, name in entries.items():
        if name not in ptx or (REGISTERS, index) not in info or (LEAST_STACK, index) not in info:
            raise CubinError(f"{what}: kernel {name} has no PTX text, registers or stack")
        code = elf.bytes_of(".text." + name)
        kernels.append(Kernel(
            arch=arch[1], folder=folder, name=name, compiler=version[1],
            registers=info[REGISTERS, index],
            stack=max(info[LEAST_STACK, index], info.get((FRAME, index), 0)),
            shared=max(elf.sections.get(".nv.shared." + name, (0, b"", 0))[2] - reserved, 0),
            threads=declared(ptx[name], "maxntid"), blocks=declared(ptx[name], "minnctapersm"),
            counts=count_instructions(ptx[name]), code=code))
    return kernels


def plain_name(mangled):
    """nvcc's name of an anonymous namespace, which differs by folder, as other compilers write it."""
    while found := ANONYMOUS.search(mangled):
        mangled = mangled[:found.start()] + "12_GLOBAL__N_1" + mangled[found.end() + int(found[1]):]
    return mangled


def demangled(names):
    if not names:
        return []
    done = subprocess.run(["c++filt", "--no-params"], input="\n".join(names), text=True,
                          capture_output=True, check=True).stdout.splitlines()
    for namespace in NAMESPACES:
        done = [name.replace(namespace, "") for name in done]
    return done


def cubins_of(path):
    """(folder below kernels/cuda, bytes, what to call it) of each image of a file."""
    try:
        data = memoryview(Path(path).read_bytes())
    except OSError as error:
        raise CubinError(f"{path}: {error.strerror}") from error
    for number, (source, image) in enumerate(images_of(Elf(data, path).bytes_of(".nv_fatbin"), path)):
        below = source.rpartition("kernels/cuda/")[2] or "?"  # norm/norm.cu, or norm/unit_0.cu of several sources
        yield below.partition("/")[0], image, f"{path}: image {number} ({below})"


def kernels_of(path):
    """Every Kernel of a file, sorted by folder and name; one that several sources hold comes several times."""
    kernels = [kernel for cubin in cubins_of(path) for kernel in kernels_of_image(*cubin)]
    for kernel, name in zip(kernels, demangled([plain_name(kernel.name) for kernel in kernels])):
        kernel.name = name
    return sorted(kernels, key=lambda kernel: (kernel.folder, kernel.name, kernel.arch))
