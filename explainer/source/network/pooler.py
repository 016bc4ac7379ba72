"""The poolers of transformers' models: which one a parameter's name means, where its model is made, whether anything reads its output."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, reaching
from explainer.source.value.resolve import resolver_of

POOLER = "pooler"
_OUTPUTS = ("pooler_output", POOLER)
# Models whose own constructor makes a pooler unless `add_pooling_layer=False`; read on transformers 5.
_POOLED = frozenset(
    {
        "BertModel",
        "RobertaModel",
        "XLMRobertaModel",
        "AlbertModel",
        "CamembertModel",
        "MPNetModel",
        "ErnieModel",
        "EsmModel",
    }
    | {"LongformerModel", "MegatronBertModel", "MobileBertModel", "RemBertModel", "ViTModel", "DeiTModel", "BeitModel"}
)
_DEPTH = 4


@dataclass(frozen=True)
class Pooled:
    """A model of a library that a class of the program keeps: the call that makes it, the statement that keeps it, and its pooler's name."""

    file: SourceFile
    call: ast.expr
    statement: ast.stmt
    name: str


def poolers_named(names: list[str]) -> list[list[str]]:
    """The paths of the poolers that all of some parameters belong to: `["bert", "pooler"]`; none where one does not."""
    paths = [one.split(".") for one in names]
    if any(POOLER not in one[:-1] for one in paths):
        return []
    found = {tuple(one[: one.index(POOLER) + 1]) for one in paths}
    return [list(one) for one in sorted(found)]


def pooled(path: list[str], model: Value, program: Program, depth: int = 0) -> Iterator[Pooled]:
    """Where a class of the program keeps the model whose pooler a path means: `["encoder", "bert", "pooler"]`."""
    resolver = resolver_of(program)
    for where, owner in resolver.classes_of(model) if len(path) > 1 and depth < _DEPTH else ():
        made = resolver.method(owner, "__init__", where)
        bound = [one for one in bounds_of(made[1]) if one.name == f"self.{path[0]}"] if made is not None else []
        if made is None or len(bound) != 1 or bound[0].fills or bound[0].pick is not None:
            continue
        statement = made[0].statement(bound[0].node)
        value = Value(bound[0].node, made[0])
        if is_of_transformers(value, program):
            yield Pooled(made[0], bound[0].node, statement, f"self.{path[0]}{attribute_of(path[1:])}")
        else:
            yield from pooled(path[1:], value, program, depth + 1)


def poolers_made(model: Value, program: Program) -> Iterator[list[str]]:
    """The paths of the poolers that the source alone shows in a wrapped class: `self.bert = BertModel(config)`."""
    for where, owner in resolver_of(program).classes_of(model):
        made = resolver_of(program).method(owner, "__init__", where)
        for one in bounds_of(made[1]) if made is not None else ():
            name = program.names(where).qualified(one.node.func) if isinstance(one.node, ast.Call) else None
            parts = (name or "").split(".")
            is_made = parts[0] == "transformers" and bool(_POOLED & set(parts[-2:]))
            if one.name.startswith("self.") and is_made and not _is_without(one.node):
                yield [one.name.removeprefix("self."), POOLER]


def _is_without(call: ast.expr) -> bool:
    assert isinstance(call, ast.Call)
    return any(one.arg in ("add_pooling_layer", None) for one in call.keywords)


def attribute_of(path: list[str]) -> str:
    """How a path is written behind the module that it begins at: `.layers[3].pooler`."""
    return "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in path)


def is_of_transformers(value: Value, program: Program) -> bool:
    """Whether a call of transformers made what an expression stands for."""
    made = resolver_of(program).constructors_of(value)
    called = [program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)]
    return bool(called) and all(one.startswith("transformers.") for one in called)


def is_pooled_output_read(holder: str, program: Program) -> bool:
    """Whether the program speaks of a pooler or of its output, or takes the second output of the model that `holder` names."""
    return any(_reads(node, holder, file) for file in program.parsed() for node in file.walk())


def _reads(node: ast.AST, holder: str, file: SourceFile) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _OUTPUTS
    if isinstance(node, ast.Constant):
        return node.value in _OUTPUTS
    if isinstance(node, ast.Subscript):
        return _is_second(node.slice) and _is_output(node.value, holder, file)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        names = node.targets[0].elts
        is_kept = len(names) > 1 and not getattr(names[1], "id", "").startswith("_")
        return is_kept and _is_output(node.value, holder, file)
    return False


def _is_second(key: ast.expr) -> bool:
    """Whether a place may be that of the pooled output: the second, or one that is counted from the end or not written."""
    return not (isinstance(key, ast.Constant) and key.value in (0, "last_hidden_state", "hidden_states"))


def _is_output(node: ast.expr, holder: str, file: SourceFile) -> bool:
    values = [node, *(one.node for one in reaching(node.id, node, file))] if isinstance(node, ast.Name) else [node]
    return any(
        isinstance(one, ast.Call)
        and any(getattr(part, "attr", getattr(part, "id", "")) == holder for part in walk(one.func))
        for one in values
    )
