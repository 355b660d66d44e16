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
# # What does a larger beam find?
#
# ## The question
#
# A model gives every output a probability. There are far too many outputs to try them all, so a *beam search* goes
# from left to right and keeps the $N$ best beginnings at each step ([decoding](../decoding.py)). $N$ is the *beam
# size*. With $N = 1$ this is greedy search: always take the most probable next word. The paper uses $N = 4$ (§6.1).
#
# A larger beam costs more and finds more probable outputs. **Are these also better outputs?**

# %%
import json
from pathlib import Path
from statistics import fmean
from textwrap import fill

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import english_french
from glassformer.watch import pictures

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
splits = english_french(1, train=0).splits

# %% [markdown]
# ## The intuition
#
# An output can be wrong for two reasons. The model may prefer the right output, but the search misses it: a *search
# error*. A larger beam can repair that. Or the model itself prefers the wrong output: a *model error*. A larger beam
# does not help against that. On the contrary, a search that is too good may find a bad output to which the model gives
# a high probability.
#
# Models often give an early end too high a probability. The probability of an output is a product with one factor for
# each word, and no factor is above 1. So each further word costs something, and a short piece of nonsense may be more
# probable than a long right answer.
#
# ## The mathematics
#
# An output $y = (y_1, \dots, y_T)$, with `<eos>` as its last token, has the log probability
#
# $$\log p(y \mid x) = \sum_{t=1}^{T} \log p(y_t \mid y_{<t}, x)$$
#
# where $x$ is the source and $y_{<t}$ are the tokens before the $t$-th. Every term is ≤ 0. A *length penalty* makes
# up for that (§6.1; Wu et al. 2016, equation 14): outputs are compared by their score
#
# $$s(y) = \frac{\log p(y \mid x)}{\left(\frac{5 + T}{6}\right)^{\alpha}}$$
#
# With $\alpha = 0$ the score is the log probability. The paper uses $\alpha = 0.6$.
#
# If an output $\hat y$ differs from the reference $y^*$, we count it as a search error when $s(y^*) > s(\hat y)$, and
# as a model error otherwise. (This is a lower bound on search errors, because the search may have missed a third
# output that is better than both.)
#
# ## Line by line
#
# Take one sentence from the split "longer", whose sentences are all longer than any in the model's training data. We
# translate it with growing beams and $\alpha = 0$.

# %%
example = splits["longer"][3]
print("source")
print(fill(example.source, 90))
print("reference")
print(fill(example.target, 90))

found = {}
for size in (1, 4, 32):
    [found[size]] = translator.translate([example.source], beam_size=size, length_penalty=0.0)
    print()
    print(f"beam {size}: log p = {found[size].log_prob:.2f}, {len(found[size].tokens)} tokens")
    print(fill(found[size].text, 90))

gain = found[32].log_prob - found[1].log_prob
shorter = len(found[1].tokens) - len(found[32].tokens)
print()
print(f"the output of beam 32: log p higher by {gain:.2f}, shorter by {shorter} tokens than greedy search's output")

# %% [markdown]
# On such sentences, greedy search may fall into a loop, until it is cut off 50 tokens beyond the length of the source.
# A large beam finds an output that is more probable, and often too short. Now the reference, scored by the same model:

# %%
[reference] = translator.score([(example.source, example.target)], length_penalty=0.0)
print(f"reference: log p = {reference.log_prob:.2f}, {len(reference.tokens)} tokens")
for size, translation in found.items():
    kind = "search error" if reference.log_prob > translation.log_prob else "model error"
    print(f"beam {size:2}: {translation.log_prob:7.2f}  {kind}")

# %% tags=["hide-input", "check"]
assert found[1].log_prob < found[32].log_prob

# %% [markdown]
# Where it says "search error", a better output existed and was not found: the search is to blame. Where it says
# "model error", the search has done its duty, and the model is to blame. The picture shows why. Each line adds up the
# log probability from token to token. A line can only fall, and a short output stops before it has fallen far.

