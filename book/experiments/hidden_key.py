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
# # Hiding the key of "street"
#
# ## The question
#
# > The animal didn't cross the **street** because it was too **wide**.
#
# To write "elle" for "it", a model has to know that "it" is the street, and that the French street is feminine.
# Attention is the only way for one word's information to reach another word. So let us close this way for one word:
# **no position may look at "street" any more. Is the pronoun still right? And in which attention must the word be
# hidden for it to matter: in the encoder, where the words of the sentence look at each other, or in cross-attention,
# where the French sentence looks at the English one?**

# %%
import json
from pathlib import Path

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.watch import pictures
from glassformer.watch.inspection import Changes, changed, combine, with_mask

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
tired, wide = CLASSIC[1], CLASSIC[2]
[translation.text for translation in translator.translate([tired.source, wide.source])]

# %% [markdown]
# ## The intuition
#
# In attention a word is present through its *key*, which the other words compare with their queries, and its *value*,
# which the other words gather ([attention](../attention.py)). A mask that is False in the column of one key makes this
# word invisible: its weight is exactly 0 in every row, and the other words share the weight it had. The word itself is
# still in the sentence and still looks at the others. It is mute, so to speak: it hears the others, and nobody hears
# it.
#
# There are three rooms in which "street" can be invisible:
#
# | hidden in | who no longer sees it |
# |---|---|
# | the encoder's self-attention | the other English words: "it" cannot absorb "street" |
# | cross-attention | the French sentence: it cannot look the street up, but may find traces of it at "it" or "the" |
# | both | nobody |
#
# If the encoder has worked out that "it" is the street, hiding "street" in cross-attention does little, because the
# answer is already at "it". If the decoder works it out, hiding "street" in the encoder does little.
#
# ## The mathematics
#
# A score $s_{ij} = q_i \cdot k_j / \sqrt{d_k}$ says how well query $i$ fits key $j$ (§3.2.1). Hiding key $j$ is
#
# $$s_{ij} \leftarrow -\infty \quad \text{for every } i, \qquad w_{i} = \mathrm{softmax}(s_{i})$$
#
# so $w_{ij} = e^{-\infty} / \dots = 0$, and the other weights of the row grow by a common factor, so that they sum to
# 1 again.
#
# To measure the effect, we let the model read what comes before the pronoun, "L'animal n'a pas traversé la rue parce
# qu'", and compare the two pronouns. The *margin* is $\log p(\text{right}) - \log p(\text{wrong})$ in nats. If the
# margin is above 0, the pronoun is right.
#
# ## Line by line
#
# We edit the point `scores` of each attention, and write −∞ into one column.

# %%
eos, bos = bundle.model_config.eos_id, bundle.model_config.bos_id
encode = bundle.source_tokenizer.encode
prefix = bundle.target_tokenizer.encode("L'animal n'a pas traversé la rue parce qu'")
il, elle = (bundle.target_tokenizer.encode(word)[0] for word in ("il", "elle"))
source, target = torch.tensor([[*encode(wide.source), eos]]), torch.tensor([[bos, *prefix]])
words = [*bundle.source_tokenizer.tokens(encode(wide.source)), "<eos>"]
street = words.index("street")


def elle_or_il():
    with torch.no_grad():
        log_probs = model(source, target).log_softmax(-1)[0, -1]
    return (log_probs[elle] - log_probs[il]).item()


def hide(key):
    """Return an edit of scores, (batch, heads, queries, keys), that writes −∞ into one column."""
    return lambda scores: scores.index_fill(-1, torch.tensor([key]), -torch.inf)


# %%
layers = range(model.config.encoder_layers)
encoder = [f"encoder.layers.{layer}.self_attention" for layer in layers]
cross = [f"decoder.layers.{layer}.cross_attention" for layer in layers]
rooms = {"nowhere": [], "the encoder": encoder, "cross-attention": cross, "both": encoder + cross}

