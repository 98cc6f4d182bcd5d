"""Values that a stranger would try, drawn by a generator that a seed starts."""
import json
import random

EXTENTS = [0, -1, 1, 2, 3, 7, 255, 65537, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 4, 2**40,
           2**62, 2**63 - 1, -2**31, -2**63]
INTS = [0, 1, -1, 2, 3, -2, 5, 100, 4095, 2**31 - 1, 2**31, -2**31, 2**32, 2**62, 2**63 - 1, -2**63]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 3.4e38, -3.4e38, float("inf"), float("-inf"),
          float("nan"), 1e-7, 0.5, 2.0]
# In JSON, TOML and CSV, where more can be written than a number holds.
NUMBER_TEXTS = ["0", "-1", "-0", "0.5", "1e999", "-1e999", "1e-999", "9223372036854775807",
                "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" * 400,
                "NaN", "Infinity", "0x10", "1_0", "01", "+1", "1.", ".5", "2147483648",
                "4294967296"]
# A marker that a serialized text is searched for: replaced by bytes that are no UTF-8.
NO_UTF8_MARKER = "NOTUTF8!"
NO_UTF8_BYTES = b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf8"
NAMES = ["", " ", "\n", "a\nerror: not a name", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x7f",
         "a\tb", "../../outside/notes.txt", "/dev/zero", "..", ".", "-", "--help", "%s%n%x", "{}",
         "{0:1000000}", "a,b=c:d", "output=x", "*", "a" * 300, "b" * 5000, "\u202egnp.exe",
         "\u0000", "é", "e\u0301", "😀", "labels", "logits", "x", "loss", "gradient", "batch",
         "optimizer", "Constant", "/", "//", "\\", "'", '"', "a'b", "\r", "\u2028", "\ufeff",
         NO_UTF8_MARKER]


def dice_of(*parts):
    """A generator that depends on nothing but these."""
    return random.Random(":".join(str(part) for part in parts))


def extent(dice):
    """Mostly a known edge, else of any width of bits."""
    if dice.random() < 0.8:
        return dice.choice(EXTENTS)
    return dice.choice([1, -1]) * dice.getrandbits(dice.randint(1, 62))


def integer(dice):
    return dice.choice(INTS) if dice.random() < 0.8 else dice.randint(-10, 10)


def real(dice):
    return dice.choice(FLOATS)


def name(dice):
    return dice.choice(NAMES)


def without_utf8(data):
    """Serialized bytes with the marker replaced; lengths stay."""
    return data.replace(NO_UTF8_MARKER.encode(), NO_UTF8_BYTES)


# Bytes of any file.


def cut(data, dice):
    return data[:int(len(data) * dice.random())]


def flip_bits(data, dice):
    data = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 8, 64])):
        if data:
            data[int(len(data) * dice.random())] ^= 1 << dice.randrange(8)
    return bytes(data)


def put_zeros(data, dice):
    start = int(len(data) * dice.random())
    count = min(len(data) - start, dice.choice([1, 4, 512, 4096, len(data)]))
    return data[:start] + bytes(count) + data[start + count:]


def lengthen(data, dice):
    more = dice.choice([b"\0", b"\n", b"x" * 100, data, bytes(1 << 20), b"\xff" * 4096, b"{}",
                        b"]]}"])
    return data + more


def repeat_piece(data, dice):
    """A piece of the file a second time, in its place or at the end."""
    start = int(len(data) * dice.random())
    piece = data[start:start + dice.choice([1, 8, 64, 1024])]
    return data[:start] + piece * dice.choice([1, 2, 100]) + data[start:]


def drop_piece(data, dice):
    start = int(len(data) * dice.random())
    return data[:start] + data[start + dice.choice([1, 4, 8, 100]):]


def random_bytes(data, dice):
    return dice.randbytes(dice.choice([1, 7, 64, 1024, min(len(data), 1 << 16)]))


# Values of JSON.

DEEP = "\0deep"  # stands for a deeply nested value, which json.dumps could not write


def json_value(dice):
    deep = {"a": [{"b": DEEP}]}
    return dice.choice([None, True, False, 0, -1, 0.5, 1e300, 2**63, -2**63 - 1, 2**70, "", [], {},
                        [[]], "x" * 70000, [0] * 3000, {"a": 1}, deep, name(dice), name(dice),
                        integer(dice), integer(dice), extent(dice)])


def json_dumps(value, dice, **options):
    text = json.dumps(value, **options)
    depth = dice.choice([100, 1000, 100000])
    nest = dice.choice([("[", "]"), ('{"a":', "}")])
    text = text.replace(json.dumps(DEEP), nest[0] * depth + "1" + nest[1] * depth)
    return text.encode("utf-8", "replace")


def json_place(value, dice):
    """A (container, key) in it, each level as likely as the others: long lists do not hide keys."""
    place = None
    while isinstance(value, (dict, list)) and value:
        key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        place, value = (value, key), value[key]
        if dice.random() < 0.15:
            break
    return place


def damage_json(value, dice):
    """Changes one place: another value, gone, doubled, another key."""
    place = json_place(value, dice)
    if place is None:
        return
    holder, key = place
    way = dice.choice(["value", "value", "value", "near", "gone", "double", "key"])
    if way == "value":
        holder[key] = json_value(dice)
    elif way == "near":
        old = holder[key]
        is_number = isinstance(old, (int, float)) and not isinstance(old, bool)
        holder[key] = old + dice.choice([-1, 1, 2**32, 2**62]) if is_number else json_value(dice)
    elif way == "gone":
        del holder[key]
    elif way == "double" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif isinstance(holder, dict):
        holder[name(dice)] = holder.pop(key)
