#!/usr/bin/python3
"""The recompute planner against an integer program, on small random graphs.

The program is Checkmate's (Jain et al. 2020): in stage t, up to the first run of node t, node i
runs (R) or is held from the stage before (S); the bytes in memory at each place of each stage stay
within the budget. Solved by HiGHS in scipy; without it the test is skipped.

Usage: milp_test.py TRAINSCOPE
"""
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix
except ImportError:
    print("skipped: no scipy")
    sys.exit(77)

PROGRAM = sys.argv.pop()


def random_graph(seed, nodes):
    """A chain's training step with some skips: [(bytes, time, backward, inputs)]."""
    draw = random.Random(seed)
    forward = nodes // 2
    graph = []
    for i in range(forward):
        inputs = {i - 1} if i else set()
        if i > 2 and draw.random() < 0.3:
            inputs.add(draw.randrange(i - 1))
        graph.append((draw.randint(1, 20), draw.randint(0, 30), 0, sorted(inputs)))
    graph.append((1, draw.randint(0, 5), 1, [forward - 1]))
    for i in reversed(range(nodes - forward - 1)):
        inputs = {len(graph) - 1, min(i, forward - 1)} | ({i - 1} if i else set())
        graph.append((draw.randint(1, 20), draw.randint(0, 60), 1, sorted(inputs)))
    return graph


def save_all_peak(graph):
    last = {i: i for i in range(len(graph))}
    for i, (_, _, _, inputs) in enumerate(graph):
        last.update({u: i for u in inputs})
    live, peak = 0, 0
    for i, (size, _, _, _) in enumerate(graph):
        live += size
        peak = max(peak, live)
        live -= sum(graph[u][0] for u in range(i + 1) if last[u] == i)
    return peak


class Program:
    """Columns R[t,i], S[t,i] (whole) and L[t,k,i]: i is in memory when place k of stage t runs."""

    def __init__(self, graph, budget):
        self.graph, self.budget = graph, budget
        self.columns, self.rows = {}, []
        self.readers = [[j for j, node in enumerate(graph) if i in node[3]]
                        for i in range(len(graph))]

    def column(self, *key):
        return self.columns.setdefault(key, len(self.columns))

    def at_least(self, terms, bound):
        self.rows.append((terms, bound))

    def build(self):
        count = len(self.graph)
        for t in range(count):
            self.at_least([(1, self.column("R", t, t))], 1)
            for i in range(t + 1):
                for u in self.graph[i][3]:
                    self.at_least([(1, self.column("R", t, u)), (1, self.column("S", t, u)),
                                   (-1, self.column("R", t, i))], 0)
            for i in range(t):
                before = [(1, self.column("S", t - 1, i))] if t - 1 > i else []
                self.at_least(before + [(1, self.column("R", t - 1, i)),
                                        (-1, self.column("S", t, i))], 0)
            for k in range(t + 1):
                self.memory(t, k)

    def memory(self, t, k):
        room = []
        for i in range(t + 1):
            live = self.column("L", t, k, i)
            room.append((-self.graph[i][0], live))
            there = [self.column("S", t, i)] if i < t else []
            if i <= k:
                there.append(self.column("R", t, i))
            needed = [self.column("R", t, j) for j in self.readers[i] if k <= j <= t]
            if t + 1 < len(self.graph):
                needed.append(self.column("S", t + 1, i))
            for have in there:
                for need in needed:
                    self.at_least([(1, live), (-1, have), (-1, need)], -1)
            if i == k:
                self.at_least([(1, live), (-1, self.column("R", t, i))], 0)
        self.at_least(room, -self.budget)

    def solve(self):
        """The least time, or None."""
        self.build()
        cells = [(factor, row, column) for row, (terms, _) in enumerate(self.rows)
                 for factor, column in terms]
        matrix = coo_matrix(([c[0] for c in cells], ([c[1] for c in cells], [c[2] for c in cells])),
                            shape=(len(self.rows), len(self.columns)))
        cost = numpy.zeros(len(self.columns))
        whole = numpy.zeros(len(self.columns))
        for key, column in self.columns.items():
            whole[column] = key[0] != "L"
            if key[0] == "R":
                cost[column] = self.graph[key[2]][1]
        rows = LinearConstraint(matrix.tocsr(), [bound for _, bound in self.rows], numpy.inf)
        result = milp(cost, integrality=whole, bounds=Bounds(0, 1), constraints=rows,
                      options={"mip_rel_gap": 0})
        return round(result.fun) if result.status == 0 else None


class Milp(unittest.TestCase):
    def planned(self, graph, budget):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "problem.csv")
            with open(path, "w", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(["id", "name", "bytes", "time", "backward", "inputs"])
                for i, (size, time, backward, inputs) in enumerate(graph):
                    rows.writerow([i, f"n{i}", size, time, backward, " ".join(map(str, inputs))])
            done = subprocess.run([PROGRAM, "remat", path, "--budget", str(budget), "--json"],
                                  capture_output=True, text=True, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else None

    def test_random_graphs(self):
        compared = 0
        for seed in range(6):
            graph = random_graph(seed, 13)
            peak = save_all_peak(graph)
            for percent in (65, 80, 90):
                budget = peak * percent // 100
                optimum = Program(graph, budget).solve()
                facts = self.planned(graph, budget)
                if optimum is None:
                    continue
                self.assertIsNotNone(facts, f"seed {seed} at {percent} %")
                # The program runs each stage in one fixed order; the planner may find better.
                self.assertLessEqual(facts["time"], optimum)
                self.assertLessEqual(facts["lower_bound_time"], facts["time"])
                compared += 1
        self.assertGreater(compared, 8)

    def test_graphs_beyond_exact_search(self):
        for seed in (1, 2):
            graph = random_graph(seed, 23)
            budget = save_all_peak(graph) * 75 // 100
            optimum = Program(graph, budget).solve()
            facts = self.planned(graph, budget)
            if optimum is None:
                continue
            self.assertIsNotNone(facts)
            self.assertEqual(facts["save_all_bytes"], save_all_peak(graph))
            self.assertLessEqual(facts["lower_bound_time"], optimum)
            self.assertLessEqual(facts["time"], optimum * 1.0001)


if __name__ == "__main__":
    unittest.main()
