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
# # What tells "bank" which bank it is?
#
# ## The question
#
# > I **swam** across the **river** to get to the other **bank**. → … l'autre **rive**.
# >
# > I **drove** across the **road** to get to the **bank**. → … la **banque**.
#
# This pair opens many introductions to attention. The drawing that goes with it has a thick line from "bank" to
# "river", or to "swam" and "river". According to the drawing, the vector of "bank" absorbs its context and comes to
# mean the bank of a river.
#
# French has two words for the two banks, so a model that translates must know which one is meant. Our model knows. We
# can ask the model what a drawing cannot answer. **From which words is the sense read? Does "bank" look at them? Do its
# weights tell how much each word matters? And is the sense in the vector of "bank", and from which layer on?**

# %%
import json
from pathlib import Path

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.watch import pictures
from glassformer.watch.inspection import combine, with_mask, without_heads

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
swam, drove = CLASSIC[3], CLASSIC[4]
[translation.text for translation in translator.translate([swam.source, drove.source])]

# %% [markdown]
# ## The intuition
#
# The embedding table has one row for "bank" ([embeddings](../embeddings.py)). So in the input of the encoder, both
# banks are the same vector, apart from their positions. The information that tells them apart must come from other
# words. It can reach the French word in three ways:
#
# 1. **In the encoder**: "bank" looks at "swam", and its vector changes. The decoder then reads a vector that is
#    already a river bank.
# 2. **In cross-attention**: the decoder looks at "swam" itself when it has to write the French noun.
# 3. **From what is already written**: after "traversé la rivière à la nage pour rejoindre l'autre" you would guess
#    "rive" without any English.
#
# The third way is easy to forget, and it spoils naive measurements. Once "à la nage" has been written, the sense is
# known even if you hide "swam". So we have to close the third way when we ask about the first two.
#
# ## The mathematics
#
# We measure the choice at the first place where the two translations of the word differ: at the noun, or at its article
# if the two nouns have different articles. The *margin* there is
#
# $$m = \log p(\text{right}) - \log p(\text{wrong})$$
#
# in nats, given the source and what is written so far. If no position may look at a word, the margin is another one,
# $m'$. The *fall* caused by this word is $m - m'$. To hide a word, we set its scores to −∞ in the encoder's
# self-attention and in cross-attention, so that its weight is 0.
#
# *Blanking* a written word sets its embedding to the zero vector. Its position is still there, but its meaning is
# gone. We blank the written words that the other translation does not have ("rivière", "nage", "rejoindre").
#
# *Spearman's rank correlation* measures whether one list of numbers predicts another. Replace the numbers by their
# ranks, and take the usual correlation: 1 for the same order, 0 for no relation, −1 for the reverse order.
#
# ## Line by line
#
# We take the two sources. Each source is combined first with the beginning of its own translation, then with the
# beginning of the other sentence's translation.

# %%
eos, bos = bundle.model_config.eos_id, bundle.model_config.bos_id
encode, write = bundle.source_tokenizer.encode, bundle.target_tokenizer.encode
beginnings = {
    "swam": "J'ai traversé la rivière à la nage pour rejoindre l'autre",
    "drove": "J'ai traversé la route en voiture pour aller à la",
}
sources = {name: torch.tensor([[*encode(one.source), eos]]) for name, one in (("swam", swam), ("drove", drove))}
targets = {name: torch.tensor([[bos, *write(text)]]) for name, text in beginnings.items()}
rive, banque = (write(word)[0] for word in ("rive", "banque"))


# %%
def rive_or_banque(source, target):
    with torch.no_grad():
        log_probs = model(source, target).log_softmax(-1)[0, -1]
    return (log_probs[rive] - log_probs[banque]).item()


signs = {}
for name, source in sources.items():
    for beginning, target in targets.items():
        signs[name, beginning] = margin = rive_or_banque(source, target)
        print(f"source {name:5}, beginning of {beginning:5}: log p(rive) − log p(banque) = {margin:+.2f}")

