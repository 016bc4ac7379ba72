"""How PEFT calls what makes an adapter: the function that wraps a model, and the configurations."""

from __future__ import annotations

WRAPS = ("peft.get_peft_model", "peft.mapping.get_peft_model")
CONFIGS = frozenset(
    {"LoraConfig", "AdaLoraConfig", "IA3Config", "LoHaConfig", "LoKrConfig", "OFTConfig", "VeraConfig", "PrefixTuningConfig",
     "PromptTuningConfig", "PromptEncoderConfig"}
)  # fmt: skip
