"""What is padded again after a recurrent layer is as long as what was packed."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def forward(self, x, lengths):
    h = self.inlet(x)
    packed = pack_padded_sequence(h, lengths, batch_first=True, enforce_sorted=False)
    out, _ = self.gru(packed)
    out, _ = pad_packed_sequence(out, batch_first=True)
    return self.outlet(out)
"""
MESSAGE = "The size of tensor a (31) must match the size of tensor b (36) at non-singleton dimension 1"
FORMS = {
    "its name is there": (SOURCE, ["out, _ = pad_packed_sequence(out, batch_first=True, total_length=h.size(1))"]),
    "its name is bound again": (
        SOURCE.replace("out", "h"),
        ["total = h.size(1)", "h, _ = pad_packed_sequence(h, batch_first=True, total_length=total)"],
    ),
    "time first": (
        SOURCE.replace("batch_first=True, enforce", "enforce").replace("(out, batch_first=True)", "(out)"),
        ["out, _ = pad_packed_sequence(out, total_length=h.size(0))"],
    ),
}


@pytest.mark.parametrize(("source", "lines"), FORMS.values(), ids=FORMS)
def test_it_is_as_long_as_the_input(tmp_path: pathlib.Path, source: str, lines: list[str]) -> None:
    """Measured before its name means the output; a second time nothing is left to do."""
    after = rewritten(tmp_path, "total_length_of_packed", source, message=MESSAGE)
    assert changed_lines(source, after) == lines
    assert rewritten(tmp_path, "total_length_of_packed", after, message=MESSAGE) == after


def test_others_stay(tmp_path: pathlib.Path) -> None:
    """Another failure, and layouts that differ."""
    assert rewritten(tmp_path, "total_length_of_packed", SOURCE, message="it failed") == SOURCE
    mixed = SOURCE.replace("(out, batch_first=True)", "(out)")
    assert rewritten(tmp_path, "total_length_of_packed", mixed, message=MESSAGE) == mixed
