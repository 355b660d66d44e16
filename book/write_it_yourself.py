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
# sequences that it has never seen. Writing takes about two and a half hours; the page itself takes 20 minutes to read.
#
# You need PyTorch's basics: `nn.Module`, `view`, `transpose`. (PyTorch's own tutorials teach them: [*Learn the
# Basics*](https://docs.pytorch.org/tutorials/beginner/basics/intro.html) and [*What is torch.nn
# really?*](https://docs.pytorch.org/tutorials/beginner/nn_tutorial.html)) Read [Grow it](grow_it.py) first, because the
# steps refer to it.
#
# Install the command `glassformer` once, in a clone of this book's repository:
#
# ```sh
# pip install torch==2.13.0
# pip install --constraint constraints.txt .
# ```
#
# Then make an empty file `mine.py`, and after each step run
#
# ```sh
# glassformer learn --check mine.py
# ```
#
# You have a Transformer already, from a tutorial? Give the command your file: it checks the steps in order and stops at
# the first one that is missing or wrong. Give classes, functions and layers the names that the steps ask for. If a function of
# yours takes different arguments, keep it, and write a second one with the name and the arguments of the step, which calls
# yours. A step that you want to see on its own still needs the steps before it.
#
# The command runs your file in a separate process, copies your weights into the reference model, and compares numbers,
# not code. Write the code as you like; only the names, the signatures and the shapes are given. If a tensor differs,
# the command names the first one, and the classic mistake that gives the same numbers. Your file may import `torch` and
# the standard library.
#
# The model has no dropout, because the check compares numbers, and the norms are where the paper has them (post-norm).
#
# Each step says about how many minutes it takes, and which shapes go in and come out: B sentences with S source tokens
# and T target tokens, h heads, V ids. It also says which step of [Grow it](grow_it.py) it is, where you saw what the part
# is good for. A hint and the solution are folded. Try first, then read the hint, and the solution last.

# %% tags=["hide-input"]
import math
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from IPython.display import Markdown

import glassformer as gf
from glassformer.decoding import beam_search, greedy, sample
from glassformer.decoding.transformer_step import TransformerStep

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
# and works on the last two. Where the mask is False, the score becomes −∞ before the softmax, as in the
# [chapter](attention.py), and so the weight becomes 0.
#
# This step asks for more than many tutorials: in a row that is False everywhere, all weights must be 0. After −∞ alone,
# such a row is NaN, which spreads to all rows in the next layer. After −1e9, the row looks evenly at all keys that had
# to be hidden. Both are harmless as long as every row has a True, as in the rest of this page. But [such rows
# exist](masks.py#why-and-no-other-number), for example with padding in front of a target.
#
# Write `attention(query, key, value, mask)`. Return (output, weights): the weights are softmax(query keyᵀ / √d_k) over
# the keys, and 0 where the mask is False, also in a row that is False everywhere. Shapes: query (…, T, d_k), key (…, S,
# d_k), value (…, S, d_v), mask broadcast to (…, T, S). ([Chapter](attention.py))
#
# *20 minutes.* In *Grow it*, this is the heart of *One head*: the model's first look at other words.
#
# | in | out |
# |---|---|
# | query (B, h, T, d_k), key (B, h, S, d_k), value (B, h, S, d_v), mask (B, 1, T, S) | output (B, h, T, d_v), weights (B, h, T, S) |
#
# <details><summary>Hint</summary>
#
# Five lines. Which two axes does `key.transpose(-2, -1)` exchange, and why does that also work with batch and heads in
# front? Fill with −∞ where the mask is False, before the softmax; the softmax runs over the last axis, the keys.
# In a row that is False everywhere it is 0/0, NaN, so fill with 0 once more [after it](masks.py#why-and-no-other-number).
#
# </details>

# %% tags=["hide-cell"]
solution(1)

# %% tags=["remove-input"]
check()

# %% [markdown]
# Many believe that code is right if its shapes fit and its loss falls. Suppose that you had hidden the masked scores with
# 0 instead of −∞, as some tutorials do. The shapes fit, and such a model even trains. But it looks at what the mask
# hides, because $e^0 = 1$, and the check finds out:

