#!/usr/bin/python3
"""Run folders of strangers, and runs that somebody else writes: what is refused, and what stays.

Usage: strangers_run_test.py TRAINSCOPE. A run is copied, an entry of the copy is replaced by a link,
a FIFO, another kind of entry or a further name of a file outside. Training refuses it with exit code
3 before anything is written; verbs that read it neither wait for a FIFO nor follow a link.
"""
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MODEL = Path(__file__).resolve().parents[1] / "data/models/mlp/model.onnx"
PROGRAM = sys.argv.pop()
FILES = ["manifest.json", "config.toml", "plan.bin", "plan.json", "metrics.jsonl",
         "metrics.csv", "log.jsonl", "model.onnx", "stages/stages.json", "stages/00-imported.onnx", "checkpoints/best.json"]
FOLDERS = ["stages", "checkpoints"]


def run(*words, **options):
    """A FIFO that is waited for ends this after a minute, with an exception."""
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60,
                          **options)


def train(folder, steps, *more):
    return run("train", MODEL, "--data", "synthetic", "--seed", "3", "--threads", "1", "-q",
               "--steps", steps, "--eval-every", "2", "--save-every", "2", "--run-dir", folder, *more)


def contents(folder):
    """Every entry below a folder: what it is, and a file's bytes."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        kind = os.lstat(path).st_mode
        is_file = path.is_file() and not path.is_symlink()
        found[str(path)] = (kind, path.read_bytes() if is_file else b"")
    return found


def put_link(path, outside):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(outside)


def put_fifo(path, outside):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path)


def put_folder(path, outside):
    path.unlink()
    path.mkdir()


def put_hard_link(path, outside):
    path.unlink()
    os.link(outside, path)


class StrangersRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="trainscope-stranger-")
        cls.base = Path(cls.scratch.name) / "base"
        done = train(cls.base, 4)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="trainscope-stranger-")
        self.folder = Path(self.place.name)
        self.renew()

    def tearDown(self):
        self.place.cleanup()

    def renew(self):
        """The run as it was, and outside of it a file and a folder of the same content."""
        for path in self.folder.iterdir():
            shutil.rmtree(path)
        self.run_folder = self.folder / "run"
        shutil.copytree(self.base, self.run_folder)
        shutil.copytree(self.base, self.folder / "outside")
        for name in FILES:  # an unfinished line, which an appending writer would cut off
            with open(self.folder / "outside" / name, "ab") as file:
                file.write(b"\nno line end")

    def check_refused(self, done, before):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("error: refused to use '", done.stderr)
        self.assertIn("\n  try: ", done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1)
        self.assertEqual(contents(self.folder), before)

    def attack(self, put, name):
        self.renew()
        put(self.run_folder / name, self.folder / "outside" / name)
        return contents(self.folder)

    def test_links(self):
        for name in FILES + FOLDERS:
            with self.subTest(name):
                before = self.attack(put_link, name)
                self.check_refused(train(self.run_folder, 8, "--resume", "auto"), before)

    def test_fifos(self):
        for name in FILES + FOLDERS:
            with self.subTest(name):
                before = self.attack(put_fifo, name)
                self.check_refused(train(self.run_folder, 8, "--resume", self.run_folder), before)

    def test_folders_in_place_of_files(self):
        for name in FILES:
            with self.subTest(name):
                before = self.attack(put_folder, name)
                self.check_refused(train(self.run_folder, 8, "--resume", "auto"), before)

    def test_hard_links_to_files_that_grow(self):
        for name in ["metrics.jsonl", "log.jsonl"]:
            with self.subTest(name):
                before = self.attack(put_hard_link, name)
                self.check_refused(train(self.run_folder, 8, "--resume", "auto"), before)

    def test_hard_links_to_files_that_are_replaced(self):
        """They are other files afterwards; those outside stay."""
        self.renew()
        kept = self.folder / "kept"
        shutil.copytree(self.run_folder, kept, copy_function=os.link)
        for name in ["metrics.jsonl", "log.jsonl"]:
            (kept / name).unlink()
        before = contents(kept)
        done = train(self.run_folder, 8, "--resume", "auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(contents(kept), before)

    def test_links_in_a_checkpoint(self):
        """Such a checkpoint is damaged: the one before is taken, what is outside stays."""
        outside = self.folder / "outside"
        before = contents(outside)
        for name in ["step-00000004", "step-00000004/model.safetensors"]:
            with self.subTest(name):
                put_link(self.run_folder / "checkpoints" / name, outside / "checkpoints" / name)
                done = train(self.run_folder, 8, "--resume", "auto", "--keep", "1")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("checkpoint step-00000004 is not usable", done.stderr)
                self.assertIn("it is a symbolic link", done.stderr)
                self.assertEqual(contents(outside), before)
                self.renew()
                before = contents(outside)

    def test_a_checkpoint_of_another_step(self):
        checkpoints = self.run_folder / "checkpoints"
        (checkpoints / "step-00000004").rename(checkpoints / "step-00000009")
        resumed = train(self.run_folder, 12, "--resume", checkpoints / "step-00000009")
        self.assertEqual(resumed.returncode, 3)
        self.assertIn("its manifest is of step 4", resumed.stderr)
        done = train(self.run_folder, 12, "--resume", "auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("checkpoint step-00000009 is not usable", done.stderr)

    def test_the_run_itself_by_a_link(self):
        link = self.folder / "link"
        link.symlink_to("run")
        self.assertEqual(train(link, 8, "--resume", "auto").returncode, 0)
        self.assertEqual(run("inspect", link).returncode, 0)
        link.unlink()

    def test_readers(self):
        calls = {"manifest.json": ["inspect"], "metrics.jsonl": ["inspect"],
                 "plan.bin": ["plan"], "stages": ["inspect", "--stages"],
                 "stages/stages.json": ["inspect", "--stages"],
                 "stages/00-imported.onnx": ["inspect", "--stage", "imported"],
                 "model.onnx": ["eval"], "checkpoints": ["export", "--format", "safetensors"],
                 "checkpoints/best.json": ["export", "--best"]}
        for name, (verb, *flags) in calls.items():
            for put in [put_link, put_fifo]:
                with self.subTest(name, put=put.__name__):
                    before = self.attack(put, name)
                    out = ["-o", self.folder / "out"] if verb == "export" else []
                    self.check_refused(run(verb, self.run_folder, *flags, *out), before)

    def test_a_front_is_not_written_through_a_link(self):
        (self.run_folder / "front.json").symlink_to(self.folder / "outside/front.json")
        before = contents(self.folder)
        self.check_refused(run("plan", self.run_folder, "--front"), before)


class OtherWriter(unittest.TestCase):
    """A run that this test has locked, as another process would."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="trainscope-locked-")
        self.run_folder = Path(self.scratch.name) / "run"
        self.assertEqual(train(self.run_folder, 4).returncode, 0)
        self.checkpoints = self.run_folder / "checkpoints"
        # Reading this one is warned about.
        with open(self.checkpoints / "step-00000004/model.safetensors", "ab") as file:
            file.write(b"x")
        self.lock = os.open(self.run_folder, os.O_RDONLY)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def tearDown(self):
        os.close(self.lock)
        self.scratch.cleanup()

    def test_locked_before_a_checkpoint_is_chosen(self):
        before = contents(self.run_folder)
        for resume in ["auto", self.run_folder, self.checkpoints / "step-00000002"]:
            with self.subTest(resume):
                done = train(self.run_folder, 8, "--resume", resume)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("another process is writing the run", done.stderr)
                self.assertNotIn("not usable", done.stderr)
        self.assertEqual(contents(self.run_folder), before)

    def test_looking_needs_no_lock(self):
        before = contents(self.run_folder)
        done = train(self.run_folder, 8, "--resume", "auto", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("checkpoint step-00000004 is not usable", done.stderr)
        other = train(self.run_folder.parent / "other", 8, "--resume", self.run_folder)
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(contents(self.run_folder), before)

    def test_free_again(self):
        fcntl.flock(self.lock, fcntl.LOCK_UN)
        done = train(self.run_folder, 8, "--resume", "auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("checkpoint step-00000004 is not usable", done.stderr)


class Export(unittest.TestCase):
    def test_a_target_that_cannot_be_written_is_refused_before_training(self):
        with tempfile.TemporaryDirectory(prefix="trainscope-export-") as scratch:
            folder = Path(scratch)
            (folder / "taken").mkdir()
            os.mkfifo(folder / "fifo")
            (folder / "file").write_text("")
            targets = {"taken": "is not a regular file", "fifo": "is not a regular file",
                       "none/x.onnx": "No such file or directory", "file/x.onnx": "Not a directory",
                       "/proc/x.onnx": "cannot write", "new/": "it names a folder"}
            before = contents(folder)
            for target, reason in targets.items():
                for more in [[], ["--dry-run"]]:
                    if more and target.startswith("/proc"):
                        continue  # only trying shows that nothing can be made there
                    with self.subTest(target, more=more):
                        done = train(folder / "run", 2, "--export", os.path.join(folder, target),
                                     *more)
                        self.assertEqual(done.returncode, 6, done.stderr)
                        self.assertIn(reason, done.stderr)
                        self.assertIn("--export", done.stderr)
                        self.assertEqual(contents(folder), before)

    def test_nothing_is_left_of_trying(self):
        with tempfile.TemporaryDirectory(prefix="trainscope-export-") as scratch:
            folder = Path(scratch)
            done = train(folder / "run", 2, "--export", folder / "x.onnx")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["run", "x.onnx"])
            self.assertEqual((folder / "x.onnx").read_bytes(),
                             (folder / "run/model.onnx").read_bytes())


if __name__ == "__main__":
    unittest.main()
