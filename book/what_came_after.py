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
# # What came after
#
# ## The question
#
# The models that people talk to today are Transformers, but not the one of the paper. **What has changed since, and how
# much of it fits into a line of our code?**

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.attention import attention, attention_scores, attention_weights
from glassformer.model.encoder import EncoderLayer
from glassformer.model.masks import causal_mask
from glassformer.model.residual import Residual

_ = torch.manual_seed(1)

# %% [markdown]
# ## When the paper appeared
#
# *Attention Is All You Need* appeared on arXiv in June 2017 (number 1706.03762; the first two digits are the year, the
# next two the month) and was presented at the conference NIPS (called NeurIPS since 2018) in December 2017. It is about
# translation. Within 16 months two other tasks had taken over its parts: GPT and BERT. Most of this book's words come
# from 2017; the table says what to add.
#
# | change | paper | year | here |
# |---|---|---|---|
# | only a decoder: predict the next word | GPT: Radford et al. | 2018 | [a mask](#gpt-only-the-decoder) |
# | only an encoder: fill in blanks | BERT: Devlin et al. | 2018 | [no mask](#bert-only-the-encoder) |
# | every task as text to text | T5: Raffel et al. | 2019 | [the source names the task](#t5-everything-is-translation) |
# | pictures as sentences | ViT: Dosovitskiy et al. | 2020 | [patches as words](#vit-patches-are-words) |
# | norm before the sub-layer | Xiong et al., among others | 2020 | [`norm="pre"`](#pre-norm) |
# | norm without the mean | RMSNorm: Zhang and Sennrich | 2019 | [one line](#rms-norm) |
# | smoother activations | GELU: Hendrycks and Gimpel | 2016 | [`activation="gelu"`](#other-activations-and-a-gate) |
# | a gate in the feed-forward network | GLU variants: Shazeer | 2020 | [one more product](#other-activations-and-a-gate) |
# | distances instead of positions | Shaw et al.; T5; ALiBi: Press et al. | 2018, 2019, 2021 | [added to the scores](#distances-in-the-scores) |
# | positions as rotations | RoFormer: Su et al. | 2021 | [a rotation of queries and keys](#rotary-positions) |
# | fewer keys and values | Shazeer; grouped: Ainslie et al. | 2019, 2023 | [heads that share](#grouped-queries) |
# | exact attention without the table of weights | FlashAttention: Dao et al. | 2022 | [the same numbers](#flashattention) |
#
# Each year is the year of the first public version, often one year before the conference.

# %% [markdown]
# ## The intuition
#
# Three kinds of change hide in this table. **The task**: translation needs an encoder and a decoder, while predicting the
# next word needs one stack and a causal mask. **The details of a layer**: the order of the norm, the activation, how
# positions enter. **The cost**: numbers that need not be kept or computed. The core, equation 1 of the paper (§3.2.1),
# keeps its form in all rows: a softmax of scores, times $V$. Three rows change the scores inside it: T5 and ALiBi add a
# bias to them (and T5 leaves out $\sqrt{d_k}$), and rotary positions rotate $Q$ and $K$ first.

# %% [markdown]
# ## The mathematics
#
# With the paper's letters, $\odot$ for a product entry by entry, $m$ and $n$ for positions, and $R_m$ for the rotation of
# each pair of entries by the angles $m \cdot 10000^{-2i/d}$ (§3.5 has the same angles):
#
# $$\text{pre-norm:}\quad x \leftarrow x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$$
#
# $$\mathrm{RMSNorm}(x) = g \odot \frac{x}{\sqrt{\tfrac{1}{d} \sum_i x_i^2 + \varepsilon}} \qquad
# \mathrm{SwiGLU}(x) = \big(\mathrm{SiLU}(x W_1) \odot x W_3\big) W_2 \qquad \mathrm{SiLU}(z) = \frac{z}{1 + e^{-z}}$$
#
# $$\text{bias:}\quad s_{mn} = \frac{q_m \cdot k_n}{\sqrt{d_k}} + b_{n - m} \qquad
# \text{rotary:}\quad s_{mn} = \frac{(R_m q_m) \cdot (R_n k_n)}{\sqrt{d_k}} = \frac{q_m \cdot (R_{n-m} k_n)}{\sqrt{d_k}}$$

