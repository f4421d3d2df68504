#!/usr/bin/env python3
"""Writes the sibling candidates of examples/candidates/ from examples/siblings/.

A candidate is one file, as a model would answer; twenty copies of a GEMM that differ in a line are not
readable. So each sibling is kept as what it is: a base, a sentence, and a few edits, every one of which
must match exactly once. The written files are checked in; `--check` fails when they are stale.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "examples" / "siblings"
CANDIDATES = ROOT / "examples" / "candidates"


def parse(path):
    """One .edits file: base, about, then blocks of <<<< old ==== new >>>>."""
    base, about, edits, state = None, [], [], "head"
    old, new = [], []
    for line in path.read_text().splitlines():
        if state == "head" and line.startswith("base: "):
            base = line[len("base: "):]
        elif state == "head" and line == "<<<<":
            state, old, new = "old", [], []
        elif state == "head":
            about.append(line)
        elif state == "old" and line == "====":
            state = "new"
        elif state == "old":
            old.append(line)
        elif state == "new" and line == ">>>>":
            edits.append(("\n".join(old), "\n".join(new)))
            state = "head"
        else:
            new.append(line)
    if base is None or state != "head" or not edits:
        sys.exit(f"{path}: needs 'base:', a sentence, and complete edits")
    return base, "\n// ".join(text for text in about if text), edits


def make(path):
    base, about, edits = parse(path)
    text = (SOURCES / base).read_text().replace("@ABOUT", about)
    for old, new in edits:
        if text.count(old) != 1:
            sys.exit(f"{path}: matches {text.count(old)} times, not once:\n{old}")
        text = text.replace(old + "\n", new + "\n" if new else "") if old + "\n" in text else text.replace(old, new)
    return base, text


def outputs(path):
    """(file, text) of a sibling; a PTX candidate brings its base's launch manifest along."""
    base, text = make(path)
    suffix = pathlib.Path(base).suffix
    yield CANDIDATES / (path.stem + suffix), text
    if suffix == ".ptx":
        manifest = (SOURCES / base).with_suffix(".launch.json").read_text()
        yield CANDIDATES / (path.stem + ".launch.json"), manifest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when a file is stale")
    check = parser.parse_args().check
    stale = []
    for path in sorted(SOURCES.glob("*.edits")):
        for target, text in outputs(path):
            if target.exists() and target.read_text() == text:
                continue
            stale.append(target.name)
            if not check:
                target.write_text(text)
    for name in stale:
        print("stale:" if check else "wrote", name)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
