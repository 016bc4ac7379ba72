"""Functions that torch has removed, or that it takes in another form by now, with the values that they gave."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.fix.rewriting import changed_lines, rewritten

STFT = "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True"
ISTFT = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
REMOVED = "This function was deprecated since version 1.9 and is now removed. "
SYMEIG = REMOVED + "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:"
SOLVE = REMOVED + "X = torch.solve(B, A).solution should be replaced with:"
RANK = REMOVED + "Please use the `torch.linalg.matrix_rank` function instead."
CALLS = {
    "stft": (STFT, "s = torch.stft(x, 16, 4)", "s = torch.view_as_real(torch.stft(x, 16, 4, return_complex=True))"),
    "a method": (STFT, "s = x.stft(n_fft=16)", "s = torch.view_as_real(x.stft(n_fft=16, return_complex=True))"),
    "one that says it": (STFT, "s = torch.stft(x, 16, return_complex=False)", None),
    "one that may": (STFT, "s = torch.stft(x, 16, **options)", None),
    "istft": (ISTFT, "y = torch.istft(s, 16)", "y = torch.istft(torch.view_as_complex(s), 16)"),
    "symeig": (SYMEIG, "v, w = torch.symeig(a, eigenvectors=True)", 'v, w = torch.linalg.eigh(a, UPLO="U")'),
    "its lower part": (SYMEIG, "v, w = torch.symeig(a, True, False)", 'v, w = torch.linalg.eigh(a, UPLO="L")'),
    "values alone": (SYMEIG, "v, _ = torch.symeig(a)", None),
    "solve": (SOLVE, "y = torch.solve(b, a)[0]", "y = torch.linalg.solve(a, b)"),
    "by its name": (SOLVE, "y = torch.solve(b, A=a).solution", "y = torch.linalg.solve(a, b)"),
    "unpacked": (SOLVE, "y, _ = torch.solve(b, a)", "y = torch.linalg.solve(a, b)"),
    "with its factors": (SOLVE, "y, lu = torch.solve(b, a)", None),
    "rank": (RANK, "r = torch.matrix_rank(a, 0.1)", "r = torch.linalg.matrix_rank(a, 0.1)"),
    "another message": ("it failed", "s = torch.stft(x, 16)", None),
}
GIVEN = "import torch\n\nx = torch.ones(64)\na, b = torch.eye(3), torch.ones(3, 1)\ns = torch.ones(9, 5, 2)\n"


@pytest.mark.parametrize(("message", "call", "wanted"), CALLS.values(), ids=CALLS)
def test_calls(tmp_path: pathlib.Path, message: str, call: str, wanted: str | None) -> None:
    source = GIVEN + call + "\n"
    after = rewritten(tmp_path, "removed_function", source, call, message=message)
    assert changed_lines(source, after) == ([wanted] if wanted else [])


@pytest.mark.torch
def test_the_results_run(tmp_path: pathlib.Path) -> None:
    """What is written in place of them is what this torch takes."""
    pytest.importorskip("torch")
    lines = [wanted for _, _, wanted in CALLS.values() if wanted]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GIVEN + "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