# %% tags=["hide-input"]
zero_before = STEPS[1].replace("-math.inf", "0.0")
check(re.sub(r"    weights = weights.masked_fill.*\n", "", zero_before))

# %% [markdown]
# ## Step 2: several heads
#
# `x` asks, and the memory answers: in self-attention both are the same tensor. The four linear layers are from d_model
# to d_model. The first d_k features of a projection belong to the first head.
#
# Write `MultiHeadAttention(d_model, heads), with forward(x, memory, mask)`. A torch.nn.Module with linear layers named
# query (applied to x), key and value (applied to the memory) and output. Split each projection into heads, call
# attention, join the heads, apply output. ([Chapter](heads.py))
#
# *20 minutes.* In *Grow it*: *Four heads*, with the same number of weights as one.
#
# | in | out |
# |---|---|
# | x (B, T, d_model), memory (B, S, d_model), mask (B, 1, T, S) | (B, T, d_model) |
# | a projection, split (B, S, d_model) | (B, h, S, d_model / h) |
#
# <details><summary>Hint</summary>
#
# First cut the last axis into heads and features (`view` or `unflatten`), then bring the heads before the positions
# (`transpose(1, 2)`). On the way back, do the same in the opposite order: `transpose(1, 2)`, then `flatten(2)`.
#
# </details>

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
#
# *15 minutes.* In *Grow it*, positions are there from the first model, as `gf.sinusoids`.
#
# | in | out |
# |---|---|
# | the numbers length, d_model | (length, d_model) |
#
# <details><summary>Hint</summary>
#
# `torch.arange(0, d_model, 2)` counts 0, 2, 4, …, so it *is* 2i, and must not be doubled. A column of positions divided
# by a row of powers gives all angles at once. Write the sines into the columns `0::2` and the cosines into `1::2`.
#
# </details>

# %% tags=["hide-cell"]
solution(3)

# %% tags=["remove-input"]
check()

# %% [markdown]
# A popular step-by-step tutorial lets i step by two *and* doubles it in the exponent. The table looks like waves as
# before, but of the frequencies only every second one is left; the other half of the columns turns more slowly than any
# should (with eight columns, the exponents are 0, ½, 1, 1½ instead of 0, ¼, ½, ¾). The check knows this slip, too:

# %% tags=["hide-input"]
check("".join(STEPS[:4]).replace("(pair / d_model)", "(2 * pair / d_model)"))

# %% [markdown]
# ## Step 4: feed-forward
#
# Two linear layers, applied to each position alike.
#
# Write `FeedForward(d_model, d_ff), with forward(x)`. A torch.nn.Module with linear layers named expand (to d_ff) and
# contract (back to d_model), and a ReLU between them. ([Chapter](feed_forward.py))
#
# *5 minutes.* In *Grow it*: *Feed-forward*.
#
# | in | out |
# |---|---|
# | x (B, T, d_model) | (B, T, d_model); inside, (B, T, d_ff) |
#
# <details><summary>Hint</summary>
#
# `nn.Linear` works on the last axis and leaves the others alone, so you need no loop over positions.
#
# </details>

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
#
# *10 minutes.* In *Grow it*, three steps lead here: *Three layers*, *The residual connection* and *The norm*.
#
# | in | out |
# |---|---|
# | x (B, S, d_model), mask (B, 1, 1, S) | (B, S, d_model) |
#
# <details><summary>Hint</summary>
#
# In self-attention, x is its own memory. The norm is outside: `norm(x + …)`, not `x + norm(…)`. The second sub-layer
# gets what the first norm returns. Each norm has weights of its own, so you need two.
#
# </details>

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
#
# *10 minutes.* In *Grow it*: the writer of *The source*.
#
# | in | out |
# |---|---|
# | x (B, T, d_model), memory (B, S, d_model), mask (B, 1, T, T), memory_mask (B, 1, 1, S) | (B, T, d_model) |
#
# <details><summary>Hint</summary>
#
# Copy the encoder's layer, and put a sub-layer between its two. Which of the two masks hides the source's padding?
#
# </details>

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
#
# *10 minutes.* In *Grow it*, `past` and `there` in `logits_of`.
#
# | in | out |
# |---|---|
# | source (B, S), target (B, T) | (B, 1, 1, S) and (B, 1, T, T), both `torch.bool` |
#
# <details><summary>Hint</summary>
#
# `ids != 0` is True for real tokens, and `[:, None, None, :]` adds two axes of length 1. A matrix of ones has a method
# that keeps the triangle below the diagonal, with the diagonal: `tril`. Join two conditions by `&`.
#
# </details>

