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
# # Which head decides "it"?
#
# ## The question
#
# Take two sentences that differ in one word:
#
# > The **animal** didn't cross the street because **it** was too **tired**.
# >
# > The animal didn't cross the **street** because **it** was too **wide**.
#
# In the first, "it" is the animal; in the second, "it" is the street. French has to say which. "Animal" is masculine,
# so the first "it" becomes "il"; "rue" (street) is feminine, so the second "it" becomes "elle".
#
# You will often see this sentence with a picture of self-attention in which lines run from "it" to "animal". The
# story that goes with the picture: *one head of the encoder finds out what "it" refers to, and the vector of "it"
# then carries the answer.*
#
# We have a model that gets these sentences right, and we can switch off its heads one at a time. So we can ask: **is
# there such a head, what happens without it, and is it the same one in every model?**

# %%
import json
from functools import partial
from pathlib import Path

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.watch import pictures
from glassformer.watch.inspection import head_study, without_heads

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
tired, wide = CLASSIC[1], CLASSIC[2]
[translation.text for translation in translator.translate([tired.source, wide.source])]

# %% [markdown]
# No sentence with both "animal" and "street" was in the training corpus. The model has to combine what it knows about
# animals, about streets, and about being tired or wide.
#
# ## The intuition
#
# Consider what you must know to choose between "il" and "elle":
#
# 1. *what is said*: "tired" is said of animals, "wide" of places;
# 2. *of whom*: which word of the sentence is the animal, and which is the place;
# 3. *its gender in French*: of "animal" or of "rue".
#
# Each step could be taken by the encoder (which may write the result into the vector of "it"), or by the decoder at the
# moment when it has to write the pronoun. The picture with the lines claims that the encoder takes all of them. If a
# head is needed, the model becomes unsure or wrong without this head.
#
# ## The mathematics
#
# The model has written $y_1 \dots y_{t-1}$ = "L'animal n'a pas traversé la rue parce qu'", and now gives each word
# $w$ of its vocabulary a probability $p(w)$ of being next. One number sums up the choice, the *margin*:
#
# $$m = \log p(\text{right pronoun}) - \log p(\text{wrong pronoun})$$
#
# The margin is above 0 if the right pronoun is more probable than the wrong one; 3 means 20 times as probable ($e^3
# \approx 20$). The margin's unit is the nat, since the logarithms are natural.
#
# *Switching off* (ablating) head $i$ means replacing its weighted values $\mathrm{head}_i$ by zeros before the heads
# are joined and multiplied by $W^O$ (§3.2.2). The effect of the head is $m$ without it, minus $m$ of the whole model.
# We count heads and layers from 0.
#
# ## Line by line
#
# First the choice itself, in both sentences: after the words that the decoder has read, how probable does it find the
# two pronouns?

# %%
eos, bos = bundle.model_config.eos_id, bundle.model_config.bos_id
encode = bundle.source_tokenizer.encode
prefix = bundle.target_tokenizer.encode("L'animal n'a pas traversé la rue parce qu'")
il, elle = (bundle.target_tokenizer.encode(word)[0] for word in ("il", "elle"))
sources = {quality: torch.tensor([[*encode(one.source), eos]]) for quality, one in (("tired", tired), ("wide", wide))}
target = torch.tensor([[bos, *prefix]])


def il_or_elle(source):
    with torch.no_grad():
        log_probs = model(source, target).log_softmax(-1)[0, -1]  # the last row chooses the next word
    return (log_probs[il] - log_probs[elle]).item()


for quality, source in sources.items():
    print(f"{quality:6} log p(il) − log p(elle) = {il_or_elle(source):+.2f}")

# %% tags=["hide-input", "check"]
assert il_or_elle(sources["tired"]) > 0 > il_or_elle(sources["wide"])

# %% [markdown]
# The sign flips with the adjective. So the margin is the first number for "tired", and minus the second number for
# "wide".
#
# Now look at the encoder, where the famous lines should be: the weights with which "it" looks at the other words, in
# each of the sixteen heads of the encoder's two layers. Strong cells are large weights, and each row sums to 1. Is
# there a row that is strong at "animal"?

