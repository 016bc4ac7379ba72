"""A list that is a default, and that the function fills, is made anew in each call."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

WRONG = {
    "a list of terms": (
        "def forward(self, x, terms=[]):\n    terms.append(self.net(x).mean())\n    return terms\n",
        ["def forward(self, x, terms=None):", "terms = [] if terms is None else terms"],
    ),
    "a dictionary by keyword alone": (
        'def losses(x, *, into={}):\n    """Fills."""\n    into["a"] = x.mean()\n    return into\n',
        ["def losses(x, *, into=None):", "into = {} if into is None else into"],
    ),
    "a list that is added to": (
        "def losses(x, into=list()):\n    into += [x.mean()]\n    return into\n",
        ["def losses(x, into=None):", "into = [] if into is None else into"],
    ),
}
RIGHT = {
    "a list that is read": "def losses(x, sizes=[]):\n    return [x.view(one) for one in sizes]\n",
    "a state that is kept": "def step(x, kept={}):\n    kept['h'] = cell(x, kept.get('h'))\n    return kept['h']\n",
    "the last of a list": "def step(x, kept=[]):\n    h = cell(x, kept[-1] if kept else None)\n    kept.append(h)\n    return h\n",
    "a table of what is known": "def mask(n, known={}):\n    if n not in known:\n        known[n] = make(n)\n    return known\n",
    "no default": "def losses(x, into):\n    into.append(x)\n    return into\n",
    "another default": "def losses(x, into=(), n=3):\n    n += 1\n    return x * n\n",
    "made anew already": "def losses(x, into=None):\n    into = [] if into is None else into\n    into.append(x)\n    return into\n",
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_it_is_made_anew(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """None stands for it; what a caller gives is filled as before; a second time nothing is left to do."""
    after = rewritten(tmp_path, "make_default_anew", source)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "make_default_anew", after) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_defaults_stay(tmp_path: pathlib.Path, source: str) -> None:
    assert rewritten(tmp_path, "make_default_anew", source) == source
