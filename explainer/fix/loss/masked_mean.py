"""The mean or sum of what a mask selects, written without the selection, whose size is known only once it is made.

`(x - y)[seen].square().mean()` is `torch.where(seen, (x - y).square(), 0).sum() / seen.sum()`; of axes that lie behind those of the
mask the mean is taken first. Only where all that is computed on the way keeps every element in its place.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.graph.selection import ELEMENTWISE
from explainer.source.tree import start_of, walk

_REDUCES = frozenset({"mean", "sum"})
_FUNCTIONS = frozenset({"maximum", "minimum", "where"}) | ELEMENTWISE
_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
_PLAIN = frozenset({"reduction", "beta", "delta"})
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
Rewriting = tuple[ast.expr, str]


@dataclass(frozen=True)
class Selection:
    """`values[mask]` or `values.masked_select(mask)`: the expression, what it selects from, and by what."""

    node: ast.expr
    values: ast.expr
    mask: ast.expr


@dataclass(frozen=True)
class MaskedMean:
    """What one statement selects by a mask, and the reductions of that."""

    file: SourceFile
    statement: ast.stmt
    context: Context

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        """The selections of the statement."""
        return tuple(found for one in walk(self.statement) if (found := self._selection(one)) is not None)

    def rewritten(self) -> list[Rewriting]:
        """Each node with the text that stands for it where nothing is selected; [] where some use is of another kind."""
        masks = {ast.dump(one.mask) for one in self.selections}
        if len(masks) != 1 or self._behind is None:
            return []
        tops = [self._reduction(one.node) for one in self.selections]
        if all(one is not None for one in tops):
            return self._weighed([one for one in tops if one is not None])
        return self._of_name() if not any(tops) else []

    def _selection(self, node: ast.AST) -> Selection | None:
        found: Selection | None = None
        if isinstance(node, ast.Subscript):
            found = Selection(node, node.value, node.slice)
        elif isinstance(node, ast.Call) and self._called(node) == "masked_select" and len(node.args) == 2:
            found = Selection(node, *node.args)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "masked_select":
            found = Selection(node, node.func.value, node.args[0]) if len(node.args) == 1 else None
        return found if found is not None and self._is_mask(found.mask) else None

    def _is_mask(self, node: ast.expr) -> bool:
        """Whether an index says of each element whether it is taken."""
        known = seen(node, self.context)
        if known is not None:
            return known.dtype == "bool" and bool(known.shape)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._is_mask(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._is_mask(node.left) and self._is_mask(node.right)
        return isinstance(node, ast.Compare) and bool(self.rank(node))

    def rank(self, node: ast.expr) -> int | None:
        """How many axes a tensor has; None where that is not known."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            sides = [self.rank(node.left), self.rank(node.right)]
            return None if None in sides else max(one for one in sides if one is not None)
        shape = seen_shape(node, self.file, self.context)
        return len(shape) if shape is not None else None

    @cached_property
    def _behind(self) -> int | None:
        """How many axes lie behind those of the mask, the same for all that is selected."""
        found = set()
        for one in self.selections:
            values, mask = self.rank(one.values), self.rank(one.mask)
            found.add(values - mask if values is not None and mask else None)
        count = found.pop() if len(found) == 1 else None
        return count if count is not None and count >= 0 else None

    @cached_property
    def _nodes(self) -> set[ast.AST]:
        return {one.node for one in self.selections}

    @cached_property
    def _name(self) -> str | None:
        """The name that the statement binds to what it selects."""
        target = self.statement.targets[0] if isinstance(self.statement, ast.Assign) else None
        return target.id if isinstance(target, ast.Name) else None

    @cached_property
    def _scope(self) -> ast.AST:
        return self.context.program.names(self.file).function_of(self.statement) or self.file.parents[self.statement]

    def _called(self, call: ast.Call) -> str:
        """The plain name of a function of torch; "" for others."""
        called = self.context.program.names(self.file).qualified(call.func) or ""
        is_torch = called.startswith("torch.")
        return called.removeprefix("torch.nn.functional.").removeprefix("torch.") if is_torch else ""

    def _reduction(self, node: ast.expr) -> ast.Call | None:
        """The mean or sum around a node, with nothing in between that moves elements."""
        below, above = node, self.file.parents.get(node)
        while isinstance(above, ast.expr):
            if isinstance(above, ast.Call) and self._reduces(above, below):
                return above
            if not self._keeps_places(above, below):
                return None
            below, above = above, self.file.parents.get(above)
        return None

    def _reduces(self, call: ast.Call, below: ast.expr) -> bool:
        if self._is_loss(call):
            return below in call.args and all(self._is_beside(one) for one in call.args if one is not below)
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _REDUCES or call.keywords:
            return False
        return below is call.func if not call.args else self._called(call) in _REDUCES and call.args == [below]

    def _is_loss(self, call: ast.Call) -> bool:
        given = {one.arg: one.value for one in call.keywords}
        is_reduced = getattr(given.get("reduction"), "value", "mean") in _REDUCES
        return self._called(call) in _LOSSES and len(call.args) == 2 and set(given) <= _PLAIN and is_reduced

    def _keeps_places(self, above: ast.expr, below: ast.AST) -> bool:
        """Whether an expression around another leaves its elements where they are, and takes nothing with more axes to them."""
        if isinstance(above, ast.Attribute):
            return True  # the call around it decides
        return self._is_elementwise(above) and all(
            self._is_beside(one) for one in self._operands(above) if one is not below
        )

    def _is_elementwise(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) and not self._called(node) else ""
            return self._called(node) in _FUNCTIONS or method in ELEMENTWISE
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, ast.MatMult)
        return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub))

    def _operands(self, node: ast.expr) -> list[ast.expr]:
        """What an expression computes with."""
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, ast.Call):
            own = [node.func.value] if isinstance(node.func, ast.Attribute) and not self._called(node) else []
            return [*own, *node.args, *(one.value for one in node.keywords)]
        return [node.operand] if isinstance(node, ast.UnaryOp) else []

    def _is_beside(self, node: ast.expr) -> bool:
        """Whether an operand is selected alike, a number, or a tensor with no more axes than lie behind the mask."""
        if (
            node in self._nodes
            or isinstance(node, ast.Constant)
            or (isinstance(node, ast.Name) and node.id == self._name)
        ):
            return True
        rank = self.rank(node)
        if rank is not None:
            return rank <= (self._behind or 0)
        if isinstance(node, (ast.Name, ast.Attribute)):
            # All tensors that were there by then were seen, so that it is none.
            root = node
            while isinstance(root, ast.Attribute):
                root = root.value  # type: ignore[assignment]
            return isinstance(root, ast.Name) and not self._is_bound_behind(root.id)
        return self._is_elementwise(node) and all(self._is_beside(one) for one in self._operands(node))

    def _is_bound_behind(self, name: str) -> bool:
        """Whether the statement, or one that follows it, binds a name."""
        return any(
            isinstance(one, ast.Name)
            and one.id == name
            and isinstance(one.ctx, ast.Store)
            and one.lineno >= self.statement.lineno
            for one in walk(self._scope)
        )

    def _of_name(self) -> list[Rewriting]:
        """A selection that is bound to a name, of which all that is read is reduced."""
        name, scope = self._name, self._scope
        names = [one for one in walk(scope) if isinstance(one, ast.Name) and one.id == name]
        uses = [one for one in names if isinstance(one.ctx, ast.Load) and start_of(one) > start_of(self.statement)]
        mask = {one.id for one in walk(self.selections[0].mask) if isinstance(one, ast.Name)}
        is_alone = len(names) == len(uses) + 1 and not any(self._is_bound_behind(one) for one in mask)
        if name is None or not uses or not is_alone or not all(self._is_value(one.node) for one in self.selections):
            return []
        found = [self._reduction(one) for one in uses]
        if any(one is None for one in found):
            return []
        bare = [(one.node, self._bare(one)) for one in self.selections]
        return [*bare, *self._weighed([one for one in found if one is not None])]

    def _is_value(self, node: ast.expr) -> bool:
        """Whether the bound value is a selection, or what is computed of it in place."""
        below: ast.AST = node
        above = self.file.parents.get(below)
        while above is not self.statement:
            if not isinstance(above, ast.expr) or not self._keeps_places(above, below):
                return False
            below, above = above, self.file.parents.get(above)
        return True

    def _weighed(self, reductions: list[ast.Call]) -> list[Rewriting]:
        """The reductions over all elements, in which only those that the mask takes count."""
        unique = {id(one): one for one in reductions}.values()
        return [(one, self._weighed_one(one)) for one in unique]

    def _weighed_one(self, call: ast.Call) -> str:
        mask, count = self.selections[0].mask, self._behind
        value, kind = self._reduced(call)
        if count:
            axes = "-1" if count == 1 else f"({', '.join(str(one) for one in range(-count, 0))})"
            value = f"{value}.{kind}({axes})"
        where = spell(self.context.program.names(self.file), "torch.where")
        chosen = self.file.segment(mask)
        total = f"{where}({chosen}, {value}, 0).sum()"
        if kind == "sum":
            return total
        quotient = f"{total} / {chosen if isinstance(mask, _ATOMS) else f'({chosen})'}.sum()"
        is_whole = isinstance(self.file.parents.get(call), (ast.Return, ast.Assign, ast.keyword))
        return quotient if is_whole else f"({quotient})"

    def _reduced(self, call: ast.Call) -> tuple[str, str]:
        """What is reduced, without its selections and as a method can be called on it, and which reduction it is."""
        if self._is_loss(call):
            kept = [self._without(one) for one in call.args]
            kept += [self.file.segment(one) for one in call.keywords if one.arg != "reduction"]
            kinds = [str(getattr(one.value, "value", "")) for one in call.keywords if one.arg == "reduction"]
            loss = f'{self.file.segment(call.func)}({", ".join(kept)}, reduction="none")'
            return loss, next(iter(kinds), "mean")
        assert isinstance(call.func, ast.Attribute)
        value = call.args[0] if call.args else call.func.value
        own = next((one.values for one in self.selections if one.node is value), None)
        text = self._without(value) if own is None else self.file.segment(own)
        is_atom = isinstance(value if own is None else own, _ATOMS) or not self._behind
        return text if is_atom else f"({text})", call.func.attr

    def _bare(self, one: Selection) -> str:
        """What is selected from; in parentheses where something binds tighter beside it."""
        text, above = self.file.segment(one.values), self.file.parents.get(one.node)
        is_alone = isinstance(above, (ast.Assign, ast.keyword)) or (
            isinstance(above, ast.Call) and one.node in above.args
        )
        return text if is_alone or isinstance(one.values, _ATOMS) else f"({text})"

    def _without(self, value: ast.expr) -> str:
        """The text of an expression with what is selected from in place of each selection."""
        start, end = self.file.span(value)
        text = self.file.text[start:end]
        inside = [(*self.file.span(one.node), self._bare(one)) for one in self.selections]
        for first, last, bare in sorted(inside, reverse=True):
            if start <= first and last <= end:
                text = text[: first - start] + bare + text[last - start :]
        return text
