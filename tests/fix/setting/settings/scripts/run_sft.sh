#!/bin/bash
export WANDB_MODE=disabled
LR=2e-5

torchrun --nproc_per_node=8 --master_port 29501 \
    train.py \
    --model_name_or_path "meta-llama/Llama-2-7b-hf" \
    --output_dir ./out \
    --bf16 False \
    --fp16 True \
    --learning_rate $LR \
    --evaluation_strategy "no" \
    --gradient_checkpointing \
    --report_to none
