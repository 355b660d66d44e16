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
# # Words and embeddings
#
# A Transformer multiplies and adds numbers. A sentence is made of letters. This chapter builds the bridge between the
# two: text → tokens → ids → vectors. These steps are at the bottom of the architecture, once for the source (the
# sentence to translate) and once for the target (its translation). The paper, *Attention Is All You Need* (2017),
# describes them in §3.4.

# %%
import math
import tempfile
from pathlib import Path

import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.watch import pictures

torch.manual_seed(1)
translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model, tokenizer = translator.model, translator.bundle.source_tokenizer

# %% [markdown]
# `runs/demo` is a small English–French model, trained for about four minutes on two processor cores. All its numbers
# below are real. If you trained it on a different machine, your numbers may differ in the last digits, or in which word
# comes third in a list.
#
# ## The question
#
# How does "The black cat sat on the couch." become something that you can multiply by a matrix (a table of numbers)?
# You could number the words and feed in the numbers. But then word 100 would be "twice as much" as word 50, and word
# 100 would have to mean something between words 99 and 101. A word's number is a name, not an amount.

# %% [markdown]
# ## The intuition
#
# Keep a big table with one row for each word that the model knows. A row is a list of numbers: the word's
# **embedding**, also called its *vector*. To read a sentence, take out the rows of its words, in the order of the
# sentence. That is all there is to it: an embedding is a **lookup**.
#
# Nobody fills in the table by hand. Its numbers start out random, and training changes them like all other weights of
# the model, until the rows hold whatever helps with the task. Words that occur in similar contexts, or are translated
# in similar ways, get pushed in similar directions. Further down you will see what this did to "cat".
#
# Most texts describe the lookup in a second way. They write the word as a **one-hot vector** (all zeros, and a single 1
# at the word's place) and multiply it by the table. The zeros switch off all rows except one. Both ways give the same
# numbers, so you can think in matrices and compute with a lookup.

# %% [markdown]
# ## The mathematics
#
# | symbol | meaning | in the paper's base model | in the demo |
# |---|---|---|---|
# | $V$ | number of entries in the vocabulary | about 37 000 | 605 English, 849 French |
# | $d_\mathrm{model}$ | width of a vector, in numbers; `d_model` in the code | 512 | 128 |
# | $E$ | the embedding matrix: $V$ rows, $d_\mathrm{model}$ columns | (37 000, 512) | (605, 128) and (849, 128) |
# | $t$ | the id of a token: a whole number from 0 to $V-1$ | | |
# | $o_t$ | the one-hot vector of id $t$: a row of $V$ numbers, 1 at place $t$, 0 elsewhere | | |
#
# A one-hot row vector times the matrix picks row $t$, written $E_t$. Written out, the product is a sum over all $V$
# rows, and all its terms except one are 0:
#
# $$ o_t E = \sum_{j=0}^{V-1} o_{t,j} E_j = E_t $$
#
# The token's first vector in the model is this row times a constant (§3.4):
#
# $$ x = \sqrt{d_\mathrm{model}} \; E_t $$
#
# The paper gives no reason for the factor. Here is a reason that fits everything else in the model.
#
# - The same matrix is used at the other end, to turn vectors back into scores for words (§3.4, and [one matrix, three
#   jobs](#one-matrix-three-jobs) below). Such a score is a sum of $d_\mathrm{model}$ products. For scores to start out
#   at about ±1, the entries of $E$ have to be *small*: drawn from a normal distribution with mean 0 and standard
#   deviation $d_\mathrm{model}^{-1/2}$, which is 0.044 for 512.
# - At the entrance, a pattern for the position is *added* to the word's vector
#   ([positions](positions.py#the-mathematics)). The pattern's entries lie in $[-1, 1]$. Beside them, entries of size
#   0.044 would hardly count. Multiplied by $\sqrt{d_\mathrm{model}}$, their variance becomes
#
# $$ \big(\sqrt{d_\mathrm{model}}\big)^2 \cdot \big(d_\mathrm{model}^{-1/2}\big)^2 = 1, $$
#
# and words and positions are about equal in size. So the small entries and the factor belong together. You will see
# [what happens](#what-goes-wrong) if one of them is missing.

