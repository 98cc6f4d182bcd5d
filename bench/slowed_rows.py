"""Rows of bench/profiler_pairs.py busy: a pair of sides with an op or node slowed in the second. What is kept
of them from one session to the next, and what is said of them."""
import collections
import datetime
import json

import measure

# Rows named beside the slowed one, of a comparison. Where nothing changed a row is beyond four errors by
# chance once in 16,000 if they are known, once in 760 if six pairs and what counts like eight more tell
# them (Student's t): of the 30 rows of 1 % that a step has at most, one in 25 comparisons.
MOST_WRONG = 1 / 20


def judged(rows):
    """How many slowed ops were named, how many rows beside them, and whether that is well."""
    found = sum(row["op"] in row["named"] for row in rows)
    wrong = sum(name != row["op"] for row in rows for name in row["named"])
    return {"found": found, "wrong": wrong,
            "holds": found == len(rows) and wrong <= MOST_WRONG * len(rows)}


class Kept:
    """What was measured of a workload so far, by any session: ops to slow, and a row for each pair. In a
    file, if one is given."""

    def __init__(self, path, workload, made_with):
        self.path, self.all = path, {}
        if path is not None and path.exists():
            self.all = json.loads(path.read_text("utf-8"))
        self.own = self.all.setdefault(workload, {**made_with, "slowed": [], "rows": []})
        self.rows = self.own["rows"]
        # None: what kept it did not know of it yet.
        other = {name: self.own.get(name) for name in made_with if self.own.get(name) != made_with[name]}
        if other:
            raise SystemExit(f"{path}: the pairs of {workload} that are there were made with {other}")

    def slowed(self, runs):
        if not self.own["slowed"]:
            self.own["slowed"] = runs.slowed()
        return self.own["slowed"]

    def add(self, row):
        where = measure.machine()
        self.rows.append({**row, "date": f"{datetime.date.today():%Y-%m-%d}", "commit": measure.commit(),
                          "machine": f"{where['cpu']} (family {where['family']}, model {where['model']})"})
        if self.path is not None:
            whole = self.path.with_name(self.path.name + ".new")
            whole.write_text(json.dumps(self.all, indent=1) + "\n", "utf-8")
            whole.replace(self.path)


def runs_text(rows):
    """Of a side of each pair, the least and the most: "6 to 14"."""
    counts = sorted({row["runs"] for row in rows})
    return " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))


def made_when(rows):
    """A line for each day, commit and machine: how many of the pairs it made."""
    made = collections.Counter((row["date"], row["commit"], row["machine"]) for row in rows)
    return "".join(f"\n- {count} pairs: {date}, commit {commit}, {where}"
                   for (date, commit, where), count in made.items())