# %% tags=["hide-input"]
words = [*bundle.source_tokenizer.tokens(encode(tired.source)), "<eos>"]
with torch.no_grad(), gf.record(model, "*.weights") as trace:
    model(sources["tired"], target)

layers = range(model.config.encoder_layers)
rows = [f"layer {layer}, head {head}" for layer in layers for head in range(model.config.heads)]
from_it = torch.cat(
    [trace[f"encoder.layers.{layer}.self_attention.weights"][0, :, words.index("it")] for layer in layers]
)
pictures.heat_map(
    from_it,
    rows,
    words,
    numbers="",
    limit=1,
    alt="The attention weights of the word it in the sixteen heads of the encoder, for the sentence that ends with tired.",
)

# %% [markdown]
# Here is the decoder at the moment when it writes the pronoun: where do the sixteen heads of its cross-attention
# look?

# %% tags=["hide-input"]
at_pronoun = torch.cat([trace[f"decoder.layers.{layer}.cross_attention.weights"][0, :, -1] for layer in layers])
pictures.heat_map(
    at_pronoun,
    rows,
    words,
    numbers="",
    limit=1,
    alt="The weights of the sixteen heads of cross-attention as the pronoun is about to be written. Some rows are strong "
    "at the adjective, some at the nouns.",
)

# %% [markdown]
# Look for rows that are strong at "tired": they read *what is said*. Look for rows that are strong at "animal" or
# "street". Few heads look at "it", the word that is being translated.
#
# Weights show where a head looks. They do not show whether the rest of the model needs what the head collects. So
# switch heads off, one at a time. Each head's weighted values pass the point named `heads`, and there we insert zeros.
# We look at two heads of cross-attention: the head that *looks* most at the adjective, and the head that *matters*
# most. Without the second head, the sum of the two margins shrinks most.


# %%
def silenced(values, head):
    """Return the heads' weighted values with one head's set to 0."""
    values = values.clone()
    values[:, head] = 0.0  # (batch, heads, target positions, d_v)
    return values


def off(layer, head):
    """Return the edit that switches off a head of cross-attention."""
    return {f"decoder.layers.{layer}.cross_attention.heads": partial(silenced, head=head)}


def both(edits):
    """Return log p(il) − log p(elle) of the two sentences under these edits."""
    with gf.intervene(model, edits):
        return {quality: il_or_elle(source) for quality, source in sources.items()}


# %%
heads = range(model.config.heads)
by_hand = {(layer, head): both(off(layer, head)) for layer in layers for head in heads}
looks = divmod(int(at_pronoun[:, words.index("tired")].argmax()), model.config.heads)
matters = min(by_hand, key=lambda one: by_hand[one]["tired"] - by_hand[one]["wide"])
for what, margins_found in {
    "all heads": both({}),
    f"without {looks[0]}.{looks[1]}, which looks most at the adjective": by_hand[looks],
    f"without {matters[0]}.{matters[1]}, which matters most": by_hand[matters],
}.items():
    print(f"{what}: tired {margins_found['tired']:+.2f}, wide {margins_found['wide']:+.2f}")

layer, head = matters
reader = f"decoder.layers.{layer}.cross_attention"

# %% [markdown]
# (0.3 is layer 0, head 3.) Compare the two lines with the first. Where a head looks does not tell what it does:
# switching off the head with the largest weight may change nothing, and switching off a different head may change much.
# We continue with the head that matters.

# %% [markdown]
# ## The same from the library
#
# `without_heads` makes the same edit. `gf.intervene` also works around a search, so you can see what happens to the
# whole translation. (As everywhere in these experiments, head numbers refer to the model in `runs/demo`. A model that
# *you* trained may have different ones, even with the same recipe and seed: see below.)

# %%
edits = without_heads({reader: [head]})
with gf.intervene(model, edits):
    without = translator.translate([tired.source, wide.source])

[translation.text for translation in without]

# %% tags=["hide-input", "check"]
assert both(edits) == by_hand[matters]

# %% [markdown]
# Now every head in turn, on more than one sentence: `head_study` switches off one head after another, and each time
# calls your own measurement. Here it runs on 20 pairs of the split "coreference". As in our pair, the genders of
# animal and place differ (kind "unequal"), and the pairs combine animals and places that never meet in training.
# `study_heads(translator, "coreference", kind="unequal")` does the same for the whole split, with more numbers.

