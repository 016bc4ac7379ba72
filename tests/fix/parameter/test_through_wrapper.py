"""What belongs to the model is read through its wrapper."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

SAID = "'{}' object has no attribute '{}'"


@pytest.mark.parametrize(
    ("name", "source", "wanted"),
    [
        ("head", "opt = Adam(net.head.parameters())\nprint(net.head.weight)", ["opt = Adam(net.module.head.parameters())", "print(net.module.head.weight)"]),
        ("config", "n = self.model.config.n\nother.config", ["n = self.model.module.config.n"]),
        ("head", "self.head.parameters()", []),
    ],
)  # fmt: skip
def test_reads(tmp_path: pathlib.Path, name: str, source: str, wanted: list[str]) -> None:
    message = SAID.format("DistributedDataParallel", name)
    after = rewritten(tmp_path, "through_wrapper", f"{source}\n", source.splitlines()[0], message=message)
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize(
    ("wrapper", "call", "applicability"),
    [
        ("DistributedDataParallel", "loss = net.encode(x).sum()", "unsafe"),
        ("DistributedDataParallel", "n = net.num_parameters()", "safe"),
        ("DataParallel", "loss = net.encode(x).sum()", "safe"),
    ],
)
def test_a_method_runs_past_the_wrapper(tmp_path: pathlib.Path, wrapper: str, call: str, applicability: str) -> None:
    program = write(tmp_path, {"train.py": f"{call}\n"})
    name = "encode" if "encode" in call else "num_parameters"
    incident = failed({"train.py": 1}, SAID.format(wrapper, name))
    found = best("through_wrapper", program, incident=incident)
    assert found is not None
    assert found.applicability == applicability
