"""Where one kernel of attention is forced, others are allowed beside it: in the setting, the table or the call."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

REFUSED = "No available kernel. Aborting execution."
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch.nn.attention import SDPBackend, sdpa_kernel\n\n"
ALL = "[SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]"
CALL = "    with sdpa_kernel({}):\n        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
TABLE = 'KERNELS = {\n    "flash": [SDPBackend.FLASH_ATTENTION],\n    "math": SDPBackend.MATH,\n    "auto": [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH],\n}\n\n'
LAYER = (
    "class Layer:\n    def __init__(self, width, kernel):\n        self.kernel = KERNELS[kernel]\n\n    def forward(self, q, k, v, mask):\n"
    "        with sdpa_kernel(self.kernel):\n            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n\n"
    "class Net:\n    def __init__(self, width, attention):\n        self.layers = [Layer(width, attention) for _ in range(2)]\n\n"
)
READ = 'import json\n\nnet = Net(**json.load(open("config.json"))["model"])\n'
CONFIG = '{\n  "model": {\n    "width": 64,\n    "attention": "flash"\n  }\n}\n'
WRITTEN = {
    "one": ("def attend(q, k, v, mask):\n" + CALL.format("SDPBackend.FLASH_ATTENTION"), [f"+    with sdpa_kernel({ALL}):"]),
    "a list of one": ("def attend(q, k, v, mask):\n" + CALL.format("[SDPBackend.FLASH_ATTENTION]"), [f"+    with sdpa_kernel({ALL}):"]),
    "two": (
        "def attend(q, k, v, mask):\n" + CALL.format("[SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]"),
        ["+    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):"],
    ),
    "a constant": (
        "KERNEL = SDPBackend.FLASH_ATTENTION\n\ndef attend(q, k, v, mask):\n" + CALL.format("KERNEL"), [f"+KERNEL = {ALL}"],
    ),
    "by its name": (
        "def attend(q, k, v, mask, kernel):\n" + CALL.format("getattr(SDPBackend, kernel)"),
        ["+    with sdpa_kernel([getattr(SDPBackend, kernel), SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):"],
    ),
    "an entry that is written": (
        TABLE + "def attend(q, k, v, mask):\n" + CALL.format('KERNELS["flash"]'), ['+    with sdpa_kernel(KERNELS["auto"]):'],
    ),
    "a default": (
        TABLE + "def attend(q, k, v, mask, kernel='flash'):\n" + CALL.format("KERNELS[kernel]"),
        ["+def attend(q, k, v, mask, kernel='auto'):"],
    ),
    "a table without a better entry": (
        'KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}\n\ndef attend(q, k, v, mask):\n'
        + CALL.format('KERNELS["flash"]'),
        [f'+KERNELS = {{"flash": {ALL}, "cudnn": SDPBackend.CUDNN_ATTENTION}}'],
    ),
    "switched off": (
        "torch.backends.cuda.enable_math_sdp(False)\ntorch.backends.cuda.enable_mem_efficient_sdp(False)\n\ndef attend(q, k, v, mask):\n"
        "    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
        ["+torch.backends.cuda.enable_math_sdp(True)", "+torch.backends.cuda.enable_mem_efficient_sdp(True)"],
    ),
}  # fmt: skip
LEFT = {
    "the product of matrices is allowed": "def attend(q, k, v, mask):\n" + CALL.format("[SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]"),
    "nothing is forced": "def attend(q, k, v, mask):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
    "what cannot be read": "def attend(q, k, v, mask, kernel):\n" + CALL.format("kernel"),
}  # fmt: skip


def mended(folder: pathlib.Path, source: str, message: str = REFUSED, config: str = "{}\n") -> list[str]:
    program = write(folder, {"train.py": source})
    (folder / "config.json").write_text(config)
    incident = failed({"train.py": line_of(source, "F.scaled_dot")}, message)
    proposal = best("allow_other_kernels", program, incident=incident)
    if proposal is None:
        return []
    (path,) = {edit.file for edit in proposal.edits}
    before = program.editable([path])[path].text
    assert proposal.culprit.file == path
    return [line for line in diff_lines(before, splice(before, proposal.edits) or "") if line[0] == "+"]


@pytest.mark.parametrize(("source", "lines"), WRITTEN.values(), ids=WRITTEN)
def test_allows_others(source, lines, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, HEAD + source) == lines


def test_picks_another_entry_by_its_setting(tmp_path: pathlib.Path) -> None:
    """Of the table that a configuration file's word looks up."""
    assert mended(tmp_path, HEAD + TABLE + LAYER + READ, config=CONFIG) == ['+    "attention": "auto"']


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_left_alone(source, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, HEAD + source) == []


def test_another_failure(tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, HEAD + WRITTEN["one"][0], "it failed") == []


@pytest.mark.torch
def test_all_compute_the_same() -> None:
    """What is allowed beside the forced kernel gives its values."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = torch.randn(3, 1, 2, 8, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        forced = attend(q, k, v)
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        assert attend(q, k, v).allclose(forced, atol=1e-6)