# %% [markdown]
# ## Line by line
#
# ### Text to tokens
#
# A **token** is a piece of text with its own entry in the vocabulary. The demo's tokens are words and punctuation
# marks; larger models cut rare words into pieces. `split` does the cutting.

# %%
sentence = "The black cat sat on the couch."
tokens = tokenizer.split(sentence)
tokens

# %% [markdown]
# Note that "The" and "the" are two tokens. To the model they are two different things, until it learns that they are
# alike.
#
# ### Tokens to ids
#
# The vocabulary is a list of tokens, and a token's **id** is its place in the list, counted from 0.

# %%
ids = tokenizer.encode(sentence)
ids

# %% tags=["hide-input", "check"]
assert ids == [tokenizer.vocabulary.tokens.index(token) for token in tokens]

# %% [markdown]
# The first four ids are the same in every vocabulary of the library. They are not words but special tokens:
#
# | id | token | what it is for |
# |---|---|---|
# | 0 | `<pad>` | **pad**ding: fills short sentences of a batch up to the longest one |
# | 1 | `<bos>` | **b**eginning **o**f **s**equence: the start for the decoder, the half that writes the translation |
# | 2 | `<eos>` | **e**nd **o**f **s**equence: ends the source and the output |
# | 3 | `<unk>` | **unk**nown: stands for every word that is not in the vocabulary |

# %%
# One of these words is new to the demo:
tokenizer.tokens(tokenizer.encode("The purple axolotl slept."))

# %% tags=["hide-input", "check"]
assert tokenizer.tokens([0, 1, 2, 3]) == ["<pad>", "<bos>", "<eos>", "<unk>"]
assert (tokenizer.pad_id, tokenizer.bos_id) == (0, 1)
assert (tokenizer.eos_id, tokenizer.unk_id) == (2, 3)

# %% [markdown]
# The encoder, the half that reads, gets the ids followed by `<eos>`. Two sentences in one batch must have the same
# length, so the shorter one is filled up with `<pad>`.

# %%
short = tokenizer.encode("The cat slept.")
rows = [[*ids, tokenizer.eos_id], [*short, tokenizer.eos_id]]
longest = max(map(len, rows))
batch = torch.tensor([row + [tokenizer.pad_id] * (longest - len(row)) for row in rows])
batch

# %% tags=["hide-input", "check"]
assert batch.shape == (2, 9)  # (B, S): sentences, source positions
assert batch[1].tolist()[-4:] == [0, 0, 0, 0]

# %% [markdown]
# ### Ids to vectors, with a table that fits the page
#
# Take a vocabulary of 11 ids, as in a well-known exercise, the *copy task*: the symbols are the ids 1 to 10, and 0 is
# padding. Let each vector have 4 numbers. To make the table easy to follow, each entry shows its row, a point, and its
# column: 5.2 is in row 5, column 2.

# %%
vocab_size, d_model = 11, 4
E = torch.arange(vocab_size)[:, None] + torch.arange(d_model).double() / 10
E

# %%
E[5]  # the vector of id 5

# %% tags=["hide-input", "check"]
assert E.shape == (11, 4)

# %% [markdown]
# Ids begin at 0, so a table for the ids 0 to 10 has **11** rows, and id 5 is the **sixth** row from the top. Now do the
# same with a one-hot vector:

# %%
one_hot = torch.zeros(vocab_size, dtype=torch.float64)
one_hot[5] = 1
one_hot

# %%
one_hot @ E

# %% tags=["hide-input", "check"]
assert torch.equal(one_hot @ E, E[5])
assert torch.equal(E[5], E[:6][-1])  # the last one of the first six rows

# %% [markdown]
# A whole sequence is a matrix of one-hot rows. Multiplied by $E$, it gives one row of $E$ for each token of the
# sequence.

# %%
sequence = torch.tensor([1, 7, 7, 3])
one_hots = F.one_hot(sequence, vocab_size).double()
one_hots.int()

# %%
E[sequence]

# %% tags=["hide-input", "check"]
assert one_hots.shape == (4, 11)
assert torch.equal(one_hots @ E, E[sequence])  # (4, 11) @ (11, 4) -> (4, 4)

