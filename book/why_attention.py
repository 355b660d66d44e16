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
# Read a long sentence once, close the book, and translate it from memory. Neural translators of 2014 worked like this:
# they read the whole sentence into one row of numbers, and wrote the translation from this row alone. The row had the
# same width for three words and for thirty. So the longer the sentence, the more was lost.
#
# *Attention* opens the book again: at each word that it writes, the translator looks back at all words that it has
# read. In 2017 came the paper's question: if looking is so good, is the reading in order still needed? Its model is
# "based solely on attention mechanisms, dispensing with recurrence and convolutions entirely". **What did attention
# change, what did leaving out the rest change, and what does it cost?**

# %% tags=["hide-input"]
import json
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

import glassformer as gf
from glassformer.model.attention import MultiHeadAttention
from glassformer.watch import pictures
from glassformer.watch.pictures import BLUE, GREY, ORANGE, PALETTE

_ = torch.manual_seed(1)

# %% [markdown]
# ## Three translators
#
# Each square is a row of numbers that the model has made for a word. Below it reads *The cat slept.*, above it writes
# *Le chat dormait.* A line is a way for information; within the Transformer's English, it leads both ways. The thick
# orange line is the shortest way from the first English word to the last French token, the thick blue line the shortest
# way from the first English word to the last:

# %% tags=["hide-input"]
figure, panels = pictures.canvas(8.2, 3.7, ncols=3)
english, french = ("The", "cat", "slept", "."), ("Le", "chat", "dormait", ".")
last = len(english) - 1


def way(axes, start, end, colour=GREY, rad=0.0, arrow="-|>"):
    """Draw a line with an arrow from one square to another; a way in a colour is thick."""
    thick = {"linewidth": 2.6, "alpha": 1.0, "zorder": 2} if colour != GREY else {"linewidth": 0.9, "alpha": 0.6}
    look = {"arrowstyle": arrow, "color": colour, "connectionstyle": f"arc3,rad={rad}", "shrinkA": 6, "shrinkB": 6}
    axes.annotate("", xy=end, xytext=start, arrowprops=look | thick)


def neighbours(axes, row, colour):
    for place in range(last):
        way(axes, (place, row), (place + 1, row), colour)


for axes, name in zip(panels, ("RNN", "RNN + attention", "Transformer"), strict=True):
    for place in range(last + 1):
        axes.text(place, 0.35, english[place], ha="center", va="center", fontsize=9, color=BLUE)
        axes.text(place, 3.65, french[place], ha="center", va="center", fontsize=9, color=ORANGE)
        axes.scatter(place, 1, s=80, marker="s", color=BLUE, zorder=3)
        axes.scatter(place, 3, s=80, marker="s", color=ORANGE, zorder=3)
        for other in range(last + 1) if name != "RNN" else ():
            way(axes, (place, 1), (other, 3))
    axes.set_title(name, fontsize=10.5, weight="bold")
    axes.set(xlim=(-0.6, last + 0.6), ylim=(-0.9, 4))
    axes.axis("off")

for axes in panels[:2]:
    neighbours(axes, 1, BLUE)
    neighbours(axes, 3, ORANGE if axes is panels[0] else GREY)

for place in range(last):
    way(panels[0], (place, 1), (place + 1, 1), ORANGE, rad=0.35)  # beside the blue way: both go through these squares

way(panels[0], (last, 1), (0, 3), ORANGE)
for axes in panels[1:]:
    way(axes, (0, 1), (last, 3), ORANGE)

for start in range(last + 1):
    for end in range(start + 1, last + 1):
        way(panels[2], (start, 3), (end, 3), rad=-0.3)
        way(panels[2], (start, 1), (end, 1), BLUE if (start, end) == (0, last) else GREY, rad=0.3, arrow="<|-|>")

across = ("to the last French token: 7 steps", "to the last French token: 1 step", "to the last French token: 1 step")
within = (
    "to the last English token: 3 steps",
    "to the last English token: 3 steps",
    "to the last English token: 1 step",
)
for axes, orange, blue in zip(panels, across, within, strict=True):
    axes.text(last / 2, -0.35, orange, ha="center", fontsize=8.5, color=ORANGE)
    axes.text(last / 2, -0.75, blue, ha="center", fontsize=8.5, color=BLUE)

