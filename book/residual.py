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
# # Add & norm
#
# This chapter explains the residual connection and the layer norm of *Attention Is All You Need* (2017, "the paper"),
# the two orders in which they occur, and what the order does to training.

# %% [markdown]
# ## The question
#
# A layer of a Transformer has two or three *sub-layers*: [attention](attention.py), and a [feed-forward
# network](feed_forward.py). The paper stacks six layers, so a vector passes through 12 sub-layers in the encoder and
# 18 in the decoder. Each sub-layer is wrapped in two small operations that know nothing about language: an addition and
# a normalisation, "Add & Norm" in the paper's Figure 1. Without them a deep stack hardly learns. Why? And does their
# order matter?

# %% [markdown]
# ## The intuition
#
# **Add.** A sub-layer does not replace the vector that it gets; it writes a *change*, which is added to the vector. So
# a stream runs from the embedding to the output, and each sub-layer reads it and adds its share. This is the *residual
# stream*. What one layer has found is in the sum that the later layers read (it fades with depth, as [measured
# below](#does-it-keep-the-position)). And in training, on the way back, the *gradient*
# (how much the loss changes if a number changes) has a path that avoids every sub-layer.
#
# **Norm.** If changes are added to a vector again and again, it grows. A layer norm brings each vector back to a fixed
# size before the next sub-layer reads it. So each layer gets vectors of the same size, however many layers came before
# it.
#
# **In which order?** The paper adds first and then normalises the sum: *post-norm*. Most later models normalise only
# what the sub-layer reads, and leave the stream alone: *pre-norm*.

# %% [markdown]
# ## The mathematics
#
# Let $x \in \mathbb{R}^{d}$ be the vector at one position, with $d$ = `d_model` entries, and let $\mathrm{Sublayer}$ be
# one of the sub-layers. The two placements are (read $\leftarrow$ as "becomes")
#
# $$\text{post-norm (§3.1, §5.4):}\quad x \leftarrow \mathrm{LayerNorm}(x + \mathrm{Dropout}(\mathrm{Sublayer}(x)))$$
#
# $$\text{pre-norm:}\quad x \leftarrow x + \mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))$$
#
# In both, the sub-layer's result is added to $x$ *as it came in*. Dropout (§5.4) sets random entries to 0 during
# training; see [below](#dropout).
#
# The layer norm (Ba, Kiros and Hinton, 2016, "Layer Normalization") treats each vector by itself. With the vector's mean $\mu$ and variance $\sigma^2$,
#
# $$\mu = \frac{1}{d} \sum_{i=1}^{d} x_i, \qquad \sigma^2 = \frac{1}{d} \sum_{i=1}^{d} (x_i - \mu)^2, \qquad
# \mathrm{LayerNorm}(x)_i = g_i \, \frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_i .$$
#
# The variance is the *biased* one: it divides by $d$, not by $d - 1$. The small number $\varepsilon = 10^{-5}$ is
# **inside the root** and keeps the division defined when all entries are equal. The gain $g$ and the bias $b$ are
# learned, one number each for every dimension; they start at 1 and 0.

# %% [markdown]
# ## Line by line
#
# ### Layer norm on one vector
#
# Take a vector of four entries, (2, 4, 4, 10). Compute its mean, then the deviations from the mean, then the mean of
# their squares:

# %%
import json
import math
from pathlib import Path

import torch
from torch import nn

import glassformer as gf
from glassformer.watch import pictures

x = torch.tensor([2.0, 4.0, 4.0, 10.0], dtype=torch.float64)
mean = x.sum() / 4
deviations = x - mean
variance = (deviations**2).sum() / 4  # biased: divided by 4
print(mean.item(), deviations.tolist(), variance.item())

# %% [markdown]
# The mean is 5. The deviations are −3, −1, −1, 5, their squares sum to 36, a quarter of that is 9, and its root is 3. Now divide:

# %%
eps = 1e-5
normalised = deviations / torch.sqrt(variance + eps)  # eps inside the root
normalised

# %% [markdown]
# The results are −1, −1/3, −1/3 and 5/3, up to eps. The mean is now 0 and the variance 1. The last step applies the
# gain and the bias; here they are made up:

# %%
gain = torch.tensor([1.0, 1.0, 2.0, 0.5], dtype=torch.float64)
bias = torch.tensor([0.0, 0.1, 0.0, -1.0], dtype=torch.float64)
by_hand = gain * normalised + bias
by_hand

# %% [markdown]
# PyTorch gives the same, for this vector and for a batch of shape (B, T, D): B = 2 sentences, T = 3 positions, D =
# `d_model` = 4.

# %%
norm = nn.LayerNorm(4, dtype=torch.float64)
with torch.no_grad():
    norm.weight.copy_(gain)
    norm.bias.copy_(bias)


