"""Supervised fine-tuning with trl. needs: trl transformers datasets tokenizers"""

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = ["<pad>", "<eos>", "<unk>", *"the cat sat on a mat and saw one dog run".split()]
inner = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
inner.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    pad_token_id=0,
    eos_token_id=1,
)
data = Dataset.from_dict({"text": ["the cat sat on a mat", "one dog saw the cat and run"] * 16})
arguments = SFTConfig("out", report_to=[], use_cpu=True, bf16=False, max_steps=6, max_length=16)
SFTTrainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=data, processing_class=tokenizer).train()