by_hand = {}
for room, names in rooms.items():
    with gf.intervene(model, {f"{name}.scores": hide(street) for name in names}):
        by_hand[room] = elle_or_il()
    print(f"street hidden in {room:16} log p(elle) − log p(il) = {by_hand[room]:+.2f}")

# %% [markdown]
# Is the weight really gone? Here is the last row of weights in the last cross-attention, before and after: from "qu'"
# to each English word, mean over the heads. The column of "street" is 0, and each row still sums to 1.

# %%
name = f"{cross[-1]}.weights"
with torch.no_grad(), gf.record(model, name) as before:
    model(source, target)

with torch.no_grad(), gf.intervene(model, {f"{cross[-1]}.scores": hide(street)}), gf.record(model, name) as after:
    model(source, target)

pair = torch.stack([trace[name][0, :, -1].mean(0) for trace in (before, after)])
pictures.heat_map(
    pair, ["before", "after"], words, alt="Mean weights from qu' to each word, before and after hiding street."
)

# %% tags=["hide-input", "check"]
assert pair[1, street] == 0
torch.testing.assert_close(pair.sum(1), torch.ones(2))

# %% [markdown]
# ## The same from the library
#
# `with_mask` takes cells of a mask, (query, key, may look), for each attention, and makes the same edit. `Changes` says
# the same as plain data. The explorer sends this data when you hide a word under *Mask* in [*What
# if?*](../../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide.&sheet=true&panel=changes).


# %%
def column(names, key):
    return {name: [(query, key, False) for query in range(max(source.shape[1], target.shape[1]))] for name in names}


# %% tags=["hide-input", "check"]
for room, names in rooms.items():
    with gf.intervene(model, with_mask(column(names, street))):
        assert abs(elle_or_il() - by_hand[room]) < 1e-5
    with changed(model, Changes(masks=column(names, street))):
        assert abs(elle_or_il() - by_hand[room]) < 1e-5

# %% [markdown]
# (The tolerance only allows for the order in which floating-point numbers are added.)
#
# And what does the whole translation look like, with the word hidden from the first step on? Note what happens to the
# street itself.


# %%
def hidden(names, key):
    return {f"{name}.scores": hide(key) for name in names}


for room, names in rooms.items():
    with gf.intervene(model, hidden(names, street)):
        print(f"{room:16} {translator.translate([wide.source])[0].text}")

# %% [markdown]
# That is one sentence and one word. Now we take 40 sentences: 20 pairs from the split "coreference", in which animal
# and place have different genders and never met in training. We hide four words in turn: the place, the animal, the
# adjective and, as a control, the verb before the place. First we have to find these words.

# %%
from glassformer.corpus.tasks.world.coreference import PAIRS

