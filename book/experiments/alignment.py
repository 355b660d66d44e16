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
# # Is cross-attention an alignment?
#
# ## The question
#
# When you translate "the cat slept" into "le chat dormait", you can draw a line from each French word to the English
# word that it comes from. Such lines are called an *alignment*. Cross-attention gives each French word a weight for
# each English word, and pictures of these weights often look like an alignment. Many readers therefore take the weights
# for an alignment: they assume that the English word with the largest weight is the word that is being translated.
#
# **Is that right?** Usually this is hard to say, because nobody has drawn the true lines. Here they are known. The
# sentences of our English–French corpus are made by a grammar, and the grammar knows from which English words it made
# each French word.

# %%
import json
from pathlib import Path
from statistics import fmean

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.text.words import split_words
from glassformer.watch import pictures

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle

example = CLASSIC[1]
source_words, target_words = split_words(example.source), split_words(example.target)
for place, word in enumerate(target_words):
    links = [source_words[source] for source, target in example.alignment if target == place]
    print(f"{word:9} comes from", " + ".join(links))

# %% [markdown]
# To write the next French word, a decoder has to know two things: *which word* of the source it has reached, and *what
# form* the French word must take. An alignment answers the first question. The answer to the second may be in a
# different English word: "the" becomes "le" or "la" according to the noun after it, and "it" becomes "il" or "elle"
# according to a noun far before it. Attention is trained to predict the next word, not to align words. So expect an
# alignment where both questions have the same answer, and different weights where the answers differ.
#
# There is one more trap. A decoder reads a word and writes the next one. Which row of weights belongs to "chat": the
# row of the step that *writes* "chat" (and reads "le"), or the row of the step that *reads* "chat" (and writes
# "dormait")? We try both.
#
# ## The mathematics
#
# For one sentence, let $G$ be the grammar's links, pairs $(s, t)$ of a source word and a target word. Let $A$ be the
# links that we read off attention: for each target word $t$, the one source token with the largest weight. The
# simplest measure is the share of target words whose link is right, that is, in $G$.
#
# The usual measure is the *alignment error rate* (Och and Ney 2003). Some links are less certain than others: in
# "next to" → "à côté de" the grammar links all three French words to both English words. So let $S$, the *sure*
# links, be the links of target words with exactly one origin. Then
#
# $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap G|}{|A| + |S|}$$
#
# where $|A|$ is the number of links in $A$. 0 is perfect; 1 means that no link is right.
#
# ## Line by line
#
# The demo's model reads the source and, in the decoder, the right translation shifted by one position. We record the
# weights of cross-attention in both decoder layers.

# %%
config = model.config
source = [*bundle.source_tokenizer.encode(example.source), config.eos_id]
target = [config.bos_id, *bundle.target_tokenizer.encode(example.target)]
with torch.no_grad(), gf.record(model, "decoder.layers.*.cross_attention.weights") as trace:
    model(torch.tensor([source]), torch.tensor([target]))

for name, weights in trace.items():
    print(name, tuple(weights.shape))  # (sentences, heads, steps, source tokens)

# %% [markdown]
# The mean over the heads of the last layer is one matrix, with a row for each step and a column for each source
# token. Row $t$ is the step that writes word $t$. The last row writes `<eos>`, which ends the sentence.

# %%
last = trace["decoder.layers.1.cross_attention.weights"][0].mean(0)
most = last.argmax(-1).tolist()  # the source token with the largest weight, for each step
source_tokens = [*source_words, "<eos>"]
hits = []
for step, word in enumerate(target_words):
    right = bool(example.origins[step] >> most[step] & 1)  # bit i is set: it comes from source word i
    hits.append(right)
    print(f"{word:9} looks at {source_tokens[most[step]]:8} {'✓' if right else '—'}")

f"{sum(hits)} of {len(hits)} right"

# %% tags=["hide-input", "check"]
assert torch.allclose(last.sum(-1), torch.ones(len(target)))

# %% [markdown]
# ## The same from the library
#
# `Translator.explain` returns such a matrix with a translation, and `glassformer translate --explain` prints it. The
# matrix shows the heads of one layer that align words best. Training has chosen them on validation pairs, by comparison
# with a word aligner. Note what the documentation promises: how much cross-attention *looks* at each token. The
# documentation does not promise an alignment.

# %%
explained = translator.explain(example.source)
explained.attention_layer, explained.alignment.heads

# %% tags=["hide-input", "check"]
assert explained.translation.text == example.target
chosen = explained.alignment
aligning = trace[f"{chosen.module}.weights"][0, list(chosen.heads)].mean(0)
# with a cache and in one pass: equal up to rounding
torch.testing.assert_close(torch.tensor(explained.attention), torch.stack(chosen.shifted(aligning)), atol=1e-5, rtol=0)

