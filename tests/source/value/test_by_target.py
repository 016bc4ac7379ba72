"""Classes that a configuration names by a dotted path, and the calls that make one of them."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.program import Program, read_program
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

CONFIG = """model:
  target: parts.nets.Denoiser
  params:
    encoder_config: &encoder
      target: parts.nets.Encoder
data:
  target: parts.rows.Rows
  params:
    encoder_config: *encoder
"""
NETS = """from torch import nn

class Encoder(nn.Module):
    def encode(self, x):
        return x

class Denoiser(nn.Module):
    def __init__(self, encoder_config):
        super().__init__()
        self.encoder = instantiate(encoder_config)
"""
ROWS = """class Rows:
    def __init__(self, encoder_config):
        self.rows = self.computed(encoder_config)

    def computed(self, config):
        encoder = instantiate(config)
        return encoder.encode(1)
"""
LOADS = {
    "a helper that takes the class": """import importlib

def load(name):
    module, cls = name.rsplit(".", 1)
    return getattr(importlib.import_module(module), cls)

def instantiate(config):
    return load(config["target"])(**config.get("params", {}))
""",
    "in one": """import importlib

def instantiate(config):
    module, cls = config["target"].rsplit(".", 1)
    made = getattr(importlib.import_module(module), cls)
    return made(**config.get("params", {}))
""",
    "Hydra's": """from hydra.utils import instantiate
""",
    "pydoc's": """from pydoc import locate

def instantiate(config):
    return locate(config["target"])(**config.get("params", {}))
""",
}
MAIN = """import yaml
config = yaml.safe_load(open("config.yaml"))
model = instantiate(config["model"])
data = instantiate(config.get("data"))
other = instantiate(read())
"""


def written(folder: pathlib.Path, load: str, config: str = CONFIG) -> Program:
    (folder / "parts").mkdir()
    (folder / "config.yaml").write_text(config)
    (folder / "parts" / "__init__.py").write_text("")
    head = load if load.startswith("from hydra") else "from parts.load import instantiate\n"
    (folder / "parts" / "load.py").write_text(load)
    for name, text in (("parts/nets.py", NETS), ("parts/rows.py", ROWS), ("train.py", MAIN)):
        (folder / name).write_text(head + text)
    return read_program(str(folder), ["train.py", "parts/nets.py", "parts/rows.py", "parts/load.py"])


def made(program: Program) -> dict[str, list[str]]:
    """The classes of which each call of the program's `instantiate` makes one."""
    found = {}
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "instantiate":
                classes = resolver_of(program).classes_of(Value(node, file))
                found[ast.unparse(node.args[0])] = [owner.name for _, owner in classes]
    return found


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_the_words_of_a_call_tell_which(load: str, tmp_path: pathlib.Path) -> None:
    """Those by which it asks for its part of the configuration, also through a parameter; of others nothing is known."""
    assert made(written(tmp_path, load)) == {
        "config['model']": ["Denoiser"],
        "config.get('data')": ["Rows"],
        "encoder_config": ["Encoder"],
        "config": ["Encoder"],
        "read()": [],
    }


def test_what_it_makes_has_methods(tmp_path: pathlib.Path) -> None:
    program = written(tmp_path, LOADS["in one"])
    file = next(one for one in program.parsed() if one.path.endswith("rows.py"))
    call = next(one for one in file.walk() if isinstance(one, ast.Call) and ast.unparse(one.func) == "encoder.encode")
    found = resolver_of(program).function_of(call, Value(call, file))
    assert found is not None and found[1].name == "encode"


def test_names_of_others(tmp_path: pathlib.Path) -> None:
    """A dotted name of a library, or of a module that is not the class's, is none of the program's."""
    config = CONFIG.replace("parts.nets", "torch.nn").replace("parts.rows.Rows", "parts.nets.Rows")
    assert set(map(tuple, made(written(tmp_path, LOADS["in one"], config)).values())) == {()}
