"""Verifies for the command line: alone, against a saved report, or against the program's own twin."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from explainer.cli.ending import ended_by_signals
from explainer.cli.screen import is_coloured, width
from explainer.errors import UsageError
from explainer.model.journal import APPLIED
from explainer.model.verification import GREEN, INCONCLUSIVE, RED, Verification
from explainer.probe.placement import doubts_of_bf16, place
from explainer.verification.against import verify_against, verify_with_twin
from explainer.verification.command import ERR, OUT, show
from explainer.verification.saved import read_verification, save_verification
from explainer.verification.verify import Watch, verify_command

_STATUS = {GREEN: 0, RED: 1, INCONCLUSIVE: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The options of `gradfix verify`."""

    command: tuple[str, ...]
    steps: int
    timeout: float
    save: str | None
    against: str | None
    is_twin: bool
    device: str
    allow_writes: bool
    root: str | None
    format: str


def verify_and_judge(options: VerifyOptions) -> int:
    """Run the program under watch and print the verdict; the exit status: 0 green, 1 red, 3 inconclusive."""
    if options.against is not None and options.is_twin:
        raise UsageError("--against and --twin are two comparisons: one at a time")
    with ended_by_signals():
        proof = _verify(options)
    tried = [
        (one.machine.name, one.machine.bf16) for one in proof.processes if one.machine and one.machine.bf16 is not None
    ]
    proof = replace(proof, notes=(*proof.notes, *(doubts_of_bf16(tried) if tried else ())))
    if options.save is not None:
        save_verification(proof, options.save)
    _print(proof, options.format)
    _remember(proof, os.path.realpath(options.root or os.getcwd()))
    return _STATUS[proof.verdict]


def _remember(proof: Verification, root: str) -> None:
    """Note the verdict, as one of the patch that is applied to the project, where one is."""
    from explainer import memory
    from explainer.cli.explain import tell_of_memory
    from explainer.transaction import list_records

    applied = [one for one in list_records(root) if one.state == APPLIED]
    memory.note_verification(proof.verdict, applied[-1] if applied else None, root)
    tell_of_memory()


def _verify(options: VerifyOptions) -> Verification:
    root = os.path.realpath(options.root or os.getcwd())
    saved = read_verification(options.against) if options.against is not None else None
    watch = Watch(
        steps=options.steps, timeout=options.timeout, allow_writes=options.allow_writes,
        place=place(options.device, os.environ),
    )  # fmt: skip

    def on_output(_: int, data: bytes) -> None:
        show(ERR, data)

    if saved is not None:
        return verify_against(options.command, root, watch, saved, on_output)
    proof = verify_command(options.command, root, watch, on_output)
    return (
        verify_with_twin(options.command, root, watch, proof) if options.is_twin and proof.verdict == GREEN else proof
    )


def _print(proof: Verification, name: str) -> None:
    if name == "json":
        from explainer.render.json import render_json

        sys.stdout.write(render_json(proof))
        return
    from explainer.render.verification import render_verification

    show(OUT, render_verification(proof, is_coloured=is_coloured("auto"), width=width()).encode())
