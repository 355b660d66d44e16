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
# # The Transformer in ten minutes
#
# This page is a tour with pictures. It needs no mathematics and no programming, and you can print it. All words and
# numbers on it come from a small model that translates English into French. `make demo` trains this model in about
# four minutes. If you like to click rather than read, open [the chapters of the
# explorer](../runs/demo/explorer.html#chapter=1).

# %% tags=["hide-input"]
import copy
import json
from pathlib import Path

import torch
from IPython.display import Markdown

import glassformer as gf
from glassformer.bundle import put_weights, read_weights
from glassformer.training.snapshots import Snapshots
from glassformer.watch import pictures
from glassformer.watch.inspection import without_heads
from glassformer.watch.pictures import BLUE, GREEN, GREY, ORANGE, Box

translator = gf.Translator.load("../runs/demo")
model, bundle = translator.model.eval().requires_grad_(False), translator.bundle
english, french = bundle.source_tokenizer, bundle.target_tokenizer
bos, eos = bundle.model_config.bos_id, bundle.model_config.eos_id
layers, heads = bundle.model_config.decoder_layers, bundle.model_config.heads
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = TIRED.replace("tired", "wide")


def traced(source, target):
    """Return English tokens, French tokens that are written, and every number of the forward pass."""
    source_ids = [*english.encode(source), eos]
    target_ids = [*french.encode(target), eos]
    with gf.record(model) as trace:
        model(torch.tensor([source_ids]), torch.tensor([[bos, *target_ids[:-1]]]))
    return english.tokens(source_ids), french.tokens(target_ids), trace


# %% [markdown]
# ## A sentence goes in, a translation comes out
#
# Here are two English sentences, which differ in their last word, and what the model writes:

# %% tags=["remove-input"]
tired, wide = (one.text for one in translator.translate([TIRED, WIDE]))
Markdown(f"| English | the model's French |\n|---|---|\n| {TIRED} | {tired} |\n| {WIDE} | {wide} |")

# %% [markdown]
# Look at the word for *it*. An animal is masculine in French, a street is feminine. So *it* becomes *il* where the
# animal is meant, and *elle* where the street is meant. English does not say which: you know that animals get tired and
# streets are wide. Nobody gave the model a rule for this. It has seen pairs of sentences, and nothing else.
#
# How can a machine made of numbers do that? Follow one sentence through it.
#
# ## Words become numbers
#
# The model cuts a sentence into *tokens*: words and punctuation marks. Each token has a row of numbers, called its
# *embedding*. Training has chosen these numbers. Here is the beginning of each row: blue numbers are positive, orange
# numbers are negative, and a strong colour means a large number.

# %% tags=["remove-input"]
tokens, written, trace = traced(TIRED, tired)
embedding = trace["source.embedding"][0]
pictures.heat_map(
    embedding[:, :40],
    tokens,
    None,
    column_label=f"the first 40 of {embedding.shape[1]} numbers",
    alt="A row of coloured cells for each English token: its embedding. Equal words have equal rows.",
)

# %% [markdown]
# The rows alone do not say which word comes first. So the model adds a second table. It has one row per position, made
# of waves, so that no two positions have the same row.

# %% tags=["remove-input"]
pictures.heat_map(
    trace["source.positions"][:, :40],
    [str(place) for place in range(len(tokens))],
    None,
    row_label="position",
    column_label="the first 40 numbers",
    alt="A row for each position: waves, fast at the left and slow at the right.",
)

# %% [markdown]
# ## Each word looks at the others
#
# Now comes the step that gave the paper its title: *attention*. Each word asks a question (its *query*). Each word also
# shows what it has to offer (its *key*). Where a query and a key agree, the word that asks takes over much of the other
# word's content (its *value*). How much it takes from each word is a *weight*. The weights of one word are between 0
# and 1, and they sum to 1.
#
# The model does this several times at once, in *heads* that ask different questions. This encoder has several layers of
# heads. For each of the words *animal*, *street* and *tired*, the picture shows the head in which *it* looks hardest at
# that word. The thicker the line, the larger the weight.

# %% tags=["remove-input"]
it, clues = tokens.index("it"), ("animal", "street", "tired")
weights = torch.cat([trace[f"encoder.layers.{layer}.self_attention.weights"][0] for layer in range(layers)])
hardest = {clue: weights[:, it, tokens.index(clue)].argmax().item() for clue in clues}
shown = list(dict.fromkeys(hardest.values()))
pictures.attention_lines(
    weights[shown],
    tokens,
    tokens,
    query=it,
    names=[f"layer {place // heads}, head {place % heads}" for place in shown],
    alt="Lines from “it” to the other words, of the heads that look hardest at “animal”, “street” and “tired”.",
)

