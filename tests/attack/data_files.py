"""The part `data_files`: files of every format of docs/data-formats.md with hostile content.

A case damages the bytes of a good file, or makes a bad one of its format from scratch, and trains
two steps on it; a few go through `trainscope data`.
"""
import gzip
import io
import json
import os
import shutil
import struct
import subprocess
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy

import hostile
from cases import Step

NAME = "data_files"
SAMPLES = Path(__file__).resolve().parents[2] / "datasets/samples"
# Each format: the model that it feeds, its files (the first one is damaged), its source.
FORMATS = {
    "text": ("letters", ["text.txt"], "text:{0}"),
    "bpe": ("letters", ["vocab.json", "merges.txt", "text.txt"], "bpe:{2},{0},{1}"),
    "merges": ("letters", ["merges.txt", "vocab.json", "text.txt"], "bpe:{2},{1},{0}"),
    "tokens": ("letters", ["tokens.bin"], "tokens:{0}"),
    "llmc": ("letters", ["tokens-llmc.bin"], "tokens:{0}"),
    "images": ("digits", ["digits-images.idx", "digits-labels.idx"], "idx:{0},{1}"),
    "labels": ("digits", ["digits-labels.idx", "digits-images.idx"], "idx:{1},{0}"),
    "gzip": ("digits", ["digits-images.idx.gz", "digits-labels.idx"], "idx:{0},{1}"),
    "csv": ("flowers", ["flowers.csv"], "csv:{0},label=kind"),
    "safetensors": ("flowers", ["flowers.safetensors"], "tensors:{0}"),
    "npz": ("flowers", ["flowers.npz"], "tensors:{0}"),
}
SUBJECTS = list(FORMATS)
MODELS = {"letters": ["gpt2", "--layers", "1", "--heads", "2", "--embedding", "8", "--vocab", "512",
                      "--context", "16"],
          "digits": ["lenet", "--image", "28"], "flowers": ["mlp", "--dims", "4,8,3"]}


def prepare(program, shared):
    for name, words in MODELS.items():
        subprocess.run([program["path"], "model", *words, "-o", str(shared / f"data-{name}.onnx")],
                       check=True, stdout=subprocess.DEVNULL)


# A bad file of each format, made of what its reader has to count, multiply or look up.


def make_text(content, dice):
    broken = [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xff",
              b"\0", b"\xef\xbb\xbf", "\u2028\u202e".encode(), b"\r", b"\x1b[2J",
              b"\xf8\x88\x80\x80\x80"]
    way = dice.choice(["broken", "broken", "many", "short", "long piece", "blanks"])
    if way == "many":
        return "".join(map(chr, range(0x20, 0x20 + dice.choice([513, 50000])))).encode()
    if way == "short":
        return content[:dice.choice([0, 1, 15, 16, 17, 33])]
    if way == "long piece":
        return dice.choice([b"a", b" ", b"\n", b"1", "é".encode()]) * dice.choice([1000, 300000])
    if way == "blanks":
        return bytes(dice.choice(b" \t\n\r\v\f") for _ in range(5000))
    place = dice.randrange(len(content))
    return content[:place] + dice.choice(broken) + content[place:]


def make_bpe(content, dice):
    vocabulary = json.loads(content)
    if dice.random() < 0.3:
        symbol = dice.choice(sorted(vocabulary))
        vocabulary[symbol] = dice.choice([-1, 0, 2**31, 2**63, 2**64, 1.5, "1", None,
                                          len(vocabulary)])
    for _ in range(dice.choice([1, 2, 5])):
        hostile.damage_json(vocabulary, dice)
    return hostile.json_dumps(vocabulary, dice, ensure_ascii=dice.random() < 0.5)


def make_merges(content, dice):
    lines = content.decode().split("\n")
    bad = ["a", "a b c", " a b", "a  b", "", "\0 \0", "x" * 100000 + " y", "é zz", lines[-2],
           "a\tb", "#version: 0.2", "\x1b[2J a"]
    for _ in range(dice.choice([1, 3])):
        lines.insert(dice.randrange(len(lines)), dice.choice(bad))
    if dice.random() < 0.3:
        dice.shuffle(lines)
    return "\n".join(lines).encode()