pictures.picture(
    figure,
    "Three translators. In the RNN, the first word reaches the last French token through all squares between, in 7 steps. "
    "With attention, it takes 1 step across, but still 3 steps within the English. In the Transformer, each is 1 step.",
)

# %% [markdown]
# ## The intuition
#
# - A **recurrent** network (RNN) reads word after word and keeps a *state*, a vector of fixed width. Sutskever et al.
#   (2014) and Cho et al. (2014) translate with two of them: one reads the source, and its last state is all that the
#   other one gets. A long sentence has to fit into one vector.
# - **Attention** was added to remove this bottleneck. In Bahdanau et al. (2014), the writer looks back at *all* states of
#   the reader, with weights, at each step.
# - **Convolutions** (Gehring et al. 2017) compute all positions at once, but each layer sees only a few neighbours.
# - The **Transformer** keeps the attention and drops the rest. Words meet directly, whatever their distance. (Within the
#   French, a word meets only words that are already written; [masks](masks.py) see to that.)

# %% [markdown]
# ## Trained side by side
#
# Three models learned the demo's grammar: an RNN that reads and one that writes, the same two with Bahdanau's
# attention, and the demo's Transformer. The RNNs are *GRUs*, [which can remember for longer](#a-recurrent-step). All
# three have the same number of weights within 0.1 %, and each trained for two minutes, three times, from different
# random weights. −log p says how surprised a model is by the right word: 0 if it was certain of the word, 0.7 if it
# gave the word one half, and more if it gave less.
#
# <details><summary>How the three are made comparable</summary>
#
# `python book/experiments/measure/recurrent.py` measures, and `experiments/results/recurrent.json` holds the result.
# The RNN reads in both directions. The writer without attention is wider, so that the number of weights is the same.
# The two minutes are processor time on one thread. A *seed* fixes all that is drawn at random, so for each of the seeds
# 1, 2 and 3, the three models see the same batches in the same order. They train with Adam and the same learning rates,
# which are the demo's and were chosen for the Transformer. An update takes more processor time while other programs use
# the same memory and caches. So the models of a seed take turns every 15 seconds, but the seeds of one model did not
# get equally far.
#
# </details>

# %% tags=["hide-input"]
measured = json.loads(Path("experiments/results/recurrent.json").read_text(encoding="utf-8"))
print(f"measured on {measured['date']} with torch {measured['versions']['torch']}, seeds {measured['seeds']}")
for name, runs in measured["models"].items():
    updates, speed = ([run[what] for run in runs] for what in ("updates", "tokens_per_second"))
    losses = ", ".join(f"{run['curve'][-1]['loss']:.2f}" for run in runs)
    print(
        f"{name:<19} {runs[0]['weights']:,} weights, {min(updates)}–{max(updates)} updates in {measured['seconds']} s,"
    )
    print(f"    {min(speed):,.0f}–{max(speed):,.0f} target tokens per second, −log p per token {losses}")

# %% tags=["hide-input"]
pictures.curves(
    {
        name: (
            [point["seconds"] for point in runs[0]["curve"]],
            [sum(run["curve"][at]["loss"] for run in runs) / len(runs) for at in range(len(runs[0]["curve"]))],
        )
        for name, runs in measured["models"].items()
    },
    x_label="seconds of training",
    y_label="−log p per target token",
    alt="The test loss of three models over two minutes, mean of three seeds. The GRU without attention ends highest.",
)