def layer_norm(x, gain, bias, eps=1e-5):
    """Return vectors with mean 0 and variance 1, then scaled and shifted."""
    deviations = x - x.mean(-1, keepdim=True)
    variance = (deviations**2).mean(-1, keepdim=True)
    return gain * deviations / torch.sqrt(variance + eps) + bias


torch.manual_seed(1)
batch = torch.randn(2, 3, 4, dtype=torch.float64)
norm(batch).shape

# %% tags=["hide-input", "check"]
assert norm.eps == eps
torch.testing.assert_close(norm(x), by_hand)
torch.testing.assert_close(norm(batch), layer_norm(batch, gain, bias))

# %% [markdown]
# **"After a layer norm, all numbers lie between −1 and 1."** They do not: 5/3 is larger. The norm sets the mean and the
# variance, not the range. If one of the $d$ entries is larger than the others, and these are all equal, the norm turns
# the large entry into $\sqrt{d - 1}$: 22.6 for $d = 512$. The gain and the bias may then change it further.
#
# A layer norm forgets a vector's size and its mean: twice the vector plus 7 gives the same result (up to eps).

# %%
with torch.no_grad():
    print(norm(x).tolist(), norm(2 * x + 7).tolist(), sep="\n")

# %% tags=["hide-input", "check"]
# The tolerance covers the effect of eps.
torch.testing.assert_close(norm(2 * x + 7), norm(x), rtol=0, atol=1e-5)
single = torch.nn.functional.one_hot(torch.tensor(3), 512).double()
assert f"{torch.nn.functional.layer_norm(1000 * single, (512,))[3]:.1f}" == f"{511**0.5:.1f}" == "22.6"

# %% [markdown]
# ### Layer norm or batch norm?
#
# Both norms subtract a mean and divide by a deviation. They differ in what they average over:
#
# | | averages over | means for a batch (B, T, D) | one position's result depends on |
# |---|---|---|---|
# | layer norm | the D entries of one vector | (B, T, 1) | itself |
# | batch norm | all B·T vectors, for each of the D entries | (1, 1, D) | everything else in the batch |

# %%
batch_norm = nn.BatchNorm1d(4, dtype=torch.float64)  # wants (B, D, T)
print("layer norm's means:", tuple(batch.mean(-1, keepdim=True).shape))
print("batch norm's means:", tuple(batch.mean((0, 1), keepdim=True).shape))

# %% tags=["hide-input", "check"]
means = batch.mean((0, 1), keepdim=True)
variances = batch.var((0, 1), correction=0, keepdim=True)
expected = (batch - means) / torch.sqrt(variances + eps)
torch.testing.assert_close(batch_norm(batch.mT).mT, expected)

# %% [markdown]
# For text, the last column is the reason to choose layer norm. With batch norm, changing one sentence of a batch
# changes the other sentences. Padding counts in the averages, unless it is left out on purpose. A decoder's early
# positions would learn about later ones through the average. And a translator that gets a single sentence has no batch,
# so it needs averages kept from training.

# %%
neighbour = batch.clone()
neighbour[1] *= 10  # only the second sentence changes

(batch_norm(batch.mT).mT[0] - batch_norm(neighbour.mT).mT[0]).abs().max().item()

# %% tags=["hide-input", "check"]
assert torch.equal(norm(batch)[0], norm(neighbour)[0])

# %% [markdown]
# ### Both placements, one line each
#
# Any function can serve as the sub-layer; here it is a small network. `dropout` is off for the moment.

# %%
torch.manual_seed(1)
sublayer = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).double()
norm = nn.LayerNorm(4, dtype=torch.float64)
dropout = nn.Dropout(0.0)

post = norm(batch + dropout(sublayer(batch)))  # post-norm: the paper's
pre = batch + dropout(sublayer(norm(batch)))  # pre-norm


def rounded(vector):
    """Return the first vector's entries, short enough to read."""
    return [round(value, 2) for value in vector[0, 0].tolist()]


print("post-norm:", rounded(post))
print("pre-norm: ", rounded(pre))

# %% [markdown]
# ## The same from the library
#
# [`Residual`](../src/glassformer/model/residual.py#Residual) is the only class that decides the order. The [encoder
# layer](encoder.py) and the [decoder layer](decoder.py) pass it their sub-layers.

# %%
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap

for placement in ("post", "pre"):
    residual = Residual(nn.LayerNorm(4), placement, dropout=0.0, tap=Tap()).double()
    print(f"{placement}-norm:", rounded(residual(batch, sublayer)))

# %% tags=["hide-input", "check"]
for placement, expected in (("post", post), ("pre", pre)):
    residual = Residual(nn.LayerNorm(4), placement, dropout=0.0, tap=Tap()).double()
    torch.testing.assert_close(residual(batch, sublayer), expected)

