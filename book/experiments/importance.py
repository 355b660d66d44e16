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
# # Does attention equal importance?
#
# ## The question
#
# A word gets a large attention weight. Does that mean that it *matters*, that the output would change without it? And
# conversely: does a word with hardly any weight not matter?
#
# Heat maps of attention are often shown as explanations, so the answer matters. People have argued about it in papers
# with titles such as "Attention is not Explanation" (Jain and Wallace 2019) and "Attention is not not Explanation"
# (Wiegreffe and Pinter 2019). On a small model we can check this: hide a word, and see what changes.

# %%
import json
from pathlib import Path
from statistics import fmean

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC
from glassformer.text.words import split_words
from glassformer.watch import pictures
from glassformer.watch.inspection import Changes, changed, outputs

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
example = CLASSIC[1]
example.source, example.target

# %% [markdown]
# ## The intuition
#
# Think of a detective with a notebook. *Where did she look?* is one question. *Which clue could she not have done
# without?* is another. She may stare at a clue that only confirms what she already knew. And when two witnesses tell
# the same story, she could do without either of them, although she could not do without both.
#
# Attention weights answer the first question, for one step of the computation. To answer the second, we have to take
# the clue away.
#
# ## The mathematics
#
# Let $y_t$ be the word that the model writes at step $t$, after the words $y_{<t}$, and let $x$ be the source
# sentence with its tokens $x_1, \dots, x_S$. The *effect* of the token $x_s$ on this step is how much less probable
# the same word becomes when the token is hidden:
#
# $$\Delta_{t,s} = \log p(y_t \mid y_{<t}, x) - \log p(y_t \mid y_{<t}, x \text{ without } x_s)$$
#
# The logarithm is natural, so the unit is the *nat*. An effect of 0.7 nats means half as probable, 4.6 nats a
# hundredth as probable. To *hide* a token means to remove it from the keys of every attention over the source. No
# other position of the encoder and no step of the decoder may look at it. All other words keep their positions.
#
# The *attention* $a_{t,s}$ is the weight of token $s$ at step $t$ in cross-attention, averaged over all heads and
# both layers.
#
# To compare two lists of numbers regardless of their scale, replace each number by its rank (1 for the smallest) and
# take the correlation of the ranks. This is Spearman's *rank correlation* $\rho$. It is 1 when both lists have the
# same order, −1 when their orders are opposite, and about 0 when they have nothing to do with each other.
#
# ## Line by line
#
# First, we run the model without any change, and look at its log probability for each word of the output.

# %%
source = [*bundle.source_tokenizer.encode(example.source), model.config.eos_id]
output = [*bundle.target_tokenizer.encode(example.target), model.config.eos_id]
source_tokens = [*split_words(example.source), "<eos>"]
output_tokens = [*split_words(example.target), "<eos>"]
before = torch.tensor(outputs(model, [(source, output)])[0].token_log_probs)
before.shape

# %% tags=["hide-input", "check"]
assert translator.translate([example.source], beam_size=1)[0].text == example.target

# %% [markdown]
# Now hide one token at a time. A cell of a mask is (query, key, may look). Hiding a key takes one cell for each
# query.

# %%
LOOKING_AT_THE_SOURCE = (
    "encoder.layers.0.self_attention",
    "encoder.layers.1.self_attention",
    "decoder.layers.0.cross_attention",
    "decoder.layers.1.cross_attention",
)


def effect(*keys):
    """Return by how many nats log p of each word of the output falls without these source tokens."""
    queries = range(max(len(source), len(output)))
    cells = [(query, key, False) for query in queries for key in keys]
    with changed(model, Changes(masks=dict.fromkeys(LOOKING_AT_THE_SOURCE, cells))):
        [without] = outputs(model, [(source, output)])
    return before - torch.tensor(without.token_log_probs)


effects = torch.stack([effect(key) for key in range(len(source))], dim=1)  # (words of the output, source tokens)
effects.shape

