"""A recurrent layer that gets the batch first is told so; one whose output is read time first gets its input transposed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Frame, Incident
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

PROGRAM = """import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset


def collate(items):
    x = pad_sequence([s for s, _ in items]{padding})
    return x, torch.tensor([k for _, k in items])


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.norm = nn.LayerNorm(3)
        self.rnn = nn.GRU(3, hidden{option})
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        {read}


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(12, 5, 3), torch.randint(0, 2, (12,)))
    net = Net()
    for x, y in DataLoader(data, batch_size=4{loader}):
        loss = nn.functional.cross_entropy(net(x{moved}), y)
        loss.backward()
    return net


if __name__ == "__main__":
    main()
"""
LAST = "_, h = self.rnn(x)\n        return self.head(h[-1])"


def program(read: str = LAST, **given: str) -> str:
    """A training program whose forward is `read`."""
    parts = {"padding": "", "option": "", "loader": "", "moved": "", **given}
    return PROGRAM.format(read=read, **parts)


TOLD = ["self.rnn = nn.GRU(3, hidden, batch_first=True)"]
RIGHT = {
    "told already": program(option=", batch_first=True"),
    "told by a setting": program(option=", batch_first=hidden > 4"),
    "time first by the padding": program(loader=", collate_fn=collate"),
    "transposed by the caller": program(moved=".transpose(0, 1)"),
    "permuted in the forward": program("_, h = self.rnn(x.permute(1, 0, 2))\n        return self.head(h[-1])"),
    "one sequence": program("_, h = self.rnn(x.unsqueeze(0))\n        return self.head(h[-1])"),
    "packed": program(
        "_, h = self.rnn(nn.utils.rnn.pack_padded_sequence(x, [5], True))\n        return self.head(h[-1])"
    ),
    "read both ways": program("out, h = self.rnn(x)\n        return self.head(out[-1] + out[:, -1])"),
    "handed on": program("out, h = self.rnn(x)\n        return out, self.head(h[-1])"),
    "a loader that does not batch": program(loader=" and None").replace("batch_size=4 and None", "batch_size=None"),
}
WRONG = {
    "the last state": (program(), TOLD),
    "the last state of a padded batch": (
        program(padding=", batch_first=True", loader=", collate_fn=collate"),
        TOLD,
    ),
    "an entry of a batch that was moved": (
        program()
        .replace("for x, y in", "for batch in")
        .replace("        loss =", "        batch = {k: v.to('cpu') for k, v in batch.items()}\n        loss =")
        .replace("net(x), y", "net(batch['x']), batch['y']"),
        TOLD,
    ),
    "behind other layers": (program("_, h = self.rnn(self.norm(x.float()))\n        return self.head(h[-1])"), TOLD),
    "the whole output, batch first": (
        program("out, h = self.rnn(x)\n        last = self.head(out)[:, -1] + h[-1].sum()\n        return out[:, -1] + last"),
        TOLD,
    ),
    "the last output, time first": (
        program("out, _ = self.rnn(x)\n        out = self.head(out)\n        return out[-1]"),
        ["out, _ = self.rnn(x.transpose(0, 1))"],
    ),
    "a first state of the batch": (
        program(
            "n = x.size(0)\n        state = torch.zeros(1, n, 8)\n        _, h = self.rnn(x, state)\n        return self.head(h[-1])"
        ),
        TOLD,
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_layouts_stay(tmp_path, source: str) -> None:
    """Layers that are told, inputs that are time first, and outputs that are read both ways are left alone."""
    assert rewritten(tmp_path, "batch_first", source, "loss =") == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_layout_is_told(tmp_path, source: str, wanted: list[str]) -> None:
    """The edit follows how the output is read; a second time nothing is left to do."""
    after = rewritten(tmp_path, "batch_first", source, "loss =")
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "batch_first", after, "loss =") == after


def test_a_first_state_is_not_turned_round(tmp_path) -> None:
    """A state made for `x.size(0)` samples is right: it is the layer that reads the batch second."""
    source = WRONG["a first state of the batch"][0].replace("n = x", "batch = x").replace("1, n, 8", "1, batch, 8")
    message = "Expected hidden size (1, 5, 8), got [1, 4, 8]"
    assert rewritten(tmp_path, "state_of_batch", source, "_, h =", message=message) == source
    after = rewritten(tmp_path, "batch_first", source, "_, h =", message=message)
    assert changed_lines(source, after) == TOLD


ATTENTION = """import torch
from dataclasses import dataclass
from torch import nn