# %% [markdown]
# The GRU without attention makes more updates than the GRU with attention, and still ends with the highest loss.
# Between it and the Transformer is a gap, and attention alone closes 69, 75 and 74 % of it (in the three runs). That
# was the discovery of 2014.
#
# ### Does a longer sentence lose more?
#
# If the bottleneck is real, exact translations must become rarer with the length of the sentence, and most of all
# without attention. But a longer sentence also has more words that can be wrong, so the share of exact translations
# must fall even without a bottleneck. The dotted lines show how far: if each of the $n$ words were right with the same
# probability $p$, whatever the other words are, the share would be $p^n$. Here $p$ is chosen so that the line begins at
# the model's share for five and six words. The chart is for the split "test", three seeds together, without one kind of
# sentence (the folded part below it says why):

# %% tags=["hide-input"]
BANDS = ((5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 22))
middles = [(low + high) / 2 for low, high in BANDS]
kinds = {row["kind"] for runs in measured["models"].values() for run in runs for row in run["by_length"]["test"]}
frame = {"coreference"}


def exact(runs, low, high, kinds):
    """Return the share of exact translations in %, for sources of these lengths and kinds, and their number."""
    rows = [row for run in runs for row in run["by_length"]["test"] if low <= row["length"] <= high]
    rows = [row for row in rows if row["kind"] in kinds]
    sentences = sum(row["sentences"] for row in rows)
    return sum(row["sentences"] * row["exact"] for row in rows) / sentences, sentences


def shares(kinds):
    """Return the share of each model for each band of lengths."""
    return {name: [exact(runs, *band, kinds)[0] for band in BANDS] for name, runs in measured["models"].items()}


def independent(values):
    """Return p to the power of the number of words, in %, with the p of the shortest sentences."""
    p = (values[0] / 100) ** (1 / middles[0])
    return [100 * p**words for words in middles]


figure, axes = pictures.canvas(6.4, 3.2)
for colour, style, (name, values) in zip(PALETTE, ("-", "--", "-."), shares(kinds - frame).items(), strict=False):
    axes.plot(middles, values, style, color=colour, label=name, linewidth=1.8)
    axes.plot(middles, independent(values), ":", color=colour, linewidth=1.2)

axes.plot([], [], ":", color=GREY, linewidth=1.2, label="if each word were right with the same p")
axes.set(xlabel="words in the English sentence", ylabel="exact translations (%)")
axes.grid(color=GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "Exact translations by length without one kind of sentence, with a dotted line for each model. The GRU with attention "
    "stays on its line, the Transformer leaves it late, and the GRU without attention falls far below it.",
)

# %% tags=["hide-input", "check"]
plain, attentive, transformer = measured["models"].values()
sizes = [runs[0]["weights"] for runs in measured["models"].values()]
assert max(sizes) < 1.001 * min(sizes)
for one, two, three in zip(plain, attentive, transformer, strict=True):
    assert one["updates"] > two["updates"]
    losses = [run["curve"][-1]["loss"] for run in (one, two, three)]
    assert losses == sorted(losses, reverse=True)

removed = [
    (one["curve"][-1]["loss"] - two["curve"][-1]["loss"]) / (one["curve"][-1]["loss"] - three["curve"][-1]["loss"])
    for one, two, three in zip(plain, attentive, transformer, strict=True)
]
assert [round(100 * share) for share in removed] == [69, 75, 74]
assert [round(values[0]) for values in shares(kinds - frame).values()] == [90, 87, 98]
slower = {name: values[-1] / values[0] for name, values in measured["milliseconds"].items()}
assert max(slower, key=slower.get) == "GRU with attention"
all_kinds, other_kinds = shares(kinds)["GRU"], shares(kinds - frame)["GRU"]
assert all_kinds[4] > all_kinds[3] and other_kinds == sorted(other_kinds, reverse=True)
assert exact(plain, 13, 14, frame)[1] > exact(plain, 13, 14, kinds - frame)[1]
assert exact(plain, 13, 14, frame)[0] > max(80, exact(attentive, 13, 14, frame)[0])
below = {
    name: [expected - value for value, expected in zip(values, independent(values), strict=True)]
    for name, values in shares(kinds - frame).items()
}
assert max(map(abs, below["GRU with attention"])) < 2.5
assert max(below["Transformer"][:4]) < 3.5 and round(below["Transformer"][5]) == 27
assert [round(below["GRU"][band]) for band in (1, 4)] == [7, 46]

