# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Write it yourself
#
# In this chapter you write a Transformer from an empty file, in 11 steps and about 150 lines. At the end it copies
# sequences that it has never seen. Make an empty file `mine.py`, and after each step run
#
# ```sh
# glassformer learn --check mine.py
# ```
#
# The command runs your file in a separate process, copies your weights into the reference model, and compares numbers,
# not code. Write the code as you like; only the names, the signatures and the shapes are given. If a tensor differs,
# the command names the first one, and the classic mistake that gives the same numbers. Your file may import `torch` and
# the standard library.
#
# The model has no dropout, because the check compares numbers, and the norms are where the paper has them (post-norm).
# The solution of each step is folded. Try first.

# %% tags=["hide-input"]
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from IPython.display import Markdown

SOLUTION = Path("capstone/mine.py").read_text(encoding="utf-8")
STEPS = re.split(r"(?=^# Step \d+)", SOLUTION, flags=re.MULTILINE)
folder = tempfile.TemporaryDirectory()
mine = Path(folder.name, "mine.py")
mine.write_text("", encoding="utf-8")


def solution(number):
    """Append the solution of a step to mine.py, and show it."""
    with mine.open("a", encoding="utf-8") as file:
        file.write(STEPS[number])
    return Markdown(f"```python\n{STEPS[number].rstrip()}\n```")


def check(text=None):
    """Print what the command says about mine.py, or about this text instead."""
    other = Path(folder.name, "wrong", "mine.py")
    other.parent.mkdir(exist_ok=True)
    other.write_text(text or "", encoding="utf-8")
    file = mine if text is None else other
    command = [sys.executable, "-m", "glassformer", "learn", "--check", file.name]
    result = subprocess.run(command, cwd=file.parent, capture_output=True, text=True)
    print("$ glassformer learn --check mine.py", result.stdout + result.stderr, sep="\n", end="")


# %% [markdown]
# An empty file is a beginning:

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 1: attention
#
# The heart of the model is one function without weights. It gets any number of leading axes, such as batch and heads,
# and works on the last two.
#
# Write `attention(query, key, value, mask)`. Return (output, weights): the weights are softmax(query keyᵀ / √d_k) over
# the keys, and 0 where the mask is False. Shapes: query (…, T, d_k), key (…, S, d_k), value (…, S, d_v), mask broadcast
# to (…, T, S). ([Chapter](attention.py))

# %% tags=["hide-cell"]
solution(1)

# %% tags=["remove-input"]
check()

# %% [markdown]
# Suppose that you had hidden the masked scores with 0 instead of −∞, as some tutorials do. The shapes are right, and
# such a model even trains, but the check is not deceived:

# %% tags=["hide-input"]
check(STEPS[1].replace("-math.inf", "0.0"))

# %% [markdown]
# ## Step 2: several heads
#
# `x` asks, and the memory answers: in self-attention both are the same tensor. The four linear layers are from d_model
# to d_model. The first d_k features of a projection belong to the first head.
#
# Write `MultiHeadAttention(d_model, heads), with forward(x, memory, mask)`. A torch.nn.Module with linear layers named
# query (applied to x), key and value (applied to the memory) and output. Split each projection into heads, call
# attention, join the heads, apply output. ([Chapter](heads.py))

# %% tags=["hide-cell"]
solution(2)

# %% tags=["remove-input"]
check()

# %% [markdown]
# The most famous slip of this step is to make the heads by `view` alone. The shape is right, the numbers are not:

# %% tags=["hide-input"]
split = "view(batch, length, self.heads, d_model // self.heads).transpose(1, 2)"
check("".join(STEPS[:3]).replace(split, "reshape(batch, self.heads, length, -1)"))

# %% [markdown]
# ## Step 3: positions
#
# A table without weights. Sine and cosine of a pair have the same frequency.
#
# Write `positions(length, d_model)`. Return a table of shape (length, d_model): in row p, column 2i is sin(p /
# 10000^(2i/d_model)) and column 2i + 1 its cosine. ([Chapter](positions.py))

# %% tags=["hide-cell"]
solution(3)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 4: feed-forward
#
# Two linear layers, applied to each position alike.
#
# Write `FeedForward(d_model, d_ff), with forward(x)`. A torch.nn.Module with linear layers named expand (to d_ff) and
# contract (back to d_model), and a ReLU between them. ([Chapter](feed_forward.py))

