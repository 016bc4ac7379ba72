"""A call that asks for what a model cannot do goes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

OPTIONS = {"options": {"calls": [".gradient_checkpointing_enable"]}}
MESSAGE = "PatchTSTForPrediction does not support gradient checkpointing."
SOURCE = """def build(model, args):
    if args.save_memory:
        model.gradient_checkpointing_enable()
    model.gradient_checkpointing_enable()
    return model
"""


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        (4, ["-    model.gradient_checkpointing_enable()"]),
        (3, ["-        model.gradient_checkpointing_enable()", "+        pass"]),
    ],
)
def test_the_call_goes(at: int, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """With its line; where it is all that its block holds, nothing is done there."""
    lines = SOURCE.splitlines(keepends=True)
    source = "".join(one for number, one in enumerate(lines, 1) if number in (1, 2, 5, at) or (at == 4 and number == 3))
    source = source.replace("        model.gradient_checkpointing_enable()\n", "        pass\n") if at == 4 else source
    after = rewritten(tmp_path, "leave_call_out", source, "gradient_checkpointing_enable", message=MESSAGE, **OPTIONS)
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "leave_call_out", after, None, message=MESSAGE, **OPTIONS) == after


def test_a_result_that_is_read_stays(tmp_path: pathlib.Path) -> None:
    """A call whose value is bound or returned is not alone."""
    source = "def build(model):\n    return model.gradient_checkpointing_enable()\n"
    assert rewritten(tmp_path, "leave_call_out", source, "return", message=MESSAGE, **OPTIONS) == source
