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
# # Attention
#
# ## The question
#
# Read these two sentences.
#
# > I **swam** across the **river** to get to the other **bank**.
# >
# > I **drove** across the **road** to get to the **bank**.
#
# You know at once which bank is the edge of a river and which one keeps money. The word itself does not tell you: it
# has the same four letters in both sentences. Other words tell you, and they are far away.
#
# To a model, a word is a list of numbers, a *vector*, taken from a table ([embeddings](embeddings.py)). The table
# has one row for *bank*, so both sentences start with the same vector. This is the question of the chapter:
#
# **How can a word's vector collect the information it needs from the other words of the sentence, however far away they
# are?**
#
# The paper, *Attention Is All You Need* (Vaswani et al., 2017), answers with *attention*: each word takes a weighted
# average over all words and computes the weights itself. This chapter builds attention up in small steps; in the end it
# fits into one line of code.

# %%
import math

import torch

import glassformer as gf
from glassformer.watch import pictures

torch.manual_seed(1)
torch.set_printoptions(precision=4, sci_mode=False)

# %% [markdown]
# ## The intuition
#
# ### A weighted average
#
# Start with five words and three made-up coordinates that a person can read: how much a word has to do with *water*,
# with *money*, and with *moving*. The word *bank* is half water, half money.

# %%
words = ["I", "swam", "to", "the", "bank"]
x = torch.tensor(
    [
        # water, money, moving
        [0.0, 0.0, 0.0],  # I
        [3.0, 0.0, 1.0],  # swam
        [0.0, 0.0, 1.0],  # to
        [0.0, 0.0, 0.0],  # the
        [2.0, 2.0, 0.0],  # bank
    ]
)
x.shape  # 5 words, 3 coordinates

# %% [markdown]
# Mix the words: 50 % of the new *bank* comes from the old one, 40 % from *swam*, and the other words share the rest.
# When no weight is negative and all of them sum to 1, the mix is a *weighted average*. In Python, `weights @ x`
# computes it: it multiplies each row of `x` by its weight and adds up the products.

# %%
fixed = torch.tensor([0.03, 0.40, 0.04, 0.03, 0.50])
fixed @ x  # 0.03 · I + 0.40 · swam + 0.04 · to + 0.03 · the + 0.50 · bank

# %% tags=["hide-input", "check"]
assert math.isclose(fixed.sum(), 1, rel_tol=1e-6)

# %% [markdown]
# The new vector has more water (2.2) than money (1.0). So far, so good. But the weights say "take 40 % of the second
# word", whatever the second word is. In "On Monday I went to the bank" the second word is *Monday*. Fixed weights
# cannot know where the helpful word is. **The weights have to depend on the words.**
#
# ### The dot product: do two profiles agree?
#
# We need a number that says how well two vectors fit together. Multiply coordinate by coordinate and add up: that is the
# *dot product* (`@` between two vectors). It is large if both vectors are large at the same places. Where one coordinate
# is positive and the other negative, the product is negative and makes the sum smaller. A coordinate that is 0 in one of
# the vectors does not count. Compare *bank* with *swam*, and with *desert*. A desert is dry, the opposite of water, so
# its coordinate for water is negative:

# %%
bank, swam = x[4], x[1]
desert = torch.tensor([-3.0, 1.0, 0.0])  # the opposite of water, a little money
print("bank and swam:  ", (bank * swam).tolist(), "sum", (bank @ swam).item())
print("bank and desert:", (bank * desert).tolist(), "sum", (bank @ desert).item())

# %% tags=["hide-input", "check"]
assert bank @ swam == 2 * 3 + 2 * 0 + 0 * 1 == 6
assert bank @ desert == 2 * (-3) + 2 * 1 + 0 * 0 == -4

# %% [markdown]
# The picture shows this cell by cell: the two vectors one above the other, their products below, and the sum at the
# right. Blue is positive, orange negative. Look at the bottom rows: *water* decides both sums.

# %% tags=["hide-input"]
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle


def cells(axes, left, top, values, shape=".0f", limit=None):
    """Draw a matrix as coloured cells with numbers, its upper left corner at (left, top)."""
    rows = torch.as_tensor(values).tolist()
    limit = limit or max(abs(value) for row in rows for value in row) or 1
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            colour = pictures.BLUE if value >= 0 else pictures.ORANGE
            face = (*to_rgb(colour), 0.75 * min(1, abs(value) / limit))
            axes.add_patch(Rectangle((left + j, top - i - 1), 1, 1, facecolor=face, edgecolor=pictures.GREY, lw=0.6))
            text = format(value, shape).replace("-", "−")
            axes.text(left + j + 0.5, top - i - 0.5, text, ha="center", va="center", fontsize=9)


def dot_products(pairs, columns, alt, width=7.4, height=1.9, label=1.9):
    """Draw (name, vector, name, vector) pairs, their products and the sums."""
    figure, several = pictures.canvas(width, height, ncols=len(pairs), squeeze=False)
    for axes, (first, a, second, b) in zip(several[0], pairs, strict=True):
        n = len(columns)
        limit = max(a.abs().max(), b.abs().max()).item()
        cells(axes, 0, 3.5, [a.tolist()], limit=limit)
        cells(axes, 0, 2.4, [b.tolist()], limit=limit)
        cells(axes, 0, 1.0, [(a * b + 0.0).tolist()])
        for y, name in ((3.0, first), (1.9, second), (0.5, "product")):
            axes.text(-0.12, y, name, ha="right", va="center", fontsize=9)
        for j, name in enumerate(columns):
            axes.text(j + 0.5, 3.65, name, ha="center", va="bottom", fontsize=8)
        axes.text(n + 0.12, 0.5, f"sum {(a @ b).item():.0f}".replace("-", "−"), va="center", fontsize=11, weight="bold")
        axes.set(xlim=(-label, n + 1.5), ylim=(-0.1, 4.3))
        axes.axis("off")
    return pictures.picture(figure, alt)


dot_products(
    [("bank", bank, "swam", swam), ("bank", bank, "desert", desert)],
    ["water", "money", "moving"],
    "The vector of “bank” (2, 2, 0) above that of “swam” (3, 0, 1): products 6, 0, 0, sum 6. Above that of “desert” (−3, 1, 0): products −6, 2, 0, sum −4.",
)

# %% [markdown]
# <details>
# <summary>Another example: which film for which viewer?</summary>
#
# Describe a film by how much *romance*, *action* and *comedy* it has, and a viewer by how much they like each of these
# (negative: they dislike it). The dot product says how well the film fits the viewer. The picture below has one film and
# two viewers. The romance fan's products are all blue, which means *yes* to this film. The action fan's are mostly
# orange, which means *no*. What a viewer does not care about (0) does not count.
#
# </details>

