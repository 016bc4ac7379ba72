"""Edits of a long file are checked where they lie, and as strictly as in a short one."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import LONG, make_patch
from explainer.model.patch import Edit, Patch
from explainer.source.file import read_source

BLOCK = '''
@decorated
def block_{0}(x):
    """Adds {0}."""
    return x + {0}


value_{0} = block_{0}(1)
'''


def patched(folder: pathlib.Path, old: str, new: str, blocks: int) -> Patch | str:
    path = folder / "train.py"
    path.write_text("import torch\n" + "".join(BLOCK.format(number) for number in range(blocks)))
    file = read_source(str(path))
    start = file.text.index(old)
    return make_patch(
        [Edit(file=file.path, start=start, end=start + len(old), new=new)], {file.path: file}, str(folder)
    )


@pytest.mark.parametrize("blocks", [3, 2000])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x + 2\n", "return (x + 2\n"),
        ("value_2 = block_2(1)", "value_2 = = 1"),
        ("@decorated\ndef block_2", "@\ndef block_2"),
    ],
)
def test_a_result_that_does_not_parse_is_refused(tmp_path: pathlib.Path, old: str, new: str, blocks: int) -> None:
    """In a body, in a statement of its own, in a decorator."""
    assert "does not parse" in str(patched(tmp_path, old, new, blocks))


@pytest.mark.parametrize("blocks", [3, 2000])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x + 2\n", "return x - 2\n"),
        ("value_2 = block_2(1)\n", "value_2 = block_2(1)\nother = 1\n"),
        ("import torch\n", "import os\nimport torch\n"),
    ],
)
def test_a_result_that_parses_is_taken(tmp_path: pathlib.Path, old: str, new: str, blocks: int) -> None:
    """And the whole file holds it."""
    patch = patched(tmp_path, old, new, blocks)
    assert isinstance(patch, Patch)
    after = patch.files[0].after.decode()
    assert (new in after, len(after) > LONG) == (True, blocks == 2000)
    compile(after, "train.py", "exec")
