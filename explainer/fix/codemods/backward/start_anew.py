"""What was filled for one backward starts anew for the next: the sum of a few batches, an episode's log-probabilities.

Where it is made before the loop and used up at the end of each round it is made in the round; else it is emptied behind what
reads it last. Lists that are filled beside it for the same loss are emptied with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.hook.reading import COMPREHENSIONS
from explainer.source.loop.backward import stepped
from explainer.source.loop.pile import Pile, find_piles
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that goes through a sum or list which nothing empties."""
    if not context.has_failed:
        return
    told: set[tuple[Edit, ...]] = set()
    for pile in find_piles(context.program):
        edits = _moved(pile) or _emptied(pile, context.program)
        if not edits or edits in told:
            continue
        told.add(edits)
        first = pile.added[0]
        name = first.file.segment(first.target)
        why = f"adds this step's graph to `{name}`, which nothing empties before the next backward"
        late = [one for one in (pile, *pile.beside) if one.is_list and one.is_read_later]
        yield Proposal(
            edits=edits, culprit=culprit_of(first.file, first.statement, why), belief=1.4 if late else 3.0,
            applicability="unsafe" if late else None,
            because=f"`{name}` is also read elsewhere, where it is empty then" if late else None,
        )  # fmt: skip


def _moved(pile: Pile) -> tuple[Edit, ...]:
    """What is made before the loop made in each of its rounds instead; () where that is not the whole of it."""
    loop, file = pile.loop, pile.backward.file
    if loop is None or pile.block is not loop.body or pile.is_read_later:
        return ()
    made = [one for each in (pile, *pile.beside) for one in each.made]
    statements = list(dict.fromkeys(one.statement for one in made))
    before = block_of(loop, file)
    if any(one.file is not file or one.statement not in before or one.statement.lineno > loop.lineno for one in made):
        return ()
    if any(len(_targets(one)) != sum(each.statement is one for each in made) for one in statements):
        return ()
    text = "\n".join(file.segment(one) for one in statements)
    return (*(remove_statement(file, one) for one in statements), insert_before(file, loop.body[0], text))


def _targets(statement: ast.stmt) -> Sequence[ast.expr]:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target] if target is not None else []


def _emptied(pile: Pile, program: Program) -> tuple[Edit, ...]:
    """The pile emptied behind the last statement of its block that reads it or steps; () where that one returns."""
    piles, file = (pile, *pile.beside), pile.backward.file
    if any(_is_of_each(one) for one in piles):
        return ()
    used = {node for one in piles for node in one.spots}
    last = [one for one in pile.block if pile.backward.call in set(walk(one)) or used & set(walk(one)) or _steps(one)][
        -1
    ]
    if isinstance(last, ast.Return):
        return ()
    text = dict.fromkeys(line for one in piles if (line := _line(one, file, program)))
    return (insert_after(file, last, "\n".join(text)),) if text else ()


def _is_of_each(pile: Pile) -> bool:
    """Whether what is read is a list of each of several objects: `layer.balance` of `for layer in layers`, which has no one name."""
    read, file = pile.reads[0], pile.backward.file
    root = next((one.id for one in walk(read) if isinstance(one, ast.Name)), None)
    for above in file.around(read):
        loops = above.generators if isinstance(above, COMPREHENSIONS) else [above] if isinstance(above, ast.For) else []
        if any(isinstance(one, ast.Name) and one.id == root for loop in loops for one in walk(loop.target)):
            return True
    return False


def _steps(statement: ast.stmt) -> bool:
    return any(stepped(one) for one in walk(statement) if isinstance(one, ast.stmt))


def _line(pile: Pile, file: SourceFile, program: Program) -> str:
    """The statement that empties one sum or list, by the program's own method where it has one that nothing calls."""
    read = pile.reads[0]
    name = file.segment(read)
    if pile.emptied_by is not None and isinstance(read, ast.Attribute):
        return f"{file.segment(read.value)}.{pile.emptied_by.name}()"
    if pile.is_list:
        return f"{name}.clear()"
    value = pile.made[-1].value
    is_here = _is_known(value, pile, file, program)
    if value is None or pile.is_read_later or not is_here:
        return f"{name} = {name}.detach()"
    return f"{name} = {pile.made[-1].file.segment(value)}"


def _is_known(value: ast.expr | None, pile: Pile, file: SourceFile, program: Program) -> bool:
    """Whether the expression that makes a sum means the same behind the backward: no local name of another function."""
    made = pile.made[-1]
    if value is None or made.file is not file:
        return False
    here, there = (program.names(file).function_of(one) for one in (pile.backward.statement, made.statement))
    names = {node.id for node in walk(value) if isinstance(node, ast.Name)} - {"self"}
    outer = set(program.names(file).imports)
    is_own = any(dotted_name(node) and str(dotted_name(node)).startswith("self.") for node in walk(value))
    same_object = (dotted_name(pile.reads[0]) or "").startswith("self.")
    return here is there or (names <= outer and (same_object or not is_own))
