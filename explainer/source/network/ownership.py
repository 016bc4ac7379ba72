"""Whether a program says which parameters it gives its optimizers: the head's alone, those of some names, groups added later."""

from __future__ import annotations

import ast
import re

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_LISTS = frozenset({"parameters", "named_parameters"})
_LOOKS = frozenset({"sum", "len", "any", "all", "print", "clip_grad_norm_", "clip_grad_value_"})
_NAMES = re.compile(r"\w")


def chooses_parts(program: Program) -> bool:
    """Whether the text selects parts of a model by themselves, or names them: then the rest is left out on purpose."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "add_param_group":
                    return True
                is_part = node.func.attr in _LISTS and _is_part(node.func.value, file, program)
                if is_part and not _is_looked_at(node, file):
                    return True
            if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)) and _is_by_name(node):
                return True
            if isinstance(node, (ast.For, ast.Call)) and _filters_by_name(node):
                return True
    return False


def _is_part(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """`model.head`, `model[-1]`, `model.get_submodule(...)`; not `self.model` of what is no module itself."""
    if isinstance(node, (ast.Subscript, ast.Call)):
        return not isinstance(node, ast.Call) or isinstance(node.func, ast.Attribute)
    if not isinstance(node, ast.Attribute):
        return False
    if isinstance(node.value, ast.Name) and node.value.id == "self":
        owner = program.names(file).class_of(node)
        return owner is None or any("Module" in (dotted_name(base) or "") for base in owner.bases)
    return node.attr not in ("model", "module", "net", "network")


def _is_looked_at(call: ast.Call, file: SourceFile) -> bool:
    """Whether the parameters of a part are frozen, counted or clipped there, and given to no optimizer."""
    for one in file.around(call):
        if isinstance(one, ast.For) and any(node is call for node in walk(one.iter)):
            return all(_freezes(each) for each in one.body)
        if isinstance(one, ast.Call):
            name = (dotted_name(one.func) or "").rpartition(".")[2]
            return name in _LOOKS and any(node is call for given in one.args for node in walk(given))
    return False


def _freezes(statement: ast.stmt) -> bool:
    """`p.requires_grad = False`, `p.requires_grad_(False)`."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in statement.targets)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_"


def _is_by_name(node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> bool:
    """A comprehension over named parameters that compares the names with words of the program."""
    return any(_over_names(one.iter) and any(_has_words(test) for test in one.ifs) for one in node.generators)


def _filters_by_name(node: ast.For | ast.Call) -> bool:
    if isinstance(node, ast.For):
        # What is frozen by its name trains for nobody: that says nothing of what an optimizer is to have.
        tests = [one.test for one in walk(node) if isinstance(one, ast.If) and not all(map(_freezes, one.body))]
        return _over_names(node.iter) and any(_has_words(one) for one in tests)
    is_filter = isinstance(node.func, ast.Name) and node.func.id == "filter" and len(node.args) == 2
    return is_filter and _over_names(node.args[1]) and _has_words(node.args[0])


def _over_names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "named_parameters" for one in walk(node))


def _has_words(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and _NAMES.search(one.value) for one in walk(node)
    )
