#!/usr/bin/python3
"""Disks that take nothing: full, read-only, limited. Exit code 6, and old checkpoints stay.

Usage: disk_test.py TRAINSCOPE. Cases that need a file system of their own (mount in a name space of
the test) are left out where that is not allowed.
"""
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from kept_plans import keep  # noqa: E402

MODEL = Path(__file__).resolve().parents[1] / "data/models/lenet/model.onnx"
PROGRAM = sys.argv.pop()
UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]


def words(folder, steps, *more):
    return [PROGRAM, "train", str(MODEL), "--data", "synthetic", "--threads", "1", "-q", "--steps",
            str(steps), "--save-every", "1", "--run-dir", str(folder), *more]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def can_mount():
    script = "mount -t tmpfs -o size=1m none /mnt"
    return run([*UNSHARE, "sh", "-c", script]).returncode == 0


def checkpoints(run_folder):
    return sorted(p.name for p in (Path(run_folder) / "checkpoints").glob("step-*"))


class Disk(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="trainscope-disk-")
        self.folder = Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def check_refused(self, done, reason):
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("error: cannot ", done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertIn("\n  try: ", done.stderr)

    def test_a_limit_on_the_size_of_files(self):
        run_folder = self.folder / "r"
        self.assertEqual(run(words(run_folder, 2)).returncode, 0)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
        done = run(words(run_folder, 4, "--resume", "auto"), preexec_fn=limit)
        self.check_refused(done, "File too large")
        self.assertEqual(checkpoints(run_folder), ["step-00000001", "step-00000002"])
        self.assertEqual(run(words(run_folder, 4, "--resume", "auto")).returncode, 0)
        keep(run_folder)

    def test_a_full_device(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 6)
        self.assertIn("cannot write to standard output", done.stderr)

    def test_a_folder_that_takes_no_files(self):
        # Nobody, not even root, can make a folder in /proc.
        done = run(words("/proc/trainscope-run", 1))
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("cannot create the folder '/proc/trainscope-run'", done.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_permission(self):
        self.folder.chmod(0o555)
        done = run(words(self.folder / "r", 1))
        self.folder.chmod(0o755)
        self.check_refused(done, "Permission denied")

    @unittest.skipUnless(can_mount(), "no file system can be mounted here")
    def test_a_full_disk(self):
        """One run, on a disk that is filled up between two sessions of it."""
        disk = self.folder / "disk"
        disk.mkdir()
        train = " ".join(words(disk / "r", "$1", "--resume", "auto"))
        script = f"""
set -u
mount -t tmpfs -o size=8m none {disk}
train() {{ {train}; }}
train 2 || exit 101
before=$(cd {disk}/r/checkpoints && ls)
dd if=/dev/zero of={disk}/filler bs=4k 2>/dev/null
truncate -s -150K {disk}/filler  # room for the small files of a session, not for a checkpoint
train 4; code=$?
[ "$before" = "$(cd {disk}/r/checkpoints && ls)" ] || exit 102
rm {disk}/filler
train 4 || exit 103
cp {disk}/r/model.onnx {self.folder}/resumed.onnx
exit $code
"""
        done = run([*UNSHARE, "sh", "-c", script])
        self.check_refused(done, "No space left on device")
        self.assertEqual(run(words(self.folder / "whole", 4)).returncode, 0)
        self.assertEqual((self.folder / "resumed.onnx").read_bytes(),
                         (self.folder / "whole/model.onnx").read_bytes())

    @unittest.skipUnless(can_mount(), "no file system can be mounted here")
    def test_a_read_only_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        script = f"""
mount -t tmpfs none {disk}
{" ".join(words(disk / "r", 2))} || exit 101
mount -o remount,ro {disk}
{" ".join(words(disk / "r", 4, "--resume", "auto"))}; code=$?
{" ".join(words(disk / "new", 4))} 2>/dev/null; [ $? = 6 ] || exit 102
{PROGRAM} eval {disk}/r >/dev/null || exit 103
exit $code
"""
        done = run([*UNSHARE, "sh", "-c", script])
        self.check_refused(done, "Read-only file system")


if __name__ == "__main__":
    unittest.main()
