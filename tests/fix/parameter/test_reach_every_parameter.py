"""DistributedDataParallel waits for no gradient that never comes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

HEAD = """import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
"""
RIGHT = {
    "every layer is used": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)

    def forward(self, x):
        return self.a(x)


model = DDP(Net())
""",
        "",
    ),
    "a layer that another method uses": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def tail(self, x):
        return self.b(x)

    def forward(self, x):
        return self.tail(self.a(x))


model = DDP(Net())
""",
        "",
    ),
    "a model that is not wrapped": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.a(x)


model = Net()
""",
        "",
    ),
    "a comprehension that tests what it does not run": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("a", "b")})

    def forward(self, x):
        names = [name.upper() for name, head in self.heads.items() if name != "a"]
        return {name: head(x) for name, head in self.heads.items()}, names


model = DDP(Net())
""",
        "",
    ),
    "a branch without layers": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)

    def forward(self, x):
        if x.ndim == 1:
            x = x[None]
        return self.a(x)


model = DDP(Net())
""",
        "",
    ),
    "a search that is on": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, k):
        return self.a(x) if k else self.b(x)


model = DDP(Net(), find_unused_parameters=True)
""",
        "",
    ),
}
WRONG = {
    "a layer that nothing uses": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.spare = nn.Linear(2, 1)

    def forward(self, x):
        return self.a(x)


model = DDP(Net())
""",
        "",
        ["self.spare = nn.Linear(2, 1).requires_grad_(False)"],
    ),
    "heads that only some batches have rows for": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(2, 2)
        self.heads = nn.ModuleDict({name: nn.Linear(2, 1) for name in ("x", "y")})

    def forward(self, x, task):
        out = {}
        for at, (name, head) in enumerate(self.heads.items()):
            rows = (task == at).nonzero().flatten()
            if len(rows):
                out[name] = head(self.trunk(x)[rows])
        return out


model = DDP(Net())
""",
        "",
        ["model = DDP(Net(), find_unused_parameters=True)"],
    ),
    "two branches": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, k):
        return self.a(x) if k else self.b(x)


model = DDP(Net())
""",
        "",
        ["model = DDP(Net(), find_unused_parameters=True)"],
    ),
    "a statement that skips a layer": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, deep):
        x = self.a(x)
        if deep:
            x = self.b(x)
        return x


net = Net()
model = DDP(net, device_ids=None)
""",
        "",
        ["model = DDP(net, device_ids=None, find_unused_parameters=True)"],
    ),
    "heads that a comprehension runs where the batch has their targets": (
        HEAD
        + """class Head(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field, self.layer = field, nn.Linear(2, 2)

    def losses(self, x):
        return self.layer(x).sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: Head(name) for name in ("box", "seam")})

    def forward(self, x, batch):
        return {name: head.losses(x) for name, head in self.heads.items() if head.field in batch}


model = DDP(Net())
""",
        "",
        ["model = DDP(Net(), find_unused_parameters=True)"],
    ),
    "one expert of a list": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(self, x, k):
        return self.experts[k](x)


model = DDP(Net())
""",
        "",
        ["model = DDP(Net(), find_unused_parameters=True)"],
    ),
}

ENCODER = (
    HEAD
    + """class Encoder(nn.Module):
    def __init__(self, pooling=True):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.pooler = nn.Linear(2, 2) if pooling else None

    def forward(self, x):
        x = self.layer(x)
        return x, self.pooler(x[:, 0]) if self.pooler is not None else None


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        tokens, _ = self.encoder(x)
        return self.head(tokens)


model = DDP(Tagger())
"""
)
WRONG["an output of a part that nothing takes"] = (ENCODER, "", ["model = DDP(Tagger(), find_unused_parameters=True)"])
RIGHT["an output of a part that is taken"] = (ENCODER.replace("tokens, _", "tokens, pooled"), "")

TOWERS = (
    HEAD
    + """class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_tower, self.text_tower = nn.Linear(4, 4), nn.Linear(4, 4)
        self.image_proj = nn.Linear(4, 2)
        self.text_proj = nn.Linear(4, 2)

    def forward(self, images, ids):
        photo = FIRST
        caption = self.text_proj(self.text_tower(ids))
        return photo @ caption.T


model = DDP(Pair())
"""
)
WRONG |= {
    "a line that was copied and not adapted": (
        TOWERS.replace("FIRST", "self.text_proj(self.image_tower(images))"), "", ["photo = self.image_proj(self.image_tower(images))"],
    ),
    "one layer for both, and a spare one": (
        TOWERS.replace("FIRST", "self.text_proj(self.text_tower(images))").replace("self.image_tower, self.text", "self.text").replace(
            "nn.Linear(4, 4), nn.Linear(4, 4)", "nn.Linear(4, 4)"
        ).replace("images", "x"),
        "", ["self.image_proj = nn.Linear(4, 2).requires_grad_(False)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Models whose every layer is used in each step are left alone."""
    assert rewritten(tmp_path, "reach_every_parameter", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """Unused layers are frozen, branches searched for; a second time nothing is left to do."""
    after = rewritten(tmp_path, "reach_every_parameter", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "reach_every_parameter", after, again) == after


STAGES = (
    HEAD
    + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.out = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x):
        return self.out(self.front(x))


def freeze(module, names):
    for name, p in module.named_parameters():
        p.requires_grad_(name.startswith(names))


model = DDP(Net())
for stage in (("front", "out"), ("out",)):
    freeze(model.module, stage)
"""
)


@pytest.mark.parametrize(
    ("frozen", "wanted"),
    [
        ("front.weight front.bias", ["model = DDP(Net(), find_unused_parameters=True)"]),
        ("front.weight", []),  # another parameter got no gradient, which is not frozen
        (None, []),
    ],
)
def test_what_a_later_stage_froze(tmp_path, frozen: str | None, wanted: list[str]) -> None:
    """Only what the live module shows: all that got no gradient was frozen since."""
    facts = {"live_unreduced": "front.weight front.bias", **({"live_frozen_since": frozen} if frozen else {})}
    assert changed_lines(STAGES, rewritten(tmp_path, "reach_every_parameter", STAGES, facts=facts)) == wanted


WEIGHED = "attributes:\n  shape: 4\n  color: 5\n  size: 3\nweights:\n  shape: 1.0\n  KEY: 0.5\n  size: 0.5\n"


@pytest.mark.parametrize(
    ("key", "unreduced", "new"),
    [
        ("colour", "heads.color.weight heads.color.bias", "color"),
        ("texture", "heads.color.weight heads.color.bias", None),
        ("colour", "heads.shape.weight", None),
        ("color", "heads.color.weight", None),
    ],
    ids=["mistyped", "another word", "another part", "right"],
)
def test_a_key_that_names_no_part(tmp_path: pathlib.Path, key: str, unreduced: str, new: str | None) -> None:
    """Beside the same keys of another mapping, for the part that the live module showed without a gradient."""
    (tmp_path / "config.yaml").write_text(WEIGHED.replace("KEY", key))
    program = write(tmp_path, {"train.py": "import yaml\ncfg = yaml.safe_load(open('config.yaml'))\n"})
    found = best("reach_every_parameter", program, incident=failed(facts={"live_unreduced": unreduced}))
    assert [one.new for one in (found.edits if found is not None else ())] == ([new] if new else [])
