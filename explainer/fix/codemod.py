"""What a codemod sees and gives.

A codemod is a module in one of the rooms of `explainer/fix/codemods/` with

    def propose(context: Context) -> Iterator[Proposal]: ...

It reads the program, recognises the fault by qualified names and by the flow of values, never by text, and proposes edits
with the line that is guilty. Unsure, it proposes nothing; without an incident only what the source alone proves.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explainer.fix import codemods
from explainer.model.finding import Culprit
from explainer.model.incident import Frame, Incident
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.text import TextFile

if TYPE_CHECKING:
    from explainer.source.program import Program


def _unknown(_: str) -> None:
    return None


def _unchanged(_: str, __: str) -> Sequence[Change]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The program, the failure, and what is known of the machine.

    `fields` are the values that the message names; `options` come from the fix's rule; `ability("bf16")` says whether the
    GPUs can, `version("transformers")` which release is installed; both None where that is not known.
    `changes("TrainingArguments", "no_cuda")` says what became of a name of a library, or since when it is there. `variables`
    are those of the environment that the program ran in, none where that is not known. `is_guess` where nothing names the
    program: it is what trains in the folder.
    """

    program: Program
    incident: Incident = field(default_factory=Incident)
    fields: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    ability: Callable[[str], bool | None] = _unknown
    version: Callable[[str], str | None] = _unknown
    changes: Callable[[str, str], Sequence[Change]] = _unchanged
    variables: Mapping[str, str] = field(default_factory=dict)
    is_guess: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether there is a failure to explain, rather than only a source to read."""
        one = self.incident
        return bool(one.exceptions or one.warnings or one.metrics or one.log or one.traced)

    @property
    def frames(self) -> Sequence[Frame]:
        """The user's own frames of all exceptions, outermost first, then those of the forward pass that anomaly mode names.

        What only repeats a worker's exception stands where it waited for the worker: outside of that.
        """
        records = sorted(self.incident.exceptions, key=lambda one: not one.is_handed_on)
        found = [frame for record in records for frame in record.frames if frame.library is None]
        return [*found, *(frame for frame in self.incident.forward_frames if frame.library is None)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Edits that cure the fault, and the line that they cure; without edits only the line, where no local edit is honest.

    `belief` ranks the proposals of one finding, in log-odds: 0 is a fair candidate, 2 one that the message's own values
    point at. `applicability` and `because` replace those of the rule where this place demands it ("unsafe": an alias is
    read afterwards). `is_origin` where the fault begins at this line, also if a trace saw it show at another.
    """

    edits: tuple[Edit, ...]
    culprit: Culprit
    belief: float = 0.0
    applicability: str | None = None
    because: str | None = None
    title: str | None = None
    is_origin: bool = False


NEIGHBOURS = 2
Codemod = Callable[[Context], Iterator[Proposal]]


def find_codemod(name: str) -> Codemod:
    """The codemod of that name.

    Raises:
        ModuleNotFoundError: there is none.
    """
    path = _paths().get(name)
    if path is None:
        raise ModuleNotFoundError(f"no codemod is called {name}", name=name)
    propose: Codemod = importlib.import_module(path).propose
    return propose


@functools.cache
def _paths() -> Mapping[str, str]:
    """The module of each codemod by its name, which stands once in all rooms."""
    found = pkgutil.walk_packages(codemods.__path__, f"{codemods.__name__}.")
    return {one.name.rpartition(".")[2]: one.name for one in found if not one.ispkg}


def edit_of(file: SourceFile, node: ast.AST, new: str) -> Edit:
    """The edit that puts `new` in place of a node."""
    start, end = file.span(node)
    return Edit(file=file.path, start=start, end=end, new=new)


def insert_before(file: SourceFile, statement: ast.stmt, text: str) -> Edit:
    """The edit that puts lines of `text`, indented as the statement is, before it (before its decorators).

    A statement that shares its line begins one of its own, or takes the text beside it behind a `with x:` that ends no line.
    """
    first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
    start, at = file.line_start(first), file.span(statement)[0]
    if file.text[start:at].strip() and first == statement.lineno:
        if _is_behind_colon(file, statement):
            return Edit(file=file.path, start=at, end=at, new="; ".join([*text.split("\n"), ""]))
        before, _ = _beside(file, statement)
        low = file.span(before)[1] if before is not None else at
        return Edit(file=file.path, start=low, end=at, new=_own_line(file, statement, text))
    return Edit(file=file.path, start=start, end=start, new=_lines(file, statement, text))