# %% tags=["hide-cell"]
film = torch.tensor([4.0, -1.0, 3.0])  # a romantic comedy, hardly any action
romantic = torch.tensor([3.0, -2.0, 2.0])
thrilled = torch.tensor([-2.0, 4.0, 1.0])
dot_products(
    [("film", film, "romance fan", romantic), ("film", film, "action fan", thrilled)],
    ["romance", "action", "comedy"],
    "The film's profile (4, −1, 3) above the romance fan's (3, −2, 2): products 12, 2, 6, sum 20. Above the action fan's (−2, 4, 1): sum −9.",
)

# %% [markdown]
# Two facts will matter later. The dot product grows with the size of the vectors' numbers, not only with their
# agreement, so it can exceed 1. And because it is a sum, one strong disagreement can outweigh several agreements.
#
# ### Weights that depend on the words
#
# Now let *bank* look for the words that fit it: take the dot product of its vector with every vector of the sentence.
# These numbers are called *scores*. Weights have to be positive and sum to 1. The *softmax* turns scores into such
# weights: it raises $e$ (2.718…) to the power of each score, which makes negative scores positive, too, then divides each
# result by the sum of them all. For
# scores $s_1, s_2, \ldots$ the weight of word $j$ is
#
# $$\mathrm{softmax}(s)_j = \frac{e^{s_j}}{\sum_i e^{s_i}}$$

# %%
scores = x @ x[4]  # the dot product of each word with "bank"
weights = torch.exp(scores) / torch.exp(scores).sum()
for word, score, weight in zip(words, scores, weights, strict=True):
    print(f"{word:5} score {score:4.1f}  weight {weight:.4f}")

print("bank becomes", weights @ x)

# %% tags=["hide-input", "check"]
torch.testing.assert_close(weights, scores.softmax(0))

# %% [markdown]
# *Bank* has turned towards water. In another sentence the same word, with the same vector, turns the other way:

# %%
x_paid = x.clone()
x_paid[1] = torch.tensor([0.0, 3.0, 1.0])  # "paid" instead of "swam"
weights_paid = (x_paid @ x_paid[4]).softmax(0)
new, new_paid = weights @ x, weights_paid @ x_paid
print("… swam to the bank:", new)
print("… paid to the bank:", new_paid)

# %% tags=["hide-input", "check"]
assert torch.equal(x[4], x_paid[4])
assert new[0] > new[1]
assert new_paid[1] > new_paid[0]

# %% [markdown]
# Here the average takes the place of the word's vector. In the model it is *added* to it ([add & norm](residual.py)),
# after [one more matrix](#the-mathematics) has given it the same width. So attention *moves* a vector. A later page
# draws the move in the trained model, with [an arrow for each word that pushes
# *bank*](geometry.py#what-attention-adds-to-a-vector).
#
# This is already self-attention: *self*, because the words of one sentence look at each other. One weakness is left.
# The weight goes to words that resemble *bank*, so every word mostly finds itself (*bank* with 88 %), and nothing here
# can be learned. A word still has to be able to *look for* something different from what it *is*.
#
# ### Query, key, value: where the words come from
#
# The words come from databases. You hand a database a *query*; it compares the query with the *keys* of its records and
# hands back the *value* of the record with the same key.

# %%
database = {"swam": "water", "paid": "money"}  # key: value
database["swam"]  # the query "swam" equals one key

# %% [markdown]
# Attention is a *soft* lookup. It compares a query with each key by their dot product, which is large if both are large
# at the same places; the fit need not be exact. It hands back not one value but an average of all values, each weighted
# by how well its key fits.
#
# From its own vector, each word makes three more. Think of drawers with labels:
#
# - its **query** is a *question*: what am I looking for?
# - its **key** is the *label* on its drawer: what can other words find me by?
# - its **value** is the *content* of its drawer: what do I hand over to a word whose question fits the label?
#
# The word *bank* asks: "which word says what kind of bank I am?" Here is what such vectors could look like. The
# coordinates of a trained model have no names; we made these names up so that you can read them. First come **two
# key vectors** by themselves: each cell answers one question that another word may ask, and a negative number answers
# "certainly not". *Swam* is a clue and a verb. *The* is neither; it is only frequent.

# %%
properties = ["clue", "verb", "frequent"]
key_swam = torch.tensor([3.0, 4.0, -1.0])
key_the = torch.tensor([-1.0, -2.0, 4.0])
# "bank" looks for a clue, which is often a verb and seldom a frequent word:
query_bank = torch.tensor([2.0, 1.0, -1.0])

# %% tags=["hide-input"]
pictures.heat_map(
    torch.stack([key_swam, key_the]),
    ["key swam", "key the"],
    properties,
    alt="Two key vectors as coloured cells. “swam”: clue 3, verb 4, frequent −1. “the”: clue −1, verb −2, frequent 4.",
    numbers=".0f",
    width=4.6,
)

# %% [markdown]
# Then the query is compared with each key: multiply cell by cell, and add up. Look at the sums: *bank* finds *swam*, and passes over *the*.

# %% tags=["hide-input"]
dot_products(
    [("key swam", key_swam, "query bank", query_bank), ("key the", key_the, "query bank", query_bank)],
    properties,
    "The query of “bank” with the key of “swam”: sum 11; with the key of “the”: sum −8.",
    label=2.8,
)

# %% tags=["hide-input", "check"]
assert query_bank @ key_swam == 11
assert query_bank @ key_the == -8

# %% [markdown]
# *Bank* has one row in the table, so here it asks the same question in every sentence. In the first layer of a model, its
# question depends on its position, too, but not on the other words. When the second layer begins, the vector of *bank*
# already holds something of *swam* or *paid*, so there the same word can ask different questions.
#
# ### Why keys and values are different vectors
#
# Being found and being useful are two different things. *Swam* and *paid* are both *found* because they are clues and
# verbs: they can have the same key. What *bank* *needs* is what they say, *water* or *money*, and the key does not
# contain that. See what happens if the key itself is handed over:

# %%
keys = torch.stack([key_swam, key_the])  # "paid" has the key of "swam"
weights = (keys @ query_bank).softmax(0)
# Values: (water, money)
value_swam, value_paid, value_the = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
print("keys handed over, swam or paid:", weights @ keys)
print("values handed over, swam:", weights @ torch.stack([value_swam, value_the]))
print("values handed over, paid:", weights @ torch.stack([value_paid, value_the]))

