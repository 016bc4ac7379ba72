"""The rules as the matcher asks for them; a cause becomes an object when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from explainer.errors import RuleError
from explainer.model.rule import Cause, EvidenceRule, FixRule, Form, LookAlike, Myth, Signature

FORMAT = 3
_Names = dict[tuple[str, str], list[tuple[str, dict[str, Any]]]]
_EVIDENCE_OWN = ("id", "reads", "says", "weight", "proves")


class Catalog:
    """A rule base in memory: signatures by name, causes by id.

    A cause with `[[form]]`s of its own has a signature of its own, named like the cause.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._signatures: dict[str, Any] = data["signatures"]
        self._causes: dict[str, Any] = data["causes"]
        self.interfaces: dict[str, dict[str, Any]] = data.get("interfaces", {})
        self._made: dict[str, Cause] = {}

    @property
    def cause_ids(self) -> tuple[str, ...]:
        """The ids of all causes, in order."""
        return tuple(sorted(self._causes))

    @property
    def signature_names(self) -> tuple[str, ...]:
        """The names of the shared signatures, in order."""
        return tuple(sorted(self._signatures))

    def digest(self) -> str:
        """A short text that differs where any rule does."""
        import hashlib
        import json

        rules = json.dumps([self._signatures, self._causes, self.interfaces], sort_keys=True)
        return hashlib.blake2b(rules.encode("utf-8", "replace"), digest_size=12).hexdigest()

    def forms(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every wording as raw data, with the name of its signature."""
        for name, signature in self._signatures.items():
            for form in signature["form"]:
                yield name, form
        for cause, data in self._causes.items():
            for form in data.get("form", ()):
                yield cause, form

    def signature(self, name: str) -> Signature:
        """The signature of that name; a cause's own is named like the cause.

        Raises:
            RuleError: there is none.
        """
        raw = self._signatures.get(name) or self._causes.get(name)
        if raw is None:
            raise RuleError(f"no signature {name!r} in the rule base")
        return Signature(
            name=name,
            title=raw["title"],
            forms=tuple(_form(form) for form in raw.get("form", ())),
            messenger=raw.get("messenger", False),
        )

    def is_messenger(self, name: str) -> bool:
        """Whether a signature only reports what failed elsewhere."""
        raw = self._signatures.get(name) or {}
        return bool(raw.get("messenger", False))

    @cached_property
    def _by_signature(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for cause, data in self._causes.items():
            for name in data.get("signature", ()):
                found.setdefault(name, []).append(cause)
            if data.get("form"):
                found.setdefault(cause, []).append(cause)
        return found

    @cached_property
    def old_names(self) -> _Names:
        """The changes of the libraries' interfaces, by what the old name belongs to and the old name."""
        found: _Names = {}
        for library, table in self.interfaces.items():
            for raw in table["change"]:
                if "old" in raw:
                    self._note(found, table, (raw["of"], raw["old"]), (library, raw))
        return found

    @cached_property
    def new_names(self) -> _Names:
        """The same by what the new name belongs to and the new name."""
        found: _Names = {}
        for library, table in self.interfaces.items():
            for raw in table["change"]:
                if "new" in raw and "added" in raw:
                    owner, _, name = raw["new"].rpartition(".")
                    self._note(found, table, (owner or raw["of"], name), (library, raw))
        return found

    @staticmethod
    def _note(found: _Names, table: dict[str, Any], place: tuple[str, str], entry: tuple[str, dict[str, Any]]) -> None:
        """File an entry under its class and under the classes that inherit from it."""
        owner, name = place
        for one in (owner, *table.get("heirs", {}).get(owner, ())):
            found.setdefault((one, name), []).append(entry)

    def causes_of(self, signature: str) -> tuple[str, ...]:
        """The ids of the causes that print this signature."""
        return tuple(self._by_signature.get(signature, ()))

    def messages_of(self, cause: str) -> tuple[tuple[str, ...], ...]:
        """What a cause prints: the samples of each wording, the first of the signatures that it names first."""
        known = self.cause(cause)
        rare = [name for name in known.signatures if known.prior.get(name, 0.0) <= -1.0]
        names = (*(name for name in known.signatures if name not in rare), cause, *rare)
        return tuple(form.samples for name in names for form in self.signature(name).forms)

    def cause(self, name: str) -> Cause:
        """The cause with that id.

        Raises:
            RuleError: there is none.
        """
        if name not in self._made:
            raw = self._causes.get(name)
            if raw is None:
                raise RuleError(f"no cause {name!r} in the rule base; `gradfix rules list` shows them")
            self._made[name] = _cause(name, raw)
        return self._made[name]


def _form(raw: dict[str, Any]) -> Form:
    return Form(
        contains=tuple(raw.get("contains", ())),
        pattern=raw.get("pattern"),
        stands=raw.get("stands", "exception"),
        exceptions=tuple(raw.get("exceptions", ())),
        proves=raw.get("proves", False),
        weight=raw.get("weight", 0.0),
        samples=tuple(sample["text"] for sample in raw.get("sample", ())),
    )


def _evidence(raw: dict[str, Any]) -> EvidenceRule:
    conditions = {key: value for key, value in raw.items() if key not in _EVIDENCE_OWN}
    own = {key: raw[key] for key in _EVIDENCE_OWN if key in raw}
    return EvidenceRule(**own, conditions=conditions)


def _cause(name: str, raw: dict[str, Any]) -> Cause:
    return Cause(
        id=name,
        title=raw["title"],
        summary=raw["summary"],
        kind=raw.get("kind", "failure"),
        status=raw.get("status", "stable"),
        since=raw["since"],
        signatures=tuple(raw.get("signature", ())),
        prior=raw.get("prior", {}),
        forms=tuple(_form(form) for form in raw.get("form", ())),
        look_alikes=tuple(LookAlike(**one) for one in raw.get("look_alikes", ())),
        proves_not=raw.get("proves_not"),
        applies=raw.get("applies", {}),
        needs=tuple(raw.get("needs", ())),
        evidence=tuple(_evidence(one) for one in raw.get("evidence", ())),
        fixes=tuple(FixRule(**one) for one in raw.get("fix", ())),
        myths=tuple(Myth(**one) for one in raw.get("myth", ())),
    )
