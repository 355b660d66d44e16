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
# # The encoder, line by line
#
# You have met the parts: [embeddings](embeddings.py), [positions](positions.py), [attention](attention.py),
# [heads](heads.py), [masks](masks.py), [add & norm](residual.py), [feed-forward](feed_forward.py). Here
# they come together. You run the encoder on the copy task, at the size of the paper's base model, and look at values
# and shapes after each line.

# %% [markdown]
# ## The question
#
# A sentence, the *source*, comes in as a row of token ids. What does the encoder return, which steps lead from the ids
# to this result, and what shape does the tensor have after each step?

# %% [markdown]
# ## The intuition
#
# Each token becomes a vector. From then on, the encoder keeps **one vector for each position**, all the way up. Think
# of a stream that flows past six workers. Each worker, a *layer*, reads the stream twice and adds something to it
# twice:
#
# 1. **Self-attention** collects: each position looks at all positions of the source and gathers what it needs.
# 2. **Feed-forward** processes: each position works by itself on what it has gathered.
#
# Nothing is replaced: what a sub-layer finds out is *added* to what was there (norms only rescale it). The shape never
# changes either, so you can stack layers as high as you like. The output of the last layer is called the **memory**:
# one vector for each position of the source, which also contains information from the other positions. The decoder will
# read the memory.

# %% [markdown]
# ## The mathematics
#
# | symbol | meaning | here |
# |---|---|---|
# | $B$ | sentences in a batch | 30 |
# | $S$ | positions of the source | 10 |
# | $d_{\text{model}}$ | width of the stream | 512 |
# | $h$ | heads | 8 |
# | $d_k$, $d_v$ | width of a head's queries and keys, and of its values | 64 |
# | $d_{\text{ff}}$ | inner width of the feed-forward network | 2048 |
# | $N$ | layers | 6 |
#
# Let $x$ be the stream, of shape $(B, S, d_{\text{model}})$, and let $\mathrm{Sublayer}$ be self-attention or the
# feed-forward network. $\mathrm{LayerNorm}$ rescales the numbers of each position to mean 0 and standard deviation 1;
# $\mathrm{Dropout}$ sets some to 0, in training only. The paper (§3.1, with the dropout of §5.4) normalises **after**
# the sum. This is *post-norm*:
#
# $$x \leftarrow \mathrm{LayerNorm}(x + \mathrm{Dropout}(\mathrm{Sublayer}(x)))$$
#
# Much code normalises **before** the sub-layer instead, and only the sub-layer's input. This is *pre-norm*, with one
# more LayerNorm after the last layer:
#
# $$x \leftarrow x + \mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))$$
#
# This chapter first walks through pre-norm, which is common in published code, and then shows the paper's post-norm.
# The encoder is a stack of $N$ such layers, each with its own weights:
#
# $$\mathrm{memory} = \mathrm{Layer}_N(\ldots\mathrm{Layer}_2(\mathrm{Layer}_1(x)))$$

# %% [markdown]
# ## Line by line
#
# ### The whole model in nine lines
#
# First the skeleton, in pre-norm and without dropout. The first four lines are the encoder, the subject of this
# chapter:
#
# | part | line | explained in |
# |---|---|---|
# | encode | `x = embedding(source) * sqrt(d_model) + positions` | [Ids become vectors](#ids-become-vectors) |
# | each encoder layer | `x = x + self_attention(norm(x), source_mask)` | [First sub-layer](#first-sub-layer-self-attention) |
# | | `x = x + feed_forward(norm(x))` | [Second sub-layer](#second-sub-layer-feed-forward) |
# | after the last layer | `memory = norm(x)` | [Six layers and the final norm](#six-layers-and-the-final-norm) |
# | decode | `y = embedding(target) * sqrt(d_model) + positions` | [Embeddings](embeddings.py), [positions](positions.py) |
# | each decoder layer | `y = y + self_attention(norm(y), target_mask)` | [Decoder, first sub-layer](decoder.py#first-sub-layer-masked-self-attention) |
# | | `y = y + cross_attention(norm(y), memory, source_mask)` | [Decoder, second sub-layer](decoder.py#second-sub-layer-cross-attention) |
# | | `y = y + feed_forward(norm(y))` | [Decoder, third sub-layer](decoder.py#third-sub-layer-feed-forward) |
# | logits | `logits = output(norm(y))` | [From a vector to logits](output.py#from-a-vector-to-logits) |
#
# ### A batch of the copy task
#
# The task is to write down what you read: the *target* (the sequence to write) equals the source. It has 11 ids: 1 to
# 10 are symbols, and 0 is padding. A sequence consists of ten symbols, and the first is always 1. An epoch (one round
# of training) has 20 batches of 30 sequences; one batch is enough here. We compute in float64, so that we can check
# equality to the last digits.

# %%
import math  # the square root of a number

import torch  # tensors, and the gradients of what is computed with them
from torch import nn  # modules: layers that own their weights
from torch.nn import functional as F  # the same operations as functions, without weights

import glassformer as gf  # this book's library: the same model, to compare with
from glassformer.watch import pictures  # drawings of numbers

torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=3, sci_mode=False, linewidth=88)
torch.manual_seed(1)

data = torch.randint(1, 11, (20, 30, 10))  # 20 batches of (30, 10), ids 1 to 10
data[:, :, 0] = 1
data.shape

# %%
source = target = data[0]  # the target equals the source
source[:3]

# %% tags=["hide-input", "check"]
assert source.shape == (30, 10)
assert (int(source.min()), int(source.max())) == (1, 10)

