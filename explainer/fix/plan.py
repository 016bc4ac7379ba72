"""Plans the fixes of a finding in the user's program: runs the codemods that the cause's rules name."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.finding import Culprit, Evidence, Finding, Fix
from explainer.model.patch import Patch
from explainer.model.rule import Cause, FixRule

MAX_CULPRITS = 3
MAX_PROPOSALS = 4
_BELIEF = 0.6  # how far a codemod's belief in a line moves the belief in its cause
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
        return replace(finding, evidence=(*finding.evidence, *_absence(cause, context)))
    for culprit in finding.culprits:
        culprits.setdefault((culprit.file, culprit.line), culprit)
    others = [fix for fix in finding.fixes if fix.id not in {rule.id for _, rule, _, _ in planned}]
    return replace(
        finding,
        culprits=tuple(culprits.values())[:MAX_CULPRITS],
        fixes=(*fixes, *others),
        evidence=(*finding.evidence, _presence(planned[0][2])),
    )


def _presence(proposal: Proposal) -> Evidence:
    """What the source says for a cause: the line that its codemod would change."""
    culprit = proposal.culprit
    place = f"{os.path.basename(culprit.file)}:{culprit.line}"
    weight = _BELIEF * min(max(proposal.belief + 0.5, 0.0), 3.0)
    return Evidence(
        id="source-line", reads="source", says=f"{place} {culprit.why or 'fits'}: {culprit.code}", weight=round(weight, 2),
        file=culprit.file, line=culprit.line,
    )  # fmt: skip


def _absence(cause: Cause, context: Context) -> Iterator[Evidence]:
    """What it says against a cause that its codemods found no line of the whole program."""
    if any(rule.codemod for rule in cause.fixes) and not context.program.faults:
        yield Evidence(
            id="no-source-line",
            reads="source",
            says="no line of the program that was read fits this cause",
            weight=-0.5,
        )


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
