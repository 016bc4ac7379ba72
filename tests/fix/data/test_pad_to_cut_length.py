"""What a data set cuts to a fixed length is padded to it, where a zero is no matter of choice."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

WORKER = "Trying to resize storage that is not resizable"
ROW = "stack expects each tensor to be equal size, but got [1000] at entry 0 and [640] at entry 3"
STEREO = "stack expects each tensor to be equal size, but got [2, 1000] at entry 0 and [2, 640] at entry 3"
HEAD = """import numpy as np
import random
import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

N = 1000
"""
CLIPS = """

class Clips(Dataset):
    def __init__(self, clips, n=1000):
        self.clips, self.table, self.n = clips, [], n

    def __getitem__(self, i):
        wave = torch.from_numpy(self.clips[i])
        CUT
        return wave, 0
"""


def _clips(*lines: str) -> str:
    return HEAD + CLIPS.replace("CUT", "\n        ".join(lines))


RIGHT = {
    "another failure": (_clips("wave = wave[:N]"), "it failed"),
    "padded behind": (_clips("wave = wave[:N]", "wave = F.pad(wave, (0, N - len(wave)))"), WORKER),
    "padded before": (_clips("wave = F.pad(wave, (0, max(0, N - len(wave))))", "wave = wave[:N]"), WORKER),
    "joined with silence": (_clips("wave = torch.cat([wave, torch.zeros(N)])[:N]"), WORKER),
    "tiled": (_clips("wave = wave.repeat(N // len(wave) + 1)[:N]"), WORKER),
    "short ones seen to": (_clips("if len(wave) < N:", "    return self[i + 1]", "wave = wave[:N]"), WORKER),
    "windows of one series": (_clips("wave = self.clips[i : i + N]"), WORKER),
    "windows of the data as a whole": (_clips("wave = self.clips", "wave = wave[i * N : i * N + N]"), WORKER),
    "windows of a table": (_clips("start = self.table[i]", "wave = wave[start : start + N]"), WORKER),
    "a length of the sample's own": (_clips("n = len(wave) // 2", "wave = wave[:n]"), WORKER),
    "a length of another table": (_clips("wave = wave[: self.table[i]]"), WORKER),
    "a length that a method changes": (
        _clips("wave = wave[: self.n]").replace("        wave = torch", "        self.n = 2 * i\n        wave = torch"),
        WORKER,
    ),
    "windows one after another": (
        _clips("for at in range(0, len(wave), N):", "    piece = wave[at : at + N]"),
        WORKER,
    ),
    "a place too near to the end": (
        _clips("start = random.randrange(len(wave))", "wave = wave[start : start + N]"),
        WORKER,
    ),
    "all but the last": (_clips("wave = wave[1:]"), WORKER),
    "a part of a vector": (_clips("wave = wave[:, 3]"), WORKER),
    "tokens, for which a word has to stand": (
        _clips("wave = wave[:N]") + "\n\nmodel = torch.nn.Embedding(9, 4)\n",
        WORKER,
    ),
    "labels beside frames": (
        _clips("wave = wave[:N]", "labels = torch.zeros_like(wave)", "labels = labels[:N]"),
        WORKER,
    ),
    "labels": (_clips("labels = wave", "labels = labels[:N]"), WORKER),
    "neither tensor nor array": (_clips("wave = self.clips[i]", "wave = wave[:N]"), WORKER),
    "a list": (_clips("wave = list(self.clips[i])", "wave = wave[:N]"), WORKER),
    "a cut that no data set runs": (HEAD + "def cut(wave: torch.Tensor):\n    return wave[:N]\n", WORKER),
}
WRONG = {
    "to a number of the module": (
        _clips("wave = wave[:N]"),
        ROW,
        ["wave = F.pad(wave, (0, N - len(wave)))"],
    ),
    "of unknown dimensions": (
        _clips("wave = wave[:N]"),
        WORKER,
        ["wave = F.pad(wave, (0, 0) * (wave.dim() - 1) + (0, N - len(wave)))"],
    ),
    "where it is longer": (
        _clips("if len(wave) > self.n:", "    wave = wave[: self.n]"),
        ROW,
        ["wave = F.pad(wave, (0, self.n - len(wave)))"],
    ),
    "from a place that is drawn": (
        _clips("start = random.randint(0, max(0, len(wave) - N))", "wave = wave[start : start + N]"),
        ROW,
        ["wave = F.pad(wave, (0, N - len(wave)))"],
    ),
    "in both branches": (
        _clips("if self.table:", "    wave = wave[5 : 5 + N]", "else:", "    wave = wave[:N]"),
        ROW,
        ["wave = F.pad(wave, (0, N - len(wave)))"],
    ),
    "along the last dimension": (
        _clips("wave = wave[..., :N]"),
        STEREO,
        ["wave = F.pad(wave, (0, N - wave.shape[-1]))"],
    ),
    "along the second of two": (
        _clips("wave = wave[:, :N]"),
        STEREO,
        ["wave = F.pad(wave, (0, N - wave.shape[1]))"],
    ),
    "an array": (
        _clips("wave = np.load(self.clips[i])", "wave = wave[:N]"),
        ROW,
        ["wave = np.pad(wave, (0, N - len(wave)))"],
    ),
    "an array of unknown dimensions": (
        _clips("wave = np.load(self.clips[i])", "wave = wave[:, :N]"),
        WORKER,
        ["wave = np.pad(wave, [(0, 0)] * 1 + [(0, N - wave.shape[1])] + [(0, 0)] * (wave.ndim - 2))"],
    ),
    "an array of two dimensions": (
        _clips("wave = np.load(self.clips[i])", "wave = wave[:, :N]"),
        STEREO,
        ["wave = np.pad(wave, [(0, 0), (0, N - wave.shape[1])])"],
    ),
    "made a tensor at once": (
        _clips("wave = torch.tensor(self.clips[i][:N])"),
        ROW,
        ["wave = F.pad(wave, (0, N - len(wave)))"],
    ),
    "or left whole": (
        _clips("wave = wave[:N] if len(wave) > N else wave"),
        ROW,
        ["wave = F.pad(wave, (0, N - len(wave)))"],
    ),
    "handed on at once": (
        _clips("return torch.log1p(wave[:N]), 1"),
        ROW,
        ["wave = wave[:N]", "return torch.log1p(F.pad(wave, (0, N - len(wave)))), 1"],
    ),
    "by a method": (
        _clips("wave = self.cut(wave)")
        + "\n    def cut(self, wave):\n        if len(wave) > self.n:\n            return wave[: self.n]\n        return wave\n",
        ROW,
        ["return F.pad(wave, (0, self.n - len(wave)))"],
    ),
    "by a transform": (
        HEAD
        + "class Crop:\n    def __init__(self, n):\n        self.n = n\n\n    def __call__(self, wave):\n        return wave[: self.n]\n"
        + CLIPS.replace("CUT", "wave = self.cut(wave)")
        .replace("n=1000", "cut, n=1000")
        .replace("self.n = clips, [], n", "self.n = clips, [], n\n        self.cut = cut")
        + "\n\ndata = Clips([], Crop(1000))\n",
        ROW,
        ["wave = wave[: self.n]", "return F.pad(wave, (0, self.n - len(wave)))"],
    ),
    "by a function of one's own": (
        HEAD + "def cut(wave, n):\n    return wave[:n]\n" + CLIPS.replace("CUT", "wave = cut(wave, self.n)"),
        ROW,
        ["wave = wave[:n]", "return F.pad(wave, (0, n - len(wave)))"],
    ),
}


@pytest.mark.parametrize(("source", "message"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, message: str) -> None:
    """What is padded, what is a window of a series, and what no zero can stand for, is left alone."""
    assert rewritten(tmp_path, "pad_to_cut_length", source, message=message) == source


@pytest.mark.parametrize(("source", "message", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, message: str, wanted: list[str]) -> None:
    """The short ones are padded along the axis of the cut; a second time nothing is left to do."""
    after = rewritten(tmp_path, "pad_to_cut_length", source, message=message)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "pad_to_cut_length", after, message=message) == after


def test_labels_are_only_pointed_at(tmp_path) -> None:
    """Where the author has to choose the padding, the line is named without an edit."""
    source = _clips("labels = wave", "labels = labels[:N]")
    found = best("pad_to_cut_length", write(tmp_path, {"train.py": source}), incident=failed(message=WORKER))
    assert found is not None
    assert (found.edits, found.culprit.code) == ((), "labels = labels[:N]")
