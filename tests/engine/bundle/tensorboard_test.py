#!/usr/bin/python3
"""Event files read by an independent decoder: frames, checksums, messages, and what they say.

Usage: tensorboard_test.py TRAINSCOPE
"""
import csv
import json
import math
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from kept_plans import keep  # noqa: E402

PROGRAM = sys.argv.pop()
MODEL = Path(__file__).resolve().parents[2] / "data/models/mlp/model.onnx"
TRAIN = ["train", str(MODEL), "--data", "synthetic", "--threads", "1", "-q", "--clip", "1"]


def crc32c(data):
    """Bit by bit, from the polynomial x^32 + x^28 + x^27 + ... (Castagnoli), reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        (length_crc,) = struct.unpack_from("<I", data, at + 8)
        assert length_crc == masked(data[at:at + 8]), "checksum of a length"
        message = data[at + 12:at + 12 + length]
        assert len(message) == length, "a frame is cut short"
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked(message), "checksum of a message"
        yield message
        at += 16 + length


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at:at + 8], at + 8
        elif wire == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif wire == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise AssertionError(f"wire type {wire}")
        yield key >> 3, value


def event(message):
    known = dict(fields(message))
    result = {"time": struct.unpack("<d", known[1])[0], "step": known[2], "scalars": {}}
    if 3 in known:
        result["version"] = known[3].decode()
    if 7 in known:
        result["session"] = dict(fields(known[7]))[1]
    for number, value in fields(known.get(5, b"")):
        assert number == 1
        parts = dict(fields(value))
        result["scalars"][parts[1].decode()] = struct.unpack("<f", parts[2])[0]
    return result


def events_of(path):
    return [event(message) for message in frames(path.read_bytes())]


def series(events, tag):
    return [(e["step"], e["scalars"][tag]) for e in events if tag in e["scalars"]]


class TensorBoard(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *words):
        subprocess.run([PROGRAM, *words], check=True, cwd=self.folder, capture_output=True)
        if words[0] == "train":
            keep(self.folder / "r")

    def lines(self):
        """Rows of metrics.jsonl that count."""
        rows = []
        for line in (self.folder / "r/metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["kind"] == "resume":
                rows = [r for r in rows if r["step"] <= row["step"]]
            else:
                rows.append(row)
        return rows

    def event_files(self):
        return sorted((self.folder / "r").glob("events.out.tfevents.*"))

    def test_our_checksum_is_castagnolis(self):
        self.assertEqual(0xE3069283, crc32c(b"123456789"))  # the check value of its catalogue

    def test_a_run(self):
        before = time.time()
        self.run_program(*TRAIN, "--steps", "6", "--eval-every", "3", "--run-dir", "r",
                         "--metrics", "csv,tensorboard")
        (file,) = self.event_files()
        events = events_of(file)
        self.assertEqual("brain.Event:2", events[0]["version"])
        for one in events:
            self.assertLessEqual(before - 1, one["time"])
            self.assertLessEqual(one["time"], time.time() + 1)
        steps = [row for row in self.lines() if row["kind"] == "step"]
        for key in ("loss", "learning_rate", "gradient_norm", "step_ms", "samples"):
            found = series(events, f"train/{key}")
            self.assertEqual([row["step"] for row in steps], [step for step, _ in found])
            for row, (_, value) in zip(steps, found):
                self.assertTrue(math.isclose(row[key], value, rel_tol=1e-6), key)
        validation = [row for row in self.lines() if row["kind"] == "evaluation"]
        self.assertEqual([row["step"] for row in validation],
                         [step for step, _ in series(events, "validation/loss")])
        self.check_table()

    def check_table(self):
        with open(self.folder / "r/metrics.csv", newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        rows = self.lines()
        self.assertEqual(len(rows), len(table))
        for row, cells in zip(rows, table):
            self.assertNotIn(None, cells)
            for key, value in row.items():
                if key in cells:
                    self.assertEqual("" if value is None else str(value), str(
                        type(value)(cells[key]) if cells[key] else ""))
            for key, cell in cells.items():
                self.assertTrue(key in row or cell == "", key)

    def test_what_is_not_measured_is_left_out(self):
        self.run_program(*TRAIN[:-2], "--steps", "2", "--run-dir", "r", "--metrics",
                         "jsonl,tensorboard")
        self.assertFalse((self.folder / "r/metrics.csv").exists())
        self.assertEqual([], series(events_of(self.event_files()[0]), "train/gradient_norm"))

    def test_a_resumed_run_begins_a_new_file_and_takes_steps_back(self):
        self.run_program(*TRAIN, "--steps", "9", "--save-every", "4", "--keep", "9", "--run-dir",
                         "r", "--metrics", "csv,tensorboard")
        for step in (8, 9):
            for file in sorted((self.folder / f"r/checkpoints/step-{step:08}").iterdir()):
                file.unlink()
            (self.folder / f"r/checkpoints/step-{step:08}").rmdir()
        self.run_program(*TRAIN, "--steps", "7", "--run-dir", "r", "--resume", "auto",
                         "--metrics", "csv,tensorboard")
        files = self.event_files()
        self.assertEqual(2, len(files))
        newest = max(files, key=lambda file: file.stat().st_mtime_ns)
        events = events_of(newest)
        (start,) = [e for e in events if "session" in e]
        self.assertEqual((1, 5), (start["session"], start["step"]))  # SessionLog.START
        self.assertEqual([5, 6, 7], [step for step, _ in series(events, "train/loss")])
        self.check_table()

    def test_export_of_a_run_says_the_same(self):
        self.run_program(*TRAIN, "--steps", "4", "--eval-every", "2", "--run-dir", "r",
                         "--metrics", "csv,tensorboard")
        self.run_program("export", "r", "--format", "tensorboard", "-o", "events.tfevents")
        self.run_program("export", "r", "--format", "csv", "-o", "m.csv")
        self.assertEqual((self.folder / "r/metrics.csv").read_text(),
                         (self.folder / "m.csv").read_text())
        live = [e["scalars"] for e in events_of(self.event_files()[0]) if e["scalars"]]
        exported = events_of(self.folder / "events.tfevents")
        self.assertEqual(live, [e["scalars"] for e in exported if e["scalars"]])
        times = [e["time"] for e in exported]
        self.assertEqual(sorted(times), times)
        self.assertLess(abs(times[0] - time.time()), 60)


if __name__ == "__main__":
    unittest.main()
