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
# # The feed-forward network
#
# The feed-forward network is two matrices with a non-linear function (a "bend") between them. It works on each position
# separately.

# %% [markdown]
# ## The question
#
# [Attention](attention.py) moves information between positions. But what it returns is an *average* of values, and a
# value is only the input times a matrix. Once the attention weights are chosen, all the rest is multiplying and adding.
# Which part computes something new from what was gathered, such as "an adjective *and* a plural, so the ending is -s"?
# And why does this plain-looking part hold the largest share of a layer's parameters?

# %% [markdown]
# ## The intuition
#
# Think of a small office that is the same on every floor. A vector comes in, `d_model` numbers wide. Each of the `d_ff`
# clerks (the *hidden units*) looks at all of it and asks one question. If the answer is "no", the clerk stays silent
# (0). If it is "yes", the clerk speaks: the clearer the answer, the louder. Each clerk who speaks adds a personal
# vector to the result.
#
# Every position has such an office, all with the same clerks, and without a telephone between the floors. Talking
# between positions is attention's work; this network only thinks about what has arrived.

# %% [markdown]
# ## The mathematics
#
# Let $x$ be the vector at one position, written as a row with $d$ = `d_model` entries. Let $f$ = `d_ff` be the number
# of hidden units. The network is (*Attention Is All You Need*, 2017, §3.3, equation 2)
#
# $$\mathrm{FFN}(x) = \max(0,\; x W_1 + b_1)\, W_2 + b_2$$
#
# with $W_1$ of shape $(d, f)$, $b_1$ of $f$ entries, $W_2$ of shape $(f, d)$ and $b_2$ of $d$ entries. The maximum is taken entry by entry; this
# function, $\max(0, \cdot)$, is called *ReLU* (rectified linear unit).
#
# In the paper's base model, $d = 512$ and $f = 2048$: the vector is expanded to four times its width, bent, and
# contracted again. "Position-wise" means that the formula sees only one position. In code, $x$ has the shape (B, T, D),
# for B sentences of T positions, and the same matrices act on the last axis: (B, T, 512) → (B, T, 2048) → (B, T, 512).

# %% [markdown]
# ## Line by line
#
# ### One unit: an adjective *and* a plural
#
# A French adjective takes an -s in the plural: *petit*, *petits*. Let two inputs answer two questions with 1 for "yes"
# and 0 for "no": is the word an adjective, and is it a plural? One unit adds the two inputs and subtracts 1. So its
# column of $W_1$ is (1, 1), and its number of $b_1$ is −1. After ReLU, the unit speaks for the ending -s. Here are the
# four cases:

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.watch import pictures

words = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])  # adjective?, plural?
adjective_and_plural = words @ torch.tensor([1.0, 1]) - 1  # (4, 2) @ (2,) -> (4,)
print("adjective  plural   sum - 1   -s")
for (adjective, plural), unit in zip(words, adjective_and_plural, strict=True):
    print(f"{adjective:5.0f} {plural:10.0f} {unit:9.0f} {F.relu(unit):7.0f}")

# %% [markdown]
# Only the plural adjective gets the ending. Now without the bend:

# %%
print("adjective  plural   -s")
for (adjective, plural), unit in zip(words, adjective_and_plural, strict=True):
    print(f"{adjective:5.0f} {plural:10.0f} {unit:6.0f}")

# %% tags=["hide-input", "check"]
ending = F.relu(adjective_and_plural)
assert ending.tolist() == [0, 0, 0, 1]
with_one = F.pad(words, (0, 1), value=1)  # the last column is for the bias
closest = with_one @ torch.linalg.lstsq(with_one, ending[:, None]).solution  # the least squared error without a bend
torch.testing.assert_close(closest, torch.tensor([[-0.25], [0.25], [0.25], [0.75]]))