# %% [markdown]
# The two equal symbols have equal rows: at this stage, a token's vector depends on the token alone, not on its place or
# its neighbours. Place comes with [positions](positions.py), neighbours with [attention](attention.py).
#
# The product gives exactly the same numbers but costs more: for one token of the base model, it multiplies and adds 37
# 000 × 512 numbers, nearly all of them by 0. The lookup copies 512 numbers. That is the only difference.
#
# ### The same with real numbers
#
# Here is the demo's English table with our sentence:

# %%
E = model.source.tokens.weight.detach().double()
source = torch.tensor([*ids, tokenizer.eos_id])
looked_up = E[source]
multiplied = F.one_hot(source, len(E)).double() @ E
looked_up.shape, looked_up[2, :6]  # the first six numbers of "cat"

# %% tags=["hide-input", "check"]
assert E.shape == (605, 128)
assert torch.equal(looked_up, multiplied)

# %% [markdown]
# Then comes the factor, √128 ≈ 11.3:

# %%
d_model = E.shape[1]
x = looked_up * math.sqrt(d_model)
x[2, :6]

# %% tags=["hide-input", "check"]
assert x.shape == (9, 128)  # (S, d_model)

# %% [markdown]
# ### With the sizes of the paper
#
# Here is a batch of the copy task: 30 sequences of 10 symbols, the first of which is always 1. The table's numbers are
# random, as described above, with a standard deviation of $512^{-1/2}$.

# %%
batch = torch.randint(1, 11, (30, 10))
batch[:, 0] = 1
table = torch.randn(11, 512) * 512**-0.5
x_batch = table[batch] * math.sqrt(512)
batch[:3], x_batch.shape, x_batch.std()

# %% tags=["hide-input", "check"]
assert batch.shape == (30, 10)  # (B, S)
assert x_batch.shape == (30, 10, 512)  # (B, S, d_model)
assert abs(table.std() - 0.044) < 0.002
assert abs(x_batch.std() - 1) < 0.05

# %% [markdown]
# ## The same from the library
#
# [model/embedding.py](../src/glassformer/model/embedding.py#InputEmbedding) is one class. Its
# [forward](../src/glassformer/model/embedding.py#InputEmbedding.forward) looks up, scales, adds the position, and
# applies [dropout](residual.py#dropout) (which acts only in training). The result of the first two steps can be
# recorded under the name `source.embedding`. Our nine rows are the same numbers:

# %%
with gf.record(model, "source.*") as trace:
    model.encode(source[None])  # [None]: a batch of one sentence

from_library = trace["source.embedding"][0]
list(trace), from_library.shape

# %% tags=["hide-input", "check"]
# The model computes in float32, which has seven digits; we computed in float64.
torch.testing.assert_close(from_library.double(), x, rtol=1e-6, atol=1e-6)

# %% [markdown]
# Now check the class by itself, in float64, with a fresh table and no positions, against the one-hot product:

# %%
from glassformer.model.embedding import InputEmbedding
from glassformer.model.positions import Positions

no_positions = Positions("none", d_model=512, max_length=10)
embedding = InputEmbedding(11, 512, no_positions, dropout=0.1).double().eval()
by_hand = F.one_hot(batch, 11).double() @ embedding.tokens.weight * math.sqrt(512)
embedding(batch).shape

# %% tags=["hide-input", "check"]
torch.testing.assert_close(embedding(batch), by_hand, rtol=0, atol=1e-12)

# %% [markdown]
# You can look at these numbers in the explorer, word by word: [the embedding of our
# sentence](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&sourceWord=1&zoom=%7B%22box%22:%22encoder.embedding%22,%22key%22:null%7D).
# Click a number to see how it was made.

# %% [markdown]
# ## A picture of the table
#
# On the left are some rows of the demo's real table, each a strip of 16 cells (the first 16 of its 128 columns). Blue
# is above 0, orange below; the stronger the colour, the larger the number. The rows that our sentence needs are
# highlighted. On the right, they appear in the order of the sentence. Look for "The" and "the": two rows, two patterns.
# And note that nothing was computed, only copied.

# %% tags=["hide-input"]
from matplotlib.colors import to_rgb
from matplotlib.patches import ConnectionPatch

