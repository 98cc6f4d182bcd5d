#!/usr/bin/env python3
"""Takes what the stage activity of scripts/gpu.sh left: each buffer, with its records as NVIDIA's
own decoder read them there.

    make.py ACTIVITY.jsonl FOLDER_OF_BUFFERS
"""
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIELDS = {
    "kernel": ("begin", "end", "stream", "correlation", "graph_node", "graph", "grid_x", "block_x",
               "registers"),
    "copy": ("begin", "end", "stream", "correlation", "graph_node", "graph", "copy_kind", "bytes"),
    "set": ("begin", "end", "stream", "correlation", "graph_node", "graph", "bytes"),
    "graph": ("begin", "end", "stream", "correlation", "graph"),
    "runtime call": ("begin", "end", "callback", "thread", "correlation"),
    "driver call": ("begin", "end", "callback", "thread", "correlation"),
    "external correlation": ("external", "correlation"),
    "synchronization": ("begin", "end", "synchronization", "stream", "correlation"),
    "overhead": ("begin", "end", "overhead"),
}


def main():
    records, folder = Path(sys.argv[1]), Path(sys.argv[2])
    texts, file = {}, None
    for line in map(json.loads, records.read_text(encoding="utf-8").splitlines()):
        if line["kind"] == "buffer":
            file = line["file"]
            shutil.copy(folder / file, HERE / file)
            texts[file] = []
        elif line["kind"] == "record":
            fields = [line["type"].replace(" ", "_"), line["offset"]]
            fields += [line[name] for name in FIELDS[line["type"]]]
            texts[file].append(" ".join(map(str, fields)) + "\n")
    for name, lines in texts.items():
        (HERE / name).with_suffix(".txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
