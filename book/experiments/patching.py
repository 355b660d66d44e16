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
# # Patching "tired" into "wide", layer by layer
#
# ## The question
#
# > The animal didn't cross the street because it was too **tired**. → … parce qu'**il** était trop fatigué.
# >
# > The animal didn't cross the street because it was too **wide**. → … parce qu'**elle** était trop large.
#
# The English sentences differ in the adjective, and therefore their translations differ in the pronoun. So the
# information "the adjective is *tired*" has to travel from the position of the adjective to the position where the
# pronoun is written. On its way it is held in vectors: one for each word, after each layer. **At which words, and after
# which layers, is it held?** If the encoder resolves "it", the information arrives at the vector of "it" somewhere in
# the encoder. If the decoder resolves it, the information stays at the adjective until the decoder fetches it.

# %%
import json
from pathlib import Path

import numpy as np
import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC, english_french
from glassformer.watch import pictures
from glassformer.watch.inspection import Changes, Patch, changed, grid, patched, patching_study

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle
tired, wide = CLASSIC[1], CLASSIC[2]
[translation.text for translation in translator.translate([tired.source, wide.source])]

# %% [markdown]
# ## The intuition
#
# *Activation patching* is a transplant. Run the "tired" sentence and keep all vectors. Run the "wide" sentence, but
# at one place (after one layer, at one word) insert the vector of the "tired" sentence. Everything after that place
# works with the transplanted vector. If the pronoun turns from "elle" into "il", this one vector carried what the
# choice depends on. If nothing happens, the vector did not matter, or the same information reached the pronoun by a
# different route.
#
# The two sentences have the same number of words, so each vector has its counterpart.
#
# ## The mathematics
#
# Let $p = \log p(\text{il}) - \log p(\text{elle})$ be the preference between the pronouns, after "L'animal n'a pas
# traversé la rue parce qu'". The *clean* sentence ("tired") has the preference $p_\text{clean}$, the *corrupted*
# sentence ("wide") has $p_\text{corrupted}$, and the corrupted sentence with a patch has $p_\text{patched}$. The
# effect of the patch is
#
# $$e = \frac{p_\text{patched} - p_\text{corrupted}}{p_\text{clean} - p_\text{corrupted}}$$
#
# so 0 means that none of the preference came back, and 1 that all of it did.
#
# ## Line by line
#
# First, we compute the two preferences.

# %%
eos, bos = bundle.model_config.eos_id, bundle.model_config.bos_id
encode, tokens = bundle.source_tokenizer.encode, bundle.source_tokenizer.tokens
clean, corrupted = ([*encode(one.source), eos] for one in (tired, wide))
prefix = bundle.target_tokenizer.encode("L'animal n'a pas traversé la rue parce qu'")
il, elle = (bundle.target_tokenizer.encode(word)[0] for word in ("il", "elle"))
words = [*tokens(clean[:-1]), "<eos>"]
words[words.index("tired")] = "tired/wide"


def preference(source):
    with torch.no_grad():
        log_probs = model(torch.tensor([source]), torch.tensor([[bos, *prefix]])).log_softmax(-1)[0, -1]
    return (log_probs[il] - log_probs[elle]).item()


preference(clean), preference(corrupted)

# %% tags=["hide-input", "check"]
assert len(clean) == len(corrupted)

# %% [markdown]
# Now we make one transplant by hand, after the encoder's last layer: first at "it", then at the adjective.

# %%
point = f"encoder.layers.{model.config.encoder_layers - 1}.feed_forward.normed"
with torch.no_grad(), gf.record(model, point) as trace:
    model(torch.tensor([clean]), torch.tensor([[bos, *prefix]]))

trace[point].shape  # (sentence, source positions, d_model)


# %%
def effect_of(place):
    here = torch.tensor([place])
    donor = trace[point][:, [place]]
    with gf.intervene(model, {point: lambda vectors: vectors.index_copy(1, here, donor)}):
        after = preference(corrupted)
    return (after - preference(corrupted)) / (preference(clean) - preference(corrupted))


{word: round(effect_of(words.index(word)), 3) for word in ("it", "tired/wide")}

# %% [markdown]
# At "it", the transplant has almost no effect.
#
# ## The same from the library
#
# `patched` makes such an edit from a recording. `Changes` describes an edit as plain data, as the explorer does.

