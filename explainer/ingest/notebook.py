"""Jupyter notebooks: the outputs of cells that failed, and what the cells before them printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from explainer.errors import UnreadableInput
from explainer.ingest.assembly import assemble
from explainer.ingest.block import Block
from explainer.ingest.text import blocks_of
from explainer.model.incident import ExceptionRecord, Incident


def read_notebook(text: str, source: str) -> Iterator[Incident]:
    """One incident for each cell that failed; one without an exception where none did.

    Raises:
        UnreadableInput: the text is no notebook.
    """
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableInput(f"{source}: this is no notebook: {type(error).__name__}") from error
    if not isinstance(cells, list):
        raise UnreadableInput(f"{source}: this is no notebook: its cells are no list")
    blocks: list[Block] = []
    failed = False
    for cell in cells:
        for output in _outputs(cell):
            line = len(blocks) + 1
            blocks.extend(block._replace(line=line) for block in blocks_of(_text_of(output)))
            if output.get("output_type") == "error":
                failed = True
                yield from (_named(incident, output, source) for incident in assemble(blocks, source))
                blocks = []
    if not failed:
        yield from assemble(blocks, source)


def _outputs(cell: Any) -> list[dict[str, Any]]:
    outputs = cell.get("outputs") if isinstance(cell, dict) and cell.get("cell_type") == "code" else None
    return [one for one in outputs if isinstance(one, dict)] if isinstance(outputs, list) else []


def _text_of(output: dict[str, Any]) -> str:
    """What an output shows as text: a stream, a traceback, or the plain form of a result."""
    if output.get("output_type") == "error":
        lines = output.get("traceback") or [f"{output.get('ename', '')}: {output.get('evalue', '')}"]
        return _joined(lines, "\n") + "\n"
    if "text" in output:
        return _joined(output["text"], "")
    data = output.get("data")
    return _joined(data.get("text/plain", ""), "") if isinstance(data, dict) else ""


def _joined(parts: Any, separator: str) -> str:
    if isinstance(parts, str):
        return parts
    return separator.join(part for part in parts if isinstance(part, str)) if isinstance(parts, list) else ""


def _named(incident: Incident, output: dict[str, Any], source: str) -> Incident:
    """The incident with the type and message that the notebook stores beside the printed traceback."""
    name, value = output.get("ename"), output.get("evalue")
    if not isinstance(name, str) or not isinstance(value, str) or not name:
        return incident
    records = incident.exceptions
    if not records:
        return replace(incident, exceptions=(ExceptionRecord(type=name, message=value),), source=source)
    last = records[-1]
    if last.type.rpartition(".")[2] == name.rpartition(".")[2] or not last.type:
        records = (*records[:-1], replace(last, type=last.type or name, message=value, is_complete=True))
    return replace(incident, exceptions=records)
