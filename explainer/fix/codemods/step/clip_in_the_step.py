"""Under manual optimization the module clips: `self.clip_gradients(opt, ...)` before each step, with the Trainer's own value.

The Trainer's `gradient_clip_val` goes, in its call or in the file from which it is read. Refused where the steps are not all
plain (a closure, half precision with its scaler, an optimizer that is not known), or another module shares the Trainer.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at, insert_after, insert_before
from explainer.fix.setting.choice import has_value
from explainer.fix.setting.removal import remove_together
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.step import made_by
from explainer.source.name import dotted_name
from explainer.source.network.lightning import PACKAGES, Owner, chain_of, find_lightning_modules
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind
from explainer.source.setting.python import read_python, setting_at
from explainer.source.setting.setting import ARGPARSE, ASSIGNED, DEFAULT, Code, Setting
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, block_of, root_of
from explainer.source.value.resolve import resolver_of

_VALUE, _ALGORITHM = "gradient_clip_val", "gradient_clip_algorithm"
_MOVED = "the same norm at the same place as before; the number stands in the step now, where no setting reaches it"
_HALF = ("16", "16-mixed", "fp16")


def propose(context: Context) -> Iterator[Proposal]:
    """The edits of module and Trainer; only the line of the option where the steps are not plain."""
    number = str(context.fields.get("value", ""))
    if "Automatic gradient clipping" not in message_of(context) or not _is_number(number):
        return
    written = _written(_VALUE, float(number), context)
    if not written:
        return
    algorithms = _written(_ALGORITHM, None, context, beside=written)
    culprit = _culprit(written[0])
    steps = _steps(context)
    names = {one.value for one in algorithms}
    removed = remove_together([*written, *algorithms])
    if not steps or len(names) > 1 or any(isinstance(one, Code) for one in names) or isinstance(removed, str):
        yield Proposal(edits=(), culprit=culprit, belief=1.0)
        return
    keywords = "".join(f", {_ALGORITHM}={json.dumps(one)}" for one in names if isinstance(one, str))
    calls = [
        _beside(file, step, f"self.clip_gradients({file.segment(_optimizer(step))}, {_VALUE}={number}{keywords})")
        for file, step in steps
    ]
    is_set = any(isinstance(one.value, Code) or one.kind in (ARGPARSE, DEFAULT) for one in written)
    yield Proposal(
        edits=(*calls, *removed),
        culprit=culprit,
        belief=2.0,
        applicability="unsafe" if is_set else None,
        because=_MOVED if is_set else None,
    )


def _beside(file: SourceFile, step: ast.Call, text: str) -> Edit:
    """Right behind the backward of the same block, so that what is logged of the gradients is what steps; else before the step."""
    statement = file.statement(step)
    block = block_of(statement, file)
    before = block[: block.index(statement)]
    at = next((len(before) - place for place, one in enumerate(reversed(before)) if _is_backward(one)), None)
    if at is None or root_of(_optimizer(step)) in {name for one in before[at:] for name in binds(one)}:
        return insert_before(file, statement, text)
    return insert_after(file, before[at - 1], text)


def _is_backward(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "manual_backward"


def _is_number(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def _culprit(setting: Setting) -> Culprit:
    span = (setting.key or setting.span)[0], setting.span[1]
    return culprit_at(setting.file, span, "asks the trainer to clip for a module that steps by itself")


def _written(
    name: str, value: float | None, context: Context, beside: Sequence[Setting] | None = None
) -> list[Setting]:  # fmt: skip
    """Where the Trainer's option is written: in its call, in the mapping that the call is given, else in the one place there is."""
    program = context.program
    found: list[Setting] = []
    for file, call in _trainers(program):
        for keyword in call.keywords:
            if keyword.arg == name:
                setting = setting_at(keyword.value, file, program.names(file))
                found += [setting] if setting is not None else []
            elif keyword.arg is None:
                found += members_behind(keyword.value, name, file, program)
    found = [one for one in found if value is None or isinstance(one.value, Code) or _has_number(one, value)]
    if found or beside:
        places = {(one.file.path, one.group, one.path[:-1]) for one in beside or ()}
        return [one for one in found if beside is None or (one.file.path, one.group, one.path[:-1]) in places]
    every = [one for document in program.documents(name) for one in document.named(name)]
    for file in program.parsed():
        every += [one for one in read_python(file) if one.name == name and (one.kind != ASSIGNED or one.owner)]
    plain = [one for one in every if value is None or _has_number(one, value)]
    return plain if len(plain) == 1 else []


def _has_number(setting: Setting, value: float) -> bool:
    """Whether a setting is a number, however it is written: `1`, `1.0`, `"1.0"`."""
    try:
        return float(str(setting.value)) == value
    except ValueError:
        return False


def _trainers(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file in program.parsed():
        for node in file.walk():
            called = (program.names(file).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called.startswith(PACKAGES) and called.endswith(".Trainer"):
                yield file, node


def _steps(context: Context) -> list[tuple[SourceFile, ast.Call]]:
    """The steps of the optimizers of the one module that is trained; none where one of them is not plain."""
    program = context.program
    modules = _trained(program)
    if len(modules) != 1 or _is_half(program):
        return []
    found: list[tuple[SourceFile, ast.Call]] = []
    for file, owner in chain_of(modules[0], program):
        for node in walk(owner):
            if isinstance(node, ast.FunctionDef) and node.name == "configure_gradient_clipping":
                return []  # it says itself how it is clipped
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in ("clip_gradients", "clip_grad_norm_", "clip_grad_value_"):
                return []  # it clips already, with a value of its own
            if node.func.attr != "step" or _is_super(node.func.value):
                continue
            kind = _kind(node.func.value, file, program)
            if kind == "scheduler":
                continue
            if kind != "optimizer" or not _is_plain(node, file):
                return []
            found.append((file, node))
    return found


def _optimizer(step: ast.Call) -> ast.expr:
    assert isinstance(step.func, ast.Attribute)
    return step.func.value


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "super"


def _trained(program: Program) -> list[Owner]:
    """The modules that a `fit` of the program is given; all of them where one cannot be read."""
    resolver = resolver_of(program)
    fitted: dict[int, Owner] = {}
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
                given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "model")]
                owners = resolver.classes_of(Value(given[0], file)) if given else []
                if not owners:
                    return list(find_lightning_modules(program))
                fitted.update({id(one[1]): one for one in owners})
    return list(fitted.values()) or list(find_lightning_modules(program))


def _is_half(program: Program) -> bool:
    """Whether gradients are scaled: they are unscaled inside of `step` only, and a clip before it would see them scaled."""
    written = [one for document in program.documents("precision") for one in document.named("precision")]
    for file in program.parsed():
        written += [one for one in read_python(file) if one.name == "precision"]
    return any(has_value(one, each) for one in written for each in _HALF)


def _kind(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """Whether an expression is an optimizer or a scheduler."""
    kinds = {_kind_of(name) for name in made_by(node, file, program)}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of(name: str) -> str | None:
    last = name.rpartition(".")[2]
    if last == "lr_schedulers" or "lr_scheduler" in name:
        return "scheduler"
    return "optimizer" if last == "optimizers" or name.startswith("torch.optim.") else None


def _is_plain(node: ast.Call, file: SourceFile) -> bool:
    """Whether a step is a statement of its own, on lines of its own, and runs no closure."""
    statement = file.statement(node)
    is_alone = isinstance(statement, ast.Expr) and statement.value is node and not node.args and not node.keywords
    return is_alone and not file.text[file.line_start(node.lineno) : file.span(node)[0]].strip()