# %% [markdown]
# A *mask* says which positions may be looked at: `True` means "may attend". Much code makes the source's mask in the
# shape (30, 1, 10) and later adds an axis for the heads, (30, 1, 1, 10); we add this axis from the start. When two
# tensors meet, an axis of length 1 is stretched (this is called *broadcasting*). So one row of the mask serves all 8
# heads and all 10 queries:

# %%
source_mask = source != 0
three_axes = source_mask[:, None, :]  # (30, 1, 10)
mask = source_mask[:, None, None, :]  # (30, 1, 1, 10)

tuple(mask.shape), bool(mask.all())

# %% tags=["hide-input", "check"]
assert (three_axes.shape, mask.shape) == ((30, 1, 10), (30, 1, 1, 10))
assert torch.equal(three_axes[:, None], mask)
assert torch.broadcast_shapes(mask.shape, (30, 8, 10, 10)) == (30, 8, 10, 10)

# %% [markdown]
# This task needs no padding, so the mask hides nothing. The rest of the batch is for the decoder. The decoder reads all
# tokens except the last, and has to predict all except the first. Its mask hides padding *and* ($\wedge$) the future:

# %%
target_input = target[:, :-1]  # all but the last: what the decoder reads
target_output = target[:, 1:]  # all but the first: what it has to predict
not_padding = (target_input != 0)[:, None, :]  # (30, 1, 9)
not_future = torch.ones(9, 9, dtype=torch.bool).tril()  # (9, 9)
target_mask = not_padding & not_future
tokens = int((target_output != 0).sum())

print(target_input[0], target_output[0], sep="\n")
target_mask[0].int()

# %% tags=["hide-input", "check"]
assert target_input.shape == target_output.shape == (30, 9)
assert target_mask.shape == (30, 9, 9)
assert tokens == 270

# %% [markdown]
# Read the mask row by row. Row 0 has a single 1, because the first position may look only at itself. The number of real
# tokens, 270 = 30 × 9, will divide the *loss*, the number that says how wrong the predictions are ([output and
# loss](output.py)).
#
# ### Ids become vectors
#
# The embedding matrix has one row for each of the 11 ids. A lookup takes out rows, and each row is multiplied by
# $\sqrt{d_{\text{model}}}$ (§3.4). We draw the rows with a standard deviation of $1/\sqrt{d_{\text{model}}}$, so that
# the standard deviation is 1 after the multiplication.

# %%
d_model, heads, d_k, d_ff = 512, 8, 64, 2048

torch.manual_seed(2)
table = torch.randn(11, d_model) * d_model**-0.5
embedded = table[source] * math.sqrt(d_model)  # (30, 10) -> (30, 10, 512)

embedded[0, 0, :5], embedded.std()

# %% tags=["hide-input", "check"]
assert embedded.shape == (30, 10, 512)

# %% [markdown]
# Nothing in this vector says *where* the token is. So we add the sinusoids of §3.5: with $i$ counting pairs of
# dimensions, position $pos$ gets $\sin$ and $\cos$ of $pos / 10000^{2i/d_{\text{model}}}$.

# %%
pair = torch.arange(0, d_model, 2) / d_model  # 2i / d_model, 256 of them
angles = torch.arange(10)[:, None] / 10000**pair  # (10, 256)
positions = torch.zeros(10, d_model)
positions[:, 0::2], positions[:, 1::2] = angles.sin(), angles.cos()

x = embedded + positions  # (30, 10, 512) + (10, 512)
positions[:3, :4], x[0, 0, :5]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(positions, gf.sinusoids(10, d_model))
assert x.shape == (30, 10, 512)

# %% [markdown]
# Then comes dropout. In training it sets each number to 0 with a probability of 0.1 and divides the others by 0.9, so
# that the expected value stays the same. Outside training (`training=False`) it does nothing. We keep it in its place,
# switched off.

# %%
torch.manual_seed(3)
dropped = F.dropout(x, 0.1, training=True)
print(f"set to 0: {(dropped == 0).double().mean():.1%} of the numbers")
print(f"the others were multiplied by {(dropped / x).max():.3f}")


def dropout(x):
    return F.dropout(x, 0.1, training=False)


x = dropout(x)
start = x  # to come back to it
x.shape

# %% [markdown]
# ### A layer's weights
#
# A layer has six matrices, each with a bias (a vector that is added): $W_Q$, $W_K$, $W_V$ (`query`, `key`, `value`) and
# $W_O$ (`output`) for the attention, $W_1$ (`expand`) and $W_2$ (`contract`) for the feed-forward network. It also has
# two norms. We draw all these weights at random. The norms get a random gain (a factor for each of the 512 numbers) and
# bias too, so that no mistake can hide behind a gain of 1.


# %% tags=["hide-input"]
def new_linear(width_in, width_out):
    linear = nn.Linear(width_in, width_out)
    nn.init.xavier_uniform_(linear.weight)
    return linear.requires_grad_(False)


def new_norm():
    norm = nn.LayerNorm(d_model)
    nn.init.normal_(norm.weight, 1.0, 0.1)
    nn.init.normal_(norm.bias, 0.0, 0.1)
    return norm.requires_grad_(False)


def new_layer():
    return {
        "norm_1": new_norm(),
        "query": new_linear(d_model, heads * d_k),
        "key": new_linear(d_model, heads * d_k),
        "value": new_linear(d_model, heads * d_k),
        "output": new_linear(heads * d_k, d_model),
        "norm_2": new_norm(),
        "expand": new_linear(d_model, d_ff),
        "contract": new_linear(d_ff, d_model),
    }


