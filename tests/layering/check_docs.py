#!/usr/bin/env python3
"""Paths named in the project's documents must exist.

    check_docs.py ROOT           README, ARCHITECTURE, CONTRIBUTING, docs/
    check_docs.py --self-test

A path is what stands between backquotes, or in a link's target, and starts with a top-level folder of
the project or is a file there. `*` and `{a,b}` are globs, words in capitals placeholders, lines with
"(planned)" are skipped.
"""

import re
import sys
import tempfile
from pathlib import Path

TOP = ("src", "tests", "include", "kernels", "tasks", "examples", "scripts", "cmake", "docs", "bench",
       "prompts", ".ci")
QUOTED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)")
WORD = re.compile(r"[\w./*{},+-]+")
# Named in the floor plan before they are built.
PLANNED = re.compile(r"\(planned\)")


def candidates(text):
    for line_number, line in enumerate(text.splitlines(), 1):
        if PLANNED.search(line):
            continue
        spans = QUOTED.findall(line) + LINK.findall(line)
        for span in spans:
            if "://" in span or "<" in span:
                continue
            for word in WORD.findall(span):
                word = word.rstrip(".,:")
                if word.split("/")[0] in TOP and "/" in word:
                    yield line_number, word
                elif re.fullmatch(r"[A-Z][A-Za-z]*(\.(md|txt|json))|Makefile|LICENSE", word):
                    yield line_number, word


def expand(pattern):
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [p for option in match.group(1).split(",")
            for p in expand(pattern[:match.start()] + option + pattern[match.end():])]


def placeholder(path):
    """src/ROOM/, docs/NAME.cc: words in capitals stand for others. Documents' names may be in capitals."""
    return any(re.fullmatch(r"[A-Z]{2,}", Path(part).stem) and not part.endswith(".md")
               for part in Path(path).parts[1:])


def exists(root, word):
    for path in expand(word):
        if placeholder(path):
            continue
        found = any(root.glob(path)) if "*" in path else (root / path).exists()
        if not found:
            return False
    return True


def check(root):
    documents = [root / n for n in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    missing = [f"{d.name}: does not exist" for d in documents if not d.is_file()]
    documents += sorted((root / "docs").rglob("*.md"))
    looked = 0
    for document in documents:
        if not document.is_file():
            continue
        for number, word in candidates(document.read_text()):
            looked += 1
            if not exists(root, word) and not exists(document.parent, word):
                missing.append(f"{document.relative_to(root)}:{number}: {word} does not exist")
    return missing, looked


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("README.md", "ARCHITECTURE.md", "src/emu/tma.h", "docs/a.md"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("")
        (root / "README.md").write_text(
            "`src/emu/tma.h` `src/emu/*.h` `src/emu/{tma.h,gone.h}`\n"
            "run `scripts/none.sh --x`\n[doc](docs/b.md) [site](https://x.y/docs/z.md)\n"
            "`LICENSE` and `src/later/` (planned)\n")
        found, looked = check(root)
    expected = ["CONTRIBUTING.md: does not exist", "src/emu/{tma.h,gone.h}", "scripts/none.sh",
                "docs/b.md"]
    missed = [e for e in expected if not any(e in f for f in found)]
    if missed or len(found) != len(expected):
        print("self-test: expected", expected, "found", found)
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    missing, looked = check(Path(sys.argv[1]).resolve())
    for line in missing:
        print(line)
    print(f"{looked} paths named, {len(missing)} missing")
    return 1 if missing or looked < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
