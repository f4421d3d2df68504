#!/usr/bin/env python3
"""Who may include whom (ARCHITECTURE.md, floor plan). Reads #include lines only.

    check_layering.py ROOT        check a source tree
    check_layering.py --self-test planted violations must be found

A room includes base, itself, and rooms on lower floors (te: base and numeric alone); never a neighbour on its
own floor. Tests of a
room see what the room sees. kernels/ and include/ see include/ptxbench alone.
"""

import re
import sys
import tempfile
from pathlib import Path

FLOORS = {
    "base": 0,
    "numeric": 1, "plan": 1,
    "ptx": 2, "sandbox": 2,
    "toolchain": 3, "emu": 3,
    "cudart": 4,
    "device": 5,
    "bench": 6,
    "store": 7,
    "te": 9, "report": 9,
    "cli": 10,
}
# Rooms that know fewer than their floor allows, whatever lies below them.
KNOWS = {"te": {"base", "numeric"}}
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# Headers that stand in for others while candidates are compiled: no part of a room, closed in themselves.
EMBEDDED = ("src/toolchain/ffi",)
# Outside the house, and shared with tests on purpose (closed forms, programs that ran on hardware).
TESTS_SEE = ("kernels", "bench", "examples")
# Made by the build; one room alone wraps it.
GENERATED = {"ptxbench/build_config.h": "base", "bench/gpu/fp64_gemm_ptx.h": "bench",
             "bench/gpu/fp64_fp8_gemm_ptx.h": "bench", "bench/gpu/fp64_attention_ptx.h": "bench",
             "device/cuda/worker/builtin_ptx.h": "device"}


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) or match.group(2), match.group(1) is not None


def allowed(user, used):
    if user in KNOWS:
        return used == user or used in KNOWS[user]
    return used in (user, "base") or FLOORS[used] < FLOORS[user]


def check_room_include(root, path, room, name, quoted):
    """None if fine, else what is wrong."""
    if ".." in Path(name).parts:
        target = (path.parent / name).resolve()
        test = path.is_relative_to(root / "tests")
        if test and target.is_file() and any(target.is_relative_to(root / f) for f in TESTS_SEE):
            return None
        return f'"{name}" climbs out of its folder; name the room instead'
    if name in GENERATED:
        return None if room == GENERATED[name] else f"only {GENERATED[name]} includes {name}"
    first = Path(name).parts[0]
    if first in FLOORS and "/" in name:
        helper = path.is_relative_to(root / "tests") and (root / "tests" / name).is_file()
        if not helper and not (root / "src" / name).is_file():
            return f"{name} does not exist in src/"
        if not allowed(room, first):
            return (f"{room} (floor {FLOORS[room]}) must not include {name} "
                    f"(floor {FLOORS[first]})")
        return None
    if name.startswith("ptxbench/"):
        if path.is_relative_to(root / "tests") and "candidates" in path.parts:
            return None
        return f"rooms do not include {name}; it is for candidates"
    own = [path.parent / name, root / "tests" / name]
    if quoted and not any(p.is_file() for p in own):
        return f'"{name}" is neither in the same folder nor in a room'
    return None


def check_outside_include(root, path, name, quoted):
    """For kernels/ and include/."""
    if ".." in Path(name).parts:
        return f'"{name}" climbs out of its folder'
    if name.startswith("ptxbench/"):
        return None if (root / "include" / name).is_file() else f"include/{name} does not exist"
    if Path(name).parts[0] in FLOORS and "/" in name:
        return f"{name} belongs to a room; only include/ptxbench may be used here"
    if quoted and not (path.parent / name).is_file():
        return f'"{name}" is neither in the same folder nor in include/ptxbench'
    return None


def check_embedded_include(root, path, folder, name, quoted):
    near = (path.parent / name).resolve()
    if quoted and not (near.is_relative_to((root / folder).resolve()) and near.is_file()):
        return f'"{name}" is not in {folder}'
    return None


def files_below(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file())


def room_of(root, path):
    parts = path.relative_to(root).parts
    return parts[1] if len(parts) > 2 and parts[1] in FLOORS else None


