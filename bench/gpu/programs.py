"""Trainscope's programs as the stages of bench/gpu call them: models, trainings and JSON, a line for what fails."""
import array
import csv
import json
import random
import shutil
import subprocess

from workloads import model_words, step_flags, update_flags

IGNORED = -100  # the label that does not count, of `--loss cross_entropy`


def tell(kind, **values):
    print(json.dumps({"kind": kind, **values}), flush=True)


def write_safetensors(path, tensors):
    """{name: (shape, integers)} as a file of 64-bit integers."""
    header, places, begin = {}, [], 0
    for name, (shape, values) in tensors.items():
        data = array.array("q", values).tobytes()
        header[name] = {"dtype": "I64", "shape": shape, "data_offsets": [begin, begin + len(data)]}
        places.append(data)
        begin += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(places)


def write_masked_texts(path, sizes):
    """Random texts for BERT, four batches: `predictions` positions of each have a label, the others' does not count."""
    rng = random.Random(2)
    examples, length, vocab = 4 * sizes["batch"], sizes["length"], sizes["vocab"]
    ids = [rng.randrange(vocab) for _ in range(examples * length)]
    labels = [IGNORED] * len(ids)
    for text in range(examples):
        for position in rng.sample(range(length), sizes["predictions"]):
            labels[text * length + position] = ids[text * length + position]
    segments = [int(position >= length // 2) for position in range(length)] * examples
    shape = [examples, length]
    write_safetensors(path, {"ids": (shape, ids), "segments": (shape, segments), "labels": (shape, labels)})


class Programs:
    """The programs of a bundle, and a folder for what they write."""

    def __init__(self, args, scratch):
        self.args, self.scratch, self.failed = args, scratch, False
        self.runs = 0

    def printed_by(self, program, *words):
        """What the program printed, and whether it did well; if not, a line says so."""
        command = [str(self.args.programs / program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout, True
        self.failed = True
        tell("error", what=" ".join([program, *map(str, words)]),
             error=f"exit code {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
        return done.stdout, False

    def call(self, program, *words):
        """What the program printed; None where it failed."""
        printed, well = self.printed_by(program, *words)
        return printed if well else None

    def trainscope(self, *words):
        printed = self.call("trainscope", *words, "--json")
        return None if printed is None else json.loads(printed)

    def model(self, *words):
        """The file of `trainscope model` with these words; None where it failed."""
        path = self.scratch / f"{'-'.join(str(word).strip('-') for word in words)}.onnx"
        if not path.exists() and self.call("trainscope", "model", *words, "-o", path) is None:
            return None
        return path

    def train(self, model, *words, verb="train", device=None, data="synthetic", run=None):
        """A training: its JSON, with the steps' times in ms and losses beside. Its folder stays if `run` names it."""
        self.runs += 1
        folder = run or self.scratch / f"run-{self.runs}"
        result = self.trainscope(verb, model, "--data", data, "--seed", 1, "--device", device or self.args.device,
                                 "--run-dir", folder, "--validation", "none", *words)
        if result is None:
            return None
        with open(folder / "metrics.csv", encoding="utf-8") as file:
            steps = [row for row in csv.DictReader(file) if row["kind"] == "step"]
        result["step_times"] = [float(row["step_ms"]) for row in steps]
        result["losses"] = [row["loss"] for row in steps]
        if run is None:
            shutil.rmtree(folder)  # the largest have 20 GB of checkpoints
        return result

    def train_workload(self, sizes, precision, *words, **how):
        """A training of a workload of workloads.py. Where labels are of some positions alone, so they are here."""
        model = self.model(*model_words(sizes))
        if model is None:
            return None
        flags = [*step_flags(sizes, precision), *update_flags(sizes)]
        if sizes.get("accumulate", 1) > 1:
            flags += ["--accumulate", sizes["accumulate"]]
        if "predictions" in sizes:
            texts = self.scratch / f"texts-{sizes['batch']}-{sizes['length']}.safetensors"
            if not texts.exists():
                write_masked_texts(texts, sizes)
            how["data"] = f"tensors:{texts}"
            flags.append("--skip-ignored")
        return self.train(model, *flags, *words, **how)