# %% tags=["hide-input", "check"]
assert (weights @ torch.stack([value_swam, value_the]))[0] > 0.99
assert (weights @ torch.stack([value_paid, value_the]))[1] > 0.99

# %% [markdown]
# If the key is also the value, the answer is "a clue, a verb", which only repeats the question. With separate values,
# the same search brings home *water* or *money*.
#
# <details>
# <summary>Another example: what does <em>it</em> stand for?</summary>
#
# Take "The animal didn't cross the street because **it** was too tired". To write *it* in French, a model needs the
# gender of the noun that *it* stands for. So *it* asks: "which noun is something that can be tired?" If the sentence ends
# in "too wide", *it* asks for something wide. Both words *it* start with the same vector, so in the first layer they ask
# the same. Suppose that the first layer has brought *tired* or *wide* into *it*, and look at the second layer. In the
# pictures below, the tired *it* finds *animal*, the wide *it* finds *street*.
#
# The key says that a word is a noun and alive. What *it* needs is the gender of the noun's French translation. *Cat* (*chat*,
# masculine) and *mouse* (*souris*, feminine) have the same key, but different values.
#
# </details>

# %% tags=["hide-cell"]
key_animal, key_street = torch.tensor([[3.0, 4.0, -1.0], [3.0, -3.0, 4.0]])  # noun, alive, wide
query_tired = torch.tensor([2.0, 3.0, 0.0])  # looks for a noun that is alive, and does not care about width
query_wide = torch.tensor([2.0, -1.0, 3.0])  # looks for a noun that is wide, and rather not alive
dot_products(
    [
        ("key animal", key_animal, "query (tired)", query_tired),
        ("key street", key_street, "query (tired)", query_tired),
    ],
    ["noun", "alive", "wide"],
    "The query of the tired “it” with the key of “animal”: sum 18; with the key of “street”: sum −3.",
    label=2.8,
)

# %% tags=["hide-cell"]
dot_products(
    [("key animal", key_animal, "query (wide)", query_wide), ("key street", key_street, "query (wide)", query_wide)],
    ["noun", "alive", "wide"],
    "The query of the wide “it” with the key of “animal”: sum −1; with the key of “street”: sum 21.",
    label=2.8,
)

# %% tags=["hide-input", "check"]
keys = torch.stack([key_animal, key_street])
gender_cat = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # (masculine, feminine): le chat, la rue
gender_mouse = torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # la souris, la rue
assert ((keys @ query_tired).softmax(0) @ gender_cat)[0] > 0.99
assert ((keys @ query_tired).softmax(0) @ gender_mouse)[1] > 0.99

# %% [markdown]
# ## The mathematics
#
# Write the sentence as a matrix $x$ with one row per word: $S$ words (the sentence's length), each with
# $d_\mathrm{model}$ coordinates. Three matrices of *learned* numbers (found by [training](training.py)) turn each
# row into a query, a key and a value:
#
# $$Q = x\,W_Q,\qquad K = x\,W_K,\qquad V = x\,W_V$$
#
# | symbol | what it is | shape |
# |---|---|---|
# | $x$ | the words' vectors | $S \times d_\mathrm{model}$ |
# | $W_Q$, $W_K$ | learned; make queries and keys | $d_\mathrm{model} \times d_k$ |
# | $W_V$ | learned; makes values | $d_\mathrm{model} \times d_v$ |
# | $Q$, $K$ | a query and a key for each word | $S \times d_k$ |
# | $V$ | a value for each word | $S \times d_v$ |
# | $QK^\top$ | every query with every key: the scores | $S \times S$ |
#
# $d_k$ is the *width* (number of coordinates) of a query. A key must have the same width, because otherwise the dot
# product of query and key is not defined. (A single coordinate means nothing: turn all queries and keys by the same
# angle, and [every score stays the same](geometry.py#the-axes-of-queries-and-keys-mean-nothing).) $d_v$ is the width of
# a value and may be different. (One more learned matrix, $W_O$, brings the joined [heads](heads.py) back to
# $d_\mathrm{model}$.) Put together, this is equation 1 of the paper (§3.2.1):
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right) V$$
#
# $K^\top$ is $K$ with rows and columns swapped, so row $t$, column $s$ of $QK^\top$ holds the dot product of query $t$
# and key $s$. The softmax runs along each row: each query has its own weights, which sum to 1. [A section
# below](#why-the-scores-are-divided) explains why the scores are divided by $\sqrt{d_k}$.
#
# **Are the three $x$ the same?** In *self-attention* yes: queries, keys and values are all made from one and the same
# $x$. In *cross-attention*, where a translation looks at its source ([the decoder](decoder.py)), no: queries are
# made from the decoder's own words, keys and values from the encoder's output, the `memory`. (Keys and values always
# come from the same words: each key is the label of its own value.)
#
# ## Line by line
#
# Three words of "the bank of the river", namely *bank*, *of* and *river*, make an example small enough to check each
# number with a pencil. A word has 4 coordinates ($d_\mathrm{model} = 4$), a query, key or value has 3 ($d_k = d_v = 3$).
# As in a real model, the coordinates have no names. We compute in float64 (about 16 digits).
#
# <details>
# <summary>“set yourself free”: the same numbers elsewhere</summary>
#
# A published walk through attention computes with the same matrices, for the three words "set yourself free". If you come
# from there, read *bank* as *set*, *of* as *yourself*, and *river* as *free*.
#
# </details>

# %%
words = ["bank", "of", "river"]
x = torch.tensor([[1, 0, 1, 0], [1, 2, 2, 0], [1, 2, 1, 1]], dtype=torch.float64)
Wq = torch.tensor([[2, 1, 1], [0, 2, 2], [0, 1, 0], [2, 2, 1]], dtype=torch.float64)
Wk = torch.tensor([[1, 1, 2], [2, 0, 2], [0, 2, 0], [2, 2, 1]], dtype=torch.float64)
Wv = torch.tensor([[2, 1, 1], [1, 2, 1], [2, 2, 0], [0, 2, 0]], dtype=torch.float64)
print("x", tuple(x.shape), " Wq, Wk, Wv", tuple(Wq.shape))

# %% [markdown]
# First the queries. Row "bank" of $x$ is (1, 0, 1, 0), so its query is the first row of $W_Q$ plus the third:
# (2, 1, 1) + (0, 1, 0).

# %%
q = x @ Wq  # (3, 4) @ (4, 3) -> (3, 3)
q

# %% tags=["hide-input", "check"]
assert q.tolist() == [[2, 2, 1], [2, 7, 5], [4, 8, 6]]

# %%
k = x @ Wk  # (3, 4) @ (4, 3) -> (3, 3)
k

