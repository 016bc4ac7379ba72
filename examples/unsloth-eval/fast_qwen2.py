"""A stand-in for a framework that patches Qwen2: its final norm has a training kernel and one for decoding."""

import torch
from transformers import Qwen2ForCausalLM


class FastLanguageModel:
    @staticmethod
    def from_pretrained(model_name, dtype=torch.bfloat16):
        print("Unsloth: Fast Qwen2 patching (a stand-in that patches the final norm only)")
        model = Qwen2ForCausalLM.from_pretrained(model_name, dtype=dtype)
        patch_norm_for_decoding(model.model.norm)
        return model


def patch_norm_for_decoding(norm):
    """In eval mode the norm runs an inference kernel that reuses its memory."""
    train_forward = norm.forward

    def decode_forward(hidden_states):
        XX = hidden_states.to(torch.float32)
        variance = XX.square().mean(-1, keepdim=True)
        XX *= (variance + norm.variance_epsilon).rsqrt_()
        return norm.weight * XX.to(hidden_states.dtype)

    norm.forward = lambda hidden_states: (train_forward if norm.training else decode_forward)(hidden_states)
