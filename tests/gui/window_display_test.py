#!/usr/bin/python3
"""The window on a display: opens, is driven by keys and mouse, plans less memory by its slider and trains on with it, is
resized and scaled, idles, and ends with 0.

What was done is read from what it leaves: the run's notes and sessions, the user's settings; what is drawn from the
display's pixels.
Usage: window_display_test.py TRAINSCOPE. Exit code 77: no Xvfb or xdotool here.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

TRAINSCOPE = Path(sys.argv[1])
MODEL = Path(__file__).resolve().parents[1] / "data/models/gpt2/model.onnx"
LIMIT = 120.0  # seconds, of each wait
STEPS = 4  # of the run
MORE_STEPS = 20  # that the Budget panel's button asks for


def start_display(folder):
    """An X server of our own, whose pixels are a file in the folder; its name."""
    read_end, write_end = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1600x900x24", "-nolisten", "tcp",
         "-fbdir", str(folder)],
        pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        return server, ":" + answer.readline().strip()


def pixels_on_display(folder):
    """Every pixel that the display shows, row by row, and how many a row has."""
    dump = (folder / "Xvfb_screen0").read_bytes()  # in the form of xwd
    header_bytes, = struct.unpack_from(">I", dump, 0)
    height, = struct.unpack_from(">I", dump, 5 * 4)
    bits, row_bytes = struct.unpack_from(">II", dump, 11 * 4)
    colormap, = struct.unpack_from(">I", dump, 19 * 4)
    assert bits == 32, bits
    first = header_bytes + 12 * colormap
    return memoryview(dump)[first:first + height * row_bytes].cast("I"), row_bytes // 4


def colors_on_display(folder):
    """How many different colours the display shows: text with soft edges has dozens."""
    return len(set(pixels_on_display(folder)[0]))


def band_color(folder, left, width, top, height):
    """What most pixels of a band across the window have: what its texts stand on."""
    pixels, per_row = pixels_on_display(folder)
    counts = Counter()
    for y in range(top, top + height):
        counts.update(pixels[y * per_row + left:y * per_row + left + width].tolist())
    return counts.most_common(1)[0][0]


def make_run(folder):
    subprocess.run([TRAINSCOPE, "train", str(MODEL), "--data", "synthetic", "--steps", str(STEPS),
                    "--run-dir", str(folder / "run"), "--profile", "steps=2:4"],
                   check=True, capture_output=True)
    return folder / "run"


def sessions_of(run):
    return json.loads((run / "manifest.json").read_text(encoding="utf-8"))["sessions"]


def arena_bytes(run):
    """Of the newest session's plan."""
    plan = subprocess.run([TRAINSCOPE, "plan", str(run), "--json"], check=True, capture_output=True)
    return json.loads(plan.stdout)["arena_bytes"]


def texts_of_budget(run, folder):
    """Where the texts of the window stand that shows the Budget panel: the picture is drawn as the window is."""
    out = folder / "window.svg"
    subprocess.run([TRAINSCOPE, "shot", str(run), "--panel", "window", "--exec", "panel budget",
                    "-o", str(out)], check=True, capture_output=True)
    texts = {}
    for text in ElementTree.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text"):
        words = "".join(text.itertext())
        texts.setdefault(words, (float(text.get("x")), float(text.get("y")) - 4.0))
    return texts


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

    def place(self, window):
        """Left, top, width and height of the window on the display."""
        said = dict(line.split("=") for line in self.xdotool("getwindowgeometry", "--shell", window).split())
        return tuple(int(said[name]) for name in ("X", "Y", "WIDTH", "HEIGHT"))

    def key(self, name):
        self.xdotool("key", name)
        time.sleep(0.2)

    def mouse(self, window, x, y, action=None):
        """To a point of the window, and what is done there: click, mousedown, mouseup."""
        self.xdotool("mousemove", "--window", window, str(round(x)), str(round(y)))
        time.sleep(0.1)
        if action:
            self.xdotool(action, "1")
            time.sleep(0.1)

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


def apply_less_memory(driver, window, run, folder):
    """Drags the slider of the Budget panel to its middle, and presses its button."""
    before = arena_bytes(run)
    texts = texts_of_budget(run, folder)
    driver.key("F2")
    x, y = texts["Budget"]
    driver.mouse(window, x + 8.0, y, "click")
    x, y = texts["auto"]
    budget = next(at for words, at in texts.items() if words.endswith("100.0 %"))
    middle = (x + 40.0 + budget[0]) / 2.0
    time.sleep(2.0)  # the step is read
    driver.mouse(window, budget[0] - 40.0, y, "mousedown")
    driver.mouse(window, middle + 30.0, y)
    driver.mouse(window, middle, y, "mouseup")
    x, y = texts[f"Run {MORE_STEPS} steps"]
    # It cannot be pressed while the plan is being made.
    for _ in range(6):
        time.sleep(2.0)
        driver.mouse(window, x + 10.0, y, "click")
        end = time.monotonic() + LIMIT / 6.0
        while len(sessions_of(run)) == 1 and time.monotonic() < end:
            time.sleep(0.1)
        if len(sessions_of(run)) == 2:
            break
    wait_for(lambda: len(sessions_of(run)) == 2 and sessions_of(run)[1]["status"] == "finished",
             "steps with less memory")
    steps = [json.loads(line)["step"]
             for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
             if json.loads(line)["kind"] == "step"]
    assert steps[-1] == STEPS + MORE_STEPS, steps
    after = arena_bytes(run)
    print(f"arena: {before} bytes before, {after} after")
    assert after < before


