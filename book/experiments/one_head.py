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
# # One head or eight?
#
# ## The question
#
# Each attention of the demo's model has eight heads of width 16. We could equally well use a single head of width
# 128: the matrices would have the same shapes, and there would be the same number of weights to learn. The only
# difference is that eight heads have eight softmaxes, and one head has one.
#
# **Are eight small heads better than one large head?** The paper says yes, slightly (§6.2, Table 3, rows A: 0.9
# BLEU). We ask a small model.

# %%
import json
from pathlib import Path
from statistics import fmean, stdev

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.watch import pictures

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
model.config.heads, model.config.d_k, model.config.d_v

# %% [markdown]
# ## The intuition
#
# A head takes one weighted average. If a word needs two things from two places, such as its subject and its place in
# the sentence, one average has to blend them. The word gets half of one and half of the other, equally in all 128
# dimensions. Two heads can look at two places, and keep what they found in different dimensions.
#
# But the large head has its merits too: with 128 dimensions, its queries and keys can be compared more finely. And the
# model takes more than one average: there are several layers, and the residual connection keeps what each layer has
# found.
#
# ## The mathematics
#
# Let $h$ be the number of heads, and $d_k$ and $d_v$ the widths of a head's keys and values (§3.2.2). The matrices of
# all heads together have
#
# $$d_{\text{model}} \cdot h\, d_k + d_{\text{model}} \cdot h\, d_k + d_{\text{model}} \cdot h\, d_v + h\, d_v \cdot d_{\text{model}}$$
#
# entries, for queries, keys, values and output. Only the products $h\, d_k$ and $h\, d_v$ occur, and these are the
# same in both models: $8 \cdot 16 = 1 \cdot 128$. So the number of learned weights is the same. The number of
# *attention* weights is not: each query has $h$ rows instead of one.
#
# ## Line by line
#
# The scores of one large head are the sum of the scores that its parts would have as small heads. Here are the
# queries and keys of the trained model, seen as eight heads and as one:

# %%
text = "The animal didn't cross the street because it was too tired."
source = torch.tensor([[*bundle.source_tokenizer.encode(text), model.config.eos_id]])
with torch.no_grad(), gf.record(model, "encoder.layers.0.self_attention.*") as trace:
    model.encode(source)

query, key = (trace[f"encoder.layers.0.self_attention.{name}"][0] for name in ("query", "key"))  # (8, S, 16)
small = query @ key.mT  # eight scores for each pair of words
one_query, one_key = (x.transpose(0, 1).flatten(1) for x in (query, key))  # (S, 128)
large = one_query @ one_key.mT
small.shape, large.shape

# %% tags=["hide-input", "check"]
torch.testing.assert_close(large, small.sum(0), atol=1e-3, rtol=1e-4)  # sums of 128 float32 products

# %% [markdown]
# So the large head sees only the sum. If one part says "yes" and another "no", the sum says "perhaps". Compare the
# result of a single softmax with the results of eight:

# %%
eight = (small / 16**0.5).softmax(-1)
one = (large / 128**0.5).softmax(-1)
words = [*bundle.source_tokenizer.tokens(bundle.source_tokenizer.encode(text)), "<eos>"]
it = words.index("it")
print("'it' looks most at, head by head:", [words[place] for place in eight[:, it].argmax(-1)])
print("as one head:", words[one[it].argmax()])

# %% tags=["hide-input", "check"]
torch.testing.assert_close(eight, trace["encoder.layers.0.self_attention.weights"][0], atol=1e-5, rtol=1e-4)

# %% [markdown]
# ## The same from the library
#
# Two settings make the large head: `heads=1` and the widths. Both models have the same number of weights.


# %%
def parameters(**settings):
    """Return the number of weights of a model of the demo's size with these settings."""
    torch.manual_seed(1)
    config = gf.ModelConfig(
        source_vocab_size=model.config.source_vocab_size,
        target_vocab_size=model.config.target_vocab_size,
        d_model=128,
        d_ff=256,
        encoder_layers=2,
        decoder_layers=2,
        tie_embeddings=False,
        **settings,
    )
    return sum(weight.numel() for weight in gf.Transformer(config).parameters())


