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
# # Output, softmax, loss, label smoothing
#
# [The decoder](decoder.py) ends with a vector for each target position. This chapter turns that vector into a
# probability for each word of the vocabulary. The chapter then turns the probability of the right word into one number
# that training can make small.

# %% [markdown]
# ## The question
#
# How does a vector become a word? How can we express in one number how wrong a prediction is? And why does the paper
# deliberately tell its model that the right answer is only 90% right?

# %% [markdown]
# ## The intuition
#
# The vocabulary is a list of words, and each word has a vector. The decoder's output is a vector too: its idea of the
# next word. Compare it with **every** word of the vocabulary. The better the two agree, the higher that word's score.
# The scores are called *logits*. *Softmax* turns them into probabilities: all positive, with sum 1.
#
# In training the right word is known. If the model gave it probability 1, the model was right and sure, and the loss
# is 0. The smaller that probability, the greater the model's surprise, and the larger the loss. *Label smoothing*
# asks for a little modesty: a sliver of the probability should go to the other words.

# %% [markdown]
# ## The mathematics
#
# Let $x$ be the decoder's output at one position, a vector of $d_{\text{model}}$ numbers. $V$ is the size of the
# target vocabulary, and $E$ is a matrix with $V$ rows and $d_{\text{model}}$ columns. The logits $z$ and the
# probabilities $p$ are (§3.4)
#
# $$z = E x, \qquad p_w = \mathrm{softmax}(z)_w = \frac{e^{z_w}}{\sum_{v=1}^{V} e^{z_v}}$$
#
# for each word $w$. If $y$ is the right token, the *reference*, the loss at this position is the *cross-entropy*
# $-\log p_y$ (natural logarithm; its unit is the *nat*).
#
# Without label smoothing, the target puts all probability on $y$. Label smoothing (§5.4) with $\varepsilon = 0.1$
# uses a smoothed target $q$ instead, which puts $1 - \varepsilon$ on the reference and spreads $\varepsilon$ evenly
# over all $V$ entries, including the reference:
#
# $$q_w = (1 - \varepsilon) \, [w = y] + \frac{\varepsilon}{V}, \qquad \text{loss} = -\sum_{w=1}^{V} q_w \log p_w$$
#
# ($[w = y]$ is 1 where $w$ is the reference, and 0 elsewhere.) The loss of a batch is the average over its real
# target tokens; padding does not count. *Perplexity* is $e$ to the power of the average $-\log p_y$, **without**
# smoothing.

# %% [markdown]
# ## Line by line
#
# ### From a vector to logits
#
# We use a vocabulary of six entries, vectors of four numbers, and a batch of two sentences with four target
# positions. The second sentence is one token shorter. (In the comments, $B$ is the number of sentences and $T$ the
# number of positions.)

# %%
import math

import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.watch import inspection, pictures

torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=3, sci_mode=False, linewidth=88)
torch.manual_seed(1)

words = ["<pad>", "<bos>", "<eos>", "le", "chat", "noir"]
V, d_model = len(words), 4
E = torch.randn(V, d_model)  # (6, 4)
hidden = torch.randn(2, 4, d_model)  # the decoder's output, (B, T, d_model)
# le chat noir <eos> · le chat <eos> <pad>
target = torch.tensor([[3, 4, 5, 2], [3, 4, 2, 0]])

logits = hidden @ E.mT  # (2, 4, 4) @ (4, 6) -> (2, 4, 6)
logits[0]

# %% tags=["hide-input", "check"]
assert logits.shape == (2, 4, 6)

# %% [markdown]
# One row for each position, one column for each vocabulary entry. Each logit is the dot product of the position's
# vector with the word's vector.

# %%
by_hand = sum(hidden[0, 0, i] * E[4, i] for i in range(d_model))
by_hand

# %% tags=["hide-input", "check"]
torch.testing.assert_close(logits[0, 0, 4], by_hand)

