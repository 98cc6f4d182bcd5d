#!/usr/bin/python3
"""Draws the memory plan of a run as SVG: every buffer a box in the memory-time plane.

    scripts/plan_picture.py RUN/plan.json docs/images/plan.svg

Time runs to the right (one unit a call), the arena upwards (offset 0 at the bottom).
"""
import json
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1000, 430, 70, 34, 36
COLOURS = {"persistent": "#3b6ea5", "input": "#8a8a8a", "forward": "#58a55c", "backward": "#d98c3f",
           "update": "#b05a9c", "workspace": "#c9c14a"}


def kind_of(buffer, calls):
    """The legend's word for a buffer: what keeps it, else the phase that writes it."""
    if buffer["kind"] in ("persistent", "workspace", "input"):
        return buffer["kind"]
    return calls[min(buffer["birth"], len(calls) - 1)]["phase"]


def calls_by_time(plan):
    """The calls that compute a node, of a tiled section the first tile's."""
    if "calls" not in plan:  # run format 1
        return plan["instructions"]
    return [row for row in plan["calls"]
            if row["kind"] in ("kernel", "transfer", "program") and row.get("tile", 0) == 0]


def boxes(plan):
    calls = calls_by_time(plan)
    steps, peak = plan["instruction_count"], plan["arena_bytes"]
    x = (WIDTH - LEFT - 10) / steps
    y = (HEIGHT - TOP - BOTTOM) / peak
    for b in plan["buffers"]:
        if b["bytes"] == 0:
            continue
        kind = kind_of(b, calls)
        top = HEIGHT - BOTTOM - (b["offset"] + b["bytes"]) * y
        yield (f'<rect x="{LEFT + b["birth"] * x:.1f}" y="{top:.1f}" '
               f'width="{max(0.6, (b["death"] - b["birth"]) * x):.1f}" '
               f'height="{max(0.3, b["bytes"] * y):.1f}" fill="{COLOURS[kind]}" '
               f'stroke="#ffffff" stroke-width="0.3"><title>{escape(b["name"])}: '
               f'{b["bytes"]} bytes</title></rect>')


def legend():
    x = LEFT
    for kind, colour in COLOURS.items():
        yield f'<rect x="{x}" y="12" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="22">{kind}</text>'
        x += 105


def picture(plan):
    mib = plan["arena_bytes"] / 2 ** 20
    bound = plan["lower_bound_bytes"] / 2 ** 20
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'font-family="sans-serif" font-size="13" fill="#333">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    lines += legend()
    lines += boxes(plan)
    lines.append(f'<text x="8" y="{TOP + 6}">{mib:.1f}</text><text x="8" y="{TOP + 22}">MiB</text>'
                 f'<text x="8" y="{HEIGHT - BOTTOM}">0</text>')
    lines.append(f'<text x="{LEFT}" y="{HEIGHT - 12}">one training step, {plan["instruction_count"]} '
                 f'calls: arena {mib:.1f} MiB, lower bound {bound:.1f} MiB</text>')
    return "\n".join(lines + ["</svg>", ""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture(plan))


main()