# %%
torch.manual_seed(4)
layers = [new_layer() for _ in range(6)]
layer = layers[0]
{name: tuple(part.weight.shape) for name, part in layer.items()}

# %% [markdown]
# ### First sub-layer: self-attention
#
# First, normalise. Each position's 512 numbers get mean 0 and standard deviation 1, then gain and bias. The result gets
# **its own name**, because $x$ is needed again.

# %%
mean = x.mean(-1, keepdim=True)  # (30, 10, 1)
variance = x.var(-1, unbiased=False, keepdim=True)  # (30, 10, 1): by 512, not by 511
normed = (x - mean) / torch.sqrt(variance + 1e-5)
normed = normed * layer["norm_1"].weight + layer["norm_1"].bias  # gain and bias

normed[0, 0, :5]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(normed, layer["norm_1"](x))
assert normed.shape == (30, 10, 512)

# %% [markdown]
# Next, compute the query (what a position looks for), the key (what it can be found by) and the value (what it hands over): the
# same vectors times three different matrices. In self-attention, all three come from one stream.

# %%
query = layer["query"](normed)  # (30, 10, 512) -> (30, 10, 512)
key = layer["key"](normed)
value = layer["value"](normed)

query[0, 0, :5]

# %% tags=["hide-input", "check"]
assert query.shape == key.shape == value.shape == (30, 10, 512)

# %% [markdown]
# Split into heads: 512 numbers are 8 times 64. First `view`, then `transpose`, so that each head has its own sequence.


# %%
def split(x):
    x = x.view(30, 10, heads, d_k)  # (30, 10, 512) -> (30, 10, 8, 64)
    return x.transpose(1, 2)  # -> (30, 8, 10, 64)


query, key, value = split(query), split(key), split(value)
tuple(query.shape)

# %% tags=["hide-input", "check"]
assert query.shape == key.shape == value.shape == (30, 8, 10, 64)

# %% [markdown]
# Now for attention (§3.2.1). Take the dot product of every query with every key, and divide it by $\sqrt{d_k}$. Scores
# that the mask forbids become $-\infty$. Take the softmax over the keys, then the weighted average of the values.

# %%
# (30, 8, 10, 64) @ (30, 8, 64, 10) -> (30, 8, 10, 10)
scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)
scores = scores.masked_fill(~mask, -math.inf)
weights = scores.softmax(-1)
# (30, 8, 10, 10) @ (30, 8, 10, 64) -> (30, 8, 10, 64)
attended = weights @ value

weights[0, 0, 0]

# %% tags=["hide-input", "check"]
assert scores.shape == weights.shape == (30, 8, 10, 10)
assert attended.shape == (30, 8, 10, 64)
torch.testing.assert_close(weights.sum(-1), torch.ones(30, 8, 10))

# %% [markdown]
# This row shows where the first position of the first sentence looks, in the first head; it sums to 1. The picture
# below shows the whole (10, 10) matrix of this head. Rows are queries, columns are keys, each named by its token.
# Nothing has been trained yet. Even so, neighbouring columns with equal tokens (4 4, 2 2) look alike, because their
# keys differ only in the position.

# %% tags=["hide-input"]
names = [str(int(token)) for token in source[0]]
pictures.heat_map(
    weights[0, 0],
    names,
    names,
    row_label="query",
    column_label="key",
    alt="A ten by ten matrix of attention weights of an untrained head, from "
    f"{weights[0, 0].min():.2f} to {weights[0, 0].max():.2f}; the columns of equal neighbouring tokens look alike.",
)

# %% [markdown]
# Join the heads: transpose back, so that 8 × 64 numbers side by side are 512 again. The matrix $W_O$ then mixes them.

# %%
joined = attended.transpose(1, 2)  # (30, 8, 10, 64) -> (30, 10, 8, 64)
joined = joined.reshape(30, 10, heads * d_k)  # -> (30, 10, 512)
share = layer["output"](joined)  # W_O: (30, 10, 512) -> (30, 10, 512)

share[0, 0, :5]

# %% tags=["hide-input", "check"]
assert joined.shape == share.shape == (30, 10, 512)

# %% [markdown]
# Apply dropout, then add. The sum takes **the unnormalised x**, as it came into the sub-layer.

# %%
x = x + dropout(share)
after_attention = x
x[0, 0, :5]

# %% tags=["hide-input", "check"]
assert x.shape == (30, 10, 512)

# %% [markdown]
# ### Second sub-layer: feed-forward
#
# The second sub-layer has the same frame and different contents: a norm, two matrices with a ReLU between them (§3.3;
# it sets negative numbers to 0), dropout, and a sum.

# %%
normed = layer["norm_2"](x)
hidden = layer["expand"](normed)  # (30, 10, 512) -> (30, 10, 2048)
activated = hidden.clamp(min=0)  # max(0, ·)
share = layer["contract"](activated)  # (30, 10, 2048) -> (30, 10, 512)
x = x + dropout(share)

after_layer = x
print(f"ReLU has set {(activated == 0).double().mean():.0%} of the numbers to 0")
x[0, 0, :5]

# %% tags=["hide-input", "check"]
assert hidden.shape == activated.shape == (30, 10, 2048)
assert x.shape == (30, 10, 512)

# %% [markdown]
# That is one encoder layer. Read the picture from the bottom up: the stream goes up on the left, and each sub-layer is
# a loop to the right that ends in a sum. Each arrow carries the shape of what flows along it.