# %% [markdown]
# ### One more norm at the end
#
# A post-norm stack ends with a norm, because each of its sub-layers ends with a norm. A pre-norm stack ends with a sum
# that has not been normalised. So a pre-norm stack gets one more layer norm after its last layer, in the encoder and in
# the decoder. (`torch.nn.Transformer` has these norms in post-norm, too; in this library, that is `final_norm=True`.)

# %%
{norm_order: gf.ModelConfig(vocab_size=9, norm=norm_order).final_norm for norm_order in ("pre", "post")}

# %% tags=["hide-input", "check"]
assert gf.ModelConfig(vocab_size=9, norm="pre").final_norm
assert not gf.ModelConfig(vocab_size=9, norm="post").final_norm

# %% [markdown]
# ## The stream, drawn
#
# Follow the left column of each drawing upwards: that is the stream. In post-norm, every path from bottom to top goes
# through the norms. In pre-norm, the stream itself is never normalised, only added to: the norms stand at the side, in
# front of the sub-layers.

# %% tags=["hide-input"]
Box = pictures.Box
boxes, arrows = {}, []
for side, (title, left) in {"post": ("post-norm", 0), "pre": ("pre-norm", 2.6)}.items():
    boxes[f"{side} in"] = Box(f"{title}: x in", left, 0, pictures.GREY, width=1.1)
    boxes[f"{side} out"] = Box(f"{title}: x out", left, 7, pictures.GREY, width=1.1)
    order = ("sub", "add", "norm") if side == "post" else ("norm", "sub", "add")
    before = f"{side} in"
    for number, name in ((1, "attention"), (2, "feed-forward")):
        bottom = 3 * number - 2
        if side == "post":
            places = {"sub": (left + 1.1, bottom + 0.2), "add": (left, bottom + 1), "norm": (left, bottom + 2)}
        else:
            places = {"norm": (left + 1.1, bottom), "sub": (left + 1.1, bottom + 1), "add": (left, bottom + 2)}
        looks = {"sub": (name, pictures.BLUE), "add": ("+", pictures.GREEN), "norm": ("norm", pictures.ORANGE)}
        for part, (column, row) in places.items():
            text, colour = looks[part]
            boxes[f"{side} {part} {number}"] = Box(text, column, row, colour, width=0.5 if part == "add" else 1.0)
        arrows.append((before, f"{side} add {number}"))
        arrows.append((before, f"{side} {order[0]} {number}"))
        arrows += [(f"{side} {one} {number}", f"{side} {two} {number}") for one, two in zip(order, order[1:])]
        before = f"{side} {order[-1]} {number}"
    arrows.append((before, f"{side} out"))

pictures.flow(
    boxes,
    arrows,
    alt="Two data flows, from bottom to top. Post-norm: the stream passes attention, plus, norm, feed-forward, plus, norm. "
    "Pre-norm: the stream passes only two pluses; norm and sub-layer stand beside it.",
    column=1.5,
    row=0.55,
)

# %% [markdown]
# ## Why a residual connection
#
# Take a chain of 30 small networks, $x \leftarrow \tanh(x W)$, and ask how strongly its end depends on its beginning:
# that is the size of the gradient at each depth. With $x \leftarrow x + \tanh(x W)$, the derivative of each step is 1
# plus something, so the gradient always has a path on which it passes unchanged.

# %%
torch.manual_seed(1)
depth, width = 30, 64
matrices = [torch.randn(width, width) * 0.7 / math.sqrt(width) for _ in range(depth)]