# %% tags=["hide-cell"]
solution(7)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 8: the whole model
#
# Here the parts come together. The weights of this class become a `gf.Transformer` by `gf.import_module`, and the check
# compares all tensors on the way from ids to logits. `encode` sends the embedded source through the encoder's layers;
# `decode` sends the embedded target input, with the memory and both masks, through the decoder's layers and then through
# `output`. Draw both embeddings with mean 0 and standard deviation 1/√d_model, and leave all other weights as PyTorch
# draws them.
#
# Write `Transformer(vocab_size, d_model, heads, d_ff, layers), with encode(source), decode(target_input, memory,
# source) and forward(source, target_input)`. Parts: source_embedding, target_embedding, encoder and decoder (module
# lists), output (linear). The input of a stack is embedding · √d_model + positions; decode and forward return logits.
# ([Chapter](overview.py))
#
# *25 minutes.* In *Grow it*: `Model` with all switches on.
#
# | in | out |
# |---|---|
# | source (B, S), target_input (B, T) | memory (B, S, d_model), logits (B, T, V) |
#
# <details><summary>Hint</summary>
#
# Write a method that embeds ids and adds positions, and use it on both sides. Each layer gets what the one before it
# returned; all decoder layers get the same memory. An `nn.ModuleList` registers its layers, a plain list does not.
# `nn.Embedding` draws from N(0, 1): times √d_model, such words
# [drown the positions](errata.py#embeddings-that-drown-the-positions), so draw them smaller.
#
# </details>

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
#
# *10 minutes.* In *Grow it*, the one number that tells what each part buys.
#
# | in | out |
# |---|---|
# | logits (B, T, V), target (B, T) | one number, shape () |
#
# <details><summary>Hint</summary>
#
# `log_softmax`, then `gather` the number of each target token: `gather` wants an index with as many axes as the logits,
# so add one to the target. Select by `target != 0` before you take the mean.
#
# </details>

# %% tags=["hide-cell"]
solution(9)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 10: greedy decoding
#
# The model writes its own input, one token at a time.
#
# Write `greedy(model, source, length)`. Encode once, start with `<bos>` (id 1), and append the most probable token
# `length` times. Return ids of shape (batch, length), without `<bos>`. ([Chapter](decoding.py))
#
# *10 minutes.* In *Grow it*, the loop of `translated`.
#
# | in | out |
# |---|---|
# | model, source (B, S), a number length | (B, length) |
#
# <details><summary>Hint</summary>
#
# Only the logits of the last position count: `logits[:, -1:]`. Append to what is written with `torch.cat`, and leave
# `<bos>` out only at the end. Gradients are not needed.
#
# </details>

# %% tags=["hide-cell"]
solution(10)

# %% tags=["remove-input"]
check()

# %% [markdown]
# ## Step 11: training
#
# The copy task has 13 ids: 0 is padding, 1 is `<bos>`, 2 is `<eos>`, and 3 to 12 are symbols. Draw new sequences of 10
# symbols for every update, and end each with `<eos>`, so that there is nothing to memorise. Adam does, with a learning
# rate that rises for some steps and then falls: the solution's, `2e-3 * min((step + 1) / 100, 1 - step / 600)`, takes
# the smaller of two straight lines, which goes up to 0.002 in 100 steps and down to 0 at step 600. You have five minutes of one core; the solution takes about one.
#
# Write `train()`. Return a Transformer with vocab_size 13, trained to copy sequences of 10 symbols (ids 3 to 12) and
# `<eos>` (id 2): source and target are equal, and the target input begins with `<bos>`. It must copy 99 % of unseen
# sequences. ([Chapter](training.py))
#
# *20 minutes.* In *Grow it*, `grown` trains all models.
#
# | in | out |
# |---|---|
# | nothing | a Transformer; in each update: source and target (64, 11), target_input (64, 11), logits (64, 11, 13) |
#
# <details><summary>Hint</summary>
#
# `torch.randint` excludes its upper end. The target input is the target, moved by one: `<bos>` in front, and the last
# token left out. Width 64, 4 heads and 2 layers are enough; some hundred updates with 64 sequences and a learning rate
# up to 0.002 learn the task. If the loss stays near ln 10 ≈ 2.3, the model guesses among the symbols: does the decoder
# see the source?
#
# </details>

