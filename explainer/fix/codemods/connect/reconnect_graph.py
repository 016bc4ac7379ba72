"""Takes out what cuts the graph between the parameters and the loss: `.detach()`, `.item()`, `torch.tensor(loss)`, `no_grad`.

The loss of the failing backward is followed back to the parameters. Where every way is cut, each chain of cuts that stands
alone in one is proposed. `options["cuts"]` says for which causes: "values", "grad mode", "steps".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.fix.clue.failure import backward_roots, is_in_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncut import uncut
from explainer.model.patch import Edit
from explainer.source.graph.cut import ARRAY, COPY, DATA, DETACH, GRAD_MODE, INTEGER, LIBRARY, SAMPLE, STEP, VALUE, Cut
from explainer.source.value.provenance import Trace, provenance_of

Chain = tuple[Cut, ...]
_ON_PURPOSE = re.compile(
    r"target|teacher|label|baseline|old|ema|momentum|advantage|next|prev|frozen|reference|ref_|anchor", re.IGNORECASE
)
_WHY = {
    DETACH: "ends the graph here", DATA: "takes the values out of the graph", VALUE: "makes a Python number of it, which has no graph",
    ARRAY: "makes a NumPy array of it, which has no graph", COPY: "builds a new tensor from the values, without their graph",
    LIBRARY: "computes outside of torch, where no graph is recorded", INTEGER: "has no derivative",
    STEP: "has no derivative", SAMPLE: "draws without a gradient to its parameters", GRAD_MODE: "records no graph for what it runs",
}  # fmt: skip
_CHANGES = "another function is optimized: the soft form stands for the decision"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each chain of cuts that stands between the parameters and the failing loss, or its line where there is none."""
    if not context.has_failed:
        return
    provenance = provenance_of(context.program)
    for root in backward_roots(context):
        trace = provenance.trace(root)
        if trace.live:
            continue
        chains = _fewest(trace.chains)
        for chain in chains:
            if kind_of(chain) == context.options.get("cuts", "values"):
                yield from _proposal(chain, replace(trace, chains=chains), context)


def _fewest(chains: Sequence[Chain]) -> tuple[Chain, ...]:
    """The chains but those of which a part alone cuts another way: with that part taken out, a graph reaches the loss."""
    sets = dict.fromkeys(frozenset(one) for one in chains)
    return tuple(
        next(chain for chain in chains if frozenset(chain) == one)
        for one in sets
        if not any(other < one for other in sets)
    )


def kind_of(chain: Chain) -> str:
    """The cause that a chain of cuts speaks for: the hardest of its cuts decides."""
    kinds = {one.kind for one in chain}
    if kinds & {INTEGER, STEP, SAMPLE}:
        return "steps"
    return "values" if kinds - {GRAD_MODE} else "grad mode"


def _proposal(chain: Chain, trace: Trace, context: Context) -> Iterator[Proposal]:
    edits: list[Edit] = []
    for cut in chain:
        found = uncut(cut, context.program, trace.sources)
        if found is None:  # no local form keeps the graph: the line is still the one to look at
            edits = []
            break
        edits += [one for one in found if one not in edits]
    first = chain[0]
    softened = bool(edits) and any(one.kind == STEP for one in chain)
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(first.file, _shown(first), _WHY[first.kind]),
        belief=_belief(chain, trace, context),
        applicability="unsafe" if softened else None,
        because=_CHANGES if softened else None,
    )


def _shown(cut: Cut) -> ast.AST:
    """What to mark: the context of a `with`, not its body."""
    return cut.node.items[0].context_expr if isinstance(cut.node, (ast.With, ast.AsyncWith)) else cut.node


def _belief(chain: Chain, trace: Trace, context: Context) -> float:
    belief = 2.5 if len(trace.chains) == 1 else 1.0
    belief -= 0.2 * (len(chain) - 1)
    for cut in chain:
        statement = cut.file.statement(cut.node) if not isinstance(cut.node, ast.stmt) else cut.node
        text = cut.file.line(getattr(statement, "lineno", 1))
        if cut.kind in (DETACH, GRAD_MODE, DATA) and _ON_PURPOSE.search(text):
            belief -= 1.5
        if is_in_frames(cut.node, cut.file, context):
            belief += 0.5
    return belief