# %% tags=["hide-input", "check"]
assert k.tolist() == [[1, 3, 2], [5, 5, 6], [7, 5, 7]]

# %%
v = x @ Wv  # (3, 4) @ (4, 3) -> (3, 3)
v

# %% tags=["hide-input", "check"]
assert v.tolist() == [[4, 3, 1], [8, 9, 3], [6, 9, 3]]

# %% [markdown]
# Now the scores. Each cell is the dot product of its row's query and its column's key.

# %%
raw = q @ k.T  # (3, 3) @ (3, 3) -> (3 queries, 3 keys)
raw

# %% tags=["hide-input", "check"]
assert raw.tolist() == [[10, 26, 31], [33, 75, 84], [40, 96, 110]]

# %% [markdown]
# Here is the first row, cell by cell. The query of "bank" is the same in all three pictures; watch the sum grow with the
# key.

# %% tags=["hide-input"]
dot_products(
    [(f"key {word}", k[j], "query bank", q[0]) for j, word in enumerate(words)],
    ["", "", ""],
    "The query (2, 2, 1) of “bank” times the keys of “bank”, “of” and “river”, cell by cell: sums 10, 26 and 31.",
    height=1.7,
    label=2.6,
)

# %% [markdown]
# Divide by $\sqrt{d_k} = \sqrt{3}$:

# %%
scores = raw / math.sqrt(3)
scores

# %% tags=["hide-input", "check"]
expected = [
    [5.7735, 15.0111, 17.8979],
    [19.0526, 43.3013, 48.4974],
    [23.0940, 55.4256, 63.5085],
]
expected = torch.tensor(expected, dtype=torch.float64)
torch.testing.assert_close(scores, expected, atol=5e-5, rtol=0)  # 4 decimals are given

# %% [markdown]
# Then the softmax of each row. (The scores are still far apart, because we chose numbers that are easy to compute with.
# Random ones [would be closer](#why-the-scores-are-divided).) The largest score takes nearly all the weight: a
# difference of 10 between two scores is a factor of $e^{10} \approx 22\,000$ between their weights.
#
# First we subtract the largest score of each row. The weights stay the same, $\mathrm{softmax}(s) = \mathrm{softmax}(s
# - \max s)$, because numerator and denominator are divided by the same number. But no power can overflow: in float32,
# the power of our raw score 110 is infinite, and ∞/∞ is NaN.

# %%
powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
weights = powers / powers.sum(dim=-1, keepdim=True)  # each row by its own sum
for word, row in zip(words, weights.tolist(), strict=True):
    print(f"{word:5}", "  ".join(f"{value:.4e}" for value in row))

# %% tags=["hide-input", "check"]
expected = [
    [5.1392e-06, 0.052812, 0.947183],
    [1.6213e-13, 0.0055073, 0.9944927],
    [2.8058e-18, 3.0868e-04, 0.9996913],
]
expected = torch.tensor(expected, dtype=torch.float64)  # rounded to the digits shown
torch.testing.assert_close(weights, expected, atol=0, rtol=2e-5)
torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, dtype=torch.float64))
torch.testing.assert_close(weights, scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
unshifted = raw.float().exp() / raw.float().exp().sum(dim=-1, keepdim=True)
assert raw.float().exp()[2, 2] == math.inf and unshifted[2, 2].isnan()

# %% [markdown]
# Last, the weighted sum of the values; one matrix product computes it for all three words:

# %%
output = weights @ v  # (3 queries, 3 keys) @ (3 keys, 3) -> (3, 3)
for row in output.tolist():
    print("  ".join(f"{value:.6f}" for value in row))

# %% tags=["hide-input", "check"]
expected = [
    [6.105614, 8.999969, 2.999990],
    [6.011015, 9.000000, 3.000000],
    [6.000617, 9.000000, 3.000000],
]
expected = torch.tensor(expected, dtype=torch.float64)
torch.testing.assert_close(output, expected, atol=5e-7, rtol=0)  # 6 decimals are given

# %% [markdown]
# **In words.** "bank" attends 0.0005 % to itself, 5.3 % to "of" and 94.7 % to "river". So its output is nearly the
# value of "river", (6, 9, 3), with a little of the value of "of", (8, 9, 3). The picture shows the whole
# computation for "bank". From left to right: the scores, the weights, the values, and each value times its weight. The
# last row is the sum of the rows above it.

# %% tags=["hide-input", "check"]
shares = weights[0]
assert [f"{100 * share:.4f}" for share in shares[:1]] == ["0.0005"]
assert [f"{100 * share:.1f}" for share in shares[1:]] == ["5.3", "94.7"]

# %% tags=["hide-input"]
figure, axes = pictures.canvas(7.6, 2.4)
cells(axes, 0, 3, scores[0][:, None], ".2f")
cells(axes, 2.6, 3, weights[0][:, None], ".3f")
cells(axes, 5.2, 3, v, limit=9)
cells(axes, 9.8, 3, weights[0][:, None] * v, ".2f", limit=9)
cells(axes, 9.8, -0.35, output[:1], ".2f", limit=9)
for i, word in enumerate(words):
    axes.text(-0.15, 2.5 - i, word, ha="right", va="center", fontsize=10)

for place, name in ((0.5, "score"), (3.1, "weight"), (6.7, "value"), (11.3, "weight × value")):
    axes.text(place, 3.2, name, ha="center", va="bottom", fontsize=10)

for place, sign in ((1.8, "softmax"), (4.4, "×"), (9.0, "=")):
    axes.text(place, 1.5, sign, ha="center", va="center", fontsize=8 if len(sign) > 1 else 13)

axes.text(9.65, -0.85, "sum: the output of “bank”", ha="right", va="center", fontsize=10)
axes.set(xlim=(-1.9, 13), ylim=(-1.5, 3.9))
axes.axis("off")
pictures.picture(
    figure,
    "For the query “bank”: scores 5.77, 15.01, 17.90; weights 0.000, 0.053, 0.947; the values times their weights; "
    "their sum (6.11, 9.00, 3.00).",
)

# %% [markdown]
# **With the causal mask.** The decoder, the half of the model that writes the translation, works from left to right, so
# a word may look at itself and at the words before it. Every other word gets the score $-\infty$ *before* the softmax,
# and hence the weight $e^{-\infty} = 0$. In our masks, True means *may attend*. ([Masks](masks.py) have their own
# chapter.)

# %%
mask = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
masked = scores.masked_fill(~mask, -math.inf)
causal = masked.softmax(dim=-1) @ v
causal

# %% tags=["hide-input", "check"]
expected = [[4, 3, 1], [8.000000, 9.000000, 3.000000], [6.000617, 9.000000, 3.000000]]
expected = torch.tensor(expected, dtype=torch.float64)
torch.testing.assert_close(causal, expected, atol=5e-7, rtol=0)
assert causal[0].tolist() == v[0].tolist()  # "bank" sees itself alone: its own value

# %% [markdown]
# **Without any matrix product.** If a matrix product feels like magic, here are the loops inside it, in plain Python:
# for each query, for each key, over each coordinate.


# %%
def attention_with_loops(query, key, value):
    """Return softmax(Q Kᵀ / √d_k) V of nested lists."""
    output = []
    for q_row in query:
        row = []
        for k_row in key:
            score = 0.0
            for a, b in zip(q_row, k_row, strict=True):
                score += a * b
            row.append(math.exp(score / math.sqrt(len(q_row))))
        total = sum(row)
        out = [0.0] * len(value[0])
        for e, v_row in zip(row, value, strict=True):
            for j, content in enumerate(v_row):
                out[j] += e / total * content
        output.append(out)
    return output


by_loops = attention_with_loops(q.tolist(), k.tolist(), v.tolist())
by_loops = torch.tensor(by_loops, dtype=torch.float64)
by_loops

# %% tags=["hide-input", "check"]
torch.testing.assert_close(by_loops, output, atol=1e-12, rtol=0)

# %% [markdown]
# ## The same from the library
#
# [`gf.attention`](../src/glassformer/model/attention.py#attention) takes query, key and value, in this order, and
# returns the output and the weights. It has two steps, which you can also call separately:
# [`attention_scores`](../src/glassformer/model/attention.py#attention_scores) and
# [`attention_weights`](../src/glassformer/model/attention.py#attention_weights).

# %%
from glassformer.model.attention import MultiHeadAttention, attention_scores, attention_weights

attended = gf.attention(q, k, v)
with_mask = gf.attention(q, k, v, mask).weighted_values
attended

# %% tags=["hide-input", "check"]
torch.testing.assert_close(attention_scores(q, k), scores, atol=1e-12, rtol=0)
torch.testing.assert_close(attention_weights(scores), weights, atol=1e-12, rtol=0)
torch.testing.assert_close(attended.weights, weights, atol=1e-12, rtol=0)
torch.testing.assert_close(attended.weighted_values, output, atol=1e-12, rtol=0)
torch.testing.assert_close(attended.weighted_values, by_loops, atol=1e-12, rtol=0)
torch.testing.assert_close(with_mask, causal, atol=1e-12, rtol=0)

# %% [markdown]
# PyTorch has a fused version that does all steps in one go. It is faster but never shows its weights. The library uses
# it whenever nobody asks to see them.

# %% tags=["hide-input", "check"]
fused = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
torch.testing.assert_close(fused, output, atol=1e-12, rtol=0)

# %% [markdown]
# Cross-attention is the same function. Only the queries come from somewhere else: two target words ask three source
# words.

# %%
x_target = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]], dtype=torch.float64)  # 2 words
cross = gf.attention(x_target @ Wq, x @ Wk, x @ Wv)
cross.weights  # a row for each target word, a column for each source word

