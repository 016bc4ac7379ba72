"""Sequences whose lengths are kept are padded, as their neighbours are."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "stack expects each tensor to be equal size, but got [3] at entry 0 and [6] at entry 1"
SOURCE = """import torch
from torch.nn.utils.rnn import pad_sequence
def collate(items):
    feats, labels = zip(*items)
    x = PADDED
    lengths = torch.tensor(MEASURED)
    return x, torch.stack(labels), lengths
"""
PADDED = "pad_sequence(feats, batch_first=True)"


@pytest.mark.parametrize(
    ("padded", "measured", "is_mended"),
    [
        (PADDED, "[len(one) for one in labels]", True),
        (PADDED, "[one.size(0) for one in labels]", True),
        (PADDED, "[len(one) for one in feats]", False),  # nobody could tell where labels end
        ("torch.stack(feats)", "[len(one) for one in labels]", False),
        ("pad_sequence(feats)", "[len(one) for one in labels]", False),
    ],
)
def test_rows_of_several_lengths(tmp_path: pathlib.Path, padded: str, measured: str, *, is_mended: bool) -> None:
    source = SOURCE.replace("PADDED", padded).replace("MEASURED", measured)
    after = rewritten(tmp_path, "pad_what_is_measured", source, "torch.stack(labels)", message=SAID)
    wanted = ["return x, pad_sequence(labels, batch_first=True), lengths"] if is_mended else []
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(("first", "is_mended"), [(", batch_first=True", True), ("", False)])
def test_rows_that_are_packed_again(first: str, *, is_mended: bool, tmp_path: pathlib.Path) -> None:
    """What packs them takes each for as long as it is, with the batch first."""
    source = SOURCE.replace("import pad_sequence", "import pack_padded_sequence, pad_sequence").replace(
        "PADDED", "feats[0]"
    )
    source = source.replace("MEASURED", "[len(one) for one in labels]")
    source += f"packed = pack_padded_sequence(rows, lengths{first})\n"
    after = rewritten(tmp_path, "pad_what_is_measured", source, "torch.stack(labels)", message=SAID)
    wanted = ["return x, pad_sequence(labels, batch_first=True), lengths"] if is_mended else []
    assert changed_lines(source, after) == wanted
