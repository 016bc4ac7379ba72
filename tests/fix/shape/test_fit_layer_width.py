"""The one linear layer of the wrong width gets the width of its input."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.patch import Patch
from explainer.source.program import read_program
from tests.fix.rewriting import changed_lines, failed, rewritten, write

HEAD = "from torch import nn\n"
SHAPES = {"message": "mat1 and mat2 shapes cannot be multiplied (2x196 and 256x10)"}
NET = """class Net(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.first = nn.Linear(WIDTH, hidden)
        self.last = nn.Linear(width * 4, 10)

    def forward(self, x):
        x = self.first(x.flatten(1))
        return self.last(x)
"""
RUN = {"message": "mat1 and mat2 shapes cannot be multiplied (24x1152 and 512x64)"}


def net(width: str) -> str:
    return HEAD + NET.replace("WIDTH", width)


RIGHT = {
    "another layer failed": (net("width * 4 * 4"), "self.last(x)", RUN),
    "sides that are not whole": (
        net("width * 4 * 4"),
        "self.first(x",
        {"message": "mat1 and mat2 shapes cannot be multiplied (24x960 and 512x64)"},
    ),
    "a factor that does not divide": (net("width * 3 * 3"), "self.first(x", RUN),
    "no number in it": (net("width * hidden"), "self.first(x", RUN),
    "a sum": (net("width + 4"), "self.first(x", RUN),
    "another message": (HEAD + "f = nn.Linear(256, 10)\n", "", {}),
    "no layer of that width": (HEAD + "f = nn.Linear(128, 10)\n", "", SHAPES),
    "two layers of that shape": (HEAD + "f = nn.Linear(256, 10)\ng = nn.Linear(256, 10)\n", "", SHAPES),
    "a width that is not known": (HEAD + "f = nn.Linear(width, 10)\n", "", SHAPES),
}
WRONG = {
    "a square": (net("width * 4 * 4"), "self.first(x", RUN, ["self.first = nn.Linear(width * 6 * 6, hidden)"]),
    "a lone number": (net("16 * width"), "self.first(x", RUN, ["self.first = nn.Linear(36 * width, hidden)"]),
    "two of that shape": (
        HEAD + "f = nn.Linear(256, 10)\ng = nn.Linear(256, 10)\ny = g(x)\n",
        "y = g(x)",
        SHAPES,
        ["g = nn.Linear(196, 10)"],
    ),
    "a number": (HEAD + "f = nn.Linear(256, 10)\n", "", SHAPES, ["f = nn.Linear(196, 10)"]),
    "a product": (
        HEAD + "f = nn.Sequential(nn.Flatten(), nn.Linear(4 * 8 * 8, 10))\n",
        "",
        SHAPES,
        ["f = nn.Sequential(nn.Flatten(), nn.Linear(196, 10))"],
    ),
    "by its outputs": (
        HEAD + "f = nn.Linear(256, 10)\ng = nn.Linear(256, 64)\n",
        "",
        SHAPES,
        ["f = nn.Linear(196, 10)"],
    ),
    "a constant": (HEAD + "WIDTH = 256\nf = nn.Linear(WIDTH, 10)\n", "", SHAPES, ["f = nn.Linear(196, 10)"]),
}

BOTH = """class Tagger(nn.Module):
    def __init__(self, config, hidden, bidirectional):
        super().__init__()
        self.rnn = nn.LSTM(8, hidden, bidirectional=FLAG)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[0])
"""
TWICE = {"message": "mat1 and mat2 shapes cannot be multiplied (32x40 and 20x4)"}


def tagger(flag: str, width: str) -> str:
    return HEAD + BOTH.replace("FLAG", flag).replace("WIDTH", width)


RIGHT |= {
    "one direction": (tagger("False", "hidden"), "self.head(", TWICE),
    "not twice the width": (tagger("True", "hidden"), "self.head(", {"message": TWICE["message"].replace("40", "60")}),
    "twice already": (tagger("True", "hidden * 2"), "self.head(", {"message": "mat1 and mat2 shapes cannot be multiplied (32x30 and 40x4)"}),
}  # fmt: skip
WRONG |= {
    "both directions": (tagger("True", "hidden"), "self.head(", TWICE, ["self.head = nn.Linear(hidden * 2, 4)"]),
    "both directions by a parameter": (
        tagger("bidirectional", "hidden"), "self.head(", TWICE, ["self.head = nn.Linear(hidden * (2 if bidirectional else 1), 4)"],
    ),
    "both directions by a setting": (
        tagger("config.both", "config.hidden"), "self.head(", TWICE, ["self.head = nn.Linear(config.hidden * (2 if config.both else 1), 4)"],
    ),
    "both directions by a key": (tagger("True", 'config["hidden"]'), "self.head(", TWICE, ['self.head = nn.Linear(config["hidden"] * 2, 4)']),
}  # fmt: skip


BY_PROPERTY = """class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.LSTM(8, hidden, bidirectional=FLAG)

    @property
    def out_features(self):
        return self.rnn.hidden_size

    def forward(self, x):
        return self.rnn(x)[0]