# %% tags=["hide-input"]
lines = {"reference": reference, **{f"beam {size}": translation for size, translation in found.items()}}
pictures.curves(
    {name: (range(1, len(one.tokens) + 1), torch.tensor(one.token_log_probs).cumsum(0)) for name, one in lines.items()},
    x_label="tokens written",
    y_label="log p so far",
    alt="Four falling lines, of the reference and of three beams: log p against the number of tokens. The line of the largest "
    "beam ends highest.",
)

# %% [markdown]
# ## The same from the library
#
# A translation's `log_prob` is the sum of its tokens' log probabilities, and its `score` is that sum divided by the
# length penalty. `gf.Translator.score` computes both for any given output.

# %%
[translation] = translator.translate([example.source], beam_size=4, length_penalty=0.6)
[short] = translator.translate(["The cat slept on the rug."])
[again] = translator.score([("The cat slept on the rug.", short.text)])
round(translation.log_prob, 2), round(translation.score, 2)

# %% tags=["hide-input", "check"]
assert abs(sum(translation.token_log_probs) - translation.log_prob) < 1e-4  # float32
assert abs(translation.log_prob / ((5 + len(translation.tokens)) / 6) ** 0.6 - translation.score) < 1e-9
assert abs(again.log_prob - short.log_prob) < 1e-3

# %% [markdown]
# The explorer draws [the beam of this
# sentence](../../runs/demo/explorer.html#text=The+old+goose+played+in+a+street+when+a+rabbit+fell+into+the+ditch.&beam=4&zoom=%7B%22box%22:%22decoder.softmax%22,%22key%22:null%7D&panel=beam)
# as a tree, with all candidates that were kept or dropped.
#
# ## The experiment
#
# [measure/beam.py](measure/beam.py) translates four whole splits with beams of 1, 2, 4, 8, 16 and 32, and with
# $\alpha = 0$ and $0.6$: "test", "unseen-combinations" (combinations of words that are not in the training data),
# "coreference" (what "it" refers to) and "longer". The script uses three models like the demo's (*demo*), and three
# that were trained for a third of the time and are less sure (*short*; "test" and "longer" only). The price of a search
# is counted in *expansions*: the number of hypotheses per sentence that the model had to continue by one token.

# %%
measured = json.loads(Path("results/beam.json").read_text(encoding="utf-8"))
sizes = measured["sizes"]


def mean(model, split, alpha, what):
    """Return the mean over the seeds, for each beam size."""
    cells = measured["models"][model][split][alpha]
    return [fmean(cells[str(size)][what]) for size in sizes]


def table(what, only=None):
    """Print one line for each model, split (or one of them only) and α."""
    print(f"{what:32}", *(f"{size:>7}" for size in sizes))
    for model, some in measured["models"].items():
        for split in some if only is None else [only]:
            for alpha in ("0.0", "0.6"):
                values = (f"{value:7.1f}" for value in mean(model, split, alpha, what))
                print(f"{model:6}{split:20} α {alpha} ", *values)


table("exact")

# %% [markdown]
# The table gives the sentences that are translated exactly, in %. If you expected a rise from left to right, you find
# hardly any. The picture shows the four splits for the demo's models, and "test" for the short ones. Dots are single
# models.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.8, 3.2)
shown = [("demo", split) for split in measured["models"]["demo"]] + [("short", "test")]
for (model, split), colour, style in zip(shown, pictures.PALETTE, ("-", "--", "-.", "-", "--"), strict=False):
    cells = measured["models"][model][split]["0.6"]
    axes.plot(sizes, mean(model, split, "0.6", "exact"), style, color=colour, linewidth=1.8, label=f"{model}: {split}")
    for seed in range(len(measured["seeds"])):
        axes.plot(
            sizes, [cells[str(size)]["exact"][seed] for size in sizes], ".", color=colour, alpha=0.6, markersize=5
        )

axes.set_xscale("log", base=2)
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.set(xlabel="beam size", ylabel="exact, %", ylim=(0, 103))
axes.grid(color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=8, loc="center right")
pictures.picture(
    figure,
    "Exact translations against beam size: all lines are flat. Test, unseen combinations and coreference above 99 %, the short "
    "models' test near 90 %, longer near 11 %.",
)

