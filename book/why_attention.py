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
# # Why attention at all
#
# ## The question
#
# The paper calls its model "based solely on attention mechanisms, dispensing with recurrence and convolutions
# entirely". So before June 2017, translators had recurrence or convolutions, and many of them had attention *as well*.
# **What was there before? What did attention change, what did leaving out the rest change, and what does it cost?**

# %%
import json
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

import glassformer as gf
from glassformer.model.attention import MultiHeadAttention
from glassformer.watch import pictures

_ = torch.manual_seed(1)

# %% [markdown]
# ## The intuition
#
# - A **recurrent** network reads word after word and keeps a *state*, a vector of fixed width. Sutskever et al. (2014)
#   and Cho et al. (2014) translate with two of them: one reads the source, and its last state is all that the other one
#   gets. A long sentence has to fit into one vector.
# - **Attention** was added to remove this bottleneck. In Bahdanau et al. (2015), the writer looks back at *all* states of
#   the reader, with weights, at each step.
# - **Convolutions** (Gehring et al. 2017) compute all positions at once, but each layer sees only a few neighbours.
# - The **Transformer** keeps the attention and drops the rest. Words meet directly, whatever their distance.
#
# ## The mathematics
#
# Table 1 of the paper (§4) compares one layer, for $n$ positions, width $d$ and a convolution over $k$ words:
#
# | layer | multiplications | steps that must wait for each other | longest path between two words |
# |---|---|---|---|
# | self-attention | $n^2 \cdot d$ | 1 | 1 |
# | recurrent | $n \cdot d^2$ | $n$ | $n$ |
# | convolutional | $k \cdot n \cdot d^2$ | 1 | $\log_k n$ (dilated), $n / k$ (not dilated) |
#
# Self-attention is cheaper as long as $n < d$, which holds for most sentences. Its cost grows with the square of the
# length.
#
# ## Line by line
#
# ### A recurrent step
#
# A *gated recurrent unit* (GRU) mixes its old state with a new one. Each step needs the result of the step before, so
# no two positions can be computed at the same time:

# %%
cell, word, state = nn.GRUCell(8, 8), torch.randn(1, 8), torch.randn(1, 8)
read = nn.functional.linear(word, cell.weight_ih, cell.bias_ih).chunk(3, dim=-1)
kept = nn.functional.linear(state, cell.weight_hh, cell.bias_hh).chunk(3, dim=-1)
reset, update = (read[0] + kept[0]).sigmoid(), (read[1] + kept[1]).sigmoid()
new = (read[2] + reset * kept[2]).tanh()

# %% tags=["hide-input", "check"]
torch.testing.assert_close((1 - update) * new + update * state, cell(word, state))

# %% [markdown]
# ### How far does a word reach?
#
# In a recurrent network, word 0 reaches the last state only through all the states between. We measure the length of the
# gradient of the last output by word 0, in a GRU and in one self-attention, both with random weights. The longer the
# path, the weaker the signal:

# %%
gru, attend = nn.GRU(64, 64, batch_first=True), MultiHeadAttention(64, 4, 16, 16, dropout=0.0)


def reach(layer, length):
    """Return the length of the gradient of the last output by the first word, mean of ten sentences."""
    words = torch.randn(10, length, 64, requires_grad=True)
    output = layer(words)
    output = output[0] if isinstance(output, tuple) else output
    [gradient] = torch.autograd.grad(output[:, -1].sum(), words)
    return gradient[:, 0].norm(dim=-1).mean().item()


lengths = (2, 4, 8, 16, 32)
reaches = {name: [reach(layer, n) for n in lengths] for name, layer in (("GRU", gru), ("self-attention", attend))}
for name, values in reaches.items():
    print(f"{name:<15}", "  ".join(f"{n} words: {value:.1e}" for n, value in zip(lengths, values, strict=True)))

falls = {name: values[0] / values[-1] for name, values in reaches.items()}

