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
# # Vectors in the plane
#
# ## The question
#
# The chapters so far have put numbers into vectors and taken them out again. A vector is also a *point*, and points can
# be drawn. **What do the points look like? Which words lie together? Where does a word go on its way up through the
# encoder, and what pushes it there? And which part of the picture means something?**

# %%
import math

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import english_french
from glassformer.corpus.tasks.world.french import starts_with_vowel
from glassformer.corpus.tasks.world.nouns import NOUNS
from glassformer.watch import pictures

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle

# %% [markdown]
# ## The intuition
#
# Imagine a cloud of flies that hover in a room, one fly for each word. From any window you see a flat picture of the
# cloud. Most windows show a ball. From some windows, the cloud falls into two groups, and you learn something about the
# flies.
#
# Our room has 128 directions instead of three, and we look for good windows in two ways:
#
# - Take the directions in which the points are spread most. Nobody tells the method what the words mean, so whatever
#   shows up was already in the vectors.
# - Take the direction from the middle of one group to the middle of another. This *asks* a question, so it has to be
#   checked with points that had no part in choosing the direction. In 128 dimensions, two groups of a few points can
#   always be told apart by some direction.
#
# ## The mathematics
#
# Let the rows of $X$ be $n$ points, with their mean subtracted. The *principal components* are perpendicular unit vectors
# $u_1, u_2, …$: $u_1$ is the direction with the largest variance $\lVert X u_1 \rVert^2 / n$, $u_2$ the direction with
# the largest variance among those perpendicular to $u_1$, and so on. The principal components are the right singular
# vectors of $X$. A picture of $(X u_1, X u_2)$ shows the share of the variance
#
# $$\frac{\lVert X u_1 \rVert^2 + \lVert X u_2 \rVert^2}{\lVert X \rVert^2}$$
#
# and hides the rest. We print this share with each such picture.
#
# A *rotation* is a matrix $R$ with $R R^\top = I$. A rotation turns all points together and changes no dot product,
# because $(q R) \cdot (k R) = q R R^\top k^\top = q \cdot k$.
#
# ## Line by line
#
# ### A map of the nouns
#
# Here are the English nouns of the demo's grammar as rows of the [embedding table](embeddings.py), seen along their two
# principal components. The table starts with random numbers, and nobody told the model that one word is an animal and
# another a piece of furniture. Before you read on, find out what the two directions are. The colours give one of them
# away; for the other, translate a few nouns at the bottom and a few at the top into French.

# %%
words = bundle.source_tokenizer.tokens(range(model.config.source_vocab_size))
table = model.source.tokens.weight.detach().double()
nouns = list({noun.english: noun for noun in NOUNS if noun.english in words}.values())
points = torch.stack([table[words.index(noun.english)] for noun in nouns])
centred = points - points.mean(0)
directions = torch.linalg.svd(centred, full_matrices=False).Vh
plane = centred @ directions[:2].T
shown = plane.square().sum() / centred.square().sum()
print(f"{len(nouns)} nouns; the picture shows {shown:.1%} of the variance")

# %% tags=["hide-input"]
feminine = torch.tensor([noun.gender == "f" for noun in nouns])
GENDERS = {"feminine in French": (True, pictures.RED), "masculine in French": (False, pictures.BLUE)}


def scatter(axes, points, mark, colour, label=None):
    axes.plot(*points.T.tolist(), mark, color=colour, markersize=5.5, alpha=0.85, markeredgewidth=0, label=label)


figure, axes = pictures.canvas(7, 4.8)
for label, (side, colour) in GENDERS.items():
    scatter(axes, plane[feminine == side], "o", colour, label)

named = []  # a name is written where it has room
for noun, (x, y) in zip(nouns, plane.tolist(), strict=True):
    if all(abs(x - left) > 0.15 or abs(y - low) > 0.045 for left, low in named):
        axes.annotate(noun.english, (x, y), (5, -3), textcoords="offset points", fontsize=8)
        named.append((x, y))

axes.set(xlabel="first component", ylabel="second component")
figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
pictures.picture(
    figure, "English nouns as points. Those that are feminine in French lie on the left or right of the others."
)