def check(root):
    """(violations, number of includes looked at)"""
    violations, looked = [], 0

    def report(path, number, what):
        violations.append(f"{path.relative_to(root)}:{number}: {what}")

    for folder in ("src", "tests"):
        for path in files_below(root / folder):
            room = room_of(root, path)
            if room is None:
                if folder == "src":
                    report(path, 1, "this folder is not a room of the floor plan")
                continue
            for number, name, quoted in includes(path):
                looked += 1
                embedded = [e for e in EMBEDDED if path.is_relative_to(root / e)]
                if embedded:
                    what = check_embedded_include(root, path, embedded[0], name, quoted)
                else:
                    what = check_room_include(root, path, room, name, quoted)
                if what:
                    report(path, number, what)
    for folder in ("kernels", "include"):
        for path in files_below(root / folder):
            for number, name, quoted in includes(path):
                looked += 1
                what = check_outside_include(root, path, name, quoted)
                if what:
                    report(path, number, what)
    return violations, looked


# path -> content, and the violations (path, part of the message) that must be found: these and no others.
PLANTED = {
    "src/base/result.h": "",
    "src/numeric/dtype.h": '#include "base/result.h"\n#include <vector>\n',
    "src/plan/launch_plan.h": '#include "numeric/dtype.h"\n',
    "src/emu/tma.h": '#include "plan/launch_plan.h"\n#include "detail.h"\n#include "missing.h"\n',
    "src/emu/detail.h": '#  include <toolchain/compiler.h>\n',
    "src/toolchain/compiler.h": '#include "../emu/tma.h"\n',
    "src/base/bad.cc": '#include "numeric/dtype.h"\n#include "ptxbench/build_config.h"\n',
    "src/attic/old.h": "",
    "src/te/fp8/a.h": '#include "numeric/dtype.h"\n#include "te/fp8/b.h"\n#include "emu/tma.h"\n',
    "src/te/fp8/b.h": "",
    "src/toolchain/ffi/tvm/a.h": '#include "../dlpack/b.h"\n#include "../../compiler.h"\n',
    "src/toolchain/ffi/dlpack/b.h": "#include <string>\n",
    "tests/ptx/a_test.cc": '#include "ptx/gone.h"\n#include "emu/tma.h"\n',
    "tests/emu/b_test.cc": '#include "../../kernels/sm_90a/k.cuh"\n#include "../../src/emu/tma.h"\n',
    "include/ptxbench/ptx.cuh": "#include <cuda.h>\n",
    "kernels/sm_90a/k.cu": '#include "ptxbench/ptx.cuh"\n#include "k.cuh"\n#include "base/result.h"\n',
    "kernels/sm_90a/k.cuh": '#include "ptxbench/none.cuh"\n',
}
EXPECTED = [
    ("src/plan/launch_plan.h:1", "floor 1"),
    ("src/emu/tma.h:3", "missing.h"),
    ("src/emu/detail.h:1", "toolchain/compiler.h"),
    ("src/toolchain/compiler.h:1", "climbs"),
    ("src/toolchain/ffi/tvm/a.h:2", "is not in"),
    ("src/base/bad.cc:1", "floor 0"),
    ("src/attic/old.h:1", "not a room"),
    ("src/te/fp8/a.h:3", "emu/tma.h"),
    ("tests/ptx/a_test.cc:1", "does not exist"),
    ("tests/ptx/a_test.cc:2", "floor 3"),
    ("tests/emu/b_test.cc:2", "climbs"),
    ("kernels/sm_90a/k.cu:3", "belongs to a room"),
    ("kernels/sm_90a/k.cuh:1", "does not exist"),
]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, content in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        found, _ = check(root)
    missed = [e for e in EXPECTED
              if not any(f.startswith(e[0] + ":") and e[1] in f for f in found)]
    for where, what in missed:
        print(f"self-test: not found: {where}: ... {what} ...")
    if len(found) != len(EXPECTED):
        print(f"self-test: {len(found)} violations instead of {len(EXPECTED)}:", *found, sep="\n  ")
    return 1 if missed or len(found) != len(EXPECTED) else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1]).resolve()
    violations, looked = check(root)
    for line in violations:
        print(line)
    if looked < 100:
        print(f"only {looked} includes found below {root}: wrong folder?")
        return 2
    print(f"{looked} includes, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