# %% tags=["hide-input", "check"]
assert cross.weights.shape == (2, 3)
assert cross.weighted_values.shape == (2, 3)

# %% [markdown]
# ## Why the scores are divided
#
# A dot product is a sum of $d_k$ products. Suppose the coordinates of queries and keys are random, independent, with
# mean 0 and variance 1 (the *variance* is the average squared distance from the mean). When training begins, they are
# roughly so in this library: a [norm](residual.py) gives the numbers of the words' vectors mean 0 and variance 1, and
# the weights of $W_Q$ and $W_K$ start as random numbers with mean 0 and variance $1/d_\mathrm{model}$, of which each
# coordinate adds up $d_\mathrm{model}$. Then each product of two coordinates has mean $0 \cdot 0 = 0$ and variance $1
# \cdot 1 = 1$. Variances of independent terms add up, so the sum of $d_k$ products has variance $d_k$. That is footnote
# 4 of the paper. (PyTorch's `nn.Linear` draws its weights with variance $1/(3\,d_\mathrm{model})$. Then a coordinate
# has variance 1/3, and a score starts with a ninth of the variance.) Don't take it on trust; measure it:

# %%
widths = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
generator = torch.Generator().manual_seed(1)
variances, scaled_variances, largest, scaled_largest = [], [], [], []
for d_k in widths:
    query = torch.randn(2000, 1, d_k, generator=generator)
    key = torch.randn(2000, 10, d_k, generator=generator)  # 10 keys for each query
    dots = (query @ key.mT).squeeze(1)  # (2000, 10)
    variances.append(dots.var().item())
    scaled_variances.append((dots / math.sqrt(d_k)).var().item())
    # The weight of the best key, on average:
    largest.append(dots.softmax(-1).amax(-1).mean().item())
    scaled_largest.append((dots / math.sqrt(d_k)).softmax(-1).amax(-1).mean().item())

for d_k, variance, scaled in zip(widths, variances, scaled_variances, strict=True):
    print(f"d_k {d_k:3}  variance {variance:6.1f}  divided by √d_k: {scaled:.2f}")

# %% tags=["hide-input", "check"]
for d_k, variance, scaled in zip(widths, variances, scaled_variances, strict=True):
    # 20 000 samples: an error of a few per cent.
    assert abs(variance / d_k - 1) < 0.1
    assert abs(scaled - 1) < 0.1

untrained = MultiHeadAttention(512, 8, 64, 64, dropout=0.0)
with torch.no_grad():
    normed = torch.nn.functional.layer_norm(torch.randn(1, 200, 512, generator=generator), (512,))
    for one in untrained.query_key_value(normed)[:2]:
        assert abs(one.mean()) < 0.05 and abs(one.var() - 1) < 0.1  # 200 vectors: an error of a few per cent
    query, key = (torch.nn.Linear(512, 512)(normed)[0].view(200, 8, 64).transpose(0, 1) for _ in range(2))
    assert abs(3 * query.var() - 1) < 0.1 and abs(9 * (query @ key.mT / 8).var() - 1) < 0.2

# %% tags=["hide-input"]
figure, (left, right) = pictures.canvas(7.4, 3, ncols=2)
left.loglog(widths, variances, "o-", color=pictures.ORANGE, label="Q Kᵀ")
left.loglog(widths, scaled_variances, "s--", color=pictures.BLUE, label="Q Kᵀ / √dₖ")
left.set(xlabel="dₖ", ylabel="variance of a score")
right.semilogx(widths, largest, "o-", color=pictures.ORANGE, label="Q Kᵀ")
right.semilogx(widths, scaled_largest, "s--", color=pictures.BLUE, label="Q Kᵀ / √dₖ")
right.set(xlabel="dₖ", ylabel="largest of 10 weights", ylim=(0, 1))
for axes in (left, right):
    axes.legend(frameon=False, fontsize=9)

