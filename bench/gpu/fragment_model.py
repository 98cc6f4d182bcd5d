#!/usr/bin/env python3
"""How an H200's tensor cores add, to the bit, against what bench/gpu/fragments.cu recorded there.

    fragment_model.py FOLDER [TILES]      # of each file of random tiles in it, how many bits agree

One mma takes all its products and the addend at once. Each product is exact; its exponent is the
sum of its operands' (its fraction may reach 4). All are cut toward zero to multiples of
2^(largest exponent - 25), added without error, and the sum is cut toward zero to f32. tf32 operands
are first cut to 10 bits of fraction. Subnormal numbers are not covered.
"""
import struct
import sys
from pathlib import Path

ROWS, COLUMNS, DEPTH = 16, 8, 16
FRACTION_BITS = 25  # below the largest exponent
MASK = (1 << 64) - 1
# Seed and spread of exponents of each file, by the end of its name.
CASES = {"near": (100, 0), "wide": (200, 12)}


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def float_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def mixed(value):
    """As in support.cuh."""
    value = (value + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 29) * 0x94D049BB133111EB & MASK
    return value >> 32


def random_number(seed, element):
    value = mixed(seed * 0x100000001B3 + element & MASK)
    return ((value ^ 1 << 31) - (1 << 31) >> 8) / 8388608.0


def rounded_bf16(value):
    bits = bits_of(value)
    return float_of(bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000)


def cut_tf32(value):
    return float_of(bits_of(value) & 0xFFFFE000)


def random_values(count, stream, spread, is_tf32):
    for element in range(count):
        power = mixed(stream * 977 + element & MASK) % (2 * spread + 1) - spread
        value = random_number(stream, element) * 2.0 ** power
        yield value if is_tf32 else rounded_bf16(value)


def parts(value):
    """Integer fraction with its sign and the exponent of its last bit; exponent of its first bit."""
    bits = bits_of(value)
    exponent, fraction = (bits >> 23 & 0xFF) - 127, bits & 0x7FFFFF | 0x800000
    return (-fraction if bits >> 31 else fraction), exponent - 23, exponent


def shifted(fraction, places):
    """Toward zero where bits are lost."""
    if places >= 0:
        return fraction << places
    return -(-fraction >> -places) if fraction < 0 else fraction >> -places


def f32_toward_zero(total, exponent):
    """total * 2^exponent."""
    extra = abs(total).bit_length() - 24
    if extra > 0:
        total, exponent = shifted(total, -extra), exponent + extra
    return float(total) * 2.0 ** exponent


def added(addend, left, right):
    """The f32 that one mma gives for an element."""
    terms = []
    if addend != 0:
        terms.append(parts(addend))
    for a, b in zip(left, right):
        if a != 0 and b != 0:
            (fa, la, ea), (fb, lb, eb) = parts(a), parts(b)
            terms.append((fa * fb, la + lb, ea + eb))
    if not terms:
        return 0.0
    last = max(exponent for _, _, exponent in terms) - FRACTION_BITS
    return f32_toward_zero(sum(shifted(f, low - last) for f, low, _ in terms), last)


def agreeing(path, tiles):
    """Elements of the file's first tiles that the rule gives to the bit, and all of them."""
    is_tf32 = "tf32" in path.name
    depth = 8 if is_tf32 else DEPTH
    seed, spread = CASES[path.stem.rsplit("-", 1)[1]]
    a = list(random_values(tiles * ROWS * DEPTH, seed, spread, is_tf32))
    b = list(random_values(tiles * DEPTH * COLUMNS, seed + 1, spread, is_tf32))
    c = [float_of(bits_of(value))
         for value in random_values(tiles * ROWS * COLUMNS, seed + 2, spread, is_tf32)]
    if is_tf32:
        a, b = [cut_tf32(v) for v in a], [cut_tf32(v) for v in b]
    same, count = 0, tiles * ROWS * COLUMNS
    results = struct.unpack(f"<{count}f", path.read_bytes()[: 4 * count])
    for element, result in enumerate(results):
        row, column = element // COLUMNS, element % COLUMNS
        tile = element // (ROWS * COLUMNS)
        left = a[row * DEPTH: row * DEPTH + depth]
        right = [b[(tile * DEPTH + k) * COLUMNS + column] for k in range(depth)]
        same += bits_of(added(c[element], left, right)) == bits_of(result)
    return same, count


def main():
    folder, tiles = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 32
    worst = 1.0
    for path in sorted(folder.glob("*.f32")):
        same, count = agreeing(path, tiles)
        print(f"{path.name}: {same} of {count} elements agree")
        worst = min(worst, same / count)
    return 0 if worst == 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
