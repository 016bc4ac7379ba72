"""A rule base of four causes, so that tests of the matcher do not depend on the real one."""

from __future__ import annotations

from explainer.catalog.catalog import Catalog

EVIDENCE = (
    {"id": "relu", "reads": "message", "fields": {"op": "Relu"}, "weight": 3.0, "says": "output of {op}"},
    {"id": "line", "reads": "frames", "code": r"\+=", "at": "user", "weight": 1.0, "says": "{file}:{line} writes: {code}"},
    {"id": "no-trainer", "reads": "frames", "function": "train", "absent": True, "weight": 0.3, "says": "no trainer"},
    {"id": "warned", "reads": "warnings", "contains": "careful", "weight": 2.0, "says": "a warning said so"},
    {"id": "frozen", "reads": "log", "fact": "trainable_parameters", "value": 0, "weight": 2.0, "says": "{value} trainable"},
    {"id": "rises", "reads": "log", "metric": "loss-rises-before-nan", "weight": 2.0, "says": "{observed}"},
    {"id": "old-gpu", "reads": "environment", "gpu": "bf16", "has": False, "weight": 2.0, "says": "no bf16: {gpu}"},
    {"id": "five", "reads": "environment", "package": "transformers", "version": ">=5", "weight": -2.0, "says": "{version}"},
    {"id": "proof", "reads": "message", "contains": "beyond doubt", "weight": 3.0, "proves": True, "says": "proved"},
)  # fmt: skip


def cause(**keys: object) -> dict:
    return {"title": "T", "summary": "S", "since": "0.1.0", **keys}


RULES = {
    "format": 2,
    "signatures": {
        "overwritten": {
            "title": "t",
            "form": [{"contains": ["modified by an inplace operation"], "pattern": r"operation(?:, which is output \d+ of (?P<node>\w+))?",
                      "sample": [{"text": "modified by an inplace operation", "origin": "recorded"}]}],
        },
        "child-failed": {"title": "t", "messenger": True, "form": [{"contains": ["exitcode"], "stands": "log"}]},
    },
    "causes": {
        "a/activation": cause(signature=["overwritten"], evidence=list(EVIDENCE), applies={"torch": ">=2.0"}),
        "a/parameter": cause(signature=["overwritten"], prior={"overwritten": 0.5}),
        "b/certain": cause(form=[{"contains": ["only for scalar outputs"], "proves": True}]),
        "c/launcher": cause(signature=["child-failed"]),
    },
}  # fmt: skip


def catalog() -> Catalog:
    return Catalog(RULES)
