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
# # What does each part do?
#
# ## The question
#
# Three small things in the Transformer each come with a strong reason. Scores are divided by $\sqrt{d_k}$, *or the
# softmax saturates and learning stops*. Positions are added, *or the model sees a bag of words*. The embedding is
# multiplied by $\sqrt{d_{\text{model}}}$, *or the positions drown the words*.
#
# **What happens to a real training run when one of them is left out?** We leave out one at a time, train, and count. We
# count because a plausible reason does not prove an effect.

# %%
import json
import math
from pathlib import Path
from statistics import fmean, stdev

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.watch import pictures
from glassformer.watch.inspection import plant, without_positions

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
torch.manual_seed(1)


def ids(text):
    """Return the source ids of a sentence, as a batch of one."""
    return torch.tensor([[*bundle.source_tokenizer.encode(text), model.config.eos_id]])


# %% [markdown]
# ## The intuition
#
# - **Division by $\sqrt{d_k}$.** A score is a sum of $d_k$ products. The more terms, the larger it gets, by chance
#   alone. With large scores, the softmax puts nearly everything on one key. Such a softmax hardly moves when the
#   scores move, so there is nothing to learn from.
# - **Positions.** Attention is an average, and an average does not know the order of the words. Without positions,
#   the encoder could not tell "the cat saw the dog" from "the dog saw the cat".
# - **Multiplication by $\sqrt{d_{\text{model}}}$.** The rows of the embedding matrix start small, while the positions
#   have entries between −1 and 1. Without the factor, each word would be a whisper beside its position.
#
# Here $d_k$ is the width of a head's queries and keys, and $d_{\text{model}}$ the width of the vector that stands for
# a word.
#
# ## The mathematics
#
# **Scores (§3.2.1).** If the entries of a query $q$ and a key $k$ are independent, with mean 0 and variance 1, then
# each product $q_i k_i$ has mean 0 and variance 1, and
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k$$
#
# The standard deviation is $\sqrt{d_k}$: 4 for the demo's heads with $d_k = 16$, 8 for the paper's heads with 64,
# 11.3 for $d_k = 128$. Dividing by $\sqrt{d_k}$ brings it back to 1. **So the importance of the division should
# depend on the width of a head.** We test that too.
#
# **Positions (§3.5).** Let $X$ have a row for each word, and let $P$ put the rows into a different order. Without
# positions, an encoder $f$ satisfies $f(PX) = P f(X)$: it returns the same rows in the new order.
#
# **Embedding (§3.4).** Rows are drawn with standard deviation $1/\sqrt{d_{\text{model}}}$; after multiplying by
# $\sqrt{d_{\text{model}}}$, it is 1. The squares of a sine and its cosine sum to 1, so the entries of a position have a
# root mean square of $\sqrt{1/2} \approx 0.71$.
#
# ## Line by line
#
# ### Scores grow with the width
#
# We draw random queries and keys, and see what happens to the softmax over ten keys:

# %%
for d_k in (16, 64, 128, 512):
    query, key = torch.randn(2000, d_k), torch.randn(2000, 10, d_k)
    scores = (key @ query[:, :, None]).squeeze(-1)  # (2000, 10)
    bare, scaled = scores.softmax(-1).amax(-1).mean(), (scores / math.sqrt(d_k)).softmax(-1).amax(-1).mean()
    print(
        f"d_k {d_k:3}: standard deviation {scores.std():5.2f}, largest weight {bare:.2f}, divided by √d_k {scaled:.2f}"
    )

# %% tags=["hide-input", "check"]
assert abs(scores.std() / math.sqrt(d_k) - 1) < 0.05

# %% [markdown]
# ### An encoder without positions
#
# Switch off the positions of the demo's model. Two sentences with the same words in a different order then have the
# same memory, in a different order.

# %%
one, other = "The cat saw the dog .", "The dog saw the cat ."
order = [0, 4, 2, 3, 1, 5, 6]  # "dog" and "cat" change places
with torch.no_grad(), gf.intervene(model, without_positions()):
    memory, swapped = model.encode(ids(one)), model.encode(ids(other))


swapped.shape