# %% [markdown]
# A word that is neither gets −1, a vote *against* -s. Other weights do not help. In a weighted sum, being an adjective
# adds the same number to a singular and to a plural. If it must add 0 to a singular, it adds 0 to a plural, too. With the
# bend, it adds 0 to a singular and 1 to a plural. That is the "and".
#
# ### Expand
#
# Here is a network that fits on paper: $d$ = 4 and $f$ = 8, with small whole numbers. The input is $x$ = (1, 2, 0, −1).
# Each hidden unit has one column of $W_1$ and one number of $b_1$. Take the second unit: its column is (0, 1, 0, −1),
# so its answer is 1·0 + 2·1 + 0·0 + (−1)·(−1) + 0 = 3. Here are all eight at once:

# %%
x = torch.tensor([1.0, 2, 0, -1], dtype=torch.float64)
W_1 = torch.tensor(
    [
        [1, 0, -1, 2, 0, 1, -1, 0],
        [0, 1, 1, -1, 0, -1, 2, 1],
        [2, 0, 0, 1, -1, 0, 1, 1],
        [1, -1, 0, 0, 2, 1, 0, -1],
    ],
    dtype=torch.float64,
)
b_1 = torch.tensor([1.0, 0, -2, 1, 1, 0, 0, -1], dtype=torch.float64)
hidden = x @ W_1 + b_1  # (4,) @ (4, 8) -> (8,)
hidden

# %% tags=["hide-input", "check"]
assert (x * W_1[:, 1]).sum() + b_1[1] == 3

# %% [markdown]
# ### Bend
#
# Negative numbers become 0. Three of the eight units stay silent.

# %%
activated = hidden.clamp(min=0)  # max(0, hidden)
activated

# %% [markdown]
# ### Contract
#
# Each unit has a *row* of $W_2$. The result is the sum of these rows, each multiplied by the loudness of its unit, plus
# $b_2$. The three silent units contribute 0 times their row, so five rows and $b_2$ are left:
#
# 1·(1, 0, 0, −1) + 3·(0, 1, 0, 0) + 1·(0, 0, 2, 1) + 3·(−1, 0, 1, 0) + 2·(0, 1, −1, 1) + (0, 0, 1, −1) = (−2, 5, 4, 1)

# %%
W_2 = torch.tensor(
    [
        [1, 0, 0, -1],
        [0, 1, 0, 0],
        [5, 5, 5, 5],
        [0, 0, 2, 1],
        [1, -1, 1, -1],
        [2, 0, 0, 2],
        [-1, 0, 1, 0],
        [0, 1, -1, 1],
    ],
    dtype=torch.float64,
)
b_2 = torch.tensor([0.0, 0, 1, -1], dtype=torch.float64)
output = activated @ W_2 + b_2  # (8,) @ (8, 4) -> (4,)
output

# %% tags=["hide-input", "check"]
by_rows = b_2 + sum(activated[unit] * W_2[unit] for unit in range(8))
assert torch.equal(output, by_rows)
assert output.tolist() == [-2, 5, 4, 1]

# %% [markdown]
# The third unit's row, (5, 5, 5, 5), would have changed everything. But this unit is silent, so its row does not count.
# For a different x it may count.
#
# ### At each position alike
#
# Now take three positions at once. The code stays the same, because the matrices act on the last axis. "Position-wise"
# means three things, which the folded assertions check. One position at a time gives the same results as all at once. If the
# positions are shuffled, so are the results. If one position changes, the results of the others stay the same.


# %%
def ffn(x):
    """Return max(0, x W_1 + b_1) W_2 + b_2."""
    return (x @ W_1 + b_1).clamp(min=0) @ W_2 + b_2


torch.manual_seed(1)
sequence = torch.stack([x, *torch.randn(2, 4, dtype=torch.float64)])  # (T, D) = (3, 4)
all_at_once = ffn(sequence)
all_at_once

