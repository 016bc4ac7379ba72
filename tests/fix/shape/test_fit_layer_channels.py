"""The first layer of a network is built for the channels that the data has."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

CONV = "Given groups=1, weight of size [16, 1, 3, 3], expected input[8, 3, 24, 24] to have 1 channels, but got 3 channels instead"
UNBATCHED = "Given groups=1, weight of size [16, 1, 3, 3], expected input[1, 8, 24, 24] to have 1 channels, but got 8 channels instead"
RNN = "input.size(-1) must be equal to input_size. Expected 6, got 24"
NORM = "Given normalized_shape=[16], expected input with shape [*, 16], but got input of size[8, 20, 12]"
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=1):
        super().__init__()
        self.before = nn.Conv2d(3, 3, 1)
        self.first = {layer}

    def forward(self, x):
        return self.first({given})
"""
WRONG = {
    "a convolution": ("nn.Conv2d(1, 16, 3)", CONV, "nn.Conv2d(3, 16, 3)"),
    "in a container": ("nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU())", CONV, "nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU())"),
    "a recurrent layer": ("nn.LSTM(6, 32)", RNN, "nn.LSTM(24, 32)"),
    "a norm": ("nn.LayerNorm(16)", NORM, "nn.LayerNorm(12)"),
}  # fmt: skip
JOINED = {
    "channels that are joined": "torch.cat([x, self.before(x)], dim=1)",
    "channels that are joined by position": "torch.cat((self.before(x), x), 1)",
}
RIGHT = {
    "a width by name": ("nn.Conv2d(width, 16, 3)", "x", CONV),
    "behind another layer": ("nn.Conv2d(1, 16, 3)", "self.before(x)", CONV),
    "another layer": ("nn.Conv2d(2, 16, 3)", "x", CONV),
    "images with their channels last": (
        "nn.Conv2d(3, 8, 3)",
        "x",
        "Given groups=1, weight of size [8, 3, 3, 3], expected input[4, 20, 20, 3] to have 3 channels, but got 20 channels instead",
    ),
    "another failure": ("nn.Conv2d(1, 16, 3)", "x", "it failed"),
}


@pytest.mark.parametrize(("layer", "message", "wanted"), WRONG.values(), ids=WRONG)
def test_the_first_layer_is_built_for_the_data(layer: str, message: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """By the size that the message names."""
    source = MODEL.format(layer=layer, given="x")
    after = rewritten(tmp_path, "fit_layer_channels", source, "return self.first", message=message)
    assert diff_lines(source, after) == [f"-        self.first = {layer}", f"+        self.first = {wanted}"]


@pytest.mark.parametrize(("shape", "is_widened"), [("[8, 24, 24]", False), (None, False), ("[1, 8, 24, 24]", True)])
def test_a_batch_of_images_without_channels(shape: str | None, is_widened: bool, tmp_path: pathlib.Path) -> None:
    """The samples are no channels: a layer that is built for as many would train on each batch as one image."""
    source = MODEL.format(layer="nn.Conv2d(1, 16, 3)", given="x")
    tensors = {"x": f"{shape} float32"} if shape else {}
    after = rewritten(tmp_path, "fit_layer_channels", source, "return self.first", message=UNBATCHED, tensors=tensors)
    assert (after != source) is is_widened


@pytest.mark.parametrize("given", JOINED.values(), ids=JOINED)
def test_channels_that_are_joined_for_it(given: str, tmp_path: pathlib.Path) -> None:
    """They are as many as they are, whichever layers made them."""
    source = MODEL.format(layer="nn.Conv2d(1, 16, 3)", given=given)
    after = rewritten(tmp_path, "fit_layer_channels", source, "return self.first", message=CONV)
    assert diff_lines(source, after)[1:] == ["+        self.first = nn.Conv2d(3, 16, 3)"]


@pytest.mark.parametrize(("layer", "given", "message"), RIGHT.values(), ids=RIGHT)
def test_what_is_not_clear_stays(layer: str, given: str, message: str, tmp_path: pathlib.Path) -> None:
    """Between two layers either may be meant otherwise."""
    source = MODEL.format(layer=layer, given=given)
    assert rewritten(tmp_path, "fit_layer_channels", source, "return self.first", message=message) == source
