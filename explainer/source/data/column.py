"""What a Trainer makes of a data set's columns: it drops each that the forward of its model does not name.

Read on transformers 5: the parameters of `forward` are kept by name, and `label`, `label_ids` and those of `label_names`;
`**kwargs` keeps none. All stay with `remove_unused_columns=False`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.owner import calls_of_owner
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of
from explainer.source.value.resolve import resolver_of

OPTION = "remove_unused_columns"
ARGUMENTS = (
    "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "KTOConfig", "RewardConfig", "CPOConfig", "ORPOConfig",
)  # fmt: skip
_KEPT = frozenset(
    {"label", "labels", "label_ids", "input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds"}
    | {"pixel_values", "input_values", "input_features", "decoder_input_ids", "past_key_values", "start_positions"}
)  # fmt: skip
_LOADERS = (
    "load_dataset",
    "load_from_disk",
    "from_csv",
    "from_json",
    "from_parquet",
    "from_pandas",
    "read_",
    "reader(",
    "load",
)
_DEPTH = 4  # classes between a subclass and its Trainer
_ADDS = frozenset({"add_column", "rename_column"})


def drops(column: str, program: Program) -> bool | None:
    """Whether a Trainer of the program drops a column that its rows have; None where the source does not tell.

    False where it is kept, and where the program makes all of its rows itself and none has such a column.
    """
    if any(OPTION in text.text for text in (*program.parsed(), *program.texts)):
        return None
    taken = list(_taken(program))
    if column in _KEPT or any(column in names for names in taken) or _is_label(column, program):
        return False
    if any(_names(column, file) for file in program.parsed()):
        return True if taken or _trains_library_model(program) else None
    is_loaded = any(word in file.text for file in program.parsed() for word in _LOADERS)
    return None if is_loaded else False


def arguments_calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that make the options of a Trainer."""
    yield from calls_of_owner(ARGUMENTS, program)


def trainer_calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that make a Trainer, or one of the program's that inherits it."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and _is_trainer(node.func, file, program):
                yield file, node


def columns_named(column: str, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The places in which rows, or a data set, get a column of that name; those of rows with a model's input come first."""
    found = [(file, node) for file in program.parsed() for node in file.walk() if _is_named(column, node)]
    for file, node in sorted(found, key=lambda one: not _KEPT & _keys(one[1])):
        names = [one for one in walk(node) if _is(one, column) or (isinstance(one, ast.keyword) and one.arg == column)]
        yield file, names[0] if names else node


def _keys(node: ast.AST) -> set[str]:
    """The keys of a row."""
    if isinstance(node, ast.Dict):
        return {str(one.value) for one in node.keys if isinstance(one, ast.Constant)}
    return {str(one.arg) for one in node.keywords} if isinstance(node, ast.Call) else set()


def _models(program: Program) -> Iterator[Value]:
    """What Trainers get as their model, in a call or handed on by a subclass."""
    for file, call in trainer_calls(program):
        given = [one.value for one in call.keywords if one.arg == "model"] or call.args[:1]
        yield from (Value(one, file) for one in given)


def _is_trainer(called: ast.expr, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a class is a Trainer by its name, or one of the program's that inherits one."""
    name = program.names(file).qualified(called) or ""
    if name.rpartition(".")[2].endswith("Trainer"):
        return True
    found = resolver_of(program).find_class(called, file) if depth < _DEPTH else None
    return found is not None and any(_is_trainer(one, found[0], program, depth + 1) for one in found[1].bases)


def _taken(program: Program) -> Iterator[frozenset[str]]:
    """The parameters of the forward of each such model whose class the program has."""
    resolver = resolver_of(program)
    for model in _models(program):
        for where, owner in resolver.classes_of(model):
            method = resolver.method(owner, "forward", where)
            if method is not None:
                yield frozenset(parameters_of(method[1]))


def _trains_library_model(program: Program) -> bool:
    """Whether a Trainer gets a model of transformers: its forward takes the names that all of its models take."""
    made = [one for model in _models(program) for one in resolver_of(program).constructors_of(model)]
    called = [
        program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)
    ]  # fmt: skip
    return bool(called) and all(one.startswith("transformers.") for one in called)


def _is_label(column: str, program: Program) -> bool:
    """Whether `label_names=[...]` has it, which are kept."""
    given = (
        one.value
        for file in program.parsed()
        for one in file.walk()
        if isinstance(one, ast.keyword) and one.arg == "label_names"
    )
    return any(isinstance(each, ast.Constant) and each.value == column for one in given for each in walk(one))


def _names(column: str, file: SourceFile) -> bool:
    """Whether a row, or a data set, gets a column of that name: as a key, by `dict(...)`, by a store or a method of the data set."""
    return any(_is_named(column, node) for node in file.walk())


def _is_named(column: str, node: ast.AST) -> bool:
    if isinstance(node, ast.Dict):
        return any(_is(key, column) for key in node.keys)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and _is(node.slice, column)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id == "dict":
        return any(one.arg == column for one in node.keywords)
    given = [*node.args, *(one.value for one in node.keywords)]
    return isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS and any(_is(one, column) for one in given)


def _is(node: ast.AST | None, column: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == column
