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
# # Training from scratch: copy, then English–French
#
# ## The question
#
# A newly made Transformer knows nothing: its parameters, the numbers in its matrices, are random. How do they become
# numbers that translate?
#
# You will train one model and read the log of another. The first learns to copy ten symbols, in a loop of fifteen lines
# that runs here, on this page, in seconds. The second translates English into French. Its training left a log, which
# shows the order in which the model learned.

# %%
import copy
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.bundle import put_weights, read_weights
from glassformer.corpus.batching import Examples, batches, make_batch, plan_batches
from glassformer.corpus.tasks import english_french
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.checkpoint import TrainingState, average_weights
from glassformer.training.objective import smoothed_cross_entropy
from glassformer.training.optimiser import make_optimiser
from glassformer.training.schedule import learning_rate, paper_peak
from glassformer.training.snapshots import Snapshots
from glassformer.watch import pictures

torch.manual_seed(1)
torch.set_printoptions(precision=4, sci_mode=False)

# %% [markdown]
# ## The intuition
#
# Training is one small step, repeated many times:
#
# 1. Take a **batch**: some sentences with their translations.
# 2. Let the model say, at each position of the target, how probable it finds each possible next token. This is the
#    *forward pass*. At each position the model reads the *right* tokens so far, whatever it would have said itself
#    (this is called teacher forcing), so all positions can be computed at once.
# 3. Measure how improbable the model found the right tokens: the **loss**, one number.
# 4. Compute, for each parameter, how fast the loss changes when the parameter grows: the **gradient**. This is the
#    *backward pass*.
# 5. Move each parameter a little in the direction in which the loss falls. The **optimiser** and the **learning rate**
#    decide how far.
#
# Nobody tells the model what a noun is, or that the fourth word of the target comes from the fifth of the source.
# Training strengthens whatever helps to predict the next token a little better.
#
# ## The mathematics
#
# **Loss** (§5.4). At one position, let $p_v$ be the probability that the model gives to token $v$, $V$ the number of
# tokens in the vocabulary, and $r$ the right token. The label smoothing $\varepsilon = 0.1$ asks for a little less
# than certainty on the right token. The smoothed target $y$ (called $q$ in the [chapter on the output](output.py))
# gives each token $\varepsilon / V$, and the right token $1 - \varepsilon$ on top. The loss at this position is the
# cross-entropy, and the loss of a batch is its mean over all positions except padding:
#
# $$-\sum_{v=1}^{V} y_v \ln p_v \qquad y_v = \frac{\varepsilon}{V} + \begin{cases} 1 - \varepsilon & v = r \\ 0 & v \ne r \end{cases}$$
#
# $\ln$ is the natural logarithm, so the unit is the *nat*. This loss cannot fall to 0. The loss is smallest when $p =
# y$, and then equals the *entropy* of $y$, $-\sum_v y_v \ln y_v$. We call this value the floor.
#
# **Optimiser** (§5.3). For each parameter $w$ with gradient $g$, Adam keeps two running means, which both start at 0:
# $m$ of $g$ and $u$ of $g^2$. With $\beta_1 = 0.9$, $\beta_2 = 0.98$, $\epsilon = 10^{-9}$ (which prevents a division
# by 0; it is not the $\varepsilon$ above) and learning rate $\eta$, step number $t$ is
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad u \leftarrow \beta_2 u + (1 - \beta_2)\, g^2 \qquad
# w \leftarrow w - \eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{u / (1 - \beta_2^t)} + \epsilon}$$
#
# A gradient that stays the same makes the fraction ±1, whatever its size. Gradients that change their signs make it
# smaller: for pure noise it is about a quarter. Ten times larger gradients change nothing. So Adam's step depends on the
# signs of the gradients much more than on their size.
#
# **Learning rate** (§5.3, equation 3). It rises linearly for `warmup` steps and then falls with the inverse square
# root of the step number:
#
# $$\eta_t = d_{\mathrm{model}}^{-0.5} \cdot \min\left(t^{-0.5},\; t \cdot \mathrm{warmup}^{-1.5}\right)$$
#
# where $d_{\mathrm{model}}$ is the width of the model's vectors. In Python this is one line:


# %%
def rate(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


peak = rate(4000, d_model=512, warmup=4000)
peak


# %% tags=["hide-input", "check"]
def adam_fractions(gradients):
    """Return Adam's fraction at each step."""
    m = u = 0.0
    for t, gradient in enumerate(gradients.tolist(), start=1):
        m, u = 0.9 * m + 0.1 * gradient, 0.98 * u + 0.02 * gradient**2
        yield m / (1 - 0.9**t) / math.sqrt(u / (1 - 0.98**t))


noise = torch.randn(3000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
assert all(math.isclose(fraction, 1) for size in (1e-3, 1) for fraction in adam_fractions(torch.full((50,), size)))
sizes = [torch.tensor([*adam_fractions(scale * noise)]).square().mean().sqrt().item() for scale in (1, 10)]
assert 0.2 < sizes[0] < 0.3 and math.isclose(*sizes)

for d_model, warmup in [(512, 4000), (1024, 4000), (64, 200)]:
    for step in (1, 10, 200, 4000, 100_000):
        ours = rate(step, d_model, warmup)
        top = paper_peak(d_model, warmup)
        library = learning_rate("paper", step, peak=top, warmup=warmup, progress=0.0)
        assert math.isclose(ours, library, rel_tol=1e-12)

assert peak == max(rate(step, 512, 4000) for step in range(1, 20_000))
assert round(peak, 5) == 7.0e-4

# %% [markdown]
# So the base model's highest learning rate is 7.0e-4, reached at step 4000. Notice two things in the picture. A wider
# model (orange) gets a lower rate at each step, and a shorter warm-up (green) gives an earlier and higher peak. Once
# the warm-up is over, its length no longer matters: all curves of the same width coincide.

# %% tags=["hide-input"]
shown = np.arange(1, 20_001, 50)
pictures.curves(
    {
        f"d_model {d_model}, warm-up {warmup}": (shown, [rate(int(step), d_model, warmup) for step in shown])
        for d_model, warmup in [(512, 4000), (1024, 4000), (512, 2000), (512, 8000)]
    },
    x_label="step",
    y_label="learning rate",
    alt="Four learning-rate curves that rise in a straight line and then fall with the inverse root of the step. Base peaks "
    "at 0.0007 at step 4000, with a warm-up of 2000 at 0.001, with 8000 at 0.0005.",
)

# %% [markdown]
# ## Line by line
#
# ### The copy task
#
# The target equals the source. There are 11 ids: 1 to 10 are symbols, and 0 is padding (not needed here, as every
# sequence has length 10). The first symbol is always 1. The 1 can therefore serve as the decoder's first token, so that
# no `<bos>` (the usual beginning-of-sentence token) is needed.


# %%
def draw(count, length=10):
    source = torch.randint(1, 11, (count, length))
    source[:, 0] = 1
    return source


source = draw(30)
target_input = source[:, :-1]  # all but the last: what the decoder reads
target_output = source[:, 1:]  # all but the first: what it must predict
print(source[0])
print(target_input[0])
print(target_output[0])
source.shape, target_input.shape, target_output.shape

# %% [markdown]
# Read the last two rows as columns: having read the 1, say the next symbol; having read that symbol, say the one
# after it. The symbols are random, so the ones already written say nothing about the next one. The model has to look
# it up in the source, at the right position: that is what the task asks of it. The model itself makes the mask that keeps the decoder from reading ahead (the [causal mask](masks.py))
# and the padding mask. For this batch they have these shapes:

# %%
padding_mask = (source != 0)[:, None]  # (30, 1, 10): True = may attend
target_mask = (target_input != 0)[:, None] & torch.ones(9, 9, dtype=torch.bool).tril()
real_tokens = (target_output != 0).sum()
padding_mask.shape, target_mask.shape, real_tokens

# %% [markdown]
# A *generator* hands out batch after batch, each drawn when it is asked for. An *epoch*, a round of training, has 20
# of them:


# %%
def rounds(epochs):
    for _ in range(epochs * 20):  # 20 batches in each epoch
        yield draw(30)


sum(len(batch) for batch in rounds(1))  # sequences in an epoch

# %% [markdown]
# ### The model
#
# The paper's base model is 512 wide and has 6 + 6 layers. Copying needs much less: width 64, 4 heads, one encoder
# layer and one decoder layer. The forward pass returns *logits*, which a softmax turns into probabilities.

# %%
config = gf.ModelConfig(
    vocab_size=11,
    d_model=64,
    heads=4,
    d_ff=128,
    encoder_layers=1,
    decoder_layers=1,
    dropout=0.1,
)
torch.manual_seed(1)
model = gf.Transformer(config)
logits = model(source, target_input)  # (30, 10), (30, 9) -> (30, 9, 11)
logits.shape, sum(parameter.numel() for parameter in model.parameters())

# %% [markdown]
# ### The loss
#
# First the formula in three lines, then torch's own function, then the library's, which starts from the decoder's
# output, before the last matrix, to save memory. All three agree.

# %%
model.double().eval()  # float64 and no dropout, to compare exactly
hidden = model.decoder_output(target_input, model.encode(source), source)  # (30, 9, 64)
logits = model.logits(hidden)

smoothed = torch.full((30, 9, 11), 0.1 / 11, dtype=torch.float64)
most = torch.full((30, 9, 1), 0.9, dtype=torch.float64)
smoothed.scatter_add_(2, target_output[..., None], most)
by_hand = -(smoothed * logits.log_softmax(-1)).sum(-1).mean()

loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), label_smoothing=0.1)
loss.item(), math.log(11)

# %% tags=["hide-input", "check"]
rows, matrix = hidden.flatten(0, 1), model.output.weight
library = smoothed_cross_entropy(rows, matrix, target_output.flatten(), 0.1).smoothed
torch.testing.assert_close(by_hand, loss)
# the library's is the sum over all 30 × 9 tokens
torch.testing.assert_close(library / 270, loss)

# %% [markdown]
# A model that finds all 11 ids equally probable has the loss ln 11 ≈ 2.4. A fresh model is worse: it knows nothing
# either, but its random probabilities are far from equal. The next cell computes the floor, the loss of perfect
# predictions:


# %%
def floor(vocab_size, smoothing=0.1):
    right, wrong = 1 - smoothing + smoothing / vocab_size, smoothing / vocab_size
    return -right * math.log(right) - (vocab_size - 1) * wrong * math.log(wrong)


perfect = torch.distributions.Categorical(probs=smoothed[0, 0]).entropy().item()
floor(11)

# %% tags=["hide-input", "check"]
assert math.isclose(floor(11), perfect, rel_tol=1e-12)

# %% [markdown]
# ### The backward pass
#
# One call fills the attribute `grad` of each parameter: a tensor of the parameter's own shape.

# %%
loss.backward()
weight = model.encoder.layers[0].self_attention.output_projection.weight
weight.shape, weight.grad.shape, weight.grad[0, :4]

# %% [markdown]
# (This is $W_O$ of the encoder's self-attention. Any parameter would do.)
#
# ### The step
#
# We do Adam's step by hand for this one matrix, at $t = 1$, where both running means start from 0. Then torch does it
# for all parameters.

# %%
eta, beta1, beta2, epsilon = rate(1, 64, 200), 0.9, 0.98, 1e-9
m = (1 - beta1) * weight.grad
u = (1 - beta2) * weight.grad**2
stepped = weight.detach() - eta * (m / (1 - beta1)) / ((u / (1 - beta2)).sqrt() + epsilon)