@dataclass
class Batch:
    x: torch.Tensor
    padding: torch.Tensor

    @classmethod
    def draw(cls, n):
        rows = [torch.randn(5, 4) for _ in range(n)]
        return cls(nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.zeros(n, 5, dtype=torch.bool))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        layer = nn.TransformerEncoderLayer(4, 2, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, padding):
        return self.encoder(self.norm(x), src_key_padding_mask=padding).mean(1)

batch = Batch.draw(3)
loss = Net()(batch.x, batch.padding).sum()
"""


@pytest.mark.torch
def test_an_attention_layer_is_told(tmp_path) -> None:
    """By the batch that a dataclass holds; only where what failed is the attention: elsewhere the layer may be right."""
    pytest.importorskip("torch")
    with pytest.raises((AssertionError, RuntimeError), match="key_padd"):
        exec(ATTENTION, {})  # noqa: S102
    record = failed({"train.py": line_of(ATTENTION, "loss =")}).exceptions[0]
    inside = Frame(file="torch/nn/functional.py", line=1, function="multi_head_attention_forward", library="torch")
    raised = Incident(exceptions=(replace(record, frames=(*record.frames, inside)),))
    proposal = best("batch_first", write(tmp_path, {"train.py": ATTENTION}), incident=raised)
    assert proposal is not None
    after = splice(ATTENTION, proposal.edits)
    assert changed_lines(ATTENTION, after) == [
        "layer = nn.TransformerEncoderLayer(4, 2, dropout=0.0, batch_first=True)"
    ]
    exec(after, {})  # noqa: S102
    assert rewritten(tmp_path, "batch_first", ATTENTION, "loss =") == ATTENTION


@pytest.mark.torch
def test_both_edits_make_one_gradient(tmp_path) -> None:
    """The layer that is told and the input that is transposed train alike; before, the loss refuses what it gets."""
    torch = pytest.importorskip("torch")
    sources = [program(), program("out, _ = self.rnn(x)\n        return self.head(out[-1])")]
    gradients = []
    for source in sources:
        with pytest.raises(ValueError, match="batch_size"):
            ran(source)
        after = rewritten(tmp_path, "batch_first", source, "loss =")
        gradients.append([one.grad for one in ran(after).parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True) if a is not None and b is not None)


def ran(source: str):
    """The module of a program after its training."""
    space: dict = {"__name__": "train"}
    exec(source, space)  # noqa: S102 - the program of this test
    return space["main"]()


MASKED = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, position):
        super().__init__()
        self.position = position
        layer = nn.TransformerEncoderLayer(8, 2)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x, padding):
        x = self.position(x)
        return self.encoder(x, src_key_padding_mask=padding).mean(1)
"""
REFUSED = "Expected key_padded_mask.shape[0] to be 7, but got 4"


def test_a_mask_that_did_not_fit_tells_the_layout(tmp_path) -> None:
    """The padding mask has a row for each sample, and so has the input that the live program had."""
    attends = Frame(file="torch/nn/functional.py", line=1, function="multi_head_attention_forward", library="torch")

    def proposed(shape: str, name: str = "x", mask: str = "padding"):
        program = write(tmp_path, {"train.py": MASKED.replace("mask=padding", f"mask={mask}")})
        raised = failed({"train.py": line_of(MASKED, "self.encoder(x")}, REFUSED, tensors={name: f"{shape} float32"})
        (record,) = raised.exceptions
        raised = replace(raised, exceptions=(replace(record, frames=(*record.frames, attends)),))
        return best("batch_first", program, incident=raised)

    proposal = proposed("[4, 7, 8]")
    assert proposal is not None
    assert changed_lines(MASKED, splice(MASKED, proposal.edits)) == [
        "layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)"
    ]
    assert proposed("[4, 7]", "padding") is not None
    assert proposed("[7, 4]", "padding") is None
    assert all(proposed("[4, 7]", "ids", mask) is not None for mask in ("ids == 0", "~ids.ne(0)"))
    assert proposed("[7, 4]", "ids", "ids == 0") is None
    assert proposed("[7, 5, 8]") is None
    assert proposed("[4, 4, 8]") is None