lit = source.tolist()
shown = sorted({*range(6), *lit, *(id + 1 for id in lit)})
lines = []
for place, id in enumerate(shown):
    lines += [None] * (place > 0 and shown[place - 1] != id - 1) + [id]

width = 16
full = 0.6 * E[shown, :width].abs().max().item()


def strip(row, strength=1.0):
    """Return the colours of one row."""
    return [(*to_rgb(pictures.BLUE if v >= 0 else pictures.ORANGE), strength * min(1, abs(v) / full)) for v in row]


blank = [(0, 0, 0, 0)] * width
figure, (left, right) = pictures.canvas(7.4, 0.215 * len(lines) + 0.5, ncols=2)
figure.get_layout_engine().set(wspace=0.3)
left.imshow([blank if id is None else strip(E[id, :width], 1 if id in lit else 0.22) for id in lines], aspect="auto")
left.set_yticks(range(len(lines)), ["⋮" if id is None else f"{tokenizer.tokens([id])[0]}  {id}" for id in lines])
for label, id in zip(left.get_yticklabels(), lines, strict=True):
    label.set_alpha(1 if id in lit else 0.55)
    label.set_weight("bold" if id in lit else "normal")

offset = (len(lines) - len(lit)) / 2
right.imshow([strip(E[id, :width]) for id in lit], aspect="auto")
right.set_ylim(len(lines) - offset - 0.5, -offset - 0.5)
right.yaxis.tick_right()
right.set_yticks(range(len(lit)), tokenizer.tokens(lit))
for axes, title in ((left, "the table E: token and id"), (right, "the sentence, row by row")):
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)

for place, id in enumerate(lit):
    start, end = (width - 0.3, lines.index(id)), (-0.7, place)
    line = ConnectionPatch(start, end, "data", "data", axesA=left, axesB=right, color=pictures.GREY, alpha=0.8)
    line.set_annotation_clip(False)
    figure.add_artist(line)

pictures.picture(
    figure,
    "Rows of the embedding table on the left; lines lead from the nine rows of the sentence to the right, where they "
    "stand in the order of its words: The, black, cat, sat, on, the, couch, full stop, end of sequence.",
)

# %% [markdown]
# ## Near "cat"
#
# Rows are points in a space of 128 dimensions. Which points lie near each other? The usual measure is the **cosine
# similarity** of two vectors $a$ and $b$: their dot product, divided by both lengths. It lies between −1 and 1:
#
# $$ \cos(a, b) = \frac{a \cdot b}{|a| \, |b|} $$

# %%
unit = E / E.norm(dim=1, keepdim=True)
cosines = unit @ unit.T  # (605, 605): each word with each word


def nearest(word, count=6):
    """Return the words whose rows have the largest cosine with this word's row."""
    own = cosines[tokenizer.vocabulary.id(word)]
    # Place 0 is the word itself.
    best = own.argsort(descending=True)[1 : count + 1].tolist()
    return {tokenizer.vocabulary.tokens[id]: round(own[id].item(), 2) for id in best}


for word in ("cat", "tired", "three", "slept"):
    print(word, nearest(word))

# %% [markdown]
# How large a cosine could be chance? Two rows of 128 random numbers have a cosine of about $0 \pm 1/\sqrt{128}$, which
# is ±0.09. So 0.3 is well above chance and far below 1: these words share *something*, in a few of their many
# directions. The picture compares the neighbours of "cat" with this yardstick, and with a word that you may have
# expected.

# %% tags=["hide-input"]
one, several = tokenizer.encode("cat cats")
bars = {**nearest("cat", 7), "cats": cosines[one, several].item()}
pictures.bars(
    {**bars, "chance (1/√128)": 128**-0.5},
    numbers=".2f",
    x_label='cosine with the row of "cat"',
    alt="Bars of the cosine similarity with cat: its seven nearest words, the plural cats, and chance at 0.09.",
)

# %% [markdown]
# Be careful what you read into this. Are these neighbours animals? The demo's grammar knows 130 nouns, what kind of
# thing each of them is, and the gender of its French translation. So we can count:

# %%
from glassformer.corpus.tasks.world.nouns import NOUNS

