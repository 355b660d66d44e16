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
# # Masks
#
# This chapter explains padding, look-ahead, and why a masked score becomes −∞. (Sections such as §3.2.3 refer to the
# paper, *Attention Is All You Need*, 2017.) It builds on [attention](attention.py). There, each position (a *query*)
# scores every position (a *key*), a softmax turns these scores into *weights*, and the weights average the *values*.

# %% [markdown]
# ## The question
#
# Attention lets every position look at every position. In two cases, some positions must be hidden:
#
# - **Sentences have different lengths, but a batch is a rectangle.** Short sentences are filled up with `<pad>`, a
#   token that means nothing. No position should look at it.
# - **The decoder is trained to predict the next word, and the next word is in its input.** (The *encoder* is the half
#   of the model that reads, the *decoder* the half that writes the translation.) During training, the decoder reads the
#   whole target at once. A position that can look at the word it has to predict copies that word and learns nothing
#   else.
#
# How do you keep a position from looking at a hidden position, so that the hidden position has *no* influence, and not
# merely little?

# %% [markdown]
# ## The intuition
#
# A mask is a table of permissions. Each row is a query (which looks), each column a key (which is looked at), and each
# cell says whether this query may look at this key. In this library and this book, **`True` means "may attend"**.
# The picture shows the three tables of this chapter, for the target `<bos> hello world <eos>` and one `<pad>`. Rows look,
# columns are looked at, and filled cells are allowed. The padding mask takes away a column, the look-ahead mask takes
# away the upper triangle, and the combined mask takes away both.
#
# Why may a position look at itself? In training, the decoder reads `<bos> hello world`, and the three answers are `hello
# world <eos>`. The word that a position has to predict is the one *after* the word that it reads.

# %% tags=["hide-input"]
import math

import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.watch import pictures

words = ["<pad>", "<bos>", "<eos>", "hello", "world", "big"]  # id 0 is padding
target = torch.tensor([[1, 3, 4, 2, 0]])  # <bos> hello world <eos> <pad>
tokens = [words[id] for id in target[0].tolist()]
real, earlier = (target != 0).expand(5, 5), torch.ones(5, 5, dtype=torch.bool).tril()


def corners(x, y, half=0.44):
    """Return the corners of a cell."""
    return [x - half, x + half, x + half, x - half], [y - half, y - half, y + half, y + half]


figure, axes = pictures.canvas(7.4, 3.6, ncols=3)
for (title, mask), place in zip(
    [("padding", real), ("look-ahead", earlier), ("both", real & earlier)], axes, strict=True
):
    for row in range(5):
        for column in range(5):
            allowed = bool(mask[row, column])
            colour = pictures.BLUE if allowed else pictures.GREY
            place.fill(*corners(column, row), color=colour, alpha=0.75 if allowed else 0.12, linewidth=0)
    place.set(xlim=(-0.5, 4.5), ylim=(4.5, -0.5), aspect="equal", title=title, xlabel="key")
    place.set_xticks(range(5), tokens, rotation=60)
    place.set_yticks(range(5), tokens if title == "padding" else [""] * 5)
    place.tick_params(length=0)
    place.spines[:].set_visible(False)

axes[0].set_ylabel("query")
pictures.picture(
    figure,
    "Three tables of five queries times five keys. Padding: every column is allowed except <pad>. Look-ahead: the "
    "lower triangle is allowed. Both: the lower triangle without the <pad> column.",
)

# %% [markdown]
# A hidden key must not take part in the vote at all. Setting its score to 0 is not enough: 0 is a score like any other,
# and often a good one. The only score that loses to every other score is −∞.

# %% [markdown]
# ## The mathematics
#
# Let $s_{ij}$ be the score of query $i$ for key $j$. Where query $i$ may not attend to key $j$, replace $s_{ij}$ by
# $-\infty$. Then take the softmax as always: replace each score by $e$ (about 2.718) to the power of the score, and divide
# it by the sum $\sum$ of these powers over all keys. This gives $\alpha_{ij}$, the weight of key $j$ for query $i$
# (§3.2.1 and §3.2.3):
#
# $$\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{k} e^{s_{ik}}}$$
#
# Since $e^{-\infty} = 0$, a masked key adds nothing to the sum, and its own weight is exactly 0. The other
# weights are what they would be if the masked keys did not exist.
#
# There are two reasons to mask, so there are two masks, and they can be joined:
#
# | mask | query $i$ may look at key $j$ if | where it is used |
# |---|---|---|
# | padding | token $j$ is not `<pad>` | encoder; cross-attention, where the decoder looks at the source (the *source's* padding) |
# | look-ahead, or *causal* | $j \le i$ | the decoder's self-attention; enough if all padding is at the end |
# | both | token $j$ is not `<pad>`, and $j \le i$ | the decoder's self-attention in this library: right wherever the padding is |
#
# Padding at the *end* needs no mask of its own in the decoder: it comes later than every word, so the look-ahead mask
# already hides it from them. (The rows of the padding itself change, but the loss leaves these rows out.) Padding at the
# *front* does need one, because every word comes after it. Programs that continue texts with a model like GPT pad there,
# so that all texts of a batch end at the same position.
#
# If a row allows nothing, the formula gives 0/0. The library defines such a row as all zeros.

