"""A draw with a generator of the CPU is made there and moved.

`torch.randn(n, generator=g, device=d)` becomes `torch.randn(n, generator=g).to(d)`. The numbers are those of the generator's seed
on whichever device the rest is. Where the generator is made only for these draws, `move_operand` makes it on their device.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument, put_method, remove_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.generator import draws_with, generators_of, has_one_generator
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_REFUSED = re.compile(r"Expected an? '(?!cpu')\w+' device type for generator but found 'cpu'")
_FACTORIES = frozenset({"rand", "randn", "randint", "randperm", "normal"})
_LIKE = frozenset({"rand_like", "randn_like", "randint_like"})
_OF_TENSOR = frozenset({"multinomial", "bernoulli", "poisson", "normal"})
_FILLS = frozenset(
    {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"}
)
_EMPTY = frozenset({"empty", "zeros", "ones"})
_EMPTY_LIKE = frozenset({"empty_like", "zeros_like", "ones_like"})
_NEW = frozenset({"new_empty", "new_zeros", "new_ones"})
_READ = (ast.Name, ast.Attribute, ast.Subscript)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the draws of the statement that failed, and of the others with the same generator."""
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in failing_statements(context)[:1]:
        failed = [(one, _moved(one, file, context)) for one in walk(statement) if _draws(one)]
        if not failed or any(edits is None for _, edits in failed):
            return
        first = failed[0][0]
        assert isinstance(first, ast.Call)
        others = [
            edits
            for where, one in draws_with(first, file, context.program)
            if not any(one is node for node, _ in failed)
            and not _is_on_cpu(one)
            and (edits := _moved(one, where, context)) is not None
        ]
        yield Proposal(
            edits=tuple(edit for edits in (*(edits for _, edits in failed), *others) for edit in edits or ()),
            culprit=culprit_of(file, first, "draws on the GPU with a generator of the CPU"),
            belief=2.5 if _is_shared(first, file, context) else 1.5,
            title="Draw where the generator is, and move what it drew",
            because="the numbers are those of its seed, whichever device the model is on",
        )


def _draws(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and has_one_generator(node)


def _is_shared(call: ast.Call, file: SourceFile, context: Context) -> bool:
    """Whether the generator draws on the CPU as well: a loader's order, tensors without a device."""
    made = generators_of(call, file, context.program)
    return bool(made) and any(
        one is not call and _moved(one, where, context) is None
        for where, one in draws_with(call, file, context.program)
    )


def _moved(node: ast.AST, file: SourceFile, context: Context) -> tuple[Edit, ...] | None:
    """The edits by which a call draws on the CPU and its result goes where it went; None where no such edit is known."""
    if not isinstance(node, ast.Call) or {one.arg for one in node.keywords} & {"out", "requires_grad", None}:
        return None
    names = context.program.names(file)
    called = names.qualified(node.func) or ""
    last = called.removeprefix("torch.")
    if called.startswith("torch.") and last in _FACTORIES and _device(node) is not None:
        return _made(node, node, None, file)
    if called.startswith("torch.") and last in _LIKE and node.args:
        return _made(node, node, node.args[0], file)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if method in _FILLS and isinstance(node.func, ast.Attribute):
        return _filled(node, node.func.value, file, context)
    if called.startswith("torch.") and last in _OF_TENSOR:
        return _of_tensors(node, [*node.args, *(one.value for one in node.keywords)], file, context)
    if method in ("multinomial", "bernoulli") and isinstance(node.func, ast.Attribute):
        return _of_tensors(node, [node.func.value], file, context)
    return None


def _is_on_cpu(call: ast.Call) -> bool:
    given = _device(call)
    return given is not None and isinstance(given.value, ast.Constant) and given.value.value == "cpu"


def _device(call: ast.Call) -> ast.keyword | None:
    return next((one for one in call.keywords if one.arg == "device"), None)


def _made(maker: ast.Call, whole: ast.Call, like: ast.expr | None, file: SourceFile) -> tuple[Edit, ...] | None:
    """What makes a tensor makes it on the CPU, and `whole` of it is moved: to its `device`, else to that of a tensor."""
    given = _device(maker)
    if {one.arg for one in maker.keywords} & {"out", "requires_grad", None}:
        return None
    if given is not None:
        target = file.segment(given.value)
        # Without the argument, what is like another tensor is where that is.
        here = edit_of(file, given.value, '"cpu"') if like is not None else remove_argument(file, maker, given)
    elif isinstance(like, _READ):
        target, here = f"{file.segment(like)}.device", add_argument(file, maker, 'device="cpu"')
    else:
        return None
    return here, put_method(file, whole, f".to({target})")


def _filled(call: ast.Call, base: ast.expr, file: SourceFile, context: Context) -> tuple[Edit, ...] | None:
    """`torch.empty(n, device=d).normal_(generator=g)`, and what is drawn into a tensor that is there: `x.normal_(generator=g)`."""
    if isinstance(base, ast.Call):
        called = context.program.names(file).qualified(base.func) or ""
        last = called.removeprefix("torch.") if called.startswith("torch.") else ""
        if last in _EMPTY:
            return _made(base, call, None, file)
        if last in _EMPTY_LIKE and base.args:
            return _made(base, call, base.args[0], file)
        if isinstance(base.func, ast.Attribute) and base.func.attr in _NEW:
            return _made(base, call, base.func.value, file)
        return None
    name = dotted_name(base)
    known = seen(base, context)
    if name is None or known is None or known.device == "cpu":
        return None
    torch = context.program.names(file).imports.get("torch") == "torch"
    if not torch or not isinstance(call.func, ast.Attribute):
        return None
    drawn = file.text[file.span(base)[1] : file.span(call)[1]]
    return (edit_of(file, call, f'{name}.copy_(torch.empty_like({name}, device="cpu"){drawn})'),)


def _of_tensors(call: ast.Call, given: list[ast.expr], file: SourceFile, context: Context) -> tuple[Edit, ...] | None:
    """A draw by probabilities that are on the GPU: they are read on the CPU."""
    on_gpu = [
        one
        for one in given
        if isinstance(one, _READ) and (known := seen(one, context)) is not None and known.device != "cpu"
    ]
    if not on_gpu:
        return None
    return (
        *(put_method(file, one, ".cpu()") for one in on_gpu),
        put_method(file, call, f".to({file.segment(on_gpu[0])}.device)"),
    )
