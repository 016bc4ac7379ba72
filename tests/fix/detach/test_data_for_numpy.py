"""What a data set hands to NumPy is data: the module that computes it is detached, unless something trains it."""

from __future__ import annotations

import pytest

from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, changed_lines, line_of, rewritten, write

HEAD = """import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3)

    def forward(self, wave):
        return torch.log1p(self.conv(wave[None]).pow(2))


net = nn.Linear(8, 3)
"""
CALLS = """class Calls(Dataset):
    def __init__(self, waves):
        self.waves, self.bank = waves, Bank()

    def __len__(self):
        return len(self.waves)

"""
PAIR = (
    HEAD
    + CALLS
    + """    def bands(self, i):
        return self.bank(self.waves[i])

    def __getitem__(self, i):
        bands = self.bands(i)
        delta = torch.diff(bands)
        return np.stack([bands, delta])


calls = Calls(torch.randn(6, 1, 9))
"""
)
MADE_OUTSIDE = (
    HEAD
    + """class Calls(Dataset):
    def __init__(self, waves, bank):
        self.waves, self.bank = waves, bank

    def __getitem__(self, i):
        return np.array([self.bank(one) for one in self.waves[i]])


bank = Bank()
calls = Calls(torch.randn(6, 2, 1, 9), bank)
"""
)
RIGHT = {
    "by an optimizer beside the network": (
        PAIR + "opt = torch.optim.SGD([*net.parameters(), *calls.bank.parameters()], lr=0.1)\n",
        "np.stack",
    ),
    "by an optimizer that gets the module itself": (
        MADE_OUTSIDE + "groups = [{'params': net.parameters()}, {'params': bank.parameters()}]\nopt = torch.optim.Adam(groups)\n",
        "np.array",
    ),
    "as a part of a network": (
        MADE_OUTSIDE + "model = nn.Sequential(bank, net)\nopt = torch.optim.Adam(model.parameters())\n",
        "np.array",
    ),
    "as a part of a class": (
        MADE_OUTSIDE
        + """class Whole(nn.Module):
    def __init__(self, front):
        super().__init__()
        self.front, self.net = front, net

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


model = Whole(bank)
""",
        "np.array",
    ),
    "by a trainer": (
        MADE_OUTSIDE + "from transformers import Trainer\ntrainer = Trainer(model=bank, train_dataset=calls)\n",
        "np.array",
    ),
}  # fmt: skip
RIGHT |= {
    "a module that is frozen": (PAIR.replace("waves, Bank()", "waves, Bank().requires_grad_(False)"), "np.stack"),
    "a data set without a graph": (
        PAIR.replace("    def __getitem__", "    @torch.no_grad()\n    def __getitem__"),
        "np.stack",
    ),
    "a module that is detached": (PAIR.replace("self.waves[i])\n", "self.waves[i]).detach()\n"), "np.stack"),
}
OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
DATA = {
    "two tensors of one module": (PAIR + OPTIMIZER, "np.stack", ["return self.bank(self.waves[i]).detach()"]),
    "a list of outputs of a module that is handed in": (
        MADE_OUTSIDE + "device = next(bank.parameters()).device\n" + OPTIMIZER,
        "np.array",
        ["return np.array([self.bank(one).detach() for one in self.waves[i]])"],
    ),
    "a helper that stacks": (
        HEAD
        + """def windows(bank, wave):
    return torch.stack([bank(one) for one in wave.unfold(1, 4, 2).unbind(1)])


"""
        + CALLS
        + """    def __getitem__(self, i):
        return windows(self.bank, self.waves[i]).numpy()


calls = Calls(torch.randn(6, 1, 9))
"""
        + OPTIMIZER,
        "numpy()",
        ["return windows(self.bank, self.waves[i]).detach().numpy()"],
    ),
    "two modules": (
        HEAD
        + CALLS
        + """    def __getitem__(self, i):
        low, high = self.bank(self.waves[i]), self.other(self.waves[i])
        return np.concatenate((low, high))


calls = Calls(torch.randn(6, 1, 9))
"""
        + OPTIMIZER,
        "np.concatenate",
        ["return np.concatenate((low.detach(), high.detach()))"],
    ),
    "a list that a loop fills": (
        HEAD
        + CALLS
        + """    def __getitem__(self, i):
        rows = []
        for one in self.waves[i]:
            rows.append(self.bank(one[None]))
        return np.array([row for row in rows])


calls = Calls(torch.randn(6, 2, 9))
"""
        + OPTIMIZER,
        "np.array",
        ["rows.append(self.bank(one[None]).detach())"],
    ),
    "a collate function": (
        HEAD
        + CALLS
        + """    def __getitem__(self, i):
        return self.bank(self.waves[i]), i


def collate(rows):
    images = np.stack([image for image, _ in rows])
    return torch.from_numpy(images), torch.tensor([label for _, label in rows])


loader = DataLoader(Calls(torch.randn(6, 1, 9)), 2, collate_fn=collate)
"""
        + OPTIMIZER,
        "np.stack",
        ["return self.bank(self.waves[i]).detach(), i"],
    ),
    "rows that are computed in advance": (
        HEAD
        + """class Calls(Dataset):
    def __init__(self, waves):
        bank = Bank()
        self.rows = [bank(one).numpy() for one in waves]


calls = Calls(torch.randn(6, 1, 9))
"""
        + OPTIMIZER,
        "numpy()",
        ["self.rows = [bank(one).detach().numpy() for one in waves]"],
    ),
}
DATA["two modules"] = (
    DATA["two modules"][0].replace("self.waves, self.bank = waves, Bank()", "self.waves, self.bank, self.other = waves, Bank(), Bank()"),
    *DATA["two modules"][1:],
)  # fmt: skip
TAUGHT = (
    HEAD
    + """class Taught(Dataset):
    def __init__(self, waves):
        self.waves, self.teacher = waves, None

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        return self.teacher(self.waves[i]).numpy()


def taught(waves):
    bank = Bank()
    opt = torch.optim.Adam(bank.parameters())
    for wave in waves:
        opt.zero_grad()
        bank(wave).mean().backward()
        opt.step()
    return bank


def main():
    waves = torch.randn(6, 1, 9)
    data = Taught(waves)
    data.teacher = taught(waves)
    opt = torch.optim.Adam(net.parameters())
    for batch in DataLoader(data):
        net(batch).mean().backward()
        opt.step()
"""
)
STILL_TAUGHT = {
    "by an optimizer that is returned": TAUGHT.replace("return bank", "return bank, opt").replace(
        "data.teacher =", "data.teacher, _ ="
    ),
    "beside the network": TAUGHT.replace(
        "Adam(net.parameters())", "Adam([*net.parameters(), *data.teacher.parameters()])"
    ),
}
TRANSFORM = (
    HEAD
    + """class LogBands:
    def __init__(self):
        self.bank = Bank()

    def __call__(self, wave):
        out = self.bank(wave)
        return np.stack([out, -out])


transform = LogBands()
"""
)


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """A module that something trains is not detached: an array is no way to train it. Nor is what has no graph."""
    assert rewritten(tmp_path, "detach_for_numpy", source, at) == source