crossed = {name: signs[name, other] for name, other in (("swam", "drove"), ("drove", "swam"))}
follows = [name for name, margin in crossed.items() if (margin > 0) == (name == "swam")]
print(f"against the other's beginning, the sign follows the source in {len(follows)} of 2 cases")

# %% [markdown]
# If the sign follows the source in both cases, the source decides, even where the beginning suggests the other bank:
# for this choice, the model does not use the third way. If the sign follows the beginning, the model reads its own
# words. Among the three models measured below, both kinds occur.
#
# ### Where "bank" looks
#
# Here are the weights of the word "bank" in all heads of the encoder, in the sentence with "swam". Each row
# sums to 1.

# %% tags=["hide-input"]
words = [*bundle.source_tokenizer.tokens(encode(swam.source)), "<eos>"]
bank = words.index("bank")
with torch.no_grad(), gf.record(model, "encoder.*.weights") as trace:
    model(sources["swam"], targets["swam"])

layers = range(model.config.encoder_layers)
encoder = [f"encoder.layers.{layer}.self_attention" for layer in layers]
cross = [f"decoder.layers.{layer}.cross_attention" for layer in layers]
from_bank = torch.cat([trace[f"{name}.weights"][0, :, bank] for name in encoder])
pictures.heat_map(
    from_bank,
    [f"layer {layer}, head {head}" for layer in layers for head in range(model.config.heads)],
    words,
    numbers="",
    limit=1,
    alt="The attention weights of the word bank in the sixteen heads of the encoder.",
)

# %% [markdown]
# ### What each word does
#
# Now the test: hide one word at a time from every position, with the French words that give the sense away blanked, and
# see how far the margin falls. (To find the words to blank, we compare the two French sentences, except the last word
# before the noun.)


# %%
def hide(keys):
    """Return the edits that hide these source positions from every position."""
    there = torch.tensor(keys)
    return {f"{name}.scores": lambda scores: scores.index_fill(-1, there, -torch.inf) for name in encoder + cross}


def blank(places):
    """Return the edit that empties these written words."""
    there = torch.tensor(places)
    return {"target.embedding": lambda vectors: vectors.index_fill(1, there, 0.0)}


french = {name: bundle.target_tokenizer.tokens(ids[0].tolist()) for name, ids in targets.items()}
secret = {
    name: [place for place, word in enumerate(french[name][:-1]) if word not in french[other]]
    for name, other in (("swam", "drove"), ("drove", "swam"))
}
[french[name][place] for name, places in secret.items() for place in places]

# %%
falls = {}
for name, sign in (("swam", 1), ("drove", -1)):
    source, target, blanked = sources[name], targets[name], blank(secret[name])
    with gf.intervene(model, blanked):
        whole = sign * rive_or_banque(source, target)
    each = [*bundle.source_tokenizer.tokens(source[0, :-1].tolist()), "<eos>"]
    row = []
    for key in range(len(each)):
        with gf.intervene(model, combine(blanked, hide([key]))):
            row.append(whole - sign * rive_or_banque(source, target))
    falls[name] = dict(zip([f"{place}: {word}" for place, word in enumerate(each)], row))
    print(f"{name}: margin {whole:.2f}")

pictures.bars(
    falls["swam"],
    x_label="fall of the margin (nats)",
    alt="How far the margin falls when each word of the swam sentence is hidden.",
)

# %%
pictures.bars(
    falls["drove"],
    x_label="fall of the margin (nats)",
    alt="How far the margin falls when each word of the drove sentence is hidden.",
)

# %% [markdown]
# In each picture, look for the longest bars, and compare "swam" with "river", "drove" with "road":

# %%
CLUES = {"swam": ("swam", "river"), "drove": ("drove", "road")}
by_word = {}
for name, clues in CLUES.items():
    each = by_word[name] = {}
    for one, fall in falls[name].items():
        word = one.split(": ")[1]
        each[word] = max(fall, each.get(word, fall))  # a word may stand twice
    largest = max(each, key=each.get)
    print(f"{name}: largest fall {each[largest]:.2f} without {largest!r};", end=" ")
    print(", ".join(f"without {clue!r} {each[clue]:.2f}" for clue in clues))