# %% tags=["hide-input", "check"]
assert falls["GRU"] > 10 * falls["self-attention"]

# %% [markdown]
# Self-attention's signal also becomes smaller, because untrained weights are shared among all words ($1/n$). But the path
# has one step, and training can make a weight as large as it needs to be.
#
# ### Additive or dot product?
#
# Bahdanau's scores are *additive*: a small network for each pair of query and key. The paper's are dot products (§3.2.1):
#
# $$\text{additive: } \mathbf{w} \cdot \tanh(q W_1 + k W_2) \qquad \text{dot product: } q \cdot k / \sqrt{d_k}$$
#
# In theory they cost about the same. In practice dot products are one matrix product, while the additive form needs a
# vector for each pair:

# %%
q, k, v = torch.randn(3, 200, 64)
w_1, w_2, w = torch.randn(64, 64) / 8, torch.randn(64, 64) / 8, torch.randn(64) / 8


def additive(q, k):
    pairs = (q @ w_1)[:, None] + (k @ w_2)[None]  # (T, S, D): a vector for each pair
    return pairs.tanh() @ w


def dot_product(q, k):
    return q @ k.T / 64**0.5  # (T, S)


def seconds(function, *arguments):
    """Return the time of the fastest of ten calls."""
    times = []
    for _ in range(10):
        began = perf_counter()
        function(*arguments)
        times.append(perf_counter() - began)
    return min(times)


ratio = seconds(additive, q, k) / seconds(dot_product, q, k)
print(f"200 queries and keys: the additive form takes {ratio:.0f} times as long")

# %% tags=["hide-input", "check"]
assert additive(q, k).shape == dot_product(q, k).shape == (200, 200)
torch.testing.assert_close(dot_product(q, k).softmax(-1) @ v, gf.attention(q, k, v).weighted_values)

# %% [markdown]
# ### Cross-attention is self-attention with another memory
#
# The attention between the two recurrent networks was cross-attention. Self-attention is the same function. Only the
# memory, from which keys and values are made, is different. One line shows it: give a self-attention its own input as the
# memory, and nothing changes.

# %%
x, source = torch.randn(1, 5, 64), torch.randn(1, 9, 64)
with torch.no_grad():
    itself = attend(x, memory=attend.key_value(x))  # the memory is x itself
    crossed = attend(x, memory=attend.key_value(source))  # cross-attention: the memory is the source
    print("largest difference from self-attention:", (itself - attend(x)).abs().max().item(), tuple(crossed.shape))

# %% tags=["hide-input", "check"]
torch.testing.assert_close(itself, attend(x))
assert crossed.shape == x.shape

# %% [markdown]
# ### The price: a square
#
# Each word looks at each word, so twice the length needs four times the scores:

# %%
sizes = (256, 512, 1024, 2048)
times = [1000 * seconds(gf.attention, *torch.randn(3, n, 64)) for n in sizes]
for n, milliseconds in zip(sizes, times, strict=True):
    print(f"{n:>5} words: {n * n:>9,} scores, {milliseconds:7.2f} ms")

# %% tags=["hide-input", "check"]
assert times[-1] > 8 * times[0]  # 8 times the length; the square would be 64, but small products are inefficient

# %% [markdown]
# ## Trained side by side
#
# `python book/experiments/measure/recurrent.py --seeds 1` trained three models of equal size on the demo's grammar: a
# GRU that reads and a GRU that writes, the same two with additive attention, and the demo's Transformer. All three got
# the same batches, 400 updates, Adam with the same learning rates (the demo's, which were chosen for the Transformer), and
# one thread. It is one training run each, so small differences mean nothing. The result is committed as
# `experiments/results/recurrent.json`. Times are processor times.

# %%
measured = json.loads(Path("experiments/results/recurrent.json").read_text(encoding="utf-8"))
models = {name: runs[0] for name, runs in measured["models"].items()}