# %% tags=["hide-cell"]
solution(4)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 5: an encoder layer
#
# Two sub-layers. Each result is added to the sub-layer's input, and the sum is normalised ([residual](residual.py)
# explains why). For the norms, `nn.LayerNorm` does.
#
# Write `EncoderLayer(d_model, heads, d_ff), with forward(x, mask)`. Parts: self_attention, self_attention_norm,
# feed_forward, feed_forward_norm. Post-norm, as in the paper: x becomes norm(x + sub-layer(x)), twice.
# ([Chapter](encoder.py))

# %% tags=["hide-cell"]
solution(5)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 6: a decoder layer
#
# Three sub-layers. Cross-attention is the same class as self-attention, with another memory.
#
# Write `DecoderLayer(d_model, heads, d_ff), with forward(x, memory, mask, memory_mask)`. Like the encoder's layer, with
# cross_attention and cross_attention_norm between the two: its queries come from x, its keys and values from the
# memory. ([Chapter](decoder.py))

# %% tags=["hide-cell"]
solution(6)

# %% tags=["remove-input"]
check()

# %% [markdown]
# If cross-attention takes its keys and values from the decoder, nothing crashes as long as both sides have the same
# length, and the source is never read:

# %% tags=["hide-input"]
check("".join(STEPS[:7]).replace("(x, memory, memory_mask)", "(x, x, memory_mask)"))

# %% [markdown]
# ## Step 7: masks
#
# True = may attend. Both masks have an axis for the heads, which is broadcast.
#
# Write `source_mask(source) and target_mask(target)`. Return boolean masks, True = may attend: (batch, 1, 1, S) hides
# padding (id 0); (batch, 1, T, T) hides padding and later positions. ([Chapter](masks.py))

# %% tags=["hide-cell"]
solution(7)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 8: the whole model
#
# Here the parts come together. The weights of this class become a `gf.Transformer` by `gf.import_module`, and the check
# compares all tensors on the way from ids to logits.
#
# Write `Transformer(vocab_size, d_model, heads, d_ff, layers), with encode(source), decode(target_input, memory,
# source) and forward(source, target_input)`. Parts: source_embedding, target_embedding, encoder and decoder (module
# lists), output (linear). The input of a stack is embedding · √d_model + positions; decode and forward return logits.
# ([Chapter](overview.py))

# %% tags=["hide-cell"]
solution(8)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 9: the loss
#
# Mean cross-entropy. Padding does not count, because the model need not predict it.
#
# Write `loss(logits, target)`. Return the mean of −log p(token) over the target's tokens that are not padding (id 0).
# ([Chapter](training.py))

# %% tags=["hide-cell"]
solution(9)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 10: greedy decoding
#
# The model writes its own input, one token at a time.
#
# Write `greedy(model, source, length)`. Encode once, start with <bos> (id 1), and append the most probable token
# `length` times. Return ids of shape (batch, length), without <bos>. ([Chapter](decoding.py))

# %% tags=["hide-cell"]
solution(10)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 11: training
#
# The copy task has 12 ids: 0 is padding, 1 is `<bos>`, and 2 to 11 are symbols. Draw new sequences of 10 symbols for
# every update, so that there is nothing to memorise. Adam does, with a learning rate that rises for some steps and then
# falls. You have five minutes of one core; the solution takes half a minute.
#
# Write `train()`. Return a Transformer with vocab_size 12, trained to copy sequences of 10 symbols (ids 2 to 11):
# source and target are equal, and the target input begins with <bos>. It must copy 99 % of unseen sequences.
# ([Chapter](training.py))

# %% tags=["hide-cell"]
solution(11)

# %% tags=["remove-input"]
check()

# %% [markdown]
# That is all: the same function, the same classes and the same numbers as in the rest of this book.
#
# ## Where to go from here
#
# - Your model is a `gf.Transformer` now. `gf.import_module(train(), heads=4, positions="interleaved", pad_id=0,
#   bos_id=1, eos_id=2)` returns it, and what this book does with a model works on it: `gf.record`, `gf.intervene`,
#   `gf.check`. The library's searches need one change: they stop at `eos_id`, and 2 is a symbol of this task. Train with
#   13 ids, of which 3 to 12 are symbols and 2 ends each sequence, and they work as well.
# - Make a classic mistake on purpose, and look what the check says. The [errata](errata.py) list them.
# - Test what people say about such models: the [experiments](experiments/pronoun.py) begin with the heads that read
#   *it*.
# - Change the task: reverse the sequences, or sort them. How many layers does the model need?