parameters(heads=8)

# %% tags=["hide-input", "check"]
assert parameters(heads=8) == parameters(heads=1, d_k=128, d_v=128) == sum(w.numel() for w in model.parameters())

# %% [markdown]
# In the explorer, you can click through the eight heads of [the encoder's
# self-attention](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&zoom=%7B%22box%22:%22encoder.layers.0.self_attention%22,%22key%22:null%7D)
# in the demo.
#
# ## The experiment
#
# [measure/one_head.py](measure/one_head.py) compares three models with eight heads and three with one, with seeds 1,
# 2 and 3. They have the demo's size and data, and a third of its training (600 steps), so that there is still
# something to get wrong. *Exact* is the share of sentences whose greedy translation equals the reference, word for
# word. The splits test different things. "Test" is like the training data; "unseen-combinations" has pairs of words
# that are not in the training data; "coreference" requires knowing what "it" refers to; "senses" requires knowing
# which meaning a word such as "bank" has.

# %%
measured = json.loads(Path("results/one_head.json").read_text(encoding="utf-8"))["models"]
TITLES = {"short": "eight heads", "one-head": "one head"}
SPLITS = ("test", "unseen-combinations", "coreference", "senses")
for what, splits in (("exact", SPLITS), ("pairs", ("coreference", "senses"))):
    for split in splits:
        for name, title in TITLES.items():
            values = measured[name][what][split]
            each = "  ".join(f"{value:5.1f}" for value in values)
            print(f"{what:6}{split:20} {title:12} {fmean(values):5.1f} ± {stdev(values):3.1f}   ({each})")

# %% tags=["hide-input", "check"]
assert measured["short"]["parameters"] == measured["one-head"]["parameters"]

# %% [markdown]
# In the picture, each bar is the mean of three models, and each dot is one model. Where the dots of two neighbouring
# bars overlap, the three seeds show no difference.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.8, 3.2)
for shift, (name, title), colour in zip((-0.19, 0.19), TITLES.items(), (pictures.BLUE, pictures.ORANGE), strict=True):
    for place, split in enumerate(SPLITS):
        values = measured[name]["exact"][split]
        axes.barh(
            place + shift, fmean(values), color=colour, alpha=0.7, height=0.34, label=title if place == 0 else None
        )
        axes.plot(values, [place + shift] * len(values), "o", color="black", markersize=3, alpha=0.7)

axes.set_yticks(range(len(SPLITS)), SPLITS)
axes.invert_yaxis()
axes.set(xlabel="exact, %", xlim=(0, 100))
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)

pictures.picture(
    figure, "Exact matches of eight heads and of one head on four splits: a bar for the mean, a dot for each seed."
)

# %% [markdown]
# Seed by seed (the same seed has the same corpus), these are the points by which eight heads are better (+) or worse
# (−) than one.

# %%
ahead = {}
for split in SPLITS:
    pairs = zip(measured["short"]["exact"][split], measured["one-head"]["exact"][split], strict=True)
    ahead[split] = [eight - one for eight, one in pairs]
    print(f"{split:20}", "  ".join(f"{points:+6.1f}" for points in ahead[split]))

# %% [markdown]
# **Eight heads are better here, with all three seeds and on every split.** The difference is 4 to 7 points on "test", 3
# to 7 on unseen combinations, and largest on the senses of words: 7 to 15 points. On coreference, two of the three
# models with one head come within half a point of the models with eight, and the third does not.
#
# So this confirms the paper's answer. (Compare the sign, not the size: the paper measured BLEU after a long training,
# while we count exact matches of models that were stopped while they were still learning.) The result does **not**
# confirm the strong form of the intuition. One head is enough to follow "it" to the right noun: two of the models do so
# in more than 99 sentences of 100. There are two layers, and the second can fetch what the first could not.

