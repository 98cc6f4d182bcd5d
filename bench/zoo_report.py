"""The report of zoo.py: how many of each verdict, a row an architecture, and why not equal."""


def table(rows, ways):
    lines = ["| architecture | family | " + " | ".join(ways) + " |",
             "|---|---|" + "---|" * len(ways)]
    for name, row in rows.items():
        cells = [row["ways"][way]["verdict"] for way in ways]
        lines.append(f"| {name} | {row['family']} | " + " | ".join(cells) + " |")
    return lines


def counts(rows, ways):
    total = {}
    for row in rows.values():
        for way in ways:
            of_way = total.setdefault(way, {})
            what = row["ways"][way]["verdict"]
            of_way[what] = of_way.get(what, 0) + 1
    return total


def report(rows, ways):
    lines = []
    for way, of_way in counts(rows, ways).items():
        lines.append(f"- {way}: " + ", ".join(f"{n} {what}" for what, n in sorted(of_way.items())))
    lines += ["", *table(rows, ways), "", "Not equal:", ""]
    for each, row in rows.items():
        for way in ways:
            if row["ways"][way]["verdict"] != "equal":
                why = row["ways"][way]["why"].replace("|", ";")
                lines.append(f"- {each}, {way}: {row['ways'][way]['verdict']}: {why[:300]}")
    return "\n".join(lines)