# %% [markdown]
# ## Line by line
#
# ### Why batches need padding
#
# Take the ids of two sentences, a long one and a short one. A tensor has to be a rectangle, so PyTorch refuses this:

# %%
sentences = [[3, 5, 4, 2], [3, 4, 2]]  # hello big world <eos>; hello world <eos>

try:
    torch.tensor(sentences)
except ValueError as error:
    print(error)

# %% [markdown]
# So fill up the short sentence with id 0. The batch `source` then has the shape (B, S): B = 2 sentences, S = 4
# positions.

# %%
pad_id = 0
longest = max(map(len, sentences))
source = torch.tensor([ids + [pad_id] * (longest - len(ids)) for ids in sentences])
source

# %% [markdown]
# ### The padding mask
#
# The padding mask says of each token whether it is real. It gets two extra axes of size 1, because scores have the
# shape (B, H, T, S): for each sentence and each of H heads, T queries times S keys. The axes of size 1 *broadcast*: the
# same answer holds for every head and every query.

# %%
padding = (source != pad_id)[:, None, None, :]  # (B, S) -> (B, 1, 1, S)
print(padding.shape)
padding

# %% [markdown]
# Here are random scores for the batch, with 8 heads. Where the mask says `False`, they become −∞. Head 0 of the second
# sentence shows it: the last column, its `<pad>`, is hidden from every query. (Some tutorials keep the mask as (B, 1, S)
# and add the axis of the heads later.)

# %%
torch.manual_seed(1)
scores = torch.randn(2, 8, 4, 4)  # 8 heads
hidden = scores.masked_fill(~padding, -math.inf)  # ~ is "not"
hidden[1, 0]

# %% tags=["hide-input", "check"]
assert padding.shape == (2, 1, 1, 4)
assert torch.equal(hidden.isinf(), (source == pad_id)[:, None, None, :].expand(2, 8, 4, 4))

# %% [markdown]
# ### The look-ahead mask
#
# Now take the target of the picture, and leave its `<pad>` aside for now. Position 0 may look only at itself, position 1
# at positions 0 and 1, and so on. This makes a lower triangle of `True`, which `tril` ("triangle, lower") cuts out.

# %%
target = torch.tensor([[1, 3, 4, 2, 0]])  # <bos> hello world <eos> <pad>
length = target.shape[1]
look_ahead = torch.ones(length, length, dtype=torch.bool).tril()
look_ahead[:4, :4].int()  # 1 = may attend: the four real tokens

# %% [markdown]
# Read it row by row. The row of `hello` says `1 1 0 0`: when the model has read `<bos> hello` and is about to say
# "world", it sees `<bos>` and `hello`. (After `<eos>` there is nothing to predict, so nobody needs the last row, that of
# `<eos>`.)
#
# ### Both
#
# A key must pass both tests, so *and*, `&`, joins the masks. Their shapes broadcast: (1, 1, 1, 5) and (5, 5) give (1,
# 1, 5, 5).

# %%
target_padding = (target != pad_id)[:, None, None, :]
both = target_padding & look_ahead
print(both.shape)
both[0, 0].int()

# %% tags=["hide-input", "check"]
assert torch.equal(look_ahead, earlier) and torch.equal(both[0, 0], real & earlier)  # as in the picture

# %% [markdown]
# ### From scores to weights
#
# Here are made-up scores for one head, five queries and five keys. First the masked scores become −∞, then comes the
# softmax, row by row.

# %%
torch.manual_seed(1)
scores = torch.randn(5, 5, dtype=torch.float64)
masked = scores.masked_fill(~both[0, 0], -math.inf)
masked

# %%
exponentials = masked.exp()  # e^−∞ = 0
weights = exponentials / exponentials.sum(-1, keepdim=True)
weights

# %% [markdown]
# Each row sums to 1, and the masked weights are not small but exactly 0. The first row has only one key left, so that
# key's weight is 1.

# %%
weights.sum(-1), weights[~both[0, 0]]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(weights.sum(-1), torch.ones(5, dtype=torch.float64))
assert (weights[~both[0, 0]] == 0).all()
# As if the other keys did not exist:
torch.testing.assert_close(weights[2, :3], scores[2, :3].softmax(-1))

# %% [markdown]
# ## The same from the library
#
# [model/masks.py](../src/glassformer/model/masks.py) is the only place that makes masks: three functions of one line
# each. [`attention_weights`](../src/glassformer/model/attention.py#attention_weights) applies the mask and takes the
# softmax.

