"""Words that miss the name of a wrapper get it, where each fits with one beginning and none without."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Fact
from explainer.source.program import Program
from tests.fix.rewriting import best, failed, write

NAMES = "net.stages.0.weight net.stages.1.weight net.stages.2.weight net.head.weight net.head.bias"
SELECT = """import argparse
import fnmatch
import json
import torch


def select(model, prefixes):
    chosen = []
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith(tuple(prefixes)))
        if p.requires_grad:
            chosen.append(p)
    return chosen


"""
# The program, and what its one edit writes.
CURED = {
    "a list handed to a helper": (
        SELECT + 'params = select(model, ["stages.2", "head"])\n',
        SELECT + 'params = select(model, ["net.stages.2", "net.head"])\n',
    ),
    "a constant of the module": (
        'TRAIN = ("stages.2.", "head.")\nparams = [p for n, p in model.named_parameters() if n.startswith(TRAIN)]\n',
        'TRAIN = ("net.stages.2.", "net.head.")\nparams = [p for n, p in model.named_parameters() if n.startswith(TRAIN)]\n',
    ),
    "one word after the other": (
        "PARTS = ['head']\nfor n, p in model.named_parameters():\n    p.requires_grad = any(n.startswith(one) for one in PARTS)\n",
        "PARTS = ['net.head']\nfor n, p in model.named_parameters():\n    p.requires_grad = any(n.startswith(one) for one in PARTS)\n",
    ),
    "words with a dot put behind": (
        'for n, p in model.named_parameters():\n    p.requires_grad = any(n.startswith(f"{one}.") for one in ["head", "stages.2"])\n',
        'for n, p in model.named_parameters():\n    p.requires_grad = any(n.startswith(f"{one}.") for one in ["net.head", "net.stages.2"])\n',
    ),
    "what is spared from freezing": (
        'for n, p in model.named_parameters():\n    if not n.startswith("head."):\n        p.requires_grad = False\n',
        'for n, p in model.named_parameters():\n    if not n.startswith("net.head."):\n        p.requires_grad = False\n',
    ),
    "whole names": (
        'params = [p for n, p in model.named_parameters() if n in {"head.weight", "head.bias"}]\n',
        'params = [p for n, p in model.named_parameters() if n in {"net.head.weight", "net.head.bias"}]\n',
    ),
    "a pattern": (
        'params = [p for n, p in model.named_parameters() if fnmatch.fnmatch(n, "stages.[12].*")]\n',
        'params = [p for n, p in model.named_parameters() if fnmatch.fnmatch(n, "net.stages.[12].*")]\n',
    ),
    "a filter with a lambda": (
        'params = [p for _, p in filter(lambda one: one[0].startswith("head"), model.named_parameters())]\n',
        'params = [p for _, p in filter(lambda one: one[0].startswith("net.head"), model.named_parameters())]\n',
    ),
    "a helper that compares": (
        """def trains(name, parts):
    return any(name.startswith(part) for part in parts)


params = [p for n, p in list(model.named_parameters()) if trains(n, ["head", "stages.1"])]
""",
        """def trains(name, parts):
    return any(name.startswith(part) for part in parts)


params = [p for n, p in list(model.named_parameters()) if trains(n, ["net.head", "net.stages.1"])]
""",
    ),
    "an attribute": (
        """class Tuner:
    def __init__(self):
        self.parts = ["head"]

    def parameters(self, model):
        return [p for n, p in model.named_parameters() if n.startswith(tuple(self.parts))]
""",
        """class Tuner:
    def __init__(self):
        self.parts = ["net.head"]

    def parameters(self, model):
        return [p for n, p in model.named_parameters() if n.startswith(tuple(self.parts))]
