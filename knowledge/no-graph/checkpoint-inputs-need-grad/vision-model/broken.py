import torch
from peft import LoraConfig, get_peft_model
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(0)
config = ViTConfig(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4
)
model = get_peft_model(ViTForImageClassification(config), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
model.train()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 2, (4,))
loss = model(pixel_values=images, labels=labels).loss
loss.backward()
optimizer.step()
