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
# # Positions
#
# The vectors of a sentence say which words it has ([embeddings](embeddings.py)), but not in which order. This
# chapter adds the order: a pattern of sines and cosines for each position (§3.5 of the paper, *Attention Is All You
# Need*, 2017). You will see the pattern, why a shift by a few words is a rotation, and the limits of this property.

# %%
import math
from textwrap import fill

import torch

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.watch import pictures
from glassformer.watch.inspection import Changes, changed, plant

torch.manual_seed(1)
torch.set_printoptions(sci_mode=False)  # 0.0030 instead of 3.0000e-03
translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model, tokenizer = translator.model, translator.bundle.source_tokenizer

# %% [markdown]
# ## The question
#
# "The dog saw the cat." and "The cat saw the dog." consist of the same words. How can a Transformer tell which animal
# saw and which animal was seen? Here is what the demo model says, first with its positions and then with the positions
# switched off:

# %%
both = ["The dog saw the cat.", "The cat saw the dog."]
with_positions = [translation.text for translation in translator.translate(both)]
with changed(model, Changes(positions=False)):
    without = [translation.text for translation in translator.translate(both)]

with_positions, without

# %% tags=["hide-input", "check"]
assert with_positions[0] != with_positions[1]
assert without[0] == without[1]

# %% [markdown]
# Without positions, both sentences get the same answer. This is not a weakness of the demo. The encoder (the half of
# the model that reads the source) compares words with words, mixes their vectors, and treats every vector by the same
# rule. None of these steps asks where a word is. So if you shuffle the words, the same vectors come out, shuffled the
# same way. The technical term is that the encoder is **permutation-equivariant**. You can check this on a fresh model
# with random weights:

# %%
config = gf.ModelConfig.preset("tiny", vocab_size=11, positions="none")
no_order = gf.Transformer(config).double().eval()
source = torch.tensor([[4, 5, 6, 7, 8]])
shuffle = torch.tensor([2, 0, 4, 1, 3])

memory = no_order.encode(source)  # (B, S, d_model): one vector for each source position
of_shuffled = no_order.encode(source[:, shuffle])
without = (of_shuffled - memory[:, shuffle]).abs().max().item()

config = gf.ModelConfig.preset("tiny", vocab_size=11)  # with positions, as usual
in_order = gf.Transformer(config).double().eval()
of_shuffled = in_order.encode(source[:, shuffle])
difference = (of_shuffled - in_order.encode(source)[:, shuffle]).abs().max().item()
print(f"shuffled before or after, largest difference: without positions {without:.0e}, with them {difference:.2f}")

# %% tags=["hide-input", "check"]
assert without < 1e-12  # sums in a different order differ at about the fifteenth digit of float64
assert difference > 0.1

# %% [markdown]
# ## The intuition
#
# How could you write "third word" as numbers? The position itself, 0, 1, 2, …, grows without limit and soon dwarfs the
# word's own numbers. Divided by the sentence's length it stays small, but then one step to the right is a different
# amount in each sentence.
#
# Binary numbers have a better way. The last digit changes at every step, the first one slowly; together they name the
# position, and no digit is larger than 1:
#
# | position | first digit | middle digit | last digit |
# |---|---|---|---|
# | 0 | 0 | 0 | 0 |
# | 1 | 0 | 0 | 1 |
# | 2 | 0 | 1 | 0 |
# | 3 | 0 | 1 | 1 |
# | 4 | 1 | 0 | 0 |
# | 5 | 1 | 0 | 1 |
# | 6 | 1 | 1 | 0 |
# | 7 | 1 | 1 | 1 |
#
# A digit jumps from 0 to 1. A sine is the smooth version of such a digit: it rises and falls, quickly or slowly.
#
# A clock is built this way. It tells the time with several hands, each of which goes round its circle for ever. The
# second hand tells nearby moments apart, but repeats itself every minute. The hour hand is too slow to show a
# difference of two seconds, but it knows morning from noon. Together they name each moment of half a day.
#
# The position pattern is such a clock. Each *pair* of numbers gives the tip of one hand: the sine and the cosine of the
# hand's angle. The first hand moves by about 57 degrees (an angle of 1 radian) per word; each hand after it is slower
# than the one before. And "three words later" does to these hands what "three seconds later" does to the hands of a
# clock: it turns each hand by an angle that does not depend on the current time.

