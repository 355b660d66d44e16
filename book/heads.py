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
# # Several heads
#
# ## The question
#
# In [attention](attention.py) each word asks one question. The dot products of its *query* with the *keys* of all
# words are its *scores*. The softmax turns them into *weights* that sum to 1, and the weights average the *values*. One
# query, one row of weights, one average.
#
# But a word needs several things. Take *swam* in "I swam across the river": who swam, and where? Both answers have to
# share one row of weights, so they arrive mixed into one average. The paper (*Attention Is All You Need*, 2017, §3.2.2)
# runs attention several times side by side instead, each time with a narrower query, key and value. Each of these
# attentions is called a *head*.
#
# **Why several narrow heads and not one wide head? Is that more work?**

# %%
import json
import math

import torch
from torch import nn

import glassformer as gf
from glassformer.watch import pictures

torch.manual_seed(1)
torch.set_printoptions(precision=4, sci_mode=False)

# %% [markdown]
# ## The intuition
#
# ### A match that gets lost
#
# Take vectors with 8 coordinates. In a trained model they have no names; here we give them some. The first four ask
# *who?*, the last four ask *where?*. The query of *swam* asks for both, and each key says what its word is.
# (*near* means close to the verb.) A negative number in a key means that the word certainly does not fit.

# %%
words = ["I", "across", "the", "river"]
coordinates = ["person", "animal", "pronoun", "near", "place", "water", "path", "noun"]
query = torch.tensor([2.0, 1, 1, 2, 2, 2, 1, 2])  # the query of "swam"
keys = torch.tensor(
    [
        [1.0, 0, 2, 2, -1, -1, -2, -1],  # I: surely a "who", surely not a "where"
        [0.0, 0, 0, 1, 0, 0, 2, 0],  # across: a little of both
        [-1.0, 0, 0, 0, 0, 0, 0, -1],  # the
        [-2.0, 0, -2, -1, 1, 2, 0, 1],  # river: surely not a "who", surely a "where"
    ]
)
products = query * keys  # cell by cell; a score is the sum of a row
big = products.sum(-1)
small = torch.stack([products[:, :4].sum(-1), products[:, 4:].sum(-1)])
big_weights = (big / math.sqrt(8)).softmax(-1)  # one head, 8 wide
small_weights = (small / math.sqrt(4)).softmax(-1)  # two heads, 4 wide each
print("words:       ", words)
print("one big head:", big_weights)
print("head 0:      ", small_weights[0])
print("head 1:      ", small_weights[1])

# %% tags=["hide-input", "check"]
assert torch.equal(big, keys @ query)
# The big head's score is the sum of the small ones':
assert torch.equal(big, small.sum(0))
assert big.tolist() == [0, 4, -4, 0]
assert small.tolist() == [[8, 2, -2, -8], [-8, 2, -2, 8]]
assert words[big_weights.argmax()] == "across"
assert [words[i] for i in small_weights.argmax(-1)] == ["I", "river"]

# %% [markdown]
# In the picture, each row is a word, and each cell is the product of one coordinate of the query and the same
# coordinate of the word's key. The sums are on the right. *I* fits the *who* half perfectly (8) and the *where* half
# not at all (−8). One big head adds up all eight cells and gets 0. The match is lost, and *river* is lost in the same
# way. The winner is *across*, which fits neither question well. Two heads, which add up four cells each, find *I* and
# *river*.

# %% tags=["hide-input"]
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle


def cells(axes, left, top, values, shape=".0f", limit=None, edge=pictures.GREY):
    """Draw a matrix as coloured cells with numbers, its upper left corner at (left, top)."""
    rows = (torch.as_tensor(values) + 0.0).tolist()
    limit = limit or max(abs(value) for row in rows for value in row) or 1
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            colour = pictures.BLUE if value >= 0 else pictures.ORANGE
            face = (*to_rgb(colour), 0.75 * min(1, abs(value) / limit))
            axes.add_patch(Rectangle((left + j, top - i - 1), 1, 1, facecolor=face, edgecolor=edge, lw=0.7))
            text = format(value, shape).replace("-", "−")
            axes.text(left + j + 0.5, top - i - 0.5, text, ha="center", va="center", fontsize=9)


figure, axes = pictures.canvas(7.6, 2.7)
cells(axes, 0, 4, products[:, :4], limit=5, edge=pictures.GREEN)
cells(axes, 4.3, 4, products[:, 4:], limit=5, edge=pictures.PURPLE)
for place, (name, sums, weights, edge) in enumerate(
    (
        ("head 0", small[0], small_weights[0], pictures.GREEN),
        ("head 1", small[1], small_weights[1], pictures.PURPLE),
        ("one big head", big, big_weights, pictures.GREY),
    )
):
    left = 9.1 + 2.6 * place
    cells(axes, left, 4, sums[:, None], limit=8, edge=edge)
    for i, weight in enumerate(weights.tolist()):
        axes.text(left + 1.1, 3.5 - i, f"{100 * weight:.0f} %", va="center", fontsize=9)
    axes.text(left + 0.8, 4.2, name, ha="center", va="bottom", fontsize=9)

for i, word in enumerate(words):
    axes.text(-0.15, 3.5 - i, word, ha="right", va="center", fontsize=10)

for j, name in enumerate(coordinates):
    axes.text(j + 0.35 + 0.3 * (j > 3), 4.15, name, ha="left", va="bottom", fontsize=8, rotation=35)

axes.text(2, -0.2, "who?", ha="center", va="top", color=pictures.GREEN, fontsize=10)
axes.text(6.3, -0.2, "where?", ha="center", va="top", color=pictures.PURPLE, fontsize=10)
axes.text(12.7, -0.2, "score and weight", ha="center", va="top", fontsize=10)
axes.set(xlim=(-1.5, 16.6), ylim=(-0.9, 6))
axes.axis("off")
pictures.picture(
    figure,
    "Products of a query with four keys in 8 coordinates. Summed in two halves, head 0 gives 95 % to “I” and head 1 95 % to "
    "“river”; summed over all eight, both get 0 and “across” wins with 65 %.",
)

