"""The part `run_files`: a run's folder with one damaged file, which is then resumed or read.

Three runs are made once; each case has a copy of one. Damage that hashes would find at once is
sealed again in most cases, so that it reaches what comes behind the hashes.
"""
import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import hostile
import mutants
from cases import Step
from sandbox import Sandbox

NAME = "run_files"
SAMPLES = Path(__file__).resolve().parents[2] / "datasets/samples"
# Each: how its model is made, the files of its data, and how it is trained.
RUNS = {
    "flowers": (["mlp", "--dims", "4,16,3"], ["flowers.csv"],
                ["--data", "csv:../given/flowers.csv,label=kind", "--batch", "8"]),
    "letters": (["gpt2", "--layers", "1", "--heads", "2", "--embedding", "16", "--vocab", "128",
                 "--context", "16"], ["text.txt"],
                ["--data", "text:../given/text.txt", "--seq", "16", "--batch", "4"]),
    "digits": (["lenet", "--image", "28"], ["digits-images.idx", "digits-labels.idx"],
               ["--data", "idx:../given/digits-images.idx,../given/digits-labels.idx", "--batch",
                "8", "--optimizer", "sgd", "--momentum", "0.9"]),
}
SUBJECTS = list(RUNS)
STEPS = 6
SETTINGS = ["--save-every", "2", "--eval-every", "3", "--metrics", "csv,tensorboard", "--threads",
            "1", "--progress", "none"]
# Patterns of the files of a run, each as likely as the others.
FILES = ["manifest.json", "manifest.json", "config.toml", "plan.bin", "plan.json", "metrics.jsonl",
         "metrics.csv", "log.jsonl", "model.onnx", "events.out.tfevents.*", "stages/stages.json",
         "stages/*.onnx", "stages/*.rewrites.jsonl", "checkpoints/best.json", "checkpoints/step-*/manifest.json",
         "checkpoints/step-*/manifest.json", "checkpoints/step-*/model.safetensors",
         "checkpoints/step-*/optimizer.safetensors"]
FOLDERS = ["stages", "checkpoints", "checkpoints/step-*", "checkpoints/step-*"]
BYTES = {"truncated": hostile.cut, "flipped_bits": hostile.flip_bits, "zeroed": hostile.put_zeros,
         "too_long": hostile.lengthen, "repeated_piece": hostile.repeat_piece,
         "random_bytes": hostile.random_bytes}


def train_words(subject, steps):
    _, _, words = RUNS[subject]
    return ["train", "../given/model.onnx", *words, "--steps", str(steps), *SETTINGS]


def prepare(program, shared):
    """A run of each kind in shared/NAME: given and work of its sandbox, which cases copy."""
    for subject, (model, files, _) in RUNS.items():
        sandbox = Sandbox(shared / subject)
        subprocess.run([program["path"], "model", *model, "-o", str(sandbox.given / "model.onnx")],
                       check=True, stdout=subprocess.DEVNULL)
        for name in files:
            shutil.copy(SAMPLES / name, sandbox.given)
        subprocess.run([program["path"], *train_words(subject, STEPS), "--run-dir", "run"],
                       cwd=sandbox.work, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


class Damage:
    """One case's copy of a run, and the file that it damages."""

    def __init__(self, sandbox, dice):
        self.sandbox, self.dice = sandbox, dice
        self.run = sandbox.work / "run"
        self.file = self.pick(FILES)

    def pick(self, patterns):
        """A file of the run; of several that fit the newest with two thirds."""
        found = []
        while not found:
            pattern = self.dice.choice(patterns)
            found = sorted(self.run.glob(pattern))
        return found[-1] if self.dice.random() < 0.66 else self.dice.choice(found)

    def write(self, content):
        self.file.write_bytes(content)
        if self.dice.random() < 0.8:
            seal_checkpoint(self.file)
            seal_plan(self.file)

    def outside(self, name):
        """A path outside the run, as links in it spell it, or absolute."""
        target = self.sandbox.outside / name
        return target if self.dice.random() < 0.5 else os.path.relpath(target, self.file.parent)


def xxh3(content):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    return f"{library.XXH3_64bits(content, ctypes.c_size_t(len(content))):016x}"


def seal_manifest(path, manifest):
    """Writes it as the program does, with its own hash as the last key."""
    manifest.pop("xxh3", None)
    compact = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)
    manifest["xxh3"] = xxh3(compact.encode("utf-8", "replace"))
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    path.write_bytes(text.encode("utf-8", "replace") + b"\n")


