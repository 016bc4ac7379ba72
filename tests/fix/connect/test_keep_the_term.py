"""Terms stay tensors on their way to the loss, and what else is done with them is done with numbers."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import ADDED, DEAD_TERM, TracedLine
from tests.fix.detach.test_copy_what_is_saved import run
from tests.fix.rewriting import diff_lines, failed, line_of, write

HEAD = "import torch\ntorch.manual_seed(0)\nnet = torch.nn.Linear(4, 4)\nx = torch.randn(6, 4)\nseen = []\nbeta = 0.5\n"
SIZE = "def size(one):\n    return one.pow(2).mean()\n"
OUT = "    out = net(x)\n    parts = [out[:3], out[3:]]\n"
CASES = {
    "a comprehension": (
        OUT + "    levels = [size(one).item() for one in parts]  # read\n    for at, level in enumerate(levels):\n        seen.append(float(level))\n    return out.mean() + beta * sum(levels)  # sum\n",
        ["+    levels = [size(one) for one in parts]  # read"],
    ),
    "a log of the list": (
        OUT + "    levels = [float(size(one)) for one in parts]  # read\n    for level in levels:\n        seen.append(level)\n    print(max(levels), sum(levels) / len(levels))\n    return out.mean() + beta * sum(levels)  # sum\n",
        ["+    levels = [size(one) for one in parts]  # read", "+        seen.append(float(level))",
         "+    print(max([float(one) for one in levels]), float(sum(levels)) / len(levels))"],
    ),
    "a running sum": (
        OUT + "    total = 0.0\n    for one in parts:\n        total += size(one).item()  # read\n    print(f'{total:.3f}')\n    seen.append(total)\n    return out.mean() + total * beta  # sum\n",
        ["+        total += size(one)  # read", "+    seen.append(float(total))"],
    ),
    "what is appended": (
        OUT + "    levels = []\n    for one in parts:\n        value = size(one).item()  # read\n        levels.append(value)\n        seen.append({'size': value})\n    extra = beta * sum(levels)\n    loss = out.mean()\n    loss += extra  # sum\n    return loss\n",
        ["+        value = size(one)  # read", "+        seen.append({'size': float(value)})"],
    ),
    "a text": (
        OUT + "    levels = [size(one).item() for one in parts]  # read\n    seen.append(levels[0])\n    print(f'{sum(levels) / 2:.2f} {levels[1]:.2f}', len(levels))\n    return out.mean() + beta * sum(levels)  # sum\n",
        ["+    levels = [size(one) for one in parts]  # read", "+    seen.append(float(levels[0]))"],
    ),
    "a table": (
        OUT + "    log = {'a': size(parts[0]).item(), 'b': size(parts[1]).item(), 'c': 1}  # read\n    seen.append(log)\n    print(log['a'], log['c'])\n    return out.mean() + beta * (log['a'] + log['b'])  # sum\n",
        ["+    log = {'a': size(parts[0]), 'b': size(parts[1]), 'c': 1}  # read",
         '+    seen.append({**log, "a": float(log["a"]), "b": float(log["b"])})', "+    print(float(log['a']), log['c'])"],
    ),
    "a table of all": (
        OUT + "    log = {at: size(one).item() for at, one in zip('ab', parts)}  # read\n    seen.append(log)\n    return out.mean() + beta * sum(log.values())  # sum\n",
        ["+    log = {at: size(one) for at, one in zip('ab', parts)}  # read", "+    seen.append({key: float(one) for key, one in log.items()})"],
    ),
    "a method of what comes from elsewhere": (
        OUT + "    return joined(out.mean(), parts, Sizes())\ndef joined(fit, parts, sizes):\n    return fit + beta * sizes.measured(parts)  # sum\nclass Sizes:\n    def measured(self, parts):\n        total = 0.0\n        for one in parts:\n            total += size(one).item()  # read\n        return total\n",
        ["+            total += size(one)  # read"],
    ),
    "a list of a tensor": (
        OUT + "    levels = torch.stack([size(one) for one in parts]).tolist()  # read\n    return out.mean() + beta * sum(levels)  # sum\n",
        ["+    levels = torch.stack([size(one) for one in parts])  # read"],
    ),
    "a helper of one use": (
        OUT + "    levels = [measured(one) for one in parts]\n    return out.mean() + beta * sum(levels)  # sum\ndef measured(one):\n    value = size(one)\n    return value.item()  # read\n",
        ["+    return value  # read"],
    ),
    "an argument": (
        OUT + "    levels = [(one ** 2).mean().item() for one in parts]  # read\n    return joined(out.mean(), levels)\ndef joined(fit, terms):\n    return sum([fit, beta * sum(terms)])  # sum\n",
        ["+    levels = [(one ** 2).mean() for one in parts]  # read"],
    ),
}  # fmt: skip
LEVELS = OUT + "    levels = [size(one).item() for one in parts]  # read\n"
REFUSED = {
    "what is subtracted": LEVELS + "    return out.mean() - beta * sum(levels)  # sum\n",
    "a difference": LEVELS + "    gap = levels[0] - levels[1]\n    return out.mean() + gap  # sum\n",
    "a share": LEVELS + "    share = levels[0] / sum(levels)\n    return out.mean() + share  # sum\n",
    "a weight of a tensor": LEVELS + "    return out.mean() + sum(levels) * out.std()  # sum\n".replace("sum(levels)", "levels[0] / levels[1]"),
    "a list of all steps": OUT + "    seen.append(size(out).item())  # read\n    return out.mean() + sum(seen)  # sum\n",
    "a helper of two uses": OUT + "    levels = [measured(one) for one in parts]\n    seen.append(measured(out))\n    return out.mean() + sum(levels)  # sum\ndef measured(one):\n    return size(one).item()  # read\n",
    "a total that is a term": OUT + "    total = size(out).item()  # read\n    total += beta\n    seen.append(total)\n    return out.mean() + total  # sum\n",
    "an attribute": OUT + "    net.size = size(out).item()  # read\n    return out.mean() + net.size  # sum\n",
    "a global name": "    global level\n" + OUT + "    level = size(out).item()  # read\n    return out.mean() + level  # sum\n",
    "the largest": LEVELS + "    return out.mean() + max(levels)  # sum\n",
    "a text of the list": LEVELS + "    print(f'{levels}')\n    return out.mean() + sum(levels)  # sum\n",
    "a helper that is handed on": OUT + "    levels = [measured(one) for one in parts]\n    seen.extend(map(measured, parts))\n    return out.mean() + sum(levels)  # sum\ndef measured(one):\n    return size(one).item()  # read\n",
    "a table in a text": OUT + "    log = {'size': size(out).item()}  # read\n    print(f'{log}')\n    return out.mean() + log['size']  # sum\n",
    "a table by a name": OUT + "    log = {'size': size(out).item()}  # read\n    print([log[one] for one in log])\n    return out.mean() + log['size']  # sum\n",
    "an argument that is a number elsewhere": LEVELS + "    seen.append(joined(out, seen))\n    return joined(out.mean(), levels)\ndef joined(fit, terms):\n    return fit + sum(terms)  # sum\n",
    "a sum of numbers": LEVELS + "    total = sum(levels) + 1.0  # sum\n    return out.mean()\n",
}  # fmt: skip


def program_of(body: str) -> str:
    return f"{HEAD}{SIZE}def measure():\n{body}loss = measure()\nloss.backward()\n"


def after(text: str, folder: pathlib.Path) -> str | None:
    program = write(folder, {"train.py": text})
    traced = tuple(
        TracedLine(kind=kind, operation="item", file=str(folder / "train.py"), line=line_of(text, f"# {words}"), is_guess=guess)
        for kind, words, guess in ((ADDED, "sum", True), (DEAD_TERM, "read", False))
    )  # fmt: skip
    found = list(find_codemod("keep_the_term")(Context(program=program, incident=replace(failed(), traced=traced))))
    return splice(text, found[0].edits) if found else None


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_stays(body: str, tmp_path: pathlib.Path) -> None:
    assert after(program_of(body), tmp_path) is None


@pytest.mark.torch
@pytest.mark.parametrize(("body", "added"), CASES.values(), ids=CASES)
def test_the_term_trains(body: str, added: list[str], tmp_path: pathlib.Path) -> None:
    """The gradients are those of the whole loss."""
    torch = pytest.importorskip("torch")
    text = program_of(body)
    fixed = after(text, tmp_path)
    assert fixed is not None
    assert [one for one in diff_lines(text, fixed) if one[0] == "+"] == added
    right = OUT + "    return out.mean() + 0.5 * (size(parts[0]) + size(parts[1]))\n"
    expected = run(tmp_path, "right", program_of(right))
    assert all(map(torch.allclose, run(tmp_path, "fixed", fixed), expected))