# %% [markdown]
# Here is the attention at the same steps:

# %%
with torch.no_grad(), gf.record(model, "decoder.layers.*.cross_attention.weights") as trace:
    model(torch.tensor([source]), torch.tensor([[model.config.bos_id, *output[:-1]]]))

attention = torch.stack([weights[0].mean(0) for weights in trace.values()]).mean(0)
for step, word in enumerate(output_tokens):
    most, matters = attention[step].argmax(), effects[step].argmax()
    cost = f"{effects[step, matters]:5.2f} nats"
    print(f"{word:9} looks most at {source_tokens[most]:7} and needs most {source_tokens[matters]:7} ({cost})")

# %% tags=["hide-input", "check"]
assert attention.shape == effects.shape

# %% [markdown]
# Compare the two columns row by row: where they name the same word, attention has found what matters. Then look at the
# row of "il", the French pronoun that stands for "it". How much does it cost to hide "it" itself, and how much to hide
# "tired" or "animal", which say that "it" is the animal, and masculine?

# %%
il = output_tokens.index("il")
for word in ("it", "was", "tired", "animal"):
    place = source_tokens.index(word)
    print(f"{word:7} attention {attention[il, place]:.2f}   effect {effects[il, place]:5.2f} nats")

# %% tags=["hide-input", "check"]
assert effects[il, source_tokens.index("tired")] > effects[il, source_tokens.index("it")]

# %% [markdown]
# Here are the two matrices side by side: attention on the left, the effect on the right. The darkest green stands for 5
# nats or more. Both matrices have their large values in mostly the same cells. This chapter is about the cells in which
# they differ.

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap, to_rgb

figure, both = pictures.canvas(7.6, 4.6, ncols=2, sharey=True)
for axes, values, full, colour, title in (
    (both[0], attention, 1, pictures.BLUE, "attention"),
    (both[1], effects, 5, pictures.GREEN, "effect of hiding, nats"),
):
    shades = ListedColormap([(*to_rgb(colour), share / 99) for share in range(100)])
    axes.imshow(values, aspect="auto", cmap=shades, vmin=0, vmax=full)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source_tokens)), source_tokens, rotation=60, ha="left", fontsize=8)
    axes.set_yticks(range(len(output_tokens)), output_tokens)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(title)

pictures.picture(
    figure,
    "Two matrices, output words by source tokens: attention on the left, the effect of hiding on the right. Both have a "
    "strong diagonal. In the row of 'il', attention is spread thinly, and the effects are few and strong.",
)

# %% [markdown]
# ## The same from the library
#
# The experiment has thousands of steps, so it hides all tokens at once. It makes a batch with one copy of the sentence
# for each token, and in each copy sets the scores of a different key to −∞. `gf.intervene` replaces the computed scores
# by the edited ones. The result is the same.

# %%
S = len(source)
hidden = torch.eye(S, dtype=torch.bool)[:, None, None]  # (copies, heads, queries, keys): copy i hides key i
edits = {f"{name}.scores": lambda scores: scores.masked_fill(hidden, -torch.inf) for name in LOOKING_AT_THE_SOURCE}
read = torch.tensor([[model.config.bos_id, *output[:-1]]]).expand(S, -1)
with torch.no_grad(), gf.intervene(model, edits):
    log_probs = model(torch.tensor([source]).expand(S, -1), read).log_softmax(-1)

given = log_probs.gather(-1, torch.tensor(output).expand(S, -1)[..., None])[..., 0]  # (copies, steps)

# %% tags=["hide-input", "check"]
torch.testing.assert_close((before - given).T, effects, atol=1e-4, rtol=1e-4)  # float32, summed in a different order

# %% [markdown]
# ## Two witnesses
#
# Before we count, a warning about the right-hand matrix. The article "la" agrees with "rue". A model can tell it from
# "the" and from "street", so each of these words alone may look dispensable although both together are not:

# %%
la, the, street = output_tokens.index("la"), source_tokens.index("the"), source_tokens.index("street")
alone = [effects[la, the].item(), effects[la, street].item()]
together = effect(the, street)[la].item()
print(f"hide 'the': {alone[0]:.2f}   hide 'street': {alone[1]:.2f}   hide both: {together:.2f} nats")

# %% tags=["hide-input", "check"]
assert together > min(alone)

# %% [markdown]
# So hiding one token shows only whether the model can *replace* it. No single number measures importance completely.
# Besides, the model has never seen a sentence with a hidden token in training.
#
# Try it in the explorer, under [*What
# if?*](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=changes).
#
# ## The experiment: words
#
# [measure/importance.py](measure/importance.py) does this for 300 sentences of the test split, on three models
# trained by the demo's recipe with seeds 1, 2 and 3. The model translates by greedy search, and each word that it
# writes is a step. Some steps do not depend noticeably on any source token: after "parce", "que" follows anyway. Only
# steps at which some token has an effect above 0.1 nats count.
#
# We compare attention with four other ways to guess which token has the largest effect:
#
# - *last layer*: the weights of the last cross-attention alone;
# - *rollout*: attention followed back through the encoder to the words (Abnar and Zuidema 2020);
# - *gradient*: $|\nabla \log p \cdot \text{embedding}|$, how fast the log probability changes when the token's
#   embedding shrinks;
# - *chance*: any token.
#
# The first question: how often is the token with the highest value also the token with the largest effect?

# %%
measured = json.loads(Path("results/importance.json").read_text(encoding="utf-8"))
words = measured["words"]
TITLES = {"cross": "attention", "last layer": "last layer alone", "rollout": "rollout", "gradient": "gradient"}
first = {title: [seed["guesses"][name]["first"] for seed in words] for name, title in TITLES.items()}
first["chance"] = [seed["chance"] for seed in words]
for title, values in first.items():
    print(f"{title:17}", "  ".join(f"{value:5.1f} %" for value in values))

sum(seed["strong"] for seed in words)  # steps in all

# %% tags=["hide-input", "check"]
assert min(first["attention"]) > 83
assert max(first["rollout"] + first["gradient"]) < 70

# %% tags=["hide-input"]
pictures.bars(
    {title: fmean(values) for title, values in first.items()},
    points=first,
    x_label="steps whose most important token is the guess, %",
    width=6.6,
    alt="Bars: attention 85 %, last layer alone 86 %, rollout 65 %, gradient 50 %, chance 9 %.",
)

# %% [markdown]
# Attention does well: in about 85 steps of 100, the token with the most weight is the token that the model can least
# do without. The gradient, which is often called more faithful, finds it in half of the cases.
#
# The second question: does attention put *all* tokens in the right order? We measure this by the rank correlation
# within a step, averaged over the steps.

# %%
rank = {title: [seed["guesses"][name]["rank"] for seed in words] for name, title in TITLES.items()}
rank["attention, all steps as one list"] = [seed["guesses"]["cross"]["overall"] for seed in words]
rank["attention, other words only"] = [seed["rank_beside_origin"] for seed in words]
for title, values in rank.items():
    print(f"{title:33}", "  ".join(f"{value:.2f}" for value in values))

# %% tags=["hide-input", "check"]
assert all(0.38 < value < 0.46 for value in rank["attention"])
assert [f"{value:.2f}" for value in sorted(rank["attention, other words only"])] == ["0.20", "0.22", "0.26"]

# %% tags=["hide-input"]
pictures.bars(
    {title: fmean(values) for title, values in rank.items()},
    points=rank,
    x_label="rank correlation with the effect of hiding (1 = the same order)",
    numbers=".2f",
    width=6.8,
    alt="Bars of rank correlations: attention 0.42, last layer 0.39, rollout 0.40, gradient 0.30, attention over all "
    "steps 0.41, attention among words that the output word does not come from 0.23.",
)