# %%
splits = english_french(bundle.configuration.run.seed, train=0, valid=0, test=0, unseen=0, longer=0).splits
unequal = [one for one in splits["coreference"] if one.kind == "unequal"]
few = [one for place, one in enumerate(unequal) if place // 2 % 15 == 0]  # each 15th pair


def choices(examples):
    """Return sources, what is written before the pronoun, and +1 where il is right, −1 where elle is."""
    places = [[*bundle.target_tokenizer.encode(one.target)] for one in examples]
    at = [max(ids.index(word) if word in ids else -1 for word in (il, elle)) for ids in places]
    signs = torch.tensor([1.0 if ids[place] == il else -1.0 for ids, place in zip(places, at)])
    sources = [torch.tensor([[*encode(one.source), eos]]) for one in examples]
    return sources, [torch.tensor([[bos, *ids[:place]]]) for ids, place in zip(places, at)], signs


def margins(examples):
    """Return log p(right) − log p(wrong) of each sentence."""
    sources, targets, signs = choices(examples)
    with torch.no_grad():
        rows = [model(source, target).log_softmax(-1)[0, -1] for source, target in zip(sources, targets)]
    return signs * torch.stack([row[il] - row[elle] for row in rows])


# %%
effects = list(head_study(model, lambda: {"margin": margins(few).mean().item()}))
whole, single = effects[0], effects[1:]
print(f"{len(few)} sentences, mean margin of the whole model {whole.values['margin']:.2f}")
for effect in sorted(single, key=lambda effect: effect.changes["margin"])[:4]:
    print(f"without {effect.which} layer {effect.layer} head {effect.head}: {effect.values['margin']:.2f}")

# %% tags=["hide-input", "check"]
# The study's number for our head equals the one computed by hand.
ours = next(effect for effect in single if (effect.which, effect.layer, effect.head) == ("cross", layer, head))
with gf.intervene(model, off(layer, head)):
    assert abs(margins(few).mean().item() - ours.values["margin"]) < 1e-5

# %% [markdown]
# Here are all 48 heads of your model in one picture: the change of the mean margin when the head is off. Orange means
# that the model becomes less sure of the right pronoun.

# %% tags=["hide-input"]
SETS = {"encoder": "encoder", "decoder": "decoder, self", "cross": "decoder, cross"}
names = [f"{name}, layer {layer}" for name in SETS.values() for layer in layers]


def table(effects):
    """Return (sets and layers, heads) of the changes."""
    rows = [[] for _ in names]
    for which, layer, change in effects:
        rows[list(SETS).index(which) * len(layers) + layer].append(change)
    return rows


pictures.heat_map(
    torch.tensor(table([(effect.which, effect.layer, effect.changes["margin"]) for effect in single])).round(decimals=1)
    + 0.0,
    names,
    [f"head {head}" for head in range(model.config.heads)],
    numbers=".1f",
    alt="The change of the mean margin without each of the 48 heads. The encoder's heads change next to nothing.",
)

# %% [markdown]
# ## The whole split, three training runs
#
# Now all 300 pairs, 600 sentences, and three models: the demo's recipe with seeds 1, 2 and 3, each with its own
# corpus and pairs. `python book/experiments/measure/pronoun.py` switched off all 48 heads of each model (some minutes
# for each), and wrote `results/pronoun.json`. With all heads on, the three models translate all 600 sentences
# correctly, word for word.
#
# Each row is one layer's attention of one model. Each number is the change of the mean margin, in nats, without that
# head.

# %% tags=["hide-input"]
measured = json.loads(Path("results/pronoun.json").read_text(encoding="utf-8"))["results"]
rows, values = [], []
for seed, found in measured.items():
    heads = [
        (row["set"], row["layer"], row["pronoun margin"] - found["unequal"]["whole"]["pronoun margin"])
        for row in found["unequal"]["heads"]
    ]
    rows += [f"model {seed}: {name}" for name in names]
    values += table(heads)

pictures.heat_map(
    torch.tensor(values).round(decimals=1) + 0.0,  # no −0.0
    rows,
    [f"head {head}" for head in range(len(values[0]))],
    numbers=".1f",
    alt="The change of the mean margin without each of the 48 heads, for three models. The encoder's heads change next to "
    "nothing; the largest changes, minus three to minus four, are in the decoder, at different places in each model.",
)

# %% tags=["hide-input", "check"]
for found in measured.values():
    assert min(row["pronoun"] for row in found["unequal"]["heads"] if row["set"] == "encoder") == 100

strongest = {
    seed: min(found["unequal"]["heads"], key=lambda row: row["pronoun margin"]) for seed, found in measured.items()
}
assert [round(strongest[seed]["pronoun"], 1) for seed in "23"] == [95.3, 99.8]

# %% [markdown]
# These are the three strongest heads of each model, with the margin before and after losing the head. The next columns
# give the share of right pronouns where "it" is the animal and where it is the place. The last column gives the share
# of pairs whose two sentences are both still translated word for word.

# %%
print("set, layer, head             margin       animal  place  pairs")
for seed, found in measured.items():
    whole = found["unequal"]["whole"]["pronoun margin"]
    for row in sorted(found["unequal"]["heads"], key=lambda row: row["pronoun margin"])[:3]:
        which = f"model {seed}: {SETS[row['set']]} {row['layer']}.{row['head']}"
        shares = "".join(f"{row[name]:6.0f}%" for name in ("animal", "place", "pairs"))
        print(f"{which:28} {whole:.1f} → {row['pronoun margin']:.1f}    {shares}")

# %% [markdown]
# - **No head of the encoder matters.** The largest change among all 48 (16 in each model) is −0.4 nats, and every
#   pronoun stays right without it. The head of the popular picture does not exist in these models.
# - **One model has something like "the head that decides 'it'".** Without head 3 of the first cross-attention, model
#   1 loses half of the pronouns that stand for animals. No other head of this model comes close.
# - **The other two models have no such head.** Models 2 and 3 are less sure without their strongest head, by 3 nats of
#   6 or 7, and still right in 95 % and 99.8 % of the sentences. Model 2 has two heads that cost about 40 % of one kind
#   of sentence.
# - **The strongest head is in a different place in each model**: cross-attention of the first layer, cross-attention of
#   the second layer, self-attention of the decoder's second layer.
#
# ### What the heads read
#
# Weights alone do not prove anything. But for heads that matter, it is worth asking where they look at the step that
# writes the pronoun. For the four strongest heads of each model, we print the mean weights on the adjective and on the
# two nouns. (The decoder's self-attention looks at French words. There, "animal" and "place" are their translations,
# including articles.)


# %%
def seen(found, row):
    """Return the mean weights of a head on the adjective, the animal and the place, when "it" is the animal / the place."""
    stack = "encoder" if row["set"] == "encoder" else "decoder"
    kind = "cross_attention" if row["set"] == "cross" else "self_attention"
    looks = found["looks"][f"{stack}.layers.{row['layer']}.{kind}"]
    each = [
        [looks[it][row["head"]].get(role) for role in ("adjective", "animal", "place")] for it in ("animal", "place")
    ]
    return "   ".join(
        "".join("     –" if weight is None else f"{weight:6.2f}" for weight in weights) for weights in each
    )


print("                               it = the animal        it = the place")
print("set, layer, head               adj.  anim. place      adj.  anim. place")
for seed, found in measured.items():
    for row in sorted(found["unequal"]["heads"], key=lambda row: row["pronoun margin"])[:4]:
        which = f"model {seed}: {SETS[row['set']]} {row['layer']}.{row['head']}"
        print(f"{which:27}{seen(found, row)}")

# %% [markdown]
# Compare the two halves of each line, and three different programs appear, all in the decoder:
#
# - **Model 1 looks up the noun.** A head of the first layer reads the adjective, whatever it is. Then two heads of the
#   second layer look at the noun that fits: at the animal if the adjective was "tired", at the place if it was "wide"
#   (weights of 0.95 and 0.02, and the reverse).
# - **Model 2 collects, then chooses.** Two heads of self-attention *always* look at the French words, one for the
#   place and one for the animal, so both genders are at hand. Then a head of the last cross-attention reads the
#   adjective, which decides.
# - **Model 3 detects.** A head of the first layer looks at the adjective *only if it can be said of animals* (0.98
#   against 0.06). Then a head of self-attention looks at the *French* noun that fits.
#
# And the encoder? Here is the largest mean weight that any of its heads gives from "it" to the animal, and to the
# place:

# %%
for seed, found in measured.items():
    encoder_looks = [
        heads for name, members in found["looks"].items() if name.startswith("encoder") for heads in members.values()
    ]
    largest = {role: max(head[role] for heads in encoder_looks for head in heads) for role in ("animal", "place")}
    print(f"model {seed}:", ", ".join(f"{role} {weight:.2f}" for role, weight in largest.items()))

# %% [markdown]
# In sentences of about 14 words, an even share would be 0.07. "It" does not look for its noun.
#
# ### Several heads at once
#
# Switch off the strongest head, then the two strongest, and so on, in the order of their individual cost. The solid
# lines show pairs of unequal gender. The dashed lines show the control, 300 pairs of *equal* gender. There, "il" or
# "elle" is right whatever "it" is, so that nothing has to be decided. (For these pairs, the heads are ordered by their
# cost on these pairs.)

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.4, 3.2)
for (seed, found), colour in zip(measured.items(), pictures.PALETTE):
    for kind, style in (("unequal", "o-"), ("equal", "o--")):
        line = [found[kind]["whole"]["pronoun"], *(step["pronoun"] for step in found[kind]["removed"])]
        label = f"model {seed}" if kind == "unequal" else None
        axes.plot(range(len(line)), line, style, color=colour, markersize=4, label=label, alpha=1 if label else 0.7)

