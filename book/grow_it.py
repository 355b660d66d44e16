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
# # Grow it
#
# ## The question
#
# The chapters have taken the Transformer apart. Now put it together again, from nothing, one part at a time, and train it
# after each part. **What does each part buy?** The answer is a table with a row for each part: what was added, how many
# numbers the model learns, its loss on sentences that it has not seen, and a sentence that it writes.
#
# ## The intuition
#
# A model that predicts the next word places a bet on every word. Before it has seen anything, it bets equally on all of
# them. Each part lets the model see more: the word before, then all words before, then several things about them at
# once. If the new part helps, the model is less surprised by what comes, and the loss falls. If the loss does not fall,
# you have learned something, too: some parts are useless alone and pay only together with others.
#
# ## The mathematics
#
# The loss is the mean of $-\ln p$ over all words of the validation sentences, where $p$ is the model's probability of the
# word that really comes ([output and loss](output.py); the paper trains with a smoothed form of this loss, §5.4). A
# model that bets equally on $V$ words has the loss $\ln V$. A loss of $L$ means that the model is as surprised as if it
# had to guess among $e^L$ equally likely words.
#
# ## Line by line
#
# ### The corpus
#
# The sentences come from the demo's grammar. The models learn from 8 000 pairs and are measured on 500 others. At first,
# they see only the French side, and learn what French (of this grammar) looks like, word by word. All trainings of this
# page take a minute or two. What the page says about them is computed, so you can change `SEED` and see what stays true.

# %%
import math

import torch
from IPython.display import Markdown
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.corpus.tasks import english_french
from glassformer.watch import pictures

# %%
SEED = 1  # of the first weights, of the order of the sentences, and of the words that the models draw
splits = english_french(1, train=8000, valid=500, test=0, unseen=0, longer=0).splits


def words(text):
    return text.replace("'", "' ").replace(".", " .").replace(",", " ,").split()


def table_of(sentences):
    """Return the words of a language, the special ones first, and their numbers."""
    names = ["<pad>", "<bos>", "<eos>", "<unk>", *sorted({word for sentence in sentences for word in sentence})]
    return names, {name: number for number, name in enumerate(names)}


def padded(sentences, numbers):
    rows = [[1, *(numbers.get(word, 3) for word in sentence), 2] for sentence in sentences]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


# %%
french, english = ([words(getattr(one, side)) for one in splits["train"]] for side in ("target", "source"))
names, numbers = table_of(french)
source_names, source_numbers = table_of(english)
train, train_source = padded(french, numbers), padded(english, source_numbers)
valid = padded([words(one.target) for one in splits["valid"]], numbers)
valid_source = padded([words(one.source) for one in splits["valid"]], source_numbers)
print(" ".join(names[number] for number in train[0].tolist() if number))

# %% [markdown]
# ### The table
#
# Each step adds a row to the table. The sentence is drawn from the model: each word by its probability after the words
# before it.

# %%
table = {}


def drawn(next_logits):
    """Return a sentence, drawn word by word; `next_logits` gets all words so far, of shape (1, length)."""
    torch.manual_seed(SEED)
    ids = [1]
    while ids[-1] != 2 and len(ids) < 25:
        ids.append(int(torch.multinomial(next_logits(torch.tensor([ids]))[0, -1].softmax(-1), 1)))
    return " ".join(names[number] for number in ids if number > 3)


def add_row(step, weights, loss, next_logits):
    table[step] = weights, float(loss), drawn(next_logits)


# %% tags=["hide-input"]
def so_far(fallen="", risen=""):
    """Return the table and a sentence about its last step: one if the loss has fallen, another if it has risen."""
    rows = ["| step | weights | loss | it writes |", "|---|---|---|---|"]
    rows += [f"| {step} | {weights:,} | {loss:.2f} | {said} |" for step, (weights, loss, said) in table.items()]
    losses = [loss for _, loss, _ in table.values()]
    change = losses[-1] - losses[-2] if len(losses) > 1 else 0
    if change <= -SMALL:
        rows += ["", f"The loss has fallen by {-change:.2f}. {fallen}"]
    elif change >= SMALL:
        rows += ["", f"The loss has risen by {change:.2f}. {risen}"]
    elif len(losses) > 1:
        rows += [
            "",
            f"The loss has changed by {change:+.2f}, too little to mean anything: another seed may turn the sign.",
        ]
    return Markdown("\n".join(rows))


SMALL = 0.08