# %% [markdown]
# Attention does not put them in the right order: a correlation of about 0.4 is far from 1. The picture below shows why.
# Each dot is one source token at one step. For an orange dot, the grammar says that the written word comes from this
# token. Blue dots are all other tokens. Both axes are stretched near 0.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.4, 3.9)
dots = {True: ([], []), False: ([], [])}
for step in measured["points"][::2]:
    for place, (weight, cost) in enumerate(zip(step["attention"], step["effect"], strict=True)):
        xs, ys = dots[place in step["origins"]]
        xs.append(max(weight, 1e-4))
        ys.append(cost)

for origin, colour, marker, label in (
    (False, pictures.BLUE, "o", "another word"),
    (True, pictures.ORANGE, "^", "an origin"),
):
    axes.plot(*dots[origin], marker, color=colour, markersize=4, alpha=0.6, linestyle="none", label=label)

axes.set_xscale("log")
axes.set_yscale("symlog", linthresh=0.1)
axes.set_yticks([-1, -0.1, 0, 0.1, 1, 10], ["−1", "−0.1", "0", "0.1", "1", "10"])
axes.set(xlabel="attention (mean over heads and layers)", ylabel="effect of hiding, nats")
axes.grid(color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=9, loc="upper left")
pictures.picture(
    figure,
    "Effect against attention. Most origins sit at the upper right: much attention, 1 to 10 nats. Nearly all other words "
    "form a cloud at effects below 0.1 nats, whatever their attention.",
)

# %% tags=["hide-input", "check"]
costs = {True: [], False: []}
for step in measured["points"]:
    for place, cost in enumerate(step["effect"]):
        costs[place in step["origins"]].append(cost)

assert round(100 * fmean(abs(cost) < 0.1 for cost in costs[False])) == 96
assert round(100 * fmean(abs(cost) < 0.1 for cost in costs[True])) == 20
assert fmean(cost > 1 for cost in costs[True]) > 0.65

# %% [markdown]
# There are two clouds. At the upper right are most of the origins, which matter and are looked at. The other cloud lies
# near 0: 96 % of the other words have an effect below 0.1 nats, and one origin in five has such a small effect, too.
# Within that cloud the weights say little, though some weights are large. Attention mostly finds the token that matters
# most, but it does not put the others in the right order. For source words that the output word does not come from, the
# correlation is only 0.20 to 0.26.
#
# Here are some more numbers, for each of the three models:

# %%
for title, name in (
    ("largest effect of a step, mean, nats", "cost_of_first"),
    ("the same, hidden from cross-attention alone", "cost_of_first_hidden_there"),
    ("tokens above 1 nat with less than an even share, %", "little_attention_great_effect"),
    ("most attended token is an origin, %", "most_attended_is_origin"),
    ("most important token is an origin, %", "most_important_is_origin"),
):
    print(f"{title:51}", "  ".join(f"{seed[name]:5.1f}" for seed in words))

# %% tags=["hide-input", "check"]
assert all(seed["cost_of_first_hidden_there"] / seed["cost_of_first"] > 0.9 for seed in words)
assert all(seed["little_attention_great_effect"] < 4 for seed in words)
assert all(seed["most_important_is_origin"] < seed["most_attended_is_origin"] for seed in words)

# %% [markdown]
# - A token hidden from the decoder alone is still mixed into all other positions by the encoder. That hardly helps the
#   decoder: hiding the token from the decoder alone still has more than 90 % of the effect. In this model, the decoder
#   has to read a word at the word's own position.
# - Tokens with a great effect and little attention exist, but they are rare: 2 to 3 in 100.
# - The grammar's origin is the most attended token more often than it is the most important one. So these are three
#   different things, and attention lies between importance and [the alignment](alignment.py).
#
# ## The experiment: heads
#
# A head that looks very sharply, with nearly all its weight on one token, is sometimes called *confident*, and
# confident heads have been found to be the important ones (Voita et al. 2019). Sharpness is the mean of the largest
# weight of each row. The effect of a head is the loss of log probability of the reference, in nats per sentence, when
# the head is taken away ([`head_study`](../../src/glassformer/watch/inspection/studies.py#head_study)).