axes.axhline(50, color=pictures.GREY, linewidth=0.8)
axes.set(xlabel="heads switched off", ylabel="right pronouns (%)", ylim=(40, 103))
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The share of right pronouns with one to six heads switched off, for three models: pairs of unequal gender fall to one half, "
    "pairs of equal gender less.",
)

# %% [markdown]
# ### All heads of an attention
#
# This is the coarsest cut: all eight heads of one layer's attention, or all sixteen of the encoder. Each mark is one
# model.

# %% tags=["hide-input"]
blocks = list(measured["1"]["unequal"]["blocks"])


def block(name):
    if not name.startswith(("encoder.", "decoder.")):
        return name
    stack, _, layer, part = name.split(".")
    kind = "encoder" if stack == "encoder" else "decoder, cross" if part.startswith("cross") else "decoder, self"
    return f"{kind}, layer {layer}"


figure, axes = pictures.canvas(6.4, 3.2)
for (seed, found), colour, mark in zip(measured.items(), pictures.PALETTE, "os^"):
    right = [found["unequal"]["blocks"][name]["pronoun"] for name in blocks]
    axes.plot(right, range(len(blocks)), mark, color=colour, markersize=6, alpha=0.85, label=f"model {seed}")

axes.set_yticks(range(len(blocks)), [block(name) for name in blocks])
axes.invert_yaxis()
axes.set(xlabel="right pronouns (%)", xlim=(45, 103))
axes.grid(axis="x", color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The share of right pronouns with all heads of one attention switched off, for three models. Without the encoder's heads "
    "nearly all are right; without one of the decoder's cross-attentions, half of them.",
)