# %% [markdown]
# ### Softmax
#
# Exponentials make every number positive; dividing by their sum makes the total 1. The order stays the same: the
# largest logit becomes the largest probability.

# %%
exponentials = logits.exp()
p = exponentials / exponentials.sum(-1, keepdim=True)

p[0]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(p, logits.softmax(-1))
torch.testing.assert_close(p.sum(-1), torch.ones(2, 4))
assert torch.equal(p.argmax(-1), logits.argmax(-1))

# %% [markdown]
# ### Large logits, and why we take log_softmax
#
# The formula is right on paper and breaks in a computer. In float64 the exponential of anything above about 709 is
# infinite (in float32, above 88), and infinity divided by infinity is not a number:

# %%
large = torch.tensor([1000.0, 1001.0, 1002.0])
naive = large.exp() / large.exp().sum()
naive

# %% tags=["hide-input", "check"]
assert bool(naive.isnan().all())

# %% [markdown]
# The cure uses the fact that adding a constant to all logits changes nothing, since it cancels in the fraction. So
# subtract the largest logit first. No exponential is then above $e^0 = 1$.

# %%
shifted = large - large.max()
stable = shifted.exp() / shifted.exp().sum()
stable

# %% tags=["hide-input", "check"]
torch.testing.assert_close(stable, large.softmax(-1))
torch.testing.assert_close(stable, torch.tensor([0.0, 1.0, 2.0]).softmax(-1))

# %% [markdown]
# The loss needs $\log p$. Taking the softmax first and the logarithm afterwards loses everything small: a probability
# of $e^{-1000}$ is rounded to 0, whose logarithm is $-\infty$. Written as one formula, nothing is lost:
#
# $$\log p_w = z_w - \log \sum_v e^{z_v}$$

# %%
apart = torch.tensor([0.0, 1000.0])
in_two_steps = apart.softmax(-1).log()
in_one = apart - apart.logsumexp(-1)
in_two_steps, in_one

# %% tags=["hide-input", "check"]
torch.testing.assert_close(in_one, apart.log_softmax(-1))
assert in_two_steps[0] == -math.inf

# %%
log_p = logits.log_softmax(-1)
log_p[0]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(log_p, p.log())

# %% [markdown]
# ### The output matrix is the embedding matrix
#
# Which matrix is $E$? In the paper (§3.4) it is the target's embedding matrix itself: the vectors with which words
# are *read* are also the vectors with which the output is *compared*. The two matrices are *tied*: one tensor, used
# at both ends. The cell also counts what tying saves in the base model, with the 37,000 entries of the paper's
# English–German vocabulary:

# %%
config = gf.ModelConfig.preset("tiny", vocab_size=6)
model = gf.Transformer(config).eval().requires_grad_(False)

x = torch.randn(2, 4, model.config.d_model)

with torch.device("meta"):  # shapes without numbers: a base model costs no memory
    base = gf.Transformer(gf.ModelConfig.preset("base", vocab_size=37_000))

parameters = sum(weight.numel() for weight in base.parameters())
saved = base.output.weight.numel()
print(f"base model, 37,000 entries: {parameters:,} parameters; without tying, {saved:,} more")

# %% tags=["hide-input", "check"]
assert model.output.weight is model.target.tokens.weight
torch.testing.assert_close(model.logits(x), x @ model.target.tokens.weight.mT)
assert parameters == 63_082_496
assert saved == 37_000 * 512 == 18_944_000

# %% [markdown]
# On the way in, a row is multiplied by $\sqrt{d_{\text{model}}}$; on the way out it is used as it is. No bias is
# added.
#
# ### The loss of one token
#
# The right word at the first position is "le". What probability did the model give it, and how surprised is it?

# %%
first = log_p[0, 0]
print(f"p(le) = {p[0, 0, 3]:.3f}, loss = −log p = {-first[3]:.3f}")
for probability in (1.0, 0.9, 0.5, 0.1, 0.01):
    print(f"p = {probability:<5} loss = {math.log(1 / probability):.3f}")

