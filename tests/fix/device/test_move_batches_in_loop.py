"""Workers make batches on the CPU and the loop moves them; where that cannot be told apart, the loader works in the process."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.mending import run
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

REFUSED = (
    "Caught RuntimeError in DataLoader worker process 0.\nCannot re-initialize CUDA in forked subprocess. "
    "To use CUDA with multiprocessing, you must use the 'spawn' start method"
)
HEAD = "import torch\nfrom torch.utils.data import DataLoader, Dataset, default_collate\n\ndevice = torch.device(DEVICE)\nrows = [(torch.ones(3) * at, at) for at in range(8)]\n\n"
LOADER = "\nloader = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=2)\n"
TOTAL = "\ntotal = 0\nfor {target} in {loader}:\n    total = total + {sum}\n"
PAIR = TOTAL.format(target="x, y", loader="loader", sum="(x.sum(1) * y).sum()")
WORDS = TOTAL.format(target="batch", loader="loader", sum='(batch["x"].sum(1) * batch["y"]).sum()')
STACK = "    x, y = torch.stack([one for one, _ in items]), torch.tensor([one for _, one in items])\n"
MOVED = {
    "a dictionary": (
        "def collate(items):\n" + STACK + '    return {"x": x.to(device), "y": y.to(device)}\n' + LOADER + WORDS, "return {",
        ['-    return {"x": x.to(device), "y": y.to(device)}', '+    return {"x": x, "y": y}',
         "+    batch = {key: value.to(device) for key, value in batch.items()}"],
    ),
    "a part of a dictionary": (
        "def collate(items):\n" + STACK + '    return {"x": x.cuda(), "y": y}\n' + LOADER + WORDS, "return {",
        ['-    return {"x": x.cuda(), "y": y}', '+    return {"x": x, "y": y}', '+    batch["x"] = batch["x"].to("cuda")'],
    ),
    "a pair": (
        "def collate(items):\n" + STACK + "    return x.to(device, non_blocking=True), y.to(device)\n" + LOADER + PAIR, "return x",
        ["-    return x.to(device, non_blocking=True), y.to(device)", "+    return x, y", "+    x, y = x.to(device), y.to(device)"],
    ),
    "one of a pair": (
        "def collate(items):\n" + STACK + "    x = x.to(device)\n    return x, y\n" + LOADER + PAIR, "x = x.to",
        ["-    x = x.to(device)", "+    x = x", "+    x = x.to(device)"],
    ),
    "made there": (
        "def collate(items):\n    x = torch.zeros(len(items), 3, device=device)\n    for at, (one, _) in enumerate(items):\n        x[at] = one\n"
        "    return x\n" + LOADER + TOTAL.format(target="step, x", loader="enumerate(loader)", sum="x.sum()"), "x = torch.zeros",
        ["-    x = torch.zeros(len(items), 3, device=device)", "+    x = torch.zeros(len(items), 3)", "+    x = x.to(device)"],
    ),
    "by a lambda": (
        "collate = None\nloader = DataLoader(rows, batch_size=4, num_workers=2, collate_fn=lambda items: [one.to(device) for one in default_collate(items)])\n"
        + PAIR, "loader =",
        ["-loader = DataLoader(rows, batch_size=4, num_workers=2, collate_fn=lambda items: [one.to(device) for one in default_collate(items)])",
         "+loader = DataLoader(rows, batch_size=4, num_workers=2, collate_fn=lambda items: [one for one in default_collate(items)])",
         "+    x, y = x.to(device), y.to(device)"],
    ),
    "what is a tensor": (
        "def collate(items):\n" + STACK + '    found = {"x": x, "y": y, "name": "a"}\n'
        "    return {key: one.to(device) if torch.is_tensor(one) else one for key, one in found.items()}\n" + LOADER + WORDS, "return {",
        ["-    return {key: one.to(device) if torch.is_tensor(one) else one for key, one in found.items()}",
         "+    return {key: one if torch.is_tensor(one) else one for key, one in found.items()}",
         "+    batch = {key: value.to(device) if torch.is_tensor(value) else value for key, value in batch.items()}"],
    ),
    "by an object": (
        "class Collate:\n    def __init__(self, device):\n        self.device = device\n\n    def __call__(self, items):\n    " + STACK
        + "        return (x.to(self.device), y.to(self.device))\n\nloader = DataLoader(rows, 4, collate_fn=Collate(device), num_workers=2)\n" + PAIR,
        "return (x",
        ["-        return (x.to(self.device), y.to(self.device))", "+        return (x, y)", "+    x, y = x.to(device), y.to(device)"],
    ),
    "of a row": (
        "class Rows(Dataset):\n    def __len__(self):\n        return 8\n\n    def __getitem__(self, at):\n        x, y = rows[at]\n"
        "        return x.to(device), torch.tensor(y, device=device)\n\nloader = DataLoader(Rows(), batch_size=4, num_workers=1)\n" + PAIR, "return x",
        ["-        return x.to(device), torch.tensor(y, device=device)", "+        return x, torch.tensor(y)", "+    x, y = x.to(device), y.to(device)"],
    ),
}  # fmt: skip
OBJECT = "def collate(items):\n" + STACK + "    return Batch(x.to(device), y.to(device))\n"
FALLS_BACK = {
    "another kind of batch": (OBJECT + LOADER + WORDS, "return Batch", ["+loader = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=0)"]),
    "a dtype beside it": (
        MOVED["a pair"][0].replace("device, non_blocking=True", "device, torch.float64"), "return x",
        ["+loader = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=0)"],
    ),
    "no loop": (
        MOVED["a pair"][0].replace(PAIR, "\nx, y = next(iter(loader))\n"), "return x",
        ["+loader = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=0)"],
    ),
    "options of workers": (
        OBJECT + LOADER.replace("num_workers=2", "num_workers=2, persistent_workers=True, prefetch_factor=4") + WORDS, "return Batch",
        ["+loader = DataLoader(rows, batch_size=4, collate_fn=collate, num_workers=0)"],
    ),
    "of a default": (
        OBJECT + "\ndef make(workers=4):\n    return DataLoader(rows, 4, collate_fn=collate, num_workers=workers)\n\nloader = make()\n" + WORDS, "return Batch",
        ["+def make(workers=0):"],
    ),
    "of a trainer": (
        OBJECT + "\narguments = TrainingArguments('out', dataloader_num_workers=4)\n", "return Batch", ["+arguments = TrainingArguments('out', dataloader_num_workers=0)"],
    ),
}  # fmt: skip


def proposals(folder: pathlib.Path, source: str, at: str, message: str = REFUSED):
    program = write(folder, {"train.py": source})
    incident = failed({"train.py": line_of(source, at)}, message)
    return list(find_codemod("move_batches_in_loop")(Context(program=program, incident=incident)))


@pytest.mark.torch
@pytest.mark.parametrize(("body", "at", "lines"), MOVED.values(), ids=MOVED)
def test_moves_in_the_loop(body, at, lines, tmp_path: pathlib.Path) -> None:
    """The batches are the same: on the CPU, where the program runs before the edit too, the sum is."""
    source = HEAD + body
    (proposal, _) = proposals(tmp_path, source, at)
    after = splice(source, proposal.edits)
    assert diff_lines(source, after) == lines
    here = {'torch.device(DEVICE)': 'torch.device("cpu")', "x.cuda()": "x", '"cuda"': '"cpu"', "num_workers=2": "num_workers=0", "num_workers=1": "num_workers=0"}  # fmt: skip
    totals = []
    for name, text in (("before", source), ("after", after)):
        for old, new in here.items():
            text = text.replace(old, new)
        totals.append(float(run(text, tmp_path / f"{name}.py")["total"]))
    assert totals[0] == totals[1] > 0


@pytest.mark.parametrize(("body", "at", "lines"), FALLS_BACK.values(), ids=FALLS_BACK)
def test_else_without_workers(body, at, lines, tmp_path: pathlib.Path) -> None:
    source = HEAD + body
    (proposal,) = proposals(tmp_path, source, at)
    assert [line for line in diff_lines(source, splice(source, proposal.edits)) if line[0] == "+"] == lines


def test_in_every_loop(tmp_path: pathlib.Path) -> None:
    """Of each loader that takes the function."""
    body = (
        MOVED["a pair"][0]
        + "valid = DataLoader(rows, 4, collate_fn=collate)\nfor _, (a, b) in enumerate(valid):\n    print(a, b)\n"
    )
    first, _ = proposals(tmp_path, HEAD + body, "return x")
    added = [line for line in diff_lines(HEAD + body, splice(HEAD + body, first.edits)) if line[0] == "+"]
    assert added == [
        "+    return x, y",
        "+    x, y = x.to(device), y.to(device)",
        "+    a, b = a.to(device), b.to(device)",
    ]


def test_of_another_file(tmp_path: pathlib.Path) -> None:
    """The loop names the device that it imports."""
    body = HEAD + MOVED["a dictionary"][0].replace(WORDS, "")
    loop = "from data import device, loader\n" + WORDS
    program = write(tmp_path, {"train.py": loop, "data.py": body})
    incident = failed({"train.py": 4, "data.py": line_of(body, "return {")}, REFUSED)
    proposal = best("move_batches_in_loop", program, incident=incident)
    assert proposal is not None
    assert {edit.file.rpartition("/")[2] for edit in proposal.edits} == {"data.py", "train.py"}


def test_another_failure(tmp_path: pathlib.Path) -> None:
    assert proposals(tmp_path, HEAD + MOVED["a pair"][0], "return x", "it failed") == []
