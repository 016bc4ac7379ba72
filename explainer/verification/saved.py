"""A verification in a file: written by `gradfix verify --save`, read by `--against`."""

from __future__ import annotations

import os
from dataclasses import replace

from explainer.errors import UnreadableInput, UsageError
from explainer.model.verification import SCHEMA, Verification
from explainer.render.json import render_json


def save_verification(proof: Verification, path: str) -> None:
    """Write a verification whole, with its gradients; without the program's output.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(render_json(replace(proof, output=""), is_whole=True))
        os.replace(f"{path}.part", path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def read_verification(path: str) -> Verification:
    """The verification in a file.

    Raises:
        UnreadableInput: the file is missing or holds no verification that was saved.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UnreadableInput(f"{path}: {(error.strerror or str(error)).lower()}") from error
    try:
        proof = TypeAdapter(Verification).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise UnreadableInput(f"{path}: not a verification: {place}: {first['msg'].lower()}") from error
    if proof.schema != SCHEMA:
        raise UnreadableInput(f"{path}: not a verification but {proof.schema!r}")
    kept = [one for process in proof.processes for step in process.first for one in step.gradients if one.norm]
    if kept and not any(one.values or one.projections for one in kept):
        raise UnreadableInput(f"{path}: holds no gradients; write it with `gradfix verify --save`")
    return proof