# %% [markdown]
# ### A query that asks for subject, verb and object
#
# Here is a second reason. Let a query ask for the subject, the verb *and* the object of a sentence, and let keys
# say which of these their word is. (How does *dog* know that it is the subject? From its position, and from what
# earlier layers have gathered.) The values say which word it is: one coordinate each for *dog*, *chased*, *cat*.

# %%
role = torch.eye(3)  # keys: subject, verb, object
dog, chased, cat = torch.eye(3)  # values
first = torch.stack([dog, chased, cat])  # dog chased cat
second = torch.stack([cat, chased, dog])  # cat chased dog
all_at_once = torch.tensor([[8.0, 8.0, 8.0]])  # one head asks for all three at once
one_by_one = 8 * torch.eye(3)  # three heads: for the subject, the verb, the object
one = [gf.attention(all_at_once, role, value).weighted_values for value in (first, second)]
three = [gf.attention(one_by_one, role, value).weighted_values for value in (first, second)]
print("one head,    dog chased cat:", one[0])
print("one head,    cat chased dog:", one[1])
print("three heads, dog chased cat:")
print(three[0])
print("three heads, cat chased dog:")
print(three[1])

# %% tags=["hide-input", "check"]
torch.testing.assert_close(*one)
assert (three[0] - three[1]).abs().max() > 0.9

# %% [markdown]
# One head finds all three words and hands over their average, a third of each. Who chased whom is lost: both sentences
# give the same three numbers. Three heads hand over three averages, which stay separate, side by side. (Each row
# printed above is one head's answer.)
#
# ## The mathematics
#
# $x$ is the sentence: $S$ words (its length), each a row of $d_\mathrm{model}$ numbers. There are $h$ heads (`heads` in
# the code). Head $i$ has its own matrices: $W_{Q,i}$ and $W_{K,i}$ of shape $d_\mathrm{model} \times d_k$, and
# $W_{V,i}$ of shape $d_\mathrm{model} \times d_v$. Here $d_k$ is the width of one head's query and key, and $d_v$ is
# the width of its value. (The code counts heads from 0, the formula from 1.) Each head computes the attention that you
# know (§3.2.1, equation 1; $\top$ swaps rows and columns):
#
# $$Z_i = \mathrm{softmax}\left(\frac{(x W_{Q,i})(x W_{K,i})^\top}{\sqrt{d_k}}\right) x W_{V,i}$$
#
# $Z_i$ has a row of $d_v$ numbers for each word. The rows of all heads are put side by side (*concatenated*), and a
# last matrix $W_O$ of shape $h\,d_v \times d_\mathrm{model}$ mixes them (§3.2.2):
#
# $$\mathrm{MultiHead}(x) = \mathrm{Concat}(Z_1, \ldots, Z_h)\, W_O$$
#
# The paper takes $d_k = d_v = d_\mathrm{model} / h$. With 8 heads and $d_\mathrm{model} = 512$, a head is 64 wide, and
# all heads together are as wide as one big one. So the projections, the products with $W_Q$, $W_K$, $W_V$ and $W_O$,
# cost the same for any number of heads. What grows is the number of scores. Each head has its own $S \times S$ table of
# scores, so $h$ heads make $h$ times as many scores, all of which pass through a softmax.
#
# ## Line by line
#
# We take the paper's base model and a batch of $B = 30$ sentences of $S = 10$ words. The shape is noted after each
# line.

# %%
B, S, d_model, heads = 30, 10, 512, 8
d_k = d_model // heads  # 64
x = torch.randn(B, S, d_model, dtype=torch.float64)
matrices = torch.randn(4, d_model, d_model, dtype=torch.float64)
Wq, Wk, Wv, Wo = matrices / math.sqrt(d_model)
q, k, v = x @ Wq, x @ Wk, x @ Wv
q.shape

# %% tags=["hide-input", "check"]
assert q.shape == k.shape == v.shape == (30, 10, 512)

# %% [markdown]
# **Split.** Cut the 512 numbers of each word into 8 slices of 64. This is a `view`: no number moves, only the way of
# counting changes. Then `transpose(1, 2)` moves the axis of the heads in front of the axis of the words, so that each
# head has its own sequence of 10 words.

# %%
q_heads = q.view(B, S, heads, d_k)  # (30, 10, 512) -> (30, 10, 8, 64)
q_heads = q_heads.transpose(1, 2)  # -> (30, 8, 10, 64)
k_heads = k.view(B, S, heads, d_k).transpose(1, 2)
v_heads = v.view(B, S, heads, d_k).transpose(1, 2)
q_heads.shape

# %% tags=["hide-input", "check"]
assert q_heads.shape == k_heads.shape == v_heads.shape == (30, 8, 10, 64)
assert torch.equal(q_heads[4, 2, 7], q[4, 7, 128:192])  # sentence 4, head 2, word 7

# %% [markdown]
# **Attend.** The matrix product `@` works on the last two axes and repeats itself over the others: 30 sentences times
# 8 heads. (`.mT` swaps the last two axes.) Each head has a softmax of its own.

# %%
scores = q_heads @ k_heads.mT / math.sqrt(d_k)  # (30, 8, 10, 64) @ (30, 8, 64, 10)
weights = scores.softmax(-1)
z = weights @ v_heads  # (30, 8, 10, 10) @ (30, 8, 10, 64)
scores.shape, z.shape

# %% tags=["hide-input", "check"]
assert scores.shape == (30, 8, 10, 10)
assert z.shape == (30, 8, 10, 64)

# %% [markdown]
# **Join.** Go back the same way: the axis of the words moves to the front again, and the 8 slices of 64 become one row
# of 512. Then **mix** them with $W_O$.

# %%
joined = z.transpose(1, 2).reshape(B, S, heads * d_k)  # -> (30, 10, 512)
output = joined @ Wo
output.shape