encoder = Encoder(20)
head = nn.Linear(encoder.out_features, 4)
y = head(encoder(x))
"""
RIGHT["one direction by a property"] = (HEAD + BY_PROPERTY.replace("FLAG", "False"), "y = head(", TWICE)
WRONG |= {
    "both directions by a property": (
        HEAD + BY_PROPERTY.replace("FLAG", "True"), "y = head(", TWICE, ["return self.rnn.hidden_size * (2 if self.rnn.bidirectional else 1)"],
    ),
    "both directions by a property of the class": (
        HEAD + BY_PROPERTY.replace("FLAG", "True").replace("self.rnn.hidden_size", "self.width"), "y = head(", TWICE, ["return self.width * 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Other messages, and programs in which several layers may be meant, are left alone."""
    assert rewritten(tmp_path, "fit_layer_width", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The width is that of the message; a second time nothing is left to do."""
    after = rewritten(tmp_path, "fit_layer_width", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "fit_layer_width", after, None if at not in after else at or None, **given) == after


@pytest.mark.parametrize(
    ("code", "wanted"), [('cfg["flat"], cfg["hidden"]', "flat: 196\nhidden: 10\n"), ('cfg["hidden"], 10', None)]
)
def test_a_width_of_a_file(code: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """The configuration that names the width is edited, where no layer says another number."""
    (tmp_path / "net.yaml").write_text("flat: 256\nhidden: 10\n")
    text = f"import yaml\nfrom torch import nn\ncfg = yaml.safe_load(open('net.yaml'))\nhead = nn.Linear({code})\ny = head(x)\n"
    (tmp_path / "train.py").write_text(text)
    program = read_program(str(tmp_path), ["train.py"])
    incident = failed({"train.py": 5}, SHAPES["message"])
    found = list(find_codemod("fit_layer_width")(Context(program=program, incident=incident)))
    if wanted is None:
        assert [(one.edits, one.culprit.line) for one in found] == [((), 4)]
        return
    (one,) = found
    patch = make_patch(one.edits, program.editable(edit.file for edit in one.edits), program.root)
    assert isinstance(patch, Patch)
    assert [change.after.decode() for change in patch.files] == [wanted]


def test_a_layer_whose_width_the_author_says_is_named(tmp_path: pathlib.Path) -> None:
    """The one that the failing line runs; another model would be built by any edit."""
    source = """from torch import nn
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
    def forward(self, x, source):
        return self.q(x), self.kv(source)
"""
    sizes = "mat1 and mat2 shapes cannot be multiplied (256x48 and 64x128)"
    alone = source.replace("self.q(x), self.kv(source)", "self.kv(source)")
    for text, wanted in ((source, []), (alone, [6])):
        program = write(tmp_path, {"train.py": text})
        context = Context(program=program, incident=failed({"train.py": 8}, sizes))
        found = list(find_codemod("fit_layer_width")(context))
        assert [one.culprit.line for one in found] == wanted
        assert not any(one.edits for one in found)


SHARED = """from torch import nn
class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.rnn, self.fc = nn.LSTM(3, hidden, bidirectional=True), nn.Linear(hidden, 2)
    def forward(self, x):
        return self.fc(self.rnn(x)[0])
"""


def test_a_default_that_sizes_another_layer_too(tmp_path: pathlib.Path) -> None:
    """Another default would build the recurrent layer anew: the width is doubled where it is read."""
    message = "mat1 and mat2 shapes cannot be multiplied (35x16 and 8x2)"
    after = rewritten(tmp_path, "fit_layer_width", SHARED, "return self.fc", message=message)
    assert changed_lines(SHARED, after) == [
        "self.rnn, self.fc = nn.LSTM(3, hidden, bidirectional=True), nn.Linear(hidden * 2, 2)"
    ]


COUNTED = """from torch import nn
class Net(nn.Module):
    def __init__(self, width, hidden, classes):
        super().__init__()
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(2 * width * 7 * 7, hidden), nn.ReLU(), nn.Linear(hidden, classes))
    def forward(self, x):
        return self.classifier(x)
net = Net(12, 48, 4)
"""


def test_the_width_that_is_counted_out(tmp_path: pathlib.Path) -> None:
    """Of several layers whose widths have names; the sides of the square change, and the factor beside them stays."""
    message = "mat1 and mat2 shapes cannot be multiplied (24x1536 and 1176x48)"
    after = rewritten(tmp_path, "fit_layer_width", COUNTED, "return self.classifier", message=message)
    assert [line for line in changed_lines(COUNTED, after) if "2 * width * 8 * 8, hidden" in line]


CONDITIONAL = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.mean = nn.Linear(32, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 20))
        self.code = nn.Embedding(5, 4)
    def forward(self, z, y):
        GIVEN
        return self.dec(z)
net = Net()
"""
JOINED = "mat1 and mat2 shapes cannot be multiplied (16x12 and 8x32)"


def test_a_width_by_name_grows_by_what_is_joined(tmp_path: pathlib.Path) -> None:
    """Only that of the layer which gets it: the name sizes others too."""
    source = CONDITIONAL.replace("GIVEN", "z = torch.cat([z, self.code(y)], -1)")
    after = rewritten(tmp_path, "fit_layer_width", source, "return self.dec", message=JOINED)
    assert [one.strip() for one in changed_lines(source, after)] == [
        "self.dec = nn.Sequential(nn.Linear(latent + 4, 32), nn.ReLU(), nn.Linear(32, 20))"
    ]
    other = CONDITIONAL.replace("GIVEN", "z = z * 2")
    assert rewritten(tmp_path, "fit_layer_width", other, "return self.dec", message=JOINED) == other


def test_a_sample_that_is_no_row_yet(tmp_path: pathlib.Path) -> None:
    """The layer is built for all numbers of a sample: it is the sample that is to be made a row."""
    source = "from torch import nn\nnet = nn.Linear(784, 64)\nout = net(images)\n"
    given = {"message": "mat1 and mat2 shapes cannot be multiplied (224x28 and 784x64)"}
    seen = {"images": "[8, 28, 28] float32"}
    assert rewritten(tmp_path, "fit_layer_width", source, "out =", tensors=seen, **given) == source
    assert rewritten(tmp_path, "fit_layer_width", source, "out =", **given) != source
    turned = {"images": "[8, 784, 28] float32"}
    assert rewritten(tmp_path, "fit_layer_width", source, "out =", tensors=turned, **given) == source