before = weight.detach().clone()
optimiser = torch.optim.Adam(model.parameters(), lr=eta, betas=(0.9, 0.98), eps=1e-9)
optimiser.step()
moved = (weight.detach() - before) / eta  # in learning rates
eta, moved[0, :4]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(weight.detach(), stepped)
assert (moved.abs() - 1).abs().median() < 1e-3

# %% [markdown]
# Compare the last row, measured in learning rates, with the gradient above. The gradients differ in size, yet each
# parameter has moved by one learning rate, against the sign of its gradient. This is why training starts with a tiny
# rate: in the first steps Adam has seen too little to know which directions matter.
#
# ### The loop
#
# Now everything in one cell: 40 epochs of 20 batches of 30 sequences, all freshly drawn. The function
# `accuracy` uses greedy decoding, which feeds each predicted symbol back (see [the next chapter](decoding.py)). It
# takes sequences that the model was not trained on, and returns the share of symbols that come out right.


# %%
@torch.no_grad()
def accuracy(model, source):
    model.eval()
    output = source[:, :1]  # the 1
    for _ in range(source.shape[1] - 1):
        newest = model(source, output)[:, -1].argmax(-1, keepdim=True)
        output = torch.cat([output, newest], dim=1)
    model.train()
    return (output[:, 1:] == source[:, 1:]).double().mean().item()


# %%
def copying(batch):
    return batch, batch[:, :-1], batch[:, 1:]


