cat <<'CONFIG' > accelerate.yaml
mixed_precision: --not-a-flag
CONFIG
accelerate launch --mixed_precision=fp16 --num_processes=2 run.py --per_device_train_batch_size=4 --tf32=true && echo --done