# %% [markdown]
# The picture shows the matrix: the stronger the blue, the larger the weight. Orange frames are the grammar's links.
# Look for frames that are nearly empty. There the model looked at a different word.


# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.patches import Rectangle


def framed(weights, example, title, alt):
    """Draw weights (steps, source tokens) with the grammar's links framed."""
    rows, columns = split_words(example.target), [*split_words(example.source), "<eos>"]
    shades = ListedColormap([(*to_rgb(pictures.BLUE), share / 99) for share in range(100)])
    figure, axes = pictures.canvas(min(7.4, 0.45 * len(columns) + 1.2), 0.3 * len(rows) + 1.2)
    axes.imshow(weights[: len(rows)], aspect="auto", cmap=shades, vmin=0, vmax=1)
    for column, row in example.alignment:
        frame = Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=pictures.ORANGE, linewidth=1.8)
        axes.add_patch(frame)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=10)
    return pictures.picture(figure, alt)


framed(
    last,
    example,
    "last layer, mean of the heads, at the step that writes the word",
    "Attention of each French word to each English token, with the grammar's links framed: most strong cells lie in frames.",
)

# %% [markdown]
# The next picture reads the same matrix by the other rule: each word gets the row of the step that *reads* it, which is
# one row further down. Almost every strong cell has left its frame.

# %% tags=["hide-input"]
framed(
    last[1:],
    example,
    "the same weights, at the step that reads the word",
    "The same weights one row further up: hardly any strong cell lies in one of the grammar's frames.",
)

# %% [markdown]
# You can click through single heads of [this
# cross-attention](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&zoom=%7B%22box%22:%22decoder.layers.1.cross_attention%22,%22key%22:null%7D)
# in the explorer.
#
# ## The experiment
#
# One sentence proves nothing. [measure/alignment.py](measure/alignment.py) does the same with 500 sentences of the
# test split, for three models trained by the demo's recipe with seeds 1, 2 and 3. The script compares every head of
# both layers, the mean over the heads of each layer, and the mean over all heads. The *best head* is chosen on 500
# different sentences (the validation split), so that it cannot look good by luck. "With contents" replaces the weight
# of each key by the length of the vector that it adds to the stream, weight · value · $W^O$ (Kobayashi et al. 2020).
#
# Two answers that never look at the model show how hard the task is. *Uniform* guesses at random. *Diagonal* draws a
# straight line from the first word to the last, since English and French have much the same word order here.

# %%
measured = json.loads(Path("results/alignment.json").read_text(encoding="utf-8"))


def right_of(step, name):
    """Return the share of target words that look at an origin, in %, for each seed."""
    return [heads[step][name]["right"] for heads in measured["heads"]]


shown = {
    "uniform": [seed["uniform"]["right"] for seed in measured["baselines"]],
    "diagonal": [seed["diagonal"]["right"] for seed in measured["baselines"]],
    "best head": [seed["right"] for seed in measured["best"]],
    "first layer, mean": right_of("writes", "layer 0"),
    "last layer, mean": right_of("writes", "layer 1"),
    "both layers, mean": right_of("writes", "mean"),
    "both, with contents": right_of("writes", "mean, contents"),
    "step that reads: last layer": right_of("reads", "layer 1"),
    "step that reads: first layer": right_of("reads", "layer 0"),
}
# %%
for name, values in shown.items():
    print(f"{name:29}", "  ".join(f"{value:5.1f}" for value in values))

best_errors = [seed["aer"] for seed in measured["best"]]
last_errors = [heads["writes"]["layer 1"]["aer"] for heads in measured["heads"]]
print(
    "AER of the best head",
    [round(value, 1) for value in best_errors],
    "AER of the last layer",
    [round(value, 1) for value in last_errors],
)

# %% [markdown]
# Each bar is the mean of three models, and each dot is one model. Compare the bars with the second bar, the diagonal.

# %% tags=["hide-input"]
pictures.bars(
    {name: fmean(values) for name, values in shown.items()},
    points=shown,
    x_label="target words that look at one of their origins, %",
    width=7.2,
    alt="Bars: uniform 11 %, diagonal 71 %, best head 83 %, first layer 63 %, last layer 83 %, both layers 85 %, with "
    "contents 87 %; at the step that reads the word only 9 to 22 %.",
)

# %% [markdown]
# The results:
#
# - At the step that writes a word, the last layer is a fair alignment: more than four words in five are right, and
#   the error rate is between 13 and 20 %.
# - **The last layer is not as far above the diagonal as it looks.** The diagonal gets 71 %, and the first layer,
#   averaged over its heads, does worse than that.
# - No single head is *the* alignment head. The mean over all heads is at least as good as the best of them.
# - The length of the added vector is slightly more telling than the weight alone.
#
# The next picture has one dot for each head: eight heads in each layer of each of the three models. See how wide the
# spread is.

