"""Words that YAML reads as booleans beside words that it reads as text."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import failed, write

SOURCE = "import yaml\nwith open('config.yaml') as file:\n    settings = yaml.safe_load(file)\n"
CASES = {
    "a flow": ("seed: 1\nwords: [yes, no, up, on]\n", 'seed: 1\nwords: ["yes", "no", up, "on"]\n'),
    "a block": ("words:\n- up\n- off\n- on  # the switch\n", 'words:\n- up\n- "off"\n- "on"  # the switch\n'),
    "one word": ("flags: [auto, on]\n", None),
    "booleans alone": ("flags: [yes, no, no]\n", None),
    "words of Python": ("flags: [true, false, auto]\n", None),
    "settings": ("a: yes\nb: off\nc: name\n", None),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_they_are_quoted(tmp_path: pathlib.Path, text: str, wanted: str | None) -> None:
    """All of a list; and then each is a word of its own."""
    (tmp_path / "config.yaml").write_text(text)
    program = write(tmp_path, {"train.py": SOURCE})
    found = list(find_codemod("quote_yaml_words")(Context(program=program, incident=failed())))
    after = [splice(text, one.edits) for one in found]
    assert after == ([wanted] if wanted else [])
    for one in after:
        assert all(isinstance(word, str) for word in yaml.safe_load(one)["words"])