# %% [markdown]
# ## The same stack, other tasks
#
# Our little language is made of digits: each sentence counts upwards in steps of 1, 2 or 3, and 0 follows 9. One stack of
# layers is enough to play both GPT and BERT. We take the library's encoder, with pre-norm as in GPT-2 (2019).

# %%
BLANK, FIRST = 3, 4  # ids 0 to 2 are <pad>, <bos>, <eos>


def sentences(count):
    """Return (count, 8) ids: digits that count upwards in steps of 1, 2 or 3."""
    start, step = torch.randint(10, (count, 1)), torch.randint(1, 4, (count, 1))
    return FIRST + (start + step * torch.arange(8)) % 10


sizes = {"vocab_size": 14, "d_model": 32, "heads": 4, "d_ff": 64, "dropout": 0.0}
config = gf.ModelConfig(**sizes, encoder_layers=2, decoder_layers=1, norm="pre")
(sentences(2) - FIRST).tolist()


# %%
def logits_of(model, ids, mask):
    """Return the logits of one stack of layers: the encoder, with the shared matrix as output."""
    return model.encoder(model.source(ids), mask) @ model.source.tokens.weight.T


def trained(loss_of, steps=250):
    """Return a model after some steps of training."""
    model = gf.Transformer(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        loss_of(model).backward()
        optimiser.step()
    return model.eval()


# %% [markdown]
# ### GPT: only the decoder
#
# GPT has no source, so its decoder has no cross-attention. What remains of the paper's decoder layer is an encoder layer
# with a causal mask. Its task is to predict the next word at every position:


# %%
def next_words(model):
    ids = sentences(64)
    logits = logits_of(model, ids[:, :-1], causal_mask(7))
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


gpt = trained(next_words)
ids = sentences(500)
with torch.no_grad():
    right = logits_of(gpt, ids[:, :-1], causal_mask(7)).argmax(-1) == ids[:, 1:]

print("right at position 1, 2, …:", [f"{100 * share:.0f} %" for share in right.float().mean(0)])

# %% tags=["hide-input", "check"]
assert right[:, 1:].float().mean() > 0.97
assert right[:, 0].float().mean() < 0.5

# %% [markdown]
# From the third digit on, the step is known, and the model is right. The second digit has to be guessed among three.
#
# ### BERT: only the encoder
#
# Leave the mask out, and every word sees both sides. Then predicting the next word would be copying, so BERT has another
# task: blank out some words (15 % are chosen) and fill them in. Of the chosen words BERT blanks 80 %, replaces 10 % by
# a random word and keeps 10 %, so that the model cannot ignore the words that are there. We blank one digit of eight.

# %%
everything = torch.ones(1, 1, 1, 8, dtype=torch.bool)


def blanked(ids, place):
    """Return the ids with a blank at one place of each row."""
    return ids.scatter(1, place[:, None], BLANK)


def blanks(model):
    ids, place = sentences(64), torch.randint(8, (64,))
    logits = logits_of(model, blanked(ids, place), everything)
    rows = torch.arange(64)
    return F.cross_entropy(logits[rows, place], ids[rows, place])


bert = trained(blanks, steps=400)
with torch.no_grad():
    shares = []
    for place in range(8):
        where = torch.full((500,), place)
        guess = logits_of(bert, blanked(ids, where), everything)[:, place].argmax(-1)
        shares.append((guess == ids[:, place]).float().mean().item())

print("right at position 0, 1, …:", [f"{100 * share:.0f} %" for share in shares])

# %% tags=["hide-input", "check"]
assert min(shares) > 0.9

# %% [markdown]
# BERT sees the words on both sides, so a blank at position 1 is as easy as any other. But BERT cannot write a sentence
# word by word. GPT can, and so can T5 below, with its decoder. The models that people talk to today are of GPT's kind.
#
# ### T5: everything is translation
#
# T5 keeps the paper's encoder and decoder, and gives every task the form of a translation. The source names the task,
# such as `translate English to German: …` or `summarize: …`. It was first trained on blanks: in the source, one mark
# replaces a whole span of words, and the target holds the words of the spans. No line of the model has to change for
# that:

# %%
text = ["the", "black", "cat", "slept", "on", "the", "warm", "rug"]
source = [*text[:1], "<1>", *text[3:5], "<2>", *text[7:]]
target = ["<1>", *text[1:3], "<2>", *text[5:7], "<3>"]
print(" ".join(source), "→", " ".join(target))

# %% [markdown]
# ### ViT: patches are words
#
# A picture becomes a sentence if it is cut into patches of 16 × 16 points, and each patch is multiplied by a matrix,
# instead of looking up a row as a word does. The encoder does not know the difference.

# %%
picture = torch.rand(1, 3, 224, 224)
patches = F.unfold(picture, kernel_size=16, stride=16).mT  # (B, 196, 3·16·16)
words = nn.Linear(768, 32)(patches)
memory = gpt.encoder(words, torch.ones(1, 1, 1, 196, dtype=torch.bool))
patches.shape, memory.shape

# %% tags=["hide-input", "check"]
assert patches.shape[1] == (224 // 16) ** 2
torch.testing.assert_close(patches[0, 1].view(3, 16, 16), picture[0, :, :16, 16:32])

# %% [markdown]
# ## The same layer, other details
#
# ### Pre-norm
#
# The paper normalises the sum; pre-norm normalises what the sub-layer reads, and the stream stays as it is. With
# pre-norm, deep stacks train even without a warm-up; one more norm is needed at the end. In the library, pre-norm is a
# setting, and [add & norm](residual.py#training-curves-of-both-placements) measures what it does.

# %%
config = gf.ModelConfig(**sizes, norm="pre")
config.final_norm

# %% [markdown]
# ### RMS norm
#
# Zhang and Sennrich leave out the mean and the bias. What remains is the root of the mean square: one line beside the
# layer norm.


# %%
def layer_norm(x, gain, bias, eps=1e-5):
    return gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) + bias


def rms_norm(x, gain, eps=1e-5):
    return gain * x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


x, gain, bias = torch.randn(3, 5, 32) + 1, torch.rand(32), torch.randn(32)
print(f"mean of a vector {x[0, 0].mean():.2f}, after the layer norm without gain and bias", end=" ")
print(
    f"{layer_norm(x, 1, 0)[0, 0].mean().abs():.2f}, after the RMS norm without gain {rms_norm(x, 1)[0, 0].mean():.2f}"
)

# %% tags=["hide-input", "check"]
library = nn.RMSNorm(32, eps=1e-5)
with torch.no_grad():
    library.weight.copy_(gain)

centred = x - x.mean(-1, keepdim=True)
torch.testing.assert_close(layer_norm(x, gain, bias), F.layer_norm(x, (32,), gain, bias))
torch.testing.assert_close(rms_norm(x, gain), library(x))
torch.testing.assert_close(rms_norm(centred, gain), layer_norm(x, gain, torch.zeros(32)))

# %% [markdown]
# For vectors whose mean is 0, RMS norm *is* layer norm without bias: the mean and the bias are all that is lost.
#
# ### Other activations, and a gate
#
# ReLU cuts off negative numbers; GELU (GPT, BERT) and SiLU do the same smoothly. Both are settings of the library, such
# as `activation="gelu"`. Shazeer (2020) multiplies the result, entry by entry, by the product of the input and a second
# matrix: the first result is a *gate* that decides how much of the second passes. To keep the number of weights,
# $d_{ff}$ becomes two thirds as large.


# %%
def feed_forward(x, w1, w2):
    return F.relu(x @ w1) @ w2


def swiglu(x, w1, w2, w3):
    return (F.silu(x @ w1) * (x @ w3)) @ w2


d_model, d_ff = 32, 96
plain = [torch.randn(d_model, d_ff), torch.randn(d_ff, d_model)]
inner = d_ff * 2 // 3
gated = [torch.randn(d_model, inner), torch.randn(inner, d_model), torch.randn(d_model, inner)]

# %% tags=["hide-input", "check"]
assert sum(w.numel() for w in plain) == sum(w.numel() for w in gated)
assert feed_forward(x, *plain).shape == swiglu(x, *gated).shape == x.shape
torch.testing.assert_close(F.silu(x), x * torch.sigmoid(x))

# %% [markdown]
# ### Distances in the scores
#
# The paper adds positions to the words. Shaw et al. (2018) and T5 tell attention the *distance* of two words instead.
# T5 adds a learned number to the score, one for each head and each distance (long distances are grouped into ranges).
# ALiBi does not even learn this number: the score falls with the distance, by a fixed slope. Our functions take such
# numbers as one more term of the scores:

# %%
query, key, value = (torch.randn(1, 2, 6, 8, dtype=torch.float64) for _ in range(3))
place = torch.arange(6)
distance = place[None, :] - place[:, None]  # of key n from query m: n − m
slopes = torch.tensor([0.5, 0.25], dtype=torch.float64)[:, None, None]
weights = attention_weights(attention_scores(query, key) + slopes * distance, causal_mask(6))
[f"{weight:.2f}" for weight in weights[0, 0, -1]]


# %% [markdown]
# ### Rotary positions
#
# Su et al. rotate each pair of entries of a query, and of a key, by an angle that grows with its position. The dot product
# of two rotated vectors depends on the *difference* of their angles only, so positions enter a score as a distance and in no other way.
# That is the [shift property](positions.py#a-shift-is-a-rotation) of the paper's sine and cosine, moved from the
# input into attention. There is nothing to learn.


# %%
def rotated(x, positions):
    """Return vectors (…, T, K) with each pair of entries rotated by its position's angle."""
    frequencies = 10000 ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1])
    angles = positions[:, None] * frequencies
    sine, cosine = angles.sin(), angles.cos()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1).flatten(-2)


