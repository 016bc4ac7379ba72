"""A configuration object of the program's own, which merges the files of a folder, gives the setting of a name."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.program import read_program
from explainer.source.setting.flow import settings_behind

CONFIG = """import yaml


class Config:
    def __init__(self, folder, model):
        self.final = self.read(folder / "overall.yaml")
        self.final |= self.read(folder / f"{model}.yaml")

    @staticmethod
    def read(path):
        return yaml.READ(path.read_text())

    def __getitem__(self, key):
        return self.final.get(key)

    def get(self, key, default=None):
        return self.final.get(key, default)


config = Config("properties", "NeuMF")
value = ASKED
"""


@pytest.mark.parametrize(
    ("asked", "reader", "wanted"),
    [
        ('config["sparse"]', "safe_load", [("NeuMF.yaml", True)]),
        ('bool(config["sparse"])', "safe_load", [("NeuMF.yaml", True)]),
        ('config.get("sparse", False)', "safe_load", [("NeuMF.yaml", True)]),
        ('config["size"]', "safe_load", []),  # each file has one
        ('config["sparse"]', "dump", []),  # it reads nothing
        ('other["sparse"]', "safe_load", []),
    ],
)
def test_what_is_asked_by_a_key(
    tmp_path: pathlib.Path, asked: str, reader: str, wanted: list[tuple[str, object]]
) -> None:
    (tmp_path / "properties").mkdir()
    (tmp_path / "properties" / "overall.yaml").write_text("size: 8\n")
    (tmp_path / "properties" / "NeuMF.yaml").write_text("size: 16\nsparse: true\n")
    (tmp_path / "train.py").write_text(CONFIG.replace("READ", reader).replace("ASKED", asked))
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.parsed()
    (node,) = (
        one.value for one in file.walk() if isinstance(one, ast.Assign) and file.segment(one).startswith("value")
    )
    found = [(pathlib.Path(one.file.path).name, one.value) for one in settings_behind(node, file, program)]
    assert [one for one in found if one[0] != "train.py"] == wanted