# %%
place = words.index("tired/wide")
with gf.intervene(model, patched(trace, point, [(place, place)])):
    from_recording = preference(corrupted)

patch = Patch(point=point, positions=[(place, place)], source_ids=clean, target_ids=[bos, *prefix])
with changed(model, Changes(patches=[patch])):
    from_data = preference(corrupted)

by_hand = preference(corrupted) + effect_of(place) * (preference(clean) - preference(corrupted))

# %% tags=["hide-input", "check"]
assert abs(from_recording - by_hand) < 1e-4 and abs(from_data - by_hand) < 1e-4

# %% [markdown]
# `patching_study` does this for every position of many points, and `grid` arranges the results in a table. The points
# are the stations of the encoder's *residual stream*: its input, and the output of each sub-layer (after add & norm).
# The decoder sees the last row.
#
# How to read the picture: each column is a word, each row a station, with later stations below. A blue cell is a
# vector whose transplant brings "il" back.

# %%
stations = [
    "source.input",
    *(name for name in gf.points(model) if name.startswith("encoder") and name.endswith(".normed")),
]
right, wrong = [*prefix, il], [*prefix, elle]
effects = list(patching_study(model, clean, corrupted, right, wrong, points=stations))
table = grid(effects)


def short(name):
    if name.endswith(".input"):
        return "input"
    _, _, layer, part, _ = name.split(".")
    return f"layer {layer}, {part.replace('_', '-')}"


pictures.heat_map(
    table.round(1) + 0.0,  # no −0.0
    [short(station) for station in stations],
    words,
    numbers=".1f",
    limit=1,
    alt="How much of the preference comes back when one vector of the encoder is transplanted, by station and word. Only "
    "the column of the adjective matters.",
)

# %% tags=["hide-input", "check"]
assert abs(table[stations.index(point), place] - effect_of(place)) < 1e-4

# %% [markdown]
# Where does the information go from there? Into the decoder. There, each position is a French word that has been
# read, and the pronoun is chosen in the row of the last one, "qu'". Here is the same study on the decoder's stations,
# at this last position. After which sub-layer is the information there?

# %%
last = len(prefix)  # <bos> is position 0
decoder = [
    "target.input",
    *(name for name in gf.points(model) if name.startswith("decoder") and name.endswith(".normed")),
]
late = patching_study(model, clean, corrupted, right, wrong, points=decoder, positions=[last])
{short(effect.point): round(effect.effect, 2) for effect in late}

# %% [markdown]
# The number jumps where cross-attention fetches the adjective. Which of its heads fetch it? A patch can be restricted
# to some heads, at the point where their weighted values pass.

# %%
layers = range(model.config.decoder_layers)
by_head = []
for layer in layers:
    name = f"decoder.layers.{layer}.cross_attention.heads"
    with torch.no_grad(), gf.record(model, name) as heads:
        model(torch.tensor([clean]), torch.tensor([[bos, *prefix]]))
    row = []
    for head in range(model.config.heads):
        with gf.intervene(model, patched(heads, name, [(last, last)], [head])):
            after = preference(corrupted)
        row.append((after - preference(corrupted)) / (preference(clean) - preference(corrupted)))
    by_head.append(row)

pictures.heat_map(
    np.round(by_head, 2) + 0.0,
    [f"layer {layer}" for layer in layers],
    [f"head {head}" for head in range(model.config.heads)],
    numbers=".2f",
    limit=1,
    alt="The effect of transplanting one head's output of cross-attention at the last position, for the two decoder layers.",
)

# %% [markdown]
# Now once more with different words: six pairs of the split "coreference" (kind "unequal": the genders of animal and
# place differ). Positions differ from sentence to sentence, so the effects are sorted by the role of the word.

# %%
from glassformer.corpus.tasks.world.coreference import PAIRS

animals, places = ({pair[side].english for pair in PAIRS} for side in (0, 1))
splits = english_french(bundle.configuration.run.seed, train=0, valid=0, test=0, unseen=0, longer=0).splits
unequal = [one for one in splits["coreference"] if one.kind == "unequal"]
ROLES = ("animal", "place", "it", "adjective", "any other")


def role(words, position):
    because = words.index("because")
    if position == because + 1 or position == len(words) - 2:
        return "it" if position == because + 1 else "adjective"
    noun = words[position] if position < because else ""
    return "animal" if noun in animals else "place" if noun in places else "any other"