# %% tags=["hide-cell"]
solution(11)

# %% tags=["remove-input"]
check()

# %% tags=["hide-input", "check"]
yours = runpy.run_path(str(mine))
B, S, T, h, V, d_model, d_ff = 2, 7, 5, 3, 13, 12, 20
heads, memory, x = torch.randn(3, B, h, S, 4), torch.randn(B, S, d_model), torch.randn(B, T, d_model)
source, target = torch.randint(1, V, (B, S)), torch.randint(1, V, (B, T))
there, past = yours["source_mask"](source), yours["target_mask"](target)
output, weights = yours["attention"](heads[0, :, :, :T], heads[1], heads[2, ..., :2], there)
part = yours["MultiHeadAttention"](d_model, h)
whole = yours["Transformer"](V, d_model, h, d_ff, 2)
logits = whole.decode(target, whole.encode(source), source)
assert (output.shape, weights.shape) == ((B, h, T, 2), (B, h, T, S))
assert (part.split(memory).shape, part(x, memory, there).shape) == ((B, h, S, 4), (B, T, d_model))
assert yours["positions"](T, d_model).shape == (T, d_model)
assert yours["FeedForward"](d_model, d_ff)(x).shape == (B, T, d_model)
assert yours["EncoderLayer"](d_model, h, d_ff)(memory, there).shape == (B, S, d_model)
assert yours["DecoderLayer"](d_model, h, d_ff)(x, memory, past, there).shape == (B, T, d_model)
assert (there.shape, past.shape) == ((B, 1, 1, S), (B, 1, T, T))
assert (whole.encode(source).shape, logits.shape) == ((B, S, d_model), (B, T, V))
assert yours["loss"](logits, target).shape == ()
assert yours["greedy"](whole, source, 9).shape == (B, 9)

# %% [markdown]
# ## Your model in the library
#
# That is all: the same function, the same classes and the same numbers as in the rest of this book. So your model can
# become a `gf.Transformer`, and what the book does with a model works on it: `gf.record`, `gf.intervene`, `gf.check`. The
# library's three searches work, too: they stop where the model writes `<eos>`, id 2 (the symbols begin at 3). Here the solution is trained once
# more, and copies 10 symbols:

# %%
torch.manual_seed(1)
model = gf.import_module(yours["train"](), heads=4, positions="interleaved", dropout=0.0, pad_id=0, bos_id=1, eos_id=2)
step = TransformerStep(model, torch.tensor([[7, 3, 9, 4, 12, 5, 5, 8, 10, 6, 2]]))
found = {
    "greedy search": greedy(step, max_lengths=[15])[0],
    "beam search": beam_search(step, max_lengths=[15], beam_size=4)[0][0],
    "sampling": sample(step, max_lengths=[15], seeds=[1])[0],
}
for name, one in found.items():
    print(f"{name:13} {one.tokens}, probability {math.exp(one.log_prob):.3f}")

# %% tags=["hide-input", "check"]
assert {one.tokens for one in found.values()} == {(7, 3, 9, 4, 12, 5, 5, 8, 10, 6, 2)}

# %% [markdown]
# ## Where to go from here
#
# - Make a classic mistake on purpose, and look what the check says. The [errata](errata.py) list them.
# - Test what people say about such models: the [experiments](experiments/pronoun.py) begin with the heads that read
#   *it*.
# - Change the task: reverse the sequences, or sort them. How many layers does the model need?