def make_tokens(content, dice):
    way = dice.choice(["ids", "odd", "short", "header"])
    if way == "odd":
        return content + b"\1"
    if way == "short":
        return content[:dice.choice([0, 2, 4, 30, 32, 34])]
    if way == "header":
        return make_llmc(bytes(1024) + content, dice)
    place = 2 * dice.randrange(len(content) // 2)
    return content[:place] + b"\xff\xff" + content[place + 2:]


def make_llmc(content, dice):
    magic = dice.choice([20240520, 20240801, 20240520, 20240802])
    version = dice.choice([0, 1, 7, 2**31, 1, 7])
    count = dice.choice([0, 1, (len(content) - 1024) // 2, (len(content) - 1024) // 4, 2**31,
                         2**32 - 1])
    head = struct.pack("<III", magic, version, count)
    size = dice.choice([12, 1023, 1024, 1025, len(content), len(content)])
    return (head + content[len(head):])[:size]


def make_idx(content, dice):
    ranks = dice.choice([0, 1, 2, 3, 3, 3, 4, 255])
    sizes = [dice.choice([0, 1, 28, 64, 65535, 65536, 2**31, 2**32 - 1]) for _ in range(ranks)]
    head = struct.pack(">HBB", dice.choice([0, 0, 0, 1]), dice.choice([8, 8, 8, 9, 13, 14]), ranks)
    return head + struct.pack(f">{ranks}I", *sizes) + content[4 + 4 * ranks:]


def make_gzip(content, dice):
    plain = gzip.decompress(content)
    way = dice.choice(["bomb", "size", "members", "inner", "header", "checksum", "tail"])
    packed = gzip.compress(plain, mtime=0)
    if way == "bomb":
        head = plain[:4] + struct.pack(">III", dice.choice([64, 2**22]), 28, 28)
        return gzip.compress(head + bytes(dice.choice([1 << 20, 1 << 26])), mtime=0)
    if way == "size":
        return packed[:-4] + struct.pack("<I", dice.choice([0, 1, 2**31, 2**32 - 1]))
    if way == "checksum":
        return packed[:-8] + b"\0\0\0\0" + packed[-4:]
    if way == "members":
        return packed[:100] + packed if dice.random() < 0.5 else packed * dice.choice([2, 1000])
    if way == "header":  # extra field, name and comment that do not end
        return packed[:3] + bytes([dice.randrange(256)]) + packed[4:10] + b"\xff\xff" + packed[10:]
    if way == "tail":
        return packed + dice.choice([b"\0" * 100, b"\x1f\x8b", b"x"])
    return gzip.compress(make_idx(plain, dice), mtime=0)


def make_csv(content, dice):
    rows = [line.split(",") for line in content.decode().strip().split("\n")]
    cells = ['"', '""', '"a', 'a"b', '"a\nb"', "", " ", "nan", "inf", "1e999", "-1e999", "0x10",
             "1,5", "9" * 400, "1e-400", "\0", "\x1b[2J", "\ufeff", "=1+1", "x" * 70000, '"1"',
             "1e", "--1", "9223372036854775808"]
    way = dice.choice(["cell", "cell", "cell", "head", "width", "wide", "short", "breaks", "label"])
    if way == "cell":
        row = dice.choice(rows)
        row[dice.randrange(len(row))] = dice.choice(cells)
    elif way == "head":
        rows[0] = dice.choice([[""] * 5, ["kind"] * 5, rows[0][:4], rows[0][::-1], rows[1],
                               rows[0] + ["kind"], ["\x1b[2J", "b", "c", "d", "kind"]])
    elif way == "width":
        row = dice.choice(rows)
        row.extend(["1"] * dice.choice([1, 5000])) if dice.random() < 0.5 else row.pop()
    elif way == "wide":
        rows = [row + ["1"] * 20000 for row in rows[:20]]
    elif way == "short":
        rows = rows[:dice.choice([0, 1, 2, 3])]
    elif way == "label":
        for row in rows[1:]:
            if dice.random() < 0.1:
                row[-1] = dice.choice(["-1", "3", "1.5", "2147483648", "-100",
                                       "-9223372036854775808"])
    text = dice.choice(["\n", "\r\n", "\r"] if way == "breaks" else ["\n"]).join(
        ",".join(row) for row in rows)
    return text.encode() + dice.choice([b"\n", b"", b"\n\n\n", b"\r\n\n", b","])


def make_safetensors(content, dice):
    size, = struct.unpack("<Q", content[:8])
    head = json.loads(content[8:8 + size])
    if dice.random() < 0.5:
        row = head[dice.choice(sorted(head))]
        edges = [0, 1, -1, 7, 2**31, 2**32, 2**62, 2**63 - 1, 2**64]
        count = dice.choice([0, 1, 2, 2, 30])
        row[dice.choice(["shape", "data_offsets"])] = [dice.choice(edges) for _ in range(count)]
        row["dtype"] = dice.choice([row.get("dtype"), "F16", "BF16", "F64", "I8", "F8_E4M3", "",
                                    "f32"])
    for _ in range(dice.choice([0, 1, 3])):
        hostile.damage_json(head, dice)
    text = hostile.without_utf8(hostile.json_dumps(head, dice))
    length = dice.choice([len(text)] * 5 + [0, 1, len(text) + 1, 2**31, 2**63, 2**64 - 1])
    return struct.pack("<Q", length) + text + content[8 + size:]


def npy(array, dice):
    """An .npy file, its head drawn at random or damaged."""
    file = io.BytesIO()
    numpy.save(file, array)
    good = file.getvalue()
    if dice.random() < 0.4:
        return good
    shape = dice.choice(["()", "(1,)", "(150, 4)", "(-1, 4)", "(9223372036854775807, 2)",
                         "(4294967296,)", "(150,4,", "[150, 4]", "(" * 5000, "(True,)", "(1.5,)",
                         "(0,)"])
    kind = dice.choice(["'<f4'", "'>f4'", "'|O'", "'<f2'", "'<U10'", "'<i8'", "[('a', '<f4')]",
                        "'<c8'", "'|b1'", "'<f4", "'<i16'"])
    order = dice.choice(["False", "True", "0", "None"])
    head = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    version = dice.choice([(1, 0), (2, 0), (3, 0), (9, 9)])
    length = dice.choice([len(head), len(head), len(head), 0, 65535])
    width = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, length) + head + array.tobytes()