known = {noun.english: noun for noun in NOUNS}
near = [known[word] for word in nearest("cat", 20) if word in known][:10]
animals_near = sum(noun.kind in ("pet", "beast") for noun in near)
masculine_near = sum(noun.gender == "m" for noun in near)
print("the nouns nearest to cat:", ", ".join(noun.english for noun in near))
print(f"animals: {animals_near} of {len(near)}; masculine in French: {masculine_near} of {len(near)}")
print("cats is", "among" if "cats" in nearest("cat", 20) else "not among", "the 20 nearest words")

# %% [markdown]
# The model has never seen a cat. It learned one task, English to French. For this task, *chat*, *chien*, *grand-père*
# and *mur* (wall) have one thing in common: they are masculine, and the words around them must agree. You can test
# this idea: compare the average cosine of pairs of nouns.

# %%
nouns = [noun for noun in NOUNS if noun.english in tokenizer.vocabulary]
places = [tokenizer.vocabulary.id(noun.english) for noun in nouns]
between = cosines[places][:, places]  # each noun with each noun
different = torch.tensor([[a != b for b in places] for a in places])
feminine = torch.tensor([noun.gender == "f" for noun in nouns])
animal = torch.tensor([noun.kind in ("pet", "beast") for noun in nouns])
same_gender = (feminine[:, None] == feminine) & different
other_gender = feminine[:, None] != feminine
animals = animal[:, None] & animal
means = {
    "two animals, same gender in French": between[animals & same_gender].mean().item(),
    "two nouns, same gender in French": between[same_gender].mean().item(),
    "two animals, different gender": between[animals & other_gender].mean().item(),
    "two nouns, different gender": between[other_gender].mean().item(),
}
{pair: round(mean, 2) for pair, mean in means.items()}

# %% tags=["hide-input", "check"]
assert between[same_gender].mean() > between[other_gender].mean() + 0.05

# %% [markdown]
# So the vectors of *English* words contain the gender of their *French* translations. They also contain a little about
# animals. Similar rows belong to words that this task treats in a similar way. The things that the words name need not
# be similar.

# %% [markdown]
# ## One matrix, three jobs
#
# A Transformer has three places for a matrix with one row per word: the source embedding, the target embedding, and the
# output, which compares the decoder's result with each word of the vocabulary. In the paper, all three are **one**
# matrix (§3.4). With a joint vocabulary this is the default, and you can switch off each tie.

# %%
shared = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))

untied = {"tie_embeddings": False, "tie_output": False}
separate = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11, **untied))

model.source.tokens.weight.shape, model.target.tokens.weight.shape

# %% tags=["hide-input", "check"]
# "is": the same object, not an equal copy
assert shared.source.tokens.weight is shared.target.tokens.weight
assert shared.output.weight is shared.target.tokens.weight
assert separate.source.tokens.weight is not separate.target.tokens.weight
assert separate.output.weight is not separate.target.tokens.weight
# The demo has an English and a French vocabulary:
# the source has its own matrix; target and output share one.
assert model.source.tokens.weight is not model.target.tokens.weight
assert model.output.weight is model.target.tokens.weight

# %% [markdown]
# How much does this save? Let us count the parameters of the paper's base model. The device "meta" gives tensors a
# shape but no memory, so counting takes neither time nor space.


# %%
def parameters(**choices):
    """Return the number of parameters of the paper's base model with these settings."""
    with torch.device("meta"):
        config = gf.ModelConfig.preset("base", vocab_size=37000, **choices)
        base = gf.Transformer(config)
    return sum(parameter.numel() for parameter in base.parameters())


one, three = parameters(), parameters(**untied)
one, three

# %% tags=["hide-input", "check"]
assert one == 63_082_496
assert three - one == 2 * 37000 * 512

# %% [markdown]
# The job at the output is the reason why the entries have to start small. There, a word's score (its *logit*) is the
# dot product of the word's row with the decoder's output, whose entries are about 1 in size:

# %%
result = torch.randn(1000, 512)
logits = result @ (torch.randn(37, 512) * 512**-0.5).T
too_large = result @ torch.randn(37, 512).T
logits.std(), too_large.std()

# %% tags=["hide-input", "check"]
assert abs(logits.std() - 1) < 0.1
assert abs(too_large.std() - math.sqrt(512)) < 2

