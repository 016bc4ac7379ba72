"""What a sampling loop has grown is cropped to the table of positions."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import torch
from torch import nn


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(9, 4), nn.Embedding(6, 4)

    def forward(self, ids):
        place = torch.arange(ids.size(1))
        h = self.tokens(ids)
        return (h + self.places(place)) @ self.tokens.weight.T

    def sample(self, ids, steps):
        for _ in range(steps):
            scores = self(ids)[:, -1]
            ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
        return ids


out = Text().sample(torch.zeros(2, 3, dtype=torch.long), 8).shape
"""
OUTSIDE = (
    SOURCE.replace("    def sample(self, ids, steps):", "\ndef sample(model, ids, steps):")
    .replace(
        """        for _ in range(steps):
            scores = self(ids)[:, -1]
            ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
        return ids
""",
        """    for _ in range(steps):
        scores = model(ids)[:, -1]
        ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
    return ids
""",
    )
    .replace("Text().sample(", "sample(Text(), ")
)
RIGHT = {
    "nothing grows": SOURCE.replace("ids = torch.cat([ids, ", "more = torch.cat([ids, "),
    "no table of positions": SOURCE.replace("torch.arange(ids.size(1))", "ids"),
}


def proposed(source: str, call: str, folder: pathlib.Path):
    at = {"train.py": line_of(source, call)}
    program = write(folder, {"train.py": source})
    incident = failed(at, message="index out of range in self")
    inner = failed({"train.py": line_of(source, "self.places(place)")})
    frames = (*incident.exceptions[0].frames, *inner.exceptions[0].frames)
    record = incident.exceptions[0].__class__(type="IndexError", message="index out of range in self", frames=frames)
    return best("crop_context", program, incident=incident.__class__(exceptions=(record,)))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("source", "call", "wanted"),
    [
        (SOURCE, "self(ids)", "scores = self(ids[:, -self.places.num_embeddings :])[:, -1]"),
        (OUTSIDE, "model(ids)", "scores = model(ids[:, -model.places.num_embeddings :])[:, -1]"),
    ],
    ids=["a method", "a function"],
)
def test_the_last_tokens_are_given(source: str, call: str, wanted: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(IndexError):
        exec(source, {})
    proposal = proposed(source, call, tmp_path)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == [wanted]
    done: dict = {}
    exec(after, done)
    assert done["out"] == (2, 11)


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_lookups_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert proposed(source, "self(ids)", tmp_path) is None