# %% tags=["hide-input", "check"]
one_by_one = [ffn(position) for position in sequence]
order = [2, 0, 1]
other = sequence.clone()
other[2] = 100
torch.testing.assert_close(all_at_once, torch.stack(one_by_one))
torch.testing.assert_close(ffn(sequence[order]), all_at_once[order])
torch.testing.assert_close(ffn(other)[:2], all_at_once[:2])

# %% [markdown]
# The picture shows these three positions, from bottom to top: x, the hidden units after the bend, and the output. Blue
# is positive, orange negative; the fuller the colour, the larger the number. A silent unit is empty. The same network
# is drawn three times, and no line leads from one position to another.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(7.4, 3.1)
layers = [sequence, (sequence @ W_1 + b_1).clamp(min=0), all_at_once]
for position in range(3):
    middle = 10 * position
    points = []
    for level, values in enumerate(layers):
        count = values.shape[1]
        across = [middle + (unit - (count - 1) / 2) * (1.05 if count == 8 else 1.5) for unit in range(count)]
        points.append(across)
        for place, value in zip(across, values[position].tolist(), strict=True):
            strength = min(1, abs(value) / 5)
            colour = pictures.BLUE if value >= 0 else pictures.ORANGE
            axes.plot(place, level, "o", color="black", markersize=9, fillstyle="none", markeredgewidth=0.8, zorder=3)
            axes.plot(place, level, "o", color=colour, markersize=9, alpha=strength, markeredgewidth=0, zorder=2)
    for level in (0, 1):
        for start in points[level]:
            for end in points[level + 1]:
                axes.plot([start, end], [level, level + 1], color=pictures.GREY, linewidth=0.4, alpha=0.6, zorder=1)
    axes.text(middle, -0.42, f"position {position}", ha="center", fontsize=10)

for level, text in enumerate(("x\n(4)", "hidden\n(8)", "output\n(4)")):
    axes.text(-6.0, level, text, ha="center", va="center", fontsize=9)

for level, text in ((0.5, "W₁, b₁"), (1.5, "W₂, b₂")):
    axes.text(-6.0, level, text, ha="center", va="center", fontsize=9, color=pictures.GREY)

axes.set(xlim=(-7.5, 25), ylim=(-0.6, 2.3))
axes.axis("off")
pictures.picture(
    figure,
    "Three copies of one small network side by side, one for each position: four circles, eight circles above them, four "
    "above those, lines within a copy, none between copies. More than half of the hidden units are empty.",
)

# %% [markdown]
# ## The same from the library
#
# [`FeedForward`](../src/glassformer/model/feed_forward.py#FeedForward) names the two matrices `expand` and `contract`.
# (`torch.nn.Linear` stores its matrix transposed, as (out, in), so we transpose ours with `.T`.)

# %%
from glassformer.model.feed_forward import ACTIVATIONS, FeedForward

network = FeedForward(d_model=4, d_ff=8, activation="relu", dropout=0.0).double()
with torch.no_grad():
    network.expand.weight.copy_(W_1.T)
    network.expand.bias.copy_(b_1)
    network.contract.weight.copy_(W_2.T)
    network.contract.bias.copy_(b_2)

network(sequence[None])[0, 0].tolist()

# %% tags=["hide-input", "check"]
torch.testing.assert_close(network(sequence[None])[0], all_at_once)

# %% [markdown]
# ### How large it is
#
# Here are the numbers of parameters in the paper's base model (§3.3, Table 3), with a vocabulary of 37 000:

# %%
base = gf.ModelConfig.preset("base", vocab_size=37000)
with torch.device("meta"):  # shapes only, no memory
    model = gf.Transformer(base)

layer = model.encoder.layers[0]


def count(part):
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in part.parameters())


everything = count(model)
layers = [*model.encoder.layers, *model.decoder.layers]
in_networks = sum(count(one.feed_forward) for one in layers)
print(f"feed-forward of an encoder layer: {count(layer.feed_forward):,}")
print(f"attention of an encoder layer:    {count(layer.self_attention):,}")
share = 100 * in_networks / everything
print(f"feed-forward of all 12 layers: {in_networks:,} of {everything:,}, {share:.0f} %")
embedding = model.source.tokens.weight.numel()
share = 100 * in_networks / (everything - embedding)
print(f"without the embedding matrix: {share:.0f} %")

