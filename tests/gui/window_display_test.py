#!/usr/bin/python3
"""The window on a display: opens, is driven by keys and mouse, is resized, idles, and ends with 0.

What was done is read from what it leaves: the run's notes, the user's settings.
Usage: window_display_test.py TRAINSCOPE. Exit code 77: no Xvfb or xdotool here.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAINSCOPE = Path(sys.argv[1])
LIMIT = 120.0  # seconds, of each wait


def start_display():
    """An X server of our own; its name."""
    read_end, write_end = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1600x900x24", "-nolisten", "tcp"],
        pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        return server, ":" + answer.readline().strip()


def make_run(folder):
    def trainscope(*words):
        subprocess.run([TRAINSCOPE, *words], check=True, capture_output=True)
    trainscope("model", "mlp", "-o", str(folder / "model.onnx"))
    trainscope("train", str(folder / "model.onnx"), "--data", "synthetic", "--steps", "4",
               "--run-dir", str(folder / "run"), "--profile", "steps=2:4")
    return folder / "run"


class Driver:
    def __init__(self, display):
        self.environment = dict(os.environ, DISPLAY=display)

    def xdotool(self, *words):
        return subprocess.run(["xdotool", *words], env=self.environment, capture_output=True,
                              text=True, check=False).stdout.strip()

    def find_window(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            found = self.xdotool("search", "--name", "^Trainscope$").split()
            if found:
                return found[0]
            time.sleep(0.1)
        raise SystemExit("no window came up")

    def key(self, name):
        self.xdotool("key", name)
        time.sleep(0.2)

    def type(self, text):
        self.xdotool("type", "--delay", "20", text)
        time.sleep(0.2)


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit(f"waited in vain: {what}")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drive(driver, process, run):
    window = driver.find_window()
    driver.xdotool("mousemove", "--window", window, "400", "300")
    time.sleep(0.5)
    driver.key("F4")
    driver.key("Down")
    driver.key("m")  # a bookmark: what is shown and selected
    notes = run / "notes.json"
    wait_for(notes.exists, "a bookmark")
    view = json.loads(notes.read_text(encoding="utf-8"))["notes"][0]["view"]
    assert view.startswith("kernels,node:"), view

    driver.key("ctrl+p")
    driver.type("next theme")
    driver.key("Return")
    driver.xdotool("windowsize", "--sync", window, "900", "600")
    driver.xdotool("mousemove", "--window", window, "300", "200")
    driver.xdotool("click", "1")
    driver.xdotool("click", "4")
    driver.key("F5")

    time.sleep(3.0)  # what was to be drawn is drawn
    before = cpu_seconds(process.pid)
    time.sleep(5.0)
    idle = (cpu_seconds(process.pid) - before) / 5.0
    print(f"idle: {100.0 * idle:.2f} % of a core")
    assert idle < 0.02, idle

    driver.key("ctrl+q")
    assert process.wait(timeout=LIMIT) == 0


def main():
    if not shutil.which("Xvfb") or not shutil.which("xdotool"):
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(folder)
        server, display = start_display()
        try:
            driver = Driver(display)
            environment = dict(driver.environment, XDG_CONFIG_HOME=str(folder / "config"),
                               LIBGL_ALWAYS_SOFTWARE="1")
            process = subprocess.Popen([TRAINSCOPE, "gui", str(run)], env=environment)
            try:
                drive(driver, process, run)
            finally:
                if process.poll() is None:
                    process.kill()
            settings = json.loads((folder / "config/trainscope/window.json").read_text("utf-8"))
            assert settings["theme"] == "light", settings["theme"]
            assert settings["layout"]["workspace"] == "overview", settings["layout"]
            assert settings["recent"] == [str(run)], settings["recent"]
        finally:
            server.terminate()
            server.wait()
        # Without a display: one line, and what to use instead.
        environment.pop("DISPLAY")
        lost = subprocess.run([TRAINSCOPE, "gui", str(run)], env=environment, capture_output=True,
                              text=True, check=False)
        assert lost.returncode == 4, lost
        assert lost.stderr.count("\n") == 1 and "trainscope shot" in lost.stderr, lost.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