# %% [markdown]
# What does this model do? There are four possible answers. Models of other seeds give other answers, and so do models
# of the same seed on other machines:


# %%
def told(name):
    """Say from which word a sentence's sense is read."""
    each = by_word[name]
    largest = max(each, key=each.get)
    first, second = sorted(CLUES[name], key=each.get, reverse=True)
    if each[largest] < 0.5:
        return f"{name}: no word counts. This is what the model writes unless some word speaks against it."
    if largest == first:
        also = "and from" if each[second] > each[first] / 3 else "and hardly from"
        return f"{name}: the sense is read from {first!r}, {also} {second!r}."
    most = "'bank' itself counts most, as the word to translate" if largest == "bank" else f"{largest!r} counts most"
    clue = f"of the clues, {first!r} counts more" if each[first] >= 0.5 else "neither clue counts"
    return f"{name}: {most}; {clue}."


for name in CLUES:
    print(told(name))

# %% [markdown]
# Where one clue counts and the other hardly does, the model has learned to use one of two words that say the same
# thing.
#
# ### The vectors of "bank"
#
# If the encoder has mixed the sense into "bank", the vectors of the two banks differ. To be sure that they differ *in
# the sense*, and not in the rest of the sentences, take many sentences: 25 pairs of the split "senses". For each
# sentence, compute the mean vector of each sense from the *other* pairs, and see which mean is nearer (a tie counts
# one half). This is the simplest of classifiers. Chance is 50 %.

# %%
splits = english_french(bundle.configuration.run.seed, train=0, valid=0, test=0, unseen=0, longer=0).splits
banks = [one for one in splits["senses"] if one.kind == "bank"]
stations = [
    "source.embedding",
    *(
        f"{part}.normed"
        for layer in layers
        for part in (f"encoder.layers.{layer}.self_attention", f"encoder.layers.{layer}.feed_forward")
    ),
]
is_shore = torch.tensor(["rive" in one.target for one in banks])
vectors = {station: [] for station in stations}
for one in banks:
    ids = encode(one.source)
    with torch.no_grad(), gf.record(model, stations) as trace:
        model.encode(torch.tensor([[*ids, eos]]))
    place = bundle.source_tokenizer.tokens(ids).index("bank")
    for station in stations:
        vectors[station].append(trace[station][0, place])


# %%
def nearest_mean(x):
    """Return how often the mean of the vector's own sense, without this pair, is the nearer one, in %."""
    hits = []
    for place in range(len(x)):
        others = torch.arange(len(x)) // 2 != place // 2
        shore, office = (x[others & (is_shore == sense)].mean(0) for sense in (True, False))
        difference = (x[place] - office).norm() - (x[place] - shore).norm()
        right = difference if is_shore[place] else -difference
        hits.append(0.5 if right.abs() < 1e-6 else float(right > 0))
    return 100 * sum(hits) / len(hits)


nearness = {station: nearest_mean(torch.stack(each).double()) for station, each in vectors.items()}
nearness

# %% tags=["hide-input", "check"]
assert nearness["source.embedding"] == 50.0

# %% [markdown]
# Note that at the embedding the share is exactly 50 %, as asserted: both senses have the same vector.
#
# ## The same from the library
#
# Our edits are short, but the library has them too. `with_mask` hides keys by cells of a mask, and gives the same
# numbers. In the explorer, [*What
# if?*](../../runs/demo/explorer.html#text=I+swam+across+the+river+to+get+to+the+other+bank.&sheet=true&panel=changes)
# does the same under *Mask*.

# %%
key = words.index("swam")
with gf.intervene(model, hide([key])):
    ours = rive_or_banque(sources["swam"], targets["swam"])

