"""Plans the fixes of a finding in the user's program: runs the codemods that the cause's rules name."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from explainer.fix.clue.trace import traced_belief, traced_first
from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import make_patch
from explainer.fix.text.import_line import torch_imports
from explainer.model.finding import SYMPTOM_LINE, Culprit, Evidence, Finding, Fix
from explainer.model.patch import FilePatch, Patch
from explainer.model.rule import Cause, FixRule
from explainer.source.loop.unread import vain_bindings

MAX_CULPRITS = 3
MAX_PROPOSALS = 4
MAX_MISSED = 3
_BELIEF = 0.6  # how far a codemod's belief in a line moves the belief in its cause
_LATER_RULE = 0.4  # each rule further down a cause starts that much lower


def plan_fixes(finding: Finding, cause: Cause, context: Context, faults: list[str]) -> Finding:
    """The finding with its guilty lines read from the program and its edits written; as it was where none applies.

    What a codemod could not do is left to the cause's other fixes; a codemod that fails is named in `faults`.
    """
    proposed = sorted(_propose(cause, {fix.id for fix in finding.fixes}, context, faults), key=lambda one: -one[0])
    fixes: list[Fix] = []
    culprits: dict[tuple[str, int | None], Culprit] = {}
    shown: set[str] = set()
    evidence: Evidence | None = None
    for _, rule, proposal in proposed:
        if len(fixes) >= MAX_PROPOSALS:
            break
        if not proposal.edits:
            evidence = evidence or _presence(proposal, is_symptom=_is_symptom(rule, proposal, finding))
            culprits.setdefault((proposal.culprit.file, proposal.culprit.line), proposal.culprit)
            continue
        patch = _patch(rule, proposal, context, faults)
        if patch is None:
            continue
        evidence = evidence or _presence(proposal, is_symptom=_is_symptom(rule, proposal, finding))
        culprits.setdefault((proposal.culprit.file, proposal.culprit.line), proposal.culprit)
        if patch.diff not in shown:
            shown.add(patch.diff)
            fixes.append(_fix(rule, proposal, patch, [one.id for one in fixes]))
    seen = _witnessed(cause, context, faults)
    if evidence is None:
        told = {(one.file, one.line): one for one in finding.culprits}
        told = traced_first(told, finding.cause, context, is_open=True)
        return replace(
            finding,
            culprits=tuple(told.values())[:MAX_CULPRITS],
            fixes=_advice_first(finding.fixes, cause, context, ()),
            evidence=(*finding.evidence, *_absence(cause, context), *seen),
        )
    for culprit in finding.culprits:
        culprits.setdefault((culprit.file, culprit.line), culprit)
    culprits = traced_first(culprits, finding.cause, context, is_cured=bool(fixes))
    first = proposed[0][2]
    # Without an edit of its own a line gives way to one that an edit cures, unless it is likelier than all.
    origin = next(
        (one.culprit for _, _, one in proposed if one.is_origin and (one.edits or not fixes or one is first)), None
    )
    if origin is not None:  # the traced line is where it shows
        culprits = {(origin.file, origin.line): origin, **culprits}
    others = [fix for fix in finding.fixes if fix.id not in {fix.id.partition("~")[0] for fix in fixes}]
    return replace(
        finding,
        culprits=tuple(culprits.values())[:MAX_CULPRITS],
        fixes=(*fixes, *_advice_first(others, cause, context, {rule.id for _, rule, _ in proposed})),
        evidence=(*finding.evidence, evidence, *seen),
    )


def _advice_first(fixes: Sequence[Fix], cause: Cause, context: Context, found: Container[str]) -> tuple[Fix, ...]:
    """The fixes without an edit: those that `found` their line first, those for which one was looked for in the whole program last.

    Where the last are many, each is for a shape that this program does not have: only the advice is left.
    """
    is_read = bool(context.program.files) and not context.program.faults and not context.is_guess
    # A rule that is only shown points at a line, and its advice holds without one, unless it says that it needs its line.
    edits = {
        rule.id
        for rule in cause.fixes
        if rule.codemod and (rule.applicability != "display" or rule.options.get("needs_line"))
    }
    missed = [one for one in fixes if is_read and one.id in edits and one.id not in found]
    advice = sorted((one for one in fixes if one not in missed), key=lambda one: one.id not in found)
    return tuple(advice if advice and len(missed) > MAX_MISSED else [*advice, *missed])


def _is_symptom(rule: FixRule, proposal: Proposal, finding: Finding) -> bool:
    """Whether a line only speaks for a cause that says more; `unless` names the evidence by which the finding stands by itself.

    So does, where `unless` is given, a line of which the codemod is sure.
    """
    if not rule.options.get("symptom"):
        return False
    unless = rule.options.get("unless")
    if not isinstance(unless, Sequence):
        return True
    return proposal.belief <= 0 and not any(one.id in unless for one in finding.evidence)


def _presence(proposal: Proposal, *, is_symptom: bool) -> Evidence:
    """What the source says for a cause: the line that its codemod would change.

    A rule with `symptom` in its options cures what another cause names better: its line speaks for that one.
    """
    culprit = proposal.culprit
    place = f"{os.path.basename(culprit.file)}:{culprit.line}"
    weight = 0.0 if is_symptom else _BELIEF * min(max(proposal.belief + 0.5, 0.0), 3.0)
    return Evidence(
        id=SYMPTOM_LINE if is_symptom else "source-line",
        reads="source",
        says=f"{place} {culprit.why or 'fits'}" + (f": {culprit.code}" if culprit.code else ""),
        weight=round(weight, 2),
        file=culprit.file,
        line=culprit.line,
    )


def _absence(cause: Cause, context: Context) -> Iterator[Evidence]:
    """What it says against a cause that its codemods found no line of the whole program; nothing of another program.

    Nor does it of a rule with `may_miss` in its options, which reads one of the many ways into a fault.
    """
    expected = (rule for rule in cause.fixes if rule.codemod and not rule.options.get("may_miss"))
    if any(expected) and not context.program.faults and not context.is_guess:
        yield Evidence(
            id="no-source-line",
            reads="source",
            says="no line of the program that was read fits this cause",
            weight=-0.5,
        )


def _witnessed(cause: Cause, context: Context, faults: list[str]) -> tuple[Evidence, ...]:
    if not any(rule.reads == "source" for rule in cause.evidence):
        return ()
    from explainer.fix.clue.witness import witnessed

    try:
        return tuple(witnessed(cause, context))
    except Exception as error:  # noqa: BLE001 - one broken reader must not cost the answer
        faults.append(f"{cause.id}: {type(error).__name__}: {error}")
        return ()


def _propose(
    cause: Cause, allowed: Container[str], context: Context, faults: list[str]
) -> Iterator[tuple[float, FixRule, Proposal]]:
    """Every proposal of the cause's codemods, with its rank."""
    later = 0.0
    for rule in cause.fixes:
        if rule.codemod is None or rule.id not in allowed:
            continue
        for proposal in _proposals(rule, context, faults):
            yield proposal.belief + traced_belief(proposal, cause.id, context) - later, rule, proposal
        later += _LATER_RULE


def _patch(rule: FixRule, proposal: Proposal, context: Context, faults: list[str]) -> Patch | None:
    """The patch of a proposal; None where it changes nothing, or, named in `faults`, breaks the program.

    It changes nothing either where all that it writes is a name that nobody reads: `t = t.detach()` of a helper's argument.
    """
    files = context.program.editable(edit.file for edit in proposal.edits)
    edits = (*torch_imports(proposal.edits, files), *proposal.edits)
    patch = make_patch(edits, files, context.program.root)
    if isinstance(patch, Patch):
        return None if any(_is_in_vain(one) for one in patch.files) else patch
    if patch != "nothing changes":
        faults.append(f"{rule.codemod}: {patch}")
    return None


def _is_in_vain(patch: FilePatch) -> bool:
    """Whether a line that a patch writes binds a local name for nothing. A line that stood there may have lost its reader."""
    if not patch.file.endswith(".py"):
        return False
    before, after = (data.decode("utf-8", "replace") for data in (patch.before, patch.after))
    return bool(vain_bindings(before, after))


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