# %% tags=["remove-input"]
shares = [
    f"- head {place % heads} of layer {place // heads} gives “{clue}” {weights[place, it, tokens.index(clue)]:.0%} of its weight"
    for clue, place in hardest.items()
]
equal = f"Equal shares would be {1 / len(tokens):.0%}. Layers and heads are counted from 0."
Markdown("\n".join(["In numbers:", "", *shares, "", equal]))

# %% [markdown]
# A share that is hardly larger than an equal share tells little. Further down, you will see who decides what *it* means.
#
# ## Then each word works by itself
#
# After looking around, each word passes through a small network of its own, the *feed-forward* network. Attention mixes
# words; this network works on what one word has gathered. Both steps *add* their result to the word's row, and do not
# replace it. So what a word was in the beginning is never lost. The two steps together are a *layer*.

# %% tags=["remove-input"]
pictures.flow(
    {
        "in": Box("a row per word", 0, 0, GREY),
        "attention": Box("look at the other words", 1.7, 0.8, ORANGE, "attention.py", 1.5),
        "add 1": Box("+", 0, 1.6, GREEN, "residual.py", 0.4),
        "network": Box("work by itself", 1.7, 2.4, BLUE, "feed_forward.py", 1.5),
        "add 2": Box("+", 0, 3.2, GREEN, "residual.py", 0.4),
        "out": Box("a row per word, which knows more", 0, 4.2, GREY, "", 1.8),
    },
    [
        ("in", "add 1"),
        ("in", "attention"),
        ("attention", "add 1"),
        ("add 1", "add 2"),
        ("add 1", "network"),
        ("network", "add 2"),
        ("add 2", "out"),
    ],
    row=0.6,
    alt="One layer: the rows of the words go up in a straight line, and two steps beside the line add to them.",
)

# %% tags=["remove-input"]
count = {1: "one layer", 2: "two layers"}.get(layers, f"{layers} layers")
Markdown(
    f"This model's encoder has {count}; the paper's has six. What comes out is the *memory*: one row for each English "
    f"token, {len(tokens)} rows here, in which each word has learned from the others."
)

# %% [markdown]
# ## The French is written word by word
#
# The second half of the model is the *decoder*. It writes one word at a time. At each step it reads what it has written
# so far, looks at the English rows in the memory, and gives a probability to each French word that it knows. The most
# likely word is written, and the next step begins. Move the slider:

# %% tags=["remove-input"]
log_probs = trace["log_probs"][0]
frames, captions = [], []
for step, word in enumerate(written):
    top = log_probs[step].exp().topk(5)
    likely = dict(zip(french.tokens(top.indices.tolist()), top.values.tolist(), strict=True))
    alt = "Next word: " + ", ".join(f"{name} {value:.2f}" for name, value in likely.items())
    frames.append(pictures.bars(likely, x_label="probability", numbers=".2f", alt=alt, width=5.4))
    captions.append(f"after “{' '.join(written[:step]) or '(nothing)'}”: “{word}”")

pictures.player(frames, captions)

# %% [markdown]
# While it writes, the decoder looks at the English words, again with attention. This *cross-attention* is the only way
# from the English to the French. Here is where it looks at each step, averaged over all heads. Most steps look at the
# word that they translate, even where French has another order:

# %% tags=["remove-input"]
cross = torch.stack([trace[f"decoder.layers.{layer}.cross_attention.weights"][0] for layer in range(layers)])
pictures.heat_map(
    cross.mean((0, 1)),
    [f"writes {word}" for word in written],
    tokens,
    numbers="",
    alt="A row for each French word that is written, a column for each English word; strong cells are large weights.",
)

# %% [markdown]
# One rule protects the training: a step must not look at words that come later. In training the whole French sentence
# is there, and a model that can see the answer learns nothing. So these words are hidden by a *mask*:

# %% tags=["remove-input"]
own = trace[f"decoder.layers.{layers - 1}.self_attention.weights"][0].mean(0)
own = own.masked_fill(torch.ones_like(own).triu(1).bool(), float("nan"))
pictures.heat_map(
    own,
    [f"writes {word}" for word in written],
    ["<bos>", *written[:-1]],
    numbers="",
    alt="A triangle: the step that writes a word sees the words before it, and the cells of later words are empty.",
)

