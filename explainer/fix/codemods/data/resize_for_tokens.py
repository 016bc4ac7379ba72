"""A model gets rows for the tokens that were added to its tokenizer: `model.resize_token_embeddings(len(tokenizer))`.

A model that is built for the tokenizer is built for all of it: `vocab_size=len(tokenizer)`, for `tokenizer.vocab_size` counts no
token that was added.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.lineage import before, block_of, scope_of, statements_of
from explainer.source.value.resolve import resolver_of

_ADDS = frozenset({"add_tokens", "add_special_tokens"})
_RESIZE = "resize_token_embeddings"
_TOKENIZER = re.compile(r"tok(?!en_?ids?$|ens$)", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block that adds tokens and loads one model, where nothing resizes one."""
    if not context.has_failed or any(_RESIZE in file.attributes for file in context.program.parsed()):
        return
    yield from _built(context.program)
    for file in context.program.parsed():
        for name in _ADDS:
            for node in file.attributes.get(name, ()):
                call = file.parents.get(node)
                if isinstance(call, ast.Call) and call.func is node and dotted_name(node.value):
                    yield from _resized(call, file, dotted_name(node.value) or "", context.program)


def _built(program: Program) -> Iterator[Proposal]:
    """One edit for each file that counts the rows of what it builds by `tokenizer.vocab_size`."""
    for file in program.parsed():
        built = [
            one
            for one in file.attributes.get("vocab_size", ())
            if _TOKENIZER.search((dotted_name(one.value) or "").rpartition(".")[2]) and _builds(one, file)
        ]
        if built:
            yield Proposal(
                edits=tuple(edit_of(file, one, f"len({file.segment(one.value)})") for one in built),
                culprit=culprit_of(file, built[0], "counts no tokens that were added to the tokenizer"),
                belief=2.4,
            )


def _builds(read: ast.Attribute, file: SourceFile) -> bool:
    """Whether a count is what a call is given: the rows of a table, or a setting of a configuration."""
    above = file.parents.get(read)
    called = dotted_name(above.func) or "" if isinstance(above, ast.Call) else ""
    is_named = isinstance(above, ast.keyword) and above.arg in ("vocab_size", "num_embeddings")
    return is_named or (called.endswith("Embedding") and isinstance(above, ast.Call) and above.args[0] is read)


def _resized(call: ast.Call, file: SourceFile, tokenizer: str, program: Program) -> Iterator[Proposal]:
    added = file.statement(call)
    block = list(block_of(added, file))
    earlier = list(_made_before(added, file, program))
    if len(earlier) == 1:
        yield _proposal(added, earlier[0], call, file, tokenizer)
        return
    loads = [one for one in block if _loads_model(one)]
    if added not in block or len(loads) != 1:
        if not loads:
            yield from _beside_loaded(call, file, tokenizer, program)
        return
    last = max(added, loads[0], key=block.index)
    model = dotted_name(loads[0].targets[0])  # type: ignore[attr-defined]
    yield _proposal(last, model or "", call, file, tokenizer)


def _beside_loaded(call: ast.Call, file: SourceFile, tokenizer: str, program: Program) -> Iterator[Proposal]:
    """Where a function adds the tokens and returns the tokenizer: in the one place that calls it and makes a model too."""
    function = program.names(file).function_of(call)
    returned = (
        [one.value for one in walk_scope(function) if isinstance(one, ast.Return)] if function is not None else []
    )
    if function is None or not returned or any(dotted_name(one) != tokenizer for one in returned):
        return
    calls = resolver_of(program).calls_of(function, file)
    if len(calls) != 1:
        return
    where, caller = calls[0]
    taken = where.statement(caller)
    block = list(block_of(taken, where))
    if not isinstance(taken, ast.Assign) or taken.value is not caller or taken not in block:
        return
    name = dotted_name(taken.targets[0]) if len(taken.targets) == 1 else None
    models = [(one, model) for one in block if (model := _model_made(one, where, program)) is not None]
    if name is not None and len(models) == 1:
        statement, model = models[0]
        text = f"{model}.{_RESIZE}(len({name}))"
        yield Proposal(
            edits=(insert_after(where, max(taken, statement, key=block.index), text),),
            culprit=culprit_of(file, call, f"adds tokens to `{tokenizer}`, for which `{model}` has no rows"),
            belief=2.0,
        )


def _model_made(statement: ast.stmt, file: SourceFile, program: Program) -> str | None:
    """The name of the model of transformers that a statement makes, itself or by a function of the program."""
    name = (
        dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    )
    if name is None or not isinstance(statement, ast.Assign):
        return None
    made = [one.node for one in resolver_of(program).constructors_of(Value(statement.value, file))]
    made = [one for one in made if isinstance(one, ast.Call)]
    return name if made and all(map(_is_model, made)) else None


def _proposal(behind: ast.stmt, model: str, call: ast.Call, file: SourceFile, tokenizer: str) -> Proposal:
    return Proposal(
        edits=(insert_after(file, behind, f"{model}.{_RESIZE}(len({tokenizer}))"),),
        culprit=culprit_of(file, call, f"adds tokens to `{tokenizer}`, for which `{model}` has no rows"),
        belief=2.0,
    )


def _made_before(added: ast.stmt, file: SourceFile, program: Program) -> Iterator[str]:
    """The names of models that were made before the tokens, further out: a tokenizer gets its token under a condition."""
    scope = scope_of(added, file, program)
    inside = set(block_of(added, file))
    for one in statements_of(scope) if scope is not None else ():
        name = _model_made(one, file, program) if one not in inside and before(one, added) else None
        if name is not None:
            yield name


def _is_model(node: ast.AST) -> bool:
    """`GPT2LMHeadModel(config)`, `AutoModelForCausalLM.from_pretrained(...)`."""
    called = (dotted_name(node.func) or "").split(".") if isinstance(node, ast.Call) else []
    kind = (
        called[-2]
        if called and called[-1] in ("from_pretrained", "from_config") and len(called) > 1
        else called[-1:] and called[-1]
    )
    return bool(kind) and ("Model" in str(kind) or "For" in str(kind)) and not str(kind).endswith("Config")


def _loads_model(statement: ast.stmt) -> bool:
    """`model = AutoModelForCausalLM.from_pretrained(...)`, or a model of a configuration."""
    value = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    called = dotted_name(value.func) or "" if isinstance(value, ast.Call) else ""
    owner, _, method = called.rpartition(".")
    kind = owner.rpartition(".")[2]
    is_model = method in ("from_pretrained", "from_config") and ("Model" in kind or "For" in kind)
    return is_model and dotted_name(statement.targets[0]) is not None  # type: ignore[attr-defined]