# %%
sums, used = {name: [] for name in ROLES}, []
for number in range(0, len(unequal) // 2, 50):
    first, second = unequal[2 * number : 2 * number + 2]  # said of the animal, said of the place
    sources = [[*encode(one.source), eos] for one in (first, second)]
    outputs = [bundle.target_tokenizer.encode(one.target) for one in (first, second)]
    parting = next(place for place, (one, other) in enumerate(zip(*outputs)) if one != other)
    ends = [output[: parting + 1] for output in outputs]
    used.append(f"{first.source} / {tokens(sources[1])[-3]}")
    for effect in patching_study(model, *sources, *ends, points=[stations[-1]]):
        names = tokens(sources[0][:-1])
        sums["any other" if effect.position >= len(names) else role(names, effect.position)].append(effect.effect)

print("\n".join(used))
{name: f"{np.mean(each):+.3f}, largest {max(each, key=abs):+.3f}" for name, each in sums.items()}

# %% [markdown]
# ## The whole split, three training runs
#
# Now all 300 pairs of the split, in both directions ("tired" into "wide", and "wide" into "tired"), for three models:
# the demo's recipe with seeds 1, 2 and 3, each with its own corpus and pairs. `python
# book/experiments/measure/patching.py` transplanted all words of a role at once, in all sentences side by side (a few
# minutes), and wrote `results/patching.json`. All three models get every pronoun right, so each pair counts.
#
# Here is the encoder first. Rows are stations, and columns are roles. Each number is the mean over the pairs and the
# three models.

# %% tags=["hide-input"]
measured = json.loads(Path("results/patching.json").read_text(encoding="utf-8"))["results"]
first = measured["1"]["encoder"]
columns = list(next(iter(first.values())))


def effects_of(seed, stack):
    return np.array([[role["all"] for role in roles.values()] for roles in measured[seed][stack].values()])


in_encoder = np.stack([effects_of(seed, "encoder") for seed in measured])  # (models, stations, roles)
pictures.heat_map(
    in_encoder.mean(0).round(2) + 0.0,  # no −0.00
    [short(name) for name in first],
    columns,
    numbers=".2f",
    limit=1,
    alt="The mean effect of a patch in the encoder, by station and role. The column of the adjective is 1 everywhere, all "
    "others are 0.",
)

# %%
others = [place for place, column in enumerate(columns) if column != "adjective"]
print("largest effect of any role but the adjective, in any model:", f"{np.abs(in_encoder[:, :, others]).max():.4f}")
print("smallest effect of the adjective:", f"{in_encoder[:, :, columns.index('adjective')].min():.3f}")

# %% [markdown]
# The spread is almost too small to draw: in all three models, **all of the information stays at the adjective, through
# the whole encoder**. At "it", at the nouns and at `<eos>` there is no such information, not even after the last layer.
# The encoder of these models does not resolve "it".
#
# Next is the decoder, at the last position, where the pronoun is chosen, with one line for each model.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.8, 3.2)
names = [short(name) for name in measured["1"]["decoder"]]
for seed, colour, style in zip(measured, pictures.PALETTE, ("o-", "s--", "^:")):
    line = [roles["last"]["all"] for roles in measured[seed]["decoder"].values()]
    axes.plot(names, line, style, color=colour, label=f"model {seed}", markersize=5)

axes.set(ylabel="effect at the last position", ylim=(-0.05, 1.08))
axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "The effect of a patch at the last position of the decoder, station by station, for three models. In models 1 and 3 it "
    "jumps from 0 to 1 in the first layer's cross-attention, in model 2 in the second layer's.",
)

# %% [markdown]
# Each line is a step: 0, then 1 after *one* cross-attention. In models 1 and 3 it is the cross-attention of the first
# layer, in model 2 that of the second layer. So the same recipe has found two solutions. In models 1 and 3 the decoder
# reads the adjective early, and still has a layer to look up the noun that fits it. In model 2 only the last layer
# reads the adjective. By then the decoder must already have the genders of both nouns, and the adjective chooses
# between them. [Which head decides "it"?](pronoun.py) shows heads that do so.
#
# Finally, here are the heads, at the last position. Each row is one attention of one model, each column a head. The
# effects of heads need not sum to 1: each of two heads may bring back the whole preference, or no single head may be
# enough.