# %% [markdown]
# ### A batch: padding counts for nothing
#
# Pick the right token's $\log p$ at each position, leave out the positions where the target is padding, and divide by
# the number of tokens that remain: 7, not 8.

# %%
chosen = log_p.gather(-1, target[..., None]).squeeze(-1)  # (2, 4, 6) -> (2, 4)
real = target != 0
tokens = int(real.sum())
loss = -chosen[real].sum() / tokens

pytorch = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
-chosen, loss

# %% tags=["hide-input", "check"]
assert tokens == 7
torch.testing.assert_close(loss, pytorch)

# %% [markdown]
# The last number of the second row is the surprise at the padding; it is left out. The average is **per token**, not
# per sentence: each word counts the same, whichever sentence it belongs to. The exponential of the average is the
# perplexity. A perplexity of 5 means that the model is as unsure as if it had to choose among 5 equally likely words.

# %%
perplexity = loss.exp()
knows_nothing = torch.full((5,), 1 / V)  # five tokens, all words equally likely
perplexity

# %% tags=["hide-input", "check"]
torch.testing.assert_close((-knows_nothing.log()).mean().exp(), torch.tensor(float(V)))

# %% [markdown]
# ### Label smoothing
#
# Here is the smoothed target for "le", with $\varepsilon = 0.1$ and $V = 6$. The reference gets $0.9 + 0.1/6$, and
# each of the others gets $0.1/6$:

# %%
epsilon = 0.1
q = torch.full((V,), epsilon / V)
q[3] += 1 - epsilon

q

# %% tags=["hide-input", "check"]
torch.testing.assert_close(q.sum(), torch.tensor(1.0))

# %% [markdown]
# In the picture, the left bar of each word is the target without smoothing, the right bar the smoothed target. Look
# at the slivers that all the other words get, including padding and `<bos>`.

# %% tags=["hide-input"]
figure, axes = pictures.canvas(6.4, 2.8)
places = torch.arange(V).numpy()
hard = F.one_hot(torch.tensor(3), V).double()
axes.bar(places - 0.2, hard.numpy(), 0.38, color=pictures.GREY, label="without smoothing")
axes.bar(places + 0.2, q.numpy(), 0.38, color=pictures.BLUE, label="smoothed, ε = 0.1")
for place in range(V):
    axes.annotate(
        f"{q[place]:.3f}", (place + 0.2, q[place]), (0, 2), textcoords="offset points", ha="center", fontsize=8
    )

axes.set_xticks(places, words)
axes.set(ylabel="probability asked for", ylim=(0, 1.12))
axes.legend(frameon=False, fontsize=9)
pictures.picture(
    figure,
    "Target for the word le over six entries. Without smoothing: 1 on le, 0 elsewhere. Smoothed: "
    "0.917 on le and 0.017 on each of the other five.",
)

# %% [markdown]
# Here is the smoothed loss of the first position in three ways: by the definition, as a mix of the reference's loss
# and the average loss over all words, and by PyTorch.

# %%
smoothed = -(q * first).sum()
pytorch = F.cross_entropy(logits[0, 0], target[0, 0], label_smoothing=epsilon)
smoothed

# %% tags=["hide-input", "check"]
torch.testing.assert_close(smoothed, (1 - epsilon) * -first[3] + epsilon * -first.mean())
torch.testing.assert_close(smoothed, pytorch)

# %% [markdown]
# The same for the whole batch:

# %%
each = (1 - epsilon) * -chosen + epsilon * -log_p.mean(-1)  # (2, 4)
smoothed_loss = each[real].sum() / tokens
pytorch = F.cross_entropy(
    logits.flatten(0, 1),
    target.flatten(),
    ignore_index=0,
    label_smoothing=epsilon,
)
smoothed_loss

# %% tags=["hide-input", "check"]
torch.testing.assert_close(smoothed_loss, pytorch)

