"""What names a failure across ranks, machines and runs. The memory of failures has the full form; this one stands in."""

from __future__ import annotations

import hashlib

from explainer.fleet.template import template_of
from explainer.model.incident import Incident
from explainer.render.terminal import main_exception

VERSION = "t1"
_FRAMES = 3


def fingerprint(incident: Incident) -> str | None:
    """The failure's name: exception, template of its message, the last functions of the user's own code; None for none."""
    record = main_exception(incident)
    if record is None:
        return None
    own = [frame for frame in record.frames if frame.library is None][-_FRAMES:]
    places = [f"{frame.file.replace(chr(92), '/').rpartition('/')[2]} {frame.function}" for frame in own]
    words = "\n".join([record.type.rpartition(".")[2], template_of(record.message), *places])
    return f"{VERSION}:{hashlib.blake2b(words.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