pictures.picture(
    figure,
    "Left: the variance of a score grows from 1 to 512 with d_k; divided by √d_k it stays at 1. "
    "Right: undivided, the largest of ten weights rises to over 0.9; divided, it stays near 0.3.",
)

# %% [markdown]
# On the left, both axes count in factors of ten. The orange line rises as $d_k$ does, and the blue line stays
# at 1: dividing a number by $\sqrt{d_k}$ divides its variance by $d_k$. The right half shows the effect on the weights.
# Random queries have no reason to prefer any key, yet undivided scores at $d_k = 512$ give nearly all the weight to one
# key of the ten. Such a softmax is called *saturated*.
#
# Why is that bad? Training asks how the loss would change if a score were a little different: that is the gradient. In a
# saturated softmax, a small change of a score changes the weights hardly at all, so the queries and keys of such a row
# learn almost nothing. (Its values still learn.)
#
# <details>
# <summary>How little? The gradient of the softmax</summary>
#
# How fast each weight $p_i$ changes with each score $s_j$ is its *gradient*, written $\partial p_i / \partial s_j$. For
# the softmax it is $p_i\,(1 - p_i)$ for $i = j$ and $-p_i\,p_j$ otherwise. If one weight is nearly 1 and the others are
# nearly 0, all these gradients are nearly 0. The code below multiplies the same three scores by 8 (as for $d_k = 64$),
# then by 22.6 (as for 512). The largest gradient falls from 0.2 to a few ten-thousandths, and then to a number that no
# training will notice.
#
# </details>

# %% tags=["hide-cell"]
calm = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
for factor in (1, math.sqrt(64), math.sqrt(512)):
    s = calm * factor
    p = s.softmax(0)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(0), s)
    torch.testing.assert_close(jacobian, torch.diag(p) - torch.outer(p, p))
    shown = ", ".join(f"{one:.6f}" for one in p.tolist())
    print(f"scores × {factor:5.2f}: weights {shown}; largest gradient {jacobian.abs().max():.1e}")

# %% tags=["hide-input", "check"]
assert largest[-1] > 0.9
assert scaled_largest[-1] < 0.4
assert jacobian.abs().max() < 1e-9

# %% [markdown]
# A model can *learn* sharp weights where it needs them. The division makes sure that it does
# not *start* with them.
#
# ## The word bank in a trained model
#
# The demo is a small model that translates English into French. Its encoder has two layers, each with eight attentions
# side by side, called *heads* ([the next chapter](heads.py)). One head cannot ask two questions: it gives each word a
# single row of weights. Layers and heads are counted from 0. `encoder_weights`
# (folded) returns the weights that they compute for a sentence, and `looks_hardest` searches all heads for the one in
# which a word looks hardest at another word. We read the row of *bank*, which holds the weights that *bank* gives to
# each word.

# %% tags=["hide-input"]
from glassformer.built_in import trained_demo

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model, tokenizer = translator.model, translator.bundle.source_tokenizer


def encoder_weights(sentence):
    """Return the words, and the encoder's weights (layers, heads, queries, keys)."""
    ids = [*tokenizer.encode(sentence), model.config.eos_id]
    with torch.no_grad(), gf.record(model, "encoder.*.weights") as trace:
        model.encode(torch.tensor([ids]))
    return tokenizer.tokens(ids), torch.stack([tensor[0] for tensor in trace.values()])


def looks_hardest(words, weights, asking, at):
    """Return (layer, head, weight) where one word looks hardest at another one."""
    seen = weights[:, :, len(words) - 1 - words[::-1].index(asking), words.index(at)]
    layer, head = divmod(seen.argmax().item(), seen.shape[1])
    return layer, head, seen.max().item()


# %%
swam = "I swam across the river to get to the other bank."
drove = "I drove across the road to get to the bank."
for sentence, clues in ((swam, ("swam", "river")), (drove, ("drove", "road"))):
    tokens, all_weights = encoder_weights(sentence)
    print(f"equal weights would be {1 / len(tokens):.2f}")
    for clue in clues:
        layer, head, weight = looks_hardest(tokens, all_weights, "bank", clue)
        print(f"bank → {clue:6} layer {layer}, head {head}: weight {weight:.2f}")

# %% tags=["hide-input", "check"]
assert torch.allclose(all_weights.sum(-1), torch.ones(()), atol=1e-5)

# %% [markdown]
# The picture draws these heads as lines from *bank* (top) to each word that it looks at (bottom); the thicker the line,
# the larger the weight. `<eos>` marks the end of the sentence. Look at where the lines of each colour end in each
# sentence. Every head is drawn in both sentences; below the pictures is the word that it looks at most.


# %% tags=["hide-input"]
CLUES = {swam: ("swam", "river"), drove: ("drove", "road")}
found = sorted(
    {looks_hardest(*encoder_weights(sentence), "bank", clue)[:2] for sentence in CLUES for clue in CLUES[sentence]}
)


def bank_lines(sentence):
    """Draw the row of "bank" of the heads that look hardest at the clues of one of the two sentences."""
    tokens, all_weights = encoder_weights(sentence)
    return pictures.attention_lines(
        torch.stack([all_weights[layer, head] for layer, head in found]),
        tokens,
        tokens,
        query=tokens.index("bank"),
        names=[f"layer {layer}, head {head}" for layer, head in found],
        alt=f"Lines from “bank” to the other words of “{sentence}”, of the heads that look hardest at the clues.",
    )


bank_lines(swam)

# %% tags=["hide-input"]
bank_lines(drove)

# %% tags=["hide-input"]
for layer, head in found:
    most = []
    for sentence in CLUES:
        tokens, all_weights = encoder_weights(sentence)
        row = all_weights[layer, head, tokens.index("bank")]
        most.append(f"{tokens[row.argmax()]} {row.max():.2f}")
    print(f"layer {layer}, head {head}: {most[0]} in the first sentence, {most[1]} in the second")

# %% [markdown]
# **What these lines show, and what they do not.** They show where these heads take values from. By themselves they do
# not show that the model *needs* these heads: a head may look at a word without taking anything useful from it. And we
# searched for these heads: the encoder has sixteen, and the search says nothing about the others. To find out whether a
# head is needed, take it away (its weighted values are set to 0). The translation alone is a coarse measure: it either changes
# or it does not. So we measure how sure the model is. *Rive* is the edge of a river, *banque* keeps money. The *margin*
# is log p(*rive*) − log p(*banque*), given what is written before the noun: above 0, *rive* is the likelier word.
# `margin` (folded) returns it without the heads that we name. We compute it without each of the sixteen heads.