# %% [markdown]
# On five and six words, the GRU without attention (90 %) is better than the GRU with attention (87 %). So short a
# sentence fits into one vector, and the GRU without attention made more updates in its two minutes. Then its share
# falls with each step to the right, and ends at nearly nothing. It is 7 points below its dotted line at seven and eight
# words, and 46 points at 13 and 14: more than the number of words explains, as a bottleneck would have it. The GRU with
# attention never leaves its dotted line by more than 3 points, so the number of words is enough to explain its fall.
# The Transformer follows its line up to 12 words, and is 27 points below it at the longest sentences, which are rare in
# training. (The chart shows how far the shares fall. This page does not test why.)
#
# <details><summary>A chart that misleads: all kinds of sentences together</summary>
#
# With all kinds of sentences, the share without attention *rises* again, at 13 and 14 words (the chart is folded with
# its code, below). Does the bottleneck like long sentences? No: the grammar has kinds of sentences, and each length has
# its own mixture. At 13 and 14 words, more than half of the sentences are of the kind *The animal didn't cross the
# street because it was too tired.* Training has thousands of them, and all are made by the same frame. That is probably
# why even a small memory holds them. On this frame, the GRU without attention was even better than the one with
# attention. A length alone explains little: look at what the sentences of a length are made of.
#
# </details>

# %% tags=["hide-cell"]
for name, runs in measured["models"].items():
    (framed, many), (others, rest) = exact(runs, 13, 14, frame), exact(runs, 13, 14, kinds - frame)
    print(f"{name:<19} 13–14 words: {framed:.0f} % of {many} with the frame, {others:.0f} % of the other {rest}")

pictures.curves(
    {name: (middles, values) for name, values in shares(kinds).items()},
    x_label="words in the English sentence",
    y_label="exact translations (%)",
    alt="Exact translations by length, for three models. Without attention, they become rarer, but rise again at 13 words.",
)

# %% [markdown]
# None of the three is good at sentences that are longer than all sentences in training (the split "longer", 300
# sentences of 23 words and more, for each seed):

# %% tags=["hide-input"]
for name, runs in measured["models"].items():
    rows = [row for run in runs for row in run["by_length"]["longer"]]
    share = sum(row["sentences"] * row["exact"] for row in rows) / sum(row["sentences"] for row in rows)
    print(f"{name:<19} {share:.1f} % exact")

# %% [markdown]
# The GRU with attention does best there. A likely reason, which this page does not test: positions after the 22nd are
# new to the Transformer, while a recurrent state has nothing to do with the number of a position.
#
# ### Does a longer sentence take more time?
#
# One pass of training (forward and backward) over 2 048 words, cut into sentences of different lengths, on one core.
# The models are untrained here, because the values of the weights do not change the time:

# %% tags=["hide-input"]
pictures.curves(
    {name: (measured["lengths"], values) for name, values in measured["milliseconds"].items()},
    x_label="words in a sentence",
    y_label="milliseconds for 2 048 words",
    alt="Time of a training pass by the length of sentences, for three models. The recurrent models slow down faster.",
)