# %%
from glassformer.model.attention import attention_weights
from glassformer.model.masks import causal_mask, padding_mask, target_mask

target_mask(target, pad_id)[0, 0].int()

# %% tags=["hide-input", "check"]
assert torch.equal(padding_mask(source, pad_id), padding)
assert torch.equal(causal_mask(5)[0, 0], look_ahead)
assert torch.equal(target_mask(target, pad_id), both)
torch.testing.assert_close(attention_weights(scores, both[0, 0]), weights)

# %% [markdown]
# ### Which mask goes where
#
# A model records its weights by name ([`gf.record`](../src/glassformer/model/taps.py#record)). For each of the three
# kinds of attention, check where the weights are exactly 0. (The model is untrained: masks do not depend on what a
# model has learned.) Here is how many keys each query may look at, in head 0 of layer 0 of the second sentence:

# %%
torch.manual_seed(1)
model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).double().eval()
# The second source has two <pad>, the second target has one.
source = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
target_input = torch.tensor([[1, 4, 5, 6], [1, 8, 9, 0]])

with torch.no_grad(), gf.record(model, "*.weights") as trace:
    logits = model(source, target_input)

for name, weights in trace.items():
    if ".0." in name:
        # of the second sentence, in head 0
        allowed = (weights[1, 0] > 0).sum(-1).tolist()
        print(f"{name:<40} keys: {weights.shape[-1]}, allowed for each query: {allowed}")

# %% tags=["hide-input", "check"]
name = "encoder.layers.0.self_attention.weights"
assert torch.equal(trace[name] > 0, padding_mask(source, 0).expand(2, 8, 5, 5))
name = "decoder.layers.0.self_attention.weights"
assert torch.equal(trace[name] > 0, target_mask(target_input, 0).expand(2, 8, 4, 4))
name = "decoder.layers.0.cross_attention.weights"
assert torch.equal(trace[name] > 0, padding_mask(source, 0).expand(2, 8, 4, 5))

# %% [markdown]
# In cross-attention the queries come from the decoder and the keys from the encoder, so the mask there hides the
# **source's** padding. It needs no look-ahead mask: the whole source is known from the start. You can look at all three
# kinds in a trained model: [the mask of the decoder's
# self-attention](../runs/demo/explorer.html#text=The+cat+slept+on+the+rug.&row=3&zoom=%7B%22box%22:%22decoder.layers.0.self_attention%22,%22key%22:null%7D)
# has a cross for each later word.
#
# ### `True` means the opposite elsewhere
#
# This section is for users of PyTorch's own attention: its functions have both conventions.
#
# <details>
# <summary>The two conventions, and what happens with the wrong one</summary>
#
# In `scaled_dot_product_attention`, `True` means "may attend", as it does here. In `torch.nn.MultiheadAttention`, `True`
# means "may **not** attend", both in `attn_mask` and in `key_padding_mask`. With the wrong convention nothing crashes:
# each position looks at the future and the padding, and at nothing else. Only a position that has neither, such as the
# last one of a sentence without padding, gives itself away: its row is NaN ("not a number").
#
# The folded cell prints the row of `hello` under both conventions. It should have weight on its first two keys. With the
# mask upside down, it has weight on the last three. The row of the padding position, which was allowed all keys but
# itself, now has only itself.
#
# </details>

# %% tags=["hide-cell"]
torch.manual_seed(1)
theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
x = torch.randn(1, 5, 8, dtype=torch.float64)
may_attend = both[0, 0]
_, right = theirs(x, x, x, attn_mask=~may_attend)
_, upside_down = theirs(x, x, x, attn_mask=may_attend)

print("right:       ", [round(weight, 4) for weight in right[0, 1].tolist()])
print("upside down: ", [round(weight, 4) for weight in upside_down[0, 1].tolist()])

# %% tags=["hide-input", "check"]
assert torch.equal(right[0] > 0, may_attend)
assert torch.equal(upside_down[0] > 0, ~may_attend)
# With the same mask, our function and PyTorch's agree.
query, key, value = torch.randn(3, 1, 1, 5, 4, dtype=torch.float64)
ours = gf.attention(query, key, value, both).weighted_values
fused = F.scaled_dot_product_attention(query, key, value, attn_mask=both)
torch.testing.assert_close(ours, fused)

# %% [markdown]
# ## Why −∞ and no other number
#
# Tutorials hide a key in four different ways. Let us hide the last two of four keys with these scores:

# %%
row = torch.tensor([2.0, -1.0, 3.0, 0.5])
allowed = torch.tensor([True, True, False, False])