# %% tags=["hide-input"]
from glassformer.watch.inspection import without_heads

tokens, all_weights = encoder_weights(swam)
layer, clue_head, _ = looks_hardest(tokens, all_weights, "bank", "swam")
french = translator.bundle.target_tokenizer
begun = [french.bos_id, *french.encode("J'ai traversé la rivière à la nage pour rejoindre l'autre")]
source, target = torch.tensor([[*tokenizer.encode(swam), tokenizer.eos_id]]), torch.tensor([begun])
[rive], [banque] = french.encode("rive"), french.encode("banque")


def margin(layer=0, heads=()):
    """Return log p(rive) − log p(banque) without some heads of a layer of the encoder."""
    with gf.intervene(model, without_heads({f"encoder.layers.{layer}.self_attention": heads})), torch.no_grad():
        log_probs = model(source, target)[0, -1].log_softmax(-1)
    return (log_probs[rive] - log_probs[banque]).item()


# %%
whole = margin()
margins = torch.tensor([[margin(layer, [head]) for head in range(8)] for layer in range(2)])
print(f"all heads: margin {whole:.2f}")
for clue in CLUES[swam]:
    at = looks_hardest(tokens, all_weights, "bank", clue)[:2]
    place = (margins < margins[at]).sum().item() + 1
    print(f"without layer {at[0]}, head {at[1]}, which looks hardest at {clue}: margin {margins[at]:.2f}")
    print(f"    rank {place} of the sixteen heads, by how far the margin falls without the head")

print(f"banque becomes more likely than rive without {(margins < 0).sum()} of the sixteen heads")

# %% [markdown]
# Here is the change of the margin for all sixteen heads. Orange means that the model becomes less sure of *rive*.

# %% tags=["hide-input"]
pictures.heat_map(
    (margins - whole).round(decimals=1) + 0.0,  # no −0.0
    ["layer 0", "layer 1"],
    [f"head {head}" for head in range(8)],
    numbers=".1f",
    alt="The change of the margin between rive and banque without each of the sixteen heads of the encoder.",
)

# %% tags=["hide-input", "check"]
# Exercise 6 has an answer: a head of cross-attention that looks at "animal" when the model writes "il".
tired = tokenizer.encode("The animal didn't cross the street because it was too tired.")
animal = tokenizer.tokens(tired).index("animal")
begun = [french.bos_id, *french.encode("L'animal n'a pas traversé la rue parce qu'")]
with gf.record(model, "decoder.*.cross_attention.weights") as trace, torch.no_grad():
    log_probs = model(torch.tensor([[*tired, tokenizer.eos_id]]), torch.tensor([begun]))[0, -1]

assert french.tokens([log_probs.argmax().item()]) == ["il"]
assert max(weights[0, :, -1, animal].max() for weights in trace.values()) > 0.9

# %% [markdown]
# If the two heads have the ranks 1 and 2, their large weights have led us to the heads that this choice needs most. One
# sentence is an anecdote, and weights are not always so good a guide: over a whole set of sentences, the experiment on
# [the word bank](experiments/bank.py#do-weights-tell-what-matters) finds that the weight of a word hardly predicts how
# much the word matters. As long as the margin stays above 0, *rive* remains likelier than *banque*. If it does so
# without any of the sixteen heads, no single head decides the word. The rest of the clue takes other paths: other
# heads, and the French words already written ("rivière", "à la nage"). In the explorer, you can follow [what *bank*
# reads](../runs/demo/explorer.html#text=I+swam+across+the+river+to+get+to+the+other+bank.&sourceWord=10&zoom=%7B%22box%22:%22encoder.layers.0.self_attention%22,%22key%22:null%7D)
# in the encoder's self-attention, number by number, in each of its heads.
#
# ## What goes wrong
#
# **Elementwise instead of a matrix product.** `*` multiplies cell by cell; `@` is the matrix product. When there are as
# many words as coordinates (3 and 3 here), both give the same shape, so nothing crashes. The published walk through
# these numbers makes this mistake and one more. It takes the softmax of `((q * k.T) / √3) * v`, with the values
# inside, and calls the result the weights. Then it multiplies these weights by the values once more
# ([erratum](errata.py#elementwise-instead-of-a-matrix-product)).

# %%
wrong_weights = ((q * k.T) / math.sqrt(3) * v).softmax(dim=-1)
wrong_output = wrong_weights @ v
for name, one, other in (("wrong", wrong_weights, wrong_output), ("right", attended.weights, attended.weighted_values)):
    in_percent = ", ".join(f"{100 * weight:.4f} %" for weight in one[0].tolist())
    result = ", ".join(f"{number:.2f}" for number in other[0].tolist())
    print(f"{name}: “bank” attends {in_percent} and becomes ({result})")

with_other_length = torch.ones(5, 3)  # five words, and the mistake shows itself
try:
    with_other_length * with_other_length.T
except RuntimeError as error:
    print("with five words:", error)

# %% tags=["hide-input", "check"]
assert f"{100 * wrong_weights[0, 1]:.4f}" == "99.9995"  # on "of"
torch.testing.assert_close(wrong_output[0], v[1], atol=1e-4, rtol=0)  # the value of "of"
assert f"{100 * attended.weights[0, 2]:.1f}" == "94.7"  # on "river"

# %% [markdown]
# The wrong weights look as good as the right ones: no weight is negative, and they sum to 1. But they send "bank" to
# the wrong word. It attends 99.9995 % to "of" and becomes (8, 9, 3), where 94.7 % on "river" and (6.11, 9, 3) are
# right.
#
# **Scaling by the whole width.** The scores are divided by $\sqrt{d_k}$, the root of the width of *a head's* query, not
# by $\sqrt{d_\mathrm{model}}$ ([erratum](errata.py#scale-by-the-whole-width)). With 8 heads the scores are too small by
# a factor of $\sqrt 8$, so the weights are too flat. Nothing crashes. `plant` makes the demo commit this mistake, and
# `gf.check` finds it:

# %%
from glassformer.watch.inspection import plant

tokens, right = encoder_weights(swam)
with plant(model, "scale_d_model"):
    _, flat = encoder_weights(swam)
    report = gf.check(translator)
    print(translator.translate([swam])[0].text)

bank = tokens.index("bank")
print(f"largest weight of bank in that head: {right[layer, clue_head, bank].max():.2f}")
print(f"divided by √d_model:                 {flat[layer, clue_head, bank].max():.2f}")
print(report)

