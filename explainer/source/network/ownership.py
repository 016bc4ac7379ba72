"""Whether a program says which parameters it gives its optimizers: the head's alone, those of some names, groups added later."""

from __future__ import annotations

import ast
import re

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_LISTS = frozenset({"parameters", "named_parameters"})
_NAMES = re.compile(r"\w")


def chooses_parts(program: Program) -> bool:
    """Whether the text selects parts of a model by themselves, or names them: then the rest is left out on purpose."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "add_param_group":
                    return True
                if node.func.attr in _LISTS and _is_part(node.func.value, file, program):
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


def _is_by_name(node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> bool:
    """A comprehension over named parameters that compares the names with words of the program."""
    return any(_over_names(one.iter) and any(_has_words(test) for test in one.ifs) for one in node.generators)


def _filters_by_name(node: ast.For | ast.Call) -> bool:
    if isinstance(node, ast.For):
        tests = [one.test for one in walk(node) if isinstance(one, ast.If)]
        return _over_names(node.iter) and any(_has_words(one) for one in tests)
    is_filter = isinstance(node.func, ast.Name) and node.func.id == "filter" and len(node.args) == 2
    return is_filter and _over_names(node.args[1]) and _has_words(node.args[0])


def _over_names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "named_parameters" for one in walk(node))


def _has_words(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and _NAMES.search(one.value) for one in walk(node)
    )