animals, places = ({pair[side].english for pair in PAIRS} for side in (0, 1))
splits = english_french(bundle.configuration.run.seed, train=0, valid=0, test=0, unseen=0, longer=0).splits
unequal = [one for one in splits["coreference"] if one.kind == "unequal"]
few = [one for place, one in enumerate(unequal) if place // 2 % 15 == 0]  # each 15th pair


def roles(example):
    words = bundle.source_tokenizer.tokens(encode(example.source))
    because = words.index("because")
    place = max(i for i in range(because) if words[i] in places)
    article = max(i for i in range(place) if words[i].lower() in ("the", "this", "my", "our", "his", "her"))
    animal = min(i for i in range(because) if words[i] in animals)
    return {"place": place, "animal": animal, "adjective": len(words) - 2, "verb": article - 1}


words_of = bundle.source_tokenizer.tokens(encode(few[0].source))
few[0].source, {role: words_of[place] for role, place in roles(few[0]).items()}


# %%
def margin(example):
    """Return log p(right pronoun) − log p(wrong pronoun)."""
    output = bundle.target_tokenizer.encode(example.target)
    place = max(output.index(one) for one in (il, elle) if one in output)
    wrong = il if output[place] == elle else elle
    with torch.no_grad():
        logits = model(torch.tensor([[*encode(example.source), eos]]), torch.tensor([[bos, *output[:place]]]))[0, -1]
    return (logits[output[place]] - logits[wrong]).item()  # the softmax's denominator cancels


rights = {}
for role in ("place", "animal", "adjective", "verb"):
    for room, names in rooms.items():
        right = []
        for example in few:
            with gf.intervene(model, hidden(names, roles(example)[role])):
                right.append(margin(example) > 0)
        of_animal, of_place = right[::2], right[1::2]  # in each pair, the animal's sentence comes first
        rights[role, room] = [100 * sum(which) / len(which) for which in (of_animal, of_place)]

print("right pronouns in %, where it is the animal / the place")
print(f"{'hidden':10}", *(f"{room:>16}" for room in rooms))
for role in ("place", "animal", "adjective", "verb"):
    print(f"{role:10}", *(f"{'{:.0f} / {:.0f}'.format(*rights[role, room]):>16}" for room in rooms))

# %% [markdown]
# Read each pair of numbers as follows: if the word of the row is hidden in the attention of the column, these
# percentages of the pronouns are still right, first in the sentences about the animal, then in those about the place.
# Whenever one of the two numbers is near 0 and the other is 100, the model has not become undecided. It always gives
# the same answer: that "it" is the other noun. And what happens without the adjective?

# %%
animal, place = rights["adjective", [*rooms][-1]]
if min(animal, place) < 10:
    print(f"Without the adjective, this model says nearly always: the {'animal' if animal > place else 'place'}.")
else:
    print(
        f"Without the adjective, this model has no fixed habit: of the sentences about the animal, {animal:.0f} % are"
    )
    print(f"still right, of those about the place {place:.0f} %.")

# %% [markdown]
# ### A fourth room
#
# "Street" is present in one more place when the pronoun is due: the decoder has already *written* "la rue", and "la"
# shows the gender. It can look at its own words in its masked self-attention. So hide "la rue" there too.

# %%
french = bundle.target_tokenizer.tokens(target[0].tolist())
decoder = [f"decoder.layers.{layer}.self_attention" for layer in range(model.config.decoder_layers)]
la_rue = combine(*(hidden(decoder, french.index(word)) for word in ("la", "rue")))
for room, edits in {
    "cross-attention": hidden(cross, street),
    "la rue": la_rue,
    "both of these": combine(hidden(cross, street), la_rue),
}.items():
    with gf.intervene(model, edits):
        print(f"hidden in {room:16} log p(elle) − log p(il) = {elle_or_il():+.2f}")

# %% [markdown]
# ## The whole split, four training runs
#
# We did the same with all 600 sentences of the split, on four models: the demo's recipe with seeds 1, 2 and 3, and
# seed 1 once more with its batches in a different order. A seed also draws the corpus, so each has its own training
# sentences and its own 300 pairs. `python book/experiments/measure/hidden_key.py` measures it (about a minute for
# each trained model) and writes `results/hidden_key.json`. With nothing hidden, all four models get 100 % of the
# pronouns right.
#
# Each mark is one model. Circles are sentences in which the pronoun is the place, crosses sentences in which it is
# the animal. "Written" hides the French of the word (with its article and adjectives) from the decoder's
# self-attention.

# %% tags=["hide-input"]
measured = json.loads(Path("results/hidden_key.json").read_text(encoding="utf-8"))["results"]
ROOMS = {
    "encoder": "encoder",
    "cross": "cross-attention",
    "written": "written",
    "cross and written": "cross-attention + written",
    "everywhere": "everywhere",
}
WORDS = ("place", "animal", "adjective", "verb", "it")
figure, axes = pictures.canvas(6.8, 6.4)
lines = []
for word in WORDS:
    for room, name in ROOMS.items():
        if word in ("place", "animal") or room in ("encoder", "cross", "everywhere"):
            lines.append(f"{word}: {name}")
            for number, seed in enumerate(measured):
                found = measured[seed]["hidden"][word][room]
                height = len(lines) - 1 + 0.16 * (number - 1)
                axes.plot(found["place"], height, "o", color=pictures.BLUE, markersize=5)
                axes.plot(found["animal"], height, "x", color=pictures.ORANGE, markersize=5, markeredgewidth=1.6)
    lines.append("")

axes.set_yticks([place for place, line in enumerate(lines) if line], [line for line in lines if line])
axes.invert_yaxis()
axes.set(xlabel="right pronouns (%)", xlim=(-4, 104))
axes.grid(axis="x", color=pictures.GREY, alpha=0.25, linewidth=0.6)
axes.plot([], [], "o", color=pictures.BLUE, label="it = the place")
axes.plot([], [], "x", color=pictures.ORANGE, markeredgewidth=1.6, label="it = the animal")
figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The share of right pronouns for each hidden word and room, for four models. Hidden in the encoder, no word changes "
    "anything, except the adjective in the fourth model. Hidden in cross-attention, the adjective sends the sentences "
    "about the animal to 0 in three models, and the nouns lose some or nearly all of their own sentences.",
)