def gradients(residual):
    """Return the gradient's size at the input of each step, first step first."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(1, width, generator=generator, requires_grad=True)
    inputs = []
    for matrix in matrices:
        x.retain_grad()
        inputs.append(x)
        x = x + torch.tanh(x @ matrix) if residual else torch.tanh(x @ matrix)
    (x.sum() / math.sqrt(width)).backward()
    return torch.stack([one.grad.norm() for one in inputs])


without, with_residual = gradients(False), gradients(True)
print(f"first step / last step, without: {without[0] / without[-1]:.1e}")
print(f"first step / last step, with: {with_residual[0] / with_residual[-1]:.1f}")

# %% tags=["hide-input", "check"]
assert without[0] / without[-1] < 1e-3
assert 0.1 < with_residual[0] / with_residual[-1] < 1000

# %% [markdown]
# The picture has a logarithmic axis: equal steps on it are equal factors. Without residual connections, the gradient
# shrinks by about the same factor at every step towards the beginning, until nothing is left to learn from. With
# residual connections, it keeps its order of magnitude.

# %% tags=["hide-input"]
pictures.curves(
    {
        "without: tanh(x W)": (range(1, depth + 1), without),
        "with: x + tanh(x W)": (range(1, depth + 1), with_residual),
    },
    alt="Gradient size by step of a chain of 30: without residual connections it falls by orders of magnitude towards the "
    "first step, with them it keeps its size.",
    x_label="step of the chain (30 is the last)",
    y_label="size of the gradient",
    log=True,
)

# %% [markdown]
# ### Does it keep the position?
#
# The position is added to the words once, below the first layer. Many tutorials say that the residual connections carry it
# up through the stack. That is true, but the position fades on the way. The picture shows how many positions can still
# be read after each layer. Without residual connections, the position is gone after two layers, because an untrained head
# looks everywhere about equally and hands nearly the same average to every position. With residual connections it fades
# slowly, and more slowly in pre-norm, where the stream is only added to.
#
# <details>
# <summary>How this is measured</summary>
#
# We measure it as in [positions](positions.py#adding-and-what-stays-apart): one matrix, fitted by
# least squares on half of 400 sentences of random words, reads the position off each vector of the other half. There are
# 12 positions, so guessing is right in 8 % of the cases. We read the stream below each encoder layer, and the memory, of
# two untrained models with 6 layers, and of the demo. Then we take the residual connections away: $x \leftarrow
# \mathrm{LayerNorm}(\mathrm{Sublayer}(x))$. There are two limits: a single matrix finds a position only if it is stored
# in a simple (linear) form, and the demo was trained *with* residual connections, so that without them its layers get
# inputs that they have never seen.
#
# </details>


# %% tags=["hide-cell"]
from glassformer.built_in import trained_demo


def read_position(x):
    """Return the share of positions that one matrix reads right in the unseen half."""
    x = torch.cat([x.double(), torch.ones(*x.shape[:2], 1)], -1)  # a column of ones, for the bias
    half, length = len(x) // 2, x.shape[1]
    which = torch.eye(length).double().repeat(half, 1)
    reader = torch.linalg.lstsq(x[:half].flatten(0, 1), which, driver="gelsd").solution
    return ((x[half:] @ reader).argmax(-1) == torch.arange(length)).double().mean().item()


def positions_left(model, residual=True):
    """Return how much of the position can be read below each encoder layer and in the memory."""
    parts = [part for part in model.modules() if isinstance(part, Residual)]
    source = torch.randint(4, 600, (400, 12), generator=torch.Generator().manual_seed(1))
    for part in () if residual else parts:
        part.add = lambda _, share: share
    points = ["encoder.layers.*.self_attention.input", "encoder.output"]
    with gf.record(model, points) as trace, torch.no_grad():
        model(source, torch.ones(400, 1, dtype=torch.long))
    for part in () if residual else parts:
        del part.add  # the class's own method is back
    return [read_position(value) for value in trace.values()]


translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
models = {"demo": translator.model}
sizes = {"vocab_size": 605, "d_model": 128, "d_ff": 512, "dropout": 0.0}
sizes |= {"encoder_layers": 6, "decoder_layers": 1}
for placement in ("post", "pre"):
    torch.manual_seed(1)
    models[f"{placement}-norm"] = gf.Transformer(gf.ModelConfig(norm=placement, **sizes)).eval()

left = {(name, kept): positions_left(model, kept) for name, model in models.items() for kept in (True, False)}
for (name, kept), shares in left.items():
    print(f"{name:<9} {'with' if kept else 'without'}: {'  '.join(f'{share:.0%}' for share in shares)}")

# %% tags=["hide-input", "check"]
assert all(left[name, True][-1] > 0.3 for name in models)
assert all(left[name, False][2] < 0.12 for name in models)
assert left["pre-norm", True][-1] > left["post-norm", True][-1]

# %% tags=["hide-input"]
pictures.curves(
    {
        "pre-norm, with x": (range(7), [100 * share for share in left["pre-norm", True]]),
        "post-norm, with x": (range(7), [100 * share for share in left["post-norm", True]]),
        "post-norm, without x": (range(7), [100 * share for share in left["post-norm", False]]),
        "guess": ([0, 6], [100 / 12, 100 / 12]),
    },
    alt="Positions read right, by the number of encoder layers below: with residual connections about half of them, falling "
    "slowly; without them as many as guessing after two layers.",
    x_label="encoder layers below",
    y_label="positions read right (%)",
)

# %% [markdown]
# ## How large the stream is
#
# Now we take two real Transformers, one for each placement. They are untrained and have 12 layers in each stack. We
# measure two things (in the folded code), for random sentences and the usual [loss](output.py). The first is the size of the
# stream before each encoder layer (the root of the mean square of its entries). The second is the size of the gradient
# for one weight matrix of each decoder layer (the second matrix of its feed-forward network).

# %% tags=["hide-input"]
LAYERS = 12
stream, gradient = {}, {}
for placement in ("post", "pre"):
    torch.manual_seed(1)
    sizes = {"vocab_size": 100, "d_model": 128, "d_ff": 512, "dropout": 0.0}
    sizes |= {"encoder_layers": LAYERS, "decoder_layers": LAYERS}
    model = gf.Transformer(gf.ModelConfig(norm=placement, **sizes))
    source, target = torch.randint(3, 100, (2, 16, 12))
    points = ["encoder.layers.*.self_attention.input", "encoder.output"]
    with gf.record(model, points) as trace:
        logits = model(source, target[:, :-1]).flatten(0, 1)
    nn.functional.cross_entropy(logits, target[:, 1:].flatten()).backward()
    squares = [value.square().mean() for value in trace.values()]
    stream[placement] = [square.sqrt().item() for square in squares]
    for stack in ("encoder", "decoder"):
        layers = getattr(model, stack).layers
        grads = [layer.feed_forward.contract.weight.grad for layer in layers]
        gradient[placement, stack] = [grad.norm().item() for grad in grads]

for placement in ("post", "pre"):
    print(placement, "stream:  ", [round(value, 2) for value in stream[placement]])
    for stack in ("encoder", "decoder"):
        sizes = [round(value, 2) for value in gradient[placement, stack]]
        print(placement, stack, "gradient:", sizes)

# %% tags=["hide-input", "check"]
first, *_, last = gradient["post", "decoder"]
assert max(stream["post"][1:]) < 1.01
assert stream["pre"][LAYERS - 1] > 2
assert abs(stream["pre"][-1] - 1) < 0.01  # after the final norm
assert last / first > 10
assert max(gradient["pre", "decoder"]) / min(gradient["pre", "decoder"]) < 3

# %% [markdown]
# On the left of the picture: in post-norm, every layer gets a stream of size 1. In pre-norm, the stream grows roughly
# as the square root of the depth, until the final norm (the last point) takes it back to 1. On the right: in post-norm,
# before any training, the decoder's last layers have gradients many times larger than its first layers. In pre-norm,
# all gradients are about equally large. (In the encoder, whose output goes to every decoder layer, the difference is
# smaller, as the printed numbers show.)

# %% tags=["hide-input"]
figure, (left, right) = pictures.canvas(7.6, 3.1, ncols=2)
for placement, colour, style in (("post", pictures.BLUE, "o-"), ("pre", pictures.ORANGE, "s--")):
    left.plot(range(LAYERS + 1), stream[placement], style, color=colour, label=f"{placement}-norm", markersize=4)
    right.plot(
        range(1, LAYERS + 1),
        gradient[placement, "decoder"],
        style,
        color=colour,
        label=f"{placement}-norm",
        markersize=4,
    )

left.set(xlabel="encoder layers passed", ylabel="size of the stream", ylim=(0, None))
right.set(xlabel="decoder layer", ylabel="size of the gradient", yscale="log")
for place in (left, right):
    place.grid(color=pictures.GREY, alpha=0.25, linewidth=0.6)
    place.legend(frameon=False, fontsize=9)

pictures.picture(
    figure,
    "Left: the size of the stream by depth, constant at 1 in post-norm, growing to about 3.5 in pre-norm and back to 1 "
    "after the final norm. Right: gradient by decoder layer, growing by a factor of forty in post-norm, even in pre-norm.",
)

# %% [markdown]
# Post-norm needs a *warm-up*: a learning rate that starts near 0 and grows (§5.3; [training](training.py)). Xiong et al.
# (2020, "On Layer Normalization in the Transformer Architecture") explain it by these gradients: a step that is right for
# the first layers is far too large for the last ones. That holds for an optimiser whose steps are as large as the
# gradients. Adam's steps are not: in Adam's first step each weight moves by the learning rate. What happens with Adam
# is measured in [an experiment](experiments/norms.py). Pre-norm has even gradients from the start.
#
# ## Training curves of both placements
#
# That was the situation before the first step of training. What happens afterwards? We trained a deep and narrow model
# (6 + 6 layers, `d_model` 64) for 600 steps to copy a short sentence. There are four versions: post-norm and pre-norm,
# each with a warm-up of 100 steps and without. Each version has three seeds. The [experiment's
# page](experiments/norms.py) has the details; here are its curves. Each line is the mean over the seeds, its band one
# standard deviation. Compare each line without warm-up with its partner: for which placement does it lie higher?

# %%
measured = json.loads(Path("experiments/results/norms.json").read_text(encoding="utf-8"))


def series(name, what):
    """Return steps, mean over the seeds and standard deviation of "loss" or "exact"."""
    runs = measured["curves"][name]
    values = torch.tensor([[line[what] for line in run] for run in runs], dtype=torch.float64)
    return [line["step"] for line in runs[0]], values.mean(0), values.std(0)


NAMES = {
    "post-norm, warm-up": "post-warm-up",
    "post-norm, none": "post",
    "pre-norm, warm-up": "pre-warm-up",
    "pre-norm, none": "pre",
}
print(f"{'after the last step':<22} {'loss':>6} {'exact %':>14}")
for title, name in NAMES.items():
    _, loss, _ = series(name, "loss")
    _, exact, spread = series(name, "exact")
    print(f"{title:<22} {loss[-1]:>6.2f} {exact[-1]:>7.1f} ± {spread[-1]:.1f}")

# %% tags=["hide-input", "check"]
assert series("pre", "exact")[1][-1] > 99
assert series("post", "exact")[1][-1] < series("post-warm-up", "exact")[1][-1] < 50

# %% tags=["hide-input"]
pictures.curves(
    {title: series(name, "loss") for title, name in NAMES.items()},
    alt="Validation loss by training step for post-norm and pre-norm, with and without warm-up, mean of three seeds.",
    x_label="training step",
    y_label="validation loss (nats per token)",
)

# %% [markdown]
# Pre-norm has learned the task in all six training runs, with and without a warm-up. Post-norm without a warm-up has
# learned next to nothing; with a warm-up it is on its way, but far from the goal. So in a stack this deep, the warm-up
# is decisive for post-norm and hardly matters for pre-norm. The demo's stacks have only two layers each; there,
# post-norm with a warm-up trains well.

# %% [markdown]
# ## Dropout
#
# Dropout with probability $p$ sets each entry to 0 with that probability and divides the others by $1 - p$, so that the
# expected value stays the same. In the Transformer it acts on what a sub-layer *adds*, never on the stream (§5.4), and
# on the sum of embedding and position. Dropout is a tool for training. In evaluation it does nothing, so the same
# sentence always gets the same translation.

# %%
torch.manual_seed(1)
residual = Residual(nn.LayerNorm(8), "pre", dropout=0.5, tap=Tap()).double()
ones = torch.ones(1, 1, 8, dtype=torch.float64)


def ten(x):
    """A sub-layer that always adds 10."""
    return torch.full_like(x, 10.0)


print("training:  ", residual.train()(ones, ten)[0, 0].tolist())
print("evaluation:", residual.eval()(ones, ten)[0, 0].tolist())

# %% tags=["hide-input", "check"]
many = residual.train()(ones.expand(1, 50, 8), ten)
assert set(many.flatten().tolist()) == {1.0, 21.0}  # 1 + 0, or 1 + 10 / 0.5
assert (residual.eval()(ones, ten) == 11).all()

# %% [markdown]
# The stream's 1 is always there; only the 10 is dropped or doubled.

# %% [markdown]
# ### Two more places
#
# Many tutorials apply dropout in two further places: the attention *weights*, after the softmax, and the inner numbers
# of the feed-forward network, after the ReLU. The paper (§5.4) has neither; its authors' program tensor2tensor has both
# as settings. So does our model: `attention_dropout` and `activation_dropout`. Both settings are 0 unless you set them.
# For the same results as a tutorial's code, set `--set model.attention_dropout=0.1 --set model.activation_dropout=0.1`.
#
# <details>
# <summary>What they do</summary>
#
# With a dropped weight, a query cannot look at a key for one update, and the remaining weights do not sum to 1. (ReLU sets
# some inner numbers to 0 without any dropout.)
#
# </details>

# %% tags=["hide-cell"]
sizes = {"d_model": 8, "heads": 1, "d_ff": 16, "dropout": 0.0}
config = gf.ModelConfig.preset("tiny", vocab_size=11, **sizes, attention_dropout=0.5, activation_dropout=0.5)
dropping = gf.Transformer(config)
watched = ["encoder.layers.0.self_attention.weights", "encoder.layers.0.feed_forward.activated"]
for training in (True, False):
    dropping.train(training)
    torch.manual_seed(1)
    with torch.no_grad(), gf.record(dropping, watched) as trace:
        dropping.encode(torch.tensor([[4, 5, 6, 2]]))
    weights, activated = (trace[name][0] for name in watched)
    rows = [round(row, 2) for row in weights.sum(-1).flatten().tolist()]
    zeros = (activated == 0).double().mean()
    print("training:  " if training else "evaluation:", f"sums of rows {rows}, inner numbers at 0: {zeros:.0%}")
    # In evaluation nothing is dropped.
    assert torch.allclose(weights.sum(-1), torch.ones(1, 4)) != training

defaults = gf.ModelConfig.preset("base", vocab_size=11)

# %% tags=["hide-input", "check"]
assert (defaults.dropout, defaults.attention_dropout, defaults.activation_dropout) == (0.1, 0, 0)  # the paper's

# %% [markdown]
# ## What goes wrong
#
# Here are six mistakes. Each is easy to write and hard to see, because nearly all of them keep the shape right.
#
# **The residual of the normalised x.** If the norm's result overwrites the name `x`, the *normalised* x is added back.
# The stream no longer bypasses the norms ([errata](errata.py#residual-of-the-normalised-x)).

# %%
norm = nn.LayerNorm(4, dtype=torch.float64)
x = 100 * batch[:1]
wrong = norm(x)
wrong = wrong + sublayer(wrong)  # x is gone
right = x + sublayer(norm(x))
print("right:", rounded(right))
print("wrong:", rounded(wrong))

# %% [markdown]
# **Dropout on the wrong tensor.** One line of a well-read notebook applies dropout to the sub-layer's *input* and adds
# the result. The output of the attention is computed and thrown away: whatever it is, the layer returns the same
# ([errata](errata.py#dropout-on-the-wrong-tensor)).

# %%
for attended in (torch.zeros_like(batch), 1000 + batch):
    out = batch + dropout(batch)  # should be batch + dropout(attended)
    print("attention:", rounded(attended), " layer:", rounded(out))

# %% [markdown]
# **The unbiased deviation, and eps outside the root.** `x.std()` divides by $d - 1$. The difference is a factor of
# $\sqrt{(d-1)/d}$: 13 % for 4 dimensions, 0.1 % for 512 ([errata](errata.py#another-layer-norm)). For training it does
# not matter, because the gain can make up for it. But weights that were trained with one norm and are run with the
# other give wrong numbers in every norm.

# %%


def another_norm(x, eps=1e-5):
    """A norm as some tutorials write it."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


