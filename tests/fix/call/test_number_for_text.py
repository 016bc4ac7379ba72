"""A number that YAML takes for text is written as a number."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, rewritten, write

SAID = "'<=' not supported between instances of 'float' and 'str'"
READS = "import torch, yaml\ncfg = yaml.safe_load(open('config.yaml'))\nopt = torch.optim.Adam(net.parameters(), **cfg['optimizer'])\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("optimizer:\n  lr: 3e-3\n  weight_decay: 1.0e-4\n", "optimizer:\n  lr: 0.003\n  weight_decay: 1.0e-4\n"),
        ("optimizer:\n  lr: '3e-3'\n", "optimizer:\n  lr: 0.003\n"),
        ("optimizer:\n  lr: 0.003\n  name: 3e-3\n", None),
        ("optimizer:\n  lr: auto\n", None),
    ],
    ids=["an exponent without a dot", "in quotes", "another setting", "no number"],
)
def test_a_file_of_settings(text: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """The value stays what it says; what is text on purpose stays text."""
    (tmp_path / "config.yaml").write_text(text)
    program = write(tmp_path, {"train.py": READS})
    found = list(find_codemod("number_for_text")(Context(program=program, incident=failed(message=SAID))))
    after = [splice(text, one.edits) for one in found]
    assert after == ([] if wanted is None else [wanted])


def test_an_option_without_a_type(tmp_path: pathlib.Path) -> None:
    """argparse applies the type to a default that is text."""
    source = "ap.add_argument('--lr', default='1e-3')\nap.add_argument('--name', default='1e3')\nap.add_argument('--eps', default='1e-8', type=float)\n"
    after = rewritten(tmp_path, "number_for_text", source, message=SAID)
    assert changed_lines(source, after) == ["ap.add_argument('--lr', default='1e-3', type=float)"]
    assert rewritten(tmp_path, "number_for_text", after, message=SAID) == after