# %%
def ranks(values):
    """Return the rank of each number, 1 for the smallest (there are no equal ones here)."""
    return torch.tensor(values, dtype=torch.float64).argsort().argsort() + 1.0


def rank_correlation(one, other):
    """Return the correlation of the ranks of two lists."""
    return torch.corrcoef(torch.stack([ranks(one), ranks(other)]))[0, 1].item()


def of_heads(seed, which, layer=None):
    """Return the rank correlation of sharpness and effect, of the heads of one attention."""
    some = [head for head in seed if head["set"] == which and layer in (None, head["layer"])]
    return rank_correlation([head["largest"] for head in some], [head["effect"] for head in some])


for which in ("encoder", "decoder", "cross"):
    for layer in (None, 0, 1):
        title = f"{which}, {'both layers' if layer is None else f'layer {layer}'}"
        print(f"{title:21}", "  ".join(f"{of_heads(seed, which, layer):5.2f}" for seed in measured["heads"]))

library = [seed["cross"]["largest"] for seed in measured["heads_rank"]]

# %% tags=["hide-input", "check"]
assert torch.allclose(torch.tensor(library), torch.tensor([of_heads(seed, "cross") for seed in measured["heads"]]))

# %% [markdown]
# Look at the line "cross, both layers": 0.8 to 0.9, a splendid correlation. Then look at the two lines below it. Within
# a layer, with eight heads, the correlation is anything from 0 to 0.8. **A good part of the splendid number only says
# that the heads of the last layer are sharper and matter more.** The picture shows it: two groups, and much less order
# within each group.

# %% tags=["hide-input"]
figure, three = pictures.canvas(7.6, 2.9, ncols=3, sharey=True)
for axes, which in zip(three, ("encoder", "decoder", "cross"), strict=True):
    for layer, colour, marker in ((0, pictures.BLUE, "o"), (1, pictures.ORANGE, "^")):
        some = [head for seed in measured["heads"] for head in seed if (head["set"], head["layer"]) == (which, layer)]
        axes.plot(
            [head["largest"] for head in some],
            [head["effect"] for head in some],
            marker,
            color=colour,
            markersize=5,
            alpha=0.7,
            linestyle="none",
            label=f"layer {layer}",
        )
    axes.set(xlim=(0.2, 1), title=which)
    axes.grid(color=pictures.GREY, alpha=0.25, linewidth=0.6)

three[0].set_ylabel("nats lost without the head")
three[1].set_xlabel("sharpness: mean largest weight")
three[0].legend(frameon=False, fontsize=9, loc="upper left")
pictures.picture(
    figure,
    "Loss without a head against its sharpness, three panels. Encoder: dull heads, hardly any loss. Decoder self-attention: "
    "sharp heads, losses below 0.6. Cross-attention: layer 1 is sharp and costs 0.4 to 2, layer 0 is duller and costs little.",
)

# %% [markdown]
# The middle panel is the counterexample. Heads of the decoder's self-attention are as sharp as the heads of the last
# cross-attention, and yet removing most of them changes almost nothing. (A part of their sharpness is forced on them:
# the first row of a causal mask has a single key, with weight 1.)

# %%
sharp = [head for seed in measured["heads"] for head in seed if head["set"] == "decoder" and head["largest"] > 0.85]