for d in (4, 64, 512):
    torch.manual_seed(1)
    wide = torch.randn(1000, d, dtype=torch.float64)
    factor = (another_norm(wide) / nn.functional.layer_norm(wide, (d,))).mean().item()
    print(f"d = {d:>3}: {100 * (1 - factor):.2f} % smaller")

# %% tags=["hide-input", "check"]
assert abs(factor - math.sqrt((d - 1) / d)) < 1e-3

# %% [markdown]
# The place of eps matters for vectors that hardly vary. Entries of size $10^{-3}$ have a variance of $10^{-6}$. Inside
# the root, an eps of $10^{-5}$ is then ten times the variance; outside, it is a hundredth of the deviation.

# %%
torch.manual_seed(1)
flat = 1e-3 * torch.randn(4, 512, dtype=torch.float64)
inside = nn.functional.layer_norm(flat, (512,)).std(-1).mean().item()
outside = another_norm(flat).std(-1).mean().item()
print(f"size of the normalised vectors with eps inside: {inside:.2f}")
print(f"size of the normalised vectors with eps outside: {outside:.2f}")

# %% [markdown]
# **A norm that reads an attribute that was never set.** This mistake is loud, but only when the norm is called
# ([errata](errata.py#a-norm-that-crashes)).

# %%


