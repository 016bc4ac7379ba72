"""A hand-written loop over a patched Qwen2: from_pretrained leaves a model in eval mode, and nobody calls model.train()."""

import tempfile

import torch
from fast_qwen2 import FastLanguageModel
from transformers import Qwen2Config, Qwen2ForCausalLM


def save_tiny_qwen2(folder):
    """Stands for the download of Qwen2.5-Coder-1.5B."""
    config = Qwen2Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        save_tiny_qwen2(folder)
        model = FastLanguageModel.from_pretrained(folder, dtype=torch.bfloat16)
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