# %% tags=["hide-input"]
Box = pictures.Box
BLUE, ORANGE, GREEN, GREY = pictures.BLUE, pictures.ORANGE, pictures.GREEN, pictures.GREY
D = "(30, 10, 512)"
pictures.flow(
    {
        "x": Box("x", 0, 0),
        "norm 1": Box("LayerNorm", 1.5, 0, GREY, "residual.py"),
        "project": Box("W_Q, W_K, W_V", 1.5, 1, BLUE, "attention.py"),
        "split": Box("split into 8 heads", 1.5, 2, BLUE, "heads.py"),
        "mask": Box("mask", 3, 3, GREY, "masks.py", 0.7),
        "attend": Box("attention", 1.5, 3, BLUE, "attention.py"),
        "join": Box("join", 1.5, 4, BLUE, "heads.py"),
        "mix": Box("W_O", 1.5, 5, BLUE, "heads.py"),
        "drop 1": Box("dropout", 1.5, 6, GREY, "residual.py"),
        "add 1": Box("+", 0, 6, GREEN, "residual.py", 0.4),
        "norm 2": Box("LayerNorm", 1.5, 7.2, GREY, "residual.py"),
        "turn": Box("x", 0, 7.2, GREY, "", 0.4),
        "expand": Box("W_1, then ReLU", 1.5, 8.2, ORANGE, "feed_forward.py"),
        "contract": Box("W_2", 1.5, 9.2, ORANGE, "feed_forward.py"),
        "drop 2": Box("dropout", 1.5, 10.2, GREY, "residual.py"),
        "add 2": Box("+", 0, 10.2, GREEN, "residual.py", 0.4),
        "out": Box("x, for the next layer", 0, 11.2),
    },
    [
        ("x", "norm 1", D),
        ("norm 1", "project", D),
        ("project", "split", "3 × (30, 10, 512)"),
        ("split", "attend", "3 × (30, 8, 10, 64)"),
        ("mask", "attend", "(30, 1, 1, 10)"),
        ("attend", "join", "(30, 8, 10, 64)"),
        ("join", "mix", D),
        ("mix", "drop 1", D),
        ("drop 1", "add 1", D),
        ("x", "add 1", D),
        ("add 1", "turn"),
        ("turn", "norm 2", D),
        ("norm 2", "expand", D),
        ("expand", "contract", "(30, 10, 2048)"),
        ("contract", "drop 2", D),
        ("drop 2", "add 2", D),
        ("turn", "add 2", D),
        ("add 2", "out", D),
    ],
    row=0.58,
    alt="Data flow of a pre-norm encoder layer. The stream x of shape (30, 10, 512) goes straight "
    "up through two sums. "
    "Beside it, LayerNorm, projections, eight heads, attention, W_O and dropout lead to the first "
    "sum, and LayerNorm, "
    "W_1 with ReLU, W_2 and dropout to the second.",
)

# %% [markdown]
# ### Six layers and the final norm
#
# The other five layers do the same with their own weights. (Many notebooks make five copies of the first layer. Copies
# [start with equal weights](errata.py#copied-layers), so we have drawn random weights for each layer separately.) So we
# turn the lines above into a function, which gives the same numbers:


# %%
def self_attention(normed, mask, layer):
    query, key, value = (split(layer[name](normed)) for name in ("query", "key", "value"))
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    joined = (weights @ value).transpose(1, 2).reshape(30, 10, heads * d_k)
    return layer["output"](joined)


def feed_forward(normed, layer):
    return layer["contract"](layer["expand"](normed).clamp(min=0))


def encoder_layer(x, mask, layer):
    x = x + dropout(self_attention(layer["norm_1"](x), mask, layer))
    return x + dropout(feed_forward(layer["norm_2"](x), layer))


# %% tags=["hide-input", "check"]
torch.testing.assert_close(encoder_layer(start, mask, layers[0]), after_layer)

# %% [markdown]
# In pre-norm, each layer adds to the stream, and nothing scales it down again, so it grows. That is why a norm follows
# the last layer.

# %%
torch.manual_seed(5)
final_norm = new_norm()

x, sizes = start, [start.std()]
for layer in layers:
    x = encoder_layer(x, mask, layer)
    sizes.append(x.std())

before_norm = x
memory = final_norm(before_norm)
print("standard deviation of the stream, before the first layer and after each:")
print([round(float(size), 2) for size in sizes])
print(f"and of the memory: {memory.std():.2f}")
memory[0, 0, :5]

# %% tags=["hide-input", "check"]
assert memory.shape == (30, 10, 512)

# %% [markdown]
# That is the encoder: (30, 10) ids in, (30, 10, 512) memory out.

# %% [markdown]
# ## The same from the library
#
# The library's [EncoderLayer](../src/glassformer/model/encoder.py#EncoderLayer) holds the same weights. Only the
# storage differs: $W_Q$, $W_K$ and $W_V$ are stacked in one matrix, so that one product makes all three. We copy our
# numbers into it and compare.

# %% tags=["hide-input"]
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.encoder import EncoderLayer
from glassformer.model.feed_forward import FeedForward
from glassformer.model.residual import Residual


def fill(theirs, ours):
    projections = [ours[name] for name in ("query", "key", "value")]
    theirs.self_attention.input_projection.load_state_dict(
        {
            "weight": torch.cat([projection.weight for projection in projections]),
            "bias": torch.cat([projection.bias for projection in projections]),
        }
    )
    theirs.self_attention.output_projection.load_state_dict(ours["output"].state_dict())
    theirs.feed_forward.expand.load_state_dict(ours["expand"].state_dict())
    theirs.feed_forward.contract.load_state_dict(ours["contract"].state_dict())
    theirs.self_attention_residual.norm.load_state_dict(ours["norm_1"].state_dict())
    theirs.feed_forward_residual.norm.load_state_dict(ours["norm_2"].state_dict())


