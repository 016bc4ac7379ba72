"""Reads an environment that `gradfix probe --format json` wrote, perhaps on another machine."""

from __future__ import annotations

from explainer.errors import UnreadableInput
from explainer.model.environment import Environment


def read_environment(path: str) -> Environment:
    """The environment in a JSON file.

    Raises:
        UnreadableInput: the file is missing or does not hold an environment; says which key is wrong.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        with open(path, "rb") as file:
            data = file.read(4 << 20)
    except OSError as error:
        raise UnreadableInput(f"{path}: {(error.strerror or str(error)).lower()}") from error
    try:
        environment = TypeAdapter(Environment).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "file"
        raise UnreadableInput(
            f"{path}: no environment of `gradfix probe --format json`: {key}: {first['msg']}"
        ) from error
    if environment.schema != Environment().schema:
        raise UnreadableInput(f"{path}: schema {environment.schema!r}, expected {Environment().schema!r}")
    return environment