# %% [markdown]
# The number of words is the same everywhere. The recurrent models become slower because longer sentences mean more
# steps that wait for each other, with less to do in each. The Transformer becomes slower because each word looks at
# more words. The GRU with attention has both: more steps that wait, and more words to look at in each, so its curve is
# the steepest. On a GPU, where thousands of cores wait for work, the first effect is much larger; this is the paper's
# main argument (§1, §4).
#
# ## What is gained, what is lost
#
# Compared with the recurrent translators and the convolutions [that were there before](#the-intuition):
#
# | | gained | lost |
# |---|---|---|
# | training | all positions at once | |
# | distance | one step between any two words | |
# | order | | no order without [positions](positions.py) |
# | length | | twice as many words make four times as many pairs to compute and to store |
# | writing | | still one word at a time, and the [cache](decoding.py) grows; a recurrent state does not |
# | few data | | recurrence and convolution know that neighbours matter; attention has to learn it |
#
# So attention removed the bottleneck: a long sentence no longer has to fit into one vector. Leaving out the rest
# removed the waiting. The price is the work for all these pairs, and a model that has to be told the order of the
# words.
#
# **"Attention is fast because it computes less."** Many believe this. It depends on the opponent. One layer of
# self-attention needs more multiplications than a simple RNN of the same width, however short the sentence. It needs
# fewer than a GRU, the RNN of this page, as long as the sentence has fewer words than the layer is wide. (A folded part
# of [The mathematics](#the-mathematics) counts them.) Against both, it is fast in training because no word has to wait
# for the word before it.
#
# ## Read on after the chapter on attention
#
# The idea is complete here. The rest of this page counts what attention costs, and shows the code. It uses queries,
# keys, values and the matrices that make them, which [Attention](attention.py) explains. At a first reading, go on with
# [words and embeddings](embeddings.py).
#
# ## The mathematics
#
# <details><summary>How many multiplications, and how long a path?</summary>
#
# Table 1 of the paper (§4) compares one layer, for $n$ positions, width $d$ and a convolution over $k$ words.
# $O(\cdot)$ says how a number grows, and leaves out constant factors and smaller terms. Beside it stands what one layer
# really multiplies, if its matrices are counted too: those that make queries, keys, values and the output, or the
# gates.
#
# | layer | the paper's multiplications | counted | steps that must wait for each other | longest path between two words |
# |---|---|---|---|---|
# | self-attention | $O(n^2 \cdot d)$ | $4nd^2 + 2n^2d$ | $O(1)$ | $O(1)$ |
# | recurrent: a simple RNN | $O(n \cdot d^2)$ | $2nd^2$ | $O(n)$ | $O(n)$ |
# | recurrent: a GRU (below) | $O(n \cdot d^2)$ | $6nd^2$ | $O(n)$ | $O(n)$ |
# | convolutional | $O(k \cdot n \cdot d^2)$ | $k \cdot nd^2$ | $O(1)$ | $O(n / k)$; dilated: $O(\log_k n)$ |
#
# The paper concludes that self-attention is cheaper while $n < d$. The counts say it more exactly: one self-attention
# is cheaper than a GRU while $n < d$, which holds for most sentences. (With its feed-forward network of $4d$ units,
# which adds $8nd^2$, a layer of the Transformer is not.) A simple RNN is cheaper at any length: attention's four
# matrices alone need twice as many multiplications. But attention saves *waiting*: all its positions can be computed at
# once. And its cost grows with the square of the length.
#
# A layer of undilated convolutions over $k$ words reaches $(k - 1) / 2$ words further on each side, so a long path
# needs many layers. (*Dilated* convolutions leave gaps, which grow from layer to layer.)
#
# </details>

# %% tags=["hide-input", "check"]
from torch.utils.flop_counter import FlopCounterMode


def multiplications(layer, *arguments):
    """Return how many multiplications PyTorch counts in the matrix products of a call."""
    with FlopCounterMode(display=False) as counter:
        layer(*arguments)
    return counter.get_total_flops() // 2  # it counts each multiplication and its addition


def read_all(cell, words):
    state = torch.zeros(1, words.shape[-1])
    for word in words:
        state = cell(word[None], state)


