"""Runs one codemod on a program that is given as text, with a failure at a line of it."""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Mapping

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import MODULE, TENSOR, ExceptionRecord, Fact, Frame, Incident
from explainer.source.program import Program, read_program


def failed(at: Mapping[str, int] | None = None, message: str = "it failed", **given: object) -> Incident:
    """An incident whose traceback goes through the lines of files in `at`, outermost first.

    `tensors` are those that the live program had at the failure, on the CPU unless they say where: `{"x": "[8, 65] float32"}`;
    `modules` the devices of its modules, `facts` what else was seen.
    """
    frames = tuple(Frame(file=file, line=line, code=str(given.get("code", ""))) for file, line in (at or {}).items())
    record = ExceptionRecord(type="RuntimeError", message=message, frames=frames)
    tensors = given.get("tensors") or {}
    assert isinstance(tensors, Mapping)
    facts = tuple(
        Fact(name=TENSOR, value=f"{name}: {one}" if " on " in one else f"{name}: {one} on cpu")
        for name, one in tensors.items()
    )
    modules = given.get("modules") or {}
    assert isinstance(modules, Mapping)
    facts += tuple(Fact(name=MODULE, value=f"{name}: {one}") for name, one in modules.items())
    more = given.get("facts") or {}
    assert isinstance(more, Mapping)
    facts += tuple(Fact(name=name, value=value) for name, value in more.items())
    return Incident(exceptions=(record,), anomaly_node=given.get("node"), facts=facts)  # type: ignore[arg-type]


def write(folder: pathlib.Path, files: Mapping[str, str]) -> Program:
    """The program of some files, written to a folder and read."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_program(str(folder), list(files))


def line_of(text: str, words: str) -> int:
    """The number of the first line that holds some words."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def best(codemod: str, program: Program, **context: object) -> Proposal | None:
    """What a codemod proposes first for a failed program; None where it proposes nothing."""
    given = {"incident": failed(), **context}
    found = list(find_codemod(codemod)(Context(program=program, **given)))  # type: ignore[arg-type]
    return max(found, key=lambda one: one.belief, default=None)


def rewritten(folder: pathlib.Path, codemod: str, source: str, at: str | None = None, **context: object) -> str:
    """One file after the best edit of a codemod; the file as it was where nothing is proposed."""
    program = write(folder, {"train.py": source})
    message = str(context.pop("message", "it failed"))
    node = context.pop("node", None)
    frames = {"train.py": line_of(source, at)} if at else {}
    incident = failed(
        frames,
        message,
        node=node,
        code=at or "",
        **{key: context.pop(key, None) for key in ("tensors", "modules", "facts")},
    )
    proposal = best(codemod, program, incident=incident, **context)
    if proposal is None or not proposal.edits:
        return source
    (path,) = {edit.file for edit in proposal.edits}
    after = splice(program.files[path].text, proposal.edits)
    assert after is not None
    return after


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of `after` that `before` has not, without their indentation."""
    old = before.splitlines()
    return [line.strip() for line in after.splitlines() if line not in old]


def diff_lines(before: str, after: str) -> list[str]:
    """The lines that an edit takes out and puts in, as a diff marks them, in the order of the text."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
