"""Plans the fixes of a finding in the user's program: runs the codemods that the cause's rules name."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.finding import Culprit, Finding, Fix
from explainer.model.patch import Patch
from explainer.model.rule import Cause, FixRule

MAX_CULPRITS = 3
MAX_PROPOSALS = 4
_LATER_RULE = 0.4  # each rule further down a cause starts that much lower


def plan_fixes(finding: Finding, cause: Cause, context: Context, faults: list[str]) -> Finding:
    """The finding with its guilty lines read from the program and its edits written; as it was where none applies.

    What a codemod could not do is left to the cause's other fixes; a codemod that fails is named in `faults`.
    """
    planned = sorted(_propose(cause, {fix.id for fix in finding.fixes}, context, faults), key=lambda one: -one[0])
    fixes: list[Fix] = []
    culprits: dict[tuple[str, int | None], Culprit] = {}
    shown: set[str] = set()
    for _, rule, proposal, patch in planned:
        culprits.setdefault((proposal.culprit.file, proposal.culprit.line), proposal.culprit)
        if patch.diff in shown or len(fixes) >= MAX_PROPOSALS:
            continue
        shown.add(patch.diff)
        fixes.append(_fix(rule, proposal, patch, [one.id for one in fixes]))
    if not fixes:
        return finding
    for culprit in finding.culprits:
        culprits.setdefault((culprit.file, culprit.line), culprit)
    others = [fix for fix in finding.fixes if fix.id not in {rule.id for _, rule, _, _ in planned}]
    return replace(finding, culprits=tuple(culprits.values())[:MAX_CULPRITS], fixes=(*fixes, *others))


def _propose(
    cause: Cause, allowed: Container[str], context: Context, faults: list[str]
) -> Iterator[tuple[float, FixRule, Proposal, Patch]]:
    """Every proposal of the cause's codemods that makes a patch, with its rank."""
    later = 0.0
    for rule in cause.fixes:
        if rule.codemod is None or rule.id not in allowed:
            continue
        for proposal in _proposals(rule, context, faults):
            patch = make_patch(proposal.edits, context.program.files, context.program.root)
            if isinstance(patch, Patch):
                yield proposal.belief - later, rule, proposal, patch
            elif patch != "nothing changes":
                faults.append(f"{rule.codemod}: {patch}")
        later += _LATER_RULE


def _proposals(rule: FixRule, context: Context, faults: list[str]) -> Sequence[Proposal]:
    assert rule.codemod is not None
    try:
        return list(find_codemod(rule.codemod)(replace(context, options=rule.options)))
    except Exception as error:  # noqa: BLE001 - one broken codemod must not cost the answer
        faults.append(f"{rule.codemod}: {type(error).__name__}: {error}")
        return []


def _fix(rule: FixRule, proposal: Proposal, patch: Patch, taken: Sequence[str]) -> Fix:
    number = sum(1 for one in taken if one.partition("~")[0] == rule.id)
    return Fix(
        id=f"{rule.id}~{number + 1}" if number else rule.id,
        title=proposal.title or rule.title,
        applicability=proposal.applicability or rule.applicability,
        kind=rule.kind,
        patch=patch.diff,
        changes=patch.files,
        because=proposal.because or rule.because,
    )