# %% tags=["hide-input", "check"]
assert min(shown["best head"]) > 79
assert min(right_of("writes", "layer 1")) > 80
assert 13 <= min(last_errors) <= max(last_errors) <= 20
assert all(value < line for value, line in zip(right_of("writes", "layer 0"), shown["diagonal"], strict=True))
assert all(mean > one for mean, one in zip(shown["both layers, mean"], shown["best head"], strict=True))
assert all(more > less for more, less in zip(shown["both, with contents"], shown["both layers, mean"], strict=True))
assert max(right_of("reads", "layer 1")) < 12

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.6, 3.0)
for seed, heads in enumerate(measured["heads"]):
    for layer in (0, 1):
        for step, colour, marker in (("writes", pictures.BLUE, "o"), ("reads", pictures.ORANGE, "^")):
            values = [heads[step][f"layer {layer}.head {head}"]["right"] for head in range(8)]
            x = 4 * layer + seed + (0.0 if step == "writes" else 0.28)
            label = f"step that {step} the word" if seed == layer == 0 else None
            axes.plot([x] * 8, values, marker, color=colour, alpha=0.75, markersize=5, label=label)

line = fmean(shown["diagonal"])
axes.axhline(line, color=pictures.GREY, linewidth=1, linestyle="--")
axes.text(6.6, line + 1, "diagonal", fontsize=9, ha="right", va="bottom")
axes.set_xticks(
    [0.14, 1.14, 2.14, 4.14, 5.14, 6.14],
    [f"{layer} layer\nseed {seed}" for layer in ("first", "last") for seed in (1, 2, 3)],
    fontsize=8,
)
axes.set(ylabel="words that look at an origin, %", ylim=(0, 100))
axes.legend(frameon=False, fontsize=9, loc="upper left")
pictures.picture(
    figure,
    "One dot per head. First layer: 24 to 55 % at the writing step. Last layer: 63 to 87 %, about half of the heads above "
    "the diagonal's 71 %. At the reading step all heads are below 30 %.",
)

# %% [markdown]
# ## Where it is wrong
#
# The errors are not spread evenly. We sort the target words by kind: articles ("le", "une", "du"), the two halves of
# a negation ("n'…pas"), pronouns ("il", "elle"), auxiliaries ("a", "est", "était"), the full stop, and the rest
# ("content"), which is mostly nouns, verbs and adjectives.

# %%
KINDS = ("content", "article", "auxiliary", "negation", "pronoun", "full stop")
for kind in KINDS:
    print(kind, f"({fmean(seed[f'mean: {kind}']['seen'] for seed in measured['kinds']):.0f} words per seed)")
    for seed, places in enumerate(measured["places"], start=1):
        counted = {name: share for name, share in places[f"mean: {kind}"].items() if name != "seen" and share >= 3}
        where = sorted(counted, key=counted.get, reverse=True)
        print(f"   seed {seed}:", ", ".join(f"{name} {counted[name]:.0f} %" for name in where))

# %% tags=["hide-input"]
right_by_kind = {kind: [seed[f"mean: {kind}"].get("right", 0.0) for seed in measured["kinds"]] for kind in KINDS}
pictures.bars(
    {kind: fmean(values) for kind, values in right_by_kind.items()},
    points=right_by_kind,
    x_label="words that look at one of their origins, %",
    title="mean over all heads and both layers, by kind of target word",
    width=6.8,
    alt="Bars by kind of word: content 94 %, article 86 %, auxiliary 72 %, negation 97 %, pronoun 51 %; the full stop "
    "has 100 %, 27 % and 0 % in the three models.",
)

# %% [markdown]
# The kinds differ in the way that the intuition predicts:
#
# - **Pronouns** look at "it" in only about half of the cases. The word being translated is "it", but the choice between
#   "il" and "elle" depends on other words: on a noun further to the left, and on the adjective that says which noun.
#   The [pronoun experiment](pronoun.py) follows this up.
# - **Articles** that miss their "the" look at one of the next two words: the noun, or an adjective before it. The
#   noun has the gender.
# - **Auxiliaries** ("a", "est") that miss their origin look either at one of the next two words, where the verb decides
#   between them, or at the two words before, where the subject is.
# - **The full stop** is the clearest case of a habit. One model always looks at the English full stop, one never does,
#   and one does in a quarter of the cases. In the other cases, the models look at `<eos>`. Both tokens say that the
#   sentence is over, and nothing in training prefers either.
# - **Negation** is right in the mean over the heads, because "n't" is the only word that gives rise to "n'" and
#   "pas".