ways = {
    "−∞ before the softmax": row.masked_fill(~allowed, -math.inf).softmax(-1),
    "0 before the softmax": row.masked_fill(~allowed, 0.0).softmax(-1),
    "−10000 before the softmax": row.masked_fill(~allowed, -10000.0).softmax(-1),
    "0 after the softmax": row.softmax(-1).masked_fill(~allowed, 0.0),
}
for name, weights in ways.items():
    rounded = [round(weight, 4) for weight in weights.tolist()]
    print(f"{name:<26} {rounded}  sum {weights.sum():.4f}")

# %% [markdown]
# ### 0 is a score like any other
#
# $e^0 = 1$. The two hidden keys get the weight $1 / (e^2 + e^{-1} + 1 + 1)$ each, almost three times as much as the second
# real key, whose score is −1.

# %%
filled = ways["0 before the softmax"]
round(filled[2:].sum().item(), 4)  # the share that goes to hidden keys

# %% tags=["hide-input", "check"]
total = math.exp(2) + math.exp(-1) + 1 + 1
expected = torch.tensor([math.exp(2), math.exp(-1), 1, 1]) / total
torch.testing.assert_close(filled, expected)

# %% [markdown]
# ### −10000 is finite
#
# A large negative number is not −∞: it makes a weight tiny, not 0. In the table above, −10000 does as well as −∞, because
# the tiny weight is rounded to 0. So such a mask works in every row with a real score, which is far above −10000 in a
# healthy model.
#
# It fails in **a row in which everything is hidden**. All scores of the row are then −10000, and softmax looks only at
# differences: it spreads the weight evenly over exactly the keys that had to be hidden. Such rows exist: the queries of an
# empty sentence, or `<pad>` at the front of a target (it sees only itself and earlier `<pad>`). In programs that also
# forbid `<pad>` to look at anything, each row of a `<pad>` is one.
#
# With −∞ the softmax of such a row divides 0 by 0 and gives NaN ("not a number"). NaN spreads: in the next layer the row is
# a key and a value of other rows, and even with the weight 0 it makes them NaN, because 0 · NaN is NaN. The library
# defines the row as zeros, by a second `masked_fill` after the softmax:

# %%
nothing = torch.tensor([False, False, False, False])

print("−10000: ", row.masked_fill(~nothing, -10000.0).softmax(-1).tolist())
infinite = row.masked_fill(~nothing, -math.inf).softmax(-1)
print("−∞:     ", infinite.tolist())
print("library:", infinite.masked_fill(~nothing, 0.0).tolist())

# %% [markdown]
# <details>
# <summary>How far above −10000 must a real score be?</summary>
#
# In float32 the smallest positive number is about $1.4 \cdot 10^{-45} = e^{-103.3}$, and anything below half of it
# becomes 0. So a hidden key's weight is exactly 0 only while some real score in the row is more than about 104 above
# −10000. The folded cell measures this, for one real key and one hidden key.
#
# </details>

# %% tags=["hide-cell"]
for score in (0.0, -9000.0, -9880.0, -9900.0, -9950.0, -10000.0):
    hidden = torch.tensor([score, -10000.0]).softmax(-1)[1].item()
    print(f"the real score is {score:>8}: the hidden key gets {hidden:.3g}")

real = torch.arange(-10000.0, -9800.0, 0.25)
hidden = torch.stack([real, torch.full_like(real, -10000.0)], -1).softmax(-1)[:, 1]
print("exactly 0 from a real score of", real[hidden == 0].min().item(), "on")

# %% tags=["hide-input", "check"]
# Processors differ in the tiniest numbers:
assert -9915 < real[hidden == 0].min() < -9890

# %% [markdown]
# <details>
# <summary>−1e9, and numbers of 16 bits</summary>
#
# The commonest number of all is −1e9 ($-10^9$). In float32 it works like −10000, with the same exception. In float16,
# which GPUs compute faster, it does not exist: the smallest number there is −65504 (bfloat16 has the range of float32, and
# holds it). PyTorch refuses, as the folded cell shows, where other code may turn it silently into −∞.
#
# </details>

# %% tags=["hide-cell"]
half = row.half()
try:
    half.masked_fill(~allowed, -1e9)
except RuntimeError as error:
    print("−1e9 in float16:", error)

print("−∞ in float16:  ", half.masked_fill(~allowed, -math.inf).softmax(-1).tolist())

# %% tags=["hide-input", "check"]
numbers = {"dtype": torch.float64, "requires_grad": True}
query, key, value = (torch.randn(1, 4, 3, **numbers) for _ in range(3))
mask = torch.ones(4, 4, dtype=torch.bool).tril()
mask[1] = False  # the second query may not look at anything
output, weights = gf.attention(query, key, value, mask)
output.sum().backward()
fused = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
assert (weights[0, 1] == 0).all()
assert (output[0, 1] == 0).all()
assert all(one.grad.isfinite().all() for one in (query, key, value))
assert (query.grad[0, 1] == 0).all()
torch.testing.assert_close(fused, output)  # PyTorch's own kernel: zeros as well
assert torch.equal(infinite.masked_fill(~nothing, 0.0), attention_weights(row, nothing))


