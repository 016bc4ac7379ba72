"""Whether a program chooses what it gives its optimizers."""

from __future__ import annotations

import pytest

from explainer.source.network.ownership import chooses_parts
from tests.fix.rewriting import write

HEAD = "import torch\n\n\n"
CHOOSES = {
    "the head alone": "opt = torch.optim.Adam(model.head.parameters())\n",
    "the last layer": "opt = torch.optim.Adam(model[-1].parameters())\n",
    "a part of itself": """class Net(torch.nn.Module):
    def configure(self):
        return torch.optim.Adam(self.head.parameters())
""",
    "parts that a loop collects": """for p in model.head.parameters():
    chosen.append(p)
""",
    "words in a comprehension": "opt = torch.optim.Adam([p for n, p in model.named_parameters() if 'head' in n])\n",
    "words in a loop": """for n, p in model.named_parameters():
    if n.startswith("head"):
        chosen.append(p)
""",
    "words in a filter": "opt = torch.optim.Adam(p for _, p in filter(lambda x: 'head' in x[0], model.named_parameters()))\n",
    "groups that come later": "opt = torch.optim.Adam(model.parameters())\nopt.add_param_group({'params': more})\n",
}
GIVES_ALL = {
    "the model": "opt = torch.optim.Adam(model.parameters())\n",
    "what requires grad": "opt = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))\n",
    "the model of a trainer": """class Trainer:
    def build(self):
        return torch.optim.Adam(self.model.parameters())
""",
    "names of the configuration": """def groups(model, specs):
    return [{"params": [p for n, p in model.named_parameters() if n.startswith(one)]} for one in specs]
""",
    "a part that is frozen": """for p in model.features.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(model.parameters())
""",
    "a part that is counted and clipped": """opt = torch.optim.Adam(model.parameters())
print(sum(p.numel() for p in model.head.parameters()))
torch.nn.utils.clip_grad_norm_(model.head.parameters(), 1.0)
""",
    "the wrapped model": "opt = torch.optim.Adam(wrapper.module.parameters())\n",
}


@pytest.mark.parametrize("source", CHOOSES.values(), ids=CHOOSES)
def test_a_choice(tmp_path, source: str) -> None:
    """Parts that are selected or named in the text leave the others out on purpose."""
    assert chooses_parts(write(tmp_path, {"train.py": HEAD + source}))


@pytest.mark.parametrize("source", GIVES_ALL.values(), ids=GIVES_ALL)
def test_no_choice(tmp_path, source: str) -> None:
    """Whole models, filters by flag, and names that stand elsewhere are no choice."""
    assert not chooses_parts(write(tmp_path, {"train.py": HEAD + source}))
