"""Warnings that tell by themselves of a training that goes wrong in silence, also where the program ends well."""

from __future__ import annotations

from collections.abc import Collection

from explainer.catalog.catalog import Catalog
from explainer.model.incident import Incident


def silent_warnings(incident: Incident, catalog: Catalog, uses: Collection[str] = ()) -> frozenset[str]:
    """The signatures of such warnings in an incident: those of forms that are marked as `silent`.

    `uses` are what the processes were seen to use: a form may name one with which its warning is harmless.
    """
    return frozenset(
        name
        for name, form in catalog.forms()
        if form.get("silent") and form.get("silent_unless", "") not in uses
        for warning in incident.warnings
        if all(literal in warning.message for literal in form["contains"])
    )