# %%
attention = MultiHeadAttention(d_model, heads, d_k=64, d_v=64, dropout=0.0)
network = FeedForward(d_model, d_ff, "relu", dropout=0.0)
library_layer = EncoderLayer(attention, network, lambda tap: Residual(nn.LayerNorm(d_model), "pre", 0.1, tap))
library_layer.eval().requires_grad_(False)
fill(library_layer, layers[0])

library_layer(start, mask)[0, 0, :5]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(library_layer(start, mask), after_layer)

# %% [markdown]
# Now the whole encoder: a base model with a vocabulary of 11, the same table, the same six layers, and the same final
# norm. Its [encode](../src/glassformer/model/transformer.py#Transformer.encode) takes the ids and makes the mask
# itself. `norm="pre"` chooses what we did above; `eval()` switches dropout off.

# %%
config = gf.ModelConfig.preset("base", vocab_size=11, norm="pre")
model = gf.Transformer(config).eval().requires_grad_(False)
model.source.tokens.weight.copy_(table)
for theirs, ours in zip(model.encoder.layers, layers, strict=True):
    fill(theirs, ours)

model.encoder.norm.load_state_dict(final_norm.state_dict())

model.encode(source).shape

# %% tags=["hide-input", "check"]
torch.testing.assert_close(model.source(source), start)
torch.testing.assert_close(model.encoder(start, mask), memory)
torch.testing.assert_close(model.encode(source), memory)

# %% [markdown]
# The library also has functions for the batch's masks, with the axis of the heads in its place:

# %%
from glassformer.model.masks import padding_mask
from glassformer.model.masks import target_mask as library_target_mask

padding_mask(source, pad_id=0).shape, library_target_mask(target_input, pad_id=0).shape

# %% tags=["hide-input", "check"]
assert torch.equal(padding_mask(source, pad_id=0), mask)
assert torch.equal(library_target_mask(target_input, pad_id=0), target_mask[:, None])

# %% [markdown]
# ## Post-norm, the paper's
#
# For the paper's order, only one line of code changes: the norm is applied after the sum. Post-norm needs no final
# norm, because the last layer already ends with one. Here it is with the same six sets of weights:


# %%
def post_norm_layer(x, mask, layer):
    x = layer["norm_1"](x + dropout(self_attention(x, mask, layer)))
    return layer["norm_2"](x + dropout(feed_forward(x, layer)))


x, post_sizes = start, [start.std()]
for layer in layers:
    x = post_norm_layer(x, mask, layer)
    post_sizes.append(x.std())

# norm="post" is the default; the decoder is not needed here
config = gf.ModelConfig.preset("base", vocab_size=11, decoder_layers=1)
post_model = gf.Transformer(config).eval().requires_grad_(False)
post_model.source.tokens.weight.copy_(table)
for theirs, ours in zip(post_model.encoder.layers, layers, strict=True):
    fill(theirs, ours)

print([round(float(size), 2) for size in post_sizes])

# %% tags=["hide-input", "check"]
torch.testing.assert_close(post_model.encode(source), x)

# %% [markdown]
# The picture compares the size of the stream's numbers (their standard deviation) after each layer. Pre-norm (solid
# line) lets the stream grow. In post-norm (dashed), each layer ends with a norm, which brings the stream back to
# about 1.

# %% tags=["hide-input"]
pictures.curves(
    {"pre-norm": (range(7), sizes), "post-norm": (range(7), post_sizes)},
    x_label="layers passed",
    y_label="standard deviation of the stream",
    alt=f"The deviation of the stream rises from {sizes[0]:.1f} to {sizes[-1]:.1f} over six layers in pre-norm, and "
    "stays near 1 in post-norm.",
)

# %% [markdown]
# ## Every number has a name
#
# You need not take the encoder apart to see inside it. [gf.record](../src/glassformer/model/taps.py#record) records
# each intermediate tensor of a forward pass under a name, its *point*. Here are the points of the first layer, in the
# order of the computation. Compare their shapes with the ones above.

# %%
with gf.record(model) as trace:
    model(source, target_input)

for name in trace:
    if name.startswith(("source.", "encoder.layers.0.", "encoder.output")):
        print(f"{name:<40} {tuple(trace[name].shape)}")

# %% [markdown]
# The numbers are the same, too:

# %%
point = "encoder.layers.0.self_attention"
f"{len(trace)} points in the whole model"

# %% tags=["hide-input", "check"]
torch.testing.assert_close(trace[f"{point}.query"], query)
torch.testing.assert_close(trace[f"{point}.scores"], scores)  # nothing was masked
torch.testing.assert_close(trace[f"{point}.weights"], weights)
torch.testing.assert_close(trace[f"{point}.heads"], attended)
torch.testing.assert_close(trace[f"{point}.added"], after_attention)
torch.testing.assert_close(trace["encoder.layers.0.feed_forward.activated"], activated)
torch.testing.assert_close(trace["encoder.layers.0.feed_forward.added"], after_layer)
torch.testing.assert_close(trace["encoder.output"], memory)

# %% [markdown]
# The library's source says the same in each function: `Float[Tensor, "... T K"]` is a tensor of floating-point numbers
# whose last two axes are T and K. The letters are explained at the top of each file
# ([attention.py](../src/glassformer/model/attention.py#attention_scores)); dots stand for any leading axes.

