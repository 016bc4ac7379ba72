"""The features of an input are brought to the axis where a layer reads them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
"""
CONV = "Given groups=1, weight of size [32, 6, 5], expected input[8, 24, 6] to have 6 channels, but got 24 channels instead"
IMAGE = "Given groups=1, weight of size [8, 3, 3, 3], expected input[4, 32, 30, 3] to have 3 channels, but got 32 channels instead"
GREY = "Given groups=1, weight of size [8, 1, 3, 3], expected input[1, 4, 28, 28] to have 1 channels, but got 4 channels instead"
LINEAR = "mat1 and mat2 shapes cannot be multiplied (520x48 and 65x32)"
NORM = "Given normalized_shape=[16], expected input with shape [*, 16], but got input of size[8, 16, 20]"
IMAGES = "mat1 and mat2 shapes cannot be multiplied (224x28 and 784x64)"
VECTOR = "mat1 and mat2 shapes cannot be multiplied (1x8 and 1x32)"
SERIES = "input.size(-1) must be equal to input_size. Expected 1, got 24"
MODEL = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return self.layer({given}).relu()
"""
# The layer, its argument, the message, the tensor that the live program had, and the argument that is written.
WRONG = {
    "a series for a convolution": ("nn.Conv1d(6, 32, 5)", "x", CONV, None, "x.transpose(1, 2)"),
    "a convolution in a container": ("nn.Sequential(nn.Conv1d(6, 32, 5), nn.GELU())", "x", CONV, None, "x.transpose(1, 2)"),
    "an image with its channels last": ("nn.Conv2d(3, 8, 3)", "x / 255", IMAGE, None, "(x / 255).permute(0, 3, 1, 2)"),
    "an image without a channel": ("nn.Conv2d(1, 8, 3)", "x", GREY, "[4, 28, 28] float32", "x.unsqueeze(1)"),
    "a spectrum for a projection": ("nn.Linear(65, 32)", "x.log1p()", LINEAR, "[8, 65, 48] float32", "x.log1p().transpose(1, 2)"),
    "a width by name": ("nn.Linear(WIDTH, 32)", "torch.tanh(x)", LINEAR, "[8, 65, 48] float32", "torch.tanh(x).transpose(1, 2)"),
    "images for a network of rows": ("nn.Sequential(nn.Linear(784, 64), nn.ReLU())", "x", IMAGES, "[8, 28, 28] float32", "x.flatten(1)"),
    "features of a convolution": ("nn.Linear(784, 64)", "x / 2", IMAGES, "[8, 1, 28, 28] float32", "(x / 2).flatten(1)"),
    "a value for each sample": ("nn.Linear(1, 32)", "x / 100", VECTOR, "[8] float32", "(x / 100).unsqueeze(-1)"),
    "a series of one value a step": ("nn.GRU(1, 32)", "x", SERIES, "[8, 24] float32", "x.unsqueeze(-1)"),
    "channels before a norm": ("nn.LayerNorm(16)", "x", NORM, None, "x.transpose(1, 2)"),
}  # fmt: skip
RIGHT = {
    "no axis has the size": ("nn.Linear(65, 32)", "x", LINEAR, "[8, 64, 48] float32"),
    "images of another size": ("nn.Linear(784, 64)", "x", IMAGES, "[8, 27, 28] float32"),
    "rows already": ("nn.Linear(784, 64)", "x", IMAGES, "[224, 28] float32"),
    "two axes have it": ("nn.Linear(65, 32)", "x", LINEAR, "[8, 65, 65, 48] float32"),
    "the batch has it": ("nn.Linear(65, 32)", "x", LINEAR, "[65, 8, 48] float32"),
    "the shape is not known": ("nn.Linear(65, 32)", "x", LINEAR, None),
    "another layer raised": ("nn.Linear(60, 32)", "x", LINEAR, "[8, 65, 48] float32"),
    "one image of one channel": ("nn.Conv2d(1, 8, 3)", "x", GREY, "[1, 4, 28, 28] float32"),
    "a series of several values a step": ("nn.GRU(1, 32)", "x", SERIES, "[8, 12, 24] float32"),
    "a row of many features": ("nn.Linear(1, 32)", "x", VECTOR, "[1, 8] float32"),
    "a cut that is not known": ("nn.Linear(65, 32)", "x[:, :, :size]", LINEAR, "[8, 65, 48] float32"),
    "a shape that was changed on the way": ("nn.Linear(65, 32)", "x.flatten(1, 2)", LINEAR, "[8, 65, 48] float32"),
}


def written(folder: pathlib.Path, layer: str, given: str, message: str, tensor: str | None) -> list[str]:
    source = HEAD + MODEL.format(layer=layer, given=given)
    tensors = {"x": tensor} if tensor else {}
    return diff_lines(
        source, rewritten(folder, "axes_of_layer", source, "self.layer(", message=message, tensors=tensors)
    )


@pytest.mark.parametrize(("layer", "given", "message", "tensor", "wanted"), WRONG.values(), ids=WRONG)
def test_the_axis_is_moved(
    layer: str, given: str, message: str, tensor: str | None, wanted: str, tmp_path: pathlib.Path
) -> None:
    """Where just one other axis has the size that the layer was built for."""
    assert written(tmp_path, layer, given, message, tensor)[1:] == [f"+        return self.layer({wanted}).relu()"]


@pytest.mark.parametrize(("layer", "given", "message", "tensor"), RIGHT.values(), ids=RIGHT)
def test_what_is_not_clear_stays(
    layer: str, given: str, message: str, tensor: str | None, tmp_path: pathlib.Path
) -> None:
    """No axis, several axes, or a shape that was not seen."""
    assert written(tmp_path, layer, given, message, tensor) == []