# %% [markdown]
# ## The mathematics
#
# | symbol | meaning |
# |---|---|
# | $d_\mathrm{model}$ | the width of a vector: 512 numbers in the paper, 128 in the demo, 8 in the examples below |
# | $pos$ | the position of a word, **counted from 0** |
# | $i$ | the number of a *pair* of dimensions: $0 \le i < d_\mathrm{model}/2$ |
# | $PE$ | the matrix of positional encodings: row $pos$ is added to the vector of the word at $pos$ |
# | $B$, $S$, $T$ | in the code's comments: the number of sentences in a *batch* (computed at once); the length of a source; the length of any sequence |
#
# The formula (§3.5):
#
# $$ PE_{pos,\,2i} = \sin\!\left(\frac{pos}{10000^{2i/d_\mathrm{model}}}\right) $$
#
# $$ PE_{pos,\,2i+1} = \cos\!\left(\frac{pos}{10000^{2i/d_\mathrm{model}}}\right) $$
#
# Read it slowly, because one letter in it is often misread: $i$ counts pairs, not dimensions. Pair $i$ fills the
# dimensions $2i$ and $2i+1$, and **both have the same divisor**. Write the speed of pair $i$ as $\omega_i =
# 10000^{-2i/d_\mathrm{model}}$; then its two numbers are $\sin(\omega_i\,pos)$ and $\cos(\omega_i\,pos)$, the tip of a
# hand at the angle $\omega_i\,pos$. Pair 0 has $\omega_0 = 1$ and goes round once in $2\pi \approx 6.3$ positions. The
# slowest pair of the paper's model needs nearly $2\pi \cdot 10000$ positions.
#
# **The shift property.** Let $k$ be an offset, such as 3 words further on. Each $k$ has *one* matrix $M_k$, the same
# for all positions, with
#
# $$ PE_{pos+k} = M_k \, PE_{pos} $$
#
# (rows of $PE$ written as columns here). This follows from the addition theorems of school trigonometry. Let
# $\theta = \omega_i\,pos$ be the angle of the hand, and $\alpha = \omega_i\,k$ the angle by which it turns:
#
# $$ \sin(\theta+\alpha) = \cos\alpha \, \sin\theta + \sin\alpha \, \cos\theta $$
#
# $$ \cos(\theta+\alpha) = -\sin\alpha \, \sin\theta + \cos\alpha \, \cos\theta $$
#
# Written as a matrix, which does not contain $pos$, the two lines are a rotation by the angle $\alpha$:
#
# $$ \begin{pmatrix} \sin(\theta+\alpha) \\ \cos(\theta+\alpha) \end{pmatrix} =
# \begin{pmatrix} \cos\alpha & \sin\alpha \\ -\sin\alpha & \cos\alpha \end{pmatrix} \begin{pmatrix} \sin\theta \\
# \cos\theta \end{pmatrix} $$
#
# $M_k$ has one such block for each pair on its diagonal, and zeros elsewhere. The paper gives this as the reason for
# its choice: a layer multiplies by matrices, so it can learn to look "k words back" with one matrix for all positions
# (§3.5).

# %% [markdown]
# ## Line by line
#
# ### Position 3, with paper and pencil
#
# Take $d_\mathrm{model} = 8$, which makes four pairs, and the fourth word, which has position 3. The divisors happen to
# be round numbers: $10000^{2/8} = 10$.
#
# | pair $i$ | dimensions | $2i/d_\mathrm{model}$ | divisor | angle | sine | cosine |
# |---|---|---|---|---|---|---|
# | 0 | 0, 1 | 0 | 1 | 3 | 0.1411 | −0.9900 |
# | 1 | 2, 3 | 0.25 | 10 | 0.3 | 0.2955 | 0.9553 |
# | 2 | 4, 5 | 0.5 | 100 | 0.03 | 0.0300 | 0.9996 |
# | 3 | 6, 7 | 0.75 | 1000 | 0.003 | 0.0030 | 1.0000 |
#
# Here is the same in code, number by number:

