"""Takes every reproducer whose cause has an edit through `gradfix run --fix --unsafe-fixes`, as its author would.

    python benchmarks/repair.py [FAMILY/CAUSE[/SHAPE] ...]

`broken.py` lies alone in a scratch folder as `train.py`. A verified program is compared with `fixed.py`: the same bytes, or
equal gradients in the first step. One process at a time; needs torch and what the programs import.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import platform
import statistics
import sys
import tempfile
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tests.knowledge.repaired import EQUAL, OTHER, SAME, Repaired, repair_shape
from tests.knowledge.reproducer import Shape
from tests.knowledge.test_fixes import BY_HAND, EDITED

LIBRARIES = ("torch", "transformers", "peft", "trl", "accelerate", "lightning")


def main() -> None:
    names = sys.argv[1:]
    chosen = [one for one in EDITED if not names or any(f"{one.name}/".startswith(f"{name}/") for name in names)]
    done: dict[Shape, Repaired] = {}
    for shape in chosen:
        if not shape.missing() and (shape.folder / "fixed.py").exists():
            with tempfile.TemporaryDirectory() as scratch:
                done[shape] = repair_shape(shape, pathlib.Path(scratch))
            one = done[shape]
            print(shape.name, one.status, one.likeness, one.why, f"{one.seconds:.1f} s", file=sys.stderr, flush=True)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES if is_installed(name))
    print(f"# Repair\n\nCPython {platform.python_version()}, {versions}; CPU, one program at a time.\n")
    print_summary(done)
    print_failures(done, [one for one in chosen if one not in done])


def is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def print_summary(done: dict[Shape, Repaired]) -> None:
    """One row a family."""
    families: dict[str, list[tuple[Shape, Repaired]]] = defaultdict(list)
    for shape, one in done.items():
        families[shape.name.partition("/")[0]].append((shape, one))
        families["all"].append((shape, one))
    head = ("family", "shapes", "by hand", "verified", SAME, EQUAL, OTHER, "not verified", "median seconds")
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for family, rows in sorted(families.items(), key=lambda item: item[0] == "all"):
        edited = [one for shape, one in rows if shape.name not in BY_HAND]
        verified = [one for _, one in rows if one.status == "verified"]
        alike = [sum(one.likeness == kind for one in verified) for kind in (SAME, EQUAL, OTHER)]
        seconds = statistics.median(one.seconds for _, one in rows)
        missed = sum(one.status != "verified" for one in edited)
        cells = (family, len(rows), len(rows) - len(edited), len(verified), *alike, missed, f"{seconds:.1f}")
        print(f"| {' | '.join(map(str, cells))} |")


def print_failures(done: dict[Shape, Repaired], missing: list[Shape]) -> None:
    """What is not as `fixed.py` says, and what was not run."""
    print(
        "\nBy hand: the edit of the cause does not reach this shape (`tests/knowledge/test_fixes.py`). What is wrong:\n"
    )
    print("| shape | ended | first cause | what is wrong |\n| --- | --- | --- | --- |")
    for shape, one in done.items():
        is_expected = shape.name in BY_HAND and one.status != "verified"
        if not is_expected and one.likeness not in (SAME, EQUAL):
            tried = "; ".join(
                f"{each['fix']}: {each['verdict']} {' '.join(each['reasons'])}" for each in one.answer.get("rounds", ())
            )
            print(f"| {shape.name} | {one.status} | {one.cause} | {(one.why or tried)[:200].replace('|', '/')} |")
    print("\n| not run here, needs | shape |\n| --- | --- |")
    for shape in missing:
        print(f"| {', '.join(shape.missing()) or 'a fixed program'} | {shape.name} |")


if __name__ == "__main__":
    main()
