"""Secrets taken out of what is shown: tokens, keys and passwords that logs and paths carry."""

from __future__ import annotations

import re
from functools import cache

from explainer.model.report import Report
from explainer.render.rewrite import rewrite

MASK = "***"
_KNOWN = (
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_\w{20,}",
    r"\bglpat-[\w-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\bxox[abprs]-[\w-]{10,}",
    r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    r"\bwandb_v1_\w{20,}",
)
# A named value counts as a secret when it looks made by a machine; a password always does.
_NAMED = (
    r"(?P<name>(?i:(?:api|access|secret|private|auth|account|storage|client|wandb|comet|openai|hf|hugging_?face(?:hub)?|aws)"
    r"[_-]?(?:api[_-]?)?(?:access[_-]?)?(?:key|token|secret)(?:_?id)?|authorization|bearer|x-amz-signature|sig|signature|token|secret))"
    r"(?P<between>[\"']?\s{0,3}[=:]?\s{0,3}(?:(?i:bearer|basic)\s)?[\"']?)(?P<value>(?=[\w+/.=~%-]{0,200}\d)(?=[\w+/.=~%-]{0,200}[A-Za-z])"
    r"[\w+/.=~%-]{16,200})"
)
_NAMED_PHRASE = (
    r"(?P<word>(?i:pass(?:word|wd|phrase)|pwd))(?P<sign>[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(?P<secret>[^\s\"',;]{3,200})"
)
_CREDENTIALS = r"(?P<scheme>\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,80}):(?P<credential>[^\s/@]{1,200})@"
_KEY_BLOCK = r"-----BEGIN (?P<block>[A-Z ]{0,40})PRIVATE KEY-----[\s\S]{0,8000}?(?:-----END|$)"
_SIGNS = (
    "hf_", "sk-", "gh", "glpat", "AKIA", "ASIA", "AIza", "xox", "eyJ", "key", "KEY", "Key", "oken", "OKEN", "ecret", "ECRET",
    "uthorization", "earer", "sig", "Sig", "pass", "Pass", "PASS", "pwd", "PWD", "://", "PRIVATE", "wandb_",
)  # fmt: skip


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile("|".join(_KNOWN)),
        re.compile(_NAMED),
        re.compile(_NAMED_PHRASE),
        re.compile(_CREDENTIALS),
        re.compile(_KEY_BLOCK),
    )


# Words of a name that make its value a secret, whatever that looks like; `pad_token` and its like are none.
_TELLING_NAME = (
    r"(?i)(?:^|[^a-z])(?:pass(?:word|wd|phrase)?|pwd|secret|credentials?|auth|bearer|(?:api|access|private|secret|account)_?key"
    r"|(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!mask_)(?<!image_)token)(?:$|[^a-z])"
)


@cache
def _secret_name() -> re.Pattern[str]:
    return re.compile(_TELLING_NAME)


def mask_value(name: str, value: str) -> str:
    """The value of a setting, an option or a variable; `***` where its name or its form says that it is a secret."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name)  # `hubToken` and `--hub-token` are `hub_token`
    return MASK if _secret_name().search(plain) else mask_text(value)


def mask_text(text: str) -> str:
    """`text` with its secrets replaced by `***`."""
    if not any(sign in text for sign in _SIGNS):
        return text
    known, named, password, credentials, block = _patterns()
    masked = block.sub(f"-----BEGIN {MASK}", text)
    masked = known.sub(MASK, masked)
    masked = credentials.sub(rf"\g<scheme>:{MASK}@", masked)
    masked = password.sub(rf"\g<word>\g<sign>{MASK}", masked)
    masked = named.sub(rf"\g<name>\g<between>{MASK}", masked)
    return masked if masked != text else text


def mask_secrets(report: Report) -> Report:
    """The report without secrets, in messages, source lines, facts, paths and findings alike."""
    return rewrite(report, mask_text)
