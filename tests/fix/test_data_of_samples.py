"""What a data set gives for a sample and no batch can be made of: paths become text, and sizes are pointed at."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import changed_lines, failed, rewritten, write

SOURCE = """from pathlib import Path
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Tiles(Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*.npy"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, index):
        file = self.files[index]
        image = torch.from_numpy(np.load(file))
        box = torch.tensor(float(file.with_suffix(".txt").read_text()))
        return RETURNED

for batch in DataLoader(Tiles(FOLDER), batch_size=2):
    print(batch)
"""
GIVEN = {
    "message": "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'pathlib.PosixPath'>"
}
RETURNS = {
    "a dictionary": ('{"image": image, "box": box, "file": file}', '{"image": image, "box": box, "file": str(file)}'),
    "a tuple": ("image, self.files[index]", "image, str(self.files[index])"),
}


@pytest.mark.torch
@pytest.mark.parametrize(("given", "wanted"), RETURNS.values(), ids=RETURNS)
def test_a_path_becomes_text(tmp_path: pathlib.Path, given: str, wanted: str) -> None:
    """The default collate function refuses paths, and collects texts."""
    pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    for name in ("a", "b"):
        numpy.save(tmp_path / f"{name}.npy", numpy.ones(2))
        (tmp_path / f"{name}.txt").write_text("0.5")
    source = SOURCE.replace("RETURNED", given).replace("FOLDER", repr(str(tmp_path)))
    with pytest.raises(TypeError, match=r"found <class 'pathlib\.\w*Path'>"):
        exec(compile(source, "before", "exec"), {})  # noqa: S102 - the program of the test
    after = rewritten(tmp_path, "text_of_path", source, **GIVEN)
    assert changed_lines(source, after) == [f"return {wanted}"]
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    assert rewritten(tmp_path, "text_of_path", after, **GIVEN) == after


def test_another_refusal_is_none_of_it(tmp_path: pathlib.Path) -> None:
    """Of None, or of an object of the program."""
    source = SOURCE.replace("RETURNED", "image, file").replace("FOLDER", "'.'")
    message = (
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>"
    )
    assert rewritten(tmp_path, "text_of_path", source, message=message) == source


@pytest.mark.parametrize(
    ("message", "lines"),
    [("Trying to resize storage that is not resizable", [15]), ("CUDA out of memory", [])],
    ids=["sizes", "another failure"],
)
def test_the_sample_is_pointed_at(tmp_path: pathlib.Path, message: str, lines: list[int]) -> None:
    """Nothing is edited: to pad, to crop and to leave out train on other data."""
    program = write(tmp_path, {"train.py": SOURCE.replace("RETURNED", "image, box")})
    context = Context(program=program, incident=failed(message=message))
    found = list(find_codemod("rows_of_dataset")(context))
    assert [(one.culprit.line, one.edits) for one in found] == [(line, ()) for line in lines]
