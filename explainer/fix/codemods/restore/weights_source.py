"""Points at where weights that were not finite before any step come from: a file. No edit: only the file can be restored.

A cell without a number in a table beside the program comes first, then the line that makes weights of what was read,
`nn.Embedding.from_pretrained(table)`, `nn.Parameter(torch.from_numpy(table))`, and the line that reads it; else the one line that
loads weights, `model.load_state_dict(...)`, `PeftModel.from_pretrained(base, path)`. Where a trace saw that an optimizer began with
a damaged state, the line that loads that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data.cell import READERS, cells
from explainer.source.file import SourceFile
from explainer.source.network.anew import PARAMETER
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.upstream import calls_behind

_OF_VALUES = ("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
_ADAPTER = re.compile(r"lora_|\badapter|prompt_encoder|\bia3_")
_OTHERS = re.compile(r"opt(?:im\w*)?\b|sched|scaler|Tokenizer|Processor|Config|Extractor", re.IGNORECASE)
_OPTIMIZER = re.compile(r"\bopt(?:im|_|\b)", re.IGNORECASE)
_OPENS = ("open", "read_text", "read_bytes")


def propose(context: Context) -> Iterator[Proposal]:
    """The lines, where a trace saw such weights; none where the program makes none of what it reads."""
    if any(one.name == "traced_bad_input" and one.value == "state" for one in context.incident.facts):
        yield from _of_state(context.program)
        return
    live = context.incident.fact("live_untouched_parameters")
    is_traced = any(one.name == "traced_bad_input" and one.value == "untouched" for one in context.incident.facts)
    if live is None and not is_traced:
        return
    program = context.program
    found = [(file, node, reads) for file, node in _makers(program) if (reads := _reads(node, file, program))]
    broken = list(cells(context)) if found else []
    yield from (replace(one, is_origin=True) for one in broken)
    for file, node, reads in found:
        why = "makes weights of what a file holds"
        is_origin = len(found) == 1 and not broken
        yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.5, is_origin=is_origin)
        for where, read in reads:
            why = "reads what weights are made of"
            yield Proposal(edits=(), culprit=culprit_of(where, read, why), belief=1.4)
    if live is not None and not found:
        loads = list(_loads(program, is_adapter=_ADAPTER.search(live.value) is not None))
        for file, node in loads if len(loads) == 1 else ():
            why = f"loads weights, of which `{live.value.rpartition(' ')[2]}` is not finite"
            yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.5, is_origin=True)


def _of_state(program: Program) -> Iterator[Proposal]:
    """The one line that loads the state of an optimizer, which is damaged."""
    found = [
        (file, node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "load_state_dict"
        and _OPTIMIZER.search(ast.unparse(node.func.value))
    ]
    for file, node in found if len(found) == 1 else ():
        why = "loads the optimizer's state, which is damaged"
        yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.5, is_origin=True)


def _loads(program: Program, *, is_adapter: bool) -> list[tuple[SourceFile, ast.Call]]:
    """The calls that load a model's weights; those of an adapter alone where its weights are asked for and it has some."""
    found = [(file, node) for file in program.parsed() for node in file.walk() if isinstance(node, ast.Call)]
    own = [(file, node) for file, node in found if _loads_adapter(node, file, program)] if is_adapter else []
    return own or [(file, node) for file, node in found if _loads_model(node, file, program)]


def _loads_adapter(node: ast.Call, file: SourceFile, program: Program) -> bool:
    called = program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    is_peft = called.startswith("peft.") and last == "from_pretrained" and not owner.endswith("Config")
    return is_peft or getattr(node.func, "attr", last) in ("load_adapter", "set_peft_model_state_dict")


def _loads_model(node: ast.Call, file: SourceFile, program: Program) -> bool:
    """A model's own load, and none of an optimizer, a tokenizer or a configuration."""
    called = program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if last == "from_pretrained":
        return called.startswith(("transformers.", "peft.", "diffusers.")) and _OTHERS.search(owner) is None
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "load_state_dict":
        return False
    return _OTHERS.search(ast.unparse(node.func.value)) is None


def _makers(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and program.names(file).qualified(node.func) in (*_OF_VALUES, *PARAMETER):
                yield file, node


def _reads(node: ast.Call, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    """The calls that read a file on the way to a call's arguments."""
    behind = calls_behind([Value(one, file) for one in node.args], program)
    return [(where, one) for where, one in behind if _is_read(one, where, program)]


def _is_read(node: ast.Call, file: SourceFile, program: Program) -> bool:
    called = program.names(file).qualified(node.func) or str(getattr(node.func, "attr", ""))
    return called.startswith(READERS) or called.rpartition(".")[2] in _OPENS