# %%
import inspect

from glassformer.model.attention import attention_scores

print("\n".join(inspect.getsource(attention_scores).splitlines()[:2]))  # its first two lines

# %% [markdown]
# The explorer shows the same points of a trained model, such as
# [`encoder.layers.0.self_attention.weights`](../runs/demo/explorer.html#text=The+cat+slept+on+the+rug.&selected=%7B%22name%22:%22encoder.layers.0.self_attention.weights%22,%22index%22:%5B%5D%7D);
# click a cell to see the arithmetic that made it.
#
# ## One memory for all decoder layers
#
# **"The memory is one vector that sums up the sentence."** This was true of the translation models before attention
# ([why attention](why_attention.py)), and many still believe it. The encoder's memory has a vector for each position: a
# sentence twice as long has a memory twice as large. Nothing has to be squeezed into one vector, because
# cross-attention weighs all these vectors anew for each word that the decoder writes.
#
# Readers often ask: does the last encoder layer's output go to **every** layer of the decoder? Yes. The encoder layers
# and decoder layers are not paired one to one; every decoder layer gets the output of the last encoder layer. From this
# one memory, each decoder layer makes its own keys and values. The recording confirms it: the keys of each decoder
# layer are its $W_K$ times the memory.

# %%
for number, decoder_layer in enumerate(model.decoder.layers):
    projection = decoder_layer.cross_attention.input_projection
    # W_K follows W_Q in the stacked matrix
    W_K, bias = projection.weight[512:1024], projection.bias[512:1024]
    recorded = trace[f"decoder.layers.{number}.cross_attention.key"]
    largest = (recorded - split(memory @ W_K.mT + bias)).abs().max().item()
    print(f"decoder layer {number}: largest difference {largest:.0e}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(recorded, split(memory @ W_K.mT + bias))

# %% [markdown]
# ## What goes wrong
#
# The mistakes below are easy to write and hard to see: every one of them gives exactly the right shapes. So we measure
# the distance between the wrong result and the right one, as a share of the right one's size.


# %%
def distance(wrong, right):
    return float((wrong - right).norm() / right.norm())


# %% [markdown]
# **The residual of the normalised x** ([errata](errata.py#residual-of-the-normalised-x)). One name is used for two
# values, so the value added back is no longer the value that came in. The same slip is easy to make in the second
# sub-layer. Then the layer's input no longer passes through the stack without being normalised.


# %%
def overwritten_layer(x, mask, layer):
    x = layer["norm_1"](x)  # x is lost here
    x = x + dropout(self_attention(x, mask, layer))
    x = layer["norm_2"](x)  # and here
    return x + dropout(feed_forward(x, layer))


wrong = start
for layer in layers:
    wrong = overwritten_layer(wrong, mask, layer)

one = distance(overwritten_layer(start, mask, layers[0]), after_layer)
six = distance(wrong, before_norm)
print(f"off by {one:.0%} after one layer, by {six:.0%} after six")

# %% tags=["hide-input", "check"]
assert 0.1 < one < six

# %% [markdown]
# **Dropout on the wrong tensor** ([errata](errata.py#dropout-on-the-wrong-tensor)). Dropout is applied to the layer's
# (normalised) input instead of the attention's result, so the attention is computed and thrown away. The lines that
# should join the heads then act on a (30, 10, 512) tensor. Transposed to (30, 512, 10) and viewed as (30, 10, 512)
# again, it has the right shape, but the numbers of ten positions are mixed up.


# %%
def scrambled(x):
    return x.transpose(1, 2).contiguous().view(30, -1, heads * d_k)


def first_sublayer(x, mask, layer):
    return x + dropout(self_attention(layer["norm_1"](x), mask, layer))


def misplaced_dropout(x, mask, layer):
    normed = layer["norm_1"](x)
    _attended = self_attention(normed, mask, layer)  # never used
    dropped = dropout(normed)  # should be the attention's result
    return x + layer["output"](scrambled(dropped))


wrong = misplaced_dropout(start, mask, layers[0])
print(f"off by {distance(wrong, after_attention):.0%}")

normed = layers[0]["norm_1"](start)
scrambled(normed)[0, 0, :4], normed[0, :4, 0]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(first_sublayer(start, mask, layers[0]), after_attention)
assert distance(wrong, after_attention) > 0.5
torch.testing.assert_close(scrambled(normed)[0, 0, :10], normed[0, :, 0])

# %% [markdown]
# The row that should be position 0 now begins with the first feature of *every* position. And the attention has no
# effect. To prove it, hide half of the source: the right result changes, and the wrong one stays the same to the last
# bit.

# %%
half = mask.clone()
half[..., 5:] = False
for how in (first_sublayer, misplaced_dropout):
    all_seen, half_hidden = how(start, mask, layers[0]), how(start, half, layers[0])
    print(f"{how.__name__}: changes by {distance(half_hidden, all_seen):.0%}")

# %% tags=["hide-input", "check"]
assert torch.equal(half_hidden, all_seen)  # misplaced_dropout, the last one
assert distance(first_sublayer(start, half, layers[0]), after_attention) > 0.1

# %% [markdown]
# **Another layer norm** ([errata](errata.py#another-layer-norm)). The unbiased standard deviation divides by $n - 1$
# instead of $n$ (the count of numbers, here 512), and ε (the small number that prevents a division by 0, 1e-5 above) is
# outside the root. With 512 numbers the difference is 0.1 %, and you would never notice it. With the 4 numbers of an
# example on paper it is 13 %. And where all numbers are nearly equal, an ε outside the root limits the result far less:
# in the last line below, the result is about 250 times as large.


# %%
def another_norm(x, eps=1e-6):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


wide, narrow = start[0, 0], torch.tensor([1.0, 2.0, 3.0, 6.0])
flat = 1 + 1e-5 * torch.tensor([1.0, -1.0, 1.0, -1.0])
off = []
for name, vector in (
    ("512 numbers", wide),
    ("4 numbers", narrow),
    ("nearly equal", flat),
):
    usual, other = F.layer_norm(vector, vector.shape), another_norm(vector)
    off.append(distance(other, usual))
    ratio = other[0] / usual[0]
    print(f"{name:<13} usual {usual[0]:+.4f}   this one {other[0]:+.4f}   ratio {ratio:.3f}")

# %% tags=["hide-input", "check"]
# Without either ε, the difference would be exactly this:
assert math.isclose(off[0], 1 - math.sqrt(511 / 512), rel_tol=0.02)
assert math.isclose(off[1], 1 - math.sqrt(3 / 4), rel_tol=0.02)

# %% [markdown]
# **Embeddings that drown the positions** ([errata](errata.py#embeddings-that-drown-the-positions)). `nn.Embedding`
# draws its rows with standard deviation 1. Multiplied by $\sqrt{512} \approx 22.6$ they reach ±70 and more, and
# positions of ±1 are negligible beside them. How much does a token's position matter then? Compare the vectors of one
# token at positions 0 and 5:

# %%
torch.manual_seed(6)
loud_table = nn.Embedding(11, d_model).weight.detach()
loud = loud_table[source] * math.sqrt(d_model)
for name, vectors in {"loud": loud, "ours": embedded}.items():
    print(f"{name}: embeddings from {vectors.min():.1f} to {vectors.max():.1f}")

for name, rows in {"loud": loud_table, "ours": table}.items():
    here, there = (rows[7] * math.sqrt(d_model) + positions[place] for place in (0, 5))
    print(f"{name}: the two vectors of token 7 differ by {distance(there, here):.1%}")

# %% tags=["hide-input", "check"]
assert loud.max() > 70 > 6 > embedded.abs().max()

# %% [markdown]
# A model can recover from this in training, but it starts nearly blind to order. Multiplying by
# $\sqrt{d_{\text{model}}}$ is not the mistake: it is meant for an embedding table whose entries have a standard
# deviation of $d_{\text{model}}^{-0.5}$.
#
# **Off by one in the vocabulary** ([errata](errata.py#off-by-one-in-the-vocabulary)). The 11 ids are 0 to 10. The table
# has 11 rows, id 5 has the *sixth*, and id 11 does not exist. The size of the vocabulary has nothing to do with
# $d_{\text{model}}$: it is the number of rows, while $d_{\text{model}}$ is the number of columns.

# %%
try:
    model.encode(torch.tensor([[1, 5, 11]]))
except gf.VocabularyError as error:
    print(error)

# %% tags=["hide-input", "check"]
assert table.shape == (11, 512)
assert torch.equal(table[5], list(table)[6 - 1])

# %% [markdown]
# To see two of these mistakes at work in a trained model, plant them with `glassformer.watch.inspection`:
# `plant(model, "residual_normed")` and `plant(model, "unbiased_norm")`. `gf.check(model)` names such a mistake in a
# `gf.Transformer` that has it.
#
# Somebody else's model is a different class, which `gf.check` does not take. `gf.import_module` first returns a
# `gf.Transformer` with copies of its weights, if the module has the names of a tutorial. Here is such a stranger:
# `nn.Transformer` with `batch_first`, and positions as several tutorials have them, in a
# [buffer](positions.py#a-table-that-is-not-learned).


# %% tags=["hide-input"]
class Stranger(nn.Module):
    def __init__(self, vocabulary, width, heads, exponent):
        super().__init__()
        self.src_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(vocabulary, width)})
        self.tgt_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(vocabulary, width)})
        i = torch.arange(0, width, 2)
        angles = torch.arange(50)[:, None] / 10000 ** (exponent * i / width)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.positional_encoding = nn.Module()
        self.positional_encoding.register_buffer("pos_embedding", table)
        self.transformer = nn.Transformer(width, heads, 2, 2, 4 * width, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(width, vocabulary)


def their_logits(model, source, target_input, causal=True):
    s, t = source.shape[1], target_input.shape[1]
    places = model.positional_encoding.pos_embedding
    x = model.src_tok_emb["embedding"](source) * math.sqrt(places.shape[1]) + places[:s]
    y = model.tgt_tok_emb["embedding"](target_input) * math.sqrt(places.shape[1]) + places[:t]
    future = torch.ones(t, t, dtype=torch.bool).triu(1) if causal else None  # for PyTorch, True means hidden
    return model.generator(model.transformer(x, y, tgt_mask=future))


# %%
def imported(stranger):
    return gf.import_module(stranger, pad_id=0, bos_id=1, eos_id=2)


torch.manual_seed(7)
theirs = Stranger(vocabulary=11, width=32, heads=4, exponent=1).eval()
ours = imported(theirs)
print(ours.config.positions, "positions,", ours.config.norm + "-norm,", ours.config.heads, "heads")
print("checks passed:", gf.check(ours).passed)

# %% [markdown]
# `gf.check` now examines these weights in *our* code. Whether *their* code computes the same is a question of numbers:
# give both the same ids and compare the logits. With the right mask they agree; if their code forgets the causal mask,
# they do not. A doubled exponent in the table of positions shows at once: the table differs from the paper's sinusoids,
# so it is imported as a learned table.

# %%
their_source, their_target = torch.randint(3, 11, (2, 9)), torch.randint(3, 11, (2, 7))
with torch.no_grad():
    logits = ours(their_source, their_target)
    right = distance(their_logits(theirs, their_source, their_target), logits)
    wrong = distance(their_logits(theirs, their_source, their_target, causal=False), logits)

doubled = imported(Stranger(vocabulary=11, width=32, heads=4, exponent=2))
print(f"logits differ by {right:.0e}; without the causal mask by {wrong:.0e}")
print("doubled exponent:", doubled.config.positions, "positions")

# %% tags=["hide-input", "check"]
assert right < 1e-5 < 0.01 < wrong
assert (ours.config.positions, doubled.config.positions) == ("interleaved", "learned")

# %% [markdown]
# If you have no code at all, only weights and pairs of sentences, `glassformer check RUN --pairs SOURCE TARGET` names
# the mistake with which a model was trained. And a model that you write yourself is checked step by step in
# [the last chapter](write_it_yourself.py).

# %% [markdown]
# ## In short
#
# - The encoder returns the memory: one vector for each position of the source, of shape $(B, S, d_{\text{model}})$ in
#   all.
# - The ids, of shape $(B, S)$, become embeddings with positions added; then each layer adds twice to the stream, first
#   by self-attention and then by feed-forward.
# - The shape stays $(B, S, d_{\text{model}})$ from layer to layer; inside a layer, the heads split the width, and the
#   feed-forward network widens it to $d_{\text{ff}}$ for a moment.
#
# ## Exercises
#
# **1.** *Easy · 4 min.* How many numbers does one encoder layer learn? First add them up from the shapes printed under
# "A layer's weights" (do not forget the biases), then check with the library.
#
# <details><summary>Hint</summary>
#
# Four projections with a bias, two matrices of the network with a bias, and two norms with gain and bias.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of numbers in one layer
print(verdict("encoder.1", answer))

# %% tags=["hide-cell"]
projections = 4 * (512 * 512 + 512)
network_size = 512 * 2048 + 2048 + 2048 * 512 + 512
norms = 2 * (512 + 512)
total = projections + network_size + norms
assert total == sum(weight.numel() for weight in library_layer.parameters()) == 3_152_384
assert verdict("encoder.1", total) == "right"
total

# %% [markdown]
# **2.** *Medium · 5 min.* Replace the last three tokens of the first sentence by padding (id 0). Which positions of the
# memory change, and what are the weights in the last three columns?
#
# <details><summary>Hint</summary>
#
# Record the weights with `gf.record`. Who may look at padding, and who misses the words that are gone?
#
# </details>

# %% tags=["hide-cell"]
shorter = source.clone()
shorter[0, 7:] = 0
with gf.record(model, f"{point}.weights") as padded_trace:
    padded_memory = model.encode(shorter)

assert bool((padded_trace[f"{point}.weights"][0, :, :, 7:] == 0).all())
assert not torch.allclose(padded_memory[0, :7], memory[0, :7])  # they miss the last three
torch.testing.assert_close(padded_memory[1:], memory[1:])  # other sentences stay the same
# The padding itself does not matter: a sentence of 7 tokens on its own gives the same memory.
torch.testing.assert_close(padded_memory[0, :7], model.encode(source[:1, :7])[0])

# %% [markdown]
# **3.** *Medium · 6 min.* Without positions, the encoder does not see order: if you reverse the source, the memory is
# reversed. Show this by replacing `source.positions` with zeros (use `gf.intervene`), and show that it does not hold
# with positions.
#
# <details><summary>Hint</summary>
#
# `gf.intervene(model, {"source.positions": torch.zeros_like})` replaces the positions; `flip(1)` reverses a sentence.
#
# </details>

# %% tags=["hide-cell"]
backwards = source.flip(1)
with gf.intervene(model, {"source.positions": torch.zeros_like}):
    torch.testing.assert_close(model.encode(backwards), model.encode(source).flip(1))

assert distance(model.encode(backwards), memory.flip(1)) > 0.1

# %% [markdown]
# **4.** *Medium · 5 min.* In pre-norm, the stream after two layers is the stream at the start plus four shares. Show
# that `source.input` and the recorded `output` of the four sub-layers sum to `encoder.layers.1.feed_forward.added`.
#
# <details><summary>Hint</summary>
#
# The trace has all the names. Each layer adds the output of its attention, and then that of its network.
#
# </details>

# %% tags=["hide-cell"]
total = trace["source.input"]
for number in (0, 1):
    total = total + trace[f"encoder.layers.{number}.self_attention.output"]
    total = total + trace[f"encoder.layers.{number}.feed_forward.output"]

torch.testing.assert_close(total, trace["encoder.layers.1.feed_forward.added"])

# %% [markdown]
# **5.** *Medium · 4 min · on the stage.* Does a head of the encoder look from “it” at “tired”? [Find the head on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&task=look).
#
# <details><summary>Hint</summary>
#
# Click the encoder's attention. Choose a head by its small picture, and click “it” in the source. To open the other
# layer, click its edge.
#
# </details>
#
# ## Next
#
# [Vectors in the plane](geometry.py) draws what you have computed: where words lie, and how they move from layer to
# layer. Then [the decoder](decoder.py) reads the memory and writes the target word by word. The chapter on
# [training](training.py) trains a model on this task until the model solves it, and [decoding](decoding.py) shows
# how a trained model writes its output.