for n, d in ((10, 16), (16, 16), (24, 16)):  # from 64 words on, a fused function that the counter does not know
    words = torch.randn(n, d)
    attention = multiplications(MultiHeadAttention(d, 4, d // 4, d // 4, dropout=0.0), words[None])
    simple, gated = (multiplications(read_all, cell(d, d), words) for cell in (nn.RNNCell, nn.GRUCell))
    convolution = multiplications(nn.Conv1d(d, d, 3, padding=1), words.T[None])
    assert (attention, simple, gated) == (4 * n * d * d + 2 * n * n * d, 2 * n * d * d, 6 * n * d * d)
    assert convolution == 3 * n * d * d
    assert (attention < gated) == (n < d) and attention > simple

# %% [markdown]
# ## Line by line
#
# ### A recurrent step
#
# A *gated recurrent unit* (GRU) reads one word and renews its state, number by number:
#
# - The **reset gate** says how much of each old number counts while the word is read: 0 is nothing, 1 is all.
# - With what is left of the old state, and with the word, the unit makes a **proposal** for a new state.
# - The **update gate** says how much of each old number stays. Where it is 1, the old number stays as it was, so the unit
#   can remember a word for a long time. Where it is 0, the proposal takes its place.
#
# The two gates and the proposal each have a matrix for the word and one for the state: six matrices, hence $6nd^2$.
# Each step needs the state of the step before, so no two positions can be computed at the same time. (The folded cell
# has the same as formulas.)

# %% tags=["hide-input"]
cell, word, state = nn.GRUCell(8, 8), torch.randn(1, 8), torch.randn(1, 8)
# Each of these two lines multiplies by three matrices at once:
word_parts = nn.functional.linear(word, cell.weight_ih, cell.bias_ih).chunk(3, dim=-1)
state_parts = nn.functional.linear(state, cell.weight_hh, cell.bias_hh).chunk(3, dim=-1)
reset = (word_parts[0] + state_parts[0]).sigmoid()
update = (word_parts[1] + state_parts[1]).sigmoid()
proposal = (word_parts[2] + reset * state_parts[2]).tanh()
new_state = (1 - update) * proposal + update * state

# %% tags=["hide-input", "check"]
torch.testing.assert_close(new_state, cell(word, state))

# %% [markdown]
# ### How far does a word reach?
#
# In a recurrent network, word 0 reaches the last state only through all the states between. How much does the last
# output still move if word 0 moves a little? That is the length of a *gradient*. We measure it in a GRU and in one
# self-attention. The translators above were trained; these two are not, and have random weights. The longer the path,
# the weaker the signal:

# %%
gru = nn.GRU(input_size=64, hidden_size=64, batch_first=True)
attend = MultiHeadAttention(d_model=64, heads=4, d_k=16, d_v=16, dropout=0.0)


def reach(layer, length):
    """Return the length of the gradient of the last output by the first word, mean of ten sentences."""
    words = torch.randn(10, length, 64, requires_grad=True)
    output = layer(words)
    output = output[0] if isinstance(output, tuple) else output
    [gradient] = torch.autograd.grad(output[:, -1].sum(), words)
    return gradient[:, 0].norm(dim=-1).mean().item()


lengths = (2, 4, 8, 16, 32)
reaches = {name: [reach(layer, n) for n in lengths] for name, layer in (("GRU", gru), ("self-attention", attend))}
for n, by_gru, by_attention in zip(lengths, *reaches.values(), strict=True):
    print(f"{n:>2} words: GRU {by_gru:.7f}, self-attention {by_attention:.7f}")

# %% tags=["hide-input", "check"]
falls = {name: values[0] / values[-1] for name, values in reaches.items()}
assert falls["GRU"] > 10 * falls["self-attention"]

# %% [markdown]
# Self-attention's signal also becomes smaller, because an untrained attention gives each of the $n$ words about the
# same weight, $1/n$. Training can strengthen both signals. Self-attention has to learn one large weight; a GRU has to
# learn gates that keep the word at every step between.
#
# What did training change in the three translators? The experiment has measured it for English sentences of 5, 8, 11
# and 14 words, before and after the two minutes. Each number says how strongly the first word moves the encoder's last
# vector (a GRU's last state, read from left to right): 1 means as strongly as the last word moves it.

# %%
WORDS = (5, 8, 11, 14)


def first_to_last(runs, state, words):
    """Return the first word's gradient in lengths of the last word's gradient, mean of the seeds."""
    found = [row["first_to_last"] for run in runs for row in run["reach"][state] if row["length"] == words]
    return sum(found) / len(found)


for name, runs in measured["models"].items():
    for state in ("untrained", "trained"):
        print(f"{name:<19} {state:<10}", *(f"{first_to_last(runs, state, words):.3f}" for words in WORDS))

# %% tags=["hide-input", "check"]
strength = {
    name: {state: [first_to_last(runs, state, words) for words in WORDS] for state in ("untrained", "trained")}
    for name, runs in measured["models"].items()
}
assert round(strength["GRU"]["trained"][2] / strength["GRU"]["untrained"][2]) == 48
assert max(strength["GRU with attention"]["trained"]) < 0.05
with_attention = strength["GRU with attention"]
assert [after < before for before, after in zip(*with_attention.values(), strict=True)] == [True, True, True, False]
falls = {name: values["trained"][0] / values["trained"][3] for name, values in strength.items()}
assert falls["Transformer"] < 2 < 6 < falls["GRU"] < 8 < 30 < falls["GRU with attention"]

# %% [markdown]
# The two GRUs forget equally fast before training. Without attention, the writer gets only what the reader still knows
# at the end, so the reader has to learn to remember: at 11 words, the first word counts 48 times as much as before.
# With attention, the reader does not have to remember, because the writer can look at the first word's own state: up to
# 11 words, the first word counts even less than before. Within the row of the trained Transformer, the numbers fall
# least: from 5 to 14 words, to a little more than half.
#
# ### Additive or dot product?
#
# Bahdanau's scores are *additive*: a small network for each pair of query and key. The paper's are dot products
# (§3.2.1):
#
# $$\text{additive: } \mathbf{w} \cdot \tanh(q W_1 + k W_2) \qquad \text{dot product: } q \cdot k / \sqrt{d_k}$$
#
# In theory they cost about the same. In practice dot products are one matrix product. The additive form makes a vector
# for each pair, and needs the tanh of each of its numbers, which takes most of the time:

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
# Dot products have one drawback. The paper reports (§3.2.1) that the two forms are about equally good for narrow
# queries, but that the additive form is better for wide ones, unless the dot products are divided by $\sqrt{d_k}$.
# [Attention](attention.py#why-the-scores-are-divided) measures why.
#
# ### Cross-attention is self-attention with another memory
#
# The attention between the two recurrent networks was cross-attention. Self-attention is the same function. Only the
# memory, from which keys and values are made, is different. One line shows it: give a self-attention its own input as
# the memory, and nothing changes.

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
# Each word looks at each word, so twice the length needs four times the scores. The time follows only roughly, because
# the processor does not compute small and large products equally well:

# %%
sizes = (256, 512, 1024, 2048)
times = [1000 * seconds(gf.attention, *torch.randn(3, n, 64)) for n in sizes]
for n, milliseconds in zip(sizes, times, strict=True):
    print(f"{n:>5} words: {n * n:>9,} scores, {milliseconds:7.2f} ms")

# %% tags=["hide-input", "check"]
assert times[-1] > 8 * times[0]  # 8 times the length; the square would be 64, but small products are inefficient

# %% [markdown]
# ## Exercises
#
# **1.** *Medium · 5 min.* For which lengths does a layer of self-attention need fewer multiplications than a GRU, if
# both have the width 512 and all matrices are counted?
#
# <details><summary>Hint</summary>
#
# Write both counts from the table of this chapter, and divide by what they have in common. What is left is a comparison
# of the length with the width.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the largest such length
print(verdict("why_attention.1", answer))

# %% tags=["hide-cell"]
# 4nd² + 2n²d < 6nd² exactly if n < d.
d = 512
assert all((4 * n * d * d + 2 * n * n * d < 6 * n * d * d) == (n < d) for n in range(1, 2000))
assert verdict("why_attention.1", d - 1) == "right"

# %% [markdown]
# **2.** *Easy · 3 min.* How many layers of undilated convolutions over 3 words lead from the first of 21 words
# to the last?
#
# <details><summary>Hint</summary>
#
# One layer carries a word's information one place further on each side. How many steps are there from the first word to
# the last?
#
# </details>

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
# Now to the parts, one by one. The first question is how [words](embeddings.py) become numbers. What a Transformer
# loses without one of its parts is measured in [an experiment](experiments/parts.py).
