"""Writes keys and values as a file of each kind does, in the style of what stands there."""

from __future__ import annotations

import json
import re

from explainer.source.setting.setting import COMMAND, IN_CODE, INI, ITEM, JSON, TOML, YAML, Setting

_BOOLEANS = {"true": "false", "yes": "no", "on": "off"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_WORD = re.compile(r"[\w./:@%+=,-]+")
# In INI no comment begins in it, and no parser takes it for a reference to another value.
_PLAIN_LINE = re.compile(r"(?![#;])(?!.*\s[#;])[^\s%$](?:[^\r\n%$]*[^\s%$])?")


def write_value(new: object, setting: Setting, *, is_new: bool = False) -> str | None:
    """`new` in place of a setting's value, or, `is_new`, in a setting beside it; None where that cannot be written."""
    raw = "" if is_new else setting.raw
    if setting.kind in IN_CODE:
        return (
            _quoted(new, raw if raw[:1] in ("'", '"') else _usual_quote(setting), repr(new))
            if isinstance(new, str)
            else repr(new)
        )
    if setting.kind == JSON:
        return json.dumps(new, ensure_ascii=False)
    if setting.kind == TOML:
        return _toml(new, raw)
    if setting.kind == COMMAND:
        return _word(new, raw)
    if setting.kind == INI:
        return _ini(new, raw or (_hint(setting) if is_new else ""))
    return _yaml(new, raw or (_hint(setting) if is_new else ""))


def write_key(name: str, old: str, kind: str) -> str:
    """A key in place of another: quoted as that one is."""
    if old.startswith(("'", '"')):
        return f"{old[0]}{name}{old[0]}"
    if kind == COMMAND and old.startswith("--"):
        return f"--{name.replace('_', '-') if '-' in old[2:] and '_' not in old else name}"
    if kind == ITEM:
        return json.dumps(name)
    if kind == TOML and not _BARE.fullmatch(name):
        return json.dumps(name)
    if kind == YAML and not isinstance(_load(name), str):
        return json.dumps(name)
    return name


def _usual_quote(setting: Setting) -> str:
    """The quotes that the value beside, or else most of the file, has."""
    if setting.raw[:1] in ("'", '"'):
        return setting.raw[0]
    return "'" if setting.file.text.count("'") > setting.file.text.count('"') else '"'


def _hint(setting: Setting) -> str:
    """Another truth value of the file, for its style."""
    return setting.raw if setting.raw.lower() in {*_BOOLEANS, *_BOOLEANS.values()} else ""


def _quoted(text: str, raw: str, otherwise: str) -> str:
    """A string in the quotes of the old one, where it needs no escapes."""
    quote = raw[:1]
    if quote in ("'", '"') and raw[:3] != quote * 3 and text.isprintable() and quote not in text and "\\" not in text:
        return f"{quote}{text}{quote}"
    return otherwise


def _boolean(new: bool, raw: str) -> str:  # noqa: FBT001 - the value that is written
    """True or false, in the words and the case of the old value."""
    pairs = _BOOLEANS | {false: true for true, false in _BOOLEANS.items()}
    old = raw.lower()
    word = "true" if new else "false"
    if old in pairs:
        word = old if (old in _BOOLEANS) == new else pairs[old]
    return word.upper() if raw.isupper() else word.capitalize() if raw[:1].isupper() else word


def _yaml(new: object, raw: str) -> str | None:
    if isinstance(new, bool):
        return _boolean(new, raw)
    if isinstance(new, str):
        quoted = _quoted(new, raw, "")
        is_plain = new == new.strip() and _load(new) == new and not re.search(r"[,\[\]{}#\n]|: ", new)
        return quoted or (new if is_plain else json.dumps(new, ensure_ascii=False))
    if isinstance(new, float):
        text = repr(new)
        if "e" in text and "." not in text:  # YAML 1.1 takes 1e-05 for a string
            text = text.replace("e", ".0e")
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
    if isinstance(new, dict):
        parts = [f"{write_key(str(key), '', YAML)}: {_yaml(one, '')}" for key, one in new.items()]
        return "{" + ", ".join(parts) + "}"
    if isinstance(new, list):
        return "[" + ", ".join(str(_yaml(one, "")) for one in new) + "]"
    return "null" if new is None else str(new)


def _load(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _toml(new: object, raw: str) -> str | None:
    if new is None:
        return None
    if isinstance(new, str):
        return _quoted(new, raw, json.dumps(new, ensure_ascii=False))
    if isinstance(new, dict):
        parts = [f"{write_key(str(key), '', TOML)} = {_toml(one, '')}" for key, one in new.items()]
        return "{ " + ", ".join(parts) + " }" if parts else "{}"
    if isinstance(new, list):
        return "[" + ", ".join(str(_toml(one, "")) for one in new) + "]"
    return str(new).lower() if isinstance(new, bool) else repr(new)


def _ini(new: object, raw: str) -> str | None:
    if isinstance(new, bool):
        return str(int(new)) if raw in ("0", "1") else _boolean(new, raw)
    if isinstance(new, (int, float)):
        return repr(new)
    return _quoted(new, raw, new) if isinstance(new, str) and _PLAIN_LINE.fullmatch(new) else None


def _word(new: object, raw: str) -> str | None:
    if isinstance(new, bool):
        return _boolean(new, raw.strip("\"'") or "True")
    if isinstance(new, (dict, list)):
        text = json.dumps(new)
        return f"'{text}'" if "'" not in text else None
    text = str(new)
    if (raw[:1] == "'" and "'" not in text) or (raw[:1] == '"' and not re.search(r"[\"\\$`]", text)):
        return f"{raw[0]}{text}{raw[0]}"
    if _PLAIN_WORD.fullmatch(text):
        return text
    return f"'{text}'" if "'" not in text else None