def two_layers(x, mask, weights_of=attention_weights):
    for _ in range(2):
        x = x + weights_of(x @ x.mT, mask) @ x
    return x


def infinite_alone(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


x = torch.randn(5, 4, dtype=torch.float64)
at_end, at_front = torch.tensor([True, True, True, False, False]), torch.tensor([False, False, True, True, True])
one, other = two_layers(x, look_ahead), two_layers(x, look_ahead & at_end)
torch.testing.assert_close(one[:3], other[:3])  # real rows
assert not torch.allclose(one[3:], other[3:])  # rows of padding
assert not torch.allclose(two_layers(x, look_ahead)[2:], two_layers(x, look_ahead & at_front)[2:])
for mask in (look_ahead & at_front, look_ahead & at_end[:, None]):  # the padding at the front; rows hidden
    assert two_layers(x, mask, infinite_alone).isnan().any(-1).tolist().count(True) >= 5
    assert two_layers(x, mask).isfinite().all()

# %% [markdown]
# ### After the softmax is too late
#
# In the last line of the table above the hidden weights are 0, but the row sums to 0.26, because the hidden scores were
# in the denominator. The average comes out too small, by a factor that depends on the hidden keys. So information about
# them leaks through the sum.

# %%
late = ways["0 after the softmax"]
other = torch.tensor([2.0, -1.0, -3.0, 0.5])  # one hidden score is different
other_late = other.softmax(-1).masked_fill(~allowed, 0.0)
print([round(weight, 4) for weight in late.tolist()])
print([round(weight, 4) for weight in other_late.tolist()])

# %% tags=["hide-input", "check"]
assert late.sum() < 0.3 < 0.7 < other_late.sum()
assert torch.equal(
    attention_weights(row, allowed), attention_weights(other, allowed)
)  # with −∞, hidden scores do not matter

# %% [markdown]
# ## Nothing leaks: the proof on a model
#
# If the masks are right, **a later token does not change earlier logits**: not by a little, but not at all. This holds
# for any model, trained or not. (*Logits* are the scores that the model gives to the possible
# next tokens.) Change token 2 of the target and compare.

# %%
changed_input = target_input[:1].clone()
changed_input[0, 2] = 9
with torch.no_grad():
    before = model(source[:1], target_input[:1])
    after = model(source[:1], changed_input)

difference = (before - after).abs().amax(-1)[0]  # (T,): one number per position
print(difference.tolist())

# %% tags=["hide-input", "check"]
assert (difference[:2] == 0).all()
assert (difference[2:] > 0).all()

# %% [markdown]
# <details>
# <summary>Two more proofs: the gradient, and padding</summary>
#
# **The gradient says the same.** Let $L_i$ be the logits at position $i$ and $x_j$ the decoder's input vector
# (embedding plus position) at position $j$. The *gradient* $\partial L_i / \partial x_j$ says how fast $L_i$ changes
# when $x_j$ does. The picture shows its size for every pair: each row is a position that predicts, and each column a
# position that is read. Everything above the diagonal is 0, so the future has no influence at all. Everything on the
# diagonal or below it is positive.
#
# **Padding changes nothing at real positions.** The second sentence of the batch had two `<pad>` in its source and
# one in its target. Alone and without padding, it gets the same logits. (The order of the sums may change, and with it
# the last digits; float64 keeps the difference below $10^{-12}$.)
#
# </details>

# %% tags=["hide-cell"]
ids = torch.tensor([[1, 4, 5, 6, 7, 8]])
with gf.record(model, "target.input") as trace:
    logits = model(source[:1], ids)

rows = []
for i in range(6):
    size, vectors = logits[0, i].square().sum(), trace["target.input"]
    (gradient,) = torch.autograd.grad(size, vectors, retain_graph=True)
    rows.append(gradient[0].norm(dim=-1))

sizes = torch.stack(rows)  # (T, T)
assert (sizes.triu(1) == 0).all()  # exactly 0 above the diagonal
assert (sizes.tril() > 0)[look_ahead.new_ones(6, 6).tril()].all()
pictures.heat_map(
    sizes,
    [f"logits {i}" for i in range(6)],
    [f"input {j}" for j in range(6)],
    alt="A table of gradient sizes, logits by inputs: positive on and below the diagonal, exactly 0 above it.",
    numbers=".2g",
)

# %% tags=["hide-cell"]
with torch.no_grad():
    together = model(source, target_input)[1, :3]
    alone = model(torch.tensor([[8, 9, 2]]), torch.tensor([[1, 8, 9]]))[0]

torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)
(together - alone).abs().max().item()