# %% tags=["hide-input", "check"]
for split in ("test", "unseen-combinations", "coreference"):
    for alpha in ("0.0", "0.6"):
        exact = mean("demo", split, alpha, "exact")
        assert max(exact) - min(exact) < 0.5

# %% [markdown]
# **On sentences like those in the training data, the beam makes no difference worth mentioning.** The demo's models
# are so sure of each word that the second best never catches up. Greedy search is enough, at a fraction of the price:

# %%
for size, expansions in zip(sizes, mean("demo", "test", "0.6", "expansions"), strict=True):
    print(f"beam {size:2}: {expansions:6.1f} expansions per sentence")

# %% [markdown]
# ## Longer sentences
#
# Something does happen on the split "longer". See what the search finds as the beam grows, with $\alpha = 0$.

# %%
table("search_errors", "longer")
print()
table("model_errors", "longer")
print()
table("longer_by", "longer")
print()
table("log_prob", "longer")
print()
table("bleu", "longer")

# %% tags=["hide-input"]
figure, three = pictures.canvas(7.6, 2.9, ncols=3)
panels = (
    ("kinds of errors, %", (("search_errors", "search", pictures.ORANGE), ("model_errors", "model", pictures.BLUE))),
    (
        "log p of the output",
        (("log_prob", "output", pictures.BLUE), ("log_prob_of_reference", "reference", pictures.GREY)),
    ),
    ("surplus tokens", (("longer_by", "output", pictures.BLUE),)),
)
for axes, (title, series) in zip(three, panels, strict=True):
    for what, label, colour in series:
        style = "--" if colour in (pictures.ORANGE, pictures.GREY) else "-"
        axes.plot(sizes, mean("demo", "longer", "0.0", what), style, color=colour, label=label, linewidth=1.8)
        cells = measured["models"]["demo"]["longer"]["0.0"]
        for seed in range(len(measured["seeds"])):
            dots = [cells[str(size)][what][seed] for size in sizes]
            axes.plot(sizes, dots, ".", color=colour, alpha=0.6, markersize=5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_title(title, fontsize=10)
    axes.grid(color=pictures.GREY, alpha=0.25, linewidth=0.6)
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)

three[2].axhline(0, color="black", linewidth=0.8, alpha=0.6)
three[1].set_xlabel("beam size")
pictures.picture(
    figure,
    "Split longer, demo's models, alpha 0, against beam size. Search errors fall to nearly 0 and model errors rise by as much; "
    "log p of the output is above log p of the reference and rises; outputs shrink from longer than the reference to shorter.",
)

# %% [markdown]
# The search becomes nearly perfect, and exact translations stay at one in ten. Read the three panels from left to
# right:
#
# - Search errors vanish, but *each of them turns into a model error*. The sum hardly moves, and neither do the exact
#   matches.
# - With every beam size, the output is on average more probable than the right answer; with a large beam, it is far
#   more probable. The model is mistaken about sentences of this length, and a good search finds its mistakes.
# - Greedy outputs are too long (loops); outputs of large beams are too short (early ends).
#
# BLEU counts common pieces of 1 to 4 words (higher is better), so it also credits outputs that are nearly right. By
# this measure the beam *does* matter, and in both directions. The demo's models gain eight to ten points from 1 to 4
# hypotheses, as the loops go away. Then they lose again as the ends come too early, especially without the length
# penalty. The short models only lose: 58 with greedy search, 23 with a beam of 32 and $\alpha = 0$. The length
# penalty does what it is made for: with $\alpha = 0.6$, most of that loss is gone.

# %%
longer = {
    what: mean("demo", "longer", "0.0", what)
    for what in ("exact", "search_errors", "model_errors", "longer_by", "log_prob")
}
scores = {
    key: mean(*key, "bleu")
    for key in (("demo", "longer", "0.0"), ("demo", "longer", "0.6"), ("short", "longer", "0.0"))
}

penalised = mean("demo", "longer", "0.6", "longer_by")

# %% tags=["hide-input", "check"]
assert longer["search_errors"][0] > 5
assert longer["search_errors"][-1] < 1
assert longer["model_errors"][-1] > longer["model_errors"][0]
assert max(longer["exact"]) - min(longer["exact"]) < 3
for alpha in ("0.0", "0.6"):
    assert scores["demo", "longer", alpha][2] - scores["demo", "longer", alpha][0] > 7
    assert scores["demo", "longer", alpha][5] < scores["demo", "longer", alpha][2]