def train(model, epochs, make=copying, after=lambda _: None):
    losses = []
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    model.train()
    for step, batch in enumerate(rounds(epochs), start=1):
        source, target_input, target_output = make(batch)
        logits = model(source, target_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.param_groups[0]["lr"] = rate(step, d_model=64, warmup=200)
        optimiser.step()
        losses.append(loss.item())
        after(step)
    return losses


# %% [markdown]
# `make` determines what the model reads and what it must predict, and `after` is called after each step. Both serve
# experiments further below. Here `after` measures the accuracy at a few steps, and records where the decoder's
# cross-attention looks in one sequence that is easy to read. (With *cross-attention* the decoder [reads the
# source](decoder.py).)

# %%
looked_at = torch.tensor([[1, 7, 3, 9, 2, 10, 5, 8, 4, 6]])
attention, solved = {}, {}


@torch.no_grad()
def look(step):
    if step not in (0, 50, 100, 150, 200, 300, 400, 600, 800):
        return
    solved[step] = accuracy(model, draw(100))
    model.eval()
    with gf.record(model, "decoder.layers.0.cross_attention.weights") as trace:
        model(looked_at, looked_at[:, :-1])
    # (heads, 9, 10)
    attention[step] = trace["decoder.layers.0.cross_attention.weights"][0]
    model.train()


torch.manual_seed(1)
model = gf.Transformer(config)
look(0)
losses = train(model, 40, after=look)
solved

# %% [markdown]
# Has it solved the task? A final test on 1000 fresh sequences (there are a billion possible ones, so the model has
# hardly seen any of these before):

# %%
final = accuracy(model, draw(1000))
final

# %% tags=["hide-input", "check"]
assert final >= 0.99

# %% [markdown]
# Look for three stretches in the picture. Within twenty steps the model learns to find all ids equally probable (orange
# line). For a while little happens. Then it finds out how to look things up in the source, and the loss falls to its
# floor (green line). The loss stays slightly above the floor, because dropout disturbs the model during training.

# %% tags=["hide-input"]
steps_done = np.arange(1, len(losses) + 1)
pictures.curves(
    {
        "loss": (steps_done, losses),
        "all equally probable: ln 11": (steps_done, [math.log(11)] * len(losses)),
        "floor: entropy of the smoothed target": (steps_done, [floor(11)] * len(losses)),
    },
    x_label="step",
    y_label="loss (nats per token)",
    alt=f"Loss of the copy training: from {losses[0]:.1f} at the first step down to about {np.mean(losses[-50:]):.2f}, "
    f"close above the floor of {floor(11):.2f}.",
)

# %% [markdown]
# ### What the cross-attention has learned
#
# Each row is a symbol about to be written, and each column a symbol of the source. The stronger a cell, the more the
# decoder looks there (mean over the four heads). Move the slider. At first the decoder looks everywhere equally. Then
# a diagonal appears: to write the fourth symbol, it looks at the fourth. Nobody told it to.

# %% tags=["hide-input"]
symbols = [str(symbol) for symbol in looked_at[0].tolist()]
frames = [
    pictures.heat_map(
        weights.mean(0),
        [f"writes {symbol}" for symbol in symbols[1:]],
        symbols,
        numbers="",
        limit=1.0,
        alt=f"Cross-attention after {step} steps, 9 written symbols by 10 source symbols; on the diagonal the weights "
        f"are {weights.mean(0).diagonal(offset=1).mean():.2f} on average.",
    )
    for step, weights in attention.items()
]
pictures.player(
    frames,
    [
        f"After {step} steps: {100 * solved[step]:.1f} % of the symbols of fresh sequences are right. Mean weight on the "
        f"diagonal: {attention[step].mean(0).diagonal(offset=1).mean():.2f}."
        for step in attention
    ],
)

# %%
on_diagonal = {}
for step, weights in attention.items():
    on_diagonal[step] = weights.mean(0).diagonal(offset=1).mean().item()

on_diagonal

# %% tags=["hide-input", "check"]
assert on_diagonal[0] < 0.2
assert on_diagonal[800] > 0.5

# %% [markdown]
# ## The same from the library
#
# ### Step by step: a generator of reports
#
# `gf.training.steps` is the same loop as a generator: each time you ask for the next report, it changes the weights
# once and yields the report. The caller prints it or plots it, and ends the training by not asking again. The
# generator reads `Examples`, which are lists of ids with `<eos>` (id 2, the end-of-sentence token) at their end, and
# makes batches that begin with `<bos>` (id 1).

# %%
numbers = np.random.default_rng(1)
ids = [np.append(numbers.integers(3, 13, size=10), 2) for _ in range(60)]
examples = Examples(source=ids, target=ids)
library_config = TrainingConfig(steps=8, batch_tokens=330, warmup=200)
small = gf.ModelConfig(
    vocab_size=13,
    d_model=64,
    heads=4,
    d_ff=128,
    encoder_layers=1,
    decoder_layers=1,
    dropout=0.0,
)
torch.manual_seed(1)
first = gf.Transformer(small).double()
second = copy.deepcopy(first)

reports = list(gf.training.steps(first, examples, library_config, seed=1))
for report in reports[:3]:
    print(f"step {report.step}: loss {report.loss:.6f}, learning rate {report.learning_rate:.2e}")

# %% [markdown]
# Now the same by hand, on the library's batches and from the same initial weights. The losses are the same, and so,
# in the end, are the parameters.

# %%
optimiser = torch.optim.Adam(second.parameters(), betas=(0.9, 0.98), eps=1e-9)
by_hand = []
for epoch in range(4):
    for batch in batches(examples, 330, seed=1, epoch=epoch):  # 2 batches of 30 pairs
        source, target_input, target_output = map(
            torch.from_numpy, (batch.source, batch.target_input, batch.target_output)
        )
        logits = second(source, target_input)
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            target_output.flatten(),
            ignore_index=0,
            label_smoothing=0.1,
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.param_groups[0]["lr"] = rate(len(by_hand) + 1, d_model=64, warmup=200)
        optimiser.step()
        by_hand.append(loss.item())


len(by_hand), reports[-1].reason

# %% tags=["hide-input", "check"]
assert np.allclose(by_hand, [report.loss for report in reports[:8]], rtol=0, atol=1e-9)
for ours, library in zip(second.parameters(), first.parameters()):
    # The gradient of a key's bias is 0 in theory and rounding noise here,
    # which Adam divides by itself: hence 1e-6.
    torch.testing.assert_close(ours, library, rtol=0, atol=1e-6)

# %% [markdown]
# ### A whole run
#
# `gf.train` does everything around the loop: it draws or reads a corpus, makes the vocabulary, trains, validates, and
# writes checkpoints. `"copy"` names a recipe, `recipes/copy.toml`, and each override changes one setting. Twelve
# steps are far too few to learn anything. Leave out the override `training.steps`, and the task is solved in less than
# a minute.

# %%
temporary = tempfile.TemporaryDirectory()
copy_run = Path(temporary.name, "copy")
seen = []
summary = gf.train(
    "copy",
    overrides=[
        "training.steps=12",
        "training.checkpoint_every=2",
        "training.metric=none",
        f"run.directory={json.dumps(str(copy_run))}",
    ],
    on_report=seen.append,
)
files = sorted(path.name for path in copy_run.iterdir())

losses_of_run = [report.loss for report in seen if type(report).__name__ == "StepReport"]
files

# %% tags=["hide-input", "check"]
assert summary.steps == len(losses_of_run) == 12
assert losses_of_run[-1] < losses_of_run[0]

# %% [markdown]
# The library's copy task is the same task with different batches:
#
# | | above, as in many notebooks | the library's copy task |
# |---|---|---|
# | ids | 0 is padding, 1 to 10 are the symbols themselves | 0 to 3 are `<pad>`, `<bos>`, `<eos>` and `<unk>`; the symbols are text, such as "7", and have the ids after them |
# | first symbol | always 1, with which the decoder begins | any symbol; the decoder begins with `<bos>` |
# | end | after ten symbols | `<eos>`, which the model has to write, so the lengths may differ |
# | size of a batch | 30 sequences | as many sequences as fit into 1024 tokens |
# | masks | part of the notebook's batch | not part of a `Batch`: the model makes them from the ids, because padding always has the id 0 |
#
# The reason is the same for each row: the library's batches are those of a corpus of sentences. So the copy task also
# tests the vocabulary, the special tokens and the end of a sentence. The raw ids above need none of these and leave
# less to explain.
#
# ## English–French: the log of a run
#
# The demo's model was trained on 120 000 sentence pairs. Its training left a log with one line per report, and
# snapshots of the weights. The cells from here on read the files of your own `make demo`. Without `make demo`, they read
# the files of the model in the package, which has only two of the snapshots.

# %%
translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
RUN = translator.bundle.folder
text = (RUN / "metrics.jsonl").read_text(encoding="utf-8")
log = [json.loads(line) for line in text.splitlines()]
training = [line for line in log if line["type"] == "step"]
validation = [line for line in log if line["type"] == "validation"]
last_step, minutes = training[-1]["step"], training[-1]["seconds"] / 60
print(f"{last_step} steps in {minutes:.1f} minutes")
for line in validation:
    print(f"step {line['step']:4}: loss {line['loss']:.3f}, exact match {line['metric'][1]:5.1f} %")

# %% [markdown]
# *Exact match* is the share of 300 sentences, unseen in training, whose greedy translation equals the reference
# letter for letter. In the picture, look at the two curves on the left. The training loss (smoothed) settles on its
# floor, which for 849 French tokens is almost exactly 1. The validation loss is measured without smoothing, so its
# floor is 0. On the right, the last few percent of the sentences take longest.

# %% tags=["hide-input"]
vocab_size = translator.bundle.model_config.target_vocab_size
figure, (left, right) = pictures.canvas(7.4, 3.0, ncols=2)
steps_logged, steps_validated = [line["step"] for line in training], [line["step"] for line in validation]
left.plot(steps_logged, [line["loss"] for line in training], color=pictures.BLUE, label="training (smoothed)")
left.plot(steps_validated, [line["loss"] for line in validation], "o-", color=pictures.ORANGE, label="validation")
left.axhline(floor(vocab_size), color=pictures.GREY, linestyle=":", label=f"floor {floor(vocab_size):.3f}")
left.set(xlabel="step", ylabel="loss (nats per token)", ylim=(0, None))
left.legend(frameon=False, fontsize=9)
right.plot(steps_validated, [line["metric"][1] for line in validation], "o-", color=pictures.GREEN)
right.set(xlabel="step", ylabel="exact match (%)", ylim=(0, 103), xlim=(0, None))
pictures.picture(
    figure,
    f"The demo's training. Left: training loss falls from {training[0]['loss']:.1f} to {training[-1]['loss']:.2f}, just above its floor of "
    f"{floor(vocab_size):.2f}, and validation loss to {validation[-1]['loss']:.2f}. Right: exact match rises from "
    f"{validation[0]['metric'][1]:.0f} % to {validation[-1]['metric'][1]:.1f} %.",
)

# %% [markdown]
# ### What it learns first
#
# The training run also kept *snapshots*: its weights after 8, 16, 32, … steps. Put each snapshot into the model and
# translate the same sentence by greedy search. (A beam can find another output, above all of a young model.)


# %%
snapshots = Snapshots(RUN / "snapshots", keep=0).paths()


def at(step):
    model = copy.deepcopy(translator.model)
    put_weights(model, read_weights(snapshots[step]), str(snapshots[step]))
    return gf.Translator(translator.bundle, model)


text = "The animal didn't cross the street because it was too wide."
for step in [step for step in snapshots if step >= 32]:
    [translation] = at(step).translate([text], beam_size=1)
    print(f"{step:5}  {translation.text}")

[translation] = translator.translate([text], beam_size=1)
print(f"{last_step:5}  {translation.text}")

# %% tags=["hide-input", "check"]
assert translation.text == "L'animal n'a pas traversé la rue parce qu'elle était trop large."

# %% [markdown]
# Read the translations from top to bottom, and look for four stages:
#
# - **Frequent tokens and an end.** The model has learned how often words occur, and hardly more.
# - **The frame of the sentence**, from *Le* to *trop*, with little or none of its content.
# - **The right kind of word in the right place**, which may still be the wrong word: a different place that can be
#   crossed, instead of the street.
# - **The pronoun**, last of all. *Il* would be "it" for the animal, and the animal is not too wide. The street, *la
#   rue*, is *elle*. At which step does *elle* arrive?
#
# Learning goes from the frequent to the rare, and from the near to the far. You can play the training back in the
# explorer, with the attention of each snapshot: [the same sentence over the
# training](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide.&sheet=true&panel=training).
#
# ## Batches of about equal length
#
# A batch is a rectangle: shorter sentences are filled up with padding, and work on padding is wasted. So the paper
# groups sentence pairs of about equal length (§5.1). It fills each batch up to about 25 000 source and 25 000 target
# *tokens*, rather than to a fixed number of sentences. Here is the waste for 2000 pairs from the demo's grammar, with
# 3000 tokens per batch:

# %%
few = {"valid": 10, "test": 10, "unseen": 10, "pairs": 3, "senses": 1, "longer": 3}
pairs = english_french(1, train=2000, **few).splits["train"]
tokenizers = translator.bundle.source_tokenizer, translator.bundle.target_tokenizer
pairs = [(pair.source, pair.target) for pair in pairs]
examples, _ = Examples.encode(pairs, *tokenizers, max_length=256)


def wasted(plan):
    ids = [make_batch(examples, rows).target_output for rows in plan]
    return sum((part == 0).sum() for part in ids) / sum(part.size for part in ids)


sorted_plan = plan_batches(examples, 3000, seed=1, epoch=0)
shuffled = np.random.default_rng(1).permutation(len(examples))
random_plan = np.array_split(shuffled, len(sorted_plan))
at_random, by_length = 100 * wasted(random_plan), 100 * wasted(sorted_plan)
f"padding in the target: {at_random:.1f} % at random, {by_length:.1f} % by length"

# %% tags=["hide-input", "check"]
# each pair once
assert sorted(np.concatenate(sorted_plan)) == list(range(len(examples)))
assert wasted(sorted_plan) < wasted(random_plan) / 2

# %% [markdown]
# The order of the batches is still random, and new in each epoch. A model that saw all the short sentences first
# would forget them while reading the long ones. The chapter on [real corpora](corpora.py#batches) has more.
#
# ## The anatomy of a step
#
# During training, a model takes at least four times the memory of its parameters. For the demo, in 32-bit numbers:

# %%
parameters = sum(parameter.numel() for parameter in translator.model.parameters())
megabytes = 4 * parameters / 1e6
for what, where, copies in [
    ("parameters", "parameter", 1),
    ("gradients", "parameter.grad, between backward and zero_grad", 1),
    ("Adam's two means", "optimiser.state[parameter], for the whole training", 2),
]:
    print(f"{what:18}{copies * megabytes:6.1f} MB  {where}")

state = optimiser.state[second.output.weight]  # of the small training above
parameters, sorted(state)

# %% tags=["hide-input", "check"]
assert state["exp_avg"].shape == state["exp_avg_sq"].shape == second.output.weight.shape

# %% [markdown]
# The *activations* come on top: what the forward pass computed and the backward pass will need again. The activations
# grow with the batch, while parameters, gradients and Adam's means do not. `glassformer estimate` computes all of this
# before a training run begins.
#
# ## Seeds, resuming, overfitting, averaging
#
# **Seeds.** Training draws random numbers for three things: the initial weights, the order of the batches, and what
# dropout leaves out. With a fixed seed, the same machine gives the same losses to the last bit. A different seed
# gives a different run, so compare two settings over several seeds before you believe a small difference.
#
# **Resuming.** To continue exactly, the weights are not enough. A checkpoint also holds Adam's means, the step
# number, the position in the epoch and the state of the random number generators
# ([training/checkpoint.py](../src/glassformer/training/checkpoint.py#Checkpoints)). With all of these, 4 + 4 steps
# are 8 steps:


# %%
def losses_of(model, steps, **keeping):
    settings = TrainingConfig(steps=steps, batch_tokens=330, warmup=4)
    small_examples = Examples(source=ids, target=ids)
    reports = gf.training.steps(model, small_examples, settings, seed=1, **keeping)
    return [report.loss for report in reports if type(report).__name__ == "StepReport"]


def fresh():
    torch.manual_seed(1)
    return gf.Transformer(small)


whole = losses_of(fresh(), 8)

model_in_parts = fresh()
optimiser_of_parts = make_optimiser(model_in_parts, TrainingConfig(steps=8))
progress = TrainingState()
resumed = losses_of(model_in_parts, 4, optimiser=optimiser_of_parts, state=progress)
resumed += losses_of(model_in_parts, 8, optimiser=optimiser_of_parts, state=progress)

forgetful_model, progress = fresh(), TrainingState()
forgetful = losses_of(forgetful_model, 4, state=progress)
# a new optimiser: Adam's means are lost
forgetful += losses_of(forgetful_model, 8, state=progress)
[f"{a - b:+.4f}" for a, b in zip(forgetful, whole)]

# %% tags=["hide-input", "check"]
assert resumed == whole  # bit by bit
assert forgetful[:5] == whole[:5] and forgetful[5:] != whole[5:]

# %% [markdown]
# Each number is the forgetful run's loss minus the whole run's loss. Look at the last three. An Adam that starts anew
# in the middle moves every parameter by a full learning rate, as at the first step, but the rate is no longer tiny.
# The loss jumps up.
#
# **Overfitting.** A model with enough parameters can learn its training sentences by heart. You can tell when the
# training loss keeps falling while the *validation* loss, on sentences outside the training set, rises. That is what
# validation is for: `gf.train` keeps the weights with the best validation result. Dropout, label smoothing and above
# all more data help. The copy training above could not overfit, because it hardly ever saw a sequence twice.
#
# **Averaging.** The paper's reported models are the mean of the last 5 checkpoints (base) or the last 20 (big)
# (§6.1). Averaging each parameter removes some of the noise of the last steps. The run of twelve steps above has kept
# its last five checkpoints. By hand:

# %%
folders = sorted((copy_run / "checkpoints").glob("step-*"))
weights = [read_weights(folder / "model.safetensors") for folder in folders]
averaged = {}
for name in weights[0]:
    averaged[name] = sum(each[name].double() for each in weights) / len(weights)

len(folders), len(averaged)

# %% tags=["hide-input", "check"]
library = average_weights(folders)
for name, value in averaged.items():
    torch.testing.assert_close(value.float(), library[name])

# %% [markdown]
# ## When it does not learn: three looks
#
# If a training goes wrong, do not change its settings at random. Take three looks first. Each costs seconds, and finds
# what the others miss. (They are from *A Recipe for Training Neural Networks* by Andrej Karpathy, 2019, which has
# more.)
#
# **1. The loss before the first step.** A model that knows nothing should say so. If all $V$ tokens are equally probable,
# the loss is $\ln V$, with label smoothing too, because the targets $y_v$ sum to 1. The logits of a fresh model are not
# equal, but random. If their variance is $\sigma^2$, the mean of $e^{\text{logit}}$ is about $e^{\sigma^2/2}$, and the
# loss about $\ln V + \sigma^2/2$:

# %%
torch.manual_seed(1)
fresh, batch = gf.Transformer(config).eval(), draw(200)
with torch.no_grad():
    logits = fresh(batch, batch[:, :-1]).flatten(0, 1)

print(f"ln V {math.log(11):.2f}, with half the variance {math.log(11) + logits.var(-1).mean().item() / 2:.2f}")
for smoothing in (0.0, 0.1):
    loss = F.cross_entropy(logits, batch[:, 1:].flatten(), label_smoothing=smoothing)
    print(f"loss with smoothing {smoothing}: {loss:.2f}")

# %% tags=["hide-input", "check"]
assert abs(loss.item() - math.log(11) - logits.var(-1).mean().item() / 2) < 0.5

# %% [markdown]
# **2. One batch, again and again.** Take eight sequences, switch dropout off, and train on them alone. A model that cannot
# learn eight sequences by heart will not learn the task: the loss must reach the floor.
#
# **3. The gradient of each part.** Look at its length (the root of the sum of its squares) in each part of the model after
# the first backward pass. The parts should be of the same order; a part with 0 learns nothing.


# %%
def three_looks(model, logits_of):
    """Return the loss at the start, after 150 steps with one batch, and the first gradient's length in each part."""
    torch.manual_seed(2)
    batch, losses, lengths = draw(8), [], {}
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    layer = model.decoder.layers[0]
    parts = {"encoder": model.encoder, "cross-attention": layer.cross_attention, "feed-forward": layer.feed_forward}
    for _ in range(150):
        logits = logits_of(model, batch, batch[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, batch[:, 1:].flatten(), label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()
        for name, part in parts.items():
            squares = [weight.grad.square().sum() for weight in part.parameters() if weight.grad is not None]
            lengths.setdefault(name, sum(squares, torch.zeros(())).sqrt().item())
        optimiser.step()
        losses.append(loss.item())
    return losses[0], losses[-1], lengths


# %% [markdown]
# Now we compare the model with three faulty versions of it; none of the faults raises an error. The first version has
# output weights that are eight times too large. The second applies [softmax twice](errata.py#softmax-twice). The third
# encodes under `torch.no_grad()`, which somebody has copied from a program that only translates:


# %%
def usual(model, source, target_input):
    return model(source, target_input)


def softmax_twice(model, source, target_input):
    return model(source, target_input).softmax(-1)


def encoded_without_gradient(model, source, target_input):
    with torch.no_grad():
        memory = model.encode(source)
    return model.logits(model.decoder_output(target_input, memory, source))


# %%
loud = copy.deepcopy(fresh)
with torch.no_grad():
    loud.output.weight.mul_(8)

looks = {
    "right": three_looks(copy.deepcopy(fresh), usual),
    "weights too large": three_looks(loud, usual),
    "softmax twice": three_looks(copy.deepcopy(fresh), softmax_twice),
    "encoder without gradient": three_looks(copy.deepcopy(fresh), encoded_without_gradient),
}
print(f"(ln V {math.log(11):.2f}, floor {floor(11):.2f})")
for name, (start, end, lengths) in looks.items():
    gradients = "  ".join(f"{part} {length:6.3f}" for part, length in lengths.items())
    print(f"{name:24}  start {start:5.2f}  end {end:.2f}  {gradients}")

# %% tags=["hide-input", "check"]
starts, ends = ({name: look[number] for name, look in looks.items()} for number in (0, 1))
assert starts["weights too large"] > 4 * starts["right"]
assert max(ends["right"], ends["encoder without gradient"]) < floor(11) + 0.02 < 1.2 < ends["softmax twice"]
assert looks["encoder without gradient"][2]["encoder"] == 0 < 0.5 < looks["right"][2]["encoder"]

# %% [markdown]
# - The loss before the first step reveals the *weights too large*: the model is very sure, although it knows nothing.
# - Training on one batch reveals *softmax twice*. Before the first step, its loss looks even better than the right
#   model's, because the second softmax makes all probabilities nearly equal. But the second softmax also keeps the
#   model from ever being sure, so that the loss cannot come near the floor.
# - The gradients reveal the *encoder without gradient*. Its loss is as it should be before the first step and at the
#   end: the decoder can learn eight sequences by heart with any encoder, but for new sequences the encoder must learn,
#   too.
#
# One family of faults passes all three looks: a model that can see the answer, through a mask that leaks or a target
# that was not shifted. Such a model also learns a batch by heart. What gives it away is a loss that is too good, as the
# next section shows.
#
# ## What goes wrong
#
# A mistake rarely makes training crash. It makes the model worse, or makes the loss look good when the model is not.
# Here are five mistakes that are easy to make and hard to see. Each of them is also on the [errata](errata.py) page
# or has an experiment of its own.
#
# ### A target that was not shifted
#
# The decoder reads `batch[:, 1:]` and must predict the same `batch[:, 1:]`: the answer stands in its input
# ([errata](errata.py#shifted-target)). Train for 200 steps with this one difference, and look at the loss.

# %%
torch.manual_seed(1)
unshifted = gf.Transformer(config)
wrong_losses = train(unshifted, 10, make=lambda batch: (batch, batch[:, 1:], batch[:, 1:]))
wrong = np.mean(wrong_losses[-20:])
right = np.mean(losses[180:200])  # of the right training, at the same step
share = accuracy(unshifted, draw(200))
print(f"loss {wrong:.2f} (right training {right:.2f}, floor {floor(11):.2f})")
print(f"symbols copied: {100 * share:.0f} %")

# %% tags=["hide-input", "check"]
assert wrong < right
assert share < 0.3

# %% [markdown]
# The loss falls faster than in the right training, down to the floor. Yet nothing is copied: the model has learned to
# repeat the token that it has just read. Without smoothing, the loss would go to 0. When a loss is too good, look at
# some translations.
#
# ### Padding in the loss
#
# Take a model that knows nothing (all 11 ids equally likely) but is certain where padding stands. In a batch with one
# sentence of 10 tokens and another of 3, padded to 10, its honest loss is ln 11
# ([errata](errata.py#padding-in-the-loss)):

# %%
target_output = torch.tensor([[4, 5, 6, 7, 8, 9, 4, 5, 6, 2], [7, 8, 2, 0, 0, 0, 0, 0, 0, 0]])
logits = torch.zeros(2, 10, 11)
logits[target_output == 0] = torch.tensor([50.0] + [0.0] * 10)  # certain: padding
with_padding = F.cross_entropy(logits.flatten(0, 1), target_output.flatten())
without = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), ignore_index=0)
with_padding.item(), without.item()

# %% tags=["hide-input", "check"]
assert math.isclose(without.item(), math.log(11), rel_tol=1e-6)
assert math.isclose(with_padding.item(), 13 / 20 * math.log(11), rel_tol=1e-6)

# %% [markdown]
# With padding counted, the loss looks a third better, for nothing. The share of padding changes from batch to batch, so
# not even the losses of two batches can be compared. And part of the model's effort goes into predicting padding.
#
# ### Dropout that stays on
#
# In training mode, dropout makes the model random. Call `model.eval()` before you translate or validate, and
# `model.train()` before you go on training ([errata](errata.py#dropout-that-stays-on)).

# %%
source = draw(100)
with torch.no_grad():
    model.train()
    in_training = model(source, source[:, :-1]), model(source, source[:, :-1])
    model.eval()
    in_evaluation = model(source, source[:, :-1]), model(source, source[:, :-1])

[
    f"{100 * (logits.argmax(-1) == source[:, 1:]).double().mean().item():.1f} %"
    for logits in (in_training[0], in_evaluation[0])
]

# %% tags=["hide-input", "check"]
assert not torch.equal(*in_training)
assert torch.equal(*in_evaluation)

# %% [markdown]
# ### Heads in a plain list
#
# torch finds the parameters of modules that are attributes or members of an `nn.ModuleList`. It cannot see into a
# Python list: `parameters()` leaves such modules out, so the optimiser never moves them and no checkpoint keeps them.
# Everything still runs, and the loss even falls, because the other parts learn around random heads
# ([errata](errata.py#heads-in-a-plain-list)).


# %%
class InAList(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = [torch.nn.Linear(64, 16) for _ in range(4)]


class InAModuleList(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleList(torch.nn.Linear(64, 16) for _ in range(4))


parts = (InAList(), InAModuleList())
seen_by_torch = [sum(p.numel() for p in part.parameters()) for part in parts]
seen_by_torch

# %% tags=["hide-input", "check"]
assert seen_by_torch == [0, 4 * (64 * 16 + 16)]

# %% [markdown]
# ### No warm-up
#
# You saw it above: Adam's first steps move *every* parameter by a full learning rate, whether its gradient matters or
# not. With a high rate from the start, a deep post-norm model (the paper's kind) can reach weights from which it never
# recovers. The experiment [norms](experiments/norms.py) trains both placements of the norm with and without warm-up.
#
# ### What do many believe?
#
# *"During training, the model writes a translation, which is then compared with the right one."* It writes nothing. At
# each position it reads the words of the right translation up to there, and gives a probability to each word that could
# come next. So a wrong guess does not spoil the positions after it, and all positions are computed at once. The model reads
# words of its own, mistakes included, only when it translates.
#
# ## In short
#
# - Training turns random numbers into a translator by one small step, repeated many times: a forward pass over a batch,
#   the loss, the gradients, and a change of each parameter that makes the loss smaller.
# - The model reads the right tokens so far at each position, whatever it would have said itself, so all positions of a
#   batch are computed at once.
# - Adam's step depends on a gradient's sign much more than on its size, and the learning rate rises during the warm-up
#   and falls after it.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* After `warmup` steps the rate falls with $1/\sqrt{t}$. At which step is the base model's rate
# half of its peak?
#
# <details><summary>Hint</summary>
#
# By which factor must $t$ grow for $1/\sqrt{t}$ to halve?
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the step
print(verdict("training.1", answer))

# %% tags=["hide-cell"]
# √4 = 1/√4 = 1/2.
assert math.isclose(rate(16_000, 512, 4000), rate(4000, 512, 4000) / 2)
assert verdict("training.1", 16_000) == "right"
16_000

# %% [markdown]
# **2.** *Easy · 3 min.* Leave out `optimiser.zero_grad()`. What happens to the gradients? Check it with two backward
# passes of the same loss.
#
# <details><summary>Hint</summary>
#
# Call `backward` twice on the same loss, and print `parameter.grad` after each.
#
# </details>

# %% tags=["hide-cell"]
parameter = torch.tensor([3.0], requires_grad=True)
(parameter**2).sum().backward()
once = parameter.grad.clone()
(parameter**2).sum().backward()
assert parameter.grad == 2 * once  # they add up: each step would follow the sum of all gradients so far
once, parameter.grad

# %% [markdown]
# **3.** *Easy · 3 min.* Two batches have 100 and 300 real tokens. Their mean losses are 2.0 and 1.0. What is the loss
# per token of both together, and why is it not 1.5? (The library's `training.accumulate` sums gradients over several
# batches.)
#
# <details><summary>Hint</summary>
#
# Add up the loss of all tokens, and divide by their number.
#
# </details>

# %%
answer = None  # instead of None: the loss per token
print(verdict("training.3", answer))

# %% tags=["hide-cell"]
together = (100 * 2.0 + 300 * 1.0) / (100 + 300)
# Every token counts the same. In the mean of the means, a token of the small batch would count three times as much.
assert verdict("training.3", together) == "right"
together

# %% [markdown]
# **4.** *Hard · 10 min.* Make the task harder: the target is the 1 followed by the rest of the source, *reversed*.
# Which argument of `train` do you change? Does the accuracy of copying still tell you anything? Train for 400 steps and
# draw the cross-attention.
#
# <details><summary>Hint</summary>
#
# `make` builds the batch. Keep the first token, and `flip` the rest.
#
# </details>

# %% tags=["hide-cell"]
torch.manual_seed(1)
reverser = gf.Transformer(config)


def reversed_batch(source):
    target = torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
    return source, target[:, :-1], target[:, 1:]


train(reverser, 20, make=reversed_batch)
reverser.eval()
source, target_input, target_output = reversed_batch(draw(200))
with torch.no_grad(), gf.record(reverser, "decoder.layers.0.cross_attention.weights") as trace:
    said = reverser(source, target_input).argmax(-1)

# `accuracy` compares with a copy, so it is useless here.
reversed_right = (said == target_output).double().mean().item()
assert reversed_right > 0.9
pictures.heat_map(
    trace["decoder.layers.0.cross_attention.weights"].mean((0, 1)),
    [f"writes {place}" for place in range(1, 10)],
    [str(place) for place in range(10)],
    numbers="",
    limit=1.0,
    alt="Cross-attention of a model that reverses, by position, mean over 200 sequences and 4 heads: the strong cells run "
    "along the opposite diagonal.",
)

# %% [markdown]
# **5.** *Easy · 2 min · on the stage.* The model learns to write a sentence before it learns to choose between “il” and
# “elle”. [Find a step of the training on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=training&task=learning)
# at which it already writes a sentence, but with the wrong pronoun.
#
# <details><summary>Hint</summary>
#
# The slider goes through the snapshots. The wrong pronoun is “elle”.
#
# </details>
#
# ## Next
#
# What does each part of the model buy? [Grow it](grow_it.py) puts the model together part by part, and trains it after
# each. A trained model gives probabilities; [decoding](decoding.py) turns them into a sentence, word by word.
