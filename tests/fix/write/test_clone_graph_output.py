"""What is kept of a CUDA graph's outputs is cloned; what is read before the next replay, or is another tensor by then, is not."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

REFUSED = (
    "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File"
)
HEAD = 'import torch\nfrom torch import nn\n\nnet = nn.Linear(8, 8).cuda()\nrun = torch.compile(net, mode="reduce-overhead")\n'
OBJECT = (
    "import torch\n\nclass Teacher:\n    def __init__(self, net, mode):\n        self.net = net\n        self.encode = COMPILED\n        self.last = None\n\n"
    "    def codes(self, crops):\n        found = []\n        for crop in crops:\n            LINE\n        return torch.stack(found)\n"
)
CALLABLES = [
    'torch.compile(net, backend="cudagraphs")', "torch.compile(net, mode=mode)", "torch.cuda.make_graphed_callables(net, (x,))",
    'torch.compile(net, mode="max-autotune", fullgraph=True)',
]  # fmt: skip
KEPT = {
    "in a list": ("found.append(self.encode(crop))", "found.append(self.encode(crop).clone())"),
    "in a list, without a graph": ("found.append(self.encode(crop).detach())", "found.append(self.encode(crop).detach().clone())"),
    "a part": ("found.append(self.encode(crop)[0])", "found.append(self.encode(crop)[0].clone())"),
    "in a table": ("self.table[len(crop)] = self.encode(crop)", "self.table[len(crop)] = self.encode(crop).clone()"),
    "in an attribute": ("self.last = self.encode(crop)", "self.last = self.encode(crop).clone()"),
    "by a name": ("code = self.encode(crop); found.append(code)", "code = self.encode(crop).clone(); found.append(code)"),
    "carried": ("state = self.encode(crop, state)", "state = self.encode(crop, state).clone()"),
    "two that meet": (
        "a = self.encode(crop); b = self.encode(crop.flip(0)); found.append((a - b).sum())",
        "a = self.encode(crop).clone(); b = self.encode(crop.flip(0)); found.append((a - b).sum())",
    ),
}  # fmt: skip
SPREAD = {
    "a comprehension": (HEAD + "kept = [run(x) for x in xs]\nout = torch.stack(kept)\n", "out =", ["kept = [run(x).clone() for x in xs]"]),
    "a dictionary": (
        HEAD + 'views = {"a": run(x), "b": run(y)}\nout = views["a"] - views["b"]\n', "out =",
        ['views = {"a": run(x).clone(), "b": run(y).clone()}'],
    ),
    "through a function": (
        HEAD + "def embed(x):\n    return run(x).detach()\n\nkept = []\nfor x in xs:\n    kept.append(embed(x))\nout = torch.stack(kept)\n", "out =",
        ["kept.append(embed(x).clone())"],
    ),
    "compiled in place": (
        HEAD.replace("run = torch.compile(net, ", "net.compile(") + "kept = [net(x) for x in xs]\nout = torch.stack(kept)\n", "out =",
        ["kept = [net(x).clone() for x in xs]"],
    ),
    "a decorated function": (
        'import torch\n\n@torch.compile(mode="reduce-overhead")\ndef run(x):\n    return x.sin()\n\nkept = [run(x) for x in xs]\nout = sum(kept)\n', "out =",
        ["kept = [run(x).clone() for x in xs]"],
    ),
}  # fmt: skip
LEFT = {
    "cloned": HEAD + "kept = [run(x).clone() for x in xs]\nout = torch.stack(kept)\n",
    "another tensor by then": HEAD + "kept = [run(x).mean(0) for x in xs]\nout = torch.stack(kept)\n",
    "copied to the CPU": HEAD + "kept = [run(x).cpu() for x in xs]\nout = torch.stack(kept)\n",
    "read before the next": HEAD + "for x in xs:\n    y = run(x)\n    total += y.sum()\nout = total\n",
    "not compiled": HEAD + "kept = [net(x) for x in xs]\nout = torch.stack(kept)\n",
    "compiled without graphs": HEAD.replace("reduce-overhead", "default") + "kept = [run(x) for x in xs]\nout = torch.stack(kept)\n",
    "a size": HEAD + "kept = [run(x).shape for x in xs]\nout = kept\n",
}  # fmt: skip


def mended(folder: pathlib.Path, source: str, at: str, message: str = REFUSED) -> list[str]:
    return changed_lines(source, rewritten(folder, "clone_graph_output", source, at, message=message))


@pytest.mark.parametrize(("line", "wanted"), KEPT.values(), ids=KEPT)
def test_clones_what_is_kept(line, wanted, tmp_path: pathlib.Path) -> None:
    source = OBJECT.replace("COMPILED", CALLABLES[0]).replace("LINE", line)
    assert mended(tmp_path, source, "torch.stack") == [wanted]


@pytest.mark.parametrize("compiled", CALLABLES)
def test_knows_what_is_graphed(compiled, tmp_path: pathlib.Path) -> None:
    source = OBJECT.replace("COMPILED", compiled).replace("LINE", KEPT["in a list"][0])
    assert mended(tmp_path, source, "torch.stack") == [KEPT["in a list"][1]]


@pytest.mark.parametrize(("source", "at", "lines"), SPREAD.values(), ids=SPREAD)
def test_wherever_it_is_called(source, at, lines, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, source, at) == lines


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_left_alone(source, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, source, "out =") == []


def test_another_failure(tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, SPREAD["a comprehension"][0], "out =", "it failed") == []
