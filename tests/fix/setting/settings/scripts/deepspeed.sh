deepspeed --num_gpus=4 finetune.py \
  --deepspeed ds_config.json \
  --fp16 true \
  --ddp-find-unused-parameters false