# %% [markdown]
# The direction in which *English* nouns differ most is their **French** gender. English has no such thing. But "la" or
# "le", "noire" or "noir", "elle" or "il" all depend on it, and a wrong gender costs the model at each of these words.
#
# The second direction is even stranger to English. "uncle", "man", "squirrel", "spider", "goose" and "clock" are "oncle",
# "homme", "écureuil", "araignée", "oie" and "horloge": words that begin with a **vowel in French**, and want *l'* instead
# of *le* or *la*. So this is a map of the French articles, drawn by English words. A table learns what its task needs, not
# what a word means.
#
# Is this more than a lucky window? We ask for the gender of each noun without that noun: which group's middle, computed
# from all the *other* nouns, is nearer? We ask the same about the vowels, and about a group that you might have looked
# for first: people and animals.


# %%
def told(points, group, pair=None):
    """Return the share of points that lie nearer to the middle of their own group, computed without them.

    `pair` numbers pairs, whose other point is left out, too. A tie counts one half, as for a coin.
    """
    pair, right = torch.arange(len(points)) if pair is None else pair, 0.0
    for place, point in enumerate(points):
        others = pair != pair[place]
        own, other = (points[others & (group == side)].mean(0) for side in (group[place], ~group[place]))
        gain = (point - other).norm() - (point - own).norm()
        right += 0.5 if gain.abs() < 1e-9 else float(gain > 0)
    return right / len(points)


alive = torch.tensor([noun.kind in ("person", "kin", "pet", "beast") for noun in nouns])
vowel = torch.tensor([starts_with_vowel(noun.french) for noun in nouns])
groups = {"feminine in French": feminine, "a vowel in French": vowel, "people and animals": alive}
for name, group in groups.items():
    middles = torch.stack([plane[group].mean(0), plane[~group].mean(0)])
    across, up = ((middles[0] - middles[1]).abs() / plane.std(0)).tolist()
    print(f"{name:<18} told {told(points, group):6.1%}; middles apart: {across:.1f} across, {up:.1f} up")

# %% tags=["hide-input", "check"]
assert told(points, feminine) > 0.9
assert told(points, vowel) > 0.9

# %% [markdown]
# The last two numbers of a row say how far the middles of the two groups lie apart in the picture, in standard
# deviations. Gender is the direction across, the vowel the direction up. People and animals can be told from things,
# too, but in this window the two overlap: most of their difference lies in other directions. In models of the seeds 3
# and 6, the first two directions are again gender and vowel.
#
# ### Is there a step from "noir" to "noire"?
#
# A famous claim about word vectors says "king − man + woman = queen": the same step leads from every masculine word to
# its feminine one. For French adjectives, we can test a whole list. Take each step from the masculine to the feminine
# form, and compare the steps: a cosine of 1 means the same direction, 0 means nothing in common.

# %% tags=["hide-input"]
from glassformer.corpus.tasks.world.adjectives import ADJECTIVES
from glassformer.corpus.tasks.world.french import Features, agree

# %%
french = bundle.target_tokenizer.tokens(range(model.config.target_vocab_size))
place = {word: number for number, word in enumerate(french)}
forms = [[agree(one.french, Features(g), one.feminine) for g in ("m", "f")] for one in ADJECTIVES]
pairs = [(him, her) for him, her in forms if him != her and him in place and her in place]
vectors = model.target.tokens.weight.detach().double()
steps = torch.stack([vectors[place[her]] - vectors[place[him]] for him, her in pairs])
units = steps / steps.norm(dim=1, keepdim=True)
cosines = units @ units.T
between = (cosines.sum() - len(pairs)) / (len(pairs) * (len(pairs) - 1))


def nearest(vector, without):
    """Return the word whose vector has the largest cosine with this one."""
    likeness = torch.nn.functional.cosine_similarity(vectors, vector[None])
    return next(
        french[number] for number in likeness.argsort(descending=True).tolist() if french[number] not in without
    )


# %% [markdown]
# For a fair test, the step for an adjective is the mean of the steps of all *other* adjectives:

# %%
arrived, started = 0, 0
for number, (him, her) in enumerate(pairs):
    step = (steps.sum(0) - steps[number]) / (len(pairs) - 1)
    arrived += nearest(vectors[place[him]] + step, {him}) == her
    started += nearest(vectors[place[him]], {him}) == her