size = max(sources["swam"].shape[1], targets["swam"].shape[1])
cells = [(query, key, False) for query in range(size)]
with gf.intervene(model, with_mask(dict.fromkeys(encoder + cross, cells))):
    theirs = rive_or_banque(sources["swam"], targets["swam"])

ours

# %% tags=["hide-input", "check"]
assert abs(ours - theirs) < 1e-5

# %% [markdown]
# ## The whole split, three training runs
#
# The split "senses" has 25 pairs for each of 14 ambiguous words: "match" (to strike, to watch), "bat" (a hungry one,
# an expensive one), "pen" (beside the goat, beside the letter), and others. `python book/experiments/measure/bank.py`
# measured all 700 sentences on three models, trained by the demo's recipe with seeds 1, 2 and 3 (each with its own
# corpus), and wrote `results/bank.json`. With nothing hidden, all three models get 100 % of the senses right. The
# *telling* words of a sentence are the words that the other sentence of its pair does not have.
#
# ### Encoder or decoder?
#
# We hide the telling words either in the encoder's self-attention only (circles) or in cross-attention only (crosses).
# There are three models, so three marks each. Telling French words are blanked. A mark at 100 % means that the sense
# does not need the closed way; a mark at 50 % means that the sense has no other way.

# %% tags=["hide-input"]
measured = json.loads(Path("results/bank.json").read_text(encoding="utf-8"))["results"]
kinds = [kind for kind in measured["1"]["hidden"]["read"]["telling"]["nowhere"] if kind != "all"]
figure, axes = pictures.canvas(6.8, 4.8)
for row, kind in enumerate(kinds):
    for number, found in enumerate(measured.values()):
        hidden = found["hidden"]["blanked"]["telling"]
        height = row + 0.2 * (number - 1)
        axes.plot(hidden["nowhere"][kind], height, "|", color=pictures.GREY, markersize=8)
        axes.plot(hidden["encoder"][kind], height, "o", color=pictures.BLUE, markersize=5)
        axes.plot(hidden["cross"][kind], height, "x", color=pictures.ORANGE, markersize=5, markeredgewidth=1.6)

axes.set_yticks(range(len(kinds)), kinds)
axes.invert_yaxis()
axes.set(xlabel="right senses (%)", xlim=(40, 104))
axes.grid(axis="x", color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.plot([], [], "o", color=pictures.BLUE, label="hidden in the encoder")
axes.plot([], [], "x", color=pictures.ORANGE, markeredgewidth=1.6, label="hidden in cross-attention")
axes.plot([], [], "|", color=pictures.GREY, label="nothing hidden")
figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The share of right senses for fourteen ambiguous words, with the telling words hidden in the encoder or in "
    "cross-attention, three models each. For most words, hiding them in the encoder leaves 50 percent, and in cross-attention "
    "nothing changes.",
)

# %% [markdown]
# - **For most words the encoder does the work**: "bat", "date", "pen", "glasses", "plant", "match", "nut". If the way
#   through the encoder is closed, their sense is a coin toss. If the way through cross-attention is closed, the sense
#   is as good as before. This is what textbooks say, and here it is **true**: the context is mixed into the vector of
#   the word. (For the pronoun "it" in the same models, it is [not true](hidden_key.py).)
# - **This is not true of all words.** "Well" ("near the well", "played well") is decided in cross-attention in all
#   models. "The house *key*" is decided there in two models, and not in the third.
# - "Light" has a pair in which one sentence has no telling word at all ("the light dress" lacks what "the light next to
#   the dress" has), so its share cannot fall to 50 %.
# - "Ball" and "bank" are special, as the grey marks show: with the French words blanked, the sense is not fully there
#   in the first place.
#
# ### And "bank"?
#
# Our word is one of the exceptions. The first question: what decides, the source or the words already written? Give
# the model the source of one sentence and the beginning of the *other* sentence's translation. How often does the
# noun follow the source?