def seal_checkpoint(file):
    """Makes the hashes of the checkpoint that a file belongs to right again, where it has some."""
    path = file.parent / "manifest.json"
    if not file.parent.name.startswith("step-"):
        return
    try:
        manifest = json.loads(path.read_bytes())
        if file != path:
            content = file.read_bytes()
            for row in manifest["files"]:
                if row["name"] == file.stem:
                    row["size_bytes"], row["xxh3"] = len(content), xxh3(content)
        seal_manifest(path, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # no JSON, or none with these keys: it stays as it is


def xxh3_number(content):
    return int(xxh3(bytes(content)), 16)


def seal_plan(file):
    """Makes the hashes of a plan.bin right again, as far as it has a table of sections."""
    content = bytearray(file.read_bytes())
    if file.name != "plan.bin" or len(content) < 32:
        return
    count, = struct.unpack_from("<I", content, 12)
    end = 32 + 32 * count
    if end > len(content):
        return
    for at in range(32, end, 32):
        _, row_bytes, offset, rows = struct.unpack_from("<IIQQ", content, at)
        if offset + row_bytes * rows <= len(content):
            inside = content[offset:offset + row_bytes * rows]
            struct.pack_into("<Q", content, at + 24, xxh3_number(inside))
    struct.pack_into("<Q", content, 16, len(content))
    struct.pack_into("<Q", content, 24, 0)
    struct.pack_into("<Q", content, 24, xxh3_number(content[:end]))
    file.write_bytes(content)


# Kinds of damage.


def emptied(damage):
    damage.write(b"")


def missing(damage):
    """A file or a folder is not there."""
    if damage.dice.random() < 0.7:
        damage.file.unlink()
    else:
        shutil.rmtree(damage.pick(FOLDERS))


def swapped_files(damage):
    """Two files have changed places, or one stands for another, or for a folder's name."""
    other = damage.pick(FILES)
    mine, others = damage.file.read_bytes(), other.read_bytes()
    damage.write(others)
    if damage.dice.random() < 0.5:
        other.write_bytes(mine)
        seal_checkpoint(other)


def renamed_checkpoint(damage):
    """The folder of a checkpoint with another step's name, or one that is no step."""
    folder = damage.pick(["checkpoints/step-*"])
    name = damage.dice.choice(["step-00000007", "step-00000001", "step-7", "step-", "step--0000001",
                               "step-99999999999999999999", "step-9223372036854775807", "step-x",
                               "step-00000000", "step-00000008 ", ".saving-step-00000009"])
    if damage.dice.random() < 0.5:
        shutil.copytree(folder, folder.parent / name, dirs_exist_ok=True)
    else:
        folder.rename(folder.parent / name)


def json_values(damage):
    """A value of a JSON file: another type, an extreme number, a hostile text, absent, deep."""
    while damage.file.suffix not in (".json", ".jsonl"):
        damage.file = damage.pick(FILES)
    lines = damage.file.read_text().split("\n") if damage.file.suffix == ".jsonl" else None
    number = damage.dice.randrange(len(lines)) if lines else 0
    value = json.loads(lines[number] if lines and lines[number] else "{}") if lines is not None \
        else json.loads(damage.file.read_bytes())
    for _ in range(damage.dice.choice([1, 1, 1, 3])):
        hostile.damage_json(value, damage.dice)
    if damage.file.match("step-*/manifest.json") and damage.dice.random() < 0.85:
        text = json.dumps(value)
        if json.dumps(hostile.DEEP) not in text:
            seal_manifest(damage.file, value)
            return
    content = hostile.json_dumps(value, damage.dice, ensure_ascii=damage.dice.random() < 0.5)
    if lines is not None:
        rows = [line.encode() for line in lines]
        rows[number] = content
        content = b"\n".join(rows)
    damage.write(hostile.without_utf8(content))


def huge_numbers(damage):
    """A number of a text file with more digits, another sign, or none that it could hold."""
    while damage.file.suffix not in (".json", ".jsonl", ".toml", ".csv"):
        damage.file = damage.pick(FILES)
    text = damage.file.read_text()
    places = list(re.finditer(r"-?\b\d+(\.\d+)?([eE][-+]?\d+)?\b", text))
    if places:
        place = damage.dice.choice(places)
        text = text[:place.start()] + damage.dice.choice(hostile.NUMBER_TEXTS) + text[place.end():]
    damage.write(text.encode())


def wrong_versions(damage):
    """Formats of other versions, steps that are not the folder's, other seeds and hashes."""
    damage.file = damage.pick(["manifest.json", "checkpoints/step-*/manifest.json",
                               "checkpoints/best.json"])
    facts = json.loads(damage.file.read_bytes())
    key = damage.dice.choice([key for key in ("format", "step", "seed", "samples_seen", "program")
                              if key in facts])
    facts[key] = damage.dice.choice([0, 2, 3, -1, 2**31, 2**63 - 1, 2**64, "1", "", None, 1.5])
    if "files" in facts:
        seal_manifest(damage.file, facts)
    else:
        damage.file.write_bytes(json.dumps(facts, indent=2).encode())


def tensor_tables(damage):
    """A value in the head of a checkpoint's safetensors file, its length, or the data behind it."""
    damage.file = damage.pick(["checkpoints/step-*/*.safetensors"])
    content = damage.file.read_bytes()
    size, = struct.unpack("<Q", content[:8])
    head = json.loads(content[8:8 + size])
    hostile.damage_json(head, damage.dice)
    text = hostile.without_utf8(hostile.json_dumps(head, damage.dice))
    length = damage.dice.choice([len(text)] * 6 + [0, len(text) - 1, 2**63, 2**64 - 1])
    damage.write(struct.pack("<Q", length) + text + content[8 + size:])


def plan_numbers(damage):
    """Numbers of plan.bin, in its rows or its table of sections: far out, or one too many."""
    damage.file = damage.pick(["plan.bin"])
    content = bytearray(damage.file.read_bytes())
    rows, = struct.unpack_from("<I", content, 12)
    first = damage.dice.choice([8, 32 + 32 * rows, 32 + 32 * rows])
    for _ in range(damage.dice.choice([1, 1, 3])):
        at = damage.dice.randrange(first // 4, len(content) // 4) * 4
        old, = struct.unpack_from("<I", content, at)
        new = damage.dice.choice([0, 1, old + 1, old - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2])
        struct.pack_into("<I", content, at, new % 2**32)
    damage.write(content)


def hostile_graphs(damage):
    """A structural mutant in place of the trained model or of a stage."""
    damage.file = damage.pick(["model.onnx", "stages/*.onnx", "stages/*.onnx"])
    kind = damage.dice.choice(list(mutants.KINDS))
    mutant = mutants.make(kind, damage.file.read_bytes(), ("in a run", damage.dice.random()))
    damage.file.write_bytes(mutant.serialized())


def links(damage):
    """A link in place of a file: out of the run, to a device, to itself, to nothing."""
    old = damage.file.read_bytes()
    damage.file.unlink()
    target = damage.dice.choice(["notes.txt", "metrics.jsonl", "model.onnx", "config.toml", "same",
                                 "same", "new", "/dev/zero", "/dev/full", damage.file.name,
                                 "taken"])
    if target == "same":
        (damage.sandbox.outside / "same").write_bytes(old)
    leads_out = target not in ("/dev/zero", "/dev/full", damage.file.name)
    damage.file.symlink_to(damage.outside(target) if leads_out else target)


def linked_folders(damage):
    """A folder of the run is a link to one outside, with the same content."""
    folder = damage.pick(FOLDERS)
    moved = damage.sandbox.outside / "taken/moved"
    folder.rename(moved)
    is_absolute = damage.dice.random() < 0.5
    folder.symlink_to(moved if is_absolute else os.path.relpath(moved, folder.parent))


def no_files(damage):
    """A FIFO, a socket's place or a folder where a file belongs, or a file where a folder does."""
    way = damage.dice.choice(["fifo", "fifo", "folder", "full folder", "file"])
    if way == "file":
        folder = damage.pick(FOLDERS)
        shutil.rmtree(folder)
        folder.write_bytes(b"a file")
        return
    damage.file.unlink()
    if way == "fifo":
        os.mkfifo(damage.file)
    else:
        damage.file.mkdir()
        if way == "full folder":
            (damage.file / "inside").write_bytes(b"kept")


def strange_files(damage):
    """Files that no run has: half-done saves, temporary files, links among them, odd names."""
    dice = damage.dice
    checkpoints = damage.run / "checkpoints"
    way = dice.choice(["saving", "saving link", "temporary", "temporary link", "fifo", "names",
                       "many", "sessions", "sessions link"])
    if way.startswith("saving"):
        path = checkpoints / dice.choice([".saving-step-00000008", ".saving-x", ".saving-step-7"])
        if way == "saving":
            shutil.copytree(damage.pick(["checkpoints/step-*"]), path)
        else:
            path.symlink_to(damage.sandbox.outside / "taken")
    elif way.startswith("sessions"):
        path = damage.run / "sessions"
        if way == "sessions":
            shutil.copytree(damage.run / "stages", path / dice.choice(["1", "1", "7"]) / "stages")
        elif dice.random() < 0.5:
            path.symlink_to(damage.sandbox.outside / "taken")
        else:
            path.mkdir()
            (path / "1").symlink_to(damage.sandbox.outside / "taken")
    elif way.startswith("temporary"):
        folder = dice.choice([damage.run, checkpoints, damage.run / "stages"])
        path = folder / f".trainscope-{dice.choice(['1', 'x', '99999'])}.tmp"
        if way == "temporary":
            path.write_bytes(b"half")
        else:
            path.symlink_to(damage.sandbox.outside / dice.choice(["notes.txt", "taken", "missing"]))
    elif way == "fifo":
        folder = dice.choice([damage.run, checkpoints, damage.run / "stages"])
        os.mkfifo(folder / dice.choice(["front.json", "step-00000008", ".trainscope-2.tmp",
                                        "x.onnx"]))
    elif way == "names":
        for name in (b"\xff\xfe", b"\x1b[31m", b"new\nline", b"step-00000004\n", b"n" * 255):
            (checkpoints / os.fsdecode(name)).mkdir()
    else:
        for number in range(500):
            (checkpoints / f"step-{1000 + number:08}").mkdir()


def bytes_kind(change):
    return lambda damage: damage.write(change(damage.file.read_bytes(), damage.dice))


DAMAGES = {name: bytes_kind(change) for name, change in BYTES.items()}
DAMAGES.update({kind.__name__: kind for kind in (
    emptied, missing, swapped_files, renamed_checkpoint, json_values, huge_numbers, wrong_versions,
    tensor_tables, plan_numbers, hostile_graphs, links, linked_folders, no_files, strange_files)})
KINDS = list(DAMAGES)


def commands(subject, run, dice):
    """What reads or continues a run; the more likely ones are written more often."""
    resume = train_words(subject, STEPS + 2) + ["--run-dir", "run", "--resume", "auto"]
    writes = (("work/run",), "work/run")
    steps = sorted(path.name for path in (run / "checkpoints").glob("step-*")) or ["step-00000006"]
    branch = train_words(subject, STEPS + 2) + ["--run-dir", "other", "--resume",
                                                f"run/checkpoints/{dice.choice(steps)}"]
    again = ["train", "--config", "run/config.toml", "--run-dir", "other", "--steps", "2"]
    new_run = (("work/other",), "work/other")
    reading = [["eval", "run"], ["eval", "run", "--best"], ["inspect", "run"],
               ["inspect", "run", "--json"], ["inspect", "run", "--stages", "--explain"],
               ["inspect", "run", "--fate", "all"], ["diff", "run:imported", "run"],
               ["inspect", "run", "--memory"], ["inspect", "run", "--memory", "--at", "5"],
               ["inspect", "run", "--stage", "differentiate"], ["inspect", "run", "--node", "0"],
               ["plan", "run"], ["plan", "run", "--json"], ["plan", "run", "--batch", "4"],
               ["plan", "run", "--max-overhead", "10%"], ["plan", "run", "--threads", "2"],
               ["config", "validate", "run/config.toml"],
               ["config", "show", "train", "--config", "run/config.toml"]]
    if subject == "letters":
        reading += [["eval", "run", "--sample", "20"]] * 2
    exports = [[], ["--best"], ["--format", "safetensors"], ["--format", "safetensors", "--best"],
               ["--format", "csv"], ["--format", "tensorboard"], ["--format", "plan-json"], ["--stage", "optimizer_step"]]
    reads = [Step(words) for words in reading]
    reads += [Step(["export", "run", "-o", "out", *words], ("work/out",)) for words in exports]
    reads += [Step(["plan", "run", "--front"], ("work/run/front.json",))]
    writing = [Step(resume, *writes), Step(resume, *writes), Step(resume + ["--json"], *writes),
               Step(branch, *new_run), Step(again, *new_run)]
    return dice.choice(writing if dice.random() < 0.45 else reads)


def build(case, shared, sandbox):
    origin = shared / case.subject
    shutil.copytree(origin / "given", sandbox.given, dirs_exist_ok=True)
    shutil.copytree(origin / "work/run", sandbox.work / "run")
    dice = hostile.dice_of(case)
    damage = Damage(sandbox, dice)
    DAMAGES[case.kind](damage)
    yield commands(case.subject, damage.run, dice)
    # What was resumed, branched or read is read or resumed once more.
    yield commands(case.subject, damage.run, dice)