scores = attention_scores(rotated(query, place), rotated(key, place))
moved = attention_scores(rotated(query, place + 1000), rotated(key, place + 1000))
f"moved by 1000 positions, the scores change by {abs(moved - scores).max():.0e}"

# %% tags=["hide-input", "check"]
torch.testing.assert_close(moved, scores, rtol=0, atol=1e-10)
torch.testing.assert_close(rotated(query, place).norm(dim=-1), query.norm(dim=-1))
assert abs(scores - attention_scores(query, key)).max() > 0.1

# %% [markdown]
# ## The same numbers, cheaper
#
# ### Grouped queries
#
# A model that writes word by word keeps the keys and values of all earlier words in a cache. For long texts, or many at
# once, the cache takes more memory than the weights do. Shazeer (2019) lets all heads share one key and one value;
# Ainslie et al. (2023) let each group of heads share a key and a value. A query looks up its group's key and value;
# `repeat_interleave` is all there is to it:

# %%
query = torch.randn(1, 8, 6, 16)  # 8 heads
key, value = torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16)  # 2 groups of 4 heads
output = attention(query, key.repeat_interleave(4, dim=1), value.repeat_interleave(4, dim=1), causal_mask(6))
layers, heads, groups, width, words, size = 32, 32, 8, 128, 8192, 2  # a model of 8 billion weights, in 16 bits
kept = {
    name: 2 * layers * count * width * words * size / 2**30 for name, count in (("heads", heads), ("groups", groups))
}
print(f"cache of {words} words: {kept['heads']:.0f} GiB with a key for each head, {kept['groups']:.0f} GiB in groups")

