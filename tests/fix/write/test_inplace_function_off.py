"""In-place activations that no keyword names make a new tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "not in place": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(), nn.Linear(4, 1))
""",
        None,
    ),
    "False by position": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(False), nn.Linear(4, 1))
""",
        None,
    ),
    "a slope by position": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.LeakyReLU(0.1), nn.Linear(4, 1))
""",
        None,
    ),
    "an initialisation": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
nn.init.zeros_(net.weight)
""",
        None,
    ),
    "clipping": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
""",
        None,
    ),
    "under no_grad": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
with torch.no_grad():
    y = F.relu_(x)
""",
        None,
    ),
    "a function imported by its name alone": (
        """from torch.nn.functional import relu_
y = relu_(x)
""",
        None,
    ),
}
WRONG = {
    "True by position": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(True), nn.Linear(4, 1))
""",
        None,
        [
            "-net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(True), nn.Linear(4, 1))",
            "+net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(False), nn.Linear(4, 1))",
        ],
    ),
    "a slope and True": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.LeakyReLU(0.1, True), nn.Linear(4, 1))
""",
        None,
        [
            "-net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.LeakyReLU(0.1, True), nn.Linear(4, 1))",
            "+net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.LeakyReLU(0.1, False), nn.Linear(4, 1))",
        ],
    ),
    "a function": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = F.relu(x, True)
""",
        None,
        ["-y = F.relu(x, True)", "+y = F.relu(x, False)"],
    ),
    "an underscore": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
y = F.elu_(x)
""",
        None,
        ["-y = F.elu_(x)", "+y = F.elu(x)"],
    ),
    "a statement": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
torch.sigmoid_(h)
""",
        None,
        ["-torch.sigmoid_(h)", "+h = torch.sigmoid(h)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "inplace_function_off", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "inplace_function_off", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "inplace_function_off", after, still) == after