# %% [markdown]
# N(0, 1) is a normal distribution with mean 0 and standard deviation 1. With rows drawn from N(0, 1), the first scores
# would be about ±22.6 instead of ±1, so the untrained model would give high probabilities to wrong words. At the input,
# the factor √d_model makes up for the small entries.

# %% [markdown]
# ## Pretrained vectors
#
# Rows need not start out random. Word vectors that were trained on a large text can be put into the table before
# training. Training then continues to change them, or leaves them as they are if they are **frozen**. The usual file is
# plain text: after an optional header, each line has a word and its numbers. Here is a tiny file for a model with
# d_model = 4:

# %%
from glassformer.corpus.vectors import read_vectors

entries = ["<pad>", "<bos>", "<eos>", "<unk>", "cat", "dog", "sat"]
text = """\
3 4
cat 0.5 0.1 0.0 -0.2
dog 0.4 0.2 0.0 -0.1
zebra 0.3 0.3 0.9 0.0
"""
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tiny.vec"
    path.write_text(text, encoding="utf-8")
    vectors, found = read_vectors(path, entries)

vectors, found

# %% [markdown]
# The file has vectors for two words of the vocabulary, and one for "zebra", which is not in the vocabulary.
# `load_vectors` replaces only the rows that were found:

# %%
no_positions = Positions("none", d_model=4, max_length=10)
small = InputEmbedding(len(entries), 4, no_positions, dropout=0.0).eval()
before = small.tokens.weight.detach().clone()
small.load_vectors(torch.from_numpy(vectors), torch.from_numpy(found), freeze=True)
after = small.tokens.weight.detach()
scaled = small(torch.tensor([[4]]))[0, 0]  # "cat", times √4
scaled

# %% tags=["hide-input", "check"]
assert torch.equal(after[4], torch.tensor([0.5, 0.1, 0.0, -0.2]))
assert torch.equal(after[[0, 1, 2, 3, 6]], before[[0, 1, 2, 3, 6]])
assert not small.tokens.weight.requires_grad  # frozen: training does not change it
torch.testing.assert_close(scaled, torch.tensor([1.0, 0.2, 0.0, -0.4]))

# %% [markdown]
# For a whole model, call `model.source.load_vectors(…)`. In a recipe, the file that describes a training run, the
# vectors have their own section:
#
# ```toml
# [embeddings]
# source = "vectors.en.vec"
# freeze = false
# ```
#
# There are three things to know. The factor √d_model applies to these rows as well, so divide vectors with entries of
# size 1 by √d_model first. `freeze` freezes the whole matrix, including the random rows of words that were not in the
# file. And if the matrix is shared, the change applies wherever the matrix is used.

# %% [markdown]
# ## The row of padding
#
# `<pad>` has a row like any other id, and the lookup copies it. This does no harm: a *mask* keeps other positions from
# looking there ([masks](masks.py)), and the *loss*, the number that training makes small, does not count the
# predictions there. So nothing ever pushes the source's padding row: its gradient, which says how a number should
# change in [training](training.py), is exactly 0.

# %%
# The second sentence is shorter and ends with two <pad>.
sources = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
inputs = torch.tensor([[1, 4, 5, 6], [1, 7, 0, 0]])
wanted = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
# (B, T, V) -> (B·T, V), with T, the length of the target
logits = separate(sources, inputs).flatten(0, 1)
F.cross_entropy(logits, wanted.flatten(), ignore_index=0).backward()
gradient = separate.source.tokens.weight.grad
gradient.norm(dim=1)  # one length per row: 0 for ids that did not occur, and for padding

# %% tags=["hide-input", "check"]
assert torch.equal(gradient[0], torch.zeros(128))
assert (gradient[[2, 4, 5, 6, 7]] != 0).any(dim=1).all()

# %% [markdown]
# Some code sets the row of padding to zeros (`padding_idx=0` in PyTorch) and relies on zeros being harmless. Zeros are
# not a mask: a position is added to them a moment later, and even a zero vector gets a share of attention if no mask
# hides it ([why](errata.py#zero-is-not-minus-infinity)).