# %% tags=["hide-input", "check"]
lost = {seed: 100 - found["hidden"]["place"]["cross"]["place"] for seed, found in measured.items()}
assert lost["1"] > 50
assert [round(lost[seed]) for seed in "324"] == [4, 9, 11]

# %% [markdown]
# This holds in all four models:
#
# - **Hiding a noun in the encoder does nothing**: 100 % of the pronouns stay right. For the pronoun to be right, no
#   vector has to absorb "street" or "animal" from another word *in the encoder*.
# - **Hiding the adjective everywhere leaves only a habit.** Half of all pronouns are right, because the model now says
#   "the place" always, or nearly always. So a model that cannot read the adjective gets 50 % right, not 0 %. Which of
#   the two nouns it prefers, and how firmly, is a matter of chance. The same recipe on other machines, where sums are
#   rounded differently, has given a model that says "the animal", and one without a fixed habit (65 and 35 %).
# - **Hiding a noun breaks its own sentences and leaves the other noun's sentences right.** With the street gone, "it"
#   becomes the animal.
# - **Hiding "it" itself does nothing.** The word being translated is not needed for its translation: "parce qu'"
#   calls for a pronoun anyway.
#
# This differs between the models:
#
# - **Where the adjective is read.** In three models only cross-attention reads the adjective. Hiding it there makes the
#   model lose this information; hiding it in the encoder changes nothing. The fourth model reads it in both attentions.
#   Hiding the adjective in only one of the two attentions loses about half of the animal's pronouns (55 % in the
#   encoder, 45 % in cross-attention), and hiding it in both loses all of them. So in the fourth model, some other word
#   has absorbed the adjective in the encoder. The fourth model has the same recipe and the same corpus as model 1. Only
#   the order of its batches is different.
# - **Where the noun's gender is read.** In model 1, hiding the place in cross-attention is enough to lose more than
#   half of its pronouns. In the other models, this costs 4 to 11 %. These models read the gender from what they have
#   *written*, "la rue" or "le parc", and hiding these words costs 38 to 74 % of the pronouns. Only when the English
#   place and the written words are both hidden do all four models lose most of the place's pronouns (and all of the
#   animal's).
#
# And the popular claim? "**'It' attends to 'street', so that its vector knows**" does not describe these models: they
# need no noun in the encoder. The decoder looks at the adjective and at the nouns when it writes the pronoun, and in
# one model the encoder does a part of the work on the adjective. There are two plausible reasons: the decoder can do it
# (each French word may look at the whole source), and two encoder layers are few. A deeper model, or a model without
# cross-attention, such as a language model, may well do it differently. Our result says what these models do. It also
# says that a plausible drawing is not evidence. And **three models that agree are not all models**: the fourth model
# contradicts what we had concluded here from the first three.
#
# ## What goes wrong
#
# - **Hidden is not 0.** A score of 0 instead of −∞ leaves the word a weight of $e^0$ over the sum, which is often
#   large. See [masked to zero](../errata.py#masked-to-zero).
# - **A hidden word is not a removed word.** A hidden word keeps its position, it still reads the others, and in the
#   encoder its vector goes on to cross-attention. Hiding a key in one kind of attention closes one way; the fourth room
#   above, the decoder's self-attention, is a way that is easily forgotten.
# - **Accuracy hides habits.** 50 % on a split of pairs looks like a coin toss, but here it is a model that always
#   gives the same answer. Count the two sentences of each pair separately.
# - **The model has never seen such a mask in training.** If something breaks, the strangeness of the input may be the
#   cause. That is what the controls are for: hiding the verb or "it" breaks nothing, so it is not the mask itself
#   that breaks the pronoun.
#
# ## Exercises
#
# **1.** *Medium · 6 min.* Hide the *animal* of our sentence with "tired" in cross-attention. Which pronoun does the
# model prefer then? Does the sentence's own margin change sign?
#
# <details><summary>Hint</summary>
#
# `hidden(cross, place)` hides one word; the margin is log p(il) − log p(elle).
#
# </details>

