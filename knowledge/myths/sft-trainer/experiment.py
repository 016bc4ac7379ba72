"""`SFTTrainer` where the model's forward writes a saved tensor in place, and where nothing is trainable."""

import tempfile
import warnings

import torch
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

warnings.simplefilter("ignore")
disable_progress_bars()


class Residual(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        h += 1
        return h


def error_of(*, frozen):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
    model = LlamaForCausalLM(config)
    if frozen:
        model.requires_grad_(False)
    else:
        model.model.layers[0].mlp = Residual(model.model.layers[0].mlp)
    data = Dataset.from_dict({"input_ids": [[1, 2, 3, 4]] * 4})
    words = Tokenizer(models.WordLevel({"pad": 0, "end": 1}, unk_token="pad"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="pad", eos_token="end")
    with tempfile.TemporaryDirectory() as folder:
        options = SFTConfig(
            folder, max_steps=1, report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False, disable_tqdm=True
        )
        try:
            SFTTrainer(model, options, train_dataset=data, processing_class=tokenizer).train()
        except RuntimeError as failure:
            return str(failure).partition(":")[0]
    return "none"


written, frozen = error_of(frozen=False), error_of(frozen=True)
print("error, in-place write:", written)
print("error, nothing trainable:", frozen)

assert written.endswith("modified by an inplace operation")
assert "does not require grad" in frozen
