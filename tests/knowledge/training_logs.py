"""Training logs without a traceback, as trainers print them, and which causes may come first; "" for no finding."""

LOGS = {
    "hf first row ok, grad nan, then 0": (
        ("distributed/gradient-communication-corrupted", "nan/fused-kernel-backward", "nan/loss-zero-grad-nan"),
        "{'loss': 1.9312, 'grad_norm': nan, 'learning_rate': 2e-05, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.98e-05, 'epoch': 0.02}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.96e-05, 'epoch': 0.03}\n",
    ),
    "hf zero from row one": (
        ("nan/loss-zero-grad-nan",),
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.02}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.03}\n",
    ),
    "hf v5 strings": (
        ("nan/loss-zero-grad-nan",),
        "{'loss': '4.148', 'grad_norm': 'nan', 'learning_rate': '0.001', 'epoch': '0.125'}\n"
        "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '0.0008333', 'epoch': '0.25'}\n",
    ),
    "hf old no grad_norm, zeros": (
        ("nan/loss-zero-grad-nan",),
        "{'loss': 1.2, 'learning_rate': 0.0003, 'epoch': 0.05}\n"
        "{'loss': 0.0, 'learning_rate': 0.00029, 'epoch': 0.1}\n"
        "{'loss': 0.0, 'learning_rate': 0.00028, 'epoch': 0.15}\n"
        "{'eval_loss': nan, 'eval_runtime': 12.1, 'eval_samples_per_second': 8.2, 'epoch': 0.15}\n",
    ),
    "hf old zeros only": (
        ("nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "{'loss': 0.0, 'learning_rate': 0.0003, 'epoch': 0.05}\n"
        "{'loss': 0.0, 'learning_rate': 0.00029, 'epoch': 0.1}\n"
        "{'loss': 0.0, 'learning_rate': 0.00028, 'epoch': 0.15}\n",
    ),
    "hf absurd first then 0": (
        ("nan/low-precision-overflow", "nan/uninitialised-weights"),
        "{'loss': 344093.5, 'grad_norm': nan, 'learning_rate': 2e-05, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.98e-05, 'epoch': 0.02}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.96e-05, 'epoch': 0.03}\n",
    ),
    "hf absurd 60 no norm": (
        ("nan/low-precision-overflow", "nan/uninitialised-weights"),
        "{'loss': 60.1, 'learning_rate': 2e-05, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'learning_rate': 1.98e-05, 'epoch': 0.02}\n"
        "{'loss': 0.0, 'learning_rate': 1.96e-05, 'epoch': 0.03}\n",
    ),
    "hf nan now and then": (
        ("precision/scaler-skipped-step",),
        "{'loss': 1.9312, 'grad_norm': 1.2, 'learning_rate': 2e-05, 'epoch': 0.01}\n"
        "{'loss': 1.8312, 'grad_norm': nan, 'learning_rate': 1.98e-05, 'epoch': 0.02}\n"
        "{'loss': 1.7312, 'grad_norm': 0.9, 'learning_rate': 1.98e-05, 'epoch': 0.03}\n"
        "{'loss': 1.7012, 'grad_norm': 0.8, 'learning_rate': 1.96e-05, 'epoch': 0.03}\n",
    ),
    "hf inf first rows then fine fp16": (
        ("precision/scaler-skipped-step",),
        "{'loss': 1.9312, 'grad_norm': inf, 'learning_rate': 2e-05, 'epoch': 0.01}\n"
        "{'loss': 1.8312, 'grad_norm': inf, 'learning_rate': 2e-05, 'epoch': 0.02}\n"
        "{'loss': 1.9012, 'grad_norm': nan, 'learning_rate': 2e-05, 'epoch': 0.03}\n"
        "{'loss': 1.7312, 'grad_norm': 0.9, 'learning_rate': 1.98e-05, 'epoch': 0.03}\n"
        "{'loss': 1.7012, 'grad_norm': 0.8, 'learning_rate': 1.96e-05, 'epoch': 0.03}\n",
    ),
    "beit avg nan": (
        ("precision/scaler-skipped-step",),
        "Epoch: [115]  [1298/1299]  eta: 0:00:00  lr: 0.001435  min_lr: 0.001435  mlm_acc: 0.0333 (0.0344)  loss: 6.5993 (6.5971)  loss_scale: 8192.0000 (8646.0600)  weight_decay: 0.0500 (0.0500)  grad_norm: 0.3922 (nan)  time: 0.4944  data: 0.0001  max mem: 19152\n"
        "Averaged stats: lr: 0.001435  min_lr: 0.001435  mlm_acc: 0.0333 (0.0345)  loss: 6.5993 (6.5925)  loss_scale: 8192.0000 (8646.0600)  weight_decay: 0.0500 (0.0500)  grad_norm: 0.3922 (nan)\n",
    ),
    "mmcv first row nan then fine": (
        ("precision/scaler-skipped-step",),
        "2021-11-22 01:30:34,502 - mmocr - INFO - Epoch [1][100/62598]\tlr: 1.000e-03, eta: 6 days, 15:22:46, time: 0.539, data_time: 0.051, memory: 7239, loss_ce: 1.2757, loss: 1.9091, grad_norm: nan\n"
        "2021-11-22 01:32:34,502 - mmocr - INFO - Epoch [1][200/62598]\tlr: 1.000e-03, eta: 7 days, 15:55:58, time: 0.705, data_time: 0.002, memory: 7239, loss_ce: 0.5921, loss: 0.9186, grad_norm: 3.9772\n",
    ),
    "mmdet all nan": (
        ("nan/bad-input", "nan/learning-rate-divergence"),
        "2023-02-20 11:42:34,502 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 1 day, 2:11:01, loss_rpn_cls: 0.65, loss_rpn_bbox: 0.10, loss_cls: 1.21, acc: 88.1, loss_bbox: 0.03, loss: 1.99, grad_norm: 5.1\n"
        "2023-02-20 11:42:54,502 - mmdet - INFO - Epoch [1][100/7330]\tlr: 3.976e-03, eta: 1 day, 2:11:01, loss_rpn_cls: 1.65, loss_rpn_bbox: 0.90, loss_cls: 9.21, acc: 70.1, loss_bbox: 4.03, loss: 15.8, grad_norm: 331.2\n"
        "2023-02-20 11:43:14,502 - mmdet - INFO - Epoch [1][150/7330]\tlr: 5.974e-03, eta: 1 day, 2:11:01, loss_rpn_cls: nan, loss_rpn_bbox: nan, loss_cls: nan, acc: 3.1, loss_bbox: nan, loss: nan, grad_norm: nan\n",
    ),
    "hf divergence": (
        ("nan/learning-rate-divergence",),
        "{'loss': 2.1, 'grad_norm': 2.1, 'learning_rate': 0.0001, 'epoch': 0.01}\n"
        "{'loss': 2.9, 'grad_norm': 18.2, 'learning_rate': 0.0004, 'epoch': 0.02}\n"
        "{'loss': 7.4, 'grad_norm': 221.0, 'learning_rate': 0.0007, 'epoch': 0.03}\n"
        "{'loss': 11.9, 'grad_norm': 15332.0, 'learning_rate': 0.001, 'epoch': 0.04}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0013, 'epoch': 0.05}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0016, 'epoch': 0.06}\n",
    ),
    "ignored isolated zeros": (
        ("nan/all-labels-ignored",),
        "{'loss': '4.127', 'grad_norm': '2.261', 'learning_rate': '0.001', 'epoch': '0.125'}\n"
        "{'loss': '4.155', 'grad_norm': '1.982', 'learning_rate': '0.0008333', 'epoch': '0.25'}\n"
        "{'loss': '0', 'grad_norm': '0', 'learning_rate': '0.0006667', 'epoch': '0.375'}\n"
        "{'loss': '4.219', 'grad_norm': '2.175', 'learning_rate': '0.0005', 'epoch': '0.5'}\n"
        "{'loss': '0', 'grad_norm': '0', 'learning_rate': '0.0003333', 'epoch': '0.625'}\n",
    ),
    "ignored all": (
        ("nan/all-labels-ignored",),
        "{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 0.001, 'epoch': 0.125}\n"
        "{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 0.0008333, 'epoch': 0.25}\n"
        "{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 0.0006667, 'epoch': 0.375}\n",
    ),
    "ignored loss nan, norm 0 (filter off)": (
        ("nan/all-labels-ignored",),
        "{'loss': nan, 'grad_norm': 0.0, 'learning_rate': 0.001, 'epoch': 0.125}\n"
        "{'loss': 1.2, 'grad_norm': 0.9, 'learning_rate': 0.0008333, 'epoch': 0.25}\n"
        "{'loss': nan, 'grad_norm': 0.0, 'learning_rate': 0.0006667, 'epoch': 0.375}\n",
    ),
    "grpo zero is fine": (
        (),
        "{'loss': 0.0, 'grad_norm': 0.0312, 'learning_rate': 1e-06, 'completion_length': 210.5, 'rewards/fmt': 0.5, 'reward': 0.5, 'reward_std': 0.2, 'kl': 0.0, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': 0.0412, 'learning_rate': 1e-06, 'completion_length': 211.5, 'rewards/fmt': 0.6, 'reward': 0.6, 'reward_std': 0.2, 'kl': 0.0001, 'epoch': 0.02}\n",
    ),
    "grpo nan": (
        ("nan/fused-kernel-backward", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 5e-07, 'completion_length': 210.5, 'rewards/fmt': 0.5, 'reward': 0.5, 'reward_std': 0.2, 'kl': nan, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-06, 'completion_length': 256.0, 'rewards/fmt': 0.0, 'reward': 0.0, 'reward_std': 0.0, 'kl': nan, 'epoch': 0.02}\n",
    ),
    "simpo tiny lr bf16": (
        ("nan/loss-zero-grad-nan",),
        "bf16: true\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 2.5784903139612557e-08, 'rewards/chosen': nan, 'rewards/rejected': nan, 'logps/rejected': nan, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 5.5784903139612557e-08, 'rewards/chosen': nan, 'rewards/rejected': nan, 'logps/rejected': nan, 'epoch': 0.02}\n",
    ),
    "t4 gemma unsloth no traceback": (
        ("nan/low-precision-overflow",),
        "==((====))==  Unsloth 2025.3.12: Fast Gemma3 patching. Transformers: 4.50.0.\n"
        "   \\\\   /|    Tesla T4. Num GPUs = 1. Max memory: 14.741 GB. Platform: Linux.\n"
        "O^O/ \\_/ \\    Torch: 2.6.0+cu124. CUDA: 7.5. CUDA Toolkit: 12.4. Triton: 3.2.0\n"
        "\\        /    Bfloat16 = FALSE. FA [Xformers = 0.0.29.post3. FA2 = False]\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4e-05, 'epoch': 0.0}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 8e-05, 'epoch': 0.0}\n",
    ),
    "fp16 trainer args mt5": (
        ("nan/low-precision-overflow",),
        "TrainingArguments(output_dir='out', fp16=True, learning_rate=5e-05)\n"
        "google/mt5-small\n"
        "{'loss': 0.0, 'learning_rate': 4.9e-05, 'epoch': 0.1}\n"
        "{'loss': 0.0, 'learning_rate': 4.8e-05, 'epoch': 0.2}\n"
        "{'eval_loss': nan, 'eval_rouge1': 0.0, 'epoch': 1.0}\n",
    ),
    "lightning bar nan": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "Epoch 0:   5%|▌         | 10/200 [00:02<00:41,  4.5it/s, loss=0.693, v_num=3]\n"
        "Epoch 0:  10%|█         | 20/200 [00:04<00:41,  4.5it/s, loss=0.671, v_num=3]\n"
        "Epoch 0:  15%|█▌        | 30/200 [00:06<00:41,  4.5it/s, loss=nan, v_num=3]\n"
        "Epoch 0:  20%|██        | 40/200 [00:08<00:41,  4.5it/s, loss=nan, v_num=3]\n",
    ),
    "lightning2 train_loss=nan.0": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "Epoch 0:  50%|█████     | 10/20 [00:00<00:00, 131.52it/s, v_num=0, train_loss=0.694]\n"
        "Epoch 0: 100%|██████████| 20/20 [00:00<00:00, 131.52it/s, v_num=0, train_loss=nan.0]\n",
    ),
    "kohya avr_loss": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "steps:   0%|          | 1/1600 [00:03<1:23:12,  3.12s/it, avr_loss=nan]\n"
        "steps:   0%|          | 2/1600 [00:06<1:20:12,  3.02s/it, avr_loss=nan]\n",
    ),
    "kohya fp16": (
        ("nan/low-precision-overflow",),
        'accelerate launch --mixed_precision="fp16" train_network.py --mixed_precision=fp16 --optimizer_type=AdamW8bit\n'
        "steps:   0%|          | 1/1600 [00:03<1:23:12,  3.12s/it, avr_loss=nan]\n"
        "steps:   0%|          | 2/1600 [00:06<1:20:12,  3.02s/it, avr_loss=nan]\n",
    ),
    "nanogpt": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "iter 0: loss 10.9886, time 5323.11ms, mfu -100.00%\n"
        "iter 10: loss 10.2213, time 523.11ms, mfu 31.00%\n"
        "iter 20: loss 11.8213, time 523.11ms, mfu 31.00%\n"
        "iter 30: loss 24.2213, time 523.11ms, mfu 31.00%\n"
        "iter 40: loss nan, time 523.11ms, mfu 31.00%\n",
    ),
    "fairseq one overflow": (
        ("precision/scaler-skipped-step",),
        "2020-08-01 12:39:16 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: 1024.0\n"
        "2020-08-01 12:39:39 | INFO | train_inner | epoch 001:   3615 / 6547 loss=0.439, nll_loss=0.001, accuracy=87.9, wps=82565, ups=2.66, wpb=31075.5, bsz=64, num_updates=3600, lr=9e-06, gnorm=3.952, loss_scale=1399, train_wall=38, wall=1353\n",
    ),
    "fairseq gradient overflow newer": (
        ("precision/scaler-skipped-step",),
        "2022-10-01 12:39:16 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0\n"
        "2022-10-01 12:39:39 | INFO | train_inner | epoch 001:    200 / 6547 loss=4.439, nll_loss=3.2, ppl=9.2, num_updates=199, lr=9e-06, gnorm=3.952, loss_scale=64, train_wall=38, wall=1353\n"
        "2022-10-01 12:40:39 | INFO | train_inner | epoch 001:    300 / 6547 loss=4.339, nll_loss=3.1, ppl=9.1, num_updates=299, lr=9e-06, gnorm=3.152, loss_scale=64, train_wall=38, wall=1353\n",
    ),
    "fairseq exhausted": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "2022-10-01 12:39:16 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 0.0002\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.8/site-packages/fairseq/optim/dynamic_loss_scaler.py", line 60, in check_overflow\n'
        "    ).format(self.min_loss_scale)\n"
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.\n",
    ),
    "deepspeed few overflow at start": (
        ("precision/scaler-skipped-step",),
        "[2023-04-28 06:51:29,903] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1\n"
        "[2023-04-28 06:51:30,648] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
        "[2023-04-28 06:52:30,648] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2, lr=[9.65e-06], mom=[(0.9, 0.95)]\n"
        "{'loss': 1.9, 'learning_rate': 9.65e-06, 'epoch': 0.01}\n"
        "{'loss': 1.7, 'learning_rate': 9.60e-06, 'epoch': 0.02}\n",
    ),
    "deepspeed exhausted": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "[2023-06-07 22:31:00,018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2\n"
        "[2023-06-07 22:33:00,018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1\n"
        "Traceback (most recent call last):\n"
        '  File "run_clm.py", line 640, in <module>\n'
        "    main()\n"
        '  File "/usr/lib/python3.10/site-packages/deepspeed/runtime/fp16/loss_scaler.py", line 175, in update_scale\n'
        "    raise Exception(\n"
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
    ),
    "deepspeed loss scale 1 forever": (
        ("nan/low-precision-overflow",),
        "[2021-11-27 00:36:54,800] [INFO] [stage2.py:1628:step] [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1\n"
        "  0%|          | 98/24128 [00:40<2:40:10,  2.50it/s][2021-11-27 00:36:55,194] [INFO] [stage2.py:1628:step] [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1\n"
        "t5-11b --fp16\n",
    ),
    "megatron grad norm nan": (
        ("nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/non-finite-grad-norm"),
        "iteration     5426/  250000 | consumed samples:        43408 | consumed tokens:     88899584 | elapsed time per iteration (ms): 4247.9 | learning rate: 2.999E-04 | global batch size:     8 | loss scale: 1.0 | grad norm: nan | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 1.886 | TFLOPs: 78.46 |\n"
        "iteration     5427/  250000 | consumed samples:        43416 | consumed tokens:     88907776 | elapsed time per iteration (ms): 4247.9 | learning rate: 2.999E-04 | global batch size:     8 | loss scale: 1.0 | grad norm: nan | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 1.886 | TFLOPs: 78.46 |\n",
    ),
    "megatron skipped at start": (
        ("precision/scaler-skipped-step",),
        "iteration        1/  500000 | consumed samples:          512 | learning rate: 0.000E+00 | lm loss: 1.083E+01 | loss scale: 4294967296.0 | grad norm: inf | number of skipped iterations:   1 | number of nan iterations:   0 |\n"
        "iteration       17/  500000 | consumed samples:          8704 | learning rate: 0.000E+00 | lm loss: 1.083E+01 | loss scale: 65536.0 | grad norm: 12.1 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        "iteration       18/  500000 | consumed samples:          9216 | learning rate: 1.000E-06 | lm loss: 1.072E+01 | loss scale: 65536.0 | grad norm: 11.8 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
    ),
    "apex overflow": (
        ("precision/scaler-skipped-step",),
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
        "Epoch: [0][10/5005] Loss 6.9 (7.0)\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0\n"
        "Epoch: [0][20/5005] Loss 6.8 (6.9)\n",
    ),
    "apex to zero": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 2.9802322387695312e-08\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.4901161193847656e-08\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 7.450580596923828e-09\n",
    ),
    "mae stop": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "Epoch: [0]  [  40/1251]  eta: 0:12:07  lr: 0.000012  loss: 0.9863 (1.0020)  time: 0.5  data: 0.1  max mem: 9921\n"
        "Loss is nan, stopping training\n",
    ),
    "yolov5 nan cols": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "      Epoch    GPU_mem   box_loss   obj_loss   cls_loss  Instances       Size\n"
        "       0/99      3.35G        nan        nan        nan         35        640: 100%|██████████| 8/8 [00:05<00:00,  1.43it/s]\n"
        "                 Class     Images  Instances          P          R      mAP50   mAP50-95: 100%|██████████| 4/4\n"
        "                   all        128        929          0          0          0          0\n",
    ),
    "ultralytics 1660": (
        ("nan/low-precision-overflow",),
        "Ultralytics YOLOv8.0.20  Python-3.9.13 torch-1.13.1 CUDA:0 (NVIDIA GeForce GTX 1660 Ti, 6144MiB)\n"
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "       1/100      2.25G        nan        nan        nan         35        640: 100%|██████████| 8/8 [00:05<00:00,  1.43it/s]\n",
    ),
    "timm": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "Train: 0 [   0/1251 (  0%)]  Loss: 6.95 (6.95)  Time: 3.1s\n"
        "Train: 0 [  50/1251 (  4%)]  Loss: nan (nan)  Time: 0.5s\n"
        "Train: 0 [ 100/1251 (  8%)]  Loss: nan (nan)  Time: 0.5s\n",
    ),
    "plain print tensor nan": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan", "nan/low-precision-overflow"),
        "epoch 1 loss tensor(0.7012, grad_fn=<NllLossBackward0>)\n"
        "epoch 2 loss tensor(nan, grad_fn=<NllLossBackward0>)\n"
        "epoch 3 loss tensor(nan, grad_fn=<NllLossBackward0>)\n",
    ),
    "keras-like epochs": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/loss-zero-grad-nan"),
        "Epoch 1/100 | Train Loss: nan | Val Loss: nan | Acc: 0.1000\n"
        "Epoch 2/100 | Train Loss: nan | Val Loss: nan | Acc: 0.1000\n",
    ),
    "end of epoch nan after good": (
        ("nan/bad-input", "nan/learning-rate-divergence"),
        "{'loss': 0.71, 'grad_norm': 1.1, 'learning_rate': 4.9e-05, 'epoch': 0.2}\n"
        "{'loss': 0.61, 'grad_norm': 1.2, 'learning_rate': 4.8e-05, 'epoch': 0.4}\n"
        "{'loss': 0.55, 'grad_norm': 1.1, 'learning_rate': 4.7e-05, 'epoch': 0.6}\n"
        "{'loss': 0.52, 'grad_norm': 1.3, 'learning_rate': 4.6e-05, 'epoch': 0.8}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.5e-05, 'epoch': 0.99}\n",
    ),
    "deepspeed zero2 overlap": (
        ("distributed/gradient-communication-corrupted",),
        "deepspeed config: {'zero_optimization': {'stage': 2, 'overlap_comm': True, 'contiguous_gradients': True}, 'bf16': {'enabled': True}}\n"
        "{'loss': 1.4596, 'grad_norm': nan, 'learning_rate': 4.5e-06, 'epoch': 0.01}\n"
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.4e-06, 'epoch': 0.02}\n",
    ),
    "healthy": (
        (),
        "{'loss': 1.4596, 'grad_norm': 1.0, 'learning_rate': 4.5e-06, 'epoch': 0.01}\n"
        "{'loss': 1.4, 'grad_norm': 1.1, 'learning_rate': 4.4e-06, 'epoch': 0.02}\n",
    ),
    "lr finder / eval nan only": (
        (
            "nan/all-labels-ignored",
            "nan/bad-input",
            "nan/learning-rate-divergence",
            "nan/loss-zero-grad-nan",
            "nan/low-precision-overflow",
        ),
        "{'loss': 0.71, 'grad_norm': 1.1, 'learning_rate': 4.9e-05, 'epoch': 0.5}\n"
        "{'eval_loss': nan, 'eval_runtime': 11.2, 'epoch': 0.5}\n"
        "{'loss': 0.61, 'grad_norm': 1.1, 'learning_rate': 4.1e-05, 'epoch': 1.0}\n"
        "{'eval_loss': nan, 'eval_runtime': 11.2, 'epoch': 1.0}\n",
    ),
    "bare min scale": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.\n",
    ),
    "bare ds min": (
        ("nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
    ),
    "bare ds overflow": (
        ("nan/low-precision-overflow",),
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n",
    ),
    "bare ds newest": (
        ("nan/low-precision-overflow", "precision/scaler-skipped-step"),
        "[deepspeed] OVERFLOW! Skipping step. Gradients are non-finite, weights were not updated.\n",
    ),
    "megatron nan grad norm": (
        ("nan/non-finite-grad-norm",),
        "[rank13]: AssertionError: Rank 13: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 5, node: node-15-11\n",
    ),
    "detr hungarian": (
        ("nan/bad-input", "nan/learning-rate-divergence", "nan/low-precision-overflow"),
        "Traceback (most recent call last):\n"
        '  File "main.py", line 248, in <module>\n'
        "    main(args)\n"
        '  File "/home/u/detr/models/matcher.py", line 80, in forward\n'
        "    indices = [linear_sum_assignment(c[i]) for i, c in enumerate(C.split(sizes, -1))]\n"
        "ValueError: matrix contains invalid numeric entries\n",
    ),
    "generate prob": (
        ("nan/bad-input", "nan/low-precision-overflow", "nan/masked-softmax", "nan/uninitialised-weights"),
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.10/site-packages/transformers/generation/utils.py", line 2734, in sample\n'
        "    next_tokens = torch.multinomial(probs, num_samples=1).squeeze(1)\n"
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n",
    ),
    "normal nan rl": (
        ("nan/learning-rate-divergence",),
        "ValueError: Expected parameter loc (Tensor of shape (64, 6)) of distribution Normal(loc: torch.Size([64, 6]), scale: torch.Size([64, 6])) to satisfy the constraint Real(), but found invalid values:\n"
        "tensor([[nan, nan, nan, nan, nan, nan],\n",
    ),
    "old normal": (("nan/learning-rate-divergence",), "ValueError: The parameter loc has invalid values\n"),
    "debug underflow": (
        ("nan/low-precision-overflow",),
        "Detected inf/nan during batch_number=0\n"
        "Last 21 forward frames:\n"
        "abs min  abs max  metadata\n"
        "                  encoder.block.1.layer.1.DenseReluDense.dropout Dropout\n"
        "0.00e+00 2.57e+02 input[0]\n"
        "0.00e+00 2.85e+02 output\n"
        "1.79e-06 4.65e+04 input[0]\n"
        "0.00e+00      inf output\n"
        "Traceback (most recent call last):\n"
        '  File "x.py", line 1, in <module>\n'
        "    main()\n"
        "ValueError: DebugUnderflowOverflow: inf/nan detected, aborting as there is no point running further. Please scroll up above this traceback to see the activation values prior to this event.\n",
    ),
}