# %% [markdown]
# - **It takes four to six heads** to turn the pronouns into a coin toss. So the choice is not made by one head, and it
#   does not take the whole model either.
# - **The control** shows what the heads are for. In model 1 the pairs of equal gender are almost unharmed, so its
#   heads choose between the nouns. In models 2 and 3 these pairs suffer too: the heads carry the gender itself, which
#   is needed even when there is nothing to choose.
# - **Without any head of the encoder**, 100, 98 and 96 % of the pronouns are right. Each word's vector is then made
#   from the word alone, and the decoder still finds out what "it" is.
#
# So it is true that the model resolves "it" by attention, and that we can find the heads that do it. It is **not** true
# that the encoder resolves "it", that "it" looks at its noun, that a single head is enough, or that two training runs
# find the same solution. These are small models with two layers, and with a decoder that sees the whole source. Larger
# models, and models of other kinds, may well resolve "it" in the encoder. A picture of weights does not show where a
# model resolves "it"; switching off heads does.
#
# ## What goes wrong
#
# - **Quoting head numbers.** Heads have no order: before training, nothing in the model makes head 3 different from
#   head 5. Even with the same seed, a machine that adds numbers in a different order may end up with different heads.
#   Name a head by what it does.
# - **Taking one head away and stopping there.** Where two heads do the same work, the model can spare either one, and
#   both look useless. Take away several.
# - **Zeros are a value too.** A head that is switched off passes on zeros, which later layers have never seen from it.
#   A part of the fall may come from these unfamiliar zeros, and not from the information that the head passed on
#   (exercise 2).
# - **Believing that heads have jobs.** See [what heads are for](../errata.py#what-heads-are-for), and [does attention
#   equal importance?](importance.py).
#
# ## Exercises
#
# **1.** *Medium · 5 min.* Switch off the head of cross-attention that looks most at "it" when the pronoun is written.
# Do the signs change?
#
# <details><summary>Hint</summary>
#
# `at_pronoun` has the weights of all heads of cross-attention at this step, layer by layer.
#
# </details>

