"""What a library made in inference mode is cloned where training uses it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

from explainer.fix.splice import splice
from explainer.model.incident import TENSOR, Fact
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """codes = trainer.predict(model, loader)
for z, y in zip(codes, labels):
    loss = criterion(probe(z), y)
    loss.backward()
"""


def proposed(folder: pathlib.Path, *tensors: str) -> list[str]:
    """The lines that the edit writes where the frame held these tensors."""
    program = write(folder, {"train.py": SOURCE})
    incident = failed({"train.py": line_of(SOURCE, "loss =")}, "Inference tensors cannot be saved for backward.")
    facts = tuple(Fact(name=TENSOR, value=one) for one in tensors)
    proposal = best("clone_inference_tensor", program, incident=replace(incident, facts=facts))
    after = splice(SOURCE, proposal.edits) if proposal is not None else SOURCE
    assert after is not None
    return changed_lines(SOURCE, after)


def test_the_tensor_that_the_program_named(tmp_path: pathlib.Path) -> None:
    """Only the live program knows which one it is."""
    seen = ("z: [8, 4] float32 on cpu in inference mode", "y: [8] int64 on cpu")
    assert proposed(tmp_path, *seen) == ["loss = criterion(probe(z.clone()), y)"]
    assert proposed(tmp_path, "z: [8, 4] float32 on cpu") == []
    assert proposed(tmp_path) == []