# %% tags=["hide-input", "check"]
library = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
torch.testing.assert_close(output.weighted_values, library)

# %% [markdown]
# ### FlashAttention
#
# The table of weights has a row and a column for each word, and for long texts, writing it to memory takes longer than
# computing it. Dao et al. (2022) compute softmax and sum block by block, and never hold the table. The result is the
# same, up to rounding. The trick is a running maximum and a running sum, which are corrected when a new block brings a
# larger score:


# %%
def attention_in_blocks(query, key, value, block=2):
    """Return attention's result without ever holding a whole row of weights."""
    highest = torch.full((*query.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(highest), torch.zeros_like(query)
    for keys, values in zip(key.split(block, dim=-2), value.split(block, dim=-2)):
        scores = attention_scores(query, keys)
        higher = torch.maximum(highest, scores.amax(-1, keepdim=True))
        correction, powers = (highest - higher).exp(), (scores - higher).exp()
        total = total * correction + powers.sum(-1, keepdim=True)
        result = result * correction + powers @ values
        highest = higher
    return result / total


query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))

# %% tags=["hide-input", "check"]
torch.testing.assert_close(attention_in_blocks(query, key, value), attention(query, key, value).weighted_values)

# %% [markdown]
# The library uses such a kernel too, through PyTorch, unless you look at the weights.
#
# ## All of it in one layer
#
# Here is a layer as in LLaMA (Touvron et al. 2023), with RMS norm before each sub-layer, rotary positions, a gated
# feed-forward network, no biases, and the grouped queries that its successor adopted. Compare it with [the
# paper's](encoder.py#line-by-line).