# %% tags=["hide-input", "check"]
assert tuple(layer.feed_forward.expand.weight.T.shape) == (512, 2048)
assert tuple(layer.feed_forward.contract.weight.T.shape) == (2048, 512)
assert count(layer.feed_forward) == 512 * 2048 + 2048 + 2048 * 512 + 512 == 2_099_712
assert everything == 63_082_496
attentions = [one.self_attention for one in layers] + [one.cross_attention for one in model.decoder.layers]
assert sum(map(count, attentions)) < in_networks

# %% [markdown]
# An encoder layer has twice as many parameters in this network as in its attention. All 12 feed-forward networks
# together have 40 % of the model's parameters, or 57 % if the embedding is not counted.
#
# ### The same as two convolutions
#
# The paper says: "Another way of describing this is as two convolutions with kernel size 1." A convolution slides a
# small window along the sequence and applies one matrix to the window's contents. A window of size 1 contains a single
# position. With the same numbers, two such convolutions give the same outputs.

# %%
first = nn.Conv1d(4, 8, kernel_size=1).double()
second = nn.Conv1d(8, 4, kernel_size=1).double()
with torch.no_grad():
    first.weight.copy_(W_1.T[:, :, None])  # (out, in, window)
    first.bias.copy_(b_1)
    second.weight.copy_(W_2.T[:, :, None])
    second.bias.copy_(b_2)

