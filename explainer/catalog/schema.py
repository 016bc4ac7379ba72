"""The format of rule files: every key that TOML may hold, checked strictly. Imported only where rules are validated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from explainer.catalog.pattern import check_pattern

Text = Annotated[str, Field(min_length=1)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")]
CauseId = Annotated[str, Field(pattern=r"^[a-z0-9-]+/[a-z0-9-]+$")]
Version = Annotated[str, Field(pattern=r"^\d+(?:\.\d+)*(?:[\w.+-]*)$")]
Condition = bool | int | float | str | list[str] | list[int]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _checked(pattern: str | None) -> str | None:
    faults = check_pattern(pattern) if pattern else []
    if faults:
        raise ValueError("; ".join(faults))
    return pattern


def _checked_whole(pattern: str | None) -> str | None:
    faults = check_pattern(pattern, is_whole=True) if pattern else []
    if faults:
        raise ValueError("; ".join(faults))
    return pattern


class SampleFile(_Strict):
    """A message as a release prints it, and how it is known: recorded here, composed from sources, or reported."""

    text: Text
    origin: Literal["recorded", "composed", "reported"]
    torch: Version | None = None
    library: str | None = None


class FormFile(_Strict):
    """One wording."""

    contains: list[Text] = []
    pattern: str | None = None
    stands: Literal["exception", "warning", "log", "metrics"] = "exception"
    exceptions: list[Text] = []
    frame: str | None = None
    proves: bool = False
    weight: float = 0.0
    silent: bool = False
    silent_unless: Text | None = None
    sample: list[SampleFile] = []

    _safe = field_validator("pattern", "frame")(_checked)

    @model_validator(mode="after")
    def _prefiltered(self) -> FormFile:
        if not self.contains and not self.exceptions:
            raise ValueError("a form needs literals in `contains`, or the types of `exceptions`")
        if self.silent and (self.stands != "warning" or not self.contains):
            raise ValueError("`silent` is for warnings with literals: they alone tell of a program that ends well")
        return self


class SignatureFile(_Strict):
    """`signatures/<name>.toml`."""

    title: Text
    messenger: bool = False
    form: list[FormFile] = Field(min_length=1)


class ChangeFile(_Strict):
    """`[[change]]`: a name of a library that went, came or was replaced."""

    kind: Literal["argument", "attribute", "import", "method", "value"]
    of: Text
    old: Text | None = None
    new: Text | None = None
    added: Version | None = None
    deprecated: Version | None = None
    removed: Version | None = None
    write: Text
    becomes: list[Annotated[str, Field(pattern=r"^\S.* ->( \S.*)?$")]] = []
    note: Text | None = None
    checked: Literal["run", "source"]

    @model_validator(mode="after")
    def _dated(self) -> ChangeFile:
        if self.old is None and self.new is None:
            raise ValueError("a change needs `old` or `new`")
        if self.removed is None and self.added is None and self.deprecated is None:
            raise ValueError("a change needs a release: `added`, `deprecated` or `removed`")
        if self.added is not None and self.new is None:
            raise ValueError("`added` says when `new` came, and there is none")
        if (self.removed or self.deprecated) is not None and self.old is None:
            raise ValueError("`removed` and `deprecated` say when `old` went, and there is none")
        return self


class InterfaceFile(_Strict):
    """`interfaces/<library>.toml`."""

    heirs: dict[str, list[Text]] = {}
    change: list[ChangeFile] = Field(min_length=1)


class EvidenceFile(_Strict):
    """`[[evidence]]`: what it reads, the conditions that reader knows, and what it says."""

    id: Slug
    reads: Literal["message", "frames", "warnings", "log", "environment", "interface", "source", "live", "trace"]
    says: Text
    weight: float
    proves: bool = False
    absent: bool = False
    pattern: str | None = None
    contains: str | None = None
    fields: dict[str, Condition] | None = None
    signature: str | list[str] | None = None
    anywhere: bool = False
    file: str | list[str] | None = None
    function: str | None = None
    code: str | None = None
    library: str | list[str] | None = None
    at: Literal["any", "last", "first", "user", "last-user", "below-user"] | None = None
    stack: Literal["exception", "forward", "induced", "any"] | None = None
    category: str | None = None
    fact: str | None = None
    value: Condition | None = None
    metric: str | None = None
    package: str | None = None
    version: str | None = None
    gpu: Literal["bf16", "fp16", "tf32", "fp8"] | None = None
    has: bool | None = None
    reader: str | None = None
    story: Literal["gone", "too-new", "override", "deprecated", "contradicted"] | None = None
    sure: bool | None = None

    _safe = field_validator("pattern", "code")(_checked)
    _safe_whole = field_validator("function")(_checked_whole)


class FixFile(_Strict):
    """`[[fix]]`."""

    id: Slug
    title: Text
    kind: Literal["edit", "config", "command", "advice"]
    applicability: Literal["safe", "unsafe", "display"]
    because: Text
    command: str | None = None
    codemod: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    options: dict[str, Condition] = {}
    when: dict[str, Any] | None = None


class MythFile(_Strict):
    """`[[myth]]`."""

    remedy: Text
    why: Text
    experiment: Slug | None = None


class MythTable(_Strict):
    """`myths/<slug>/myth.toml`."""

    remedy: Text
    claim: Text
    verdict: Literal["wrong", "half right", "right elsewhere"]
    shows: Text
    instead: Text
    since: Version


class LookAlikeFile(_Strict):
    """An entry of `look_alikes`."""

    cause: CauseId
    decides: Text


class CauseFile(_Strict):
    """`<family>/<slug>/cause.toml`."""

    title: Text
    summary: Text
    kind: Literal["failure", "silent", "notice"] = "failure"
    status: Literal["stable", "preview", "retired"] = "stable"
    since: Version
    signature: list[Slug] = []
    look_alikes: list[LookAlikeFile] = []
    proves_not: str | None = None
    prior: dict[str, float] = {}
    applies: dict[str, str] = {}
    needs: list[str] = []
    form: list[FormFile] = []
    evidence: list[EvidenceFile] = []
    fix: list[FixFile] = []
    myth: list[MythFile] = []

    @model_validator(mode="after")
    def _ids_once(self) -> CauseFile:
        for name, entries in (("evidence", self.evidence), ("fix", self.fix)):
            ids = [entry.id for entry in entries]
            twice = sorted({one for one in ids if ids.count(one) > 1})
            if twice:
                raise ValueError(f"{name} id used twice: {', '.join(twice)}")
        if not self.signature and not self.form and self.kind != "notice":  # a notice may stand for silence
            raise ValueError("a cause needs a `signature` or a `[[form]]`: what is printed when it happens")
        return self