class Norm(nn.Module):
    def forward(self, x):  # self.eps was never set
        return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + self.eps)


try:
    Norm()(torch.randn(4))
except AttributeError as error:
    print(error)

# %% [markdown]
# **`F.dropout` without `training=`.** The function takes no notice of `model.eval()`; its default is `training=True`.
# So dropout stays on in evaluation, and the same sentence gives a different result each time
# ([errata](errata.py#dropout-that-stays-on)). The module `nn.Dropout` is switched off by `model.eval()`.

# %%
from torch.nn import functional as F


class Forgetful(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)  # should be F.dropout(x, 0.5, training=self.training)


torch.manual_seed(1)
forgetful = Forgetful().eval()
print(forgetful(torch.ones(8)).tolist())
print(forgetful(torch.ones(8)).tolist())

# %% [markdown]
# **The norm in the wrong place.** Load the weights of a post-norm model into pre-norm code, and every shape fits
# ([errata](errata.py#norm-order-swapped)). The demo is post-norm. Here it translates with three of these mistakes
# planted, one at a time:

# %%
from glassformer.watch.inspection import plant

sentence = "The black cat sat on the couch."
right = translator.translate([sentence])[0].text
print(f"{'right':<16} {right}")
same = []
for mistake in ("norm_order", "residual_normed", "unbiased_norm"):
    with plant(translator.model, mistake):
        wrong = translator.translate([sentence])[0].text
        report = gf.check(translator)
    [reference] = [one for one in report.failures if one.name == "reference"]
    print(f"{mistake:<16} {wrong[:80]}\n{'':<16} gf.check: {', '.join(reference.likely)}")
    same += [mistake] if wrong == right else []