# %% tags=["hide-input", "check"]
assert sorted(ids(one)[0].tolist()) == sorted(ids(other)[0].tolist())
torch.testing.assert_close(swapped, memory[:, order], atol=1e-5, rtol=1e-5)
with torch.no_grad():
    assert (model.encode(ids(other)) - model.encode(ids(one))[:, order]).abs().max() > 0.5  # with positions: not at all

# %% [markdown]
# Is the *decoder* a bag of words too? No. Its causal mask lets each word see only the words before it, so the last
# word has seen more than the first, and the order counts even without positions. Here is the same French beginning in
# two orders, and the last hidden vector of the decoder:

# %%
french = [bundle.target_tokenizer.encode(text) for text in ("Le chien et le chat", "Le chat et le chien")]
prefixes = [torch.tensor([[model.config.bos_id, *some, french[0][2]]]) for some in french]  # … "et": the same last word
with torch.no_grad(), gf.intervene(model, without_positions()):
    source = ids(one)
    memory = model.encode(source)
    ends = [model.decoder_output(prefix, memory, source)[0, -1] for prefix in prefixes]

difference = (ends[0] - ends[1]).abs().max().item()
round(difference, 3)

# %% tags=["hide-input", "check"]
assert sorted(prefixes[0][0].tolist()) == sorted(prefixes[1][0].tolist())
assert difference > 1e-3  # far above rounding: the decoder tells the two orders apart

# %% [markdown]
# ### Words and positions at the start
#
# Here is an untrained model like the demo's, and the root mean square of its words and positions, which are added:

# %%
fresh = gf.Transformer(bundle.model_config).eval()
text = "The animal didn't cross the street because it was too tired."


def sizes():
    """Return the root mean square of the words and of their positions, in the untrained model."""
    with torch.no_grad(), gf.record(fresh, "source.*") as trace:
        fresh.encode(ids(text))
    return [trace[f"source.{name}"].square().mean().sqrt().item() for name in ("embedding", "positions")]


right = sizes()
with plant(fresh, "no_embedding_scale"):
    wrong = sizes()

print(f"with √d_model:    words {right[0]:.2f}, positions {right[1]:.2f}")
print(f"without √d_model: words {wrong[0]:.2f}, positions {wrong[1]:.2f}")

# %% tags=["hide-input", "check"]
assert abs(right[1] - math.sqrt(0.5)) < 0.01
assert abs(right[0] / wrong[0] - math.sqrt(model.config.d_model)) < 1e-3

# %% [markdown]
# ## The same from the library
#
# `glassformer.watch.inspection.plant(model, mistake)` makes a model commit a classic mistake for a while, and the
# experiment trains its models while a mistake is planted. `"no_scale"` undoes the division:

# %%
point = "encoder.layers.0.self_attention.scores"
with torch.no_grad(), gf.record(model, point) as usual:
    model.encode(ids(text))

with torch.no_grad(), plant(model, "no_scale"), gf.record(model, point) as planted:
    model.encode(ids(text))

translator.translate([text])[0].text

# %% tags=["hide-input", "check"]
torch.testing.assert_close(planted[point], usual[point] * math.sqrt(model.config.d_k))

# %% [markdown]
# The explorer shows what happens to a *trained* model when the division is dropped: [the demo with the mistake "No
# √d_k"](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&mistakes=%5B%22no_scale%22%5D&sheet=true&panel=changes).
# Planting a mistake in a trained model is not a fair test, because its weights were made for a different formula. A
# fair test trains with the mistake from the first step.
#
# ## The experiment
#
# [measure/parts.py](measure/parts.py) compares six kinds of models, three of each, with seeds 1, 2 and 3. All have
# the demo's size and data, and a third of its training (600 steps). The first kind has everything in place. Three
# kinds lack one part each. The last two kinds have a single head of $d_k = 128$ instead of eight heads of 16, one with
# the division and one without. If the reason for $\sqrt{d_k}$ is right, a wide head must miss it most.
#
# Models with a mistake are tested with the same mistake. *Exact* is the share of sentences whose greedy translation
# equals the reference, word for word, in %. "Test" is like the training data; "unseen-combinations" has pairs of
# words that are not in the training data; "coreference" requires knowing what "it" refers to; "senses" requires
# knowing which meaning a word such as "bank" has. *Pairs* counts minimal pairs: two sentences that differ only in the
# deciding word, and must both be exact (for coreference, only pairs whose two nouns differ in gender).

