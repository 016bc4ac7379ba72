"""Starts in a Python process: reads what is asked for, and waits for the program to import torch."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .imports import after_import

VARIABLE = "GRADFIX_LIVE"


def start() -> None:
    """Arm the recorder, and the rest once torch is imported."""
    options: dict[str, Any] = json.loads(os.environ[VARIABLE])
    from . import record

    recorder = record.Recorder(options)
    recorder.install()
    after_import("torch", lambda _: arm(recorder, options))
    if options.get("caught"):
        from . import caught

        caught.watch(lambda error: recorder.note(error, "raised"))


def arm(recorder: Any, options: dict[str, Any]) -> None:
    """Put the hooks into torch that the mode asks for."""
    from . import raised, step

    raised.watch(recorder)
    after_import(
        "torch.distributed",
        lambda module: recorder.collectives.watch(module, recorder.watch_group, recorder.know_rank),
    )
    if options.get("seed"):
        from . import seed

        seed.fix()
    if options["mode"] == "trace":
        from .trace import arm as tracing

        recorder.tracer, _ = tracing.arm(sys.modules["torch"])
        recorder.tracer.begins()
        recorder.tracer.on_error = raised.of_operations(recorder)
        recorder.at_end.append(lambda: recorder.parts.update(traced=recorder.tracer.explain(None, "")))
    step.watch(recorder, options)
    if options.get("twin"):
        from . import twin

        twin.become_twin()
    if options.get("exact"):
        after_import("torch._inductor.config", lambda module: setattr(module, "fallback_random", True))
    if options.get("quiet"):
        from . import quiet

        quiet.silence(options)