# %% [markdown]
# ## What goes wrong
#
# All of these mistakes except one run without an error. They are easy to write and hard to see.
#
# ### Embeddings that drown the positions
#
# `torch.nn.Embedding` draws its rows from N(0, 1). Multiply these rows by √512 ≈ 22.6, and the values reach ±70 and more,
# while the positions stay within ±1 ([errata](errata.py#embeddings-that-drown-the-positions)). The opposite mistake,
# small rows without the factor ([errata](errata.py#no-scaling-of-the-embedding)), drowns the words.

# %%
unscaled = torch.randn(11, 512)  # what torch.nn.Embedding(11, 512) does by default
(unscaled * math.sqrt(512)).abs().max(), gf.sinusoids(10, 512).abs().max()

# %%
in_position = gf.sinusoids(10, 512).square().mean()
sizes = {
    "N(0, 1), × √512": unscaled * math.sqrt(512),
    "N(0, 1/512), × √512": table * math.sqrt(512),
    "N(0, 1/512), no factor": table,
}
shares = {}
for name, rows in sizes.items():
    in_words = rows.square().mean()
    shares[name] = 100 * (in_position / (in_words + in_position)).item()

{name: round(share, 1) for name, share in shares.items()}

# %% tags=["hide-input", "check"]
assert (unscaled * math.sqrt(512)).abs().max() > 60
assert shares["N(0, 1), × √512"] < 0.2
assert 30 < shares["N(0, 1/512), × √512"] < 37
assert shares["N(0, 1/512), no factor"] > 99

# %% [markdown]
# (In N(0, 1/512) the second number is the variance, the square of the standard deviation.) The percentages give the
# position's share of the sum word + position, measured by squared length. Look at the bar in the middle: only there are
# word and position of comparable size.

# %% tags=["hide-input"]
pictures.bars(
    shares,
    x_label="share of the position in word + position, in %",
    alt="Three bars: with N(0,1) and the factor the position has 0.1 percent, "
    "with small rows and the factor 33 percent, with small rows and no factor 99.6 percent.",
)

# %% [markdown]
# A model that starts from either extreme first has to correct it in training. And a model that was trained *with* the
# factor fails without it. `plant` makes the demo forget the factor for a moment:

# %%
from glassformer.watch.inspection import plant

with plant(model, "no_embedding_scale"):
    [broken] = translator.translate([sentence])

[right] = translator.translate([sentence])
right.text, broken.text[:60]

# %% tags=["hide-input", "check"]
assert broken.text != right.text

# %% [markdown]
# ### Off by one in the vocabulary
#
# Ids 1 to 10 are ten symbols, but the table also needs a row for 0: 11 rows, not 10. (And the number of rows has
# nothing to do with d_model, which is the number of columns.) Here PyTorch is kind enough to complain, and the library
# says what it expected ([errata](errata.py#off-by-one-in-the-vocabulary)):

# %%
ten_rows = InputEmbedding(10, 4, no_positions, dropout=0.0)
try:
    ten_rows(torch.tensor([[1, 10]]))
except gf.VocabularyError as error:
    message = str(error)

message

# %% [markdown]
# Ids that are one too small are worse, because they cause no error: each is the id of a different word, and indexing a
# tensor with −1 takes its last row.

# %%
tokenizer.tokens([id - 1 for id in ids])  # our sentence, each id one too small

# %% tags=["hide-input", "check"]
assert torch.equal(E[-1], E[604])

# %% [markdown]
# ### "Similar words' dot products tend to 1"
#
# They do not. A dot product is not bounded: it grows with the length of both vectors. If each vector is first divided
# by its length, the dot product is a cosine, and only then is 1 the largest value
# ([errata](errata.py#dot-products-are-not-bounded)).

# %%
cat, dog = E[tokenizer.encode("cat dog")] * math.sqrt(d_model)
cosine = F.cosine_similarity(cat, dog, dim=0)
print(f"cat · cat = {cat @ cat:.1f}   cat · dog = {cat @ dog:.1f}")
print(f"(2 cat) · dog = {(2 * cat) @ dog:.1f}")
print(f"cosine of cat and dog = {cosine:.3f}, the same as for (2 cat) and dog")