# %% [markdown]
# ## Who decides between *il* and *elle*?
#
# You can ask the model itself. Switch one head of the cross-attention off, and see how much it still prefers the right
# pronoun. The bars show this preference for “… too tired”, once with all heads and once without each head: above 0 it
# writes *il*, below 0 *elle*. (The unit is the logarithm of how many times likelier *il* is than *elle*.)

# %% tags=["remove-input"]
il, elle = (french.encode(word)[0] for word in ("il", "elle"))
pronoun = written.index("il") if "il" in written else written.index("elle")


def preference(source, target):
    """Return log p(il) − log p(elle) at the step that writes the pronoun."""
    row = traced(source, target)[2]["log_probs"][0, pronoun]
    return (row[il] - row[elle]).item()


bars = {"all heads": preference(TIRED, tired)}
for layer in range(layers):
    for head in range(heads):
        with gf.intervene(model, without_heads({f"decoder.layers.{layer}.cross_attention": [head]})):
            bars[f"without {layer}.{head}"] = preference(TIRED, tired)

pictures.bars(
    bars,
    x_label="log p(il) − log p(elle)",
    numbers=".1f",
    alt="The preference for il with all heads, and without each head of the cross-attention.",
)

# %% [markdown]
# A long bar means: this head hardly matters. A short bar means: the model needs this head. Now switch off the heads one
# after the other, the strongest first, until the pronoun changes:

# %% tags=["remove-input"]
everything = bars.pop("all heads")
order = sorted(bars, key=bars.__getitem__)
off: dict[str, list[int]] = {}
for name in order:
    layer, head = map(int, name.removeprefix("without ").split("."))
    off.setdefault(f"decoder.layers.{layer}.cross_attention", []).append(head)
    with gf.intervene(model, without_heads(off)):
        without = translator.translate([TIRED])[0].text
    if without != tired:
        break

strongest = order[0].removeprefix("without ").replace(".", ", head ")
count = sum(map(len, off.values()))
Markdown(
    f"Without its strongest head (layer {strongest}), the preference falls from {everything:.1f} to "
    f"{bars[order[0]]:.1f}. The translation changes when {count} of the {len(order)} heads are off: “{without}”"
)

# %% [markdown]
# Where it takes several heads, they share one decision. [An experiment](experiments/pronoun.py) repeats this with
# hundreds of sentences and three models.
#
# ## How it learned this
#
# In the beginning, all rows and weights are random. Training shows the model a pair of sentences, compares its
# probabilities with the word that really comes next, and moves each number a little in the direction that would have
# made the right word likelier. This is repeated some thousand times. During the demo's training, snapshots of the model
# were kept. Each of them translates the same sentence:

# %% tags=["remove-input"]
rows = ["| step | translation of “… too wide” |", "|---|---|"]
for step, path in Snapshots(Path("../runs/demo/snapshots"), keep=0).paths().items():
    young = copy.deepcopy(model)
    put_weights(young, read_weights(path), str(path))
    rows.append(f"| {step} | {gf.Translator(bundle, young).translate([WIDE])[0].text} |")

log = [json.loads(line) for line in Path("../runs/demo/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
steps = [line for line in log if line["type"] == "step"]
rows.append(f"| {steps[-1]['step']} | {wide} |")
Markdown("\n".join(rows))

# %% tags=["remove-input"]
pictures.curves(
    {"training loss": ([line["step"] for line in steps], [line["loss"] for line in steps])},
    x_label="step",
    y_label="how surprised the model is",
    alt=f"The training loss falls from {steps[0]['loss']:.1f} to {steps[-1]['loss']:.2f}.",
)

# %% [markdown]
# ## What you have seen
#
# 1. Words become rows of numbers, and their positions are added.
# 2. In attention, each word looks at the others, in several heads at once.
# 3. A feed-forward network works on each word by itself. Both steps add to the row.
# 4. The encoder does this for the whole source sentence: the result is the memory.
# 5. The decoder writes word by word. It looks back at its own words and across at the memory.
# 6. Training makes the right next word likelier, again and again. Everything else follows from it.
#
# That is the whole Transformer. Its larger relatives have more layers, wider rows and more text, and hardly a step that
# is missing here.
#
# ## Where to go next
#
# - Change this sentence, switch heads off, make mistakes: [the explorer](../runs/demo/explorer.html).
# - See how each step is computed, with every number: [the chapters](overview.py).
# - Know a tutorial already? The [errata](errata.py) show what many tutorials get wrong.