convolved = second(first(sequence.T[None]).relu())[0].T  # Conv1d wants (B, D, T)
print(f"largest difference: {(convolved - all_at_once).abs().max():.0e}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(convolved, all_at_once)

# %% [markdown]
# ## Why the bend
#
# Without the bend, two matrices are one. A product of matrices is a matrix, and the biases merge as well:
#
# $$(x W_1 + b_1) W_2 + b_2 = x\,(W_1 W_2) + (b_1 W_2 + b_2)$$

# %%
(W_1 @ W_2).shape  # 16 numbers do the work of 64

# %% tags=["hide-input", "check"]
without_bend = (sequence @ W_1 + b_1) @ W_2 + b_2
one_matrix = sequence @ (W_1 @ W_2) + (b_1 @ W_2 + b_2)
torch.testing.assert_close(without_bend, one_matrix)

# %% [markdown]
# The eight units would be useless. With the bend, a unit can be silent on one side, so different inputs go through
# different sets of units. In the smallest example, two units make the absolute value, which no matrix can:
# $\lvert x \rvert = \max(0, x) + \max(0, -x)$.
#
# ### ReLU, GELU, SiLU
#
# Other bends are in use, too. GELU is $x \cdot \Phi(x)$, where $\Phi(x)$ is the probability that a standard normal
# number is below $x$; SiLU is $x \cdot \sigma(x)$ with the logistic function $\sigma(x) = 1 / (1 + e^{-x})$. Both
# functions are smooth and slightly negative to the left of 0. The paper uses ReLU.

# %%
line = torch.linspace(-4, 4, 81, dtype=torch.float64)
bends = {
    "relu": line.clamp(min=0),
    "gelu": line * 0.5 * (1 + torch.erf(line / math.sqrt(2))),
    "silu": line / (1 + torch.exp(-line)),
}

# %% tags=["hide-input", "check"]
for name, values in bends.items():
    torch.testing.assert_close(ACTIVATIONS[name](line), values)

# %% [markdown]
# In the picture, the three approach one another far from 0, and differ in how they turn the corner.

# %% tags=["hide-input"]
pictures.curves(
    {name.upper().replace("SILU", "SiLU").replace("RELU", "ReLU"): (line, values) for name, values in bends.items()},
    alt="Three curves from −4 to 4: ReLU is 0 up to 0 and then the diagonal; GELU and SiLU dip slightly below 0 and "
    "approach the diagonal smoothly.",
    x_label="before",
    y_label="after",
    height=2.8,
)

# %% [markdown]
# ## What hidden units respond to
#
# The demo model has 256 hidden units in each layer. What questions do they ask? We run the 1,000 sentences of the test
# split through the encoder and record the activations of its second layer for every token.

# %%
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import english_french
from glassformer.corpus.tasks.world.nouns import NOUNS

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
tokenizer = translator.bundle.source_tokenizer
test = english_french(train=1).splits["test"]  # the training sentences are not needed here

rows = [[*tokenizer.encode(example.source), tokenizer.eos_id] for example in test]
longest = max(map(len, rows))
ids = torch.tensor([row + [tokenizer.pad_id] * (longest - len(row)) for row in rows])
point = "encoder.layers.1.feed_forward.activated"
with torch.no_grad(), gf.record(translator.model, point) as trace:
    translator.model.encode(ids)

real = ids != tokenizer.pad_id
activated = trace[point][real]  # (tokens, units)
words = tokenizer.tokens(ids[real].tolist())
above = 100 * (activated > 0).float().mean()
print(tuple(activated.shape), f"{above:.0f} % of all activations are above 0, {100 - above:.0f} % are silent")

# %% [markdown]
# A ReLU unit is *silent* where it returns 0. Next we compute each unit's mean activation for each word that occurs at
# least three times, and list the words with the largest means. Here are six units, drawn at random:

# %%
names = sorted({word for word in words if words.count(word) >= 3})
number = {name: index for index, name in enumerate(names)}
known = torch.tensor([word in number for word in words])
which = torch.tensor([number[word] for word in words if word in number])
means = torch.zeros(len(names), 256).index_add_(0, which, activated[known])
means /= torch.bincount(which)[:, None]


def loudest(unit, count=9):
    """Return the words for which this unit is most active on average."""
    best = means[:, unit].topk(count).indices.tolist()
    return ", ".join(names[index] for index in best)


torch.manual_seed(2)
for unit in torch.randperm(256)[:6].tolist():
    print(f"unit {unit:>3}: {loudest(unit)}")

# %% [markdown]
# Look for a theme in each list, such as adjectives or verbs. If you find no theme in most of them, that is normal. The model has to represent far more features than it has
# units, so most units respond to several features.
#
# Some units are clear once you look for something specific. English nouns have no gender; French nouns do, and the
# article, the adjective and the pronoun depend on it. So we ask: does any unit separate English nouns by the gender of
# their *French* translation? For each unit, take all pairs of a masculine and a feminine noun. Compute the share of
# pairs in which the masculine noun has the larger mean (1: always, 0: never, about 0.5: by chance).

# %%
gender = {noun.english: noun.gender for noun in NOUNS}
masculine = means[[number[name] for name in names if gender.get(name) == "m"]]
feminine = means[[number[name] for name in names if gender.get(name) == "f"]]
larger = (masculine[:, None] > feminine).float()
larger += 0.5 * (masculine[:, None] == feminine).float()  # a tie counts as a half
share = larger.mean((0, 1))  # (units,)

most_masculine, most_feminine = share.argmax().item(), share.argmin().item()
print(f"{len(masculine)} masculine and {len(feminine)} feminine nouns")
for unit in (most_masculine, most_feminine):
    print(f"unit {unit}, share {share[unit]:.3f}: {loudest(unit)}")

# %% tags=["hide-input", "check"]
# Another training run makes different units, which separate the nouns a little better or worse.
assert share.max() > 0.9
assert share.min() < 0.1

# %% [markdown]
# Such units exist, at least one for each gender, although nobody told the model about gender: it found out from the
# translations. Each mark in the picture is a noun; the higher it is, the more active the unit. The two genders hardly
# mix. (Words that are not nouns are left out: a unit that tells nouns apart may mean something else for other words.)

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.6, 3.0)
generator = torch.Generator().manual_seed(1)
for place, unit in enumerate((most_masculine, most_feminine)):
    kinds = (
        (masculine, pictures.BLUE, "o", "masculine in French"),
        (feminine, pictures.ORANGE, "^", "feminine in French"),
    )
    for shift, (nouns, colour, mark, label) in zip((-0.2, 0.2), kinds, strict=True):
        across = place + shift + 0.2 * (torch.rand(len(nouns), generator=generator) - 0.5)
        axes.plot(
            across, nouns[:, unit], mark, color=colour, markersize=4, alpha=0.6, label=label if place == 0 else None
        )

