"""A sum takes the tensor whose value was read, by the name that it has there, and the log keeps its numbers."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import ADDED, DEAD_TERM, TracedLine
from tests.fix.detach.test_copy_what_is_saved import run
from tests.fix.rewriting import diff_lines, failed, line_of, write

HEAD = "import torch\ntorch.manual_seed(0)\nnet = torch.nn.Linear(4, 4)\nx = torch.randn(6, 4)\nseen = []\n"
TERMS = "    out = net(x)\n    fit, size = out.mean(), out.pow(2).mean()\n"
TABLE = "    out = net(x)\n    terms = {'fit': out.mean(), 'size': out.pow(2).mean()}\n"
ITEMS = TABLE + "    log = {name: one.item() for name, one in terms.items()}  # read\n"
LOOP = (
    "    for name, weight in (('size', 0.5),):\n        total = total + weight * log[name]  # sum\n    return total\n"
)
CASES = {
    "a table of a table": (
        ITEMS + "    return terms['fit'] + 0.5 * log['size']  # sum\n",
        ["+    return terms['fit'] + 0.5 * terms['size']  # sum"],
    ),
    "a table of a table by its keys": (
        TABLE + "    log = {k: terms[k].item() for k in terms}  # read\n    return terms['fit'] + log['size'] / 2  # sum\n",
        ["+    return terms['fit'] + terms['size'] / 2  # sum"],
    ),
    "a table in a loop": (
        ITEMS + "    total = terms['fit']\n" + LOOP,
        ["+        total = total + weight * terms[name]  # sum"],
    ),
    "a display": (
        TERMS + "    log = {'size': size.item()}  # read\n    return 0.5 * log['size'] + fit  # sum\n",
        ["+    return 0.5 * size + fit  # sum"],
    ),
    "keywords": (
        TERMS + "    log = dict(size=float(size))  # read\n    fit += 0.5 * log['size']  # sum\n    return fit\n",
        ["+    fit += 0.5 * size  # sum"],
    ),
    "an entry": (
        TERMS + "    log = {}\n    log['size'] = size.item()  # read\n    return sum([fit, 0.5 * log['size']])  # sum\n",
        ["+    return sum([fit, 0.5 * size])  # sum"],
    ),
    "a name": (
        TERMS + "    number = size.cpu().item()  # read\n    seen.append(number)\n    return fit + 0.5 * number  # sum\n",
        ["+    return fit + 0.5 * size  # sum"],
    ),
    "a weighed name": (
        TERMS + "    number = size.item()  # read\n    seen.append(number)\n    extra = 0.5 * number\n    return fit + extra  # sum\n",
        ["+    extra = 0.5 * size"],
    ),
    "what has no name": (
        "    out = net(x)\n    number = out.pow(2).mean().item()  # read\n    seen.append(number)\n    return out.mean() + 0.5 * number  # sum\n",
        ["+    number = out.pow(2).mean()  # read", "+    seen.append(number.item())"],
    ),
}  # fmt: skip
REFUSED = {
    "a name that is bound anew": TERMS + "    log = {'size': size.item()}  # read\n    size = fit\n    return size + log['size']  # sum\n",
    "a factor of a tensor": ITEMS + "    return terms['fit'] + log['size'] * terms['fit']  # sum\n",
    "what is taken off": ITEMS + "    return terms['fit'] - log['size']  # sum\n",
    "what is divided by": ITEMS + "    return terms['fit'] + 1.0 / log['size']  # sum\n",
    "another number": ITEMS + "    rate = {'size': 0.5}\n    return terms['fit'] + rate['size']  # sum\n",
    "some of a table": TABLE + "    log = {k: v.item() for k, v in terms.items() if k}  # read\n    return terms['fit'] + log['size']  # sum\n",
    "other keys": TABLE + "    log = {'a' + k: v.item() for k, v in terms.items()}  # read\n    return terms['fit'] + log['asize']  # sum\n",
    "a number of two lines": TERMS + "    n = 0.0\n    if seen:\n        n = size.item()  # read\n    return fit + n  # sum\n",
    "what a helper reads": TERMS + "    n = measured(size)  # read\n    return fit + n  # sum\n",
    "another table": ITEMS + "    log = measured(terms)\n    return terms['fit'] + log['size']  # sum\n",
}  # fmt: skip


def program_of(body: str) -> str:
    return f"{HEAD}def measure():\n{body}loss = measure()\nloss.backward()\n"


def after(text: str, folder: pathlib.Path) -> str | None:
    program = write(folder, {"train.py": text})
    traced = tuple(
        TracedLine(kind=kind, operation="item", file=str(folder / "train.py"), line=line_of(text, f"# {words}"), is_guess=guess)
        for kind, words, guess in ((ADDED, "sum", False), (DEAD_TERM, "read", True))
    )  # fmt: skip
    found = list(find_codemod("add_the_tensor")(Context(program=program, incident=replace(failed(), traced=traced))))
    return splice(text, found[0].edits) if found else None


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_stays(body: str, tmp_path: pathlib.Path) -> None:
    assert after(program_of(body if "# read" in body else "# read\n" + body), tmp_path) is None


@pytest.mark.torch
@pytest.mark.parametrize(("body", "added"), CASES.values(), ids=CASES)
def test_the_tensor_is_added(body: str, added: list[str], tmp_path: pathlib.Path) -> None:
    """The gradients are those of the whole loss."""
    torch = pytest.importorskip("torch")
    text = program_of(body)
    fixed = after(text, tmp_path)
    assert fixed is not None
    assert [one for one in diff_lines(text, fixed) if one[0] == "+"] == added
    expected = run(tmp_path, "right", program_of(TERMS + "    return fit + 0.5 * size\n"))
    assert all(map(torch.allclose, run(tmp_path, "fixed", fixed), expected))