# %%
for seed, found in measured.items():
    follows = found["prefix of the partner"]
    rest = [value for kind, value in follows.items() if kind not in ("bank", "ball", "all")]
    print(
        f"model {seed}: bank {follows['bank']:.0f} %, ball {follows['ball']:.0f} %, the other words at least {min(rest):.0f} %"
    )

# %% [markdown]
# **Three training runs, three models of the bank.** Model 1 always follows the source. Model 3 never does: after "pour
# rejoindre la" it writes "rive", whatever the English says. (It read the English earlier, when it chose between "pour
# rejoindre" and "pour aller à".) Model 2 sometimes follows the source and sometimes does not. All three translate every
# sentence of the split correctly. Nothing in their outputs tells them apart.
#
# The second question: which word of the source decides? Here is the fall of the margin for each word of "… swam across
# the river to get to the bank", with the French blanked, and one mark for each model.

# %% tags=["hide-input"]
names = ["before the verb", "verb", "across", "place", "to get to", "other", "bank", "full stop", "<eos>"]
figure, axes = pictures.canvas(6.4, 3.4)
for (seed, found), colour, mark in zip(measured.items(), pictures.PALETTE, "os^"):
    falls = [found["one by one"]["bank"][name] for name in names]
    axes.plot(falls, range(len(names)), mark, color=colour, markersize=6, label=f"model {seed}", alpha=0.85)

axes.set_yticks(range(len(names)), names)
axes.invert_yaxis()
axes.axvline(0, color="black", linewidth=0.8, alpha=0.6)
axes.set(xlabel="mean fall of the margin when the word is hidden (nats)")
axes.grid(axis="x", color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The mean fall of the margin for each word of the sentences with bank, for three models. In model 1 the verb and bank "
    "matter, the place does not; in model 2 bank most, and verb and place a little; in model 3 nothing much.",
)

# %% tags=["hide-input", "check"]
second = measured["2"]["one by one"]
assert [round(second["bank"][word], 2) for word in ("verb", "place")] == [0.78, 0.98]
assert second["words"]["bank"]["telling"]["right"] == 90
assert measured["2"]["hidden"]["blanked"]["telling"]["nowhere"]["bank"] == 96

# %% [markdown]
# - **Model 1 reads "swam" and not "river".** Hiding the verb costs 3.45 nats (mean of both kinds of sentences), hiding
#   the place 0.12. Either word would be enough, as nobody in the corpus rows across a road. The model has learned to
#   use one of them.
# - Hiding **"bank"** itself costs models 1 and 2 much, too: 3.45 and 3.93 nats. So the decoder reads the sense at
#   "bank", whose vector has absorbed it.
# - **Model 2** uses both words a little (0.78 and 0.98 nats), and can mostly spare one of them: 90 % of the banks are
#   right with one of the telling words hidden, 96 % with none hidden (the French is blanked in both cases).
# - **Model 3** hardly uses any English word. With the French blanked, it can only guess (50 % right).
#
# Does "bank" look at "river"? Here is the largest mean weight that any head of the encoder gives from "bank" to the
# verb, and to the place:

# %%
for seed, found in measured.items():
    largest = {
        word: max(
            (weight, f"{name.split('.')[2]}.{head}")
            for name, each in found["looks"].items()
            for head, weight in enumerate(each[word])
        )
        for word in ("verb", "place")
    }
    print(
        f"model {seed}:",
        ", ".join(f"{word} {weight:.2f} (layer.head {where})" for word, (weight, where) in largest.items()),
    )

# %% [markdown]
# So some heads *do* look as in the drawing, one or two of sixteen, in the first layer: at the verb in models 1 and 2,
# at the place in model 2. In model 3, no head gives either word a weight worth drawing.
#
# ### Do weights tell what matters?
#
# For each sentence of the split, compare two lists of numbers: how much weight the ambiguous word gives to each other
# word, and how far the margin falls without that word. There are two scores. The first is Spearman's rank correlation.
# The second, "top", is the share of sentences in which the word with the most weight is also the word whose hiding
# lowers the margin most. Both scores are means over all 14 words, for the mean of the heads and for the best head
# (chosen afterwards, so its score is too optimistic).

