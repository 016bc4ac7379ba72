"""A list of parameters that is put together of several names each once."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

TWICE = "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error"
HEAD = "import itertools\nimport torch\nfrom torch import nn\n"
WRONG = {
    "starred": (
        "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n",
        ["opt = torch.optim.SGD(list(dict.fromkeys([*a.parameters(), *b.parameters()])), lr=0.1)"],
    ),
    "chained": (
        "opt = torch.optim.Adam(params=itertools.chain(a.parameters(), b.parameters()))\n",
        ["opt = torch.optim.Adam(params=list(dict.fromkeys(itertools.chain(a.parameters(), b.parameters()))))"],
    ),
    "added": (
        "opt = torch.optim.Adam(list(a.parameters()) + list(b.parameters()))\n",
        ["opt = torch.optim.Adam(list(dict.fromkeys(list(a.parameters()) + list(b.parameters()))))"],
    ),
    "filled": (
        "rows = list(a.parameters())\nrows += b.parameters()\nopt = torch.optim.Adam(rows)\n",
        ["opt = torch.optim.Adam(list(dict.fromkeys(rows)))"],
    ),
    "a group": (
        'opt = torch.optim.SGD([{"params": [*a.parameters(), *b.parameters()], "lr": 0.1}])\n',
        ['opt = torch.optim.SGD([{"params": list(dict.fromkeys([*a.parameters(), *b.parameters()])), "lr": 0.1}])'],
    ),
}
RIGHT = {
    "one model": "opt = torch.optim.SGD(a.parameters(), lr=0.1)\n",
    "once already": "opt = torch.optim.SGD(list(dict.fromkeys([*a.parameters(), *b.parameters()])), lr=0.1)\n",
    "a scheduler": "s = torch.optim.lr_scheduler.SequentialLR([a, b], [1])\n",
}


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_each_once(line: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """In the order in which they come first."""
    assert changed_lines(HEAD + line, rewritten(tmp_path, "list_once", HEAD + line, message=TWICE)) == wanted


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(line: str, tmp_path: pathlib.Path) -> None:
    """Nothing is put together there."""
    assert rewritten(tmp_path, "list_once", HEAD + line, message=TWICE) == HEAD + line


def test_another_failure(tmp_path: pathlib.Path) -> None:
    """Nobody has seen a parameter twice."""
    line = HEAD + WRONG["starred"][0]
    assert rewritten(tmp_path, "list_once", line) == line


@pytest.mark.torch
def test_what_the_edit_changes() -> None:
    """A parameter that is listed twice is stepped twice (torch 2.13); once it is not."""
    torch = pytest.importorskip("torch")
    moved = []
    for once in (False, True):
        weight = torch.ones(2, requires_grad=True)
        rows = [weight, weight]
        with pytest.warns(UserWarning, match="duplicate parameters") if not once else _silence():
            optimizer = torch.optim.SGD(list(dict.fromkeys(rows)) if once else rows, lr=0.1)
        weight.sum().backward()
        optimizer.step()
        moved.append(round(1 - weight[0].item(), 4))
    assert moved == [0.2, 0.1]


def _silence():
    import contextlib

    return contextlib.nullcontext()
