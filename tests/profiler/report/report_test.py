#!/usr/bin/python3
"""The report of a run whose names are markup: its file, and in a browser where there is one.

Usage: report_test.py TRAINSCOPE [browser]
With "browser" as the last word only what needs headless Chromium; skipped (77) where it is absent.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

PROGRAM = sys.argv[1]
VOID = {"meta", "link"}


def run(folder, *words, code=0):
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}"
    return done


def profiled_run(folder):
    """A run in a folder, of a model with a node, that are named like markup."""
    run(folder, "model", "gpt2", "--layers", "2", "--heads", "2", "--embedding", "32", "--vocab", "256",
        "--context", "32", "-o", "gpt.onnx")
    model = folder / "gpt.onnx"
    text = model.read_bytes()
    assert b"/h.0/ln_1" in text
    model.write_bytes(text.replace(b"/h.0/ln_1", b"<script>1"))
    (folder / "text.txt").write_text("to be or not to be, that is the question. " * 200)
    name = "r<b onclick=alert(1)>"
    run(folder, "profile", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--threads", "2",
        "--run-dir", name)
    return folder / name


class Checked(HTMLParser):
    """Every element closes; what the page asks for is counted."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.urls = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.urls += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()


def check_pictures(text):
    """Of the window where its program is beside this one, each with names of its own; else a line."""
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)), sorted(name for name in ids if ids.count(name) > 1)
    pictures = re.findall(r'<svg class="window".*?</svg>', text, re.DOTALL)
    if not Path(PROGRAM).with_name("trainscope-window").exists():
        assert not pictures and "this build has no trainscope-window" in text
        return
    assert len(pictures) == 3, len(pictures)
    for name in ("timeline", "memory", "graph"):
        assert f"<h3>{name}</h3>" in text and f'id="{name}-' in text, name


def check_file(folder):
    run_folder = profiled_run(folder)
    facts = json.loads(run(folder, "report", str(run_folder), "--json").stdout)
    page = run_folder / "report.html"
    assert facts["report"] == str(page), facts
    text = page.read_text(encoding="utf-8")
    assert facts["bytes"] == page.stat().st_size < 2_000_000, facts
    parsed = Checked()
    parsed.feed(text)
    parsed.close()
    assert not parsed.open, parsed.open
    assert "script" not in parsed.tags and "b" in parsed.tags, parsed.tags
    assert parsed.tags["svg"] >= 5 and parsed.tags["table"] >= 8, parsed.tags
    assert all(url.startswith(("#", "data:,")) for url in parsed.urls), parsed.urls
    check_pictures(text)
    assert "&lt;script&gt;1" in text and "r&lt;b onclick" in text

    # Its tables are those of query.
    table = json.loads(run(folder, "query", str(run_folder), "--by", "op", "--json").stdout)
    for row in table["rows"][:3]:
        assert f"{row['ms']:.4f}" in text, row

    # Elsewhere, without a profile, of a session that there is not, and of what is no run.
    run(folder, "report", str(run_folder), "-o", "out.html", "--session", "1")
    assert (folder / "out.html").read_text(encoding="utf-8") == text
    run(folder, "train", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--steps", "2",
        "--run-dir", "plain")
    run(folder, "report", "plain")
    assert "This session was not profiled" in (folder / "plain/report.html").read_text(encoding="utf-8")
    wrong = run(folder, "report", str(run_folder), "--session", "2", code=2)
    assert "session" in wrong.stderr, wrong.stderr
    before = sorted(path.name for path in folder.iterdir())
    missing = run(folder, "report", "nowhere", code=6)
    assert "nowhere" in missing.stderr, missing.stderr
    (folder / "file.txt").write_text("x")
    run(folder, "report", "plain", "-o", "no/such/folder/r.html", code=6)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "file.txt"])
    machine = run(folder, "report", "plain", "--machine", "file.txt", code=3)
    assert "file.txt" in machine.stderr, machine.stderr


def check_failing_window(folder):
    """A window that fails, or draws something else, costs a report its pictures and nothing more."""
    (folder / "bin").mkdir()
    program, window = folder / "bin/trainscope", folder / "bin/trainscope-window"
    shutil.copy(PROGRAM, program)
    for script, line in (("echo no display >&2; exit 3", "could not be made"),
                         ("while [ $# -gt 1 ]; do shift; [ \"$1\" = --out ] && echo '<svg ><script/></svg>' > \"$2\"; "
                          "done; exit 0", "Left out: it is no picture.")):
        window.write_text(f"#!/bin/sh\n{script}\n")
        window.chmod(0o755)
        subprocess.run([program, "report", "plain", "-o", "fake.html", "-q"], cwd=folder, check=True)
        text = (folder / "fake.html").read_text(encoding="utf-8")
        assert line in text and 'class="window"' not in text and "<script" not in text, line


WRAPPER = """<!doctype html><meta charset="utf-8"><style>iframe {{ height: 2000px; border: 0 }}</style>
<iframe id="narrow" style="width:400px" src="{page}"></iframe>
<iframe id="wide" style="width:1600px" src="{page}"></iframe>
<pre id="facts"></pre>
<script>
addEventListener("load", () => {{
  const facts = {{}};
  for (const id of ["narrow", "wide"]) {{
    const page = document.getElementById(id).contentDocument;
    const texts = [...page.querySelectorAll("p, td, th, h2")].filter(e => e.offsetParent);
    facts[id] = {{
      width: page.documentElement.scrollWidth, scripts: page.scripts.length, title: page.title,
      drawn: page.querySelectorAll("svg rect").length,
      font: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize))),
      text: page.body.textContent.includes("<script>1"),
      charts: [...page.querySelectorAll("svg")].every(e => e.getBoundingClientRect().width > 200)
    }};
  }}
  document.getElementById("facts").textContent = JSON.stringify(facts);
}});
</script>
"""


def check_in_browser(folder, browser):
    run_folder = profiled_run(folder)
    run(folder, "report", str(run_folder), "-o", "report.html")
    wrapper = folder / "wrapper.html"
    wrapper.write_text(WRAPPER.format(page="report.html"))
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}",
         "--enable-logging=stderr", f"--log-net-log={folder / 'net.json'}", "--virtual-time-budget=10000",
         "--window-size=2100,2100", "--dump-dom", wrapper.as_uri()], capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="facts">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found and found.group(1), done.stderr[-2000:]
    facts = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    for name, width in (("narrow", 400), ("wide", 1600)):
        page = facts[name]
        assert page["scripts"] == 0 and page["text"] and page["charts"] and page["drawn"] > 20, facts
        assert page["title"] == f"Run {run_folder.name}", facts
        assert page["width"] <= width, facts
        assert page["font"] >= 12, facts
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not console, console
    net = (folder / "net.json").read_text(encoding="utf-8", errors="replace")
    asked = {url for url in re.findall(r'"url":"([^"]+)"', net) if url.startswith(("http", "ws", "ftp"))}
    ours = {url for url in asked if "report" in url or "wrapper" in url}
    assert not ours, ours


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[-1] != "browser":
            check_file(Path(folder))
            check_failing_window(Path(folder))
            print("report: passed")
            return 0
        browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
        if browser is None:
            print("no Chromium: the report was not looked at in a browser")
            return 77
        check_in_browser(Path(folder), browser)
        print("report in a browser: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
