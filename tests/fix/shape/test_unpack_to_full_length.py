"""What a network unpacks is as long as the batch came, not as its longest row."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn


class Tagger(nn.Module):
    def forward(self, ids, lengths):
"""
TAIL = """

loss = F.cross_entropy(net(ids, n).reshape(-1, 5), tags.reshape(-1)IGNORE)
"""
PACK = "        packed = rnn.pack_padded_sequence(self.drop(self.words(ids)), lengths, batch_first=True)\n"
UNPACK = "        out, n = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)\n        return out\n"
SAYS = "Expected input batch_size (28) to match target batch_size (40)."


def proposed(tmp_path: pathlib.Path, source: str, says: str = SAYS):
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "cross_entropy")}, says)
    return best("unpack_to_full_length", program, incident=incident)


@pytest.mark.parametrize(("ignore", "applicability"), [(", ignore_index=-100", None), ("", "unsafe")])
def test_the_length_of_the_batch_is_given(tmp_path: pathlib.Path, ignore: str, applicability: str | None) -> None:
    """Through the layers that keep it; where the loss counts padding, it is another loss."""
    source = HEAD + PACK + UNPACK + TAIL.replace("IGNORE", ignore)
    found = proposed(tmp_path, source)
    assert changed_lines(source, splice(source, found.edits)) == [
        "out, n = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=ids.size(1))"
    ]
    assert found.applicability == applicability


def test_time_comes_first(tmp_path: pathlib.Path) -> None:
    """Without `batch_first` the length is the first size."""
    source = HEAD + (PACK + UNPACK).replace(", batch_first=True", "") + TAIL.replace("IGNORE", "")
    found = proposed(tmp_path, source)
    assert "total_length=ids.size(0))" in splice(source, found.edits)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (HEAD + PACK + UNPACK.replace("batch_first=True)", "batch_first=True, total_length=10)") + TAIL, SAYS),
        (HEAD + PACK.replace("self.drop(self.words(ids))", "torch.cat([a, b], 1)") + UNPACK + TAIL, SAYS),
        (HEAD + PACK + UNPACK + TAIL, "expected scalar type Long but found Float"),
    ],
    ids=["a length is given", "what is packed has no name", "another failure"],
)
def test_other_programs_stay(tmp_path: pathlib.Path, source: str, says: str) -> None:
    """Nothing is proposed where the length is known, or cannot be named, or is not what failed."""
    assert proposed(tmp_path, source.replace("IGNORE", ""), says) is None