# %%
class ModernLayer(nn.Module):
    def __init__(self, d_model=32, heads=4, groups=2, d_ff=64):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, d_model // heads
        self.norms = nn.ModuleList(nn.RMSNorm(d_model, eps=1e-5) for _ in range(2))
        sizes = [d_model, groups * self.width, groups * self.width]
        self.query, self.key, self.value = (nn.Linear(d_model, size, bias=False) for size in sizes)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.gate, self.expand = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.contract = nn.Linear(d_ff, d_model, bias=False)


# %%
def self_attention(layer, x):
    """Attention with rotary positions; each group of heads shares a key and a value."""
    query, key, value = (
        linear(x).unflatten(-1, (-1, layer.width)).transpose(1, 2) for linear in (layer.query, layer.key, layer.value)
    )
    place, share = torch.arange(x.shape[1]), layer.heads // layer.groups
    query, key = rotated(query, place), rotated(key, place).repeat_interleave(share, dim=1)
    heads = attention(query, key, value.repeat_interleave(share, dim=1), causal_mask(x.shape[1]))
    return layer.output(heads.weighted_values.transpose(1, 2).flatten(2))


# %%
def modern(layer, x):
    """The residual stream after both sub-layers."""
    x = x + self_attention(layer, layer.norms[0](x))
    y = layer.norms[1](x)
    return x + layer.contract(F.silu(layer.gate(y)) * layer.expand(y))


layer = ModernLayer()
x = torch.randn(2, 6, 32)
changed = x.clone()
changed[:, 4:] += 1
sum(weight.numel() for weight in layer.parameters())

# %% tags=["hide-input", "check"]
torch.testing.assert_close(modern(layer, changed)[:, :4], modern(layer, x)[:, :4])  # the past does not see the future
assert abs(modern(layer, changed)[:, 4:] - modern(layer, x)[:, 4:]).max() > 0.1

