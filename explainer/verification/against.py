"""Verifies a command against a saved report, or against its own twin: equal gradients, not only healthy ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explainer.model.verification import (
    CHECKPOINT,
    COMPILE,
    DIFFERENT,
    GREEN,
    INCONCLUSIVE,
    MEANT,
    RED,
    REPORT,
    SAME,
    TWIN,
    UNKNOWN,
    Comparison,
    ProcessReport,
    Verification,
)
from explainer.verification.command import OnOutput
from explainer.verification.difference import compare_runs
from explainer.verification.verify import Watch, verify_command

_WITHOUT = {CHECKPOINT: "activation checkpointing", COMPILE: "torch.compile"}

_HIDDEN_WRITE = (
    "a write in place inside a checkpointed segment raises nothing with use_reentrant=False: look for one there"
)


def verify_against(
    command: Sequence[str], root: str, watch: Watch, saved: Verification, on_output: OnOutput | None = None
) -> Verification:
    """Verify the command, and compare its first step with that of a saved verification.

    Red where they differ, inconclusive where they cannot be compared, or where two runs of this program differ as well.

    Raises:
        CannotStart: there is no such program.
    """
    proof = verify_command(command, root, watch, on_output)
    comparison = compare_runs(REPORT, saved.processes, proof.processes)
    if comparison.verdict == DIFFERENT and proof.verdict != RED:
        again = verify_command(command, root, _first_steps(watch, proof))
        noise = compare_runs(REPORT, proof.processes, again.processes)
        doubt = _doubt(noise, saved, proof)
        if doubt:
            comparison = replace(comparison, verdict=UNKNOWN, reasons=(doubt, *comparison.reasons))
    return _with(proof, comparison)


def verify_with_twin(command: Sequence[str], root: str, watch: Watch, proof: Verification) -> Verification:
    """A green verification, held against a twin of the program: eager, not checkpointed, on copies of saved tensors.

    Red where the twin's first gradients are others and two runs of the program agree. A twin that does not run (for memory,
    say) is noted and changes nothing.
    """
    without = " and ".join(_WITHOUT[one] for one in (CHECKPOINT, COMPILE) if one in used_by(proof.processes))
    first = _first_steps(watch, proof)
    twin = verify_command(command, root, replace(first, is_twin=True))
    comparison = compare_runs(TWIN, twin.processes, proof.processes)
    if comparison.verdict == UNKNOWN:
        why = twin.reasons[0] if twin.reasons else comparison.reasons[0]
        note = f"its gradients could not be compared with those without {without or 'saved tensors'}: {why}"
        return replace(proof, notes=(*proof.notes, note), comparison=comparison)
    if comparison.verdict == DIFFERENT:
        again = verify_command(command, root, replace(first, exact=True))
        if compare_runs(TWIN, proof.processes, again.processes).verdict != SAME:
            # Compiled code draws other random numbers than eager code, unless it is told not to.
            exact = compare_runs(TWIN, twin.processes, again.processes)
            comparison = exact if exact.verdict == SAME else _not_deterministic(comparison)
    if comparison.verdict == DIFFERENT:
        said = f"gradients are not those without {without or 'writes to saved tensors'}"
        comparison = replace(comparison, reasons=tuple(f"{said}: {one}" for one in comparison.reasons))
        if CHECKPOINT in used_by(proof.processes):
            proof = replace(proof, notes=(*proof.notes, _HIDDEN_WRITE))
    return _with(proof, comparison)


def verify_meant(
    command: Sequence[str], root: str, watch: Watch, meant: Sequence[ProcessReport], proof: Verification
) -> Verification:
    """A green verification of a repaired program, held against the twin of the program as it failed.

    Red where the first gradients are others and two runs of the program agree: it then computes something else than before.
    Where they cannot be compared it stays as it is.

    Raises:
        CannotStart: there is no such program.
    """
    comparison = compare_runs(MEANT, meant, proof.processes)
    if comparison.verdict == DIFFERENT and COMPILE not in used_by((*meant, *proof.processes)):
        again = verify_command(command, root, _first_steps(watch, proof))
        if compare_runs(MEANT, proof.processes, again.processes).verdict == SAME:
            said = "gradients are not those of the values that the program used before the edit"
            return _with(proof, replace(comparison, reasons=tuple(f"{said}: {one}" for one in comparison.reasons)))
    return _with(proof, comparison) if comparison.verdict == SAME else proof


def used_by(processes: Sequence[ProcessReport]) -> frozenset[str]:
    """What the processes used: "checkpoint", "compile", "grad scaler"."""
    return frozenset(one for process in processes for one in process.uses)


def _first_steps(watch: Watch, proof: Verification) -> Watch:
    """Just long enough for the first step of every optimizer that a verification saw."""
    seen = dict.fromkeys((name for one in proof.processes for name, _ in one.steps), 0)
    return replace(watch, steps=1, past=tuple(seen.items()))


def _doubt(noise: Comparison, saved: Verification, proof: Verification) -> str | None:
    """Why a difference from a saved report may mean nothing."""
    if noise.verdict != SAME:
        return "two runs of this program give different first gradients: it is not deterministic"
    there, here = _devices(saved), _devices(proof)
    if there != here:
        return f"the report is from {there}, this run is on {here}: random numbers differ between them"
    return None


def _devices(proof: Verification) -> str:
    found = {
        one.machine.device.partition(":")[0]
        for one in proof.processes
        if one.machine is not None and one.machine.device
    }
    return ", ".join(sorted(found)) or "no device"


def _not_deterministic(comparison: Comparison) -> Comparison:
    reason = "two runs of the program give different first gradients: it cannot be told whether they are right"
    return replace(comparison, verdict=UNKNOWN, reasons=(reason, *comparison.reasons))


def _with(proof: Verification, comparison: Comparison) -> Verification:
    """The verification with its comparison: different gradients make it red, unknown ones no longer green."""
    verdict = proof.verdict
    if comparison.verdict == DIFFERENT:
        verdict = RED
    elif comparison.verdict == UNKNOWN and verdict == GREEN:
        verdict = INCONCLUSIVE
    told = comparison.reasons if comparison.verdict != SAME else ()
    return replace(proof, verdict=verdict, reasons=(*proof.reasons, *told), comparison=comparison)