axes.set_xticks([0, 1], [f"unit {most_masculine}", f"unit {most_feminine}"])
axes.set(ylabel="mean activation", xlim=(-0.5, 1.5))
axes.legend(frameon=False, fontsize=9, loc="upper center")
pictures.picture(
    figure,
    "Mean activation of two hidden units for English nouns. The first unit is high for nouns that are masculine in French and "
    "low for the others, the second the other way round.",
)

# %% [markdown]
# Before you believe it, take one more step. A unit that *responds* to gender need not be a unit that the model *uses*.
# So we change the units and see whether "la vache" becomes "le vache". Two units of 256 are seldom enough for that,
# because the gender is stored in many places: in other units, and in the stream itself, which already holds the word. So
# we move all 256 units together, in the direction that separates the genders: the *difference of the means* of masculine
# and feminine nouns. Added once, it makes the average feminine noun an average masculine one. Here it is added or
# subtracted twice, at every position:

# %%
is_masculine = torch.tensor([gender.get(word) == "m" for word in words])
is_feminine = torch.tensor([gender.get(word) == "f" for word in words])
difference = activated[is_masculine].mean(0) - activated[is_feminine].mean(0)  # (units,)


def translated(sentence, times):
    """Return the translation with the difference added so many times; a unit cannot fall below 0."""
    with gf.intervene(translator.model, {point: lambda units: (units + times * difference).clamp(min=0)}):
        return translator.translate([sentence])[0].text


changed = 0
for sentence in ("The cow is tired.", "The boy saw the queen.", "The cat slept on the table."):
    found = {name: translated(sentence, times) for name, times in (("as it is", 0), ("masculine", 2), ("feminine", -2))}
    changed += len({*found.values()} - {found["as it is"]})
    print("\n".join(f"{name:9} {text}" for name, text in found.items()))

print(f"{changed} of 6 translations change")

# %% tags=["hide-input", "check"]
assert changed > 0

# %% [markdown]
# Look at the articles and the adjectives. Where a translation changes, they follow the gender that we have set, not the
# noun's. So the model uses this direction. *What a unit shows* and *what a unit does* are two different questions; the experiment on
# [patching](experiments/patching.py) asks the second one. You can look at every unit in the explorer, word by word: [the
# feed-forward network of the second
# layer](../runs/demo/explorer.html#text=The+cow+is+tired.&sourceWord=1&zoom=%7B%22box%22:%22encoder.layers.1.feed_forward%22,%22key%22:null%7D).
#
# ### A memory of keys and values?
#
# You can also picture this network as a memory. This picture is **an intuition, not a fact about every unit**.
#
# <details>
# <summary>How attention and this network compare</summary>
#
# Look at
# the sum by rows [above](#contract). Each unit compares x with its column of $W_1$, by a dot product, and hands over
# its row of $W_2$: the better the match, the more of the row. Attention does the same with keys and values, but here
# the keys and values are learned, fixed, and many:
#
# | | attention | feed-forward |
# |---|---|---|
# | key | computed from each position | a column of $W_1$, fixed after training |
# | how well it fits | dot product with the query, then softmax | dot product with x, plus $b_1$, then ReLU |
# | value | computed from each position | a row of $W_2$, fixed after training |
# | what is added | the weighted sum of values | the weighted sum of rows |
#
# So you may think of the network as a memory of things learned in training: "if the vector looks like this, add that".
# Geva et al. (2021, "Transformer Feed-Forward Layers Are Key-Value Memories") found units in large language models that
# fit this picture well. The units above, chosen at random, show how far this picture holds for the demo. One difference
# remains: softmax makes the keys compete, while ReLU lets each unit speak for itself.
#
# </details>

