"""A training that diverged is pointed at the number of its learning rate; nothing is edited."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, write

HEAD = "import argparse, json\nimport torch\nnet = torch.nn.Linear(2, 2)\n"
LINES = {
    "an argument": ("opt = torch.optim.SGD(net.parameters(), lr=4.0)\n", "opt = torch.optim.SGD(net.parameters(), lr=4.0)"),
    "a name": ("RATE = 4.0\nopt = torch.optim.SGD(net.parameters(), lr=RATE)\n", "RATE = 4.0"),
    "an option": (
        'parser = argparse.ArgumentParser()\nparser.add_argument("--lr", type=float, default=4.0)\n'
        "args = parser.parse_args()\nopt = torch.optim.SGD(net.parameters(), lr=args.lr)\n",
        'parser.add_argument("--lr", type=float, default=4.0)',
    ),
    "the larger of two": (
        "a = torch.optim.SGD(net.parameters(), lr=0.1)\nb = torch.optim.SGD(net.parameters(), lr=4.0)\n",
        "b = torch.optim.SGD(net.parameters(), lr=4.0)",
    ),
    "an optimizer's default": ("opt = torch.optim.Adam(net.parameters())\n", "opt = torch.optim.Adam(net.parameters())"),
    "a schedule": ("opt = torch.optim.lr_scheduler.StepLR\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("body", "line"), LINES.values(), ids=LINES)
def test_the_line_of_the_rate(body: str, line: str | None, tmp_path: pathlib.Path) -> None:
    """Where its number stands."""
    proposal = best("learning_rate", write(tmp_path, {"train.py": HEAD + body}))
    assert (proposal.culprit.code if proposal is not None else None) == line
    assert proposal is None or not proposal.edits


@pytest.mark.parametrize("name", ["lr", "peak_lr", "learning-rate", "lr_max"])
def test_in_a_configuration_file(name: str, tmp_path: pathlib.Path) -> None:
    """A file's rate, also where YAML takes it for a string; not the one that a schedule ends at."""
    (tmp_path / "config.yaml").write_text(
        f"optimizer:\n  {name}: 4e-1\n  momentum: 0.9\n  min_lr: 5.0\n  lr_decay: 9.0\n"
    )
    body = 'cfg = yaml.safe_load(open("config.yaml"))\nopt = torch.optim.SGD(net.parameters(), **cfg["optimizer"])\n'
    proposal = best("learning_rate", write(tmp_path, {"train.py": f"import yaml\n{HEAD}{body}"}))
    assert proposal is not None
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == ("config.yaml", 2)


PARSER = 'import configparser\ncfg = configparser.ConfigParser()\ncfg.read("run.ini")\n'
SGD = "torch.optim.SGD(net.parameters(), "
INI = {
    "a rate that is a schedule's end": ("[opt]\nmin_lr = 4\n", f"{SGD}lr=0.1)\n", ("train.py", 7)),
    "a file that no parser reads": ("lr = 4\n", f"{SGD}lr=0.1)\n", ("train.py", 7)),
    "a rate of its name": ("[opt]\nname = SGD\nlr = 4\n", f"{SGD}lr=cfg['opt'].getfloat('lr'))\n", ("run.ini", 3)),
    "a comment behind it": ("[opt]\nlr : 4 ; high\n", f"{SGD}lr=cfg['opt'].getfloat('lr'))\n", ("run.ini", 2)),
    "a default": ("[DEFAULT]\nlr = 4\n[opt]\n", f"{SGD}lr=cfg.getfloat('opt', 'lr'))\n", ("run.ini", 2)),
    "a name of its own": ("[opt]\nspeed = 4\n", f"{SGD}lr=cfg.getfloat('opt', 'speed'))\n", ("run.ini", 2)),
    "a helper": ("[opt]\nspeed = 4\n", f"def make(part):\n    return {SGD}lr=float(part['speed']))\nmake(cfg['opt'])\n", ("run.ini", 2)),
    "options": ("[opt]\nlearning_rate = 4\n", f"opt = dict(cfg.items('opt'))\n{SGD}lr=float(opt['learning_rate']))\n", ("run.ini", 2)),
}  # fmt: skip


@pytest.mark.parametrize(("config", "body", "place"), INI.values(), ids=INI)
def test_in_an_ini_file(config: str, body: str, place: tuple, tmp_path: pathlib.Path) -> None:
    """The line of the key that gives the optimizer its rate, also where the file has another name for it."""
    (tmp_path / "run.ini").write_text(config)
    proposal = best("learning_rate", write(tmp_path, {"train.py": HEAD + PARSER + body}))
    assert proposal is not None
    assert not proposal.edits
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == place


def test_a_name_of_its_own_in_a_configuration_file(tmp_path: pathlib.Path) -> None:
    """A file's number that a subscript hands on under another name; what is computed of it is no line of the program."""
    (tmp_path / "config.yaml").write_text("speed: 4.0\nfactor: 9.0\n")
    body = "import yaml\ncfg = yaml.safe_load(open('config.yaml'))\n"
    body += f"a = {SGD}lr=cfg['speed'])\nb = {SGD}lr=0.1 * cfg['factor'])\n"
    proposal = best("learning_rate", write(tmp_path, {"train.py": HEAD + body}))
    assert proposal is not None
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == ("config.yaml", 1)


RATES = {
    "what Adam is given": ("torch.optim.Adam(net.parameters(), lr=3e-3)", False),
    "a warm Adam": ("torch.optim.AdamW(net.parameters(), lr=0.02)", False),
    "what gradient descent is given": ("torch.optim.SGD(net.parameters(), lr=0.5)", False),
    "a method that scales its steps": ("torch.optim.LBFGS(net.parameters(), lr=1.0)", False),
    "Adadelta's own default": ("torch.optim.Adadelta(net.parameters(), lr=1.0)", False),
    "gradient descent's rate for Adam": ("torch.optim.Adam(net.parameters(), lr=0.5)", True),
    "a comma too far": ("torch.optim.SGD(net.parameters(), lr=10)", True),
}


@pytest.mark.parametrize(("made", "is_far"), RATES.values(), ids=RATES)
def test_a_rate_far_above_the_usual_speaks_for_divergence(made: str, is_far: bool, tmp_path: pathlib.Path) -> None:
    """And one that is usual for its optimizer for nothing."""
    proposal = best("learning_rate", write(tmp_path, {"train.py": f"{HEAD}opt = {made}\n"}))
    assert proposal is not None
    assert (proposal.belief > 0) == is_far
    assert ("far above" in (proposal.culprit.why or "")) == is_far