# %% [markdown]
# ## What goes wrong
#
# - **Rotating the values too.** Then the values that are handed over contain the position, and their sum depends on
#   where the sentence starts.
# - **Rotating before a cache is cut.** A cached key keeps the angle of its position. If the oldest words are dropped and
#   the positions counted anew, the angles of the cache are wrong.
# - **Two layouts of the pairs.** The paper's pairs are neighbours (0 and 1, 2 and 3, …), and so are RoFormer's; other
#   code pairs entry $i$ with entry $i + d/2$. Both work, but weights trained with one layout are wrong in the other.

# %%
everything_rotated = [
    attention(rotated(query, place + start), rotated(key, place + start), rotated(value, place + start)).weighted_values
    for start in (0, 3)
]
halves = torch.cat([query[..., 0::2], query[..., 1::2]], -1)  # the same numbers, in the other layout

# %% tags=["hide-input", "check"]
assert abs(everything_rotated[0] - everything_rotated[1]).max() > 0.1
assert abs(rotated(halves, place) - rotated(query, place)).max() > 0.1

# %% [markdown]
# ## Exercises
#
# **1.** *Medium · 5 min.* BERT has no mask, GPT has a causal one. T5 also describes a *prefix* mask: the first words
# see each other, all later ones see only their past. Write it for 6 words with a prefix of 3. How many words may each
# word see?
#
# <details><summary>Hint</summary>
#
# Combine `causal_mask(6)` with the columns of the prefix by *or*, and sum each row.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: six numbers, as a list
print(verdict("what_came_after.1", answer))

# %% tags=["hide-cell"]
prefix = causal_mask(6) | (torch.arange(6) < 3)
assert verdict("what_came_after.1", prefix[0, 0].sum(-1)) == "right"
prefix[0, 0].int()

# %% [markdown]
# **2.** *Easy · 3 min.* Rotary positions leave the length of a vector alone. Does the score of a word with *itself*
# depend on its position?
#
# <details><summary>Hint</summary>
#
# By which angle is the query turned, and by which the key?
#
# </details>

# %% tags=["hide-cell"]
# No: the distance is 0, so both are rotated by the same angle.
query, key = torch.randn(1, 1, 6, 8, dtype=torch.float64), torch.randn(1, 1, 6, 8, dtype=torch.float64)
own = attention_scores(rotated(query, place), rotated(key, place)).diagonal(dim1=-2, dim2=-1)
torch.testing.assert_close(own, attention_scores(query, key).diagonal(dim1=-2, dim2=-1))

# %% [markdown]
# **3.** *Hard · 12 min.* Show that a decoder layer whose cross-attention contributes nothing is an encoder layer with a
# causal mask.
#
# <details><summary>Hint</summary>
#
# Set the output projection of cross-attention to 0, and build an `EncoderLayer` from the other parts.
#
# </details>

# %% tags=["hide-cell"]
model = gf.Transformer(gf.ModelConfig(**sizes, norm="pre")).eval()
decoder_layer = model.decoder.layers[0]
nn.init.zeros_(decoder_layer.cross_attention.output_projection.weight)  # and its bias is 0: nothing is added
parts = decoder_layer.self_attention, decoder_layer.feed_forward
alone = EncoderLayer(*parts, lambda tap: Residual(nn.LayerNorm(32), "pre", 0.0, tap)).eval()
source, x = torch.randn(2, 5, 32), torch.randn(2, 6, 32)
cache = model.decoder.start(source)[0]
with torch.no_grad():
    torch.testing.assert_close(decoder_layer(x, causal_mask(6), cache, None), alone(x, causal_mask(6)))

# %% [markdown]
# ## Next
#
# You know every part now. [Write it yourself](write_it_yourself.py) starts from an empty file and checks each step.
# An [experiment](experiments/parts.py) measures what each part of the paper's model is worth. The library has the settings of the paper and of
# translation models; they are listed in [model/config.py](../src/glassformer/model/config.py#ModelConfig).