# %% [markdown]
# ### How small can it get?
#
# Without smoothing, the loss can come as close to 0 as you like. A smoothed loss cannot. It is the *divergence*
# $\mathrm{KL}$ of $p$ from $q$ (never negative, and 0 only where $p = q$) plus the *entropy* $H$ of $q$, which no
# model can change:
#
# $$\mathrm{KL}(q \,\|\, p) = \sum_w q_w \log \frac{q_w}{p_w}, \qquad H(q) = -\sum_w q_w \log q_w$$
# $$-\sum_w q_w \log p_w = \mathrm{KL}(q \,\|\, p) + H(q)$$

# %%
divergence = (q * (q.log() - first)).sum()
entropy = -(q * q.log()).sum()
divergence, entropy

# %% tags=["hide-input", "check"]
torch.testing.assert_close(smoothed, divergence + entropy)
torch.testing.assert_close(divergence, F.kl_div(first, q, reduction="sum"))

# %% [markdown]
# The smallest possible smoothed loss is therefore $H(q)$. This minimum depends on $\varepsilon$ and $V$ alone. Here it
# is for our six entries, for the 849 French entries of the book's demo model, and for the paper's 37,000:


# %%
def least_loss(V, epsilon):
    reference, other = 1 - epsilon + epsilon / V, epsilon / V
    return -reference * math.log(reference) - (V - 1) * other * math.log(other)