# %% [markdown]
# The values *at* a padded position are computed as well (a rectangle is a rectangle), but no other position looks at
# them, and the [loss](output.py) leaves them out.
#
# ### What the mask buys: all positions at once
#
# To write a sentence, a decoder goes step by step, because each step needs the word before it. To *train*, it does not
# have to. The target is known, and no position sees what comes after it. So one pass over the whole target gives each
# position the same logits as a separate pass over the words up to that position. One pass instead of T: this is what
# makes training parallel.

# %%
with torch.no_grad():
    at_once = model(source[:1], target_input[:1])[0]
    parts = [target_input[:1, : end + 1] for end in range(4)]
    one_by_one = [model(source[:1], part)[0, -1] for part in parts]

largest = (at_once - torch.stack(one_by_one)).abs().max().item()
print(f"logits: {tuple(at_once.shape)} (T, V), largest difference {largest:.0e}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(at_once, torch.stack(one_by_one), rtol=0, atol=1e-12)

# %% [markdown]
# ## What goes wrong
#
# All these mistakes run without an error and give the right shapes. The errata show each in a few lines: [masked to
# 0](errata.py#masked-to-zero), [zero is not minus infinity](errata.py#zero-is-not-minus-infinity), [minus ten
# thousand](errata.py#minus-ten-thousand), [no causal mask](errata.py#no-causal-mask), [the target's padding in
# cross-attention](errata.py#targets-padding-in-cross-attention).
#
# [`plant`](../src/glassformer/watch/inspection/mistakes.py#plant) makes a real model commit such a mistake for a while. We
# take the demo model, which was *trained* with the right masks, so only the reading is wrong, and measure its loss on 100
# test sentences. (The loss is −log of the probability that the model gives to the right next token, the mean per token.
# It is smaller than the training loss of [the tour](tour.py), where label smoothing spreads a tenth of the answer over all
# words.) Then it translates sentences, one at a time. The library's searches use a [cache](decoding.py#the-cache), which computes each position once,
# before the later tokens exist, and so hides a mistake that looks ahead. Here `decoding` lets the same search do without the
# cache: each step recomputes everything written so far. The functions that measure are folded.

# %% tags=["hide-input"]
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import english_french
from glassformer.decoding.greedy_search import greedy
from glassformer.watch.inspection import MISTAKES, Changes, decoding, plant

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
tokenizer = translator.bundle.source_tokenizer


def translated(sentence, mistakes):
    """Return the greedy translation by the demo model under these mistakes."""
    ids = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
    changes = Changes(mistakes=mistakes)
    with torch.no_grad(), decoding(translator.model, ids, changes) as step:
        [found] = greedy(step, max_lengths=[40])
    return translator.bundle.target_tokenizer.decode(found.tokens)


def loss_per_token(pairs):
    """Return −log p of the references per token, with all sentences in batches."""
    scored = translator.score(pairs)
    return -sum(one.log_prob for one in scored) / sum(len(one.tokens) for one in scored)


def neighbours_matter(pairs):
    """Return the largest change in a sentence's log p when it is scored alone."""
    together = translator.score(pairs)
    alone = [translator.score([pair])[0] for pair in pairs]
    pairs = zip(alone, together, strict=True)
    return max(abs(one.log_prob - other.log_prob) for one, other in pairs)


# %%
test = english_french(train=1).splits["test"]  # the training sentences are not needed here
pairs = [(example.source, example.target) for example in test[:100]]
leaks = [("mask_zero",), ("mask_after_softmax",), ("no_causal_mask",)]
found = {}
print(f"{'mistake':<42}  loss  neighbours  right of 30")
for mistakes in [(), *leaks, ("target_padding_mask",)]:
    with plant(translator.model, *mistakes):
        found[mistakes] = loss_per_token(pairs), neighbours_matter(pairs[:30])
    loss, neighbours = found[mistakes]
    right = sum(translated(source, mistakes) == target for source, target in pairs[:30])
    title = MISTAKES[mistakes[0]].title if mistakes else "none"
    print(f"{title:<42}  {loss:4.2f}  {neighbours:10.2g}  {right:11}")

sentence = "The black cat sat on the couch."
print("the target's padding:", translated(sentence, ("target_padding_mask",)))

# %% tags=["hide-input", "check"]
assert all(found[one][0] > 3 * found[()][0] for one in leaks)
assert found[("mask_zero",)][1] > 1 > 1e-3 > found[()][1]

# %% [markdown]
# Read the table column by column.
#
# - The **loss** jumps with the first three mistakes, because each position now sees keys that it never saw in training.
#   The column *neighbours* says how much a sentence's log p depends on the other sentences of its batch. With the right
#   masks, the difference is only rounding.
# - The **translations** suffer far less from these three! In a search, the last position chooses the next word, and
#   nothing comes after it; and a sentence on its own has no padding. **A good translation does not prove that the mask is
#   right.**
# - With the **target's padding** in cross-attention, it is the other way round. The loss moves far less: whole references
#   are about as long as their sources, so the wrong mask hides little. In the search, cross-attention sees as many keys
#   as the target has tokens. At first this is a single key, "The", and the model guesses the plural *Les*. Then it sees
#   "The black" but not yet "cat", and writes *noirs* ("black") where the noun belongs.
#
# `gf.check` inspects each attention, changes later tokens, adds padding, and compares with an independent
# implementation. It names each of these mistakes:

# %%
guesses = {}
for mistake in [*(name for (name,) in leaks), "target_padding_mask"]:
    with plant(translator.model, mistake):
        report = gf.check(translator)
    failed = {one.name: one for one in report.failures}
    print(f"{mistake}: failed {', '.join(failed)}")
    guesses[mistake] = failed["reference"].likely
    print(f"    likely: {guesses[mistake][0]}")

# %% tags=["hide-input", "check"]
assert guesses == {mistake: (MISTAKES[mistake].title,) for mistake in guesses}
assert gf.check(translator).passed

# %% [markdown]
# ### Trained with the mistake
#
# It is worse when a model *learns* with a leak: then the loss looks wonderful. To show that it is too good, we need a task
# whose lowest honest loss is known, and copying with errors is such a task. The source is six random symbols (of eight).
# The target is a copy in which about half of the symbols are replaced by random ones, which nobody can predict. So the loss
# of an honest model cannot fall below the uncertainty (the *entropy*) of these symbols, and a model with a lower loss is
# reading the answer. The most probable symbol is always the source's: an honest model learns to copy.

# %%
heard_right = 1 / 2 + 1 / 2 / 8  # the probability that a target symbol is the source's
heard_other = 1 / 2 / 8  # that it is one particular other symbol
entropy = -heard_right * math.log(heard_right) - 7 * heard_other * math.log(heard_other)
limit = 6 * entropy / 7  # per token: the seventh, <eos>, is certain
print(f"the limit of an honest model is {limit:.3f}")


# %%
def draw():
    """Return source (B, 7), target input (B, 7) and the target to predict (B, 7)."""
    symbols, others = torch.randint(3, 11, (2, 32, 6))
    heard = torch.where(torch.rand(32, 6) < 0.5, others, symbols)
    source, target = F.pad(symbols, (0, 1), value=2), F.pad(heard, (0, 1), value=2)
    return source, F.pad(heard, (1, 0), value=1), target


# %%
def learn(mistakes, steps=300):
    """Return a small model that was trained under these mistakes, and its losses."""
    torch.manual_seed(1)
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "dropout": 0.0}
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    model = gf.Transformer(gf.ModelConfig(vocab_size=11, **sizes, **layers))
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    with plant(model, *mistakes):
        for _ in range(steps):
            source, target_input, target = draw()
            logits = model(source, target_input).flatten(0, 1)
            loss = F.cross_entropy(logits, target.flatten())
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
    return model.eval(), losses