""",
    ),
    "a default of the command line": (
        SELECT + 'ap = argparse.ArgumentParser()\nap.add_argument("--train", default="stages.2, head")\nargs = ap.parse_args()\n'
        'params = select(model, args.train.split(","))\n',
        SELECT + 'ap = argparse.ArgumentParser()\nap.add_argument("--train", default="net.stages.2, net.head")\nargs = ap.parse_args()\n'
        'params = select(model, args.train.split(","))\n',
    ),
    "an entry of a dictionary": (
        SELECT + 'CONFIG = {"lr": 0.1, "train": ["head"]}\nparams = select(model, CONFIG["train"])\n',
        SELECT + 'CONFIG = {"lr": 0.1, "train": ["net.head"]}\nparams = select(model, CONFIG["train"])\n',
    ),
}  # fmt: skip
HEAD = 'params = [p for n, p in model.named_parameters() if n.startswith("head")]\n'
# The program, and the names that the live model has.
KEPT = {
    "a word that fits": (HEAD, "head.weight net.head.weight"),
    "one of two words that fits": (SELECT + 'params = select(model, ["head", "body"])\n', "head.weight net.body.weight"),
    "two beginnings": (HEAD, "teacher.head.weight student.head.weight"),
    "a word that fits nowhere": (SELECT + 'params = select(model, ["head", "neck"])\n', NAMES),
    "words of two wrappers": (SELECT + 'params = select(model, ["head", "body"])\n', "first.head.weight second.body.weight"),
    "a part of the name": ('params = [p for n, p in model.named_parameters() if "classifier" in n]\n', NAMES),
    "words that are not seen": (SELECT + "params = select(model, sys.argv[1:])\n", NAMES),
    "words of which one is not seen": (SELECT + 'params = select(model, ["head", other])\n', NAMES),
    "a name of something else": ('kept = [v for k, v in state.items() if k.startswith("head")]\n', NAMES),
    "nothing known of the model": (HEAD, ""),
}  # fmt: skip


def mended(program: Program, names: str) -> str | None:
    """The file after the edit, where there is one."""
    facts = (Fact(name="live_parameter_names", value=names),) if names else ()
    incident = failed(message="optimizer got an empty parameter list")
    found = best("name_of_wrapper", program, incident=type(incident)(exceptions=incident.exceptions, facts=facts))
    if found is None:
        return None
    (path,) = {edit.file for edit in found.edits}
    return splice(pathlib.Path(path).read_text(), found.edits)


@pytest.mark.parametrize(("source", "names"), KEPT.values(), ids=KEPT)
def test_what_is_not_sure_stays(source: str, names: str, tmp_path: pathlib.Path) -> None:
    """More than one answer, or none, is left to the author."""
    assert mended(write(tmp_path, {"train.py": source}), names) is None


@pytest.mark.parametrize(("source", "wanted"), CURED.values(), ids=CURED)
def test_words_get_the_name_of_the_wrapper(source: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Each word that the filter asks for begins with what the live model puts before it."""
    assert mended(write(tmp_path, {"train.py": source}), NAMES) == wanted


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("tune.json", '{\n  "train": [\n    "stages.2",\n    "head"\n  ]\n}\n', '{\n  "train": [\n    "net.stages.2",\n    "net.head"\n  ]\n}\n'),
        ("tune.yaml", "train: [stages.2, 'head']  # late\n", "train: [net.stages.2, 'net.head']  # late\n"),
        ("tune.yaml", "train:\n- stages.2\n- head\n", "train:\n- net.stages.2\n- net.head\n"),
        ("tune.toml", 'train = ["head"]\n', 'train = ["net.head"]\n'),
    ],
    ids=["JSON", "YAML in brackets", "YAML", "TOML"],
)  # fmt: skip
def test_words_of_a_file(name: str, before: str, after: str, tmp_path: pathlib.Path) -> None:
    """The words are mended where they are written."""
    (tmp_path / name).write_text(before)
    load = {"json": "json.load", "yaml": "yaml.safe_load", "toml": "tomllib.load"}[name.partition(".")[2]]
    source = (
        SELECT + f'import tomllib, yaml\ncfg = {load}(open("{name}", "rb"))\nparams = select(model, cfg["train"])\n'
    )
    assert mended(write(tmp_path, {"train.py": source}), NAMES) == after


def test_the_wrapper_of_a_library(tmp_path: pathlib.Path) -> None:
    """`torch.compile` and DistributedDataParallel put names of their own before all others."""
    program = write(tmp_path, {"train.py": HEAD})
    assert mended(program, "_orig_mod.head.weight _orig_mod.body.weight") == HEAD.replace('"head"', '"_orig_mod.head"')


def test_names_by_the_classes(tmp_path: pathlib.Path) -> None:
    """Without a live model the attributes of the classes tell; the fix is then left to ask for."""
    source = pathlib.Path("knowledge/no-graph/empty-parameter-list/wrapper-in-the-names/broken.py").read_text()
    found = best("name_of_wrapper", write(tmp_path, {"train.py": source}))
    assert found is not None
    assert found.applicability == "unsafe"
    assert splice(source, found.edits) == source.replace('("head",)', '("net.head",)')


def test_only_its_own_words_change(tmp_path: pathlib.Path) -> None:
    """The same word under another key is something else."""
    text = json.dumps({"notes": ["head"], "train": ["head"]})
    (tmp_path / "tune.json").write_text(text)
    source = SELECT + 'cfg = json.load(open("tune.json"))\nparams = select(model, cfg["train"])\n'
    assert mended(write(tmp_path, {"train.py": source}), NAMES) == json.dumps(
        {"notes": ["head"], "train": ["net.head"]}
    )


@pytest.mark.parametrize(("more", "is_known"), [("net.pool.head_mix.weight", True), ("net.pool.head.weight", False)])
def test_a_part_rather_than_the_beginning_of_another(tmp_path: pathlib.Path, more: str, *, is_known: bool) -> None:
    """`head` is the part of that name, not `head_mix`; of two parts of that name neither."""
    source, wanted = CURED["one word after the other"]
    program = write(tmp_path, {"train.py": source})
    incident = failed(facts={"live_parameter_names": f"{NAMES} {more}"})
    proposal = best("name_of_wrapper", program, incident=incident)
    assert (proposal is not None) == is_known
    if proposal is not None:
        assert splice(program.order[0].text, proposal.edits) == wanted


def test_else_the_module_that_was_wrapped_is_asked(tmp_path: pathlib.Path) -> None:
    """The second edit leaves the words as they are: something else may read them."""
    source, _ = CURED["a constant of the module"]
    program = write(tmp_path, {"train.py": source})
    incident = failed(facts={"live_parameter_names": NAMES})
    found = sorted(
        find_codemod("name_of_wrapper")(Context(program=program, incident=incident)), key=lambda one: -one.belief
    )
    assert splice(source, found[1].edits) == source.replace("model.named", "model.net.named")
    compiled = failed(facts={"live_parameter_names": "_orig_mod.0.head.weight"})
    found = list(find_codemod("name_of_wrapper")(Context(program=program, incident=compiled)))
    assert not any("_orig_mod" in (splice(source, one.edits) or "").partition(".named_parameters")[0] for one in found)