# %% tags=["hide-input", "check"]
assert all(points > 0 for several in ahead.values() for points in several)
assert min(ahead["test"]) > 4
assert min(ahead["unseen-combinations"]) > 2.5
assert min(ahead["senses"]) > 7
assert sorted(ahead["coreference"])[1] < 0.5 < 10 < max(ahead["coreference"])

# %% [markdown]
# How fast do they learn? Here are exact matches on 100 sentences of the validation split: the mean over the seeds,
# with a band of one standard deviation.

# %% tags=["hide-input"]


def series(name):
    """Return steps, and mean and standard deviation over the seeds of the exact matches on validation."""
    values = torch.tensor([[point["exact"] for point in run] for run in measured[name]["curve"]])
    return [point["step"] for point in measured[name]["curve"][0]], values.mean(0), values.std(0)


pictures.curves(
    {title: series(name) for name, title in TITLES.items()},
    x_label="step",
    y_label="exact, % (validation)",
    alt="Exact matches on validation during the training of models with eight heads and with one.",
)

# %% [markdown]
# ## What goes wrong
#
# - *"Several heads are faster."* The matrices have the same sizes, and the products of queries and keys add up to the
#   same number. But $h$ heads have $h$ score maps and $h$ softmaxes, so they cost slightly more. Heads are [there to
#   look at different things](../errata.py#what-heads-are-for).
# - *"Heads restore the width."* Any number of heads does, because [$W^O$ brings their joined outputs back to
#   $d_{\text{model}}$](../errata.py#heads-do-not-restore-the-width).
# - Comparing eight heads of 16 with *one head of 16* also compares 128 numbers with 16. A fair comparison keeps
#   $h\,d_k$.
# - A difference between two models is not a difference between two *kinds* of models until more seeds agree.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* How many weights does one attention of the demo's model have, biases included?
#
# <details><summary>Hint</summary>
#
# Four projections of 128 to 128, each with a bias.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of weights
print(verdict("one_head.1", answer))

# %% tags=["hide-cell"]
attention = model.encoder.layers[0].self_attention
count = sum(weight.numel() for weight in attention.parameters())
assert count == 4 * (128 * 128 + 128)
assert verdict("one_head.1", count) == "right"
count

# %% [markdown]
# **2.** *Medium · 6 min.* Two queries of width 2 are joined into one of width 4, and so are the keys. Find numbers for
# which each small head strongly prefers a different key, and the large head prefers neither.
#
# <details><summary>Hint</summary>
#
# Let the first half of the query meet only the first key, and the second half only the second. What does the large head
# see?
#
# </details>

# %% tags=["hide-cell"]
query = torch.tensor([3.0, 0.0, 0.0, 3.0])  # first half for head 0, second half for head 1
keys = torch.tensor([[3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]])
halves = [(keys[:, half] @ query[half] / 2**0.5).softmax(0) for half in (slice(0, 2), slice(2, 4))]
whole = (keys @ query / 4**0.5).softmax(0)
assert halves[0][0] > 0.99
assert halves[1][1] > 0.99
assert torch.equal(whole, torch.tensor([0.5, 0.5]))

# %% [markdown]
# **3.** *Easy · 3 min.* How many attention weights does the demo's encoder compute for a sentence of 14 tokens? How
# many would it compute with one head?
#
# <details><summary>Hint</summary>
#
# Each layer and each head has one weight for each pair of tokens.
#
# </details>

# %%
answer = None  # instead of None: [with eight heads, with one head]
print(verdict("one_head.3", answer))

# %% tags=["hide-cell"]
with torch.no_grad(), gf.record(model, "encoder.layers.*.self_attention.weights") as trace:
    model.encode(source)

computed = sum(weights.numel() for weights in trace.values())
assert source.shape[1] == 14
assert computed == 2 * 8 * 14 * 14
assert verdict("one_head.3", [computed, computed // 8]) == "right"
computed, computed // 8

# %% [markdown]
# ## Next
#
# [Heads](../heads.py) shows the splitting line by line. A wide head has larger scores: [what does each part
# do?](parts.py) asks whether a wide head misses $\sqrt{d_k}$ more than a narrow head does. Where the norms should stand
# is the question of [norm before or after](norms.py).