# %%
measured = json.loads(Path("results/parts.json").read_text(encoding="utf-8"))["models"]
TITLES = {
    "short": "everything in place",
    "no-scale": "no √d_k",
    "no-positions": "no positions",
    "no-embedding-scale": "no √d_model",
    "one-head": "one head",
    "one-head-no-scale": "one head, no √d_k",
}
SPLITS = ("test", "unseen-combinations", "coreference", "senses")


def table(what, splits):
    """Print mean and standard deviation over the seeds."""
    print(f"{what:20}", *(f"{split[:13]:>13}" for split in splits))
    for name, title in TITLES.items():
        cells = [measured[name][what][split] for split in splits]
        print(f"{title:20}", *(f"{fmean(cell):6.1f} ± {stdev(cell):4.1f}" for cell in cells))


table("exact", SPLITS)
table("pairs", ("coreference", "senses"))

# %% [markdown]
# The picture has one panel for each split. Each bar is the mean of three models, and each dot is one model. Compare
# the second, third and fourth bar with the first; then compare the last bar with the one before it.

# %% tags=["hide-input"]
figure, panels = pictures.canvas(7.8, 2.7, ncols=4, sharey=True)
COLOURS = (pictures.GREY, pictures.BLUE, pictures.ORANGE, pictures.GREEN, pictures.PURPLE, pictures.RED)
for axes, split in zip(panels, SPLITS, strict=True):
    for place, (name, colour) in enumerate(zip(TITLES, COLOURS, strict=False)):
        values = measured[name]["exact"][split]
        axes.barh(place, fmean(values), color=colour, alpha=0.7, height=0.7)
        axes.plot(values, [place] * len(values), "o", color="black", markersize=3, alpha=0.7)
    axes.set_title(split, fontsize=9)
    axes.set(xlim=(0, 100))

panels[0].set_yticks(range(len(TITLES)), TITLES.values())
panels[0].invert_yaxis()
panels[0].set_xlabel("exact, %")
pictures.picture(
    figure,
    "Exact matches on four splits for six kinds of models. On test: everything in place 90 %, no √d_k 78, no positions 70, "
    "no √d_model 1, one head 85, one head without √d_k below 10.",
)

# %% [markdown]
# How fast do they learn? The next picture shows exact matches on 100 sentences of the validation split, every 100
# steps: the mean over the seeds, with a band of one standard deviation. A missing part may slow the learning down
# without changing where it ends.

# %% tags=["hide-input"]


def series(name):
    """Return steps, and mean and standard deviation over the seeds of the exact matches on validation."""
    values = torch.tensor([[point["exact"] for point in run] for run in measured[name]["curve"]])
    return [point["step"] for point in measured[name]["curve"][0]], values.mean(0), values.std(0)


pictures.curves(
    {TITLES[name]: series(name) for name in TITLES},
    x_label="step",
    y_label="exact, % (validation)",
    height=3.6,
    alt="Exact matches on validation during training. Everything in place and one head rise first; no √d_k and no positions "
    "follow lower; no √d_model and one head without √d_k stay near 0.",
)

# %% [markdown]
# ## How to read it
#
# The same seed has the same corpus in all models, so compare seed by seed. By how many points is each variant worse (−)
# or better (+) than its counterpart, on each split and for each of the three seeds? If the three seeds disagree in sign
# on a split, the experiment does not show whether the variant is better or worse there.

# %%
COUNTERPART = {
    "no-scale": "short",
    "no-positions": "short",
    "no-embedding-scale": "short",
    "one-head-no-scale": "one-head",
}


def differences(name, split):
    """Return by how many points a variant is better than its counterpart, seed by seed."""
    pairs = zip(measured[name]["exact"][split], measured[COUNTERPART[name]]["exact"][split], strict=True)
    return [one - other for one, other in pairs]


