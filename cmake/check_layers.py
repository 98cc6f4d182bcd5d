#!/usr/bin/python3
"""Fails on any #include that cmake/layers.txt does not allow, and on files that are too long.

Usage: check_layers.py [source folder]. Standard library only. One line per finding, exit code 1.
Also checked: that no two headers define types of one name in one namespace (the program would use
the inline functions of either for both, without a word from compiler or linker); DEPS of every trainscope_module() against the same rows, the first line of each
source (what the file is for), `#pragma once`, how many sources a folder holds, that every [folders] row names a known module,
that no folder includes itself by way of others, that the first include of a source is its header (which shows that the header
includes what it uses wherever the source is compiled alone), and that no page of docs/ that is written by hand is too long.
"""
import collections
import re
import sys
from pathlib import Path

SOURCE_ENDINGS = {".cpp", ".h", ".cu", ".cuh", ".def"}
SIZE_LIMIT = 400
FOLDER_LIMIT = 40
ROOT_CMAKE_LIMIT = 80
SKIPPED_FOLDERS = {"build", "runs", "docs", ".git", ".cache", ".ci"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:struct|class|enum class) (?:alignas\(.*\) )?(\w+)\b(?!::)[^;]*\{")
MODULE = re.compile(r"trainscope_module\((.*?)\)", re.DOTALL)
BACK_ENDS = "${back_ends}"  # the folders that engine/exec/backends.def names
GENERATED = re.compile(r"^Generated from ", re.MULTILINE)
KEYWORDS = {"DEPS", "LIBS", "PRIVATE_LIBS", "OPTIONS", "EXECUTABLE", "TOP_ONLY"}


class Layers:
    """The rows of layers.txt."""

    def __init__(self, path):
        self.folders, self.files, self.third_party = {}, {}, {}
        sections = {"[folders]": self.folders, "[files]": self.files,
                    "[third-party]": self.third_party}
        rows = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            text = line.split("#", 1)[0].strip()
            if not text:
                continue
            if text in sections:
                rows = sections[text]
                continue
            names, separator, allowed = text.partition(":")
            if rows is None or not separator:
                raise SystemExit(f"{path}:{number}: expected 'name: allowed ...' below a [section]")
            for name in names.split():
                if name in rows:
                    raise SystemExit(f"{path}:{number}: a second row for {name}")
                rows[name] = allowed.split()

    def module_of(self, path):
        """The [folders] row a file belongs to: the longest that is one of its parents."""
        parents = [p.as_posix() for p in Path(path).parents]
        return next((p for p in parents if p in self.folders), None)

    def allowed_for(self, path):
        stem = Path(path).with_suffix("").as_posix()
        return self.folders[self.module_of(path)] + self.files.get(stem, [])

    def arrows(self):
        """Of each folder those that its files may include; a row of all folders says nothing."""
        arrows = {folder: set() for folder in self.folders}
        for folder, allowed in self.folders.items():
            arrows[folder].update(allowed)
        for stem, allowed in self.files.items():
            arrows[self.module_of(stem)].update(allowed)
        return {folder: sorted({name if name in self.folders else self.module_of(name)
                                for name in names if name != "*"} - {folder, None})
                for folder, names in arrows.items()}

    def homes_of(self, header):
        """The homes of a third-party header, None where no row names it."""
        for name, homes in self.third_party.items():
            if header == name or (name.endswith("/") and header.startswith(name)):
                return homes
        return None


def is_below(path, home):
    """True for the file itself (with or without its ending) and for files in the folder."""
    return path == home or Path(path).with_suffix("").as_posix() == home or path.startswith(home + "/")


def check_own_include(layers, path, included, exists):
    if not exists:
        return f'"{included}" does not exist (own includes are written from the root)'
    target = layers.module_of(included)
    if target is None:
        return f'"{included}" belongs to no row of layers.txt'
    if target == layers.module_of(path):
        return None
    allowed = layers.allowed_for(path)
    if "*" in allowed or target in allowed or included in allowed:
        return None
    return f'"{included}" is not allowed here (allowed: {" ".join(allowed) or "own folder only"})'


def check_system_include(layers, path, header):
    homes = layers.homes_of(header)
    if homes is not None:
        if any(is_below(path, home) for home in homes):
            return None
        return f"<{header}> has its home in {' '.join(homes)}"
    if "/" in header or "." in header:
        return f"<{header}> has no home: add a [third-party] row to cmake/layers.txt"
    return None  # the C++ standard library


def check_include(root, layers, path, match):
    bracket, header = match.groups()
    if bracket == '"':
        return check_own_include(layers, path, header, (root / header).is_file())
    return check_system_include(layers, path, header)


def check_size(path, lines):
    if len(lines) > SIZE_LIMIT:
        yield f"{path}: {len(lines)} lines, the limit is {SIZE_LIMIT}: split it"


def check_first_include(root, path, lines):
    """A source x.cpp beside a header x.h begins with it."""
    header = path.removesuffix(".cpp") + ".h"
    if not path.endswith(".cpp") or not (root / header).is_file():
        return
    first = next(filter(None, map(INCLUDE.match, lines)), None)
    if first is None or first.group(2) != header:
        yield f'{path}: its first #include is not "{header}"'


def check_source(root, layers, path):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    yield from check_size(path, lines)
    if not lines or not lines[0].startswith("//"):
        yield f"{path}:1: the first line must be a comment saying what the file is for"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield f"{path}: a header without #pragma once"
    yield from check_first_include(root, path, lines)
    if layers.module_of(path) is None:
        yield f"{path}: its folder has no row in cmake/layers.txt"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        problem = check_include(root, layers, path, match) if match else None
        if problem:
            yield f"{path}:{number}: {problem}"


def types_defined(path, text):
    """Namespace::Name of each type that a header defines outside of others, with its line."""
    namespace = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = NAMESPACE.match(line)
        if match:
            namespace = match.group(1)
        match = TYPE.match(line)
        if match:
            yield f"{namespace}::{match.group(1)}", f"{path}:{number}"


def check_types(root, headers):
    """Two types of one name are one type to the linker, which keeps one of their destructors."""
    defined = {}
    for path in headers:
        text = (root / path).read_text(encoding="utf-8")
        for name, place in types_defined(path, text):
            if name in defined:
                yield f"{place}: {name} is defined in {defined[name]} too"
            defined.setdefault(name, place)


def check_module(layers, path, text):
    """The DEPS of a folder's target must be arrows of layers.txt too."""
    for match in MODULE.finditer(re.sub(r"#.*", "", text)):
        folder, *words = match.group(1).split()
        if folder not in layers.folders:
            yield f"{path}: module {folder} has no row in cmake/layers.txt"
            continue
        allowed = set(layers.folders[folder])
        allowed |= {name for stem, names in layers.files.items()
                    if layers.module_of(stem) == folder for name in names}
        allowed |= {layers.module_of(name) for name in allowed if name != "*"}
        section = None
        for word in words:
            if word in KEYWORDS:
                section = word
            elif section == "DEPS" and word not in allowed and word != BACK_ENDS:
                yield f"{path}: {folder} links {word}, which layers.txt does not allow"


def project_files(root):
    for top in sorted(root.iterdir()):
        if top.name in SKIPPED_FOLDERS:
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                yield path.relative_to(root).as_posix()


def is_ours(path):
    """Test programs are linked one by one: their helpers may share names."""
    return not path.startswith("tests/")


def check_folders(paths):
    """A folder is read at a glance: so many sources at most, others go below it."""
    counts = collections.Counter(Path(path).parent.as_posix() for path in paths
                                 if Path(path).suffix in SOURCE_ENDINGS)
    for folder, count in sorted(counts.items()):
        if count > FOLDER_LIMIT:
            yield f"{folder}: {count} sources, more than {FOLDER_LIMIT}: put some in a folder below"


def check_cycles(layers):
    """Depth first: an arrow to a folder that is on the way to it closes a cycle."""
    arrows, done = layers.arrows(), set()

    def visit(folder, way):
        if folder in way:
            cycle = way[way.index(folder):] + [folder]
            yield f"cmake/layers.txt: a cycle: {' -> '.join(cycle)}"
        elif folder not in done:
            for name in arrows[folder]:
                yield from visit(name, way + [folder])
            done.add(folder)

    for folder in arrows:
        yield from visit(folder, [])


def check_pages(root):
    """A page that a program writes from a table may be longer: its head says so."""
    for path in sorted((root / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if not GENERATED.search(text):
            yield from check_size(path.relative_to(root).as_posix(), text.splitlines())


def check_tree(root):
    layers = Layers(root / "cmake" / "layers.txt")
    yield from check_cycles(layers)
    yield from check_pages(root)
    yield from check_folders(project_files(root))
    yield from check_types(root, [path for path in project_files(root)
                                  if path.endswith((".h", ".cuh")) and is_ours(path)])
    for path in project_files(root):
        if Path(path).suffix in SOURCE_ENDINGS:
            yield from check_source(root, layers, path)
        elif Path(path).suffix == ".py":
            yield from check_size(path, (root / path).read_text(encoding="utf-8").splitlines())
        elif Path(path).name == "CMakeLists.txt":
            text = (root / path).read_text(encoding="utf-8")
            yield from check_module(layers, path, text)
            if path == "CMakeLists.txt" and len(text.splitlines()) > ROOT_CMAKE_LIMIT:
                yield f"{path}: more than {ROOT_CMAKE_LIMIT} lines"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    findings = list(check_tree(root))
    for finding in findings:
        print(finding)
    if findings:
        print(f"check_layers: {len(findings)} findings")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