# %% tags=["hide-cell"]
tired_source = torch.tensor([[*encode(tired.source), eos]])


def il_or_elle(edits):
    with torch.no_grad(), gf.intervene(model, edits):
        log_probs = model(tired_source, target).log_softmax(-1)[0, -1]
    return (log_probs[il] - log_probs[elle]).item()


animal = bundle.source_tokenizer.tokens(tired_source[0].tolist()).index("animal")
whole, without = il_or_elle({}), il_or_elle(hidden(cross, animal))
assert whole > 0 and without < whole
whole, without

# %% [markdown]
# **2.** *Medium · 6 min.* In cross-attention, hide *every* word of the source except the adjective and the two nouns
# (and `<eos>`). Are these enough?
#
# <details><summary>Hint</summary>
#
# `combine` joins several edits into one.
#
# </details>

# %% tags=["hide-cell"]
kept = {words.index("animal"), words.index("street"), words.index("wide"), len(words) - 1}
nearly_all = [hidden(cross, key) for key in range(len(words)) if key not in kept]
with gf.intervene(model, combine(*nearly_all)):
    only_three = elle_or_il()

assert only_three == only_three  # a number, not NaN: something is left to look at
f"{only_three:+.2f} (whole: {by_hand['nowhere']:+.2f})"

# %% [markdown]
# **3.** *Easy · 4 min.* What is the weight of a hidden key if you write 0 or −10 into its scores instead of −∞? Compute
# it for a row of the four scores 2, 1, 0, 1, of which the first is hidden.
#
# <details><summary>Hint</summary>
#
# Replace the first score by 0, then by −10, and take the softmax of all four.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: [with 0, with −10]
print(verdict("hidden_key.3", answer))

# %% tags=["hide-cell"]
weights = [torch.tensor([score, 1.0, 0.0, 1.0]).softmax(-1)[0].item() for score in (0.0, -10.0, -torch.inf)]
assert 0.1 < weights[0] < 0.2 and 0 < weights[1] < 1e-4 and weights[2] == 0
assert verdict("hidden_key.3", weights[:2]) == "right"
weights

# %% [markdown]
# ## Next
#
# [Which head decides "it"?](pronoun.py) looks for the heads that read the adjective and the nouns. [Patching "tired"
# into "wide"](patching.py) follows the adjective through the layers. In [the senses of "bank"](bank.py) you will see
# the encoder do the work that it does not do here.