# %% tags=["hide-cell"]
layer, at = divmod(int(at_pronoun[:, words.index("it")].argmax()), model.config.heads)
with gf.intervene(model, without_heads({f"decoder.layers.{layer}.cross_attention": [at]})):
    without_it = {quality: il_or_elle(source) for quality, source in sources.items()}

assert without_it != {quality: il_or_elle(source) for quality, source in sources.items()}  # something changes
layer, at, without_it

# %% [markdown]
# **2.** *Hard · 10 min.* Replace the head's output by its *mean* over the two sentences, rather than by zeros. Then the
# head passes on the same vector in both sentences. Compare the result with `by_hand`.
#
# <details><summary>Hint</summary>
#
# Record `heads` in both sentences, take the mean, and put it in with `gf.intervene`.
#
# </details>

# %% tags=["hide-cell"]
layer = int(reader.split(".")[2])
outputs = []
for source in sources.values():
    with torch.no_grad(), gf.record(model, f"{reader}.heads") as trace:
        model(source, target)
    outputs.append(trace[f"{reader}.heads"][:, head])

mean = torch.stack(outputs).mean(0)


def averaged(values):
    values = values.clone()
    values[:, head] = mean
    return values


with gf.intervene(model, {f"{reader}.heads": averaged}):
    with_mean = {quality: il_or_elle(source) for quality, source in sources.items()}

assert with_mean.keys() == by_hand[matters].keys()
{quality: (round(by_hand[matters][quality], 2), round(with_mean[quality], 2)) for quality in sources}

# %% [markdown]
# **3.** *Medium · 6 min.* Is any head among the three strongest of more than one model? How many such heads would you
# expect by chance, if the three of each model were drawn at random from 48?
#
# <details><summary>Hint</summary>
#
# There are three pairs of models. A head of one model is among the other model's three with probability 3/48.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the expected number of heads
print(verdict("pronoun.3", answer))

# %% tags=["hide-cell"]
strongest = [
    {
        (row["set"], row["layer"], row["head"])
        for row in sorted(found["unequal"]["heads"], key=lambda row: row["pronoun margin"])[:3]
    }
    for found in measured.values()
]
shared = [
    one & other
    for one, other in ((strongest[0], strongest[1]), (strongest[0], strongest[2]), (strongest[1], strongest[2]))
]
# There are three pairs of models. Each of the 3 heads is among the other model's 3 of 48 with probability 3 / 48.
by_chance = 3 * 3 * 3 / 48
assert by_chance < 1 and sum(map(len, shared)) <= 2
assert verdict("pronoun.3", by_chance) == "right"
shared, by_chance

# %% [markdown]
# **4.** *Easy · 3 min · on the stage.* Put a second sentence under the first, [on the
# stage](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&task=second),
# so that the French differs in the pronoun. Which weights are outlined?
#
# <details><summary>Hint</summary>
#
# Choose *Compare with* in the menu ⋯, and type the same sentence with “wide”.
#
# </details>
#
# ## Next
#
# [Hiding the key of "street"](hidden_key.py) asks which words are needed, and where. [Patching "tired" into
# "wide"](patching.py) follows the adjective through the layers.
