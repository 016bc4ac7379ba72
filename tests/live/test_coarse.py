"""float64 values that float32 takes for the same are told by name, and are cast only once they have been subtracted."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.model.incident import Fact
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

torch = pytest.importorskip("torch")
from explainer.fix.splice import splice  # noqa: E402
from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

pytestmark = pytest.mark.torch

SOURCE = """import numpy as np
import torch
from torch import nn
class Pause(nn.Module):
    def forward(self, times):
        return times.diff(dim=1).unsqueeze(-1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pause, self.mix = Pause(), nn.Linear(1, 2)
    def forward(self, times):
        x = self.mix(self.pause(times))
        return x.mean()
times = 1.7e9 + np.random.rand(4, 6).cumsum(1) * 30
net = Net()
net(torch.from_numpy(times))
"""
SAID = "mat1 and mat2 must have the same dtype, but got Double and Float"


def told(values: torch.Tensor) -> str | None:
    layer = torch.nn.Linear(values.size(-1), 2)
    with pytest.raises(RuntimeError) as error:
        layer(values)
    return dict(facts_of(look(error.value))).get("live_coarse")


def test_what_float32_does_not_tell_apart() -> None:
    """Seconds since 1970, and no data as it is drawn, nor numbers that float32 holds exactly."""
    steps = torch.rand(4, 600, dtype=torch.float64).cumsum(1)
    assert "values" in (told(1.7e9 + steps) or "")
    assert told(steps) is None
    assert told(torch.randn(4, 600, dtype=torch.float64)) is None
    assert told(torch.arange(400, dtype=torch.float64).view(1, 400)) is None


@pytest.mark.parametrize(
    ("fact", "line"),
    [("times", "x = self.mix(self.pause(times).float())"), (None, "net(torch.from_numpy(times).float())")],
    ids=["seconds since 1970", "any other data"],
)
def test_it_is_cast_behind_the_difference(fact: str | None, line: str, tmp_path: pathlib.Path) -> None:
    """Not where it was made: most pauses would be 0 then."""
    incident = failed({"train.py": line_of(SOURCE, "x = self.mix")}, SAID)
    facts = (Fact(name="live_coarse", value=fact),) if fact else ()
    fields = {"left_dtype": "Double", "right_dtype": "Float"}
    program = write(tmp_path, {"train.py": SOURCE})
    found = best("cast_input", program, incident=replace(incident, facts=facts), fields=fields)
    assert found is not None
    assert changed_lines(SOURCE, splice(SOURCE, found.edits) or "") == [line]


def test_a_function_is_computed_in_float64(tmp_path: pathlib.Path) -> None:
    """What meets such values in it is cast up, and the result down: also where the message tells what was expected alone."""
    source = SOURCE.replace("self.mix(self.pause(times))", "torch.conv1d(times.unsqueeze(1), self.step)")
    incident = failed({"train.py": line_of(source, "x = torch")}, "expected scalar type Double but found Float")
    incident = replace(incident, facts=(Fact(name="live_coarse", value="times"),))
    fields = {"expected_type": "Double", "found_type": "Float"}
    found = best("cast_input", write(tmp_path, {"train.py": source}), incident=incident, fields=fields)
    assert found is not None
    assert changed_lines(source, splice(source, found.edits) or "") == [
        "x = torch.conv1d(times.unsqueeze(1), self.step.double()).float()"
    ]
