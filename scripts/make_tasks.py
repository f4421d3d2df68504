#!/usr/bin/env python3
"""Writes the folders of tasks/ from its tables of published workloads, one module of task_families/ for each family.

The folders are checked in; run this again after changing a table or a module and commit what changes.
`--check` writes nothing and exits 1 if a folder differs from what would be written.
"""

import argparse
import sys

from task_families import attention, fp8_attention, fp8_gemm, gdn, gemm, serving
from task_families.common import TASKS

FAMILIES = {"gemm": gemm, "attention": attention, "fp8_gemm": fp8_gemm, "fp8_attention": fp8_attention,
            "serving": serving, "gdn": gdn}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; none: all")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.families if name not in FAMILIES]
    if unknown:
        parser.error(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    differing = []
    for family in arguments.families or FAMILIES:
        for name, files in FAMILIES[family].folders():
            for file, text in files.items():
                path = TASKS / name / file
                if path.exists() and path.read_text(encoding="utf-8") == text:
                    continue
                differing.append(str(path.relative_to(TASKS.parent)))
                if not arguments.check:
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text, encoding="utf-8")
    for path in differing:
        print(("differs: " if arguments.check else "wrote ") + path)
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
