"""Which code of a program may run inside a model, so in a segment that a library checkpoints."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.module import inherits_module
from explainer.source.program import Program

# Who takes a function and runs it on data or on results, never on a layer's activations.
_TAKES_DATA = frozenset({
    "collate_fn", "data_collator", "worker_init_fn", "batch_sampler", "transform", "target_transform", "formatting_func",
    "compute_metrics", "preprocess_logits_for_metrics", "model_init", "batch_transforms",
})  # fmt: skip
_MAPS_DATA = frozenset({"map", "with_transform", "set_transform", "filter"})


def may_run_in_model(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a node may run inside a model: False in a class that is none, and in functions that only data and loops use."""
    return _may_run(node, file, program, frozenset())


def _may_run(node: ast.AST, file: SourceFile, program: Program, above: frozenset[Function]) -> bool:
    names = program.names(file)
    owner = names.class_of(node)
    if owner is not None:
        # A library's layer is not known as a module by its name, but it has a `forward`.
        has_forward = any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in owner.body)
        return has_forward or inherits_module(owner, file, program)
    function = names.function_of(node)
    if function is None or function.decorator_list or _has_other_name(function, program):
        return True
    if function in above:
        return False  # a call of itself adds no new caller
    uses = [(one, where) for where in program.parsed() for one in _uses(function, where)]
    # What nothing of the program mentions, somebody else may run.
    return not uses or any(_use_may_run(one, where, program, above | {function}) for one, where in uses)


def _has_other_name(function: Function, program: Program) -> bool:
    """Whether a file imports it by another name, under which its uses are not looked for."""
    imported = [item for file in program.parsed() for item in program.names(file).imports.items()]
    return any(full.rpartition(".")[2] == function.name != name for name, full in imported)


def _uses(function: Function, file: SourceFile) -> list[ast.Name | ast.Attribute]:
    named = [*file.plain_names.get(function.name, ()), *file.attributes.get(function.name, ())]
    return [one for one in named if isinstance(one.ctx, ast.Load)]


def _use_may_run(use: ast.Name | ast.Attribute, file: SourceFile, program: Program, above: frozenset[Function]) -> bool:
    """Whether one mention of a function may have it run inside a model."""
    parent = file.parents.get(use)
    if isinstance(parent, ast.keyword):
        return parent.arg not in _TAKES_DATA
    if not isinstance(parent, ast.Call):
        return True
    if parent.func is not use:
        return not (isinstance(parent.func, ast.Attribute) and parent.func.attr in _MAPS_DATA)
    names = program.names(file)
    if names.function_of(use) is None and names.class_of(use) is None:
        return False  # the script itself calls it
    return _may_run(use, file, program, above)
