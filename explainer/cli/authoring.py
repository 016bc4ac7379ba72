"""`gradfix rules check | new | record`: for those who write causes."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from explainer.catalog.place import knowledge_folder
from explainer.errors import GradfixError, UsageError

if TYPE_CHECKING:
    from explainer.catalog.check import Fault


def check_folder(folder: str | None, name: str) -> int:
    """Print what is wrong with a rule base, by file and line; 1 where something is."""
    from explainer.catalog.check import check_rules

    if name not in ("text", "json"):
        raise UsageError(f"--format {name!r}: it is text or json")
    place = folder or knowledge_folder()
    if not os.path.isdir(place):
        raise UsageError(f"{place}: no such folder")
    faults = check_rules(place)
    if not faults:
        faults = _check_recordings(place, folder)
    if name == "json":
        print(json.dumps([fault._asdict() for fault in faults], indent=2))
    else:
        for fault in faults:
            print(f"{fault.file}:{fault.line or 1}: {fault.message}")
        print(f"{len(faults)} faults in {place}" if faults else f"{place}: nothing wrong", file=sys.stderr)
    return 1 if faults else 0


def _check_recordings(folder: str, knowledge: str | None) -> list[Fault]:
    """What is wrong with how the recordings under `folder` are explained."""
    from explainer.catalog.bundle import load_catalog
    from explainer.catalog.check import Fault
    from explainer.match.confusion import fault_of, read_recordings

    catalog = load_catalog(knowledge)
    told = ((one.file, fault_of(one, catalog)) for one in read_recordings(folder, catalog))
    return [Fault(file, None, fault) for file, fault in told if fault]


def new_cause(cause: str, knowledge: str | None, cluster: str | None = None) -> int:
    """Lay out the folder of a new cause, for the messages of a triage's `cluster` if given, and say what to do with it."""
    from explainer import __version__
    from explainer.catalog.cluster import read_cluster
    from explainer.catalog.scaffold import lay_out

    folder = knowledge or knowledge_folder()
    seen = read_cluster(cluster) if cluster is not None else None
    for path in lay_out(folder, cause, __version__, seen):
        print(os.path.join(folder, path))
    if seen is not None and seen.files:
        print(f"seen {seen.count} times, first in {seen.files[0]}", file=sys.stderr)
    print(
        f"next: write plain/broken.py, then `gradfix rules record {cause}{_option(knowledge)}`, "
        f"the message and the evidence in cause.toml, the prose, `gradfix rules check {folder}`",
        file=sys.stderr,
    )
    return 0


def record(cause: str, shape: str | None, python: str | None, knowledge: str | None, *, keep: bool) -> int:
    """Run the reproducers of a cause, write what they print, and say what gradfix makes of it."""
    from explainer.catalog.record import record_shape, shapes_of

    folder = knowledge or knowledge_folder()
    if not os.path.isdir(os.path.join(folder, cause)):
        raise UsageError(f"no folder {cause!r} in {folder}")
    shapes = shapes_of(folder, cause)
    if shape is not None and shape not in shapes:
        raise UsageError(f"no shape {shape!r} with a broken.py in {cause}; there are {', '.join(shapes) or 'none'}")
    for one in [shape] if shape else shapes:
        recording = record_shape(folder, cause, one, python or _interpreter())
        if keep:
            os.makedirs(os.path.dirname(recording.path), exist_ok=True)
            with open(recording.path, "w", encoding="utf-8") as file:
                file.write(recording.text)
            print(recording.path)
        else:
            sys.stdout.write(recording.text)
        print(f"{one}: exit status {recording.status}; {_verdict(recording.text, knowledge)}", file=sys.stderr)
    return 0 if shapes else 1


def _interpreter() -> str:
    """The active virtual environment's Python, or this one."""
    environment = os.environ.get("VIRTUAL_ENV")
    return os.path.join(environment, "bin", "python") if environment else sys.executable


def _verdict(text: str, knowledge: str | None) -> str:
    """What `explain` answers to a recording."""
    from explainer.workflow import explain

    try:
        findings = explain(text.partition("\n")[2] or "\n", knowledge=knowledge).findings
    except GradfixError as error:
        return f"not explained: {error}"
    if not findings:
        return "not recognised: no form of the cause fits yet"
    return f"explained as {findings[0].cause} ({findings[0].confidence})"


def _option(knowledge: str | None) -> str:
    return f" --knowledge {knowledge}" if knowledge else ""