@pytest.mark.parametrize(("source", "at", "wanted"), DATA.values(), ids=DATA)
def test_data_is_detached(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """One edit takes the graph of everything that the failing statement hands to NumPy; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_for_numpy", source, at)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "detach_for_numpy", after, at if at in after else None) == after


def test_a_teacher_whose_training_is_over(tmp_path) -> None:
    """It hangs on the data set from outside, and the optimizer that trained it is a name of the function that did."""
    after = rewritten(tmp_path, "detach_for_numpy", TAUGHT, "self.teacher(self.waves")
    assert changed_lines(TAUGHT, after) == ["return self.teacher(self.waves[i]).detach().numpy()"]


@pytest.mark.parametrize("source", STILL_TAUGHT.values(), ids=STILL_TAUGHT)
def test_a_teacher_that_may_train_on(tmp_path, source: str) -> None:
    assert rewritten(tmp_path, "detach_for_numpy", source, "self.teacher(self.waves") == source


def test_frames_below_a_loader_are_data(tmp_path) -> None:
    """A transform that no data set of the program names is known by the loader's frames above it."""
    program = write(tmp_path, {"train.py": TRANSFORM + OPTIMIZER})
    frames = (
        Frame(file="/env/torch/utils/data/_utils/fetch.py", line=54, code="", library="torch"),
        Frame(file="train.py", line=line_of(TRANSFORM, "np.stack"), code=""),
    )
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message="it failed", frames=frames),))
    proposal = best("detach_for_numpy", program, incident=incident)
    assert proposal is not None
    (edit,) = proposal.edits
    assert TRANSFORM[: edit.start].endswith("out = self.bank(wave)") and edit.new == ".detach()"


def test_a_transform_elsewhere_is_detached_at_the_array(tmp_path) -> None:
    """Without such frames each value is detached where NumPy gets it: the module's output may be meant for a loss elsewhere."""
    after = rewritten(tmp_path, "detach_for_numpy", TRANSFORM + OPTIMIZER, "np.stack")
    assert changed_lines(TRANSFORM + OPTIMIZER, after) == [
        "return np.stack([out.detach().cpu().numpy(), (-out).detach().cpu().numpy()])"
    ]
