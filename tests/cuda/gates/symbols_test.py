#!/usr/bin/python3
"""Programs that know nothing of CUDA, and a back end that needs its runtime library alone.

    symbols_test.py PROGRAM.. [--back-end libtrainscope_cuda.so]

By readelf and nm: a program needs no library of NVIDIA and has no symbol of one, neither its own nor one that it asks
for. The back end needs of them libcudart.so.13 (the others are opened where they are), looks for it beside itself,
and exports one function.
"""
import argparse
import re
import subprocess

# As their C interfaces name them: cudaMalloc, __cudaRegisterFunction, cuInit, cublasLtMatmul; not curl_easy_init.
NVIDIAS_SYMBOL = re.compile(r"_*(cuda[A-Z]|cu[A-Z]|cublas|cudnn|cupti|nccl[A-Z]|nvrtc|nvml|nvJitLink)\w*")
NVIDIAS_LIBRARY = re.compile(r"lib(cuda|cudart|cublas\w*|cudnn\w*|cupti|nccl|nv\w*)\.so.*")
OF_CUDART = re.compile(r"_*cuda[A-Z]\w*")
# What the back end may need: the runtime library, and what each program of g++ needs.
ALLOWED = {"libcudart.so.13", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libdl.so.2",
           "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


def lines_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def dynamic_entries(file, kind):
    """Of the dynamic section: NEEDED libraries, RUNPATH folders."""
    found = (re.search(rf"\({kind}\).*\[(.*)\]", line) for line in lines_of("readelf", "-d", file))
    return [match.group(1) for match in found if match]


def symbols(file, *options):
    """(type, name) of each symbol, without its version."""
    rows = (line.split() for line in lines_of("nm", *options, file))
    return [(row[-2], row[-1].split("@")[0]) for row in rows if len(row) >= 2]


def nvidias_symbols(file):
    """Those that the file asks for, and those that it has: a library that is linked in would show."""
    return sorted({name for options in (("-D",), ()) for _, name in symbols(file, *options)
                   if NVIDIAS_SYMBOL.fullmatch(name)})


def check_names():
    for name in ("cudaMalloc", "__cudaRegisterFatBinary", "cuInit", "cublasLtMatmul", "cudnnCreate", "ncclAllReduce",
                 "cuptiSubscribe"):
        assert NVIDIAS_SYMBOL.fullmatch(name), name
    for name in ("curl_easy_init", "cuserid", "_ZN10trainscope4cuda4Gpu3runEv", "malloc"):
        assert not NVIDIAS_SYMBOL.fullmatch(name), name
    for name in ("libcuda.so.1", "libcudart.so.13", "libcublasLt.so.13", "libcudnn_graph.so.9", "libnccl.so.2",
                 "libcupti.so.13", "libnvrtc.so.13"):
        assert NVIDIAS_LIBRARY.fullmatch(name), name
    for name in ("libcurl.so.4", "libc.so.6", "libdnnl.so.2"):
        assert not NVIDIAS_LIBRARY.fullmatch(name), name


def check_program(file):
    needed = dynamic_entries(file, "NEEDED")
    assert "libc.so.6" in needed, f"{file}: readelf names no library: {needed}"
    nvidias = [name for name in needed if NVIDIAS_LIBRARY.fullmatch(name)]
    assert not nvidias, f"{file} needs {nvidias}"
    found = nvidias_symbols(file)
    assert not found, f"{file} has symbols of NVIDIA's libraries: {found}"


def check_back_end(file):
    needed = set(dynamic_entries(file, "NEEDED"))
    assert "libcudart.so.13" in needed and needed <= ALLOWED, f"{file} needs {sorted(needed - ALLOWED)}"
    assert dynamic_entries(file, "RUNPATH") == ["$ORIGIN"], f"{file} looks for libraries elsewhere"
    asked = sorted(name for kind, name in symbols(file, "-D") if kind == "U" and NVIDIAS_SYMBOL.fullmatch(name))
    others = [name for name in asked if not OF_CUDART.fullmatch(name)]
    assert asked and not others, f"{file} asks for {others}"
    exported = {name for kind, name in symbols(file, "-D", "--defined-only") if kind == "T"}
    assert exported == {"trainscope_back_end"}, f"{file} exports {sorted(exported)}"
    # What the programs are searched for is found where it is.
    assert nvidias_symbols(file), f"{file}: nm shows nothing of CUDA"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--back-end")
    args = parser.parse_args()
    check_names()
    for file in args.programs:
        check_program(file)
    if args.back_end:
        check_back_end(args.back_end)


if __name__ == "__main__":
    main()
