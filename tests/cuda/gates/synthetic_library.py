"""A library with GPU kernels as nvcc leaves them, written byte by byte: for tests of what reads it."""
import ctypes
import struct

PTX = """.version 9.0
.target {arch}
.func (.param .b32 func_retval0) helper(
.param .b32 helper_param_0
)
{{
ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd1];
}}
.entry {name}(
.param .u64 {name}_param_0
)
.maxntid {threads}, 1, 1
{blocks}
{{
ld.global.v4.f32 	{{%f1, %f2, %f3, %f4}}, [%rd1];
ld.global.nc.L1::no_allocate.v2.f64 	{{%fd1, %fd2}}, [%rd2];
ld.global.v4.u16 	{{%rs1, %rs2, %rs3, %rs4}}, [%rd3];
ld.global.f32 	%f5, [%rd4];
st.global.v2.u64 	[%rd5], {{%rd6, %rd7}};
{more}
}}
"""


def elf(machine, sections):
    """An ELF file of 64 bits: sections are (name, type, bytes), or a number of bytes in memory alone."""
    sections = [("", 0, b""), *sections, (".shstrtab", 3, b"")]
    names = b"".join(name.encode() + b"\0" for name, _, _ in sections)
    sections[-1] = (".shstrtab", 3, names)
    body, rows, name_at = b"", b"", 0
    for name, kind, data in sections:
        there = isinstance(data, bytes)
        rows += struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, 64 + len(body),
                            len(data) if there else data, 0, 0, 1, 0)
        body += data if there else b""
        name_at += len(name) + 1
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, machine, 1, 0, 0, 64 + len(body), 0,
                       64, 56, 0, 64, len(sections), len(sections) - 1)
    return head + body + rows


def cubin(name="scale_rows", *, arch="sm_90a", version="13.0.88", registers=32, stack=0, shared=0, threads=256,
          blocks=0, more="", ptx=True, machine=190, code=b"NOP".ljust(16, b"\0")):
    """An image with one kernel, and a function that is no kernel."""
    texts = b"\0" + name.encode() + b"\0helper\0"
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    symbols += struct.pack("<IBBHQQ", 1, 2, 0x10, 5, 0, 128)
    symbols += struct.pack("<IBBHQQ", len(name) + 2, 2, 0, 5, 0, 128)
    info = b"".join(struct.pack("<BBHII", 4, attribute, 8, 1, number)
                    for attribute, number in ((0x2F, registers), (0x11, 0), (0x12, stack)))
    info += struct.pack("<BBH", 3, 0x1B, 255)
    text = PTX.format(name=name, arch=arch, threads=threads, more=more,
                      blocks=f".minnctapersm {blocks}" if blocks else "")
    note = f"\0ptxas\0Cuda compilation tools, release 13.0, V{version}\0-lineinfo  -arch {arch} -m 64\0"
    sections = [(".strtab", 3, texts), (".symtab", 2, symbols), (".note.nv.tkinfo", 7, note.encode()),
                (".nv.info", 0x70000000, info), (".text." + name, 1, code),
                (".nv.shared." + name, 8, shared + (0 if arch == "sm_80" else 1024))]
    if ptx:
        sections.append((".nv_debug_ptx_txt", 1, text.replace("\n", "\0").encode()))
    return elf(machine, sections)


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    for function in (library.ZSTD_compress, library.ZSTD_compressBound):
        function.restype = ctypes.c_size_t
    to = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_size_t(len(data))))
    size = library.ZSTD_compress(to, ctypes.c_size_t(len(to)), data, ctypes.c_size_t(len(data)), 3)
    return to.raw[:size]


def image(data, *, source="/build/kernels/cuda/norm/norm.cu", kind=2, packed=False):
    """A header of 64 bytes and the source's name, and what they are of, to a multiple of 8 bytes."""
    stored = zstd(data) if packed else data
    name = source.encode() + b"\0" * (8 - len(source) % 8)
    padded = stored + b"\0" * (-len(stored) % 8)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64 + len(name), len(padded), len(stored) if packed else 0,
                       0, 8, 1, 90, 64, len(source), 0x11, 0, len(data) if packed else 0) + name + padded


def fatbin(*images, magic=0xBA55ED50):
    body = b"".join(images)
    return struct.pack("<IHHQ", magic, 1, 16, len(body)) + body


def library(*fatbins):
    return elf(62, [(".text", 1, b"\xc3"), (".nv_fatbin", 1, (b"\0" * 8).join(fatbins))])