# %% tags=["hide-input", "check"]
assert joined.shape == output.shape == (30, 10, 512)

# %% [markdown]
# The picture shows all the steps from top to bottom. Each arrow carries the shape of what passes along it.

# %% tags=["hide-input"]
pictures.flow(
    {
        "x": pictures.Box("x", 0, 5),
        "project": pictures.Box("× W_Q, W_K, W_V", 0, 4, pictures.BLUE),
        "split": pictures.Box("split: view, transpose", 0, 3, pictures.GREY),
        "attend": pictures.Box("attention in each head", 0, 2, pictures.GREEN, link="attention.py"),
        "join": pictures.Box("join: transpose, reshape", 0, 1, pictures.GREY),
        "mix": pictures.Box("× W_O", 0, 0, pictures.BLUE),
        "out": pictures.Box("output", 0, -1),
        "weights": pictures.Box("weights", 1.6, 2, pictures.ORANGE, width=0.6),
    },
    [
        ("x", "project", "(30, 10, 512)"),
        ("project", "split", "Q, K, V: (30, 10, 512) each"),
        ("split", "attend", "(30, 8, 10, 64) each"),
        ("attend", "weights", "(30, 8, 10, 10)"),
        ("attend", "join", "Z: (30, 8, 10, 64)"),
        ("join", "mix", "(30, 10, 512)"),
        ("mix", "out", "(30, 10, 512)"),
    ],
    alt="Data flow: x (30, 10, 512), times W_Q, W_K, W_V, split to (30, 8, 10, 64), attention in each head with weights "
    "(30, 8, 10, 10), joined to (30, 10, 512), times W_O.",
    column=2.4,
    row=0.72,
)

# %% [markdown]
# ### Separate matrices are the same as one that is split
#
# The formula has 8 small matrices for the queries, and the code has one big matrix. Both give the same result, because
# each column of $W_Q$ makes one coordinate of the query, independently of the other columns. Columns 0 to 63 are the
# matrix of head 0, and so on. Let us check this with 8 separate matrices of shape (512, 64), one head after the other.
# Their outputs are concatenated and multiplied by $W_O$:

# %%
outputs = []
for i in range(heads):
    columns = slice(i * d_k, (i + 1) * d_k)
    own_q, own_k, own_v = Wq[:, columns], Wk[:, columns], Wv[:, columns]
    z_i = gf.attention(x @ own_q, x @ own_k, x @ own_v).weighted_values
    outputs.append(z_i)

concatenated = torch.cat(outputs, dim=-1)  # Concat(Z_1, …, Z_8): (30, 10, 512)
print(f"largest difference from the heads of the split: {(concatenated - joined).abs().max():.0e}")
print(f"and after W_O: {(concatenated @ Wo - output).abs().max():.0e}")

# %% tags=["hide-input", "check"]
assert own_q.shape == (512, 64)
assert z_i.shape == (30, 10, 64)
torch.testing.assert_close(torch.stack(outputs, dim=1), z, atol=1e-12, rtol=0)
torch.testing.assert_close(concatenated, joined, atol=1e-12, rtol=0)

# %% [markdown]
# ### What W_O does
#
# Concatenating puts the heads side by side, each in its own 64 coordinates. $W_O$ mixes them: every coordinate of the
# result may draw on every head. Cut $W_O$ into blocks of 64 *rows*, $W_{O,1}$ to $W_{O,h}$, and it becomes a sum:
# each head adds its own share to the whole.
#
# $$\mathrm{Concat}(Z_1, \ldots, Z_h)\, W_O = \sum_{i=1}^{h} Z_i W_{O,i}$$

# %%
shares = [outputs[i] @ Wo[i * d_k : (i + 1) * d_k] for i in range(heads)]

# %% tags=["hide-input", "check"]
assert shares[0].shape == (30, 10, 512)
torch.testing.assert_close(sum(shares), output, atol=1e-12, rtol=0)

# %% [markdown]
# The picture shows this with small numbers: 2 heads of width 2, one word, $d_\mathrm{model} = 4$. Numbers from head 0
# have a green edge, numbers from head 1 a purple one. Follow one column down: green times green and purple times
# purple, added up.

# %%
z_0, z_1 = torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 3.0]])
mixer = torch.tensor([[1.0, 0, 2, -1], [0, 1, 1, 1], [2, 0, 0, 1], [-1, 1, 0, 1]])
share_0, share_1 = z_0 @ mixer[:2], z_1 @ mixer[2:]
mixed = torch.cat([z_0, z_1], dim=-1) @ mixer

# %% tags=["hide-input", "check"]
assert torch.equal(mixed, share_0 + share_1)
assert mixed.tolist() == [[1, 2, 3, 1]]

# %% tags=["hide-input"]
figure, axes = pictures.canvas(7.2, 2.6)
edges = (pictures.GREEN, pictures.PURPLE)
for i, (part, share) in enumerate(((z_0, share_0), (z_1, share_1))):
    cells(axes, 2 * i, 3, part, limit=4, edge=edges[i])
    cells(axes, 5.4, 4.5 - 2.2 * i, mixer[2 * i : 2 * i + 2], limit=4, edge=edges[i])
    cells(axes, 11, 4.0 - 2.2 * i, share, limit=6, edge=edges[i])
    axes.text(1 + 2 * i, 3.15, f"head {i}", ha="center", va="bottom", fontsize=9)

cells(axes, 11, -0.2, mixed, limit=6)
for left, top, text in (
    (2, 1.85, "joined"),
    (7.4, -0.2, "W_O"),
    (13, 4.15, "share of head 0"),
    (13, 1.95, "share of head 1"),
    (13, -0.05, "their sum: the output"),
):
    below = text in ("joined", "W_O")
    axes.text(left, top, text, ha="center", va="top" if below else "bottom", fontsize=9)

