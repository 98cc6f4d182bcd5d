#!/usr/bin/python3
"""Objects built for AVX-512 share no function with others: avx512_symbols_test.py "OBJECT;OBJECT.."

The linker keeps one copy of a weak symbol. Were it one compiled for AVX-512, the program would end
with an illegal instruction on a machine without it.
"""
import subprocess
import sys

SHARED = set("WwVvu")


def main(objects):
    wide = [path for path in objects if path.endswith("_avx512.cpp.o")]
    assert wide, f"no object for AVX-512 among {len(objects)}"
    for path in wide:
        listing = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True)
        symbols = [line[17:].split(" ", 1) for line in listing.stdout.splitlines()]
        assert any(kind == "T" for kind, _ in symbols), f"{path} defines nothing"
        shared = [name for kind, name in symbols if kind in SHARED]
        assert not shared, f"{path} may take the place of others with {shared}"
    print(f"{len(wide)} objects share nothing")


main(sys.argv[1].split(";"))