# %% [markdown]
# ## What goes wrong
#
# Three formulas went wrong in print ([errata](errata.py#three-formulas)). Each is off by one sign, one index or one
# term, so the slip is easy to make and hard to see.
#
# **`= b_2` for `+ b_2`.** "max(0, x W_1 + b_1) W_2 = b_2" does not define an output; it makes a claim, and a false one.

# %%
bend = (x @ W_1 + b_1).clamp(min=0)
print((bend @ W_2).tolist(), "is not", b_2.tolist())

# %% tags=["hide-input", "check"]
assert not torch.equal(bend @ W_2, b_2)
torch.testing.assert_close(bend @ W_2 + b_2, output)  # + is meant

# %% [markdown]
# **The same vector in each term.** In self-attention, the output at position 2 (here counted from 1, as in print) is a
# sum over *different* values: $y_2 = \sum_j w_{2j} v_j$. Here $v_j$ is the value at position $j$, and $w_{2j}$ is the
# weight that position 2 has for it. Printed with the same $v_1$ in each term, the sum says nothing: the weights sum to
# 1, so the result is always $v_1$, whatever the weights are.

# %%
# The second row of weights: the positions that position 2 looks at.
weights = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)
v = torch.tensor([[4.0, 3, 1], [8, 9, 3], [6, 9, 3]], dtype=torch.float64)

wrong = weights[0] * v[0] + weights[1] * v[0] + weights[2] * v[0]
right = weights[0] * v[0] + weights[1] * v[1] + weights[2] * v[2]
print("the same vector:", wrong.tolist(), " different ones:", right.tolist())

# %% tags=["hide-input", "check"]
torch.testing.assert_close(wrong, v[0])
torch.testing.assert_close(right, weights @ v)

# %% [markdown]
# **A variance without the square.** One text prints only the sum sign of the variance and forgets what is summed; others
# write $(v_k - \mu)$ without the square. The variance of the [layer norm](residual.py) is the mean of the *squared*
# deviations. Without the square, the deviations cancel: their mean is always 0, and the norm divides by
# $\sqrt{0 + \varepsilon} \approx 0.003$. The results should be about 1 in size, and they are hundreds of times as large.

# %%
deviations = output - output.mean()
print("without the square:", deviations.mean().item(), "  with it:", (deviations**2).mean().item())
wrong = deviations / torch.sqrt(deviations.mean() + 1e-5)
right = deviations / torch.sqrt((deviations**2).mean() + 1e-5)
print([round(value, 1) for value in wrong.tolist()], [round(value, 2) for value in right.tolist()])

# %% tags=["hide-input", "check"]
torch.testing.assert_close(right, F.layer_norm(output, (4,)))

# %% [markdown]
# Two more mistakes run without any warning. If you leave out the bend, the model still learns, but half of its
# feed-forward parameters are useless. If you also put a ReLU after the *second* matrix, the network can only add to the
# [stream](residual.py), never subtract.

# %%
output.clamp(min=0).tolist()

# %% tags=["hide-input", "check"]
assert output.min() < 0  # the right output may be negative