def insert_after(file: SourceFile, statement: ast.stmt, text: str) -> Edit:
    """The edit that puts lines of `text`, indented as the statement is, after it; as `insert_before` on a line that is shared."""
    past = file.span(statement)[1]
    if _is_behind_colon(file, statement):
        return Edit(file=file.path, start=past, end=past, new="".join(f"; {line}" for line in text.split("\n")))
    _, following = _beside(file, statement)
    if following is not None:
        return Edit(file=file.path, start=past, end=file.span(following)[0], new=_own_line(file, statement, text))
    at = file.line_start((statement.end_lineno or statement.lineno) + 1)
    end = len(file.text)
    lead = file.newline if at == end and not file.text.endswith(("\n", "\r")) else ""
    new = lead + _lines(file, statement, text)
    return Edit(file=file.path, start=at, end=at, new=new.rstrip("\r\n") if lead else new)


def remove_statement(file: SourceFile, statement: ast.stmt) -> Edit:
    """The edit that takes out a statement with its lines, or its part of a shared one; `pass` where it is the only one of its block."""
    block = _block(file, statement)
    if len(block) == 1:
        return edit_of(file, statement, "pass")
    start, end = file.span(statement)
    before, following = _beside(file, statement)
    if following is not None:
        return Edit(file=file.path, start=start, end=file.span(following)[0], new="")
    if before is not None:
        return Edit(file=file.path, start=file.span(before)[1], end=end, new="")
    start = file.line_start(statement.lineno)
    end = file.line_start((statement.end_lineno or statement.lineno) + 1)
    return Edit(file=file.path, start=start, end=end, new="")


def _block(file: SourceFile, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which one stands."""
    above = file.parents.get(statement)
    blocks = (getattr(above, name, None) for name in ("body", "orelse", "finalbody"))
    return next((one for one in blocks if isinstance(one, list) and statement in one), [])


def _beside(file: SourceFile, statement: ast.stmt) -> tuple[ast.stmt | None, ast.stmt | None]:
    """The statements before and behind one on its own line: `a = 1; b = 2`."""
    block = _block(file, statement)
    at = block.index(statement) if statement in block else 0
    before, following = block[at - 1] if at else None, block[at + 1] if at + 1 < len(block) else None
    return (
        before if before is not None and before.end_lineno == statement.lineno else None,
        following if following is not None and following.lineno == statement.end_lineno else None,
    )


def _is_behind_colon(file: SourceFile, statement: ast.stmt) -> bool:
    """Whether a statement's block stands on the line that opens it: `if x: y()`."""
    block = _block(file, statement)
    first = block[0] if block else statement
    lead = file.text[file.line_start(first.lineno) : file.span(first)[0]]
    return bool(lead.strip()) and lead.rstrip().endswith(":")


def _own_line(file: SourceFile, statement: ast.stmt, text: str) -> str:
    """Lines between two statements that shared one."""
    indent = file.indent(statement.lineno)
    return f"{file.newline}{_lines(file, statement, text)}{indent}"


def lines_of(file: SourceFile, statement: ast.stmt) -> str:
    """A statement as it is inserted elsewhere: its lines without the indentation of the first, a comment behind it included."""
    lead = len(file.indent(statement.lineno))
    rest = file.text[file.span(statement)[1] :].partition(file.newline)[0]
    lines = (file.segment(statement) + (rest if rest.lstrip().startswith("#") else "")).split(file.newline)
    return "\n".join(line if line[:lead].strip() else line[lead:] for line in lines)


def _lines(file: SourceFile, statement: ast.stmt, text: str) -> str:
    indent = file.indent(statement.lineno)
    return "".join(f"{indent}{line}{file.newline}" if line else file.newline for line in text.split("\n"))


def culprit_of(file: SourceFile, node: ast.AST, why: str) -> Culprit:
    """The line of a node, with the node marked in it, as a finding shows it."""
    function = file.enclosing(file.statement(node), ast.FunctionDef, ast.AsyncFunctionDef)
    return culprit_at(file, file.span(node), why, getattr(function, "name", None))


def culprit_at(file: TextFile, span: tuple[int, int], why: str, function: str | None = None) -> Culprit:
    """The line at which some characters of any file begin, with these marked in it."""
    start, end = span
    line = file.line_of(start)
    text = file.line(line)
    begin, lead = file.line_start(line), len(text) - len(text.lstrip())
    mark = (start - begin - lead, min(end - begin, len(text.rstrip())) - lead)
    return Culprit(
        file=file.path,
        line=line,
        function=function,
        code=text.strip(),
        mark=mark if 0 <= mark[0] < mark[1] else None,
        why=why,
        before=tuple(_shifted(file, one, lead) for one in range(max(line - NEIGHBOURS, 1), line)),
        after=tuple(_shifted(file, one, lead) for one in range(line + 1, line + 1 + NEIGHBOURS)),
    )


def _shifted(file: TextFile, line: int, lead: int) -> str:
    """A line as it stands beside another that is shown without its `lead` columns of indentation."""
    text = file.line(line).rstrip()
    return text[lead:] if not text[:lead].strip() else f"\u2039 {text.lstrip()}"
