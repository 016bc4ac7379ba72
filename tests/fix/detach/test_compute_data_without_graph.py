"""What data sets keep, and processes are handed, is computed without a graph where nothing trains what computes it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, line_of, write

SENT = "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support"
AGAIN = "Trying to backward through the graph a second time (or directly access saved tensors)"
HEAD = """import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


class Encoder(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


class Gaussian:
    def __init__(self, mean):
        self.mean = mean

    def mean_of(self):
        return self.mean


def embed(model, batches):
    rows = []
    for batch, _ in batches:
        rows.append(model(batch.float()))
    return torch.cat(rows)


"""
MAIN = """

def train(head, loader, parameters):
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    for rows, wanted in loader:
        loss = nn.functional.cross_entropy(head(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(clips, tags):
    encoder = Encoder()
    head = nn.Linear(4, 3)
    PREPARE
    loader = DataLoader(DATA, batch_size=4, num_workers=2)
    train(head, loader, head.parameters())
"""


def program_of(kept: str, data: str, prepare: str = "encoder.eval()") -> str:
    return HEAD + kept + MAIN.replace("PREPARE", prepare).replace("DATA", data)


IN_INIT = """class Clips(Dataset):
    def __init__(self, encoder, clips, tags):
        self.features = torch.cat([encoder(part) for part in clips.split(4)])
        self.tags = tags

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, i):
        return self.features[i], self.tags[i]
"""
BUILT = """class Rooms(Dataset):
    def __init__(self, net, pictures, kinds):
        self.net, self.pictures, self.kinds = net, pictures, kinds
        self.items = []
        self.build_cache()

    def build_cache(self):
        for picture in self.pictures:
            h = self.net(picture)
            self.items.append(h / h.norm())

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        return self.items[i], self.kinds[i]
"""
LAZY = """class Cached(Dataset):
    def __init__(self, backbone, images, labels):
        self.backbone = backbone
        self.images, self.labels, self.cache = images, labels, {}

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = self.backbone(self.images[i])
        return self.cache[i], self.labels[i]
"""
HOLDS = """class Rows:
    def __init__(self, rows, labels):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"x": self.rows[i], "y": self.labels[i]}
"""
STREAM = """class Stream(IterableDataset):
    def __init__(self, encoder, clips, tags):
        self.encoder, self.clips, self.tags = encoder, clips, tags

    def __iter__(self):
        for clip, tag in zip(self.clips, self.tags):
            yield self.encoder(clip).squeeze(0), tag
"""
ENCODE = """    def encode(self, x):
        return Gaussian(self.layers(x))

    def forward"""
GIVEN = {
    "a tensor of `__init__`": (
        program_of(IN_INIT, "Clips(encoder, clips, tags)"),
        ["with torch.no_grad():", "self.features = torch.cat([encoder(part) for part in clips.split(4)])"],
    ),
    "the mean of what an encoder gives": (
        program_of(IN_INIT.replace("encoder(part)", "encoder.encode(part).mean_of()"), "Clips(encoder, clips, tags)").replace(
            "    def forward", ENCODE
        ),
        ["with torch.no_grad():", "self.features = torch.cat([encoder.encode(part).mean_of() for part in clips.split(4)])"],
    ),
    "a list of a method": (program_of(BUILT, "Rooms(encoder, clips, tags)"), ["with torch.no_grad():", "h = self.net(picture)"]),
    "a dictionary that rows fill": (
        program_of(LAZY, "Cached(encoder, clips, tags)"),
        ["with torch.no_grad():", "self.cache[i] = self.backbone(self.images[i])"],
    ),
    "a list of main": (
        program_of("", "TensorDataset(torch.stack(features), tags)", "features = [encoder(x) for x in clips]"),
        ["with torch.no_grad():", "features = [encoder(x) for x in clips]"],
    ),
    "a helper's tensor": (
        program_of("", "TensorDataset(features, tags)", "features = embed(encoder, DataLoader(TensorDataset(clips, tags)))"),
        ["with torch.no_grad():", "rows.append(model(batch.float()))"],
    ),
    "a helper's tensor in a class of no base": (
        program_of(HOLDS, "Rows(embed(encoder, [(clips, tags)]), tags)"),
        ["with torch.no_grad():", "rows.append(model(batch.float()))"],
    ),
    "two modules in a row": (
        program_of("", "TensorDataset(z, tags)", "second = nn.Linear(4, 4)\n    h = encoder(clips)\n    z = second(h)"),
        ["with torch.no_grad():", "h = encoder(clips)", "z = second(h)"],
    ),
    "pairs in a list": (
        program_of("", "list(zip(features, tags))", "features = encoder(clips)"),
        ["with torch.no_grad():", "features = encoder(clips)"],
    ),
    "a helper that the step runs too": (
        program_of("", "TensorDataset(vectors, tags)", "vectors = embed(encoder, [(clips, tags)])").replace("head(rows)", "embed(head, [(rows, wanted)])"),
        ["with torch.no_grad():", "vectors = embed(encoder, [(clips, tags)])"],
    ),
    "a generator": (
        program_of("", "TensorDataset(torch.stack(list(rows)), tags)", "rows = (encoder(x)[0] for x in clips)"),
        ["rows = (encoder(x)[0].detach() for x in clips)"],
    ),
    "recorded gradients": (
        program_of(IN_INIT, "Clips(encoder, clips, tags)", "print({n: p.grad.norm() for n, p in encoder.named_parameters() if p.grad is not None})"),
        ["with torch.no_grad():", "self.features = torch.cat([encoder(part) for part in clips.split(4)])"],
    ),
    "counted parameters": (
        program_of(IN_INIT, "Clips(encoder, clips, tags)", "print(sum(p.numel() for p in encoder.parameters()))"),
        ["with torch.no_grad():", "self.features = torch.cat([encoder(part) for part in clips.split(4)])"],
    ),
}  # fmt: skip
ROWS = {
    "a stream's rows": (
        program_of(STREAM, "Stream(encoder, clips, tags)"),
        ["yield self.encoder(clip).squeeze(0).detach(), tag"],
    ),
    "a row that is computed anew": (
        program_of(LAZY.replace("        if i not in self.cache:\n            self.cache[i] = ", "        row = ").replace("return self.cache[i],", "return row,"),
                   "Cached(encoder, clips, tags)"),
        ["with torch.no_grad():", "row = self.backbone(self.images[i])"],
    ),
}  # fmt: skip
STAYS = {
    "without a graph": program_of(IN_INIT.replace("self.features =", "with torch.no_grad():\n            self.features ="), "Clips(encoder, clips, tags)"),
    "detached": program_of(IN_INIT.replace("encoder(part)", "encoder(part).detach()"), "Clips(encoder, clips, tags)"),
    "a frozen encoder": program_of(IN_INIT, "Clips(encoder, clips, tags)", "encoder.requires_grad_(False)"),
    "plain data": program_of("", "TensorDataset(clips.float() / 255, tags)"),
    "the module itself": program_of(
        LAZY.replace("self.backbone(self.images[i])", "self.images[i]"), "Cached(encoder, clips, tags)"
    ),
    "a network that keeps an activation": program_of(
        "class Net(nn.Module):\n    def forward(self, x):\n        self.last = self.layer(x)\n        return self.last\n",
        "TensorDataset(clips, tags)",
    ),
    "a parameter of the data's own": program_of(
        IN_INIT, "Clips(encoder, clips, tags)", "clips = nn.Parameter(clips)"
    ).replace("head.parameters())\n", "[clips])\n"),
}  # fmt: skip
TRAINED = {
    "the optimizer has it": program_of(IN_INIT, "Clips(encoder, clips, tags)").replace("head.parameters())\n", "[*head.parameters(), *encoder.parameters()])\n"),
    "the optimizer has what holds it": program_of(IN_INIT, "Clips(model[0], clips, tags)", "model = nn.Sequential(encoder, head)").replace(
        "head.parameters())\n", "model.parameters())\n"
    ),
    "a helper that runs it in each step": program_of("", "TensorDataset(vectors, tags)", "vectors = embed(head, [(clips, tags)])").replace("head(rows)", "embed(head, [(rows, wanted)])"),
    "gradients that are changed by hand": program_of(IN_INIT, "Clips(encoder, clips, tags)", "for p in encoder.parameters():\n        p.grad.add_(0.1)"),
    "weights that are changed by hand": program_of(IN_INIT, "Clips(encoder, clips, tags)", "for p in encoder.parameters():\n        p.data -= p.grad"),
    "a list of what trains": program_of(IN_INIT, "Clips(encoder, clips, tags)", "parameters = [p for p in encoder.parameters() if p.requires_grad]"),
}  # fmt: skip


def proposed(
    source: str, folder: pathlib.Path, message: str, at: str = "for rows, wanted in loader:"
) -> list[Proposal]:
    incident = failed({"train.py": line_of(source, at)}, message)
    context = Context(program=write(folder, {"train.py": source}), incident=incident)
    return list(find_codemod("compute_data_without_graph")(context))


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
@pytest.mark.parametrize("message", [SENT, AGAIN], ids=["sent", "again"])
def test_data_stays(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """What has no graph, or one that no module gives it, is left alone."""
    assert proposed(source, tmp_path, message) == []


@pytest.mark.parametrize("source", TRAINED.values(), ids=TRAINED)
@pytest.mark.parametrize("message", [SENT, AGAIN], ids=["sent", "again"])
def test_what_trains_is_only_named(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """The line is told, and no edit takes the gradient away that may be meant."""
    found = proposed(source, tmp_path, message)
    assert found
    assert [one.edits for one in found] == [()] * len(found)


@pytest.mark.parametrize(("source", "wanted"), GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("message", [SENT, AGAIN], ids=["sent", "again"])
def test_what_is_kept(tmp_path: pathlib.Path, source: str, wanted: list[str], message: str) -> None:
    """Its line leads, and a second time nothing is left to do."""
    (proposal,) = proposed(source, tmp_path, message)
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == [one for one in wanted if one not in source.splitlines()]
    compile(after, "train.py", "exec")
    assert proposal.culprit.code in source
    assert proposed(after, tmp_path, message) == []


@pytest.mark.parametrize(("source", "wanted"), ROWS.values(), ids=ROWS)
def test_rows_of_workers(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """They cannot be sent; without workers their graph is that of their own batch, and nothing is wrong."""
    (proposal,) = proposed(source, tmp_path, SENT)
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == wanted
    assert proposed(after, tmp_path, SENT) == []
    assert proposed(source, tmp_path, AGAIN) == []


HANDED = """import torch.multiprocessing as mp

def main(clips):
    encoder = Encoder()
    vectors = encoder(clips)
    HANDED
"""


@pytest.mark.parametrize(
    "handed",
    [
        "mp.spawn(work, args=(2, vectors), nprocs=2)",
        "p = mp.Process(target=work, args=(0, vectors))\n    p.start()",
        "mp.Pool(2).map(work, vectors)",
    ],
    ids=["spawn", "process", "pool"],
)
def test_what_processes_are_handed(tmp_path: pathlib.Path, handed: str) -> None:
    """The run that made it goes without a graph; where the encoder trains, another fix detaches what is sent."""
    source = HEAD + HANDED.replace("HANDED", handed)
    at = handed.splitlines()[-1].strip()
    (proposal,) = proposed(source, tmp_path, SENT, at)
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == ["with torch.no_grad():"] + ["vectors = encoder(clips)"]
    trained = source.replace("    vectors", "    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)\n    vectors")
    assert [one.edits for one in proposed(trained, tmp_path, SENT, at)] == [()]


HELD = """import lightning as L
from encoder import Encoder


class Clips(Dataset):
    def __init__(self, clips, tags):
        self.features = Encoder().embed(clips)
        self.tags = tags

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, i):
        return self.features[i], self.tags[i]


class Data(L.LightningDataModule):
    def setup(self, stage=None):
        self.rows = Clips(clips, tags)

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=4)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.head(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


L.Trainer(max_epochs=1).fit(Net(), datamodule=Data())
"""


def test_a_data_module_trains_nothing(tmp_path: pathlib.Path) -> None:
    """Lightning's data module is no module, though the trainer is handed it: its encoder serves the data."""
    source = (
        HEAD.replace("    def forward", "    def embed(self, x):\n        return self.layers(x)\n\n    def forward")
        + HELD
    )
    (proposal,) = proposed(source.replace("from encoder import Encoder\n", ""), tmp_path, AGAIN, at="L.Trainer(")
    assert [one.new for one in proposal.edits] != []
    assert proposal.culprit.code == "self.features = Encoder().embed(clips)"