# %% [markdown]
# ### What do many believe?
#
# *"Attention does the work, and this network is a detail."* In the paper's base model, these networks have 40 % of the
# parameters, more than all attention together. And once its weights are there, the output of attention is only a
# weighted sum of values. The bend, which makes "an adjective *and* a plural" more than the sum of both, is in this
# network.
#
# ## In short
#
# - The feed-forward network computes something new from what attention has gathered: each hidden unit asks one question
#   of the vector, and adds its own vector if the answer is yes.
# - Without the bend between them, its two matrices would be one; with the bend, different inputs go through different
#   sets of units.
# - In the paper, the network is four times as wide inside as outside, so its two matrices hold $8\,d_\mathrm{model}^2$
#   numbers, twice as many as the four matrices of self-attention.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* The paper's big model has `d_model` 1024 and `d_ff` 4096. How many parameters does one of its
# feed-forward networks have?
#
# <details><summary>Hint</summary>
#
# There are two matrices, and each has a bias: one of 4096 numbers, one of 1024.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of parameters
print(verdict("feed_forward.1", answer))

# %% tags=["hide-cell"]
assert verdict("feed_forward.1", 2 * 1024 * 4096 + 4096 + 1024) == "right"
with torch.device("meta"):
    assert count(FeedForward(1024, 4096, "relu", 0.0)) == 8_393_728

# %% [markdown]
# **2.** *Medium · 6 min.* Write a network with $d$ = 1 and $f$ = 2 that computes $\lvert x \rvert$, as an object of the
# library, and check it for numbers from −4 to 4.
#
# <details><summary>Hint</summary>
#
# One unit passes positive numbers, the other passes negative numbers with their sign changed. Which weights of $W_2$
# add them?
#
# </details>

# %% tags=["hide-cell"]
absolute = FeedForward(d_model=1, d_ff=2, activation="relu", dropout=0.0).double()
with torch.no_grad():
    absolute.expand.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    absolute.contract.weight.copy_(torch.tensor([[1.0, 1.0]]))

torch.testing.assert_close(absolute(line[None, :, None])[0, :, 0], line.abs())

# %% [markdown]
# **3.** *Medium · 5 min.* Shuffle the eight hidden units: the columns of $W_1$, the entries of $b_1$, and one more
# thing. What must you shuffle with them so that the network computes the same? What does this say about the meaning of
# a unit's number?
#
# <details><summary>Hint</summary>
#
# Each unit is written by one column of $W_1$, and read by one part of $W_2$.
#
# </details>

# %% tags=["hide-cell"]
torch.manual_seed(1)
shuffled = torch.randperm(8)
same = (sequence @ W_1[:, shuffled] + b_1[shuffled]).clamp(min=0) @ W_2[shuffled] + b_2
torch.testing.assert_close(same, all_at_once)
# The rows of W_2. A unit's number means nothing: another seed puts the same unit elsewhere, or makes none like it.

# %% [markdown]
# **4.** *Hard · 12 min.* In the same way as for gender, look for a unit that tells plural nouns ("cats") from singular
# ones ("cat").
#
# <details><summary>Hint</summary>
#
# Repeat the comparison with pairs of names, one in the singular and one in the plural. For each unit: in what share of
# pairs is the plural larger?
#
# </details>

# %% tags=["hide-cell"]
pairs = [(name, name + "s") for name in names if name in gender and name + "s" in number]
singular = means[[number[one] for one, _ in pairs]]
plural = means[[number[many] for _, many in pairs]]
plural_share = (plural[:, None] > singular).float().mean((0, 1))
print(
    f"{len(pairs)} nouns; unit {plural_share.argmax()}, share {plural_share.max():.3f}: {loudest(plural_share.argmax())}"
)
assert plural_share.max() > 0.9

# %% [markdown]
# **5.** *Easy · 2 min · on the stage.* For one word, most hidden units are silent. [Click such a unit on the
# stage](../runs/demo/explorer.html#text=The+cow+is+tired.&task=feed_forward), and look at what its sum was before the
# ReLU.
#
# <details><summary>Hint</summary>
#
# Open a *Feed forward* box. All its units stand in a grid; the empty places are the silent ones.
#
# </details>
#
# ## Next
#
# Now you have all the parts of a layer: attention with its masks, add & norm, and this network. Put together, they make
# [the encoder](encoder.py).