WINDOWS = """import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 8, 5), nn.GELU())

    def forward(self, waves):
        return self.conv(waves)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.mixer = nn.GRU(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, waves):
        _, last = self.mixer(self.encoder(waves).transpose(1, 2))
        return self.head(last[0])


net = Net()
loss = nn.functional.cross_entropy(net(waves), label)
"""


def test_a_convolution_of_another_module_has_the_batch_first(tmp_path) -> None:
    """Through the forward of the program's own module and a container that starts with a convolution."""
    after = rewritten(tmp_path, "batch_first", WINDOWS, "loss =")
    assert changed_lines(WINDOWS, after) == ["self.mixer = nn.GRU(8, 16, batch_first=True)"]


CARRIED = """from torch import nn

cell = nn.GRU(4, 8)

def run(rows, state):
    y, state = cell(rows, state)
    return y, state
"""


@pytest.mark.parametrize(("shape", "told"), [("[2, 6, 4]", True), ("[6, 2, 4]", False), ("[2, 2, 4]", False)])
def test_a_state_that_did_not_fit_tells_the_layout(tmp_path, shape: str, told: bool) -> None:  # noqa: FBT001
    """The state has a row for each sample, and so has the first axis of the input that the live program had."""
    source = CARRIED.replace("    return y, state\n", "    return y.mean(1)\n")
    refused = "Expected hidden size (1, 6, 8), got [1, 2, 8]"
    after = rewritten(
        tmp_path, "batch_first", source, "cell(rows", message=refused, tensors={"rows": f"{shape} float32"}
    )
    assert changed_lines(source, after) == (["cell = nn.GRU(4, 8, batch_first=True)"] if told else [])


SPELT = """from torch import nn

embed, cell, words = nn.Embedding(9, 4), nn.GRU(4, 8), nn.Linear(8, 9)


def run(ids, state):
    y, _ = cell(embed(ids), state)
    return words(y)
"""


@pytest.mark.parametrize(("kind", "told"), [("[2, 6] int64", True), ("[6, 2] int64", False), ("[2, 6] float32", False)])
def test_ids_that_are_embedded_tell_the_layout(tmp_path, kind: str, told: bool) -> None:  # noqa: FBT001
    refused = "Expected hidden size (1, 6, 8), got [1, 2, 8]"
    after = rewritten(tmp_path, "batch_first", SPELT, "cell(embed", message=refused, tensors={"ids": kind})
    assert ("nn.GRU(4, 8, batch_first=True)" in after) is told


LATENT = """from torch import nn

rec = nn.GRU(4, 6)


def encode(waves, noise):
    _, last = rec(waves.flip(1))
    return last[-1] + noise
"""


@pytest.mark.parametrize(
    ("shape", "sizes", "told"),
    [("[8, 5, 4]", (5, 8), True), ("[8, 5, 4]", (6, 7), False), ("[8, 8, 4]", (8, 8), False), ("[8, 5, 5]", (5, 8), False)],
    ids=["batch and time", "other sizes", "alike", "features alike"],
)  # fmt: skip
def test_what_meets_the_last_state_tells_the_layout(tmp_path, shape: str, sizes: tuple[int, int], told: bool) -> None:  # noqa: FBT001
    """A tensor of the batch's size did not fit what the layer made for each step of time."""
    message = (
        f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at non-singleton dimension 0"
    )
    after = rewritten(
        tmp_path, "batch_first", LATENT, "last[-1]", message=message, tensors={"waves": f"{shape} float32"}
    )
    assert changed_lines(LATENT, after) == (["rec = nn.GRU(4, 6, batch_first=True)"] if told else [])


def test_a_padding_mask_reads_the_output_batch_first(tmp_path) -> None:
    """`output[~padding]` takes what the mask keeps of each sample."""
    source = """from torch import nn

attention = nn.MultiheadAttention(8, 2)

def run(x, padding):
    output, _ = attention(x, x, x, key_padding_mask=padding)
    return output[~padding]
"""
    attends = Frame(file="torch/nn/functional.py", line=1, function="multi_head_attention_forward", library="torch")
    program = write(tmp_path, {"train.py": source})
    raised = failed({"train.py": line_of(source, "attention(x")}, REFUSED, tensors={"x": "[4, 7, 8] float32"})
    (record,) = raised.exceptions
    raised = replace(raised, exceptions=(replace(record, frames=(*record.frames, attends)),))
    proposal = best("batch_first", program, incident=raised)
    assert proposal is not None
    assert "batch_first=True" in proposal.edits[0].new
