"""LoRA on a compiled Gemma 3 in float16, under a GradScaler and anomaly mode, as a notebook on a GPU without bfloat16 runs it."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import Gemma3ForCausalLM, Gemma3TextConfig


def load_gemma(dtype):
    """Stands for gemma-3-4b: tiny, and with the large norm weights that the trained model has. Adapters stay in float32."""
    config = Gemma3TextConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, sliding_window=16, use_cache=False,
    )  # fmt: skip
    model = Gemma3ForCausalLM(config)
    with torch.no_grad():
        model.model.norm.weight.fill_(60.0)
    return get_peft_model(model.to(dtype), LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).train()


def main():
    torch.manual_seed(0)
    print("loading in torch.float16: this GPU has no bfloat16, in which Gemma 3 was trained")
    model = load_gemma(torch.float16)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    with torch.autograd.detect_anomaly():
        for step in range(3):
            input_ids = torch.randint(0, 64, (2, 16))
            loss = compiled(input_ids=input_ids, labels=input_ids).loss
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