assert scores["short", "longer", "0.0"] == sorted(scores["short", "longer", "0.0"], reverse=True)
assert longer["longer_by"][0] > 0 > longer["longer_by"][-1]
assert all(more > less for less, more in zip(longer["log_prob"], longer["log_prob"][1:], strict=False))
assert penalised[-1] > longer["longer_by"][-1]

# %% [markdown]
# ## What goes wrong
#
# - *"Beam search gives better translations than greedy search."* For models that hesitate between several good
#   outputs, as on real texts, a beam of about 4 usually gains a point of BLEU. **Here it holds in one case only**:
#   BLEU on "longer", with the better models. On the other splits nothing changes, because those models are sure. With
#   the weaker models on "longer", greedy search has the highest BLEU of all.
# - *"The larger, the better."* Not here, and not on real texts either: with large beams, translations get shorter and
#   worse (Koehn and Knowles 2017). Stahlberg and Byrne (2019) searched exhaustively, and found that the most probable
#   output of a good model is often the empty one.
# - *"A low score means a bad search."* Score the reference before you blame the search. It takes one line.
# - A softmax taken twice flattens all probabilities, so that sentences end at odd places:
#   [errata](../errata.py#softmax-twice).
#
# ## Exercises
#
# **1.** *Easy · 4 min.* An output of 4 tokens has log p = −8.4, and an output of 29 tokens has −22.3. Which one wins
# with α = 0, 0.6 and 1?
#
# <details><summary>Hint</summary>
#
# Divide each log p by $((5 + n)/6)^\alpha$. The larger score wins.
#
# </details>

# %% tags=["hide-cell"]
winners = {}
for alpha in (0, 0.6, 1):
    short, long = (log_prob / ((5 + length) / 6) ** alpha for log_prob, length in ((-8.4, 4), (-22.3, 29)))
    winners[alpha] = "short" if short > long else "long"

assert winners == {0: "short", 0.6: "short", 1: "long"}
winners

# %% [markdown]
# **2.** *Medium · 6 min.* Above which α does the reference of our example beat the output of the largest beam? Compute
# it from the two log probabilities and lengths.
#
# <details><summary>Hint</summary>
#
# At the α you look for, both scores are equal. Take logarithms.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the value of α
print(verdict("beam.2", answer, reference, found[32]))

# %% tags=["hide-cell"]
import math

ratio = reference.log_prob / found[32].log_prob
lengths = (5 + len(reference.tokens)) / (5 + len(found[32].tokens))
alpha = math.log(ratio) / math.log(lengths)
scores = [one.log_prob / ((5 + len(one.tokens)) / 6) ** alpha for one in (reference, found[32])]
assert math.isclose(*scores, rel_tol=1e-9)
assert verdict("beam.2", alpha, reference, found[32]) == "right"
round(alpha, 2)

# %% [markdown]
# **3.** *Easy · 4 min.* Translate 20 sentences of the test split with beams of 1 and 8. How many outputs differ?
#
# <details><summary>Hint</summary>
#
# `translator.translate(texts, beam_size=8)` takes a list of sentences.
#
# </details>

# %%
answer = None  # instead of None: the number of outputs
print(verdict("beam.3", answer, translator, [one.source for one in splits["test"][:20]]))

# %% tags=["hide-cell"]
texts = [one.source for one in splits["test"][:20]]
few, many = (translator.translate(texts, beam_size=size) for size in (1, 8))
differing = sum(one.text != other.text for one, other in zip(few, many, strict=True))
assert differing <= 5
assert verdict("beam.3", differing, translator, [one.source for one in splits["test"][:20]]) == "right"
differing

# %% [markdown]
# ## Next
#
# [Decoding](../decoding.py) shows how a beam search works, step by step and as a tree. [The
# output](../output.py) explains where the probabilities come from: label smoothing takes a little from the right
# word and gives it to all the others, including `<eos>`. The [errata](../errata.py), the last page of the book, show
# mistakes that many tutorials make.
