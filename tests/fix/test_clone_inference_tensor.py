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


def proposed(folder: pathlib.Path, *tensors: str, source: str = SOURCE) -> list[str]:
    """The lines that the edit writes where the frame held these tensors."""
    program = write(folder, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss =")}, "Inference tensors cannot be saved for backward.")
    facts = tuple(Fact(name=TENSOR, value=one) for one in tensors)
    proposal = best("clone_inference_tensor", program, incident=replace(incident, facts=facts))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return changed_lines(source, after)


def test_the_tensor_that_the_program_named(tmp_path: pathlib.Path) -> None:
    """Only the live program knows which one it is."""
    seen = ("z: [8, 4] float32 on cpu in inference mode", "y: [8] int64 on cpu")
    assert proposed(tmp_path, *seen) == ["loss = criterion(probe(z.clone()), y)"]
    assert proposed(tmp_path, "z: [8, 4] float32 on cpu") == []
    assert proposed(tmp_path) == []


def test_the_tensor_that_a_dictionary_or_an_object_holds(tmp_path: pathlib.Path) -> None:
    """The report names it as Python writes it, the source in quotes of its own."""
    source = SOURCE.replace("probe(z), y", 'probe(batch["z"]) + self.bias, y')
    seen = ("batch['z']: [8, 4] float32 on cpu in inference mode", "self.bias: [4] float32 on cpu in inference mode")
    assert proposed(tmp_path, *seen, source=source) == [
        'loss = criterion(probe(batch["z"].clone()) + self.bias.clone(), y)'
    ]