def make_npz(content, dice):
    arrays = dict(numpy.load(io.BytesIO(content)))
    file = io.BytesIO()
    packing = dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED,
                           zipfile.ZIP_LZMA])
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as archive:
        warnings.simplefilter("ignore")  # of two entries with one name
        for name in sorted(arrays):
            entry = dice.choice([f"{name}.npy"] * 8 + [name, f"../{name}.npy", "x.npy",
                                                       "\x1b[2J.npy", "é.npy", "n" * 60000])
            # A fixed time, so that the same seed makes the same bytes.
            info = zipfile.ZipInfo(entry, (2026, 1, 1, 0, 0, 0))
            info.compress_type = packing
            archive.writestr(info, npy(arrays[name], dice))
    made = bytearray(file.getvalue())
    for signature, fields in ((b"PK\1\2", [(16, 4), (20, 4), (24, 4), (28, 2), (42, 4)]),
                              (b"PK\5\6", [(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
                              (b"PK\3\4", [(14, 4), (18, 4), (22, 4), (26, 2)])):
        place = made.find(signature)
        if place >= 0 and dice.random() < 0.25:
            offset, width = dice.choice(fields)
            number = dice.choice([0, 1, 2**16 - 1, 2**31, 2**32 - 1]) % (1 << 8 * width)
            made[place + offset:place + offset + width] = number.to_bytes(width, "little")
    if dice.random() < 0.1:  # an entry that claims more than it inflates to, or a bomb
        bomb = zlib.compress(bytes(1 << 26), 9)
        made = made[:30] + bomb + made[30:]
    return bytes(made)


MAKERS = {"text": make_text, "bpe": make_bpe, "merges": make_merges, "tokens": make_tokens,
          "llmc": make_llmc, "images": make_idx, "labels": make_idx, "gzip": make_gzip,
          "csv": make_csv, "safetensors": make_safetensors, "npz": make_npz}


# Kinds of damage: (sandbox, path of the file, format, dice).


def made_badly(sandbox, path, form, dice):
    """A file of the format whose numbers, sizes and tables are wrong."""
    path.write_bytes(MAKERS[form](path.read_bytes(), dice))


def made_and_cut(sandbox, path, form, dice):
    """The same, then cut or with bits flipped."""
    made_badly(sandbox, path, form, dice)
    path.write_bytes(dice.choice([hostile.cut, hostile.flip_bits, hostile.drop_piece])(
        path.read_bytes(), dice))


def other_format(sandbox, path, form, dice):
    """A good file of another format."""
    files = sorted(path for path in SAMPLES.iterdir() if path.is_file())
    shutil.copy(dice.choice(files), path)


def no_file(sandbox, path, form, dice):
    """A FIFO, a folder, a device, a link in a circle, nothing; a huge file of zeros."""
    path.unlink()
    way = dice.choice(["fifo", "folder", "device", "circle", "missing", "empty", "sparse", "full"])
    if way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        path.mkdir()
    elif way == "device":
        path.symlink_to(dice.choice(["/dev/zero", "/dev/null", "/proc/self/mem",
                                     "/proc/self/environ"]))
    elif way == "circle":
        path.symlink_to(path.name)
    elif way in ("empty", "sparse"):
        with open(path, "wb") as file:
            file.truncate(0 if way == "empty" else dice.choice([1 << 20, 1 << 33]))
    elif way == "full":
        path.symlink_to("/dev/full")


def plain_damage(change):
    return lambda sandbox, path, form, dice: path.write_bytes(change(path.read_bytes(), dice))


DAMAGES = {"made_badly": made_badly, "made_and_cut": made_and_cut, "other_format": other_format,
           "no_file": no_file}
DAMAGES.update({name: plain_damage(change) for name, change in (
    ("truncated", hostile.cut), ("flipped_bits", hostile.flip_bits), ("zeroed", hostile.put_zeros),
    ("too_long", hostile.lengthen), ("dropped_piece", hostile.drop_piece))})
KINDS = list(DAMAGES)
CATALOG_FILES = ["input.txt", "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                 "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]


def data_steps(sandbox, path, dice):
    """The file as if it were one of the catalog's sets: copied from a folder, or listed."""
    folder = sandbox.given / "mirror"
    folder.mkdir()
    for name in CATALOG_FILES:
        (folder / name).symlink_to(path)
    name = dice.choice(["tinyshakespeare", "mnist"])
    way = dice.choice(["get", "list"])
    sets = sandbox.work / "sets"
    if way == "get":
        yield Step(["data", "get", name, "--from-dir", "../given/mirror", "--dir", "sets"],
                   ("work/sets",))
        return
    sets.mkdir()
    for part in (sets, sets / "tinyshakespeare", sets / "mnist"):
        part.mkdir(exist_ok=True)
        for file in CATALOG_FILES:
            (part / file).symlink_to(path)
    yield Step(["data", "list", "--dir", "sets"])


def build(case, shared, sandbox):
    model, files, source = FORMATS[case.subject]
    dice = hostile.dice_of(case)
    for name in files:
        shutil.copy(SAMPLES / name, sandbox.given)
    path = sandbox.given / files[0]
    DAMAGES[case.kind](sandbox, path, case.subject, dice)
    shutil.copy(shared / f"data-{model}.onnx", sandbox.given / "model.onnx")
    if dice.random() < 0.1:
        yield from data_steps(sandbox, path, dice)
    data = source.format(*[f"../given/{name}" for name in files])
    data += dice.choice(["", "", "", ",validation=0.5", ",validation=0"])
    if model == "letters" and case.subject in ("tokens", "llmc"):
        data += dice.choice(["", "", ",dtype=uint32", ",dtype=uint16"])
    words = ["--data", data, "--batch", dice.choice(["1", "4", "8"]), "--threads", "1"]
    words += ["--seq", "16"] if model == "letters" else []
    yield Step(["train", "../given/model.onnx", *words, "--steps", "2", "--run-dir", "run",
                "--progress", "none"], ("work/run",), "work/run")
    yield Step(["eval", "run"])
