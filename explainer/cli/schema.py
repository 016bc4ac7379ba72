"""The JSON schemas that gradfix publishes, made from the dataclasses themselves."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from explainer.errors import UsageError
from explainer.model.environment import Environment
from explainer.model.report import Report
from explainer.model.verification import Verification

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NOT_FINITE = {"type": "string", "enum": ["nan", "inf", "-inf"]}


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema of "report", "verification", "environment", "cause", "signature" or "interface".

    Raises:
        UsageError: another name.
    """
    from explainer.catalog.schema import CauseFile, InterfaceFile, SignatureFile

    kinds: dict[str, Any] = {
        "report": Report,
        "verification": Verification,
        "environment": Environment,
        "cause": CauseFile,
        "signature": SignatureFile,
        "interface": InterfaceFile,
    }
    if name not in kinds:
        raise UsageError(f"no schema {name!r}; there are {', '.join(kinds)}")
    schema = TypeAdapter(kinds[name]).json_schema()
    if name == "report":
        _as_written(schema)
    if name == "verification":
        schema = _with_words_for_numbers(schema)
    return {"$schema": DIALECT, **schema}


def _as_written(report: dict[str, Any]) -> None:
    """What the JSON of a report does otherwise than its dataclasses: no plain log lines; words for nan and inf."""
    definitions = report["$defs"]
    definitions["Incident"]["properties"].pop("log", None)
    definitions.pop("LogLine", None)
    definitions["Fix"]["properties"].pop("changes", None)
    definitions.pop("FilePatch", None)
    pair = definitions["MetricRow"]["properties"]["values"]["items"]["prefixItems"]
    pair[1] = {"anyOf": [{"type": "number"}, _NOT_FINITE]}


def _with_words_for_numbers(schema: Any) -> Any:
    """A schema in which every number may be one that is not finite: those of a diverged run."""
    if isinstance(schema, list):
        return [_with_words_for_numbers(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        return {"anyOf": [schema, _NOT_FINITE]}
    return {key: _with_words_for_numbers(one) for key, one in schema.items()}