for name, other in COUNTERPART.items():
    for split in SPLITS:
        points = "  ".join(f"{value:+6.1f}" for value in differences(name, split))
        print(f"{TITLES[name]:19} against {TITLES[other]:19} {split:20} {points}")

# %% [markdown]
# The results, part by part:
#
# - **Without $\sqrt{d_{\text{model}}}$, almost nothing is learned in 600 steps**: about 1 sentence of 100, or none.
#   Most texts pass over this factor in half a sentence, and yet it is the one that these models cannot do without. The
#   loss is still falling at the end. Probably these models lose time at the start, while the words are an eighth as
#   large as the positions.
# - **Without $\sqrt{d_k}$, models with narrow heads lose about 12 points on "test", and models with a wide head lose
#   nearly everything.** The one-head models go from about 85 % to less than 10 %. The mathematics promised that: the
#   wider the head, the larger the scores. But notice also where the usual story is *wrong*. With $d_k = 16$ the models
#   do learn, only later, and they learn a large part. What they have not learned is the hardest part: with the
#   division, 99 of 100 coreference pairs have both sentences right; without the division, fewer than 50 of 100.
# - **Without positions, the models lose about 20 points on "test", and still get 70 of 100 sentences exactly right.**
#   "A bag of words" is wrong twice. The decoder knows the order of what it writes, through its mask. And a bag of
#   words may have only one sensible order: "the", "cat", "slept", "on", "the", "rug". On unseen combinations, where the
#   models have not seen which order is sensible, they lose 30 points.
#
# So all three parts matter in this experiment, and the usual order of importance is reversed: the least famous part
# matters most.

# %%
loss = {(name, split): [-value for value in differences(name, split)] for name in COUNTERPART for split in SPLITS}

# %% tags=["hide-input", "check"]
assert max(measured["no-embedding-scale"]["exact"]["test"]) < 5
assert all(10 < points < 14 for points in loss["no-scale", "test"])
assert max(measured["no-scale"]["pairs"]["coreference"]) < 50 < 99 <= min(measured["short"]["pairs"]["coreference"])
assert all(15 < points < 24 for points in loss["no-positions", "test"])
assert all(69 < value < 72 for value in measured["no-positions"]["exact"]["test"])
assert fmean(loss["no-positions", "unseen-combinations"]) > 27
assert min(loss["one-head-no-scale", "test"]) > 65

# %% [markdown]
# And how sharp is the attention? We take the largest weight of each row of the encoder's self-attention, averaged
# over rows, heads, layers and 100 sentences, in the untrained and in the trained models. Without the division,
# attention starts sharp and stays sharp: the models do not find their way back to smaller weights.

# %%
for name, title in TITLES.items():
    start, end = (fmean(measured[name]["largest_weight"][when]) for when in ("start", "end"))
    print(f"{title:20} untrained {start:.2f}   trained {end:.2f}")

# %% tags=["hide-input", "check"]
for name in ("no-scale", "one-head-no-scale"):
    assert min(measured[name]["largest_weight"]["start"]) > 0.65
    assert min(measured[name]["largest_weight"]["end"]) > 0.75

# %% [markdown]
# ## Without larger parts
#
# What if a whole part is missing: the feed-forward networks, the residual connections, or the norms?
# [measure/leave_out.py](measure/leave_out.py) leaves out one of them everywhere, again with seeds 1, 2 and 3. To keep
# the measurement short, these models are only half as wide as the demo's and read a third of its tokens in each of the
# 600 steps. So compare these rows with each other, not with those above. *Exact* is measured on 100 sentences of the
# validation split.

# %%
left_out = json.loads(Path("results/leave_out.json").read_text(encoding="utf-8"))["models"]
last = {name: [run[-1] for run in runs] for name, runs in left_out.items()}
for name, title in {
    "small": "everything in place",
    "small-no-feed-forward": "no feed-forward",
    "small-no-residual": "no residual",
    "small-no-norm": "no norm",
}.items():
    losses = "  ".join(f"{one['loss']:.2f}" for one in last[name])
    exact = "  ".join(f"{one['exact']:.0f} %" for one in last[name])
    print(f"{title:20} loss {losses}   exact {exact}")

