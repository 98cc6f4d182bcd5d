#!/usr/bin/python3
"""The rule by which an H200's tensor cores add gives the bits that they gave; a rule with another
number of bits does not.
"""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/gpu"))
import fragment_model as model  # noqa: E402  (found through the line above)

FILES = sorted((ROOT / "tests/data/h200/fragments").glob("*.f32"))


class FragmentModel(unittest.TestCase):
    def test_every_recorded_element_agrees_to_the_bit(self):
        self.assertGreaterEqual(len(FILES), 4)
        for path in FILES:
            same, count = model.agreeing(path, 32)
            self.assertEqual((same, count), (4096, 4096), path.name)

    def test_a_bit_more_or_less_does_not_agree(self):
        wide = next(path for path in FILES if path.name.startswith("mma.m16n8k16.bf16-wide"))
        self.addCleanup(setattr, model, "FRACTION_BITS", model.FRACTION_BITS)
        for bits in (24, 26):
            model.FRACTION_BITS = bits
            same, count = model.agreeing(wide, 4)
            self.assertLess(same, 0.9 * count, bits)

    def test_sums_by_hand(self):
        self.assertEqual(model.added(1.0, [2.0 ** -26], [1.0]), 1.0)  # cut, not rounded
        self.assertEqual(model.added(1.0, [2.0 ** -24] * 2, [1.0] * 2), 1.0 + 2.0 ** -23)
        self.assertEqual(model.added(1.0, [2.0 ** -26] * 8, [1.0] * 8), 1.0)  # each was cut before
        self.assertEqual(model.added(-1.0, [1.0, 2.0 ** -25], [1.0, 1.0]), 2.0 ** -25)
        self.assertEqual(model.added(0.0, [], []), 0.0)


if __name__ == "__main__":
    unittest.main()