# %%
d_model, pos = 8, 3
row = []
for i in range(d_model // 2):
    angle = pos / 10000 ** (2 * i / d_model)
    row += [math.sin(angle), math.cos(angle)]

[round(number, 4) for number in row]

# %% tags=["hide-input", "check"]
expected = [0.1411, -0.9900, 0.2955, 0.9553, 0.0300, 0.9996, 0.0030, 1.0000]
assert [round(number, 4) for number in row] == expected

# %% [markdown]
# ### The whole table
#
# To compute all positions at once, divide a column of positions by a row of divisors. The result is a matrix of angles:

# %%
length = 10
positions = torch.arange(length, dtype=torch.float64)[:, None]  # (T, 1)
i = torch.arange(d_model // 2, dtype=torch.float64)  # pairs: 0, 1, 2, 3
angles = positions / 10000 ** (2 * i / d_model)  # (T, 1) / (4,) -> (T, 4)
angles

# %%
table = torch.zeros(length, d_model, dtype=torch.float64)
table[:, 0::2] = angles.sin()  # dimensions 0, 2, 4, 6
table[:, 1::2] = angles.cos()  # dimensions 1, 3, 5, 7
table[:4]

# %% tags=["hide-input", "check"]
assert table.shape == (10, 8)  # (T, d_model)
torch.testing.assert_close(table[3], torch.tensor(row, dtype=torch.float64))

# %% [markdown]
# Row 0 is (0, 1, 0, 1, …): all hands point upwards. Go down a column and watch the numbers: the first two change
# quickly, the last two hardly at all.
#
# ### Added to the words
#
# The table has as many columns as the word vectors, so the two can be added, number by number. Every sentence of a
# batch gets the same table. Here it is added to a sentence of nine tokens:

# %%
ids = tokenizer.encode("The black cat sat on the couch.")
ids = torch.tensor([[*ids, tokenizer.eos_id]])  # (B, S) = (1, 9)
E = model.source.tokens.weight.detach().double()
embedding = E[ids] * math.sqrt(128)  # (B, S, d_model) = (1, 9, 128)
x = embedding + gf.sinusoids(9, 128, dtype=torch.float64)  # (1, 9, 128) + (9, 128)
x[0, 2, :6]  # "cat", at position 2

# %% [markdown]
# In training, [dropout](residual.py#dropout) acts on this sum (§5.4): it sets each number to 0 with a probability of 0.1
# and divides the others by 0.9. Here are the first eight numbers of "cat" before and after:

# %%
torch.manual_seed(2)
dropped = torch.nn.Dropout(0.1)(x)  # a new module is in training mode
torch.stack([x[0, 2, :8], dropped[0, 2, :8]])

# %% tags=["hide-input", "check"]
assert x.shape == (1, 9, 128)

# %% [markdown]
# ## The same from the library
#
# [`gf.sinusoids`](../src/glassformer/model/positions.py#sinusoids) computes the table, and
# [`Positions`](../src/glassformer/model/positions.py#Positions) is the module of the model that returns its rows. You
# can record what the demo adds: `source.positions` is the pattern, and `source.input` is the sum that the first layer
# reads.

# %%
with gf.record(model, "source.*") as trace:
    model.encode(ids)

trace["source.positions"].shape, trace["source.input"].shape

# %% tags=["hide-input", "check"]
from_library = gf.sinusoids(10, 8, dtype=torch.float64)
torch.testing.assert_close(from_library, table, rtol=0, atol=1e-14)
# The model computes in float32: seven digits.
torch.testing.assert_close(trace["source.positions"], gf.sinusoids(9, 128))
torch.testing.assert_close(trace["source.input"].double(), x, rtol=1e-6, atol=1e-6)

# %% [markdown]
# ### A table that is not learned
#
# Where does a module keep such a table? As a plain attribute it would be left behind when the module moves. As an
# `nn.Parameter` it would be trained. Most tutorials use `register_buffer`, which makes it a *buffer*: a tensor that moves
# with the module and is saved with it, but that the optimiser never gets. `half()`, which makes every number 16 bits
# wide, moves a module in the same way as `to("cuda")`:


# %%
class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = gf.sinusoids(10, 8)
        self.register_buffer("buffer", gf.sinusoids(10, 8))
        self.learned = torch.nn.Parameter(gf.sinusoids(10, 8))


module = Table().half()
print("for the optimiser:", [name for name, _ in module.named_parameters()])
print("in the saved file:", sorted(module.state_dict()))
for name in ("plain", "buffer", "learned"):
    print(f"{name:<8} {getattr(module, name).dtype}")

# %% tags=["hide-input", "check"]
assert module.plain.dtype == torch.float32 != module.buffer.dtype == module.learned.dtype
assert [name for name, _ in module.named_parameters()] == ["learned"]
assert sorted(module.state_dict()) == ["buffer", "learned"]
assert type(torch.autograd.Variable(torch.ones(1))) is torch.Tensor

# %% [markdown]
# (Older code also writes `Variable(table, requires_grad=False)`. Until PyTorch 0.4, only a `Variable` could have a
# gradient. Since then every tensor can, and `Variable(table)` returns a plain tensor: leave it out.) The library's
# sinusoids are not a buffer: `Positions` computes a table when it is needed and keeps the last few tables in memory, so
# no saved file contains them.
#
# The explorer draws the patterns of any sentence, with sliders for the position and the shift: [positions of our
# sentence](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&zoom=%7B%22box%22:%22encoder.positions%22,%22key%22:null%7D&panel=positions).

# %% [markdown]
# ## A picture of the matrix
#
# Each row is a position, each column a dimension; blue is above 0, orange below. At the left edge, the quick pairs
# flicker from row to row. Further to the right the waves get longer. At the right edge, the sines stay near 0 (pale)
# and the cosines near 1 (blue) all the way down.

# %%
pictures.heat_map(
    gf.sinusoids(40, 64),
    row_label="position",
    column_label="dimension",
    alt="The position matrix for 40 positions and 64 dimensions: quick waves at the left, ever slower ones to the "
    "right, and at the right edge pale and blue stripes that do not change.",
)

# %% [markdown]
# ## A clock with four hands
#
# Here are the four pairs of $d_\mathrm{model} = 8$ as hands. The tip of each hand is at (sine, cosine): the sine to the
# right, the cosine upwards. So a hand starts at the top and turns clockwise, as on a clock. Play the animation, or step
# through it: each hand is ten times slower than the one before. After position 10, the frames go on in steps of ten.
# Small dots mark where the tip was at positions 0 to 10.

# %% tags=["hide-input"]
stops = [*range(11), *range(20, 101, 10)]
hands = gf.sinusoids(101, 8, dtype=torch.float64)
frames, captions = [], []
for place in stops:
    figure, clocks = pictures.canvas(6.4, 2.0, ncols=4)
    for pair, axes in enumerate(clocks):
        tips = hands[:, 2 * pair : 2 * pair + 2]
        sine, cosine = tips[place].tolist()
        circle = torch.linspace(0, 2 * math.pi, 60)
        axes.plot(circle.sin(), circle.cos(), color=pictures.GREY, linewidth=1)
        axes.plot(*tips[: min(place, 10) + 1].T, ".", color=pictures.GREY, markersize=4)
        axes.plot([0, sine], [0, cosine], color=pictures.PALETTE[pair], linewidth=2.5, solid_capstyle="round")
        axes.set_title(f"pair {pair}", fontsize=10)
        axes.text(0, -1.35, f"{sine:.2f}, {cosine:.2f}".replace("-", "−"), ha="center", va="top", fontsize=9)
        axes.set(xlim=(-1.2, 1.2), ylim=(-1.75, 1.2), aspect="equal")
        axes.axis("off")
    numbers = ", ".join(f"{number:.2f}" for number in hands[place].tolist()).replace("-", "−")
    frames.append(pictures.picture(figure, f"Four hands at position {place}; sines and cosines: {numbers}."))
    captions.append(f"position {place}: the row of the matrix is ({numbers})")

pictures.player(frames, captions, seconds=0.9)

# %% [markdown]
# ## A shift is a rotation
#
# Now build the matrix $M_k$, block by block as derived [above](#the-mathematics):


# %%
def shift_matrix(k, d_model):
    """Return the matrix that moves all hands on by k positions."""
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for pair in range(d_model // 2):
        angle = k / 10000 ** (2 * pair / d_model)
        cosine, sine = math.cos(angle), math.sin(angle)
        rotation = torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = rotation
    return matrix


largest = 0.0
for width in (8, 128, 512):
    many = gf.sinusoids(200, width, dtype=torch.float64)
    for k in (1, 2, 3, 10, 57):
        # M @ column is row @ M.T: so all positions are turned at once.
        turned = many[:-k] @ shift_matrix(k, width).T
        largest = max(largest, (turned - many[k:]).abs().max().item())

print(f"largest difference between turned and shifted positions: {largest:.0e}")

# %% tags=["hide-input", "check"]
assert largest < 1e-10

# %% [markdown]
# One matrix for each $k$ was enough for all positions. The picture shows $M_1$ for $d_\mathrm{model} = 8$. Along the
# diagonal lie four blocks of two by two, each a rotation. The first block rotates by a large angle, the last block by
# so small an angle that its numbers are nearly 1 and 0.

# %%
names = [f"{name} {pair}" for pair in range(4) for name in ("sin", "cos")]
pictures.heat_map(
    shift_matrix(1, 8),
    names,
    names,
    numbers=".3f",
    alt="The matrix of a shift by one position: four 2 by 2 blocks on the diagonal, rotations by 1, 0.1, 0.01, 0.001.",
)

# %% [markdown]
# ### The dot product depends on the distance alone
#
# Attention compares vectors by their dot product. For two positions $p$ and $q$, another addition theorem gives
#
# $$ PE_p \cdot PE_q = \sum_i \big(\sin\omega_i p \, \sin\omega_i q + \cos\omega_i p \, \cos\omega_i q\big) $$
#
# $$ = \sum_i \cos\big(\omega_i (p-q)\big), $$
#
# which depends only on the distance $p - q$. The dot product is largest at distance 0, where it is
# $d_\mathrm{model}/2$, and it is the same for a distance to the left as to the right.

# %%
many = gf.sinusoids(100, 128, dtype=torch.float64)
products = many @ many.T  # (100, 100): each position with each
products[10, 10:16]

# %% tags=["hide-input", "check"]
speeds = 10000 ** (-2 * torch.arange(64, dtype=torch.float64) / 128)
for distance in range(50):
    from_formula = (speeds * distance).cos().sum()
    diagonal = products.diagonal(distance)  # all pairs of positions at this distance
    assert (diagonal - from_formula).abs().max() < 1e-10
    torch.testing.assert_close(products.diagonal(-distance), diagonal)

assert products.diagonal().allclose(torch.tensor(64.0).double())

# %% [markdown]
# The curves show this dot product, divided by its largest value. Look for two things. On the whole, each curve falls
# from 1, so near positions are more alike than distant ones. And with more dimensions the curve is smoother, because
# more hands take part.

# %% tags=["hide-input"]
distances = range(-40, 41)


def likeness(width):
    """Return the dot product at each distance, divided by its value at distance 0."""
    rows = gf.sinusoids(81, width, dtype=torch.float64)
    return (rows @ rows[40]) / (width / 2)


pictures.curves(
    {f"d_model {width}": (distances, likeness(width)) for width in (8, 128)},
    x_label="distance of two positions",
    y_label="dot product / largest",
    alt="Two curves over the distance of two positions, with their peak of 1 at distance 0, symmetric and falling to both "
    "sides; with 8 dimensions the curve goes up and down every six positions, with 128 dimensions it is smooth.",
)

# %% [markdown]
# Keep in mind that this is a property of the *pattern*. In the model, the sum word + position passes through learned
# matrices before it is compared ([attention](attention.py)). These matrices may use the property, or not.

# %% [markdown]
# ## Two layouts
#
# The paper's formula puts sine and cosine side by side: *interleaved*. Other implementations put all sines first and
# then all cosines: *halves*. This is the same table with its columns in a different order, a **permutation**:

# %%
halves = gf.sinusoids(10, 8, layout="halves", dtype=torch.float64)
order = [0, 2, 4, 6, 1, 3, 5, 7]
halves[3]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(halves, table[:, order], rtol=0, atol=1e-14)

# %% [markdown]
# A fresh model cannot tell the difference, because no dimension is special to it. But a *trained* model has to keep
# the layout with which it was trained.
#
# A third table looks like halves but is different. The early library tensor2tensor, and Marian's C++, divide by
# $d_\mathrm{model}/2 - 1$ in the exponent: $\omega_i = 10000^{-i/(d_\mathrm{model}/2-1)}$, so that the slowest hand has
# a speed of exactly 1/10000. The columns of this table are *not* among ours, in any order:

# %%
angles_there = positions / 10000 ** (i / (d_model / 2 - 1))
there = torch.cat([angles_there.sin(), angles_there.cos()], dim=1)
# How far is each of its columns from the nearest one of ours?
off = torch.cdist(there.T, table.T).amin(dim=1)
[f"{distance:.5f}" for distance in off.tolist()]

# %% tags=["hide-input", "check"]
assert off[[0, 4]].max() < 1e-12  # pair 0 turns by 1 per position in both …
assert off[[1, 2, 3, 5, 6, 7]].min() > 1e-6  # … but no other column is the same

# %% [markdown]
# This table has shift matrices as well, because sine and cosine share a speed. But a model that was trained with this
# table has to be run with it.

# %% [markdown]
# ## A learned table
#
# You can also leave the numbers to training: a matrix with one row per position, random at first, like the embedding of
# words. The paper tried it and found nearly the same quality (Table 3, row E). The paper kept the sinusoids in the hope
# that they would help with longer sentences. But a learned table has only as many rows as it was made with:

# %%
from glassformer.model.positions import Positions

learned = Positions("learned", d_model=8, max_length=5)
try:
    learned(0, 6, like=torch.zeros(1))
except gf.ShapeError as error:
    print(fill(str(error), 80))

# %% tags=["hide-input", "check"]
assert learned.table.shape == (5, 8)
assert learned.table.requires_grad  # trained like all other weights

# %% [markdown]
# ## Adding, and what stays apart
#
# Word and position are *added*, which puzzles many readers: are they not mixed up beyond repair? It is true that one
# number of the sum cannot be taken apart. But a vector has 128 of them. Let us look at all 605 words of the demo at
# each of 22 positions (the longest sentences in its training had 22 words). That makes 13 310 sums.
#
# First, compare each sum with all words without a position: which word is nearest? Nearly always, the nearest word is
# the right one (1.0 would mean always):

# %%
X = E * math.sqrt(128)  # the words' vectors, (605, 128)
P = gf.sinusoids(22, 128, dtype=torch.float64)  # the positions, (22, 128)
sums = X[:, None] + P  # (605, 1, 128) + (22, 128) -> (605, 22, 128)
word = torch.cdist(sums.flatten(0, 1), X).argmin(dim=1)
right_words = (word == torch.arange(605).repeat_interleave(22)).double().mean().item()
right_words

# %% tags=["hide-input", "check"]
assert right_words > 0.99

# %% [markdown]
# Second, the positions need little room. Of 128 directions, 8 hold nearly all the variation among the 22 positions.
# That leaves 120 directions for the words alone:

# %%
strengths = torch.linalg.svdvals(P - P.mean(dim=0)) ** 2
in_eight = (strengths[:8].sum() / strengths.sum()).item()
in_eight

# %% tags=["hide-input", "check"]
assert in_eight > 0.99

# %% [markdown]
# Third, one matrix can read the position off the sum. We fit this matrix (by least squares) on half of the words and
# read the positions of the other half, which it has never seen:

# %%
shuffled = torch.randperm(605)
fitted, unseen = shuffled[:302], shuffled[302:]
# For each sum, its position as a one-hot vector:
which = torch.eye(22, dtype=torch.float64).repeat(302, 1)
reader = torch.linalg.lstsq(sums[fitted].flatten(0, 1), which).solution  # (128, 22)
read = (sums[unseen] @ reader).argmax(dim=-1)  # (303, 22)
off = (read - torch.arange(22)).abs()
exact = (off == 0).double().mean().item()
within_one = (off <= 1).double().mean().item()
print(f"read exactly: {exact:.0%} of the positions (guessing: {1 / 22:.0%}); at most one place off: {within_one:.0%}")

# %% tags=["hide-input", "check"]
assert exact > 0.3
assert within_one > 0.7

# %% [markdown]
# Compare the first number with guessing. This is a single matrix in a narrow model; with 512 dimensions there is even
# more room.
#
# **Would concatenating be cleaner?** Put the position *beside* the word instead, 128 + 128 = 256 numbers, and multiply
# by a matrix with 256 rows. Call its upper half $W_x$ and its lower half $W_p$; then the result is $x W_x + p W_p$.
# Adding first and then multiplying by one matrix $W$ is the special case $W_x = W_p = W$. So concatenating is more
# general, but it makes the whole model twice as wide, and adding turns out to be enough.

# %%
one_word, p = X[100], P[2]
W_x, W_p = torch.randn(2, 128, 16, dtype=torch.float64)
beside = torch.cat([one_word, p])  # (256,)
added = one_word + p  # (128,)
beside.shape, added.shape

# %% tags=["hide-input", "check"]
torch.testing.assert_close(beside @ torch.cat([W_x, W_p]), one_word @ W_x + p @ W_p)
torch.testing.assert_close(added @ W_x, one_word @ W_x + p @ W_x)

# %% [markdown]
# ## Longer sentences than in training
#
# The formula never ends: position 5000 has its pattern too. The paper hoped that this "may allow the model to
# extrapolate" (§3.5) to longer sentences. Does it? No sentence in the demo's training was longer than 22 words. The
# split "longer" has sentences of 23 to 30 words, made from the same words by the same grammar. Here are 60 of them:

# %%
from glassformer.corpus.tasks import english_french

sizes = {"train": 0, "valid": 1, "unseen": 1, "pairs": 1, "senses": 1}  # not needed here
task = english_french(seed=1, test=200, longer=60, **sizes)
longer = task.splits["longer"]


def exactly_right(examples):
    """Return how many examples the demo translates word for word like the reference."""
    outputs = translator.translate([example.source for example in examples])
    pairs = zip(outputs, examples, strict=True)
    return sum(output.text == example.target for output, example in pairs)


count = exactly_right(longer)
print(fill(longer[0].source, 80), "\n")
print(fill("right: " + longer[0].target, 80), "\n")
print(fill("model: " + translator.translate([longer[0].source])[0].text, 80))
count, len(longer)

# %% tags=["hide-input", "check"]
assert count < 20

# %% [markdown]
# Hardly any translation is right, although nearly all translations of shorter sentences are right, as the next cell
# will show. Typically the first half is perfect, and then the model loses its place. **Sinusoids do not promise longer
# sentences.** Sinusoids make patterns for the later positions, but the model was never trained to use those patterns.
#
# The shift property is not a promise either. Take short sentences that the model translates well, and start counting at
# 2, at 4, and so on up to 10 instead of 0, in source and target alike. The shift property says that each pattern is
# only rotated, and the model met position 10 many times in training.


# %%
class Late(Positions):
    def forward(self, start, length, like):
        return super().forward(start + self.by, length, like)


test = task.splits["test"]
short = [one for one in test if len(tokenizer.encode(one.source)) <= 9][:40]
usual, late = model.source.positions, Late("interleaved", 128, max_length=1024)
model.source.positions = model.target.positions = late
right = []
for late.by in range(0, 11, 2):
    right.append(100 * exactly_right(short) / len(short))

model.source.positions = model.target.positions = usual
right

# %% tags=["hide-input", "check"]
assert right[0] > 90
assert right[-1] < 50

# %% [markdown]
# The curve stays at the top for a few steps and then falls: it matters to the model where a sentence begins.

# %% tags=["hide-input"]
pictures.curves(
    {"exactly right": (range(0, 11, 2), right)},
    x_label="position of the first word",
    y_label="sentences, in %",
    alt="The share of exactly right translations over the position of the first word: nearly 100 percent for the first "
    "few positions, then falling steeply to less than half at position 10.",
)

# %% [markdown]
# The model *could* have learned to use distances alone. It had no reason to: in training every sentence began at 0, so
# rules that hold there were good enough.

# %% [markdown]
# ## What goes wrong
#
# ### The doubled exponent
#
# This is the most frequent mistake, found in more than one well-read tutorial ([errata](errata.py#doubled-exponent)):
# $i$ runs over all *dimensions*, and the exponent still says $2i$. The shape is right, all values lie between −1 and 1,
# and nothing crashes. Compare the exponents:

# %%
dimension = torch.arange(d_model, dtype=torch.float64)  # 0, 1, …, 7
doubled = 2 * dimension / d_model  # wrong
correct = 2 * (dimension // 2) / d_model  # the pair of a dimension is dimension // 2
doubled.tolist(), correct.tolist()

# %% tags=["hide-input", "check"]
assert correct.tolist() == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
assert doubled.tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]


# %%
def wrong_table(length, d_model):
    """Return the table with the doubled exponent."""
    dimension = torch.arange(d_model, dtype=torch.float64)
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    angles = positions / 10000 ** (2 * dimension / d_model)
    wrong = angles.sin()
    wrong[:, 1::2] = angles[:, 1::2].cos()
    return wrong


wrong_table(4, 8)

# %% tags=["hide-input", "check"]
with plant(model, "doubled_exponent"), gf.record(model, "source.*") as trace:
    model.encode(ids)  # the library plants the same mistake

torch.testing.assert_close(trace["source.positions"], wrong_table(9, 128).float())

# %% [markdown]
# Two things are broken. The exponents go up to 1.75 instead of 0.75 (in a wide model, to almost 2 instead of almost 1).
# So the hands slow down twice as fast, and most of them stand still. And the sine and cosine of a pair no longer have the same speed, so they are not the tip of a hand that a
# matrix could rotate. To see that *no* matrix at all could do the shift, let least squares search for the best one:


# %%
def best_shift_error(rows, k):
    """Return the largest error of the best matrix that moves all rows on by k."""
    best = torch.linalg.lstsq(rows[:-k], rows[k:], driver="gelsd").solution
    return (rows[:-k] @ best - rows[k:]).abs().max().item()


for k in (1, 2, 5):
    error = best_shift_error(gf.sinusoids(100, 8, dtype=torch.float64), k)
    error_doubled = best_shift_error(wrong_table(100, 8), k)
    print(f"k = {k}: largest error {error:.0e}, doubled exponent {error_doubled:.2f}")

# %% tags=["hide-input", "check"]
assert error < 1e-12
assert error_doubled > 0.5

# %% [markdown]
# With the right table, the error is only rounding. With the doubled exponent, the error is as large as the numbers
# themselves. The dot product of two positions that are 3 apart shows the same. Look for the line that stays level: only
# there does a distance of 3 mean the same everywhere.

# %% tags=["hide-input"]
of_right, of_wrong = gf.sinusoids(53, 8, dtype=torch.float64), wrong_table(53, 8)
apart = {"right": (of_right[3:] * of_right[:-3]).sum(dim=1), "doubled": (of_wrong[3:] * of_wrong[:-3]).sum(dim=1)}
assert apart["right"].std() < 1e-12
assert apart["doubled"].std() > 0.3
pictures.curves(
    {name: (range(50), products) for name, products in apart.items()},
    x_label="position",
    y_label="PE[pos] · PE[pos + 3]",
    alt="The dot product of positions three apart: a level line for the right table, a wave for the doubled exponent.",
)

# %% [markdown]
# The demo was trained with the right table. Here it translates with the wrong one:

# %%
sentence = "The black cat sat on the couch and the brown dog slept on the rug."
[as_trained] = translator.translate([sentence])
with plant(model, "doubled_exponent"):
    [with_mistake] = translator.translate([sentence])

as_trained.text, with_mistake.text

# %% tags=["hide-input", "check"]
assert with_mistake.text != as_trained.text

# %% [markdown]
# Code that *trains* with this mistake does not fail either. The quick dimensions still tell positions apart, and a
# model can learn to work with them. That is why the mistake often goes unnoticed.
#
# ### "The second word has position 2"
#
# Positions count from 0, so the second word has position **1** ([errata](errata.py#second-word-position-one)).

# %%
words = ["The", "black", "cat"]
second = gf.sinusoids(3, 4)[1]
list(enumerate(words))

# %% tags=["hide-input", "check"]
assert words.index("black") == 1
torch.testing.assert_close(second[:2], torch.tensor([math.sin(1), math.cos(1)]))

# %% [markdown]
# ### "Values strictly between −1 and 1"
#
# Sine and cosine *reach* their bounds: the range is closed, $[-1, 1]$ ([errata](errata.py#closed-range)). The first row
# has a 1 in each pair. The value −1 falls between whole positions, but position 355 comes so close to it (355/113 is
# nearly π) that float32 cannot tell the difference.

# %%
gf.sinusoids(356, 8, dtype=torch.float64)[355, 1].item()

# %% tags=["hide-input", "check"]
assert gf.sinusoids(1, 8)[0, 1::2].tolist() == [1, 1, 1, 1]
assert gf.sinusoids(356, 8)[355, 1] == -1

# %% [markdown]
# ### "The two are concatenated"
#
# Positions are added, and the width stays d_model ([errata](errata.py#concatenating-or-adding)). The shape shows at
# once which of the two a program does:

# %%
pattern = gf.sinusoids(9, 128, dtype=torch.float64)

# %% tags=["hide-input", "check"]
assert (embedding[0] + pattern).shape == (9, 128)
assert torch.cat([embedding[0], pattern], dim=-1).shape == (9, 256)

# %% [markdown]
# ### A docstring with another shape
#
# A docstring that promises "(batch, length)" for code that returns (length, d_model) does harm: a reader who believes
# it indexes the wrong axis ([errata](errata.py#docstring-and-shape)), and broadcasting hides the mistake. Here the
# batch is the *first* axis, and the code takes rows of the table by the size of that axis. It runs, and it gives all
# words of a sentence the same position:

# %%
batch = torch.zeros(2, 9, 128)  # (B, T, d_model), zeros, so that only positions remain
pe = gf.sinusoids(50, 128)
by_sentence = batch + pe[: batch.shape[0], None]  # (2, 9, 128) + (2, 1, 128): runs!
by_position = batch + pe[: batch.shape[1]]  # (2, 9, 128) + (9, 128)
by_sentence[1, :3, :2], by_position[1, :3, :2]

# %% tags=["hide-input", "check"]
assert by_sentence.shape == by_position.shape
assert torch.equal(by_sentence[1, 0], by_sentence[1, 8])  # first and last word alike
assert not torch.equal(by_position[1, 0], by_position[1, 8])

# %% [markdown]
# In the library the shape is part of the signature, `Float[Tensor, "T D"]`, and the tests check it at every call.

# %% [markdown]
# ## In short
#
# - A pattern that names the position is added to each word's vector; without it, an encoder gives shuffled words the
#   same vectors, only shuffled.
# - The paper's pattern is a clock whose hands are pairs of sine and cosine: fast hands tell neighbours apart, slow
#   hands tell distant positions apart.
# - A shift by $k$ words turns each hand by an angle that does not depend on the position, so one matrix makes this
#   shift everywhere.
#
# ## Exercises
#
# **1.** *Easy · 3 min.* With $d_\mathrm{model} = 8$, what are dimensions 2 and 3 of position 5? Use a pocket
# calculator, then check.
#
# <details><summary>Hint</summary>
#
# Dimensions 2 and 3 are the sine and the cosine of pair 1. What is $10000^{2/8}$?
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: [dimension 2, dimension 3]
print(verdict("positions.1", answer))

# %% tags=["hide-cell"]
answer = [math.sin(5 / 10), math.cos(5 / 10)]  # pair 1 has the divisor 10
torch.testing.assert_close(gf.sinusoids(6, 8)[5, 2:4], torch.tensor(answer))
assert verdict("positions.1", answer) == "right"
[round(number, 4) for number in answer]

# %% [markdown]
# **2.** *Easy · 3 min.* After how many positions is the slowest hand back at the top, for $d_\mathrm{model} = 512$? The
# paper says $10000 \cdot 2\pi$. Is that exact?
#
# <details><summary>Hint</summary>
#
# The slowest hand is the last pair, $2i = 510$. A full turn is an angle of $2\pi$.
#
# </details>

# %%
answer = None  # instead of None: the number of positions
print(verdict("positions.2", answer))

# %% tags=["hide-cell"]
last = 512 // 2 - 1
turn = 2 * math.pi * 10000 ** (2 * last / 512)
assert round(turn) == 60611
assert verdict("positions.2", turn) == "right"
assert turn < 2 * math.pi * 10000  # a little less: the last exponent is 510/512, not 1
turn, 2 * math.pi * 10000

# %% [markdown]
# **3.** *Medium · 5 min.* Show that two steps of 1 make one step of 2, and that the matrix for "k words back" is the
# transpose of $M_k$.
#
# <details><summary>Hint</summary>
#
# Use `shift_matrix` from above: multiply two of them, and transpose one.
#
# </details>

# %% tags=["hide-cell"]
torch.testing.assert_close(shift_matrix(1, 8) @ shift_matrix(1, 8), shift_matrix(2, 8))
torch.testing.assert_close(shift_matrix(-3, 8), shift_matrix(3, 8).T)
back_again = shift_matrix(3, 8) @ shift_matrix(3, 8).T
torch.testing.assert_close(back_again, torch.eye(8, dtype=torch.float64))

# %% [markdown]
# **4.** *Medium · 6 min.* With a single hand ($d_\mathrm{model} = 2$), which of the positions 1 to 99 looks most like
# position 0? How close does any of them come with four hands?
#
# <details><summary>Hint</summary>
#
# Make the table with `gf.sinusoids`, and compute the distance of each row from row 0.
#
# </details>

# %%
answer = None  # instead of None: [the position, the smallest distance with four hands]
print(verdict("positions.4", answer))

# %% tags=["hide-cell"]
one_hand, four_hands = (gf.sinusoids(100, width, dtype=torch.float64) for width in (2, 8))
twin = (one_hand[1:] - one_hand[0]).norm(dim=1).argmin().item() + 1
assert twin == 44  # 44 is nearly seven turns: 44 / 2π = 7.003
assert (one_hand[44] - one_hand[0]).norm() < 0.02
assert (four_hands[1:] - four_hands[0]).norm(dim=1).min() > 0.6
assert verdict("positions.4", [twin, (four_hands[1:] - four_hands[0]).norm(dim=1).min()]) == "right"
twin, (four_hands[1:] - four_hands[0]).norm(dim=1).min()

# %% [markdown]
# **5.** *Medium · 6 min.* Change [the picture of the matrix](#a-picture-of-the-matrix) to show the doubled exponent. Of
# its 64 columns, how many change by less than 0.01 over 50 positions? And how many of them with the right formula?
#
# <details><summary>Hint</summary>
#
# `wrong_table` makes the table. The change of a column is its largest number minus its smallest.
#
# </details>

# %%
answer = None  # instead of None: [columns with the doubled exponent, columns with the right one]
print(verdict("positions.5", answer, wrong_table))


# %% tags=["hide-cell"]
def standing_still(rows):
    """Return the number of columns that hardly change."""
    return int(((rows.amax(dim=0) - rows.amin(dim=0)) < 0.01).sum())


right_rows = gf.sinusoids(50, 64, dtype=torch.float64)
still = standing_still(right_rows), standing_still(wrong_table(50, 64))
assert still == (13, 39)
assert verdict("positions.5", still[::-1], wrong_table) == "right"
print("columns that stand still: right {}, doubled {}".format(*still))
pictures.heat_map(
    wrong_table(50, 64),
    row_label="position",
    column_label="dimension",
    alt="The position matrix with the doubled exponent: waves at the left quarter only, and stripes that do not change in "
    "the rest.",
)

# %% [markdown]
# **6.** *Medium · 3 min · on the stage.* In many dimensions, a position adds almost nothing to a word. [Find such a
# number on the stage](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&task=positions): click one that
# is closer to 0 than 0.01.
#
# <details><summary>Hint</summary>
#
# Open the box *+ Position* of the encoder. The slow hands stand to the right: there, the sine of a small position is
# almost 0.
#
# </details>
#
# ## Next
#
# Words now have vectors, and the vectors contain their positions. Next, the words look at each other:
# [attention](attention.py).