# %%
for seed, found in measured.items():
    for name, each in found["correlations"]["attentions"].items():
        if name.startswith("encoder"):
            rank, top = each["all"]["rank"], each["all"]["top"]
            print(
                f"model {seed} encoder layer {name.split('.')[2]}: rank correlation {rank[-1]:.2f} (best head {max(rank[:-1]):.2f}), "
                f"top {top[-1]:.0f} % (best head {max(top[:-1]):.0f} %)"
            )

# %% [markdown]
# The rank correlations lie near 0 and never exceed a quarter. **Weights do not predict what matters, word by word.**
# In fairness, most words of these short sentences do not matter at all, so their ranks are noise. That is why we also
# count "top". By this score, weights find the word that matters most more often than chance would (about one in ten),
# but in fewer than half of the sentences.
#
# ### Heads
#
# For each model, here is the head that lowers the margin of "bank" most when it is switched off, and what happens to
# the senses without it:

# %%
for seed, found in measured.items():
    whole = found["ablations"]["whole"]["bank"]
    worst = min(found["ablations"]["heads"], key=lambda row: row["margin"]["bank"])
    which = f"{worst['set']} layer {worst['layer']} head {worst['head']}"
    encoder_off = found["ablations"]["blocks"]["encoder"]
    print(
        f"model {seed}: {which}: margin {whole:.1f} → {worst['margin']['bank']:.1f}, right {worst['right']['bank']:.0f} %;"
        f" without any head of the encoder: bank {encoder_off['bank']:.0f} %, all words {encoder_off['all']:.0f} %"
    )

# %% [markdown]
# No single head is "the head for the sense": without the most important one, at least 92 % of the banks are still
# right.
#
# ### Vectors: separable is not the same as used
#
# The picture shows, station by station, how often the vector of the ambiguous word is nearer to the mean of its own
# sense (the mean of the other pairs). Chance is 50 %. The solid lines are means over the 14 words. The dashed lines
# show "bank" alone.

# %% tags=["hide-input"]
points = list(measured["1"]["vectors"])


def label(point):
    if point.startswith("source"):
        return {"embedding": "embedding", "input": "with position"}[point.split(".")[1]]
    _, _, layer, part, _ = point.split(".")
    return f"layer {layer}, {part.replace('_', '-')}"


figure, axes = pictures.canvas(6.8, 3.2)
for (seed, found), colour in zip(measured.items(), pictures.PALETTE):
    axes.plot(
        [found["vectors"][point]["all"] for point in points], "o-", color=colour, label=f"model {seed}", markersize=4
    )
    axes.plot([found["vectors"][point]["bank"] for point in points], "o--", color=colour, alpha=0.7, markersize=4)

axes.set_xticks(range(len(points)), [label(point) for point in points], rotation=25, ha="right")
axes.set(ylabel="nearest to the own sense (%)", ylim=(45, 103))
axes.grid(axis="y", color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "How often the vector of an ambiguous word is nearest to its own sense's mean, by station, for three models: 50 percent "
    "at the embedding, about 95 percent after the first self-attention and later.",
)

