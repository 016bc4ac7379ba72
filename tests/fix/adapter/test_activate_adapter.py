"""An adapter that was added and never trained is activated behind the line that adds it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import best, diff_lines, failed, write

SOURCE = """from peft import get_peft_model


def build(base, config, name="clauses"):
    model = get_peft_model(base, config, adapter_name="general")
    model.add_adapter(
        name,
        config,
    )
    return model
"""
SEEN = "seen in the live program: train.py:{} adds an adapter that no step trains: `clauses`, since `general` is active"


def proposed(source: str, line: int, folder: pathlib.Path):
    program = write(folder, {"train.py": source})
    incident = replace(failed(), log=(LogLine(text=SEEN.format(line)),))
    return best("activate_adapter", program, incident=incident)


def test_the_adapter_is_activated(tmp_path: pathlib.Path) -> None:
    """By what the call names it; another line, or a program that activates adapters by itself, stays."""
    proposal = proposed(SOURCE, 6, tmp_path)
    assert proposal is not None
    assert diff_lines(SOURCE, splice(SOURCE, proposal.edits)) == ["+    model.set_adapter(name)"]
    assert proposed(SOURCE, 5, tmp_path) is None
    later = SOURCE.replace("    return model", '    model.set_adapter("general")\n    return model')
    assert proposed(later, 6, tmp_path) is None


def test_an_optimizer_that_gets_nothing(tmp_path: pathlib.Path) -> None:
    """What was added is not active, and has nothing that requires grad."""
    program = write(tmp_path, {"train.py": SOURCE})
    proposal = best("activate_adapter", program, incident=failed(message="optimizer got an empty parameter list"))
    assert proposal is not None
    assert diff_lines(SOURCE, splice(SOURCE, proposal.edits)) == ["+    model.set_adapter(name)"]
    assert best("activate_adapter", program, incident=failed(message="it failed")) is None
