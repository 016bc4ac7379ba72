"""Keys that lack the dots of the module's names get these where they are loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from explainer.model.verification import PASSES_OVER, Unloaded
from explainer.verification.judge import _fitting
from tests.fix.rewriting import best, failed, line_of, write

SEEN = "seen in the live program: train.py:{} passes over keys that the model has: {}"
FLAT, LINED = "8 of 10 fit Net without the dots of its names", "8 of 8 fit Net with `_` for the dots of its names"
OWN = "8 of 8 fit Average without the dots of the keys"
LOAD = "net.load_state_dict(state, strict=False)\n"
NAMES = 'names = {name.replace(".", ""): name for name in net.state_dict()}\n'
LOOKED = "{names.get(key, key): value for key, value in state.items()}"


def of_silent(folder, source: str, *said: str, at: str = "load_state_dict(") -> tuple[str, Proposal | None]:
    """A program with one load, after what is proposed for the line at which a run was seen to pass over keys; and the proposal."""
    log = tuple(LogLine(text=SEEN.format(line_of(source, at), one)) for one in said)
    program = write(folder, {"train.py": source})
    proposal = best("rename_state_keys", program, incident=replace(failed(), exceptions=(), log=log))
    after = splice(source, proposal.edits) if proposal is not None else source
    return str(after), proposal


STAYS = {
    "a prefix": (LOAD, ("8 of 10 fit Net without the prefix `encoder.`",), False),
    "another size": (LOAD, (FLAT + ", 2 would clash",), True),
    "two spellings at a line": (LOAD, (FLAT, LINED), True),
    "a model that is made there": ("make().load_state_dict(state, strict=False)\n", (FLAT,), True),
    "a model of a list": ("[net.load_state_dict(state, strict=False) for net in nets]\n", (FLAT,), True),
    "a state of a function": ("load = lambda net: net.load_state_dict(state, strict=False)\n", (FLAT,), True),
    "an else": ("if a:\n    pass\nelif net.load_state_dict(state, strict=False).missing_keys:\n    pass\n", (FLAT,), True),
    "renamed already": (NAMES + LOAD.replace("state,", f"{LOOKED},"), (FLAT,), True),
    "shortened already": ("net.load_state_dict({k.replace('.', ''): v for k, v in s.items()}, False)\n", (OWN,), True),
    "sifted before the model is made": (
        "state = {k: v for k, v in s.items() if k != 'head.bias'}\nnet = Net()\n" + LOAD, (FLAT + ", 1 would clash",), True,
    ),
}  # fmt: skip
CURED = {
    "a name": (LOAD, FLAT, NAMES + LOAD.replace("state,", f"{LOOKED},")),
    "another separator": (LOAD, LINED, NAMES.replace('""', '"_"') + LOAD.replace("state,", f"{LOOKED},")),
    "a part of what was read": (
        'print(net.load_state_dict(torch.load(path)["average"], False))\n',
        FLAT,
        NAMES + 'print(net.load_state_dict({names.get(key, key): value for key, value in torch.load(path)["average"].items()}, False))\n',
    ),
    "given by name, in a method": (
        "class A:\n    def load(self, a, b):\n        return self.net.load_state_dict(strict=False, state_dict=a or b)\n",
        FLAT,
        "class A:\n    def load(self, a, b):\n        " + NAMES.replace("net.", "self.net.")
        + "        return self.net.load_state_dict(strict=False, state_dict={names.get(key, key): value for key, value in (a or b).items()})\n",
    ),
    "a name that is taken": (
        "names = ['a']\n" + LOAD,
        FLAT,
        "names = ['a']\n" + NAMES.replace("names =", "names_ =") + LOAD.replace("state,", f"{LOOKED},").replace("names.", "names_."),
    ),
    "some keys are left out": (
        "net.load_state_dict({k: v for k, v in s.items() if 'head' not in k}, strict=False)\n",
        FLAT,
        NAMES + "net.load_state_dict({names.get(k, k): v for k, v in s.items() if 'head' not in k}, strict=False)\n",
    ),
    "a prefix is taken off": (
        "net.load_state_dict({k[10:]: v for k, v in s.items()}, strict=False)\n",
        FLAT,
        NAMES + "net.load_state_dict({names.get(key, key): value for key, value in {k[10:]: v for k, v in s.items()}.items()}, strict=False)\n",
    ),
    "what it returns is asked": (
        "if net.load_state_dict(state, strict=False).missing_keys:\n    print()\n",
        FLAT,
        NAMES + f"if net.load_state_dict({LOOKED}, strict=False).missing_keys:\n    print()\n",
    ),
    "sifted by the names of the model": (
        "state = {k: v for k, v in s.items() if not k.startswith('head.')}\n" + LOAD,
        FLAT + ", 2 would clash",
        NAMES + "state = {k: v for k, v in {names.get(key, key): value for key, value in s.items()}.items() if not k.startswith('head.')}\n" + LOAD,
    ),
    "into names without dots": (
        LOAD, OWN, 'net.load_state_dict({key.replace(".", ""): value for key, value in state.items()}, strict=False)\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "said", "is_told"), STAYS.values(), ids=STAYS)
def test_what_is_unsure_stays(tmp_path, source: str, said: tuple[str, ...], is_told: bool) -> None:
    """Where the names of one module cannot be looked up once, before the load, its line alone is told."""
    after, proposal = of_silent(tmp_path, source, *said)
    assert after == source
    assert (proposal is not None and proposal.edits == ()) is is_told


@pytest.mark.parametrize(("source", "said", "wanted"), CURED.values(), ids=CURED)
def test_keys_get_their_names(tmp_path, source: str, said: str, wanted: str) -> None:
    """The keys are mapped where they are loaded; a second time nothing is left to do."""
    after, proposal = of_silent(tmp_path, source, said)
    assert after == wanted
    assert proposal is not None
    assert proposal.culprit.line == line_of(source, "load_state_dict(")
    assert of_silent(tmp_path, after, said)[0] == after


def test_a_load_that_was_not_seen_stays(tmp_path) -> None:
    """Another line of the file was seen."""
    assert of_silent(tmp_path, "net = Net()\n" + LOAD, FLAT, at="Net()") == ("net = Net()\n" + LOAD, None)


@pytest.mark.parametrize("separator", ["", "_", "/", "-"])
@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("clashes", [0, 2])
def test_it_reads_what_is_told(tmp_path, separator: str, is_added: bool, clashes: int) -> None:
    """The words of a run that passed over such keys are those that the edit knows."""
    told = _fitting(
        Unloaded(module="Net", keys=9, fit=8, prefix="", separator=separator, is_added=is_added, clashes=clashes)
    )
    assert PASSES_OVER in SEEN
    _, proposal = of_silent(tmp_path, LOAD, told)
    assert proposal is not None
    assert bool(proposal.edits) is not bool(clashes)
