#!/usr/bin/python3
"""AVX-512 stays where it is asked for: avx512_symbols_test.py "OBJECT;OBJECT.."

The linker keeps one copy of a weak symbol. Were it one compiled for AVX-512, the program would end
with an illegal instruction on a machine without it. So objects built for AVX-512 share no function
with others, and in the others only in_avx512() has such instructions.
"""
import re
import subprocess
import sys

SHARED = set("WwVvu")
# An instruction that begins with the byte 62 (EVEX), or that names a mask register.
WIDE = re.compile(r"^ *[0-9a-f]+:\t62 |%k[0-7]\b")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def shared_symbols(path):
    symbols = [line[17:].split(" ", 1) for line in output("nm", "-C", path).splitlines()]
    assert any(kind == "T" for kind, _ in symbols), f"{path} defines nothing"
    return [name for kind, name in symbols if kind in SHARED]


def wide_functions(path):
    """Mangled names of the functions that have instructions of AVX-512."""
    found, name = set(), ""
    for line in output("objdump", "-d", path).splitlines():
        if line.endswith(">:"):
            name = line[line.index("<") + 1:-2]
        elif WIDE.search(line):
            found.add(name)
    return found


def main(objects):
    wide = [path for path in objects if path.endswith("_avx512.cpp.o")]
    assert wide, f"no object for AVX-512 among {len(objects)}"
    for path in wide:
        shared = shared_symbols(path)
        assert not shared, f"{path} may take the place of others with {shared}"
    chosen = 0
    for path in set(objects) - set(wide):
        for name in wide_functions(path):
            assert "in_avx512" in name, f"{path} has AVX-512 in {name}, which runs everywhere"
            chosen += 1
    assert chosen > 0, "in_avx512() has no such instruction"
    print(f"{len(wide)} objects share nothing, {chosen} functions are chosen at run time")


# A precompiled header stands among the objects.
main([path for path in sys.argv[1].split(";") if path.endswith(".o")])
