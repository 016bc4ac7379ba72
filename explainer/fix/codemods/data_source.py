"""Points at the lines that read the data of a program, where values that are not finite come in. No edit: the data decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.file import SourceFile

_READERS = (
    "pandas.read_", "polars.read_", "polars.scan_", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile",
    "numpy.memmap", "datasets.load_", "torch.load", "h5py.File", "scipy.io.", "pyarrow.", "csv.reader", "csv.DictReader",
    "json.load", "pickle.load", "tifffile.", "soundfile.read", "torchaudio.load", "zarr.open",
)  # fmt: skip
_SETTINGS = ("config", "settings", "args", "options", "params", "checkpoint", "state", "ckpt", "yaml")
MAX_LINES = 3


def propose(context: Context) -> Iterator[Proposal]:
    """The calls that read data; those that by their words read settings or a checkpoint are left out."""
    if not any(one.name == "traced_bad_input" and one.value == "data" for one in context.incident.facts):
        return
    found = [(file, node) for file in context.program.parsed() for node in file.walk() if _reads(node, file, context)]
    for number, (file, node) in enumerate(found[:MAX_LINES]):
        yield Proposal(
            edits=(), culprit=culprit_of(file, node, "reads the data that is not finite"), belief=1.0 - 0.1 * number
        )


def _reads(node: ast.AST, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = context.program.names(file).qualified(node.func) or ""
    words = file.segment(file.statement(node)).lower()
    return called.startswith(_READERS) and not any(one in words for one in _SETTINGS)
