"""A Qwen2 whose final norm has a decode-time kernel that works in place; nobody calls model.train()."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM


def patch_norm_for_decoding(norm):
    """What a framework does to a model: in eval mode the norm runs an inference kernel that reuses its memory."""
    train_forward = norm.forward

    def decode_forward(hidden_states):
        XX = hidden_states.to(torch.float32)
        variance = XX.square().mean(-1, keepdim=True)
        XX *= (variance + norm.variance_epsilon).rsqrt_()
        return norm.weight * XX.to(hidden_states.dtype)

    norm.forward = lambda hidden_states: (train_forward if norm.training else decode_forward)(hidden_states)


def main():
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    print("Unsloth: Fast Qwen2 patching (a stand-in that patches the final norm only)")
    model = Qwen2ForCausalLM(config).to(torch.bfloat16).eval()  # from_pretrained leaves a model in eval mode
    patch_norm_for_decoding(model.model.norm)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        input_ids = torch.randint(0, 64, (1, 24))
        loss = model(input_ids=input_ids, labels=input_ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
