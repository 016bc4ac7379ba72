"""Lays out the folder of a new cause, with every file that the checker asks for."""

from __future__ import annotations

import os
import re

from explainer.catalog.check import HEADINGS
from explainer.catalog.cluster import Seen, form_of, literal_of
from explainer.errors import RuleError

_CAUSE = """\
title = "{title}"
summary = "One sentence: what the program does, and why that fails."
kind = "failure"
status = "preview"
since = "{since}"
look_alikes = []
proves_not = "What the message alone does not prove."

{form}
[[evidence]]
id = "name-what-it-sees"
reads = "message"
contains = {literal}
weight = 0.5
says = "what was seen, and what follows from it"

[[fix]]
id = "name-the-cure"
title = "Say what to write instead"
kind = "advice"
applicability = "display"
because = "what it costs or changes"
"""
_FORM = """\
[[form]]
exceptions = ["RuntimeError"]
contains = ["words of the message that no other message has"]

[[form.sample]]
torch = "2.13"
origin = "recorded"
text = "the message, with words of the message that no other message has"
"""
_BROKEN = '''\
"""One line: what this program wants to do."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(2, 8)).square().mean()
loss.backward()
optimizer.step()
'''


def lay_out(folder: str, cause: str, since: str, seen: Seen | None = None) -> list[str]:
    """Write the files of the new cause `family/slug` under `folder`; their paths, relative to it.

    With `seen`, a cluster of a triage, the cause recognises those messages from the start.

    Raises:
        RuleError: the id is none, or the folder is there already.
    """
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+){1,6}", cause):
        raise RuleError(
            f"{cause!r} is no id of a cause: family/slug, lower case, the slug two to five words that say what is wrong"
        )
    place = os.path.join(folder, cause)
    if os.path.exists(place):
        raise RuleError(f"{place}: is there already")
    title = cause.partition("/")[2].replace("-", " ").capitalize()
    files = {
        "cause.toml": _CAUSE.format(
            title=title,
            since=since,
            form=_FORM if seen is None else form_of(seen),
            literal='"words of the message"' if seen is None else literal_of(seen),
        ),
        "README.md": f"# {title}\n" + "".join(f"\n## {heading}\n\n...\n" for heading in HEADINGS),
        "plain/broken.py": _BROKEN,
        "plain/fixed.py": _BROKEN,
    }
    for name, text in files.items():
        path = os.path.join(place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    return [f"{cause}/{name}" for name in files]