print("the translation stays the same with:", ", ".join(same) or "none of them")

# %% [markdown]
# The last two mistakes teach a lesson. In post-norm, the x that arrives is already normalised, so normalising it once
# more changes little. A deviation that is 0.4 % too large changes even less. Where the translation stays the same, only
# a number-by-number comparison finds the mistake. See where the numbers diverge: [the demo with the mistake "Layer norm
# with the unbiased
# deviation"](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&mistakes=%5B%22unbiased_norm%22%5D&sheet=true&panel=changes).

# %% [markdown]
# ## In short
#
# - A deep stack learns because each sub-layer's result is *added* to its input, so that the gradient has a path to the
#   first layers that avoids every sub-layer.
# - A layer norm rescales the vector at each position by itself, so that each layer reads vectors of the same size,
#   however many layers came before it.
# - The order matters in a deep stack: in the training runs above, pre-norm learned the task with and without a warm-up,
#   and post-norm learned next to nothing without one.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* Normalise $(1, 1, 1, 5)$ by hand, with eps 0, gain 1 and bias 0.
#
# <details><summary>Hint</summary>
#
# Subtract the mean first. The variance is the mean of the squared deviations, not divided by $d - 1$.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the four numbers, as a list
print(verdict("residual.1", answer))

# %% tags=["hide-cell"]
# The mean is 2, the deviations are −1, −1, −1, 3, the variance is 12 / 4 = 3.
found = nn.functional.layer_norm(torch.tensor([1.0, 1.0, 1.0, 5.0]), (4,), eps=0)
torch.testing.assert_close(found, torch.tensor([-1.0, -1.0, -1.0, 3.0]) / math.sqrt(3))
assert verdict("residual.1", found) == "right"

