#!/usr/bin/python3
"""Writes datasets/unicode_ranges.def: the code points that are letters (general category L) or
numbers (N), as ranges, from the Unicode tables of this Python.

    scripts/unicode_ranges.py > datasets/unicode_ranges.def
"""
import sys
import unicodedata


def ranges(category):
    """First and last code point of each run of the category, in order."""
    first = None
    for point in range(sys.maxunicode + 2):
        inside = point <= sys.maxunicode and unicodedata.category(chr(point))[0] == category
        if inside and first is None:
            first = point
        if not inside and first is not None:
            yield first, point - 1
            first = None


def main():
    print("// Letters and numbers of Unicode "
          f"{unicodedata.unidata_version}: RANGE(kind, first, last). Made by "
          "scripts/unicode_ranges.py.")
    for kind, category in (("kLetter", "L"), ("kNumber", "N")):
        line = ""
        for first, last in ranges(category):
            item = f"RANGE({kind}, 0x{first:X}, 0x{last:X})"
            if len(line) + 1 + len(item) > 100:
                print(line)
                line = ""
            line += (" " if line else "") + item
        print(line)


main()