# %% [markdown]
# ### Nothing: all words alike
#
# A model that knows only how many words there are bets equally on each:

# %%
add_row("all words alike", 0, math.log(len(names)), lambda _: torch.zeros(1, 1, len(names)))
so_far()

# %% [markdown]
# ### Counts of pairs
#
# The oldest language model needs no network: count how often each word follows each other word. (Every pair starts with
# a hundredth of a count, so that no pair is impossible.)

# %%
before, after = train[:, :-1].flatten(), train[:, 1:].flatten()
real = after != 0  # without the padding
counts = torch.full((len(names), len(names)), 0.01)
counts.index_put_((before[real], after[real]), torch.ones(real.sum()), accumulate=True)
log_probs = (counts / counts.sum(1, keepdim=True)).log()


def loss_of(logits, sentences):
    """Return the mean of −ln p over the words after the first."""
    return F.cross_entropy(logits.flatten(0, 1), sentences[:, 1:].flatten(), ignore_index=0)


add_row("counts of pairs", counts.numel(), loss_of(log_probs[valid[:, :-1]], valid), lambda ids: log_probs[ids])

# %% tags=["hide-input"]
so_far("Neighbours go together, but the whole has no plan: each word is chosen by the last one alone.")

# %% [markdown]
# ### The model, with all its switches
#
# Here is the whole model. Every part has a switch, and you turn the switches on one after the other. First
# [attention](attention.py), in as many [heads](heads.py) as you like:


# %%
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, width)


# %%
def split(y, heads):
    return y.unflatten(-1, (heads, -1)).transpose(1, 2)  # (batch, heads, words, width / heads)


def attend(part, x, memory, mask):
    """Look from x at the memory; x itself is the memory in self-attention. A mask is True where one may look."""
    query = split(part.query(x), part.heads)
    key, value = split(part.key(memory), part.heads), split(part.value(memory), part.heads)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return part.output((weights @ value).transpose(1, 2).flatten(2))


# %% [markdown]
# Then comes a stack of layers. A sub-layer is an attention or a [feed-forward network](feed_forward.py); what becomes
# of its result is decided by two switches ([add & norm](residual.py)):


# %%
WIDTH = 64


def feed_forward():
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))


class Stack(nn.Module):
    def __init__(self, size, *, heads=1, layers=1, feed=False, residual=False, norm=False, cross=False):
        super().__init__()
        self.residual = residual
        self.table = nn.Embedding(size, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH**-0.5)
        kinds = layers * ["self", *(["cross"] * cross), *(["feed"] * feed)]
        self.parts = nn.ModuleList(feed_forward() if kind == "feed" else Attention(WIDTH, heads) for kind in kinds)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) if norm else nn.Identity() for _ in kinds)
        self.kinds = kinds


# %%
def pass_through(stack, ids, mask, memory=None, memory_mask=None):
    x = stack.table(ids) * math.sqrt(WIDTH) + gf.sinusoids(ids.shape[1], WIDTH)
    for kind, part, norm in zip(stack.kinds, stack.parts, stack.norms):
        if kind == "feed":
            found = part(x)
        else:
            found = attend(part, x, *((x, mask) if kind == "self" else (memory, memory_mask)))
        x = norm(x + found) if stack.residual else norm(found)
    return x


# %% [markdown]
# At last, here is the model: a stack that writes, and if the switch `source` is on, one that reads. The writer may look
# at no later word ([masks](masks.py)).


# %%
class Model(nn.Module):
    def __init__(self, *, source=False, **switches):
        super().__init__()
        self.writer = Stack(len(names), cross=source, **switches)
        self.reader = Stack(len(source_names), **switches) if source else None
        self.output = nn.Linear(WIDTH, len(names))


# %%
def logits_of(model, ids, source=None):
    past = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    if model.reader is None:
        return model.output(pass_through(model.writer, ids, past))
    there = (source != 0)[:, None, None, :]  # padding is not looked at
    memory = pass_through(model.reader, source, there)
    return model.output(pass_through(model.writer, ids, past, memory, there))


# %% [markdown]
# Each model is trained in the same way: 400 updates with 64 sentences each, the same sentences in the same order.


# %%
def shortened(rows):
    return rows[:, : int((rows != 0).sum(1).max())]


