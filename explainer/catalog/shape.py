"""Reads the shapes of a cause: its programs and what they printed."""

from __future__ import annotations

import os
import re

from explainer.catalog.place import knowledge_folder
from explainer.model.shape import Printed, Shape


def read_shapes(cause: str, extra: str | None = None) -> tuple[Shape, ...]:
    """The shapes of a cause, in the order of their names, from the folder `extra` or from gradfix's own rules."""
    for folder in (extra, knowledge_folder()):
        place = os.path.join(folder, *cause.split("/")) if folder is not None else ""
        if place and os.path.isfile(os.path.join(place, "cause.toml")):
            shapes = (_read_shape(os.path.join(place, name), name) for name in sorted(os.listdir(place)))
            return tuple(shape for shape in shapes if shape is not None)
    return ()


def _read_shape(place: str, name: str) -> Shape | None:
    broken = _read(os.path.join(place, "broken.py"))
    if broken is None:
        return None
    return Shape(name=name, broken=broken, fixed=_read(os.path.join(place, "fixed.py")), printed=_read_printed(place))


def _read_printed(place: str) -> tuple[Printed, ...]:
    folder = os.path.join(place, "printed")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    recordings = []
    for name in sorted((one for one in names if one.endswith(".txt")), key=_release, reverse=True):
        text = _read(os.path.join(folder, name)) or ""
        head, _, rest = text.partition("\n")
        versions = re.findall(r"(\S+)=(\S+)", head) if head.startswith("# ") else []
        stated = ", ".join(f"{key} {value}" for key, value in versions if key != "origin")
        recordings.append(Printed(name=name.removesuffix(".txt"), versions=stated, text=rest if versions else text))
    return tuple(recordings)


def _release(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
