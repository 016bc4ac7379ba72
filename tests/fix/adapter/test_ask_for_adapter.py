"""An adapter is added where the model has none of that name."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """class Bank:
    def activate(self, task):
        if task not in TABLE:
            self.model.add_adapter(task, self.config)
        self.model.set_adapter(task)
"""


@pytest.mark.parametrize(
    ("table", "is_mended"), [("self.ranks", True), ("tasks", True), ("self.model.peft_config", False)]
)
def test_the_table_that_is_asked(tmp_path: pathlib.Path, table: str, *, is_mended: bool) -> None:
    source = SOURCE.replace("TABLE", table)
    after = rewritten(tmp_path, "ask_for_adapter", source, "set_adapter", message="Adapter topics not found.")
    assert changed_lines(source, after) == (["if task not in self.model.peft_config:"] if is_mended else [])


def test_another_adapter_is_added(tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("TABLE", "self.ranks").replace("add_adapter(task,", "add_adapter(other,")
    after = rewritten(tmp_path, "ask_for_adapter", source, "set_adapter", message="Adapter topics not found.")
    assert after == source
