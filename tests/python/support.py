"""What the tests of python/trainscope share: where things are, and a folder that goes away."""
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
DATA = SOURCE / "tests" / "data"
MODELS = DATA / "models"
SHARED = SOURCE.parent / "shared"
sys.path.insert(0, str(SOURCE / "python"))
sys.dont_write_bytecode = True

SKIPPED = 77  # the exit code that ctest reads as "skipped"


def skip_without(*modules):
    """Ends the test program with a line where one of these modules is not installed."""
    for module in modules:
        try:
            __import__(module)
        except ImportError as error:
            print(f"skipped: {error}")
            sys.exit(SKIPPED)


class FolderCase(unittest.TestCase):
    """A test case with a folder of its own, self.folder."""

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def refuses(self, text, code, function, *arguments, **named):
        """Checks that a call raises a TrainscopeError of one line with this text and code."""
        from trainscope.errors import TrainscopeError
        with self.assertRaises(TrainscopeError) as caught:
            function(*arguments, **named)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(caught.exception.code, code)