# %% tags=["hide-input"]
def copied(model, mistakes):
    """Return how many of 32 sources a model copies, by greedy search under the same mistakes."""
    right = 0
    for ids in draw()[0]:
        changes = Changes(mistakes=mistakes)
        with torch.no_grad(), decoding(model, ids[None], changes) as step:
            [found] = greedy(step, max_lengths=[12])
        right += list(found.tokens) == ids.tolist()
    return right


# %%
kinds = {
    "right": (),
    "no causal mask": ("no_causal_mask",),
    "masked scores set to 0": ("mask_zero",),
    "masked after the softmax": ("mask_after_softmax",),
}
results = {}
for name, mistakes in kinds.items():
    learned, losses = learn(mistakes)
    results[name] = losses, copied(learned, mistakes)
    right = results[name][1]
    loss = sum(losses[-50:]) / 50
    print(f"{name:<26} loss {loss:.3f}   copies the source: {right} of 32")

# %% [markdown]
# Why do the models with a leak copy no source? In training, each position could read its answer in the target, and they
# learned to take it from there. While they write on their own, this answer is not there yet. In the picture, the red horizontal line is the best that an honest model can reach. Every curve below it belongs to a
# model that has read the answer.

# %% tags=["hide-input"]
smooth = {}
for name, (losses, _) in results.items():
    tens = torch.tensor(losses).view(-1, 10).mean(1)
    smooth[name] = (range(5, len(losses), 10), tens)

smooth["limit of an honest model"] = ([0, len(losses)], [limit, limit])
pictures.curves(
    smooth,
    alt="Training losses: the rightly masked model comes down to the limit of an honest model and stays there; "
    "the three with a leak fall far below it.",
    x_label="training step",
    y_label="loss per token",
)

