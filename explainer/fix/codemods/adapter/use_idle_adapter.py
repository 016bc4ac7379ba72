"""A model gets the adapter whose configuration the program makes and gives to nothing.

`SFTTrainer(model=model, peft_config=lora)` for a trainer of TRL; elsewhere `model = get_peft_model(model, lora)` before the
trainer or the optimizer that takes the model. The frozen base is then as it is meant to be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import add_argument
from explainer.source.name import dotted_name
from explainer.source.network.idle_adapter import IdleAdapter, find_idle_adapters
from explainer.source.program import Program
from explainer.source.tree import walk

_WHY = "makes an adapter's configuration that no model gets"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one configuration that nothing takes; only its line where it is not clear what should."""
    if not context.has_failed:
        return
    idle = list(context.program.once(find_idle_adapters))
    for one in idle if len(idle) == 1 else ():
        culprit = culprit_of(one.file, one.statement, _WHY)
        trainers = [call for call in _calls_behind(one) if _is_of_trl(call, one, context.program)]
        if len(trainers) == 1:
            edits = (add_argument(one.file, trainers[0], f"peft_config={one.name}"),)
            yield Proposal(edits=edits, culprit=culprit, belief=2.5)
            continue
        taken = _model_taken(one, context.program)
        if taken is None:
            yield Proposal(edits=(), culprit=culprit, belief=2.0)
            continue
        model, statement = taken
        name, imports = imported(one.file, "peft", "get_peft_model")
        edit = insert_before(one.file, statement, f"{model} = {name}({model}, {one.name})")
        yield Proposal(edits=(*imports, edit), culprit=culprit, belief=2.5)


def _calls_behind(one: IdleAdapter) -> Iterator[ast.Call]:
    """The calls of the same function, behind the configuration."""
    last = one.statement.end_lineno or one.statement.lineno
    return (node for node in walk(one.scope) if isinstance(node, ast.Call) and node.lineno > last)


def _is_of_trl(call: ast.Call, one: IdleAdapter, program: Program) -> bool:
    called = program.names(one.file).qualified(call.func) or ""
    return called.startswith("trl.") and called.endswith("Trainer") and all(each.arg for each in call.keywords)


def _model_taken(one: IdleAdapter, program: Program) -> tuple[str, ast.stmt] | None:
    """The name of the model that a trainer or an optimizer is given behind the configuration, and the first statement that does so."""
    names = program.names(one.file)
    for call in sorted(_calls_behind(one), key=lambda each: each.lineno):
        called = names.qualified(call.func) or ""
        given = next((each.value for each in call.keywords if each.arg == "model"), call.args[0] if call.args else None)
        if called.startswith("torch.optim.") and isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
            given = given.func.value if given.func.attr == "parameters" else None
        elif not (called.startswith("transformers.") and called.endswith("Trainer")):
            continue
        model = dotted_name(given) if isinstance(given, (ast.Name, ast.Attribute)) else None
        if model is not None:
            return model, one.file.statement(call)
    return None
