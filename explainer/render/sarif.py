"""Reports as SARIF 2.1.0, which code hosts and editors show beside the line.

Format: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any
from urllib.parse import quote

from explainer.model.finding import Culprit, Finding
from explainer.model.report import Report
from explainer.render.link import DOCUMENTATION, cause_link
from explainer.render.visible import visible

_LEVELS = {"failure": "error", "silent": "warning", "notice": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(reports: Sequence[Report], version: str, unpublished: Container[str] = ()) -> str:
    """One SARIF log with a result for each report's first finding; causes of `unpublished` have no page to link to."""
    firsts = [report.findings[0] for report in reports if report.findings]
    rules = {finding.cause: _rule(finding, cause_link(finding.cause, unpublished)) for finding in firsts}
    ids = list(rules)
    driver = {"name": "gradfix", "semanticVersion": version, "informationUri": DOCUMENTATION}
    run = {
        "tool": {"driver": {**driver, "rules": list(rules.values())}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, ids.index(finding.cause)) for finding in firsts],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(finding: Finding, link: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.cause,
        "shortDescription": {"text": finding.title},
        "fullDescription": {"text": finding.summary},
        "defaultConfiguration": {"level": _LEVELS[finding.kind]},
    }
    return {**rule, "helpUri": link} if link else rule


def _result(finding: Finding, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.cause,
        "ruleIndex": index,
        "level": _LEVELS[finding.kind],
        "message": {"text": visible(_text(finding))},
        "properties": {"confidence": finding.confidence, "score": finding.score},
    }
    locations = [_location(culprit) for culprit in finding.culprits]
    if locations:
        result["locations"] = locations[:1]
        result["relatedLocations"] = locations[1:]
    return result


def _text(finding: Finding) -> str:
    """The finding in a few sentences: title, strongest evidence, first fix."""
    told = [one.says for one in finding.evidence if one.id != "signature"][:2]
    parts = [finding.title, *told]
    if finding.fixes:
        parts.append(f"fix: {finding.fixes[0].title}")
    return ". ".join(part.rstrip(".") for part in parts) + "."


def _location(culprit: Culprit) -> dict[str, Any]:
    region = {"startLine": culprit.line} if culprit.line else {}
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(culprit.file.replace("\\", "/"))}}
    if region:
        physical["region"] = region
    location: dict[str, Any] = {"physicalLocation": physical}
    if culprit.why:
        location["message"] = {"text": culprit.why}
    return location