# %% tags=["hide-input", "check"]
mean = {name: sum(losses[-50:]) / 50 for name, (losses, _) in results.items()}
wrong = [name for name in results if name != "right"]
assert mean["right"] > limit - 0.05 > limit - 0.3 > max(mean[name] for name in wrong)
assert results["right"][1] > 25 > 5 > max(results[name][1] for name in wrong)

# %% [markdown]
# The honest model has the worst loss, and it is the only one that has learned the task. You can make the same mistakes
# in your browser: [the demo with the mistake "No causal
# mask"](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&mistakes=%5B%22no_causal_mask%22%5D&sheet=true&panel=changes).
#
# ### What do many believe?
#
# *"The look-ahead mask is needed only in training: while a model translates, the later words do not exist yet."* That is
# true of the newest position, but not of the earlier ones. Without a cache, each step computes the earlier positions again,
# and without the mask they look at the words written since. This changes their numbers, though seldom the most probable
# word. And to score a finished translation, the model reads all of it at once, as in training: see the loss of "no causal
# mask" in the table.

# %% [markdown]
# ## In short
#
# - To hide a position, replace its score by −∞ before the softmax: its weight is then exactly 0, and the other weights
#   are what they would be without it.
# - The padding mask hides `<pad>`, the look-ahead mask hides later positions, and with both the decoder's self-attention
#   is right wherever the padding is.
# - With the look-ahead mask no position sees the token that it has to predict, so all positions of a target can be
#   trained at once.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* How many of the 25 cells of `both` are allowed? Count first, then compute. And how many are
# allowed in a look-ahead mask of length $T$ without padding?
#
# <details><summary>Hint</summary>
#
# Count row by row: in each row, the look-ahead mask allows one cell more than in the row above, and padding takes the
# last column away.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of allowed cells of both
print(verdict("masks.1", answer))

# %% tags=["hide-cell"]
assert both.sum() == 1 + 2 + 3 + 4 + 4
assert verdict("masks.1", both.sum()) == "right"
assert all(causal_mask(T).sum() == T * (T + 1) // 2 for T in range(1, 20))

# %% [markdown]
# **2.** *Medium · 4 min.* In some models, a position may look back at most two positions (a *window*): position $i$
# sees $i$, $i - 1$ and $i - 2$. Make this mask for length 6 from two calls of `tril`.
#
# <details><summary>Hint</summary>
#
# `tril(-3)` is what lies at least three places back.
#
# </details>

# %% tags=["hide-cell"]
ones = torch.ones(6, 6, dtype=torch.bool)
window = ones.tril() & ~ones.tril(-3)
assert all(bool(window[i, j]) == (i - 2 <= j <= i) for i in range(6) for j in range(6))
window.int()

# %% [markdown]
# **3.** *Medium · 5 min.* Write a mask for addition: a tensor of 0 and −∞ that is *added* to the scores, like PyTorch's
# float masks. Show that it gives the same weights. What happens if you make it by multiplying a boolean mask (0 or 1) by
# −∞?
#
# <details><summary>Hint</summary>
#
# `masked_fill` writes a number where a condition holds. What is $0 \cdot \infty$?
#
# </details>

# %% tags=["hide-cell"]
additive = torch.zeros(5, 5, dtype=torch.float64).masked_fill(~both[0, 0], -math.inf)
torch.testing.assert_close((scores + additive).softmax(-1), attention_weights(scores, both[0, 0]))
assert ((~both[0, 0]).double() * -math.inf).isnan().any()  # 0 · ∞ is not a number

# %% [markdown]
# **4.** *Medium · 6 min.* Padding could also be at the *front*. With sinusoidal [positions](positions.py) that changes
# the result, although the mask is right. Show this on `model`, and explain why.
#
# <details><summary>Hint</summary>
#
# Give the model the same three words twice, with the zeros on either side. Which positions do the words have?
#
# </details>

# %% tags=["hide-cell"]
with torch.no_grad():
    behind = model(torch.tensor([[8, 9, 2, 0, 0]]), torch.tensor([[1, 8, 9]]))
    in_front = model(torch.tensor([[0, 0, 8, 9, 2]]), torch.tensor([[1, 8, 9]]))

# The words are at positions 2, 3, 4 instead of 0, 1, 2, so different patterns are added to them.
assert (behind - in_front).abs().max() > 1e-3

# %% [markdown]
# **5.** *Easy · 3 min · on the stage.* A mask can hide any word. [Hide one on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=changes&task=hide),
# so that “il” falls below 0.1.
#
# <details><summary>Hint</summary>
#
# Under *Mask*, choose a word as the key, and hide it from everyone. Which words tell the model who was tired?
#
# </details>
#
# ## Next
#
# Attention is now complete: [scaled](attention.py), [in several heads](heads.py), and masked. What it returns is
# not yet the next layer's input. First it is added to what was there before, and the sum is normalised: [add &
# norm](residual.py).