# %% tags=["hide-input", "check"]
ends = {name: [one["loss"] for one in ones] for name, ones in last.items()}
assert min(ends["small-no-residual"]) > 3.5 and not any(one["exact"] for one in last["small-no-residual"])
for seed in range(3):
    assert 0.1 < ends["small-no-feed-forward"][seed] - ends["small"][seed] < 0.3
    assert 0 < ends["small-no-norm"][seed] - ends["small"][seed] < 0.1

# %% [markdown]
# **Without residual connections, not one sentence is right**, with any seed. Without feed-forward networks, the loss
# is higher with each seed. Without norms, it is also higher with each seed, but by little: these models have only two
# layers in each stack. [Deeper models](norms.py) depend on their norms much more.

# %% [markdown]
# ## What goes wrong
#
# The three mistakes are easy to make and hard to see, as all shapes are right and the model trains: [the embedding
# without its factor](../errata.py#no-scaling-of-the-embedding), [the scale by the whole
# width](../errata.py#scale-by-the-whole-width), and, for positions, [a doubled
# exponent](../errata.py#doubled-exponent). What each of them costs depends on the model, the data and the optimiser.
# A sentence such as "without it, the Transformer cannot learn" should always come with a count.
#
# This count has two limits. The models are small and shallow, and the training is short: with more steps, some of the
# losses may be made up. And the recipe, above all its learning rate, was chosen for models with everything in place;
# a different rate might suit a variant better.
#
# ## Exercises
#
# **1.** *Easy · 3 min.* What is the standard deviation of the dot product of two random vectors of 256 entries, each
# uniform between −1 and 1? (The variance of such an entry is 1/3.)
#
# <details><summary>Hint</summary>
#
# Each of the 256 products has the variance 1/3 · 1/3.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the standard deviation
print(verdict("parts.1", answer))

# %% tags=["hide-cell"]
predicted = math.sqrt(256 / 9)
torch.manual_seed(1)
left, right = torch.rand(2, 20_000, 256) * 2 - 1
assert abs((left * right).sum(-1).std() / predicted - 1) < 0.03
assert verdict("parts.1", predicted) == "right"
round(predicted, 2)

# %% [markdown]
# **2.** *Easy · 3 min.* The derivative of a softmax weight $w$ with respect to its own score is $w(1 - w)$. How large
# is it for $w = 0.1$, $0.5$ and $0.99$? Check one of them by differentiating.
#
# <details><summary>Hint</summary>
#
# Where is $w(1 - w)$ largest, and what happens to it near 1?
#
# </details>

# %%
answer = None  # instead of None: three numbers, as a list
print(verdict("parts.2", answer))

# %% tags=["hide-cell"]
slopes = {w: w * (1 - w) for w in (0.1, 0.5, 0.99)}
scores = torch.tensor([math.log(0.99), math.log(0.01)], dtype=torch.float64, requires_grad=True)
scores.softmax(0)[0].backward()
assert abs(scores.grad[0].item() - slopes[0.99]) < 1e-12
assert verdict("parts.2", [*slopes.values()]) == "right"
{w: round(slope, 4) for w, slope in slopes.items()}

# %% [markdown]
# **3.** *Easy · 4 min.* Switch off the positions of the demo's model, which was trained with them. Does it translate
# "The cat saw the dog." and "The dog saw the cat." in the same way?
#
# <details><summary>Hint</summary>
#
# `without_positions()` is the edit for `gf.intervene`.
#
# </details>

# %% tags=["hide-cell"]
both = ["The cat saw the dog.", "The dog saw the cat."]
with gf.intervene(model, without_positions()):
    blind = [one.text for one in translator.translate(both, beam_size=1)]

seeing = [one.text for one in translator.translate(both, beam_size=1)]
assert blind[0] == blind[1]  # the same memory in a different order, which cross-attention does not see either
assert seeing[0] != seeing[1]
blind, seeing

# %% [markdown]
# ## Next
#
# [One head or eight?](one_head.py) has more on the wide head. The mathematics of each part is in
# [attention](../attention.py), [positions](../positions.py) and [embeddings](../embeddings.py).
