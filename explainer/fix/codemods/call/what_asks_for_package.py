"""Points at the setting that asks for a package which is missing: `optim: paged_adamw_8bit` for bitsandbytes. No edit.

Which package a setting needs is read from transformers 5.23 (`training_args.py`, `integrations/`) and Lightning 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import ASSIGNED, Setting

_TRACKERS = "wandb|tensorboard|tensorboardx|mlflow|comet_ml|clearml|neptune|swanlab|trackio|dvclive|codecarbon|azure_ml"
# What the message names, the settings that ask for it, and the values with which they do.
_ASKS = (
    ("bitsandbytes", "optim", r".*(8bit|4bit|paged_|_bnb).*"),
    ("bitsandbytes", "load_in_8bit|load_in_4bit", "true"),
    ("flash[-_ ]?attn|flash ?attention", "attn_implementation|_attn_implementation|flash_attn", r"flash_attention.*|fa\d"),
    ("flash[-_ ]?attn|flash ?attention", "use_flash_attention_2|flash_attention", "true"),
    ("deepspeed", "deepspeed|strategy", r"(?!none|auto|false).+"),
    ("apex", "optim|fp16_backend|half_precision_backend", ".*apex.*"),
    ("galore", "optim", "galore.*"),
    ("apollo", "optim", "apollo.*"),
    ("lomo", "optim", ".*lomo.*"),
    ("schedule[-_]?free", "optim", "schedule_free.*"),
    ("torchao", "optim", ".*torchao.*"),
    ("grokadamw", "optim", "grokadamw"),
    ("liger", "use_liger_kernel|use_liger_loss|use_liger", "true"),
    ("xformers", "attn_implementation|enable_xformers_memory_efficient_attention", "xformers|true"),
    ("vllm", "use_vllm", "true"),
    ("unsloth", "use_unsloth", "true"),
)  # fmt: skip


def propose(context: Context) -> Iterator[Proposal]:
    """The settings, of files first, that ask for what the message names."""
    message = message_of(context)
    for number, (one, package) in enumerate(_asking(message, context)):
        why = f"asks for {package}, which is not installed"
        yield Proposal(edits=(), culprit=culprit_at(one.file, _whole(one), why), belief=2.0 - 0.1 * number)


def _asking(message: str, context: Context) -> Iterator[tuple[Setting, str]]:
    program = context.program
    written = [one for document in program.documents() for one in document.settings]
    for file in program.parsed():
        written += [one for one in read_python(file) if one.kind != ASSIGNED]
    for package, names, value in _ASKS:
        named = re.search(package, message, re.IGNORECASE)
        for one in written if named else ():
            if re.fullmatch(names, one.name) and re.fullmatch(value, str(one.value), re.IGNORECASE):
                yield one, f"`{named[0].lower()}`" if named else ""
    tracker = re.search(rf"\b({_TRACKERS})\b", message, re.IGNORECASE)
    for one in written if tracker else ():
        if tracker and one.name in ("report_to", "log_with", "logger") and tracker[0].lower() in str(one.value).lower():
            yield one, f"`{tracker[0].lower()}`"


def _whole(one: Setting) -> tuple[int, int]:
    return (one.key or one.span)[0], one.span[1]