def resize(driver, window, folder, width, height):
    """The window gets another size: all of it is drawn anew, with the status bar at its new end."""
    bar = 16  # rows of the status bar, at least
    left, top, old_width, old_height = driver.place(window)
    status = band_color(folder, left, old_width, top + old_height - bar, bar)
    pages = band_color(folder, left, width, top + height - bar, bar)
    assert pages != status, "the status bar is to be told from what is above it"
    driver.xdotool("windowsize", "--sync", window, str(width), str(height))
    wait_for(lambda: driver.place(window)[2:] == (width, height), "the window's new size")
    left, top = driver.place(window)[:2]
    wait_for(lambda: band_color(folder, left, width, top + height - bar, bar) == status,
             "the status bar at the end of the smaller window")
    pixels, per_row = pixels_on_display(folder)
    beside = {pixels[y * per_row + left + width + 1] for y in range(top, top + height)}
    assert len(beside) == 1, "something is drawn beside the smaller window"


def drive(driver, process, run, folder):
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

    apply_less_memory(driver, window, run, folder)

    driver.key("ctrl+p")
    driver.type("next theme")
    driver.key("Return")
    # Another scale is another texture of glyphs.
    for scale in ("ctrl+plus", "ctrl+minus", "ctrl+minus", "ctrl+0"):
        driver.key(scale)
        time.sleep(0.5)
        colors = colors_on_display(folder)
        print(f"{scale}: {colors} colours")
        assert colors > 50, f"{scale}: {colors} colours are no window"
    resize(driver, window, folder, 900, 600)
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
    code = process.wait(timeout=LIMIT)
    assert code == 0, f"ended with {code}"


def run_and_quit(environment, *words):
    """The window with these words, which quit it; the settings that it leaves."""
    done = subprocess.run([TRAINSCOPE, "gui", *map(str, words), "--exec", "file.quit"], env=environment,
                          capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0 and not done.stderr, (words, done)
    kept = Path(environment["XDG_CONFIG_HOME"]) / "trainscope/window.json"
    return json.loads(kept.read_text("utf-8"))


def check_views_and_commands(environment, run, folder):
    """--at, --exec and sizes of a model, as they are in the settings that are kept at the end."""
    first = dict(environment, XDG_CONFIG_HOME=str(folder / "first"))
    kept = run_and_quit(first)  # the welcome screen: nothing is opened
    assert kept["recent"] == [], kept
    node = json.loads((run / "notes.json").read_text("utf-8"))["notes"][0]["view"].split(",")[1]
    kept = run_and_quit(environment, run, "--at", "memory," + node, "--exec", "save_layout of memory",
                        "--exec", "panel budget", "--exec", "theme color-blind")
    assert kept["theme"] == "color-blind" and kept["layout"]["workspace"] == "memory", kept
    assert kept["layout"]["main_panels"]["memory"] == "budget", kept
    assert kept["saved_layouts"]["of memory"]["main_panels"]["memory"] == "memory", kept
    model = folder / "open.onnx"
    subprocess.run([TRAINSCOPE, "model", "gpt2", "--layers", "1", "--embedding", "16", "--heads", "2", "--vocab", "32",
                    "--context", "8", "-o", str(model)], check=True, capture_output=True)
    kept = run_and_quit(environment, model, "--batch", "2", "--shape", "sequence=5", "--at", "kernels",
                        "--exec", "layout of memory")
    assert kept["layout"] == kept["saved_layouts"]["of memory"], kept
    # Without its sizes it says so in the window.
    kept = run_and_quit(environment, model, "--at", "graph")
    assert kept["layout"]["workspace"] == "graph", kept


def main():
    if not shutil.which("Xvfb") or not shutil.which("xdotool"):
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(folder)
        server, display = start_display(folder)
        try:
            driver = Driver(display)
            environment = dict(driver.environment, XDG_CONFIG_HOME=str(folder / "config"),
                               LIBGL_ALWAYS_SOFTWARE="1")
            process = subprocess.Popen([TRAINSCOPE, "gui", str(run)], env=environment)
            try:
                drive(driver, process, run, folder)
            finally:
                if process.poll() is None:
                    process.kill()
            settings = json.loads((folder / "config/trainscope/window.json").read_text("utf-8"))
            assert settings["theme"] == "light", settings["theme"]
            assert settings["layout"]["workspace"] == "overview", settings["layout"]
            assert settings["recent"] == [str(run)], settings["recent"]
            check_views_and_commands(environment, run, folder)
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
