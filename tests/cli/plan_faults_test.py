#!/usr/bin/python3
"""scripts/check_plan.py finds the faults that are planted in plans of runs.

Usage: plan_faults_test.py TRAINSCOPE. Exit code 77 (skipped) without python3-onnx or numpy.
"""
import json
import shutil
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from checked_plans import PROGRAM, ROOT, CheckedPlans  # noqa: E402


class PlantedFaults(CheckedPlans):
    def test_planted_faults(self):
        def renumbered(plan, change):
            """The ids are right again: something else has to find the fault."""
            change(plan)
            ids = {row["id"]: i for i, row in enumerate(plan["calls"])}
            for i, row in enumerate(plan["calls"]):
                row["id"] = i
            for row in plan["buffers"]:
                if "call" in (row["owner"] or {}):
                    row["owner"]["call"] = ids.get(row["owner"]["call"])

        def values(plan):
            return [row for row in plan["buffers"] if row["kind"] == "value" and row["bytes"] > 64]

        def overlap(plan):
            rows = values(plan)
            for row in rows:
                row["offset"] = rows[0]["offset"]

        def outside(plan):
            values(plan)[0]["offset"] = plan["arena_bytes"]

        def short_life(plan):
            row = max(values(plan), key=lambda r: r["death"] - r["birth"])
            row["death"] = row["birth"] + 1

        def left_out(plan):
            del plan["calls"][3]

        def exchanged(plan):
            rows = plan["calls"]
            rows[1], rows[2] = rows[2], rows[1]

        def bound(plan):
            plan["lower_bound_bytes"] //= 2

        def no_workspace(plan):
            plan["buffers"] = [row for row in plan["buffers"] if row["kind"] != "workspace"]

        def nothing(plan):
            plan["calls"][3]["outputs"] = []

        def unknown(plan):
            plan["calls"][3]["outputs"] = ["no such value"]

        def other_owner(plan):
            row = next(row for row in plan["buffers"] if row["kind"] == "workspace")
            row["owner"]["call"] += 1

        def other_time(plan):
            plan["calls"][3]["time"] += 1

        def another_first(plan):
            row = next(row for row in plan["calls"] if "rematerialized_of" in row)
            row["rematerialized_of"] = next(other["node_id"] for other in plan["calls"]
                                            if other["op"] != row["op"])

        def itself_first(plan):
            row = next(row for row in plan["calls"] if "rematerialized_of" in row)
            row["rematerialized_of"] = row["node_id"]

        for change in (overlap, outside, short_life, left_out, exchanged, bound, no_workspace,
                       nothing, unknown, other_owner, other_time, another_first, itself_first):
            with self.subTest(change=change.__name__):
                run = self.train("gpt2", "--recompute", "2")
                self.assertNotIn(" 0 faults", self.spoil(run, lambda plan: renumbered(plan, change)))

        def ids(plan):
            plan["calls"][3]["id"] = 4

        self.assertEqual(self.spoil(self.train("gpt2"), ids).count("the ids are not"), 1)

    def test_planted_faults_in_slices(self):
        def slices(plan):
            """Of results that a Concat finds in place."""
            rows = [row for row in plan["buffers"] if len(row["slices"]) > 1]
            return rows[0]["slices"]

        def moved(plan):
            slices(plan)[0]["offset"] += 64

        def exchanged(plan):
            one, other = slices(plan)[0], slices(plan)[-1]
            one["offset"], other["offset"] = other["offset"], one["offset"]

        def outside(plan):
            slices(plan)[-1]["offset"] = plan["arena_bytes"] - 64

        def short(plan):
            slices(plan)[0]["bytes"] -= 64

        def left_out(plan):
            slices(plan).pop()

        for change in (moved, exchanged, outside, short, left_out):
            with self.subTest(change=change.__name__):
                self.assertNotIn(" 0 faults", self.spoil(self.unet(), change))

    def test_batch_tiles(self):
        """Every tile is replayed: what another one does with its bytes is found."""
        def tile(plan, number, kind="kernel", slice_of="examples", key="writes"):
            """The first operand of a call of this tile that is such a slice."""
            return next(o for row in plan["calls"] if row.get("tile") == number
                        and row["kind"] == kind for o in row[key] if o and o["slice"] == slice_of)

        def another_tiles_bytes(plan):
            tile(plan, 1)["offset"] -= tile(plan, 1)["offset"]

        def misplaced(plan):
            tile(plan, 1)["offset"] += 4

        def reads_another_tiles(plan):
            tile(plan, 1, key="reads")["offset"] = 0

        def smaller(plan):
            tile(plan, 1)["shape"][0] -= 1

        def partial_in_the_result(plan):
            first, other = (tile(plan, t, slice_of="partial") for t in (0, 1))
            other["buffer"], other["offset"] = first["buffer"], first["offset"]

        def sum_of_other_elements(plan):
            tile(plan, 0, "add_partials", "partial", "reads")["offset"] += 4

        def sum_elsewhere(plan):
            tile(plan, 1, "add_partials", "elements")["offset"] = 0

        def no_sum(plan):
            last = max(i for i, row in enumerate(plan["calls"]) if row["kind"] == "add_partials")
            plan["calls"][last]["kind"] = "kernel"

        def workspaces_overlap(plan):
            rows = [row for row in plan["calls"] if row.get("tile") == 1 and row["workspace_bytes"]
                    and row["tile_workspace_bytes"]]
            if not rows:  # no tile has one of its own: as if one had
                rows = [row for row in plan["calls"] if row.get("tile") == 1][:1]
                place = rows[0]["writes"][0]
                buffer = plan["buffers"][place["buffer"]]
                rows[0]["workspace_offset"] = buffer["offset"]
                rows[0]["tile_workspace_bytes"] = 64
            rows[0]["tile_workspace_offset"] = 0

        def exchanged_tiles(plan):
            begin = plan["sections"][0]["begin"]
            for row, number in zip(plan["calls"][begin:begin + 2], (1, 0)):
                row["tile"] = number

        run = self.train("mlp", "--batch-tiles", "auto", threads=2)
        text = (run / "plan.json").read_text()
        self.assertGreater(len(json.loads(text)["sections"]), 1)
        self.assertIn(" 0 faults", self.check(run))
        for change in (another_tiles_bytes, misplaced, reads_another_tiles, smaller,
                       partial_in_the_result, sum_of_other_elements, sum_elsewhere, no_sum,
                       workspaces_overlap, exchanged_tiles):
            with self.subTest(change=change.__name__):
                (run / "plan.json").write_text(text)
                self.assertNotIn(" 0 faults", self.spoil(run, change))

    def test_bodies(self):
        """A body's calls are replayed trip by trip in the call's workspace."""
        def inner(plan):
            return plan["bodies"][0]["plan"]

        def overlap(plan):
            rows = inner(plan)["buffers"]
            for row in rows:
                row["offset"] = rows[0]["offset"]

        def misread(plan):
            call = inner(plan)["calls"][1]
            call["reads"][0], call["reads"][1] = call["reads"][1], call["reads"][0]
            call["reads"][0]["offset"] += 64

        def exchanged(plan):
            """The sum reads x after the product has taken its place: of the trip before."""
            calls = inner(plan)["calls"]
            calls[1]["reads"][1] = dict(calls[0]["writes"][0], value=calls[1]["reads"][1]["value"])

        def overwritten_input(plan):
            body = inner(plan)
            product, x = body["calls"][0]["writes"][0], body["inputs"][0]
            rows = {row["id"]: row for row in body["buffers"]}
            place = next(v["buffer"] for v in body["values"] if v["id"] == x)
            rows[product["buffer"]]["offset"] = rows[place]["offset"]

        def too_large(plan):
            inner(plan)["arena_bytes"] += 64

        def missing(plan):
            inner(plan)["calls"].pop()

        run = self.folder / "body"
        shutil.copytree(ROOT / "tests/data/plan-with-body", run)
        text = (run / "plan.json").read_text()
        self.assertIn(" 0 faults", self.check(run))
        for change in (overlap, misread, exchanged, overwritten_input, too_large, missing):
            with self.subTest(change=change.__name__):
                (run / "plan.json").write_text(text)
                self.assertIn("in its body" if change is not too_large else "its body needs more",
                              self.spoil(run, change))

    def test_waits(self):
        model = self.folder / "offload.onnx"
        subprocess.run([PROGRAM, "model", "gpt2", "--layers", "4", "--heads", "4", "--embedding", "64",
                        "--vocab", "65", "--context", "64", "-o", model], check=True,
                       stdout=subprocess.DEVNULL)
        run = self.train(model, "--batch", "16", "--seq", "64", "--max-overhead", "20%", "--offload",
                         "--link-rate", "100000GB")
        plan = (run / "plan.json").read_text()
        waiting = [row["id"] for row in json.loads(plan)["calls"] if row["waits"]]
        self.assertGreater(len(waiting), 20)
        self.assertIn(" 0 faults", self.spoil(run, lambda plan: None))
        for call in waiting[:: len(waiting) // 5]:
            def forget(plan):
                plan["calls"][call]["waits"] = []

            (run / "plan.json").write_text(plan)
            with self.subTest(call=call):
                self.assertIn(f"call {call} does not wait for", self.spoil(run, forget))

    def test_planted_fault_in_what_is_held(self):
        def overlap(plan):
            held = [row for row in plan["buffers"] if row["kind"] == "held"]
            self.assertEqual(len(held), 1)
            value = max((row for row in plan["buffers"] if row["kind"] == "value"),
                        key=lambda row: row["bytes"])
            held[0]["offset"] = min(value["offset"], plan["arena_bytes"] - held[0]["bytes"])

        first, last = self.worlds("--world", "2", "--pipeline", "2", "--accumulate", "4")
        self.assertIn("held for others", self.spoil(first, overlap))
        self.assertIn(f"{last}: 0 faults", self.check(last))  # one micro-batch at a time

    def test_planted_faults_in_plan_bin(self):
        """In the bytes of the record: what a plan without plan.json is checked by."""
        data = bytearray()

        def rows(number):
            """Where each row of a section begins."""
            count, = struct.unpack_from("<I", data, 12)
            for i in range(count):
                section, width, begin, size, _ = struct.unpack_from("<IIQQQ", data, 32 + 32 * i)
                if section == number:
                    return range(begin, begin + width * size, width)
            self.fail(f"no section {number}")

        def put(fields, place, number):
            struct.pack_into("<" + fields, data, place, number)

        def get(fields, place):
            return struct.unpack_from("<" + fields, data, place)[0]

        def values():
            """Buffers of values that are made in the step, not of other programs or the host."""
            return [at for at in rows(7) if data[at] in (4, 5, 6) and get("q", at + 40) > 64]

        def overlap():
            for at in values():
                put("q", at + 32, get("q", values()[0] + 32))

        def outside():
            put("q", values()[0] + 32, get("q", rows(16)[0]))

        def short_life():
            at = max(values(), key=lambda at: get("I", at + 28) - get("I", at + 24))
            put("I", at + 28, get("I", at + 24) + 1)

        def other_bytes():
            put("q", rows(11)[3] + 8, 64)

        def exchanged():
            one, other = rows(10)[1:3]
            data[one:one + 136], data[other:other + 136] = data[other:other + 136], data[one:one + 136]

        def other_time():
            put("I", rows(10)[3] + 60, get("I", rows(10)[3] + 60) + 1)

        def other_workspace():
            at = next(at for at in rows(10) if get("I", at + 48) != 0xFFFFFFFF)
            put("I", at + 48, 0)

        def bound():
            put("q", rows(16)[0] + 8, get("q", rows(16)[0] + 8) // 2)

        run = self.train("gpt2", "--recompute", "2")
        (run / "plan.json").unlink()
        self.assertIn(" 0 faults", self.check(run))
        sound = (run / "plan.bin").read_bytes()
        for change in (overlap, outside, short_life, other_bytes, exchanged, other_time,
                       other_workspace, bound):
            with self.subTest(change=change.__name__):
                data[:] = sound
                change()
                (run / "plan.bin").write_bytes(data)
                self.assertNotIn(" 0 faults", self.check(run))


if __name__ == "__main__":
    unittest.main()
