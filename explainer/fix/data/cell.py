"""The cells of a program's tables that hold no finite number, as lines to be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.source.data.table import SUFFIXES, find_tables, gaps

READERS = (
    "pandas.read_", "polars.read_", "polars.scan_", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile",
    "numpy.memmap", "datasets.load_", "torch.load", "h5py.File", "scipy.io.", "pyarrow.", "csv.reader", "csv.DictReader",
    "json.load", "pickle.load", "tifffile.", "soundfile.read", "torchaudio.load", "zarr.open",
)  # fmt: skip
MAX_LINES = 3


def cells(context: Context) -> Iterator[Proposal]:
    """The first cells without a number, in the tables of a program that speaks of such files, or of what reads them."""
    program = context.program
    texts = [*(file.text.lower() for file in program.parsed()), *(one.file.text.lower() for one in program.documents())]
    is_spoken_of = any(suffix[1:] in text for text in texts for suffix in SUFFIXES)
    tables = [
        one for one in find_tables(program.root, texts) if is_spoken_of or not one.path.lower().endswith(SUFFIXES)
    ]
    found = [one for table in tables for one in gaps(table)]
    for number, one in enumerate(found[:MAX_LINES]):
        more = f", as in {len(found) - 1} more" if number == 0 and len(found) > 1 else ""
        held = f"`{one.cell}`" if one.cell else "nothing"
        why = f"holds {held} in the column `{one.column}`, which is of numbers{more}"
        # Of the user's data a report holds that cell, and no row.
        culprit = replace(culprit_at(one.file, one.span, why), code="", mark=None, before=(), after=())
        yield Proposal(edits=(), culprit=culprit, belief=1.8 - 0.1 * number)
