"""Code that a library writes is nobody's: the program's line that runs it is named."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines, shown, weight  # noqa: E402 - behind the check that torch is there


def test_a_write_in_what_fx_wrote() -> None:
    """The forward of a traced graph is nobody's code: the line that runs it is named."""
    graph = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Sigmoid(), torch.nn.Dropout(0.1)))
    graph.get_submodule("1").inplace = True

    def step() -> None:
        graph(weight()).sum().backward()

    assert shown(lines(step)) == [("write", "dropout", "step")]