# %% tags=["hide-input", "check"]
assert cat @ cat > 50
torch.testing.assert_close((2 * cat) @ dog, 2 * (cat @ dog))
torch.testing.assert_close(F.cosine_similarity(2 * cat, dog, dim=0), cosine)

# %% [markdown]
# ## In short
#
# - Each token's id picks a row of a table, and this row, the token's embedding, is the vector that the model computes
#   with.
# - The lookup gives the same numbers as a one-hot vector times the table, and the table's numbers are learned like all
#   other weights.
# - In the paper one matrix serves as the source's table, the target's table and the output, and the rows that are
#   looked up are multiplied by $\sqrt{d_\mathrm{model}}$.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* How many numbers are in the embedding matrix of the base model ($V$ = 37 000)? What share of
# the model's 63 082 496 parameters is that?
#
# <details><summary>Hint</summary>
#
# The table has one row for each word of the vocabulary, and each row is as wide as the model.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of numbers
print(verdict("embeddings.1", answer))

# %% tags=["hide-cell"]
count = 37000 * 512
assert verdict("embeddings.1", count) == "right"
assert round(100 * count / 63_082_496) == 30
count, count / 63_082_496

# %% [markdown]
# **2.** *Medium · 6 min.* Undo the lookup: write a function that takes the scaled vectors of a sentence, without
# positions, and returns the ids.
#
# <details><summary>Hint</summary>
#
# `torch.cdist(a, b)` returns the distance from each row of `a` to each row of `b`. Undo the scaling first.
#
# </details>


# %% tags=["hide-cell"]
def ids_of(vectors):
    """Return, for each vector, the id of the nearest row."""
    return torch.cdist(vectors / math.sqrt(d_model), E).argmin(dim=1)


assert ids_of(x).tolist() == source.tolist()
assert ids_of(E * math.sqrt(d_model)).tolist() == list(range(605))  # each entry is found
tokenizer.tokens(ids_of(x).tolist())

# %% [markdown]
# **3.** *Easy · 3 min.* Add up the one-hot vectors of a sentence before you multiply by $E$. What do you get, and what
# has been lost?
#
# <details><summary>Hint</summary>
#
# Multiplying by $E$ is linear: the product of a sum is the sum of the products.
#
# </details>

# %% tags=["hide-cell"]
counts = F.one_hot(source, len(E)).double().sum(dim=0)  # how often each word occurs
torch.testing.assert_close(counts @ E, looked_up.sum(dim=0))
turned_round = source.flip(0)
assert torch.equal(counts, F.one_hot(turned_round, len(E)).double().sum(dim=0))
"the sum of the words' rows; the order of the words is lost"

# %% [markdown]
# **4.** *Medium · 8 min.* Which rows of the table does one training step change? Show that the gradient of $E$ is the
# transposed one-hot matrix times the gradient that arrives at the looked-up rows. What happens to a word that occurs
# twice?
#
# <details><summary>Hint</summary>
#
# Take `weights[sequence]` for a small table, multiply it by a gradient that you chose, and call `backward`. Which row
# of the one-hot matrix belongs to which place of the sentence?
#
# </details>

# %% tags=["hide-cell"]
weights = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
arriving = torch.randn(4, 4, dtype=torch.float64)
(weights[sequence] * arriving).sum().backward()  # the gradient at weights[sequence] is arriving
torch.testing.assert_close(weights.grad, one_hots.T @ arriving)
torch.testing.assert_close(weights.grad[7], arriving[1] + arriving[2])  # 7 occurs twice
changed = weights.grad.ne(0).any(dim=1).nonzero().flatten()
assert changed.tolist() == [1, 3, 7]  # only the rows of [1, 7, 7, 3]
weights.grad

# %% [markdown]
# **5.** *Easy · 2 min · on the stage.* Which single word of the sentence makes *it* feminine in French? [Try it on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=changes&task=what_if):
# the page says when the model writes “elle”.
#
# <details><summary>Hint</summary>
#
# “La rue” is feminine. Click a word under *Words*, and give the animal a property that only a street has.
#
# </details>
#
# ## Next
#
# The vectors know which words the sentence has, but not their order: "The dog saw the cat." and "The cat saw the dog."
# have the same rows. [Positions](positions.py) put that right.
