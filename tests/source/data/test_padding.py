"""Masks of padding, and where they are true."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.data.padding import inverted_masks, shows_tokens
from explainer.source.value.binding import Value
from tests.fix.rewriting import write

SOURCES = {
    "positions below lengths": ("mask = torch.arange(n)[None, :] < lengths[:, None]", True),
    "lengths above positions": ("mask = lens.unsqueeze(1) > torch.arange(n).expand(4, n)", True),
    "positions from lengths on": ("mask = torch.arange(n) >= x_len[:, None]", False),
    "as methods": ("mask = torch.arange(n).lt(lengths[:, None])", True),
    "ids that are no padding": ("mask = ids != tokenizer.pad_token_id", True),
    "ids that are padding": ("mask = ids.eq(PAD)", False),
    "ids of 0": ("mask = (ids == 0).unsqueeze(1)", False),
    "turned round": ("mask = ~(ids == 0)[:, None, :]", True),
    "turned round by a call": ("mask = (ids != pad).logical_not()", False),
    "through a name": ("shown = ids != 0\nmask = ~shown.bool()", False),
    "0 of a mask": ("hidden = ids == 0\nmask = hidden != 0", False),
    "of a mask of tokens": ("shown = ids != 0\nmask = shown == 0", False),
    "by a key of the batch": ("def collate(rows):\n    return {'mask': torch.arange(4) < lengths}", True),
    "by a key that is read": ("rows = {'mask': ids != 0}\nfor batch in loader:\n    mask = batch['mask']", True),
    "rows of ones that are padded": (
        "mask = pad_sequence([torch.ones(len(w)) for w in words], batch_first=True)",
        True,
    ),
    "ones up to a length": (
        "mask = torch.zeros(2, n)\nfor i, ids in enumerate(rows):\n    mask[i, : len(ids)] = 1",
        True,
    ),
    "ones behind a length": (
        "mask = torch.zeros(2, n)\nfor i, ids in enumerate(rows):\n    mask[i, len(ids) :] = 1",
        False,
    ),
    "zeros behind a length": (
        "mask = torch.ones(2, n)\nfor i, ids in enumerate(rows):\n    mask[i, len(ids) :] = 0",
        True,
    ),
    "ones at an index": ("mask = torch.zeros(2, n)\nmask[0, chosen] = 1", None),
    "nothing is known": ("mask = load(path)", None),
    "positions and another number": ("mask = torch.arange(n) < half", None),
    "positions and a prefix": ("mask = torch.arange(n) < prefix_len", None),
    "two positions": ("mask = torch.arange(n)[None] <= torch.arange(n)[:, None]", None),
    "one of two": ("mask = ids == 0\nif flip:\n    mask = ids != 0", None),
    "made of itself": ("def f(mask):\n    mask = ~mask\n    return f(mask)", None),
    "0 of something else": ("mask = (labels[:, None] - labels[None]) != 0", None),
    "a class": ("mask = labels == 3", None),
}


@pytest.mark.parametrize(("source", "wanted"), SOURCES.values(), ids=SOURCES)
def test_where_it_is_true(tmp_path: pathlib.Path, source: str, wanted: bool | None) -> None:
    """Read of how it is made, through names, reshapes and the keys of a batch."""
    program = write(
        tmp_path, {"train.py": f"import torch\nfrom torch.nn.utils.rnn import pad_sequence\n{source}\nuse(mask)\n"}
    )
    (file,) = program.parsed()
    read = [
        one for one in file.walk() if isinstance(one, ast.Name) and one.id == "mask" and isinstance(one.ctx, ast.Load)
    ]
    assert shows_tokens(Value(read[-1], file), program) is wanted


USES = {
    "what is kept": ("out = (h * mask.unsqueeze(-1)).sum(1)", True),
    "by another name": ("weight = mask.unsqueeze(-1).float()\nout = (weight * h).sum(1) / weight.sum(1)", True),
    "its opposite": ("out = h * (~mask)[..., None]", False),
    "both": ("out = h * mask[..., None] + z * ~mask[..., None]", None),
    "added": ("out = h + mask.float()", None),
}


@pytest.mark.parametrize(("use", "is_shown"), USES.values(), ids=USES)
def test_a_mask_that_weighs_values(tmp_path: pathlib.Path, use: str, is_shown: bool | None) -> None:
    """It is true on what it keeps: given to attention as it is, it would hide that."""
    source = f"import torch\n{use}\nread = attention(h, key_padding_mask=mask)\n"
    program = write(tmp_path, {"train.py": source})
    (file,) = program.parsed()
    (call,) = [one for one in file.walk() if isinstance(one, ast.Call) and any(word.arg for word in one.keywords)]
    found = [one for _, one in inverted_masks(call, file, program)]
    assert found == ([True] if is_shown else [])


def test_the_only_mask_of_the_batches(tmp_path: pathlib.Path) -> None:
    """A mask that comes through more layers than are followed is it."""
    source = "def collate(ids):\n    return {'attention_mask': ids != 0}\ndef forward(self, x, mask):\n    return use(mask)\n"
    for text, wanted in ((source, True), (source.replace("}", ", 'loss_mask': ids == 0}"), None)):
        program = write(tmp_path, {"train.py": text})
        (file,) = program.parsed()
        read = [one for one in file.walk() if isinstance(one, ast.Name) and one.id == "mask"]
        assert shows_tokens(Value(read[-1], file), program) is wanted