# %% [markdown]
# - At the embedding, the share is 50 %, as it must be. With the position added, it is a little larger (54 or 55 %). In
#   some pairs one sense stands later in the sentence ("sang near the well", "sang well"), and the classifier notices. A
#   classifier finds whatever there is.
# - **One self-attention is enough**: the share is 94 to 97 % after the first self-attention, and hardly larger later.
# - In **model 3**, the vectors of the two senses of "bank" can be told apart in 96 % of the cases after the last
#   layer. And yet this model does not use the vector to write the noun. The noun follows what is written already, and
#   the source in 0 % of the cases. **That information can be read from a vector does not mean that the model reads
#   it.** Only a change to the model (hide, switch off, patch) can show that.
#
# ## What goes wrong
#
# - **Forgetting that the decoder reads itself.** If the written French words are not blanked, models 2 and 3 get most
#   of the banks right even when "swam" and "river" are hidden everywhere (86 % and 100 %). If you only hide English
#   words, you conclude that these words do not matter.
# - **Reading weights as reasons**: see [the alignment in cross-attention](alignment.py), and the errata's [what heads
#   are for](../errata.py#what-heads-are-for).
# - **Leave-one-out with pairs.** The two sentences of a pair share all words but the telling ones. If the classifier's
#   means contain the *partner* of the sentence, the result is biased in one direction or the other. Leave out the whole
#   pair.
# - **One model.** Had we trained only model 1, this page would say that the sense of "bank" is read from the verb by
#   two heads of the first layer. That would be true of that model.
#
# ## Exercises
#
# **1.** *Medium · 5 min.* Hide both telling words, "swam" and "river", in the sentence itself, but do not blank the
# French. Which noun does your model write?
#
# <details><summary>Hint</summary>
#
# Nest two `gf.intervene`: `hide` for the English words, and `blank` for the French ones.
#
# </details>

# %% tags=["hide-cell"]
with gf.intervene(model, hide([words.index("swam"), words.index("river")])):
    with_french = rive_or_banque(sources["swam"], targets["swam"])
    with gf.intervene(model, blank(secret["swam"])):
        without_french = rive_or_banque(sources["swam"], targets["swam"])

assert with_french == with_french and without_french == without_french  # numbers, not NaN
f"log p(rive) − log p(banque): with the French {with_french:+.2f}, blanked {without_french:+.2f}"

# %% [markdown]
# **2.** *Hard · 10 min.* Switch off all heads of the encoder. Show that the vector of "bank" then no longer depends on
# the verb, by comparing it with the vector in "I rowed across the river …". Which of the two classic sentences still
# gets the right bank?
#
# <details><summary>Hint</summary>
#
# `without_heads` takes the encoder's attentions and all their heads. Compare the rows of "bank" in the two memories.
#
# </details>

# %% tags=["hide-cell"]
deaf = without_heads(dict.fromkeys(encoder, range(model.config.heads)))
rowed = torch.tensor([[*encode(swam.source.replace("swam", "rowed")), eos]])
with torch.no_grad():
    apart = (model.encode(rowed) - model.encode(sources["swam"]))[0, bank].abs().max()
    with gf.intervene(model, deaf):
        deaf_apart = (model.encode(rowed) - model.encode(sources["swam"]))[0, bank].abs().max()
        banks_left = {name: rive_or_banque(sources[name], targets[name]) for name in sources}

assert apart > 0.01 and deaf_apart < 1e-5
{name: round(value, 2) for name, value in banks_left.items()}

# %% [markdown]
# **3.** *Easy · 3 min.* Compute Spearman's correlation of (0.5, 0.3, 0.2) with (7, 1, 2) by hand. Rank both, then
# correlate.
#
# <details><summary>Hint</summary>
#
# The ranks are (2, 1, 0) and (2, 0, 1). Subtract their mean, and divide the sum of products by the sum of squares.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the correlation
print(verdict("bank.3", answer))

# %% tags=["hide-cell"]
one, other = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([7.0, 1.0, 2.0])
ranks = torch.stack([values.argsort().argsort().float() for values in (one, other)])
assert ranks.tolist() == [[2, 1, 0], [2, 0, 1]]
assert verdict("bank.3", torch.corrcoef(ranks)[0, 1].item()) == "right"
assert abs(torch.corrcoef(ranks)[0, 1].item() - 0.5) < 1e-6
torch.corrcoef(ranks)[0, 1].item()

# %% [markdown]
# ## Next
#
# [Which head decides "it"?](pronoun.py) asks the same about the pronoun, and gets a different answer. [Is
# cross-attention an alignment?](alignment.py) tests whether the weights of cross-attention show which word is being
# translated.