print(f"mean cosine between two steps: {between:.2f}")
print(f"the mean step leads to the right form in {arrived} of {len(pairs)} cases; without any step: {started}")
roi = nearest(vectors[place["roi"]] - vectors[place["homme"]] + vectors[place["femme"]], {"roi", "homme", "femme"})
print(f"roi − homme + femme is nearest to {roi!r}")

# %% tags=["hide-input", "check"]
assert arrived > started
assert 0 < between < 0.5

# %% [markdown]
# So there is a common part in the steps, and it helps. But it is a small part: most of each step belongs to its own pair.
# And as the last line shows, the famous equation need not hold in a model that translates: nothing in its task asks for
# it.
#
# ### "bank" parts
#
# In the input of the encoder, the "bank" of a river and the "bank" with the money are the same vector, up to the
# position. Here are 50 sentences, half of each kind, and where their "bank" is at each station on its way up. The window
# is the same in all frames: sideways, the direction between the middles of the two groups *at the end* of the encoder;
# upwards, of all directions at a right angle to the first, the one in which the end points are spread most. Press ▶, or
# move the slider:

# %%
splits = english_french(bundle.configuration.run.seed, train=0, valid=0, test=0, unseen=0, longer=0).splits
banks = [one for one in splits["senses"] if one.kind == "bank"]
river = torch.tensor(["rive" in one.target for one in banks])
layers = [f"encoder.layers.{layer}" for layer in range(model.config.encoder_layers)]
stations = [
    "source.input",
    *(f"{layer}.{part}.normed" for layer in layers for part in ("self_attention", "feed_forward")),
]
way = []
for one in banks:
    ids = bundle.source_tokenizer.encode(one.source)
    with torch.no_grad(), gf.record(model, stations) as trace:
        model.encode(torch.tensor([[*ids, bundle.model_config.eos_id]]))
    bank = bundle.source_tokenizer.tokens(ids).index("bank")
    way.append(torch.stack([trace[station][0, bank].double() for station in stations]))

way = torch.stack(way)  # (sentences, stations, d_model)

# %%
end = way[:, -1]
sideways = end[river].mean(0) - end[~river].mean(0)
sideways = sideways / sideways.norm()
rest = end - end.mean(0)
rest = rest - (rest @ sideways)[:, None] * sideways
upwards = torch.linalg.svd(rest, full_matrices=False).Vh[0]
window = torch.stack([sideways, upwards], 1)
seen = (way - end.mean(0)) @ window

# %% tags=["hide-input"]
NAMES = ["the input of the encoder"]
for layer in range(len(layers)):
    NAMES += [f"after the attention of layer {layer}", f"after the feed-forward network of layer {layer}"]

SENSES = {"of a river": (True, "o", pictures.BLUE), "with money": (False, "s", pictures.ORANGE)}
edges = [(axis.min().item() - 0.6, axis.max().item() + 0.6) for axis in seen.reshape(-1, 2).T]


def bank_frame(station):
    figure, axes = pictures.canvas(6.4, 3.4)
    for label, (side, mark, colour) in SENSES.items():
        scatter(axes, seen[river == side, station], mark, colour, label)
    axes.set(xlim=edges[0], ylim=edges[1], xlabel="between the middles of the end", aspect="equal")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return pictures.picture(figure, "The word bank in 50 sentences, as points of two kinds.")


pictures.player([bank_frame(station) for station in range(len(stations))], NAMES, seconds=1.6)

# %% [markdown]
# In this window the two senses come apart in any case, because the window was chosen for that. So again we leave out
# the pair of sentences to which a "bank" belongs, and ask: is this "bank" nearer to the middle of its own sense *at
# that station*?

# %%
pair = torch.arange(len(banks)) // 2
senses_told = [told(way[:, station], river, pair) for station in range(len(stations))]
for name, share in zip(NAMES, senses_told, strict=True):
    print(f"{share:6.1%}  {name}")

# %% tags=["hide-input", "check"]
assert senses_told[0] == 0.5
assert senses_told[-1] > 0.9

# %% [markdown]
# At the input, the share is 50 %, no better than a coin toss. [An experiment](experiments/bank.py) shows which words
# make the difference, and tests thirteen other words with two meanings.
#
# ### What attention adds to a vector
#
# What pushes "bank" sideways? Attention [adds](residual.py) a vector to it, and this vector is a sum with one share for
# each word. In each head, the share is the word's value, times the weight that "bank" gives to the word, times the
# output matrix; the heads' shares are added. Laid end to end, these shares are a path from the old point to the new
# one. Here it is for one sentence in the first layer, with the same window. Only the words that push at least a tenth
# as far as the strongest are named:

# %%
sentence = "I swam across the river to get to the other bank."
ids = [*bundle.source_tokenizer.encode(sentence), bundle.model_config.eos_id]
names = bundle.source_tokenizer.tokens(ids)
attention = model.encoder.layers[0].self_attention
here = "encoder.layers.0.self_attention"
with torch.no_grad(), gf.record(model, f"{here}.*") as trace:
    model.encode(torch.tensor([ids]))

weights, values = trace[f"{here}.weights"][0], trace[f"{here}.value"][0]  # (heads, query, key), (heads, key, d_v)
per_head = weights[:, names.index("bank"), :, None] * values  # (heads, key, d_v)
joined = per_head.transpose(0, 1).flatten(1)  # (key, heads · d_v)
with torch.no_grad():
    parts = (joined @ attention.output_projection.weight.T).double()  # (key, d_model)
    together = parts.sum(0) + attention.output_projection.bias

sides = {
    f"{number}: {name}": push
    for number, (name, push) in enumerate(zip(names, (parts @ sideways).tolist(), strict=True))
}

# %% tags=["hide-input", "check"]
torch.testing.assert_close(together, trace[f"{here}.output"][0, names.index("bank")].double(), atol=1e-4, rtol=0)

# %% tags=["hide-input"]
pushes = parts @ window
start = (trace[f"{here}.input"][0, names.index("bank")].double() - end.mean(0)) @ window
figure, axes = pictures.canvas(6.8, 3.6)
at = start
longest = pushes.norm(dim=1).max()
order = pushes.norm(dim=1).argsort(descending=True).tolist()
for number in order:
    to = at + pushes[number]
    arrow = {"arrowstyle": "-|>", "color": pictures.BLUE, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", to.tolist(), at.tolist(), arrowprops=arrow)
    if pushes[number].norm() >= longest / 10:
        axes.annotate(names[number], ((at + to) / 2).tolist(), (4, 5), textcoords="offset points", fontsize=9)
    at = to

axes.plot(*start.tolist(), "o", color=pictures.GREY, markersize=8)
axes.plot(*at.tolist(), "o", color=pictures.BLUE, markersize=8)
axes.annotate("before", start.tolist(), (-8, -14), textcoords="offset points", fontsize=9)
axes.annotate("after", at.tolist(), (-8, -14), textcoords="offset points", fontsize=9)
axes.margins(0.15)
axes.set(xlabel="between the middles of the end", aspect="equal")
pictures.picture(figure, "The path of “bank” in the plane: one arrow for each word that attention adds.")

# %%
shown = (parts.sum(0) @ window).norm() / parts.sum(0).norm()
print(f"the plane shows {shown:.0%} of the length of what the words add together")
strongest = sorted(sides.items(), key=lambda side: -abs(side[1]))[:4]
for name, push in strongest:
    print(f"{push:+.2f} sideways from {name!r}   ({'towards the river' if push > 0 else 'towards the money'})")

# %% [markdown]
# So the arrows are the shadow of a move in 128 dimensions: the rest of it goes in directions that this window does not show.
# And the weights alone would not have told you this. A word with a large weight may push in a direction that has nothing to
# do with the sense, and a word with a small weight may push straight sideways, if its value is long. (What follows is
# the [norm](residual.py), which changes the length of the vector and subtracts its mean.)
#
# ### The axes of queries and keys mean nothing
#
# [Attention](attention.py) compares queries with keys by dot products. A dot product never asks for a single
# coordinate. So if you turn all queries and all keys of a head by the same angle, every score stays. Move the slider:
# the arrows turn together, the numbers below do not change.

# %%
query = torch.tensor([1.2, 0.5], dtype=torch.float64)
keys = {"river": torch.tensor([1.4, 0.1]), "money": torch.tensor([-0.6, 1.1]), "get": torch.tensor([0.2, -0.9])}


def turned(vector, degrees):
    """Return a vector of the plane turned to the left."""
    angle = math.radians(degrees)
    turn = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    return vector.double() @ torch.tensor(turn, dtype=torch.float64)


# %% tags=["hide-input"]
def turned_frame(degrees):
    figure, axes = pictures.canvas(5.2, 3.6)
    arrows = {"query": (query, pictures.BLUE), **{name: (key, pictures.ORANGE) for name, key in keys.items()}}
    for name, (vector, colour) in arrows.items():
        tip = turned(vector, degrees).tolist()
        style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", tip, (0, 0), arrowprops=style)
        axes.annotate(name, tip, (4, 4), textcoords="offset points", fontsize=9, color=colour)
    axes.set(xlim=(-1.7, 1.9), ylim=(-1.6, 1.7), aspect="equal", xlabel="coordinate 0", ylabel="coordinate 1")
    scores = {name: (turned(query, degrees) @ turned(key, degrees)).item() for name, key in keys.items()}
    text = ", ".join(f"{name} {score:.2f}".replace("-", "−") for name, score in scores.items())
    return pictures.picture(figure, f"turned by {degrees}°; scores of the query: {text}")


pictures.player([turned_frame(degrees) for degrees in range(0, 361, 30)], seconds=0.6)

# %% [markdown]
# The scores of a real head stay the same, too. We turn the queries and keys of one head, in all its 16 dimensions, by a
# random rotation, and compare the scores:

# %%
torch.manual_seed(2)
head, width = 3, model.config.d_k
q, k = (trace[f"{here}.{name}"][0, head].double() for name in ("query", "key"))
rotation = torch.linalg.qr(torch.randn(width, width, dtype=torch.float64)).Q
change = ((q @ rotation) @ (k @ rotation).T - q @ k.T).abs().max()
print(f"largest change of a coordinate: {(q @ rotation - q).abs().max():.1f}; of a score: {change:.0e}")

# %% tags=["hide-input", "check"]
assert change < 1e-9

# %% [markdown]
# So do not read a meaning into "dimension 5 of the query": another training could have turned it anywhere. What a head
# means is in the product $W^Q {W^K}^\top$. The axes of the vectors *between* the layers are less arbitrary, because the
# [norm](residual.py) multiplies each coordinate by a gain of its own.
#
# ### Why a sine *and* a cosine?
#
# A [position](positions.py) (§3.5 of the paper) is written as pairs of a sine and a cosine, each pair like a hand of a
# clock. Would the sine alone not be enough? Move the slider, and look at the crosses: they are the other positions with
# (nearly) the same sine.

# %% tags=["hide-input"]
HOURS = 16


def clock_frame(position):
    angles = torch.arange(HOURS, dtype=torch.float64) * 2 * math.pi / HOURS
    here, sines = angles[position], angles.sin()
    same = [p for p in range(HOURS) if p != position and (sines[p] - sines[position]).abs() < 1e-9]
    figure, (left, right) = pictures.canvas(7, 2.7, ncols=2)
    left.plot(range(HOURS), sines.tolist(), "o-", color=pictures.GREY, markersize=4, linewidth=0.8)
    right.plot(angles.cos().tolist(), sines.tolist(), "o", color=pictures.GREY, markersize=4)
    for other in same:
        left.plot(other, sines[other].item(), "x", color=pictures.RED, markersize=9, markeredgewidth=2)
    left.plot(position, sines[position].item(), "o", color=pictures.BLUE, markersize=9)
    right.plot([0, here.cos().item()], [0, here.sin().item()], color=pictures.BLUE, linewidth=2)
    right.plot(here.cos().item(), here.sin().item(), "o", color=pictures.BLUE, markersize=9)
    left.set(xlabel="position", ylabel="sine alone", ylim=(-1.2, 1.2))
    right.set(xlabel="cosine", ylabel="sine", aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    if same:
        return pictures.picture(figure, f"position {position}: the same sine as position {same[0]}, another hand")
    return pictures.picture(figure, f"position {position}: no other position has this sine")


pictures.player([clock_frame(position) for position in range(HOURS)], seconds=0.8)

# %% [markdown]
# A sine goes through each height twice, once rising and once falling; the hand of a clock passes each place once a
# round. And a hand has a second advantage. To go three positions further, every hand turns by the same angle, whatever
# the time is. That is one matrix for all positions, so a head can learn to look "three words back". From the sine
# alone, you cannot say where it will be in three steps: it may be rising or falling.
#
# ## The same from the library
#
# [The explorer](../runs/demo/explorer.html) shows such paths number by number: open an attention, and it names the word
# that adds most. The library has no function for the map of the nouns, because three lines suffice.
# `torch.pca_lowrank` finds the same plane, up to signs, by a random method that also works for a large vocabulary. It
# searches among a few more directions (`q`) than we need, so that it can tell directions with nearly equal variance
# apart:

# %%
torch.manual_seed(1)
other = torch.pca_lowrank(centred, q=10, center=False, niter=20)[2][:, :2]
alike = (other.T @ directions[:2].T).abs()
print([[round(value, 3) for value in row] for row in alike.tolist()])

# %% tags=["hide-input", "check"]
torch.testing.assert_close(alike, torch.eye(2, dtype=torch.float64), atol=1e-3, rtol=0)

# %% [markdown]
# ## What goes wrong
#
# ### A direction found where nothing is
#
# Pick any half of the nouns at random, call them one group, and take the direction between the two middles. Seen from that
# window, the groups come apart, although there is nothing to find. We colour the nouns by a coin, and ask first with the
# noun itself in its group, then without it; these are the means of 20 such colourings:

# %%
torch.manual_seed(0)
shares = []
for coin in torch.rand(20, len(nouns)) < 0.5:
    inside, outside = points[coin].mean(0), points[~coin].mean(0)
    nearer = (points - inside).norm(dim=1) < (points - outside).norm(dim=1)
    shares.append([(nearer == coin).double().mean().item(), told(points, coin)])

fooled, honest = torch.tensor(shares).mean(0).tolist()
print(f"told with the noun in its own group: {fooled:.0%}; without it: {honest:.0%}")

# %% tags=["hide-input", "check"]
assert fooled > 0.7
assert 0.4 < honest < 0.6

# %% [markdown]
# That is why every share on this page is computed without the points that it asks about. Many pictures of "the
# direction of gender" or "the direction of truth" include these points.
#
# ### What do many believe?
#
# *"Words that lie close together in the picture are alike."* A picture shows two of 128 directions, and the rest of the
# variance is hidden. Two points that are far apart in all 128 dimensions can cast their shadows on the same spot. Only
# the reverse is sure: points that lie apart in such a picture are at least as far apart in all dimensions together.
#
# ## Exercises
#
# **1.** *Easy · 1 min.* All queries and all keys of a head are turned by the same rotation $R$. By how much does a
# score $q \cdot k = 3.5$ change?
#
# <details><summary>Hint</summary>
#
# Write the new score as a product, and look at the two matrices in its middle.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the change of the score
print(verdict("geometry.1", answer))

# %% tags=["hide-cell"]
assert verdict("geometry.1", 0.0) == "right"  # R times its transpose is the identity

# %% [markdown]
# **2.** *Easy · 2 min.* The hands of a clock go around once in 16 positions. By what angle, in degrees, does a hand
# turn from position 5 to position 8? And from position 0 to position 3?
#
# <details><summary>Hint</summary>
#
# The angle depends only on how many positions lie between.
#
# </details>

# %%
answer = None  # instead of None: the two angles
print(verdict("geometry.2", answer))

# %% tags=["hide-cell"]
assert verdict("geometry.2", [3 * 360 / 16, 3 * 360 / 16]) == "right"  # one matrix for both

# %% [markdown]
# **3.** *Hard · 10 min.* Draw the map of the French nouns. Is gender still the first component?
#
# <details><summary>Hint</summary>
#
# `vectors` and `place` have the French table and its rows; everything else stays.
#
# </details>

# %% tags=["hide-cell"]
inflected = torch.stack([vectors[place[noun.french]] for noun in NOUNS if noun.french in place])
is_feminine = torch.tensor([noun.gender == "f" for noun in NOUNS if noun.french in place])
components = torch.linalg.svd(inflected - inflected.mean(0), full_matrices=False)
map_of_french = (inflected - inflected.mean(0)) @ components.Vh[:4].T
apart = (map_of_french[is_feminine].mean(0) - map_of_french[~is_feminine].mean(0)).abs() / map_of_french.std(0)
print([round(value, 2) for value in apart.tolist()])  # distance of the middles in standard deviations, by component
assert apart.max() > 1

# %% [markdown]
# ## Next
#
# The vectors at the end of the encoder are the memory. [The decoder](decoder.py) reads them.