# %% tags=["hide-input", "check"]
assert len(sharp) > 20
assert sorted(head["effect"] for head in sharp)[len(sharp) // 2] < 0.1  # the median of the sharp ones

# %% [markdown]
# ## What goes wrong
#
# - *"Attention is explanation."* As a pointer to the one token that matters most, attention is right in 85 steps of 100
#   here. About the order of the other tokens it says little.
# - *"Attention is not explanation."* For cross-attention in this model, this claim is too strong as well: its weights
#   find the most important token far more often than the gradient and the rollout do. Our task is easy, and the model
#   is small and sure of itself; the papers on both sides looked at different models. A finding about one attention is
#   not a finding about all.
# - *"Sharp heads are the important heads."* Between the layers of cross-attention, yes; within a layer, sometimes; in
#   the encoder and in the decoder's self-attention, no.
# - *"Ablation is the truth."* If two tokens give the same information, removing one of them changes nothing, so both
#   look unimportant.
#
# Two slips are easy to make. The first is to hide a key by setting its score to 0, which still leaves it a weight
# ([errata](../errata.py#zero-is-not-minus-infinity)). The second is to put two groups into one correlation, as above.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* How large is the effect in nats when a word's probability falls from 0.9 to 0.45? And when it
# falls from 0.9 to 0.009?
#
# <details><summary>Hint</summary>
#
# A nat is a difference of natural logarithms.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: both effects, as a list
print(verdict("importance.1", answer))

# %% tags=["hide-cell"]
import math

assert abs(math.log(0.9) - math.log(0.45) - math.log(2)) < 1e-12
assert abs(math.log(0.9) - math.log(0.009) - math.log(100)) < 1e-12
assert verdict("importance.1", [math.log(2), math.log(100)]) == "right"
round(math.log(2), 2), round(math.log(100), 2)

# %% [markdown]
# **2.** *Easy · 3 min.* What is the rank correlation of $(3, 1, 2)$ and $(30, 10, 20)$? And of $(3, 1, 2)$ and $(1, 3,
# 2)$? Check with the function above.
#
# <details><summary>Hint</summary>
#
# Only the order counts. Is the order the same, or the opposite?
#
# </details>

# %%
answer = None  # instead of None: both correlations, as a list
print(verdict("importance.2", answer))

# %% tags=["hide-cell"]
assert abs(rank_correlation([3, 1, 2], [30, 10, 20]) - 1) < 1e-12
assert abs(rank_correlation([3, 1, 2], [1, 3, 2]) + 1) < 1e-12
assert verdict("importance.2", [1, -1]) == "right"

# %% [markdown]
# **3.** *Medium · 5 min.* "parce" comes from "because". Hide "because"; then hide "because" and "it". What do you
# conclude?
#
# <details><summary>Hint</summary>
#
# `effect` takes one word or several, and returns an effect for each output word.
#
# </details>

# %% tags=["hide-cell"]
parce, because, it = output_tokens.index("parce"), source_tokens.index("because"), source_tokens.index("it")
alone, pair = effect(because)[parce].item(), effect(because, it)[parce].item()
assert pair > alone  # "it" after a clause without a comma announces a reason too
round(alone, 2), round(pair, 2)

# %% [markdown]
# **4.** *Hard · 10 min.* Hide "animal" from cross-attention alone, then in the encoder alone. Which of the two makes
# "il" improbable? Guess first.
#
# <details><summary>Hint</summary>
#
# Masks are cells of an attention: query, key, allowed. The first two entries of the table are the encoder's.
#
# </details>

# %% tags=["hide-cell"]
animal = source_tokens.index("animal")
cells = [(query, animal, False) for query in range(max(len(source), len(output)))]
costs = []
for some in (LOOKING_AT_THE_SOURCE[2:], LOOKING_AT_THE_SOURCE[:2]):
    with changed(model, Changes(masks=dict.fromkeys(some, cells))):
        [without] = outputs(model, [(source, output)])
    costs.append((before - torch.tensor(without.token_log_probs))[il].item())

assert len(costs) == 2
costs  # if the first is larger, the decoder looks up "animal" itself, wherever the encoder has spread it

# %% [markdown]
# ## Next
#
# [Is cross-attention an alignment?](alignment.py) compares the same weights with the grammar. To find where a piece of
# information *is*, rather than whether it is missed, [patching](patching.py) moves the information instead of hiding
# it. So far, words and heads were taken away. [What does each part do?](parts.py) takes away parts of the model.