# %% tags=["hide-input", "check"]
assert flat[0].amax(-1).mean() < right[0].amax(-1).mean()
assert not report.passed

# %% [markdown]
# **Dot products are not bounded by 1.** Some texts say that the dot products of similar words "tend to 1". That is true
# of the *cosine*, the dot product of two vectors after each has been divided by its length. Attention does not divide
# by lengths ([erratum](errata.py#dot-products-are-not-bounded)): our raw scores reach 110.

# %%
cosines = torch.nn.functional.cosine_similarity(q[:, None], k[None], dim=-1)
cosines

# %% tags=["hide-input", "check"]
assert raw.max() == 110
assert cosines.max() <= 1

# %% [markdown]
# **The order of the arguments.** Some functions take (v, k, q), some (q, k, v). In self-attention all three have the
# same shape, so the wrong order runs and gives an answer ([erratum](errata.py#order-of-arguments)). Our order is query,
# key, value, everywhere. With different lengths and widths (2 queries, 5 keys, $d_k = 3$, $d_v = 7$), the mistake
# raises an error:

# %%
swapped = gf.attention(v, k, q).weighted_values
query, key, value = torch.ones(2, 3), torch.ones(5, 3), torch.ones(5, 7)
try:
    gf.attention(value, key, query)
except gf.ShapeError as error:
    print(error)

# %% tags=["hide-input", "check"]
assert swapped.shape == output.shape
assert (swapped - output).abs().max() > 1
assert gf.attention(query, key, value).weighted_values.shape == (2, 7)

# %% [markdown]
# ## In short
#
# - A word compares its query with the keys of all words, near and far; the softmax turns these scores into weights,
#   with which the word averages the values.
# - Query, key and value are three vectors, each made from the word's vector by a learned matrix, because asking, being
#   found and handing over are three different things.
# - The scores are divided by $\sqrt{d_k}$, because otherwise they grow with the width of the keys, and the softmax
#   gives nearly all the weight to one word.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* The value of "river" is changed from (6, 9, 3) to (0, 0, 0). Estimate the new output of "bank"
# in your head, before you compute it.
#
# <details><summary>Hint</summary>
#
# With a zero vector for "river", only the two other values are left. Which of them has a weight that matters?
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the three numbers of the new output, as a list
print(verdict("attention.1", answer, q, k, v))

# %% tags=["hide-cell"]
v_zero = v.clone()
v_zero[2] = 0
answer = gf.attention(q, k, v_zero).weighted_values[0]
# 5.3 % of the value (8, 9, 3) of "of" is what is left: about (0.42, 0.48, 0.16).
torch.testing.assert_close(answer, 0.0528 * v[1], atol=1e-3, rtol=0)
assert verdict("attention.1", answer, q, k, v) == "right"
answer

# %% [markdown]
# **2.** *Easy · 2 min.* A query is the zero vector. What are its weights, and its output?
#
# <details><summary>Hint</summary>
#
# A dot product with a zero vector is 0. What does the softmax make of equal scores?
#
# </details>

# %%
answer = None  # instead of None: the three weights, as a list
print(verdict("attention.2", answer))

# %% tags=["hide-cell"]
answer = gf.attention(torch.zeros(1, 3, dtype=torch.float64), k, v)
# All scores are 0, so all weights are equal, and the output is the plain average of the values.
torch.testing.assert_close(answer.weights, torch.full((1, 3), 1 / 3, dtype=torch.float64))
torch.testing.assert_close(answer.weighted_values[0], v.mean(0))
assert verdict("attention.2", answer.weights[0]) == "right"
answer.weighted_values

# %% [markdown]
# **3.** *Easy · 3 min.* Shuffle the three source words (the rows of keys and values, both alike). How do the outputs
# change? What does that say about word order?
#
# <details><summary>Hint</summary>
#
# The output is a sum over the words. Does a sum depend on the order of its terms?
#
# </details>

# %% tags=["hide-cell"]
shuffled = [2, 0, 1]
torch.testing.assert_close(gf.attention(q, k[shuffled], v[shuffled]).weighted_values, output)
# They do not change: a sum does not know the order of its terms. Attention alone cannot tell "dog bites man" from
# "man bites dog". That is why positions are added to the words (the chapter before this one).

# %% [markdown]
# **4.** *Medium · 4 min.* Multiply all scores by 10, then by 0.01, before the softmax. What do the weights of "bank"
# tend to?
#
# <details><summary>Hint</summary>
#
# Only differences between scores matter to the softmax. What happens to the differences? Imagine factors that grow
# without bound, and that shrink to 0.
#
# </details>

# %%
answer = None  # instead of None: six limits: of the weights for large factors, and for small ones
print(verdict("attention.4", answer, scores))

# %% tags=["hide-cell"]
sharp, flat = (10 * scores[0]).softmax(0), (0.01 * scores[0]).softmax(0)
assert sharp[2] > 0.999999  # large scores: all the weight goes to the best key, as in a database
assert (flat - 1 / 3).abs().max() < 0.03  # small scores: the plain average
assert verdict("attention.4", [0, 0, 1, 1 / 3, 1 / 3, 1 / 3], scores) == "right"
sharp, flat

# %% [markdown]
# **5.** *Medium · 6 min · a small change of code.* Change `attention_with_loops` so that query $t$ looks only at keys
# $s \le t$. Use no mask, only the loop.
#
# <details><summary>Hint</summary>
#
# Call the function once for each query, and give it only a part of the keys and values.
#
# </details>


# %% tags=["hide-cell"]
def causal_with_loops(query, key, value):
    """Return attention with the causal mask: query t gets only the first t + 1 keys and values."""
    return [attention_with_loops([q_row], key[: t + 1], value[: t + 1])[0] for t, q_row in enumerate(query)]


answer = torch.tensor(causal_with_loops(q.tolist(), k.tolist(), v.tolist()), dtype=torch.float64)
torch.testing.assert_close(answer, causal, atol=1e-12, rtol=0)
answer

# %% [markdown]
# **6.** *Medium · 4 min · on the stage.* One head of cross-attention gives “animal” more than 0.9 of its weight when
# the model writes “il”. [Find it on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&row=10&task=attention),
# in an opened box.
#
# <details><summary>Hint</summary>
#
# Open the decoder's second attention, the one with lines from the encoder. The heads are in the row *Joined*; try both
# layers, by clicking the edge of the other layer on the figure.
#
# </details>
#
# ## Next
#
# With one attention, each word has one row of weights, so it can ask one question. The next chapter, [several
# heads](heads.py), lets each word ask several questions at once.