# %% tags=["hide-input"]
rows, values = [], []
for seed, found in measured.items():
    for name, each in found["heads"].items():
        kind = "cross" if "cross" in name else "self"
        rows.append(f"model {seed}, layer {name.split('.')[2]}, {kind}")
        values.append([one["all"] for one in each])

pictures.heat_map(
    np.round(values, 2) + 0.0,
    rows,
    [f"head {head}" for head in range(len(values[0]))],
    numbers=".2f",
    limit=1,
    alt="The mean effect of a patch of one head's output at the last position, for the decoder's attentions of three models.",
)

# %% [markdown]
# - **Model 1 comes closest to "the head that decides".** One head of the first cross-attention brings back 0.97: it
#   reads the adjective. After it the work is shared: two heads of the second cross-attention, and some of the
#   self-attention, look up the noun.
# - **In model 2 it takes several heads** of the second cross-attention: the best brings back one half.
# - **In model 3** two heads of the first cross-attention share the adjective, and then one head of *self*-attention
#   passes most of the choice on. This head looks at the French words that are written already.
#
# Three popular beliefs do **not** hold here. The answer is not in the vector of "it". Not all models use the same
# head, nor even the same layer. And the meaning does not build up slowly, layer by layer: it comes in one step.
#
# ## What goes wrong
#
# - **Patching shows where a *difference* travels.** Both sentences have the same animal and the same street. So a
#   patch at "animal" or "street" changes nothing, although the model needs both words: see [hiding the key of
#   "street"](hidden_key.py). An effect of 0 means "does not carry the difference", not "is not needed".
# - **The decoder must read the same words.** We patch while the decoder reads the same French words in both runs. If
#   each run wrote its own translation, its own words would give the answer away.
# - **One of many routes.** If one head has 0.53 and another 0.20, it does not follow that a third has 0.27. Effects
#   of heads do not add up, because the layers after them react.
# - **Positions must match.** Sentences of different lengths have no counterpart at each position, so `patching_study`
#   refuses them. If "tired" were two tokens, everything after it would be compared with its neighbour.
#
# ## Exercises
#
# **1.** *Medium · 6 min.* Patch the decoder's vectors at positions before the last one, such as at "rue". Is there any
# effect? Why must it be 0 at the decoder's input?
#
# <details><summary>Hint</summary>
#
# Call `patching_study` with `positions=range(last)`. Which words differ between the two runs at the decoder's input?
#
# </details>

# %% tags=["hide-cell"]
earlier = list(
    patching_study(model, clean, corrupted, right, wrong, points=decoder[:2] + decoder[-1:], positions=range(last))
)
assert all(effect.effect == 0 for effect in earlier if effect.point == "target.input")  # the same words in both runs
assert all(effect.effect == 0 for effect in earlier if effect.point == decoder[-1])  # nothing reads it after this
{short(effect.point): max(abs(one.effect) for one in earlier if one.point == effect.point) for effect in earlier}

# %% [markdown]
# **2.** *Medium · 6 min.* Patch the adjective's vector after the encoder in the opposite direction: "wide" into
# "tired". Does the model then prefer "elle"?
#
# <details><summary>Hint</summary>
#
# Record the run of `corrupted`, and patch its vector of the adjective into the run of `clean`.
#
# </details>

# %% tags=["hide-cell"]
with torch.no_grad(), gf.record(model, point) as other:
    model(torch.tensor([corrupted]), torch.tensor([[bos, *prefix]]))

with gf.intervene(model, patched(other, point, [(place, place)])):
    turned = preference(clean)

assert turned < preference(clean)
turned

# %% [markdown]
# **3.** *Hard · 8 min.* Patch *all* positions except the adjective, after the last layer of the encoder. Judging from
# the picture, what do you expect?
#
# <details><summary>Hint</summary>
#
# Together with the patch of the adjective alone, all positions are patched.
#
# </details>

# %% tags=["hide-cell"]
rest = [(position, position) for position in range(len(clean)) if position != place]
with gf.intervene(model, patched(trace, point, rest)):
    after = preference(corrupted)

share = (after - preference(corrupted)) / (preference(clean) - preference(corrupted))
one = effect_of(place)
assert abs(one + share - 1) < 0.5  # together they are the whole encoder's output, though effects need not add up
round(share, 3), round(one, 3)

# %% [markdown]
# ## Next
#
# [Which head decides "it"?](pronoun.py) switches off the heads that we found here. [What tells "bank" which bank it
# is?](bank.py) is about information that *does* move in the encoder.