for size in (6, 849, 37_000):
    print(f"V = {size:>6}: least smoothed loss {least_loss(size, 0.1):.3f}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(torch.tensor(least_loss(6, 0.1)), entropy)

# %% [markdown]
# If your training report stops at 1.4 with a vocabulary of 37,000, the model may already be as good as it can be.
# This is also why perplexity is measured without smoothing. The picture shows the loss at one position with $V = 849$
# as the logit of the right word rises above all the others (which are equal). Look at the right end: the plain loss
# creeps towards 0, while the smoothed loss has its lowest point where $p = q$ and **rises again** when the model
# becomes too sure.

# %% tags=["hide-input"]
size = 849
lead = torch.linspace(0, 20, 201)
log_sum = torch.log(lead.exp() + size - 1)
plain_curve = log_sum - lead
smoothed_curve = (1 - epsilon) * plain_curve + epsilon * (log_sum - lead / size)
best = math.log((1 - epsilon + epsilon / size) / (epsilon / size))
lowest = float(smoothed_curve.min())
assert abs(lowest - least_loss(size, epsilon)) < 1e-3  # the grid of leads is coarse
assert abs(float(lead[smoothed_curve.argmin()]) - best) < 0.1
pictures.curves(
    {
        "plain": (lead, plain_curve),
        "smoothed, ε = 0.1": (lead, smoothed_curve),
        "least possible": (lead, torch.full_like(lead, least_loss(size, epsilon))),
    },
    x_label="how far the right word's logit is above the others",
    y_label="loss (nats)",
    alt=f"Loss against the lead of the right word's logit. The plain loss falls towards 0. The "
    f"smoothed loss falls to "
    f"{lowest:.2f} at a lead of {best:.1f} and then rises again.",
)

# %% [markdown]
# ### The gradient is p − q
#
# How should the logits change? The derivative of the loss with respect to $z_w$ is $p_w - q_w$: the prediction minus
# the target. Words with too much probability are pushed down, words with too little are pulled up, and the pushes sum
# to 0. Check it with autograd, PyTorch's automatic differentiation:

# %%
z = logits[0, 0].clone().requires_grad_(True)
(-(q * z.log_softmax(-1)).sum()).backward()
z.grad

# %% tags=["hide-input", "check"]
torch.testing.assert_close(z.grad, p[0, 0] - q)
torch.testing.assert_close(z.grad.sum(), torch.tensor(0.0))

# %% [markdown]
# The more wrong the prediction, the stronger the push, up to ±1. The push does not become weak while the answer is
# wrong. (That is why softmax and this loss belong together.)

# %% [markdown]
# ## The same from the library
#
# [smoothed_cross_entropy](../src/glassformer/training/objective.py#smoothed_cross_entropy) takes the decoder's output
# and the output matrix, not the logits. With 37,000 words the logits would be by far the largest tensor of a training
# step, so the function computes them a few rows at a time. It receives the real positions only, and returns two
# **sums** over them: the smoothed loss and the plain loss.

# %%
from glassformer.training.objective import smoothed_cross_entropy

result = smoothed_cross_entropy(hidden[real], E, target[real], epsilon)
result

# %% tags=["hide-input", "check"]
torch.testing.assert_close(result.smoothed / tokens, smoothed_loss)
torch.testing.assert_close(result.plain / tokens, loss)
torch.testing.assert_close((result.plain / tokens).exp(), perplexity)

# %% [markdown]
# The function computes its gradient by hand, as $p - q$, in the same pass. Autograd agrees for both operands:

# %%
ours = [hidden.clone().requires_grad_(True), E.clone().requires_grad_(True)]
theirs = [hidden.clone().requires_grad_(True), E.clone().requires_grad_(True)]

z = ours[0] @ ours[1].mT
F.cross_entropy(z[real], target[real], label_smoothing=epsilon, reduction="sum").backward()
result = smoothed_cross_entropy(theirs[0][real], theirs[1], target[real], epsilon)
result.smoothed.backward()

theirs[0].grad[1]

# %% tags=["hide-input", "check"]
for one, other in zip(ours, theirs, strict=True):
    torch.testing.assert_close(one.grad, other.grad)

assert bool((theirs[0].grad[1, 3] == 0).all())  # the padded position learns nothing

# %% [markdown]
# ## What a trained model thinks
#
# The demo model (English to French) translates "The black cat sat on the couch." Move the slider: each frame shows
# the five most likely next words after the words written so far. At most steps the first word is far ahead of the
# others, and yet its probability is never much above 0.9.

# %%
from glassformer.built_in import trained_demo

torch.set_default_dtype(torch.float32)  # as the demo was trained
translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
demo = translator.model.eval().requires_grad_(False)
source_tokenizer = translator.bundle.source_tokenizer
tokenizer = translator.bundle.target_tokenizer

text = "The black cat sat on the couch."
[translation] = translator.translate([text])
source = torch.tensor([[*source_tokenizer.encode(text), demo.config.eos_id]])
output = torch.tensor([*tokenizer.encode(translation.text), demo.config.eos_id])
target_input = torch.cat([torch.tensor([demo.config.bos_id]), output[:-1]])[None]

demo_log_p = demo(source, target_input)[0].log_softmax(-1)  # (T, V)
tuple(demo_log_p.shape), translation.text

# %% tags=["hide-input", "check"]
assert demo_log_p.shape == (len(output), demo.config.target_vocab_size)

# %% tags=["hide-input"]
frames, captions, written = [], [], ["<bos>"]
for step, token in enumerate(tokenizer.tokens(output.tolist())):
    top = demo_log_p[step].exp().topk(5)
    names = tokenizer.tokens(top.indices.tolist())
    likely = dict(zip(names, top.values.tolist(), strict=True))
    alt = "Next word: " + ", ".join(f"{name} {value:.4f}" for name, value in likely.items())
    frames.append(pictures.bars(likely, x_label="probability", numbers=".4f", alt=alt, width=5.4))
    captions.append(f"after “{' '.join(written)}”: “{token}”")
    written.append(token)

pictures.player(frames, captions)

# %% [markdown]
# Why 0.9? **"Because one word in ten is wrong"**, many believe. But the demo was trained with $\varepsilon = 0.1$ and
# $V = 849$, so its smoothed target asks for $0.9 + 0.1/849 \approx 0.9001$ on the right word, and even a model that is
# never wrong would learn to say 0.9. This probability is what the model was asked for, not a sign of doubt. Its
# smoothed loss is above the smallest possible one, as it must be, but not by much:

# %%
chosen = demo_log_p[range(len(output)), output]
demo_smoothed = float((0.9 * -chosen + 0.1 * -demo_log_p.mean(-1)).mean())
median = float(chosen.exp().median())
print(f"median p of the right word: {median:.3f}")
print(f"smoothed loss {demo_smoothed:.3f}, least possible {least_loss(849, 0.1):.3f}")
print(f"perplexity (plain): {float((-chosen).mean().exp()):.3f}")

# %% tags=["hide-input", "check"]
assert demo_smoothed > least_loss(849, 0.1)
assert chosen.exp().max() < 0.93
assert 0.85 < median < 0.95

# %% [markdown]
# The library adds up the same $\log p$ of every token, including `<eos>`; the sum is the translation's `log_prob`:

# %%
translation.log_prob

# %% tags=["hide-input", "check"]
# float32, summed in a different order: not equal to the last digit
assert math.isclose(translation.log_prob, float(chosen.sum()), abs_tol=1e-4)

# %% [markdown]
# The explorer shows [the softmax of the first
# word](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&row=0&zoom=%7B%22box%22:%22decoder.softmax%22,%22key%22:null%7D)
# together with its arithmetic.

# %% [markdown]
# ## What goes wrong
#
# **Softmax twice** ([errata](errata.py#softmax-twice)). `F.cross_entropy` expects *logits* and takes the softmax
# itself. If the model already ends with a softmax, the loss takes a second softmax, this time of numbers between 0
# and 1. The largest possible difference between two "logits" is then 1, and even a model that is absolutely sure can
# give its word at most $e / (e + V - 1)$:

# %%
sure = torch.zeros(849)
sure[7] = 50.0  # as sure as can be
right = float(F.cross_entropy(sure, torch.tensor(7)))
twice = float(F.cross_entropy(sure.softmax(-1), torch.tensor(7)))
print(f"a perfect answer: loss {right:.3f} with one softmax, {twice:.3f} with softmax twice")
print(f"no knowledge:     loss {math.log(849):.3f}")

with inspection.plant(demo, "double_softmax"):
    planted = demo(source, target_input)[0].log_softmax(-1)

planted_loss = -planted[range(len(output)), output].mean()
print(f"the demo's loss: {-chosen.mean():.3f} with one softmax, {planted_loss:.3f} with softmax twice")

# %% tags=["hide-input", "check"]
assert math.isclose(twice, math.log(math.e + 848) - 1, rel_tol=1e-5)
assert torch.equal(planted.argmax(-1), demo_log_p.argmax(-1))

# %% [markdown]
# The symptom is a loss that gets stuck not far below $\log V$. The mistake is hard to see because the best word
# remains the best word: *greedy* translations, which take the best word at each step, do not change at all.
#
# **Padding in the loss** ([errata](errata.py#padding-in-the-loss)). Forget the mask, and `<pad>` becomes a word like
# any other, to be predicted after each `<eos>`. `<pad>` is the easiest word of all, and a batch of unequal lengths has
# plenty of it. Suppose that a model gives 0.3 to each right word and 0.99 to the padding:

# %%
per_token = torch.full((3, 10), -math.log(0.3))
padding = torch.zeros(3, 10, dtype=torch.bool)
padding[1, 6:] = padding[2, 3:] = True
per_token[padding] = -math.log(0.99)

without, included = float(per_token[~padding].mean()), float(per_token.mean())
print(f"{padding.double().mean():.0%} of the positions are padding")
print(f"loss {without:.3f} without padding, {included:.3f} with padding")
print(f"perplexity {math.exp(without):.2f} without padding, {math.exp(included):.2f} with padding")

# %% tags=["hide-input", "check"]
assert math.isclose(without, -math.log(0.3), rel_tol=1e-5)
assert included < 0.7 * without

# %% [markdown]
# The loss looks better and means less. The loss then depends on how sentences are grouped into batches, so two models
# can no longer be compared.
#
# **The shifted target** ([errata](errata.py#shifted-target)). Position $i$ of the decoder reads token $i$ and must
# predict token $i + 1$. Compare its output with token $i$ instead, and it only has to repeat what it has just read.
# Two small models learn to copy sequences of six symbols, one with the right target and one with the mistake:


# %%
def trained(shift):
    torch.manual_seed(1)
    sizes = {"d_model": 32, "heads": 2, "d_ff": 64, "dropout": 0.0}
    config = gf.ModelConfig(vocab_size=12, encoder_layers=1, decoder_layers=1, **sizes)
    copier = gf.Transformer(config)
    optimiser = torch.optim.Adam(copier.parameters(), lr=5e-3)
    losses = []
    for _ in range(150):
        symbols = torch.randint(3, 12, (32, 6))
        read = F.pad(symbols, (1, 0), value=1)  # <bos>, then the symbols
        said = F.pad(symbols, (0, 1), value=2)  # the symbols, then <eos>
        said = said if shift else read
        loss = F.cross_entropy(copier(symbols, read).flatten(0, 1), said.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return copier.eval(), losses


(copier, losses), (parrot, parrot_losses) = trained(shift=True), trained(shift=False)
print(f"loss after 60 steps: {losses[60]:.3f} with the right target, {parrot_losses[60]:.3f} with the mistake")

# %% tags=["hide-input", "check"]
assert parrot_losses[60] < 0.5 * losses[60]

# %% [markdown]
# In the picture, see which curve falls first: the model with the mistake looks better.

# %% tags=["hide-input"]
pictures.curves(
    {"right": (range(150), losses), "target not shifted": (range(150), parrot_losses)},
    x_label="step",
    y_label="loss (nats)",
    alt="Two training curves. The loss with the unshifted target falls to nearly 0 within a few dozen steps, long "
    "before the loss with the right target.",
)


# %% [markdown]
# Now let both models write, feeding each token that they choose back in:


# %%
def written_by(model, symbols, steps=7):
    read = torch.tensor([[1]])
    for _ in range(steps):
        with torch.no_grad():
            said = model(symbols, read)[:, -1:].argmax(-1)
        read = torch.cat([read, said], dim=1)
    return read[0, 1:].tolist()


symbols = torch.tensor([[7, 4, 9, 9, 3, 11]])
print("source:             ", symbols[0].tolist())
print("right:              ", written_by(copier, symbols))
print("target not shifted: ", written_by(parrot, symbols), "(1 is <bos>)")

# %% tags=["hide-input", "check"]
assert written_by(parrot, symbols) == [1] * 7

# %% [markdown]
# Given `<bos>`, the model with the mistake repeats `<bos>` for ever. And yet its loss was nearly 0.

# %% [markdown]
# ## In short
#
# - A vector becomes a word by comparison with the vector of each word of the vocabulary: the softmax turns these logits
#   into probabilities of the next word.
# - The loss is $-\ln p$, where $p$ is the probability of the right word: 0 if the model was sure of it, and larger the
#   smaller $p$ is.
# - With label smoothing the loss is smallest at a probability a little below 1, so the model is not rewarded for
#   pushing its logits ever further apart.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* A model knows nothing and gives the same probability to each of 37,000 words. What are its loss
# and its perplexity, and what is its smoothed loss?
#
# <details><summary>Hint</summary>
#
# The loss is −log of the right word's probability. What do the other words have?
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: [loss, perplexity, smoothed loss]
print(verdict("output.1", answer))

# %% tags=["hide-cell"]
knows_nothing = torch.zeros(37_000, dtype=torch.float64)
plain = F.cross_entropy(knows_nothing, torch.tensor(5))
smooth = F.cross_entropy(knows_nothing, torch.tensor(5), label_smoothing=0.1)
assert math.isclose(plain, math.log(37_000))
assert math.isclose(plain.exp(), 37_000)
assert math.isclose(smooth, plain)  # the average of equal numbers, however they are weighted
assert verdict("output.1", [plain, plain.exp(), smooth]) == "right"
plain, plain.exp(), smooth

# %% [markdown]
# **2.** *Easy · 2 min.* A translation of 20 tokens, `<eos>` included, has `log_prob` = −3. What is its perplexity?
#
# <details><summary>Hint</summary>
#
# Perplexity is the exponential of the loss *per token*.
#
# </details>

# %%
answer = None  # instead of None: the perplexity
print(verdict("output.2", answer))

# %% tags=["hide-cell"]
answer = math.exp(3 / 20)
assert verdict("output.2", answer) == "right"
answer

# %% [markdown]
# **3.** *Hard · 8 min.* Let $\varepsilon = 0.1$ and $V = 37\,000$. By how much must the right word's logit exceed the
# others (all equal) to make the smoothed loss as small as possible? Check that the gradient is 0 there.
#
# <details><summary>Hint</summary>
#
# The loss is least where the probabilities equal the smoothed target. A difference of logits is the log of a ratio of
# probabilities.
#
# </details>

# %%
answer = None  # instead of None: the difference of the logits
print(verdict("output.3", answer))

# %% tags=["hide-cell"]
size = 37_000
lead = math.log((0.9 + 0.1 / size) / (0.1 / size))  # p = q: probabilities differ by e^lead
z = torch.zeros(size, dtype=torch.float64)
z[5] = lead
z.requires_grad_(True)
least = F.cross_entropy(z, torch.tensor(5), label_smoothing=0.1)
least.backward()
assert math.isclose(least.item(), least_loss(size, 0.1), rel_tol=1e-9)
assert z.grad.abs().max() < 1e-12
assert verdict("output.3", lead) == "right"
lead, least.item()

# %% [markdown]
# **4.** *Medium · 8 min.* Compute the smoothed loss of the small batch above in a loop over single positions, so that
# at most $V$ logits exist at any moment. Compare the result with the library's.
#
# <details><summary>Hint</summary>
#
# For one position: $1 - \varepsilon$ times −log of the right word, plus $\varepsilon$ times the mean of −log over all
# words.
#
# </details>

# %% tags=["hide-cell"]
total = torch.zeros((), dtype=torch.float64)
for x, y in zip(hidden[real], target[real], strict=True):
    row = (E @ x).log_softmax(-1)
    total -= 0.9 * row[y] + 0.1 * row.mean()

result = smoothed_cross_entropy(hidden[real], E, target[real], 0.1)
torch.testing.assert_close(total, result.smoothed)

# %% [markdown]
# **5.** *Medium · 5 min.* A different definition of label smoothing spreads $\varepsilon$ over the $V - 1$ *other*
# words. Show that it equals ours with a different $\varepsilon$.
#
# <details><summary>Hint</summary>
#
# In both definitions, what does a wrong word get? Set the two equal.
#
# </details>

# %% tags=["hide-cell"]
size, epsilon = 6, 0.1
other_way = torch.full((size,), epsilon / (size - 1))
other_way[3] = 1 - epsilon
ours_epsilon = epsilon * size / (size - 1)
same = torch.full((size,), ours_epsilon / size)
same[3] += 1 - ours_epsilon
torch.testing.assert_close(other_way, same)
ours_epsilon

# %% [markdown]
# **6.** *Easy · 1 min · on the stage.* Before the softmax, scores can be divided by a temperature. [Find one on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&chapter=5&act=1&row=10&task=temperature)
# at which “il” has more than 0.99.
#
# <details><summary>Hint</summary>
#
# Is the distribution sharper above 1, or below?
#
# </details>
#
# **7.** *Easy · 2 min · on the stage.* At which word of this translation is the model least sure? [Open Softmax there,
# on the stage](../runs/demo/explorer.html#text=He+walked+down+the+street+to+get+to+the+bank.&task=softmax).
#
# <details><summary>Hint</summary>
#
# Click the written words one after the other, and compare the numbers beside the longest bars.
#
# </details>
#
# ## Next
#
# Now there is a loss and a gradient. [Training](training.py) uses the gradient to make the loss small.