# %% tags=["hide-input", "check"]
assert all(value > 90 for value in right_by_kind["content"] + right_by_kind["negation"])
assert all(value < 70 for value in right_by_kind["pronoun"])
assert min(right_by_kind["full stop"]) < 1
assert max(right_by_kind["full stop"]) > 99

# %% [markdown]
# ## What goes wrong
#
# Here are three claims that you may meet, and what these models say about them:
#
# - *"Attention shows which word is being translated."* This is mostly true in the last layer, at the right step. The
#   weights show what the model reads to write the next word. For pronouns, this is not the translated word in half of
#   the cases. In the first layer, attention is not even as good as a straight line.
# - *"Take the row in which the word is read."* For deeper models this has been found to be better (Chen et al. 2020,
#   "Accurate Word Alignment Induction from Neural Machine Translation"). **It is not better in these models.** With two
#   layers, the step that reads a word is already looking for the next word. In the last layer, its largest weight falls
#   on an origin of the word it reads no more often than a random guess would. Which row to take must be tested for each
#   model.
# - *"A look at some heat maps will do."* To the eye, a diagonal looks like an alignment. Without a baseline, the
#   first layer's 63 % would be good news.
#
# It is also easy to be off by one row: if you write the decoder's *input* words beside the rows, all labels are
# shifted by one. The [errata](../errata.py#shifted-target) have the same slip in training, where it does far more
# harm.
#
# ## Exercises
#
# **1.** *Easy · 3 min.* A target word has $k$ origins among $n$ source words. How often does a uniform guess hit one of
# them? Compute the expected share for our sentence.
#
# <details><summary>Hint</summary>
#
# `example.origins` has one number for each target word; its bits are the origins.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the expected share
print(verdict("alignment.1", answer, example.origins, len(source_words)))

# %% tags=["hide-cell"]
n = len(source_words)
shares = [bits.bit_count() / n for bits in example.origins]
assert abs(fmean(shares) - 1 / n) < 1e-12  # each word of this sentence has one origin
assert verdict("alignment.1", fmean(shares), example.origins, len(source_words)) == "right"
round(100 * fmean(shares), 1)

# %% [markdown]
# **2.** *Medium · 8 min.* Compute the alignment error rate of the matrix `last` above.
#
# <details><summary>Hint</summary>
#
# A link is *sure* if it is the word's only origin. The error is 1 minus the share of hits, counted in both directions.
#
# </details>

# %%
answer = None  # instead of None: the error rate
print(verdict("alignment.2", answer, most, example.origins))

# %% tags=["hide-cell"]
links = {(most[step], step) for step in range(len(target_words))}
grammar = set(example.alignment)
sure = {(place, step) for place, step in grammar if example.origins[step].bit_count() == 1}
error = 1 - (len(links & sure) + len(links & grammar)) / (len(links) + len(sure))
assert abs(error - (1 - sum(hits) / len(hits))) < 1e-12  # all links are sure here, so AER is the share of misses
assert verdict("alignment.2", error, most, example.origins) == "right"
round(error, 3)

# %% [markdown]
# **3.** *Hard · 12 min.* Repeat the experiment live for the demo's model: the last layer, both rules, on 60 test
# sentences.
#
# <details><summary>Hint</summary>
#
# Record `decoder.layers.1.cross_attention.weights`, take the mean over heads, and compare the place of each row's
# largest weight with the bits of `origins`.
#
# </details>


# %% tags=["hide-cell"]
def share_right(examples, shift):
    """Return the share of target words that look at an origin, in the row `shift` steps later, in %."""
    found = []
    for one in examples:
        ids = torch.tensor([[*bundle.source_tokenizer.encode(one.source), config.eos_id]])
        read = torch.tensor([[config.bos_id, *bundle.target_tokenizer.encode(one.target)]])
        with torch.no_grad(), gf.record(model, "decoder.layers.1.cross_attention.weights") as heard:
            model(ids, read)
        rows = heard["decoder.layers.1.cross_attention.weights"][0].mean(0)[shift:]
        looks = rows.argmax(-1).tolist()
        found += [bits >> look & 1 for bits, look in zip(one.origins, looks, strict=False)]
    return 100 * fmean(found)


some = english_french(1, train=0).splits["test"][:60]
writes, reads = share_right(some, 0), share_right(some, 1)
assert writes > 70
assert reads < 50
round(writes, 1), round(reads, 1)

# %% [markdown]
# ## Next
#
# If attention does not quite show which word is being translated, does it at least show which words *matter*? [Does
# attention equal importance?](importance.py) hides words and looks at what happens. [The decoder](../decoder.py)
# shows how cross-attention works.
