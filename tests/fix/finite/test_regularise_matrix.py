"""A factorised matrix gets a positive diagonal."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\nnet = nn.Linear(4, 4)\nx = torch.randn(3, 4)\nh = net(x)\nc = h.T @ h\n"
EYE = "1e-3 * torch.eye(c.shape[-1], dtype=c.dtype, device=c.device)"
RIGHT = {
    "a sum": (HEAD + "f = torch.linalg.cholesky(c + 0.1 * torch.eye(4))\n", "f =", {}),
    "a matrix of data": (HEAD + "f = torch.linalg.cholesky(x.T @ x)\n", "f =", {}),
    "the logarithm of a factor's diagonal": (
        HEAD + "f = torch.linalg.cholesky(c).diagonal().log().sum()\n",
        "f =",
        {},
    ),
    "a log-determinant": (HEAD + "f = torch.logdet(c)\n", "f =", {}),
    "a likelihood": (
        HEAD
        + "def nll(c):\n    f = torch.linalg.cholesky(c)\n    return torch.log(torch.diagonal(f)).sum()\nnll(h.T @ h)\n",
        "f =",
        {},
    ),
    "a batch behind others that were right": (
        HEAD + "f = torch.linalg.cholesky(c)\n",
        "f =",
        {"facts": {"live_steps": "20"}},
    ),
    "another operation": (HEAD + "f = torch.linalg.matrix_norm(c)\n", "f =", {}),
}
WRONG = {
    "a factorisation": (HEAD + "f = torch.linalg.cholesky(c)\n", "f =", {}, [f"f = torch.linalg.cholesky(c + {EYE})"]),
    "an inverse": (HEAD + "f = torch.linalg.inv(c)\n", "f =", {}, [f"f = torch.linalg.inv(c + {EYE})"]),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Matrices of data, and sums that may be regularised already, are left alone."""
    assert rewritten(tmp_path, "regularise_matrix", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """A small multiple of the identity is added; a second time nothing is left to do."""
    after = rewritten(tmp_path, "regularise_matrix", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "regularise_matrix", after, None if at not in after else at or None, **given) == after
