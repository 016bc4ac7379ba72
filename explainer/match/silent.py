"""Warnings that tell by themselves of a training that goes wrong in silence, also where the program ends well."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from explainer.catalog.catalog import Catalog
from explainer.model.incident import Incident

_SIZES = re.compile(r"target size \(torch\.Size\(\[([\d, ]*)\]\)\).*input size \(torch\.Size\(\[([\d, ]*)\]\)\)")


def silent_warnings(incident: Incident, catalog: Catalog, uses: Collection[str] = ()) -> frozenset[str]:
    """The signatures of such warnings in an incident: those of forms that are marked as `silent`.

    `uses` are what the processes were seen to use: a form may name one with which its warning is harmless.
    """
    return frozenset(
        name
        for name, form in catalog.forms()
        if form.get("silent") and form.get("silent_unless", "") not in uses
        for warning in incident.warnings
        if all(literal in warning.message for literal in form["contains"]) and not _is_of_one_value(warning.message)
    )


def _is_of_one_value(message: str) -> bool:
    """Whether a warning of two sizes speaks of one value on each side, as of `[1]` and `[]`: there is nothing to pair otherwise."""
    told = _SIZES.search(message)
    return told is not None and all(math.prod(map(int, re.findall(r"\d+", one))) == 1 for one in told.groups())
