"""A compiled backward that is gone through again keeps its buffers."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MESSAGE = "This backward function was compiled with non-empty donated buffers which requires create_graph=False"
TWO_LOSSES = """import torch
from torch import nn

net = nn.Linear(4, 2)
if fast:
    net = torch.compile(net, backend="aot_eager")
out = net(x)
out.mean().backward(retain_graph=True)
out.square().mean().backward()
"""
IMPORT, SETTING = "+import torch._functorch.config", "torch._functorch.config.donated_buffer = False"
EDITS = {
    "a call": (TWO_LOSSES, [IMPORT, f"+    {SETTING}"]),
    "a method": (TWO_LOSSES.replace("net = torch.compile(net,", "net.compile("), [IMPORT, f"+    {SETTING}"]),
    "a decorator": (
        TWO_LOSSES.replace("if fast:\n    net = torch", "@torch.compile\ndef run(x):\n    return net(x)\nother").replace("other.compile", "# no compile"),
        [IMPORT, f"+{SETTING}"],
    ),
    "parts of torch alone": (
        TWO_LOSSES.replace("import torch\n", "").replace("torch.compile(net", "compile(net").replace("nn\n\n", "nn, compile\n\n"),
        [IMPORT, f"+    {SETTING}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_the_buffers_stay(tmp_path: pathlib.Path, name: str) -> None:
    source, lines = EDITS[name]
    after = rewritten(tmp_path, "no_donated_buffers", source, "retain_graph=True", message=MESSAGE)
    assert diff_lines(source, after) == lines


def test_a_second_derivative_needs_more(tmp_path: pathlib.Path) -> None:
    """Without donation `create_graph=True` fails all the same: a compiled region has no double backward."""
    source = TWO_LOSSES.replace("retain_graph", "create_graph")
    assert rewritten(tmp_path, "no_donated_buffers", source, "create_graph=True", message=MESSAGE) == source


def test_nothing_is_compiled_here(tmp_path: pathlib.Path) -> None:
    source = TWO_LOSSES.replace("torch.compile(net", "re.compile(net")
    assert rewritten(tmp_path, "no_donated_buffers", source, "retain_graph=True", message=MESSAGE) == source
