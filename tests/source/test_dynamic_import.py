"""What a project imports by a name that it is told belongs to the program; what it cannot import does not."""

from __future__ import annotations

import os
import pathlib

import pytest

from explainer.source.program import read_program

LOADS = "import importlib\nimport yaml\nconfig = yaml.safe_load(open('run.yaml'))\n"
NAMED = {
    "a name in a configuration": (
        {"train.py": LOADS + "importlib.import_module(config['module'])\n", "run.yaml": "module: parts.hooks\n"}, ["parts/hooks.py"],
    ),
    "a class of Hydra's": (
        {"train.py": "from hydra.utils import instantiate\ninstantiate(config.part)\n", "config.yaml": "part:\n  _target_: parts.hooks.Truncate\n"},
        ["parts/hooks.py"],
    ),
    "a string of the code": (
        {"train.py": "import importlib\nPARTS = {'cut': 'parts.hooks:Truncate'}\nimportlib.import_module(PARTS[key].split(':')[0])\n"}, ["parts/hooks.py"],
    ),
    "a name that is begun": (
        {"train.py": "import importlib\nimportlib.import_module(f'parts.{name}')\n"}, ["parts/__init__.py", "parts/hooks.py", "parts/other.py"],
    ),
    "a package that imports its own": (
        {"train.py": "import parts\n", "parts/__init__.py": "import pkgutil, importlib\nfor one in pkgutil.iter_modules(__path__):\n    importlib.import_module(f'.{one.name}', __name__)\n"},
        ["parts/__init__.py", "parts/hooks.py", "parts/other.py"],
    ),
    "nothing by name": ({"train.py": "import torch\n", "run.yaml": "module: parts.hooks\n"}, []),
    "a module of nobody's": ({"train.py": LOADS + "importlib.import_module(config['module'])\n", "run.yaml": "module: parts_of.hooks\npath: data/parts.csv\n"}, []),
    "a place outside": ({"train.py": "import importlib\nimportlib.import_module(f'..{name}')\nimportlib.import_module('os.path')\n"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("files", "found"), NAMED.values(), ids=NAMED)
def test_modules_that_are_imported_by_name(files: dict[str, str], found: list[str], tmp_path: pathlib.Path) -> None:
    """Those of the project alone, each once, with what they import themselves."""
    written = {"parts/__init__.py": "", "parts/hooks.py": "class Truncate: ...\n", "parts/other.py": "", **files}
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    program = read_program(str(tmp_path), ["train.py"])
    paths = sorted(os.path.relpath(one, os.path.realpath(tmp_path)) for one in program.files)
    assert paths == sorted([*found, "train.py"])


def test_a_configuration_that_the_command_names(tmp_path: pathlib.Path) -> None:
    """It is among the texts whatever it is called, and names modules too; one outside of the project is not read."""
    folder = tmp_path / "project"
    (folder / "runs").mkdir(parents=True)
    (folder / "train.py").write_text("import importlib, sys\nimportlib.import_module(open(sys.argv[1]).read())\n")
    (folder / "hooks.py").write_text("")
    (folder / "parts").mkdir()
    (folder / "parts" / "cut.py").write_text("")
    (folder / "runs" / "reward.json").write_text('{"hook": "parts.cut"}')
    (tmp_path / "other.json").write_text('{"hook": "hooks"}')
    program = read_program(str(folder), ["train.py", "runs/reward.json", "../other.json"])
    assert [os.path.basename(one.path) for one in program.texts] == ["reward.json"]
    assert sorted(os.path.basename(one) for one in program.files) == ["cut.py", "train.py"]
    assert read_program(str(folder), ["train.py"]).texts == ()