def grown(step, **switches):
    """Train a model with these switches, add its row to the table, and return the model."""
    torch.manual_seed(SEED)
    model = Model(**switches)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for update in range(400):  # the learning rate goes up, stays, and comes down
        optimiser.param_groups[0]["lr"] = 3e-3 * min(1, (update + 1) / 50, max(0.05, (400 - update) / 160))
        chosen = torch.randint(len(train), (64,))
        target, source = shortened(train[chosen]), shortened(train_source[chosen])
        loss = loss_of(logits_of(model, target[:, :-1], source), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        loss = loss_of(logits_of(model, valid[:, :-1], valid_source), valid)
        weights = sum(weight.numel() for weight in model.parameters())
        add_row(step, weights, loss, lambda ids: logits_of(model, ids, valid_source[:1]))
    return model


# %% [markdown]
# ### One head
#
# The counts know only the last word. This is the model's first look back: at all earlier words, by one head.

# %%
model = grown("one head")

# %% tags=["hide-input"]
so_far(
    "Words further back tell something, too.",
    "The model can see more than the counts, and predicts worse: what can be seen must be learned, too.",
)

# %% [markdown]
# ### Four heads
#
# One head computes one average of the earlier words. Now the same number of weights is split in four: each head has a
# quarter of the width and looks where it likes.

# %%
model = grown("four heads", heads=4)

# %% tags=["hide-input"]
so_far(
    "Four narrow looks at once find more than a wide one, with the same number of weights.",
    "Four narrow looks at once find less than a wide one.",
)

# %% [markdown]
# ### Feed-forward
#
# So far, the model only averages vectors. Now every word may also think about what it has found.

# %%
model = grown("feed-forward", heads=4, feed=True)

# %% tags=["hide-input"]
so_far(
    "Even in a single layer, thinking about what was found pays.",
    "Alone, the part is worth nothing: two more matrices only lengthen the way to the output.",
)

# %% [markdown]
# ### Three layers
#
# Large models are deep. What do two more layers of the same kind buy here?

# %%
model = grown("three layers", heads=4, feed=True, layers=3)

# %% tags=["hide-input"]
so_far(
    "Depth pays here even without a residual connection.",
    "Each sub-layer replaces its input: after six of them, little is left of the word that was read.",
)

# %% [markdown]
# ### The residual connection
#
# One plus sign: `x + found` instead of `found`. What a sub-layer finds no longer replaces the vector, and on the way back
# the gradient can pass by each sub-layer (He et al. 2015).

# %%
model = grown("residual", heads=4, feed=True, layers=3, residual=True)

# %% tags=["hide-input"]
so_far("One plus sign did this: the word that was read is still there.", "The plus sign has not helped here.")

# %% [markdown]
# ### The norm
#
# The sum grows with each addition; the norm brings it back to one size.

# %%
model = grown("norm", heads=4, feed=True, layers=3, residual=True, norm=True)

# %% tags=["hide-input"]
so_far("The norm helps even with three layers.", "With three layers, the model does better without the norm.")

# %% [markdown]
# With many layers, the norm decides whether the model learns at all ([an experiment](experiments/norms.py)).
#
# ### The source
#
# This is as good as it gets by looking back: nobody can know whether the cat or the dog comes next, unless it is
# written somewhere. An [encoder](encoder.py) reads the English sentence, and the writer looks at it by
# [cross-attention](decoder.py). In the table, the model writes the translation of the first validation sentence:

# %%
model = grown("encoder and cross-attention", heads=4, feed=True, layers=3, residual=True, norm=True, source=True)

# %% tags=["hide-input"]
so_far("This is the step for which all others were made.", "The model has not learned to read the source.")

# %% tags=["hide-input", "check"]
losses = {step: loss for step, (_, loss, _) in table.items()}
assert losses["encoder and cross-attention"] < 0.5 * losses["norm"]
assert losses["counts of pairs"] < losses["all words alike"]
assert losses["three layers"] > losses["feed-forward"] > losses["residual"]

# %% tags=["hide-input"]
before, after = losses["norm"], losses["encoder and cross-attention"]
Markdown(
    f"A loss of {before:.2f} is as uncertain as a guess among {math.exp(before):.1f} equally likely words, and a loss of "
    f"{after:.2f} as a guess among {math.exp(after):.1f}."
)

# %% [markdown]
# Now take the likeliest word each time, and you have a translator:


# %%
def translated(text):
    source, ids = padded([words(text)], source_numbers), [1]
    with torch.no_grad():
        while ids[-1] != 2 and len(ids) < 25:
            ids.append(int(logits_of(model, torch.tensor([ids]), source)[0, -1].argmax()))
    return " ".join(names[number] for number in ids[1:-1])


for one in splits["valid"][:4]:
    print(f"{one.source}\n   {translated(one.source)}\n   right: {' '.join(words(one.target))}")

# %% [markdown]
# ### All steps
#
# The lower the bar, the less the model is surprised. Which step would you do without?

# %% tags=["hide-input"]
pictures.bars(
    losses,
    x_label="loss: −ln p per word of unseen sentences",
    alt=f"The loss after each step: {', '.join(f'{loss:.2f}' for loss in losses.values())}.",
)

# %% [markdown]
# ## The same from the library
#
# With all switches on, the model has the parts of the library's `Transformer`. The library's self-attention, given our
# weights, returns our numbers:

# %%
ours = model.writer.parts[0]
theirs = gf.Transformer(gf.ModelConfig(vocab_size=9, d_model=WIDTH, heads=4, d_ff=8)).eval()
attention = theirs.decoder.layers[0].self_attention
with torch.no_grad():
    attention.input_projection.weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    attention.output_projection.load_state_dict(ours.output.state_dict())
    x, past = torch.randn(2, 5, WIDTH), torch.ones(5, 5, dtype=torch.bool).tril()
    difference = (attention(x, mask=past) - attend(ours, x, x, past)).abs().max()

print(f"largest difference: {difference:.0e}")

# %% tags=["hide-input", "check"]
assert difference < 1e-5

# %% [markdown]
# ## What goes wrong
#
# ### Growing without measuring
#
# Each step above changed one thing, and the loss was measured on sentences that no model had learned from. Measure on the
# training sentences instead, and every larger model seems better. Change two things at once, such as three layers *and* the
# residual connection, and you never learn what the layers did alone.
#
# ### One training is one training
#
# Each number above comes from one training run, and differs with another seed. So a small difference proves nothing, and
# the page calls a change below 0.08 too little: from seed to seed, its smallest steps differ by that much. To be sure,
# train with several seeds: [an experiment](experiments/parts.py) does it for single parts.
#
# ### What do many believe?
#
# *"Attention is all you need."* The paper's title means that words need no other connection, neither recurrence nor
# convolution. The paper's model also has feed-forward networks, residual connections, norms and positions. In the bars
# above, three layers are worse than one until the residual connection is there.
#
# ## Exercises
#
# **1.** *Easy · 1 min.* A model bets equally on 32 words. What is its loss?
#
# <details><summary>Hint</summary>
#
# $p$ is 1/32 for every word.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the loss
print(verdict("grow_it.1", answer))

# %% tags=["hide-cell"]
assert verdict("grow_it.1", math.log(32)) == "right"

# %% [markdown]
# **2.** *Medium · 5 min.* Turn the residual connection and the norm on, but keep a single layer. How much of the gain
# was the depth?
#
# <details><summary>Hint</summary>
#
# `grown` has the switches `residual` and `norm`; without `layers`, there is one layer. Compare its loss with the loss
# of three layers, in the row "norm". Half of the five minutes is training time.
#
# </details>

# %%
answer = None  # instead of None: the loss of one layer minus that of three
print(verdict("grow_it.2", answer, table))

# %% tags=["hide-cell"]
shallow = grown("one layer with both", heads=4, feed=True, residual=True, norm=True)
assert verdict("grow_it.2", table["one layer with both"][1] - table["norm"][1], table) == "right"
{step: round(table[step][1], 2) for step in ("feed-forward", "one layer with both", "norm")}

# %% [markdown]
# **3.** *Hard · 10 min.* Leave `gf.sinusoids` out of `Stack`. Which of the steps suffers most, and why does the writer
# suffer so little?
#
# <details><summary>Hint</summary>
#
# What does the mask tell a word about its place?
#
# </details>

# %% tags=["hide-cell"]
# The writer's mask lets the first word see one word, the second two, and so on; from an average over n words, n can be
# read. The reader has no such mask: turn its words around, and its vectors are turned around, and nothing else.
part, x, everything = model.reader.parts[0], torch.randn(1, 5, WIDTH), torch.ones(5, 5, dtype=torch.bool)
torch.testing.assert_close(attend(part, x.flip(1), x.flip(1), everything), attend(part, x, x, everything).flip(1))
seen = everything.tril()
assert not torch.allclose(attend(part, x.flip(1), x.flip(1), seen), attend(part, x, x, seen).flip(1))

# %% [markdown]
# ## Next
#
# The model writes the likeliest word each time. Is that the likeliest sentence? [Decoding](decoding.py).