axes.text(4.7, 2.4, "×", ha="center", va="center", fontsize=13)
axes.text(10.2, 2.4, "=", ha="center", va="center", fontsize=13)
axes.set(xlim=(-0.3, 15.3), ylim=(-1.5, 5.1))
axes.axis("off")
pictures.picture(
    figure,
    "Two heads (2, −1) and (1, 3) joined to four numbers, times W_O whose upper rows belong to head 0 and lower rows to head 1: "
    "shares (2, −1, 3, −3) and (−1, 3, 0, 4), sum (1, 2, 3, 1).",
)

# %% [markdown]
# ## The same from the library
#
# [`split_heads`](../src/glassformer/model/attention.py#split_heads) and
# [`join_heads`](../src/glassformer/model/attention.py#join_heads) are the two steps of reshaping. `gf.attention`
# accepts any leading axes, so it needs no change for heads.

# %%
from glassformer.model.attention import MultiHeadAttention, join_heads, split_heads

gf.attention(split_heads(q, heads), split_heads(k, heads), split_heads(v, heads)).weighted_values.shape

# %% tags=["hide-input", "check"]
from_library = gf.attention(q_heads, k_heads, v_heads).weighted_values
assert torch.equal(split_heads(q, heads), q_heads)
assert torch.equal(join_heads(z), joined)
assert torch.equal(join_heads(split_heads(q, heads)), q)  # one undoes the other
torch.testing.assert_close(from_library, z, atol=1e-12, rtol=0)

# %% [markdown]
# [`MultiHeadAttention`](../src/glassformer/model/attention.py#MultiHeadAttention) holds the weights. Three details
# differ from our lines. $W_Q$, $W_K$ and $W_V$ are stored as one matrix, so that one product is enough. `nn.Linear`
# stores a matrix with rows and columns swapped. And each product adds a learned vector, a *bias*, which the paper's
# formula does not have. Take the layer's own weights, in float64, and compute by hand:

# %%
layer = MultiHeadAttention(d_model=512, heads=8, d_k=64, d_v=64, dropout=0.0).double()
# Biases start at 0; other numbers make a better test.
nn.init.normal_(layer.input_projection.bias)
nn.init.normal_(layer.output_projection.bias)
matrices = [matrix.T for matrix in layer.input_projection.weight.split(512)]
biases = layer.input_projection.bias.split(512)
projected = [x @ matrix + bias for matrix, bias in zip(matrices, biases, strict=True)]
q, k, v = [one.view(B, S, 8, 64).transpose(1, 2) for one in projected]
z = (q @ k.mT / math.sqrt(64)).softmax(-1) @ v
joined = z.transpose(1, 2).reshape(B, S, 512)
by_hand = joined @ layer.output_projection.weight.T + layer.output_projection.bias

# %% tags=["hide-input", "check"]
with torch.no_grad():
    torch.testing.assert_close(layer(x), by_hand, atol=1e-12, rtol=0)

# %% [markdown]
# `gf.record` shows every step inside, under these names:

# %%
names = ["query", "scores", "weights", "heads", "joined", "output"]
with torch.no_grad(), gf.record(layer, names) as trace:
    layer(x)