def exact(rows, shortest, longest):
    """Return the share of exact translations in %, for sources of these lengths."""
    some = [row for row in rows if shortest <= row["length"] <= longest]
    return sum(row["sentences"] * row["exact"] for row in some) / sum(row["sentences"] for row in some)


print(f"measured on {measured['date']} with torch {measured['versions']['torch']}")
for name, one in models.items():
    parts = ((5, 8), (9, 12), (13, 22))
    shares = ", ".join(f"{low}–{high} words {exact(one['by_length']['test'], low, high):.0f} %" for low, high in parts)
    print(f"{name:<19} {one['weights']:,} weights, {one['tokens_per_second']:,.0f} target tokens per second")
    print(f"    −log p per token {one['curve'][-1]['loss']:.2f}; exact: {shares}")

# %% tags=["hide-input"]
pictures.curves(
    {
        name: ([point["step"] for point in one["curve"]], [point["loss"] for point in one["curve"]])
        for name, one in models.items()
    },
    x_label="update",
    y_label="−log p per target token (nats)",
    alt="The test loss of three models over 400 updates. The GRU without attention stays highest.",
)

# %% [markdown]
# The bottleneck shows: without attention, the loss stays highest (0.80), and of the sentences with nine words and more,
# fewer than a third are exact. With attention, the loss is 0.33, so attention removes most of the difference to the
# Transformer (0.23). That was the discovery of 2015. After only 400 updates, none of the three translates a sentence
# longer than those in training exactly (300 sentences of the split "longer").
#
# And the time? One forward and backward pass over 2 048 words, cut into sentences of different lengths, on one core:

# %% tags=["hide-input"]
pictures.curves(
    {name: (measured["lengths"], values) for name, values in measured["milliseconds"].items()},
    x_label="words in a sentence",
    y_label="milliseconds for 2 048 words",
    alt="Time of a training pass by the length of sentences, for three models. The recurrent models slow down faster.",
)

# %% [markdown]
# The number of words is the same everywhere. The recurrent models become slower because longer sentences mean more
# steps that wait for each other, with less to do in each. The Transformer becomes slower because of the square. On a GPU,
# where thousands of cores wait for work, the first effect is much larger; this is the paper's main argument (§1, §4).
#
# ## What is gained, what is lost
#
# | | gained | lost |
# |---|---|---|
# | training | all positions at once | |
# | distance | one step between any two words | |
# | order | | no order without [positions](positions.py) |
# | length | | time and memory grow with the square |
# | writing | | still one word at a time, and the [cache](decoding.py) grows; a recurrent state does not |
# | few data | | recurrence and convolution know that neighbours matter; attention has to learn it |
#
# ## Exercises
#
# **1.** For which lengths does a layer of self-attention need fewer multiplications than a recurrent layer of width 512,
# by Table 1?

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the largest such length
print(verdict("why_attention.1", answer))

# %% tags=["hide-cell"]
# n² · d < n · d² exactly if n < d.
assert all((n * n * 512 < n * 512 * 512) == (n < 512) for n in range(1, 2000))

# %% [markdown]
# **2.** How many layers of undilated convolutions over 3 words connect the first and the last of 21 words?

# %%
answer = None  # instead of None: the number of layers
print(verdict("why_attention.2", answer))

# %% tags=["hide-cell"]
# Each layer reaches one word further on each side.
touched = torch.zeros(1, 1, 21)
touched[..., 0] = 1.0
layers = 0
while touched[..., 20] == 0:
    touched = nn.functional.conv1d(touched, torch.ones(1, 1, 3), padding=1)
    layers += 1

assert verdict("why_attention.2", layers) == "right"
layers

# %% [markdown]
# ## Next
#
# What a Transformer loses without one of its own parts is measured in [an experiment](experiments/parts.py). What
# became of it since 2017: [What came after](what_came_after.py).
