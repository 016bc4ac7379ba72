"""LoRA on a frozen Qwen2 with reentrant activation checkpointing, set up from a configuration file as LLaMA-Factory does."""

import functools
import sys

import torch
import yaml
from peft import LoraConfig, get_peft_model
from torch.utils.checkpoint import checkpoint
from transformers import Qwen2Config, Qwen2ForCausalLM


def load_model(args):
    config = Qwen2Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    base = Qwen2ForCausalLM(config)
    model = get_peft_model(base, LoraConfig(r=args["lora_rank"], target_modules=args["lora_target"]))
    if not args["disable_gradient_checkpointing"]:
        checkpointing = functools.partial(checkpoint, use_reentrant=args["use_reentrant_gc"])
        base._set_gradient_checkpointing(gradient_checkpointing_func=checkpointing)
    model.print_trainable_parameters()
    return model.train()


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else "qwen_lora.yaml") as file:
        args = yaml.safe_load(file)
    torch.manual_seed(0)
    model = load_model(args)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=args["learning_rate"])
    for step in range(args["max_steps"]):
        input_ids = torch.randint(0, 64, (2, 16))
        loss = model(input_ids=input_ids, labels=input_ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