for name, tensor in trace.items():
    print(f"{name:8} {tuple(tensor.shape)}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(trace["query"], q, atol=1e-12, rtol=0)
torch.testing.assert_close(trace["heads"], z, atol=1e-12, rtol=0)
torch.testing.assert_close(trace["joined"], joined, atol=1e-12, rtol=0)
torch.testing.assert_close(trace["output"], by_hand, atol=1e-12, rtol=0)

# %% [markdown]
# ## Is the result different because of the split?
#
# **Yes.** The projections are the same numbers with or without a split. But eight heads take eight softmaxes over the
# words, and one big head takes one. A dot product is a sum, so a big head's score is the *sum* of the eight heads'
# scores (before the division). In that sum, one head's high score can be cancelled by another head's low score. That is
# how the match above was lost.

# %%
with torch.no_grad():
    whole = [join_heads(part) for part in (q, k, v)]  # the same projections, not split
    raw_sum = (q @ k.mT).sum(dim=1)  # over the heads
    one_head = gf.attention(*whole).weighted_values
    print("largest difference:", (one_head - joined).abs().max().item())

# %% tags=["hide-input", "check"]
torch.testing.assert_close(raw_sum, whole[0] @ whole[1].mT, atol=1e-10, rtol=0)
assert (one_head - joined).abs().max() > 0.1

# %% [markdown]
# ## What full-size heads would cost
#
# Could each head be 512 wide? Yes, $d_k$ is a separate setting. But look at the price. The table counts the weights to
# learn (without biases) and, for one sentence of 10 words, the multiplications and the scores that pass through a
# softmax.


# %%
def cost(heads, d_k, d_model=512, length=10):
    """Return the number of weights, of multiplications and of scores (d_v = d_k)."""
    weights = 4 * d_model * heads * d_k  # W_Q, W_K, W_V, W_O
    multiplications = length * weights  # each word through each matrix
    multiplications += 2 * heads * length * length * d_k  # scores, and weighted sums
    scores = heads * length * length  # a map for each head
    return weights, multiplications, scores


print(f"{'':14}{'weights':>12}{'multiplications':>17}{'scores':>8}")
for heads, d_k in ((8, 64), (1, 512), (8, 512)):
    weights, multiplications, scores = cost(heads, d_k)
    name = f"{heads} × {d_k} wide"
    print(f"{name:14}{weights:12,}{multiplications:17,}{scores:8,}")

# %% tags=["hide-input", "check"]
for heads, d_k in ((8, 64), (1, 512), (8, 512)):
    module = MultiHeadAttention(512, heads, d_k, d_k, 0.0)
    linear = [part for part in module.children() if isinstance(part, nn.Linear)]
    assert sum(part.weight.numel() for part in linear) == cost(heads, d_k)[0]

assert cost(8, 64)[:2] == cost(1, 512)[:2]
assert cost(8, 64)[2] == 8 * cost(1, 512)[2]
assert cost(8, 512)[0] == 8 * cost(8, 64)[0] == 8_388_608

# %% [markdown]
# Eight heads of width 64 have exactly as many weights, and take exactly as many multiplications, as one head of
# width 512. Eight heads are not free: there are eight maps of scores instead of one, with eight times as many softmaxes
# to take and numbers to keep. For short sentences that is little beside the projections, but the maps grow with the
# square of the length. Eight heads of width 512 need eight times the weights and multiplications. The base model has 18
# attentions (one in each of 6 encoder layers, two in each of 6 decoder layers), so the model would grow from 63 to
# about 195 million weights. The split makes several questions affordable.

# %%
extra = 18 * (cost(8, 512)[0] - cost(8, 64)[0])

# %% tags=["hide-input", "check"]
assert round((63_082_496 + extra) / 1e6) == 195

# %% [markdown]
# ## What trained heads look at
#
# So far we have chosen the numbers ourselves. What do the heads of a trained model do? The demo translates English into
# French. Its encoder has 2 layers of 8 heads, and so has its decoder. We begin with the row of *swam* in the encoder's
# self-attention. For each word that we would like *swam* to look at, a search over all 16 heads picks the one with the
# largest weight. Layers and heads are counted from 0.

# %% tags=["hide-input"]
from glassformer.built_in import trained_demo

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model = translator.model
english, french = translator.bundle.source_tokenizer, translator.bundle.target_tokenizer


def recorded(sentence):
    """Return source, output, and the weights (layers, heads, queries, keys)."""
    text = translator.translate([sentence])[0].text
    source = [*english.encode(sentence), model.config.eos_id]
    output = [*french.encode(text), model.config.eos_id]
    target = torch.tensor([[model.config.bos_id, *output[:-1]]])
    points = ["encoder.*.weights", "decoder.*.cross_attention.weights"]
    with torch.no_grad(), gf.record(model, points) as trace:
        model(torch.tensor([source]), target)
    own, cross = [
        torch.stack([tensor[0] for name, tensor in trace.items() if name.startswith(stack)])
        for stack in ("encoder", "decoder")
    ]
    return english.tokens(source), french.tokens(output), own, cross


# %% tags=["hide-input"]
def hardest(rows, word):
    """Return (layer, head, weight) that looks hardest at one word."""
    layer, head = divmod(rows[..., word].argmax().item(), rows.shape[1])
    return layer, head, rows[layer, head, word].item()


def searched(rows, words, wanted, first=0):
    """Print the head that looks hardest at each word; the rows' layers count from `first`."""
    found = []
    for word in wanted:
        layer, head, weight = hardest(rows, words.index(word))
        verdict = "hardly looks there"
        if weight > 0.2:
            verdict = "looks there" if weight > 0.5 else "glances there"
        place = f"layer {first + layer}, head {head}"
        print(f"{word:7} {place}: weight {weight:.2f}, {verdict}")
        found.append((first + layer, head))
    return found


# %%
sentence = "I swam across the river to get to the other bank."
source, output_words, own, cross = recorded(sentence)
swam = source.index("swam")
found = searched(own[:, :, swam], source, ["I", "across", "river"])

# %% [markdown]
# *Who?* would be *I*, *where?* would be *across* and *river*. The verdicts printed above say what this model does, even
# where it differs from the story in the first section. With a weight above 0.5, the verdict is that the head looks at
# the word. With a weight below 0.2, the verdict is that the head hardly looks at the word more than at others (equal
# weights would be 0.08). A model learns what helps with its task. In French, *swam across* is *traversé … à la nage*,
# "crossed by swimming". To choose the verb, the model must know whether *across* follows, but not who swam. (*Traversé*
# is the same for a man, a woman and a frog.)
#
# Here are these heads as lines, from *swam* (top) to the words that it looks at (bottom); the thicker the line, the
# larger the weight. A head that two searches found is drawn once.

# %% tags=["hide-input"]
found = list(dict.fromkeys(found))
pictures.attention_lines(
    torch.stack([own[layer, head] for layer, head in found]),
    source,
    source,
    query=swam,
    names=[f"layer {layer}, head {head}" for layer, head in found],
    alt="Lines from “swam” to the other words, of the encoder's heads that look hardest at “I”, “across” and “river”.",
)

# %% [markdown]
# Who swam matters later, when the French is written: *J'ai* or *elle a*. So ask the decoder. In its *cross-attention*
# the queries come from the French words, the keys and values from the English ones. The row of a French word holds the
# weights of the step that *writes* it. In the steps that write *ai* ("have", with "I") and *nage* ("swimming"), which
# heads look at *I*, and which at *swam*?

# %%
for written in ("ai", "nage"):
    if written in output_words:
        print("writing", written)
        step = output_words.index(written)
        searched(cross[:, :, step], source, ["I", "swam", "across", "river"])

# %% [markdown]
# In one and the same step, different heads look at different words. That is what several heads are for. Now for **it**.
# In "The animal didn't cross the street because it was too tired", what does *it* look at? First in the encoder:

# %%
tired = "The animal didn't cross the street because it was too tired."
source, output_words, own, cross = recorded(tired)
it = source.index("it")
found = searched(own[:, :, it], source, ["animal", "street", "tired"])

# %% tags=["hide-input"]
found = list(dict.fromkeys(found))
pictures.attention_lines(
    torch.stack([own[layer, head] for layer, head in found]),
    source,
    source,
    query=it,
    names=[f"layer {layer}, head {head}" for layer, head in found],
    alt="Lines from “it” to the other words, of the encoder's heads that look hardest at “animal”, “street” and “tired”.",
)

# %% [markdown]
# Thick lines from *it* to its noun would mean that the encoder finds the noun. Thin lines mean that a later part of the
# model has to find it. So ask the decoder, at the step where it has to decide: *il* (masculine, the animal) or *elle*
# (feminine, the street)? To decide, the decoder needs the adjective and the two nouns to choose from. One head could
# look at only one of these words. See how many heads share the task:

# %%
pronoun = next(i for i, word in enumerate(output_words) if word in ("il", "elle"))
print("writing", output_words[pronoun])
found = searched(cross[:1, :, pronoun], source, ["animal", "street", "tired"])  # layer 0

# %% tags=["hide-input"]
found = list(dict.fromkeys(found))
pictures.attention_lines(
    torch.stack([cross[layer, head] for layer, head in found]),
    output_words,
    source,
    query=pronoun,
    names=[f"layer {layer}, head {head}" for layer, head in found],
    alt="Lines from the step that writes the French pronoun to the English words, of the heads of the decoder's first "
    "cross-attention that look hardest at “animal”, “street” and “tired”.",
)

# %% [markdown]
# Where the heads differ, one step looks at several words at once, and what it takes from each word stays separate. A
# single row of weights could only have mixed the words. Now change a single word, *tired* to *wide*, and look at the
# decoder's last layer: which noun does it look at when it writes the pronoun?

# %%
for sentence in (tired, tired.replace("tired", "wide")):
    source, output_words, own, cross = recorded(sentence)
    pronoun = next(i for i, word in enumerate(output_words) if word in ("il", "elle"))
    print("writing", output_words[pronoun])
    searched(cross[-1:, :, pronoun], source, ["animal", "street"], first=1)

# %% [markdown]
# Attention shows where a head looks, not whether this influences the output. To find out, the experiments switch heads
# off and hide words: [what decides the pronoun](experiments/pronoun.py), [how important each head
# is](experiments/importance.py). In the explorer, you can look at every head of [the last
# cross-attention](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&zoom=%7B%22box%22:%22decoder.layers.1.cross_attention%22,%22key%22:null%7D),
# and switch each one off yourself, under What if? on the figure.

# %% [markdown]
# ## Why heads become different at all
#
# Nothing in the formula tells a head what to look for. All heads have the same shape, read the same words and get the same
# error. Why do they not all learn the same? A small experiment answers: self-attention with two heads, and a task that
# needs two looks. For each word, the output must be the content of the word before it *and* of the word before that one:


# %%
def task(count=64, length=6):
    """Return words (count, length, 10), of 4 random numbers and a one-hot position, and what must come out."""
    content, places = torch.randn(count, length, 4), torch.eye(length).expand(count, -1, -1)
    return torch.cat([content, places], -1), torch.cat([content.roll(1, 1), content.roll(2, 1)], -1)


def two_heads(x, query, key, value, output):
    """Return the self-attention of two heads; each weight has a matrix for each head."""
    x = x[:, None]  # (B, 1, S, 10), for both heads
    weights = ((x @ query) @ (x @ key).mT / math.sqrt(8)).softmax(-1)  # (B, 2, S, S)
    return (weights @ (x @ value) @ output).sum(1)  # a sum over heads is what W_O computes


# %% [markdown]
# The two heads begin with equal weights, plus random numbers of a size that we choose: none, a millionth, or as large as
# the weights themselves.


# %%
def learned(apart, steps=400):
    """Train two heads that start `apart`; return the losses, and the largest difference of their queries' weights."""
    torch.manual_seed(1)
    shapes = [(10, 8), (10, 8), (10, 8), (8, 8)]
    weights = [torch.randn(shape) / 3 + apart * torch.randn(2, *shape) for shape in shapes]
    weights = [weight.requires_grad_() for weight in weights]
    optimiser, found = torch.optim.Adam(weights, lr=1e-2), []
    for _ in range(steps):
        x, right = task()
        loss = (two_heads(x, *weights) - right).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append((loss.item(), (weights[0][0] - weights[0][1]).abs().max().item()))
    return found


starts = {"equal": 0.0, "a millionth apart": 1e-6, "random": 1 / 3}
runs = {name: learned(apart) for name, apart in starts.items()}
for name, run in runs.items():
    print(f"{name:17}  loss {run[-1][0]:.3f}, difference of the heads: {run[0][1]:.6f} → {run[-1][1]:.6f}")

# %% tags=["hide-input"]
pictures.curves(
    {name: (range(1, 401), [loss for loss, _ in run]) for name, run in runs.items()},
    x_label="step",
    y_label="loss",
    alt="The loss of three trainings. Two fall to nearly 0; that of the equal heads stays above.",
)

# %% tags=["hide-input", "check"]
assert {difference for _, difference in runs["equal"]} == {0.0}
assert runs["equal"][-1][0] > 20 * max(runs["random"][-1][0], runs["a millionth apart"][-1][0])
assert runs["a millionth apart"][0][1] < 1e-4 < 0.1 < runs["a millionth apart"][-1][1]

# %% [markdown]
# Equal heads stay equal, to the last digit: equal weights get equal gradients, step after step, for ever. Together they are
# one head that speaks twice as loud, and one look is not enough for this task. A millionth is enough to break the symmetry:
# the gradients differ a little, and training makes the difference grow, because two different heads serve the task better.
# So heads become different for one reason only: they *start* with different random numbers.
#
# ## One large head against eight small ones
#
# Does it matter in practice? The paper tried it (§6.2, Table 3, rows A): with one head as wide as all eight together,
# translations were worse by 0.9 BLEU. (BLEU measures how much a translation has in common with a human one.) With 32
# heads, translations were again worse than with eight.
#
# And in our small model? [An experiment](experiments/one_head.py) trains the demo's model in two versions: with 8 heads
# of width 16, and with one head of width 128. The training is shorter than the demo's. Both versions have the same
# number of weights, and both are trained from several random starts (*seeds*). The numbers are *exact matches*: the
# percentage of sentences whose translation equals the reference word for word. There are four sets of sentences. `test`
# is like the training data. `unseen-combinations` pairs nouns with adjectives (and subjects, verbs, places) that never
# met in training. `coreference` needs the right noun for *it*, and `senses` the right meaning of words such as *bank*.

# %%
with open("experiments/results/one_head.json", encoding="utf-8") as file:
    results = json.load(file)

splits = ["test", "unseen-combinations", "coreference", "senses"]
names = {"short": "8 heads", "one-head": "1 head"}
table = {
    f"{split}: {names[model_name]}": results["models"][model_name]["exact"][split]
    for split in splits
    for model_name in names
}
for name, values in table.items():
    by_seed = ", ".join(f"{value:.1f}" for value in values)
    print(f"{name:28} mean {sum(values) / len(values):5.1f} %   by seed {by_seed}")

# %% tags=["hide-input", "check"]
assert all(len(values) == len(results["seeds"]) for values in table.values())

# %% [markdown]
# In the picture, each mark is one seed, and the short lines are the means; the axis does not start at 0. Compare blue
# with orange and see whether their marks overlap: where they do, the difference may be chance.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.8, 2.8)
for place, (name, values) in enumerate(table.items()):
    row = -1.0 * (place // 2) - 0.3 * (place % 2)
    colour, mark = (pictures.BLUE, "o") if place % 2 == 0 else (pictures.ORANGE, "s")
    label = name.split(": ")[1] if place < 2 else None
    axes.plot(values, [row] * len(values), mark, color=colour, markersize=6, alpha=0.8, label=label)
    mean = sum(values) / len(values)
    axes.plot([mean, mean], [row - 0.12, row + 0.12], color=colour, linewidth=2.5)

axes.set_yticks([-0.15 - place for place in range(len(splits))], splits)
axes.set(xlabel="exact match, %")
axes.grid(axis="x", color=pictures.GREY, alpha=0.25, linewidth=0.6)
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
pictures.picture(
    figure,
    "Exact matches of eight heads and of one head on four sets of sentences: a mark for each seed, a line for the mean.",
)

# %% [markdown]
# Eight heads do better on each of the four sets and with each seed: by four to seven points on `test`, by more on
# `senses`. One large head is not hopeless: it learns most of the task, and two of the three seeds do nearly as well on
# `coreference`. Several heads help; they are not indispensable.

# %% [markdown]
# ## What goes wrong
#
# **A view without the transpose.** To get from (30, 10, 512) to (30, 8, 10, 64), why not ask for that shape at once?
# You get the shape, with the numbers in the wrong places ([erratum](errata.py#view-without-transpose)). Take three
# words with four coordinates (10 to 13, 20 to 23, 30 to 33) and two heads:

# %%
tiny = torch.tensor([[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]])
right = tiny.view(1, 3, 2, 2).transpose(1, 2)
wrong = tiny.view(1, 2, 3, 2)
print("right, head 0:", right[0, 0].tolist())
print("wrong, head 0:", wrong[0, 0].tolist())

# %% tags=["hide-input", "check"]
assert right.shape == wrong.shape == (1, 2, 3, 2)
assert not torch.equal(right, wrong)
assert right[0, 0].tolist() == [[10, 11], [20, 21], [30, 31]]
assert wrong[0, 0].tolist() == [[10, 11], [12, 13], [20, 21]]

# %% [markdown]
# The right head 0 has the first half of each word. The wrong head 0 has both halves of the first word and half of the
# second: words are mixed up, and the causal mask no longer hides what it should. Nothing crashes. Here is the mistake
# planted in the demo:

# %%
from glassformer.watch.inspection import plant

with plant(model, "no_transpose"):
    print(translator.translate([tired])[0].text)
    report = gf.check(translator)

print(report)

# %% tags=["hide-input", "check"]
assert not report.passed

# %% [markdown]
# **Heads in a plain Python list.** PyTorch finds the parts of a module if they are attributes, or items of an
# `nn.ModuleList`. PyTorch does not look into a plain list. Heads in such a list compute, but the *optimiser*, which
# changes the weights in training, never gets their weights, and saving leaves them out
# ([erratum](errata.py#heads-in-a-plain-list)).


# %%
class Heads(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.queries = kind(nn.Linear(512, 64) for _ in range(8))


plain, registered = Heads(list), Heads(nn.ModuleList)
for name, module in (("plain list", plain), ("nn.ModuleList", registered)):
    found, saved = len(list(module.parameters())), len(module.state_dict())
    print(f"{name}: {found} tensors for the optimiser, {saved} saved")

# %% tags=["hide-input", "check"]
assert len(list(plain.parameters())) == len(plain.state_dict()) == 0
assert len(registered.state_dict()) == 16  # 8 matrices, 8 biases

# %% [markdown]
# **Concatenating onto a tensor that lives elsewhere.** A loop over the heads starts with `torch.empty(0)` and
# concatenates each head onto it. That works on the CPU, where this tensor lives, and stops with an error on a GPU
# ([erratum](errata.py#a-tensor-on-the-wrong-device)). You need no GPU to see it: a tensor on PyTorch's device `meta`,
# which has a shape but no numbers, is not on the CPU either. The remedy: collect the heads in a list and concatenate
# once.

# %%
parts = [torch.ones(10, 64, device="meta") for _ in range(8)]
try:
    torch.cat([torch.empty(10, 0), parts[0]], dim=-1)
except RuntimeError as error:
    print(error)

# %% tags=["hide-input", "check"]
assert torch.cat(parts, dim=-1).shape == (10, 512)

# %% [markdown]
# **"Several heads are faster."** They are not. Several heads take as many multiplications as one wide head, and more
# softmaxes (see the table above). Several heads are there to look at different things
# ([erratum](errata.py#what-heads-are-for)).
#
# **"Each head has a meaning."** Nothing in training asks for it: the loss sees only what all heads have added up to. Some
# heads do look where a person would look; others share one job, or do several. And after another training, a different
# head may do the job, or several (exercise 4).
#
# **"Eight heads bring 64 back to 512."** Eight times 64 happens to be 512. It is $W_O$ that brings back
# $d_\mathrm{model}$, from any number of heads of any width ([erratum](errata.py#heads-do-not-restore-the-width)):
# here from 5 × 30 = 150.

# %%
odd = MultiHeadAttention(d_model=512, heads=5, d_k=20, d_v=30, dropout=0.0).double()

# %% tags=["hide-input", "check"]
assert odd.output_projection.weight.shape == (512, 150)
assert odd(x).shape == (30, 10, 512)

# %% [markdown]
# **The shape of $Z_i$.** Some texts give the shape of $Z_i$ as (512, 64). But $Z_i$ has a row for each *word*: its
# shape is (length, 64). The matrices $W_{Q,i}$, $W_{K,i}$ and $W_{V,i}$ have the shape (512, 64)
# ([erratum](errata.py#shape-of-a-head)).

# %%
z[0, 0].shape, own_q.shape

# %% tags=["hide-input", "check"]
assert z[0, 0].shape == (10, 64)  # sentence 0, head 0: 10 words
assert own_q.shape == (512, 64)

# %% [markdown]
# ## In short
#
# - Several heads let a word ask several questions at once: each head has its own weights, so the answers arrive side by
#   side instead of mixed into one average.
# - The heads share the width $d_\mathrm{model}$, so the projections cost the same for any number of heads; only the
#   number of scores grows.
# - The answers of all heads are put side by side, and $W_O$ mixes them into one vector for each word.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* The paper's big model has $d_\mathrm{model} = 1024$ and 16 heads. How wide is a head? What is
# the shape of the scores for 2 sentences of 7 words?
#
# <details><summary>Hint</summary>
#
# The heads share the width of the model equally. The scores have one number for each sentence, head, query and key.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the width of a head
print(verdict("heads.1", answer))

# %% tags=["hide-cell"]
big_model = MultiHeadAttention(1024, 16, 1024 // 16, 1024 // 16, 0.0)
with torch.no_grad(), gf.record(big_model, ["scores"]) as trace:
    big_model(torch.randn(2, 7, 1024))

assert verdict("heads.1", 1024 // 16) == "right"  # as in base
assert trace["scores"].shape == (2, 16, 7, 7)

# %% [markdown]
# **2.** *Medium · 6 min.* Write `split_heads` without `view` and `transpose`, with slices and `torch.stack`.
#
# <details><summary>Hint</summary>
#
# Head $i$ has the columns from $i \cdot d_k$ to $(i + 1) \cdot d_k$. In which dimension do the heads stand in the
# result?
#
# </details>

# %%
answer = None  # instead of None: your function of x and heads
print(verdict("heads.2", answer))


# %% tags=["hide-cell"]
def split_by_slices(x, heads):
    """Return (B, H, T, K) of (B, T, H·K)."""
    width = x.shape[-1] // heads
    return torch.stack([x[..., i * width : (i + 1) * width] for i in range(heads)], dim=1)


assert torch.equal(split_by_slices(x, 8), split_heads(x, 8))
assert verdict("heads.2", split_by_slices) == "right"

# %% [markdown]
# **3.** *Medium · 5 min.* Head 3 is switched off: its $Z_i$ is set to 0. Get the same result by changing only $W_O$.
#
# <details><summary>Hint</summary>
#
# $W_O$ multiplies the joined heads. Which of its rows meet head 3?
#
# </details>

# %% tags=["hide-cell"]
off = z.clone()
off[:, 3] = 0
Wo_off = layer.output_projection.weight.T.clone()
Wo_off[3 * 64 : 4 * 64] = 0  # the rows that mix head 3 in
torch.testing.assert_close(join_heads(off) @ layer.output_projection.weight.T, joined @ Wo_off, atol=1e-12, rtol=0)

# %% [markdown]
# **4.** *Hard · 10 min.* Swap heads 0 and 5 in $W_Q$, $W_K$ and $W_V$. What has to be swapped in $W_O$ so that the
# output stays the same? What does that say about "head 5" of two models that were trained from different random starts?
#
# <details><summary>Hint</summary>
#
# Write the output as a sum over heads: each head times its own block of $W_O$. In which order may a sum be taken?
#
# </details>

# %% tags=["hide-cell"]
order = [5, 1, 2, 3, 4, 0, 6, 7]
columns = torch.cat([torch.arange(64 * i, 64 * (i + 1)) for i in order])
swapped = [split_heads(x @ W[:, columns], 8) for W in (Wq, Wk, Wv)]
answer = join_heads(gf.attention(*swapped).weighted_values) @ Wo[columns]  # the rows of W_O, in the same order
expected = join_heads(gf.attention(q_heads, k_heads, v_heads).weighted_values) @ Wo
torch.testing.assert_close(answer, expected, atol=1e-12, rtol=0)
# A head's number means nothing: after another training run, a different head, or several, may do the same work.

# %% [markdown]
# **5.** *Medium · 5 min · a small change of code.* Change the first example so that *one* big head finds *I* as well:
# which numbers of the query have to become 0? What is then lost?
#
# <details><summary>Hint</summary>
#
# One half of the query asks who, the other half asks where.
#
# </details>

# %% tags=["hide-cell"]
who_only = query.clone()
who_only[4:] = 0
answer = (keys @ who_only / math.sqrt(8)).softmax(-1)
assert words[answer.argmax()] == "I"
# The big head now asks "who?" alone. "Where?" would take another head, as wide as this one.

# %% [markdown]
# **6.** *Easy · 2 min · on the stage.* Can a single head decide a word? [Switch one off on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=changes&task=head),
# so that “il” has less than half of the probability.
#
# <details><summary>Hint</summary>
#
# Under *Heads*, try cross-attention first. The figure's sentence names a head that “il” depends on.
#
# </details>
#
# ## Next
#
# What the heads return does not replace a word's vector: in the model it is *added* to it ([add & norm](residual.py)).
#
# Not every word may look at every other one: padding is not a word, and a translation must not see its own future.
# [Masks](masks.py) say which word may look at which.