# %% [markdown]
# **2.** *Medium · 5 min.* Show that the output of a layer norm with gain 1 and bias 0 always has length $\sqrt{d}$ (its
# Euclidean norm), whatever the input. What does that mean for $d = 2$?
#
# <details><summary>Hint</summary>
#
# What is the mean of the squares of the normalised numbers? For $d = 2$, both deviations have the same size.
#
# </details>

# %% tags=["hide-cell"]
torch.manual_seed(1)
for d in (2, 8, 512):
    out = nn.functional.layer_norm(torch.randn(5, d, dtype=torch.float64), (d,), eps=0)
    torch.testing.assert_close(out.norm(dim=-1), torch.full((5,), math.sqrt(d), dtype=torch.float64))

# With two dimensions, only (1, −1) and (−1, 1) are left: the norm keeps only which entry is larger.
nn.functional.layer_norm(torch.tensor([3.0, 8.0]), (2,), eps=0)

# %% [markdown]
# **3.** *Easy · 4 min.* Some models use the *RMS norm*: divide by the root of the mean square, without subtracting the
# mean. Write it, and show that it equals the layer norm for vectors with mean 0.
#
# <details><summary>Hint</summary>
#
# `x.square().mean(-1, keepdim=True)` is the mean square. Add eps, 1e-5, before the root.
#
# </details>

# %%
answer = None  # instead of None: your function of x
print(verdict("residual.3", answer))

# %% tags=["hide-cell"]


def rms_norm(x, eps=1e-5):
    """Return each vector divided by the root of its mean square."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


centred = batch - batch.mean(-1, keepdim=True)
torch.testing.assert_close(rms_norm(centred), nn.functional.layer_norm(centred, (4,)))
assert verdict("residual.3", rms_norm) == "right"
torch.testing.assert_close(rms_norm(batch), nn.RMSNorm(4, eps=1e-5, dtype=torch.float64)(batch))

# %% [markdown]
# **4.** *Hard · 10 min.* In a pre-norm stack, the stream before layer $n$ is the input plus everything added so far.
# Check this on an untrained model with two encoder layers: the input of the first layer plus the four outputs is the
# sum that the final norm gets.
#
# <details><summary>Hint</summary>
#
# Record `encoder.*` with `gf.record`, and add up the first `input` and the four `output`s.
#
# </details>

# %% tags=["hide-cell"]
torch.manual_seed(1)
small = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11, norm="pre", dropout=0.0)).double().eval()
with torch.no_grad(), gf.record(small, "encoder.*") as trace:
    small.encode(torch.tensor([[4, 5, 6, 2]]))

total = trace["encoder.layers.0.self_attention.input"] + sum(
    trace[f"encoder.layers.{layer}.{part}.output"] for layer in (0, 1) for part in ("self_attention", "feed_forward")
)
torch.testing.assert_close(total, trace["encoder.layers.1.feed_forward.added"])
torch.testing.assert_close(small.encoder.norm(total), trace["encoder.output"])

# %% [markdown]
# **5.** *Medium · 3 min · on the stage.* Adding a sub-layer's output can turn a number around. [Find one on the
# stage](../runs/demo/explorer.html#text=The+cow+is+tired.&task=norm): click a number that changes its sign in an *Add &
# norm*.
#
# <details><summary>Hint</summary>
#
# Open an *Add & norm*, and compare the lowest strip with the strip of the sums. A bar upwards is a number above 0.
#
# </details>
#
# ## Next
#
# The frame around each sub-layer is complete. Two kinds of sub-layer go into it: [attention](attention.py) and the
# [feed-forward network](feed_forward.py).
