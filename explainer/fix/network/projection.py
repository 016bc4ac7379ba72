"""What the layers of an architecture are called: the defaults of PEFT, and which name each projection has.

Two names of one projection are as good as each other only within an architecture: `q_proj` and `v_proj` of LLaMA are parts of
`query_key_value` in GPT-NeoX. Read from PEFT 0.21.2 (`TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`) and from models that
transformers 5.23 builds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_QV = ("q_proj", "v_proj")
_FUSED = ("query_key_value",)
_BERT = ("query", "value")
# By `model_type`, as PEFT writes them; those that are one regular expression are left out.
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "t5": ("q", "v"), "mt5": ("q", "v"), "bart": _QV, "gpt2": ("c_attn",), "bloom": _FUSED, "opt": _QV, "gptj": _QV,
    "gpt_neox": _FUSED, "gpt_neo": _QV, "bert": _BERT, "roberta": _BERT, "xlm-roberta": _BERT, "electra": _BERT,
    "deberta-v2": ("query_proj", "value_proj"), "deberta": ("in_proj",), "layoutlm": _BERT, "llama": _QV, "llama4": _QV,
    "chatglm": _FUSED, "gpt_bigcode": ("c_attn",), "mpt": ("Wqkv",), "falcon": _FUSED, "codegen": ("qkv_proj",), "mistral": _QV,
    "mixtral": _QV, "stablelm": _QV, "phi": ("q_proj", "v_proj", "fc1", "fc2"), "gemma": _QV, "gemma2": _QV, "gemma3_text": _QV,
    "qwen2": _QV, "qwen3": _QV,
}  # fmt: skip

Q, K, V, OUT, UP, DOWN = "query", "key", "value", "output", "up", "down"
Layout = Mapping[str, tuple[str, ...]]


def _layout(qkv: tuple[str, str, str], out: str | None, up: Sequence[str] = (), down: str | None = None) -> Layout:
    q, k, v = qkv
    found = {Q: (q,), K: (k,), V: (v,), OUT: (out,) if out else (), UP: tuple(up), DOWN: (down,) if down else ()}
    return {role: names for role, names in found.items() if names}


_LLAMA = _layout(("q_proj", "k_proj", "v_proj"), "o_proj", ("gate_proj", "up_proj"), "down_proj")
_ENCODER = _layout(("q_proj", "k_proj", "v_proj"), "out_proj", ("fc1",), "fc2")
_NEOX = _layout(("query_key_value",) * 3, "dense", ("dense_h_to_4h",), "dense_4h_to_h")
_OF_BERT = _layout(("query", "key", "value"), "attention.output.dense", ("intermediate.dense",))
_OF_GPT2 = _layout(("c_attn",) * 3, "attn.c_proj", ("c_fc",), "mlp.c_proj")
_OF_VIT = _layout(("q_proj", "k_proj", "v_proj"), "o_proj", ("fc1",), "fc2")
# The layouts of a `model_type`, the newest first: ViT's projections were `query` and `value` before transformers 5.
_LAYOUTS: Mapping[str, tuple[Layout, ...]] = {
    **dict.fromkeys(("llama", "mistral", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen3", "stablelm"), (_LLAMA,)),
    **dict.fromkeys(("cohere", "olmo", "olmo2", "granite", "smollm3"), (_LLAMA,)),
    **dict.fromkeys(("mixtral", "qwen3_moe", "qwen2_moe"), (_layout(("q_proj", "k_proj", "v_proj"), "o_proj"),)),
    **dict.fromkeys(("bart", "mbart", "opt", "whisper", "clip", "pegasus", "marian", "m2m_100", "blenderbot"), (_ENCODER,)),
    **dict.fromkeys(("xglm", "biogpt"), (_ENCODER,)),
    **dict.fromkeys(("wav2vec2", "hubert"), (_layout(("q_proj", "k_proj", "v_proj"), "out_proj"),)),
    **dict.fromkeys(("bloom", "falcon", "gpt_neox"), (_NEOX,)),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra", "layoutlm", "camembert", "ernie", "longformer"), (_OF_BERT,)),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), (_OF_GPT2,)),
    **dict.fromkeys(("vit", "deit", "beit", "dinov2"), (_OF_VIT, _OF_BERT)),
    **dict.fromkeys(("t5", "mt5", "mpnet"), (_layout(("q", "k", "v"), "o"),)),
    "gptj": (_layout(("q_proj", "k_proj", "v_proj"), "out_proj", ("fc_in",), "fc_out"),),
    "gpt_neo": (_layout(("q_proj", "k_proj", "v_proj"), "out_proj", ("c_fc",), "c_proj"),),
    "phi": (_layout(("q_proj", "k_proj", "v_proj"), "dense", ("fc1",), "fc2"),),
    "phi3": (_layout(("qkv_proj",) * 3, "o_proj", ("gate_up_proj",), "down_proj"),),
    "mpt": (_layout(("Wqkv",) * 3, "out_proj", ("ffn.up_proj",), "ffn.down_proj"),),
    "codegen": (_layout(("qkv_proj",) * 3, "out_proj", ("fc_in",), "fc_out"),),
    "starcoder2": (_layout(("q_proj", "k_proj", "v_proj"), "o_proj", ("c_fc",), "c_proj"),),
    "distilbert": (_layout(("q_lin", "k_lin", "v_lin"), "out_lin", ("lin1",), "lin2"),),
    "albert": (_layout(("query", "key", "value"), "attention.dense", ("ffn",), "ffn_output"),),
    "deberta-v2": (_layout(("query_proj", "key_proj", "value_proj"), "attention.output.dense"),),
}  # fmt: skip
# What the projections are called anywhere, by what they do.
_ROLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("q_proj", "query", "q", "q_lin", "query_proj", "wq", "to_q"), (Q,)),
    **dict.fromkeys(("k_proj", "key", "k", "k_lin", "key_proj", "wk", "to_k"), (K,)),
    **dict.fromkeys(("v_proj", "value", "v", "v_lin", "value_proj", "wv", "to_v"), (V,)),
    **dict.fromkeys(("query_key_value", "c_attn", "qkv_proj", "Wqkv", "in_proj", "W_pack", "wqkv", "qkv"), (Q, K, V)),
    **dict.fromkeys(("o_proj", "out_proj", "o", "out_lin", "attn.c_proj", "attention.output.dense", "wo"), (OUT,)),
    **dict.fromkeys(("gate_proj", "up_proj", "fc1", "fc_in", "c_fc", "dense_h_to_4h", "lin1", "gate_up_proj"), (UP,)),
    **dict.fromkeys(("down_proj", "fc2", "fc_out", "mlp.c_proj", "dense_4h_to_h", "lin2"), (DOWN,)),
}  # fmt: skip
_CLASS = re.compile(
    r"transformers\.(?:[\w.]+\.)?(?:TF)?(\w+?)(?:For\w+|LMHeadModel|DoubleHeadsModel|EncoderModel|Model|Config)(?:\.from_\w+)?$"
)
# Names under which the models of an architecture are published.
_PUBLISHED = (
    (r"(distil)?gpt2(-|$)", "gpt2"), (r"pythia|gpt-neox|dolly-v2", "gpt_neox"), (r"bloomz?(-|$)", "bloom"),
    (r"falcon-(rw-)?\d+b", "falcon"), (r"opt-[\d.]+[mb]", "opt"), (r"(flan-)?t5-", "t5"), (r"mt5-", "mt5"), (r"bert-", "bert"),
    (r"distilbert-", "distilbert"), (r"(distil)?roberta-", "roberta"), (r"xlm-roberta-", "xlm-roberta"), (r"gpt-j-", "gptj"),
    (r"gpt-neo-", "gpt_neo"), (r"phi-[12]", "phi"), (r"phi-3", "phi3"), (r"mpt-", "mpt"), (r"vit-", "vit"), (r"albert-", "albert"),
    (r"deberta-v[23]-", "deberta-v2"), (r"(llama-|tinyllama|smollm2?-)", "llama"), (r"mistral-", "mistral"), (r"qwen2", "qwen2"),
)  # fmt: skip


def architecture_of_class(qualified: str) -> str | None:
    """The `model_type` of a class of transformers: "gpt_neox" for `transformers.GPTNeoXForCausalLM` and its configuration."""
    found = _CLASS.match(qualified)
    return known_architecture(found[1]) if found else None


def architecture_of_release(name: str) -> str | None:
    """The `model_type` of a model published under a name: "gpt_neox" for `EleutherAI/pythia-70m`."""
    last = name.rpartition("/")[2].lower()
    return next((one for pattern, one in _PUBLISHED if re.match(pattern, last)), None)


def known_architecture(name: str) -> str | None:
    """A `model_type` whose names are known, of any spelling of it: `GPTNeoX`, `gpt_neox`."""
    plain = _plain(name)
    return next((one for one in (*_LAYOUTS, *DEFAULTS) if _plain(one) in (plain, f"{plain}text")), None)


def _plain(name: str) -> str:
    return re.sub(r"[_\-]", "", name).lower()


def names_for(architecture: str, names: Sequence[str]) -> list[list[str]]:
    """What the layers that `names` mean are called in an architecture that has none of them, the likeliest answer first.

    The default of another architecture stands for the default of this one; other lists are taken projection by projection.
    """
    default = DEFAULTS.get(architecture)
    candidates = [_translated(names, one) for one in _LAYOUTS.get(architecture, ())]
    is_default = tuple(sorted(names)) in {tuple(sorted(one)) for one in DEFAULTS.values()}
    if default is not None:
        candidates.insert(0 if is_default else len(candidates), list(default))
    fitting = [one for one in candidates if one and not set(one) & set(names)]
    return [one for at, one in enumerate(fitting) if one not in fitting[:at]]


def _translated(names: Sequence[str], layout: Layout) -> list[str] | None:
    """Each name by what it does; None where one of them does what this architecture has no single name for."""
    found: dict[str, None] = {}
    for name in names:
        roles = _ROLES.get(name) or _ROLES.get(name.rpartition(".")[2])
        if roles is None or not all(role in layout for role in roles):
            return None
        found.update(dict.fromkeys(one for role in roles for one in layout[role]))
    return list(found)


def names_among(layers: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """What the layers that `names` mean are called among those that a live model has, by path.

    None where the model has one of the names, or no single answer: two layers of different names that do the same.
    """
    present = {path.rpartition(".")[2] for path in layers} | {
        name for path in layers for name in _ROLES if "." in name and f".{path}".endswith(f".{name}")
    }
    if present & set(names):
        return None
    found: dict[str, None] = {}
    for name in names:
        wanted = _ROLES.get(name) or _ROLES.get(name.rpartition(".")[2]) or ()
        alike = [one for one in sorted(present) if set(wanted) & set(_ROLES.get(one, ()))]
        if len(alike) != 1:
            return None
        found[alike[0]] = None
    return list(found)
