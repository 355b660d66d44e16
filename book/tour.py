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
# numbers on it come from a small model that translates English into French, and that two processor cores train in about
# four minutes. If you like to click rather than read, open [the chapters of the
# explorer](../runs/demo/explorer.html#chapter=1); the first one is "Attention".

# %% tags=["hide-input"]
import copy
import json
from itertools import pairwise

import torch
from IPython.display import Markdown

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.bundle import put_weights, read_weights
from glassformer.training.snapshots import Snapshots
from glassformer.watch import pictures
from glassformer.watch.inspection import without_heads
from glassformer.watch.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Box

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
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
# streets are wide. Nobody gave the model a rule for this. It has seen pairs of sentences and nothing else, and these two
# were not among them. (A small grammar drew the sentences at random, so some of them sound odd. In them, animals get
# tired and streets are wide, and never the other way round.)
#
# How can a machine made of numbers do that?
#
# ## Open the box
#
# From outside, the model is one box. Inside are two halves: the *encoder* reads the English and leaves its result, the
# *memory*. The *decoder* looks at the memory and at the French so far, and gives the next word, which joins the French so
# far. Each half is a stack of *layers*. The layers of a half are built alike, but each has its own numbers.

# %% tags=["remove-input"]
config = bundle.model_config
between = config.encoder_layers + 1  # columns: English, the encoder's layers, the memory, the decoder's layers, French
last = between + config.decoder_layers + 1
boxes = {
    "in": Box("English", 0, 6),
    "model": Box("the model", last / 2, 6, width=last - 1),
    "out": Box("French", last, 6),
}
arrows = [("in", "model"), ("model", "out")]
for row, opened in ((3.6, False), (0.6, True)):
    halves = {"encoder": [*range(1, between)], "decoder": [*range(between + 1, last)]}
    names = {half: [f"{half} {row} {column}" for column in columns] for half, columns in halves.items()}
    for half, colour in (("encoder", BLUE), ("decoder", ORANGE)):
        columns, link = halves[half], f"{half}.py"
        if opened:
            boxes |= {f"{half} {row} {column}": Box("layer", column, row, colour, link) for column in columns}
        else:
            names[half] = [f"{half} {row}"]
            boxes[f"{half} {row}"] = Box(half, sum(columns) / len(columns), row, colour, link, len(columns))
    boxes[f"in {row}"], boxes[f"out {row}"] = Box("English", 0, row), Box("next word", last, row)
    boxes[f"memory {row}"] = Box("memory", between, row + 0.9, GREEN)
    boxes[f"so far {row}"] = Box("French so far", between, row - 0.9, width=1.4)
    arrows += pairwise([f"in {row}", *names["encoder"], f"memory {row}"])
    arrows += pairwise([f"so far {row}", *names["decoder"], f"out {row}"])
    arrows += [(f"memory {row}", name) for name in names["decoder"]]

pictures.flow(
    boxes,
    arrows,
    column=1.05,
    row=0.6,
    alt="The model three times: as one box between English and French; as an encoder, a memory and a decoder, which also "
    f"reads the French so far; and with the layers: {config.encoder_layers} in the encoder and {config.decoder_layers} in "
    "the decoder, each of which looks at the memory.",
)

# %% [markdown]
# Now follow one sentence through the model.
#
# ## Words become numbers
#
# The model cuts a sentence into *tokens*: words and punctuation marks. Each token has a row of numbers, called its
# *embedding*. Training has chosen these numbers. Here is the beginning of each row: blue numbers are positive, orange
# numbers are negative, and a strong colour means a large number. The last token, `<eos>`, is a mark for the end of the
# sentence.

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
# The rows alone do not say which word comes first. So there is a second table, with a row for each position, and it is
# added number by number: the word's row + the position's row. The second table is made of waves, so that no two
# positions have the same row.

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
# ## Each step looks at the words
#
# Now comes what gave the paper about this model its title, *Attention Is All You Need*. Stop at the moment when the decoder has written as far as
# *parce qu'* and has to choose between *il* and *elle*. This step
#
# - asks a question, its <span style="color: #8f6ac8">**query**</span>;
# - compares the question with what each English word shows of itself, the word's
#   <span style="color: #d1495b">**key**</span>;
# - takes over content from the words whose keys fit, their <span style="color: #3b9150">**values**</span>.
#
# How much it takes from each word is a *weight*. The weights are between 0 and 100 %, and they sum to 100 %.
#
# Query, key and value are rows of numbers, too. Each is computed from a word's row, in a way that training has found. For
# this step, the query comes from the row of the French word written last, *qu'*. This row has already taken in the French
# words before it. To compare a query with a key, the model multiplies their numbers place by place and adds up the
# products. The sum is large where the two rows agree, and a larger sum gives a larger weight.
#
# The model does all this several times at once, in *heads* that ask different questions. Here is one of the heads, first
# for "… too tired", then for "… too wide". The thicker a line, the larger the weight:

# %% tags=["remove-input"]
wide_tokens, wide_written, wide_trace = traced(WIDE, wide)


def pronoun_weights(trace, written):
    """Return the weights of each head of the cross-attention, over English tokens, at the step that writes il or elle."""
    step = next(place for place, word in enumerate(written) if word in ("il", "elle"))
    return torch.cat([trace[f"decoder.layers.{layer}.cross_attention.weights"][0, :, step] for layer in range(layers)])


def look(weights, tokens, word):
    """Draw a head: its query above, the key and the value of each English word, and below what the step takes over."""
    figure, axes = pictures.canvas(7.4, 3.4)
    middle, style = (len(tokens) - 1) / 2, {"marker": "s", "zorder": 3}
    for place, (token, weight) in enumerate(zip(tokens, weights.tolist(), strict=True)):
        thick = {"linewidth": 8 * weight, "alpha": 0.25 + 0.75 * weight, "solid_capstyle": "butt"}
        axes.plot([middle, place], [4, 2.7], color=PURPLE, **thick)
        axes.plot([place, middle], [1.3, 0], color=GREEN, **thick)
        axes.scatter(place, 2.7, s=70, color=RED, **style)
        axes.scatter(place, 1.3, s=70, color=GREEN, alpha=0.25 + 0.75 * weight, **style)
        heavy = "bold" if weight >= 0.2 else "normal"
        axes.text(place, 2.2, token, ha="center", va="center", fontsize=8.5, weight=heavy)
        if weight >= 0.005:
            axes.text(place, 1.75, f"{weight:.0%}", ha="center", va="center", fontsize=8.5, weight=heavy)
    axes.scatter(middle, 4, s=150, color=PURPLE, **style)
    axes.scatter(middle, 0, s=150, color=GREEN, **style)
    axes.text(middle + 0.4, 4.05, f"query of the step that writes “{word}”", color=PURPLE, va="center", fontsize=9)
    axes.text(middle + 0.4, -0.1, "what the step takes over", color=GREEN, va="center", fontsize=9)
    axes.text(-0.6, 2.7, "keys", color=RED, ha="right", va="center", fontsize=9)
    axes.text(-0.6, 1.3, "values", color=GREEN, ha="right", va="center", fontsize=9)
    axes.set(xlim=(-1.6, len(tokens) - 0.4), ylim=(-0.4, 4.4))
    axes.axis("off")
    return pictures.picture(
        figure,
        f"A head while “{word}” is written: lines from the query to the keys of the English words, and from their values "
        "to what the step takes over.",
    )


by_tired, by_wide = pronoun_weights(trace, written), pronoun_weights(wide_trace, wide_written)
at = {word: tokens.index(word) for word in ("animal", "street", "tired")}  # "wide" stands where "tired" does
noun_head = (by_tired[:, at["animal"]] * by_wide[:, at["street"]]).argmax().item()
clues = [[head for head, row in enumerate(one) if row[at["tired"]] > 0.5] for one in (by_tired, by_wide)]
earlier = [head // heads < noun_head // heads for heads_of_one in clues for head in heads_of_one]
look(by_tired[noun_head], tokens, "il" if "il" in written else "elle")

# %% tags=["remove-input"]
look(by_wide[noun_head], wide_tokens, "il" if "il" in wide_written else "elle")

# %% tags=["remove-input"]
same = (
    f"This is head {noun_head % heads} of layer {noun_head // heads}, one of {layers * heads}. "
    "(Layers and heads are counted from 0.)"
)
noun = (
    f"It gives {by_tired[noun_head, at['animal']]:.0%} of its weight to “animal” in the first sentence, and "
    f"{by_wide[noun_head, at['street']]:.0%} to “street” in the second."
)
named = [", ".join(f"{head // heads}.{head % heads}" for head in one) or "–" for one in clues]
clue = (
    "How does it know where to look? These heads give more than half of their weight to the last word: "
    f"{named[0]} to “tired”, {named[1]} to “wide”. (0.3 is head 3 of layer 0.)"
)
if all(clues) and all(earlier):
    before = "They work in an earlier layer, so the question of the head above can depend on what they have read."
elif any(earlier):
    before = (
        "Some of them work in an earlier layer, so the question of the head above can depend on what they have read."
    )
else:
    before = (
        "None works in an earlier layer, so the question of the head above must depend on this word in another way."
    )

both = min(by_tired[noun_head, at["animal"]], by_wide[noun_head, at["street"]]) > 0.5
verdict = (
    "Only one word has changed, and the same head looks at another noun."
    if both
    else "In this model, no head gives most of its weight to the right noun in both sentences."
)
equal = f"Equal shares would be {1 / len(tokens):.0%} for each token."
Markdown("\n".join([same, noun, equal, verdict, "", clue, before]))

# %% [markdown]
# Looking is not deciding: further down, you can see what happens without a head.
#
# The English words look at one another in the same way, in the encoder, before the French is begun. There, each word
# has a query, a key and a value of its own.
#
# ## Then each word works by itself
#
# After looking around, each word passes alone through a small network, the *feed-forward* network, which is the same for
# all words. Attention mixes words; this network works on what one word has gathered. Both *add* their result to the
# word's row, and do not replace it. So what a word was in the beginning stays in the sum. This row, to which each part
# adds, is called the *residual stream*. The two parts together are a *layer*. (A layer of the decoder has a third part,
# because it looks at the English and at the French so far.)

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
    alt="One layer: the rows of the words go up in a straight line, and two parts beside the line add to them.",
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
# The decoder writes one word at a time. At each step it reads what it has written
# so far, looks at the English rows in the memory, and gives a probability to each French word that it knows. The most
# likely word is written, and the next step begins. (No word gets much more than 0.9. In training, the
# model was told to leave a tenth of the probability to other words.) Move the slider:

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
# While it writes, the decoder looks at the English words, as you have seen. This *cross-attention* is the only way
# from the English to the French. Here is where it looks at each step, averaged over all heads. Most steps look at the
# word that they translate:

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
# The decoder also looks back at the French, but never at later words. In training, the whole French sentence is there,
# and a model that can see the answer learns only to copy it. So a *mask* hides from each word the words after it. While the
# model translates, the newest word has no words after it. But if the rows of the earlier words were computed again without
# the mask, they would look at words written since, which they never did in training. With the mask, these rows
# stay as they were, and need not be computed again.
#
# The picture shows where each step looks among the French words, averaged over the heads of the last layer. A row is a
# step, a column is a word that the decoder reads, and a strong cell is a large weight. The cells of later words are empty.
# The first column, `<bos>`, is a mark for the beginning of the sentence: it gives the first step something to read.

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
# The model itself can answer: one head of the cross-attention is switched off, and we see how much more likely the right
# pronoun still is. For "… too tired", the bars say how many times as likely *il* is as *elle*: once with all heads, then
# without each of the heads that matter most. (At 1, both words are equally likely.)

# %% tags=["remove-input"]
il, elle = (french.encode(word)[0] for word in ("il", "elle"))
pronoun = written.index("il") if "il" in written else written.index("elle")


def times_as_likely():
    """Return how many times as likely il is as elle, at the step that writes the pronoun."""
    row = traced(TIRED, tired)[2]["log_probs"][0, pronoun]
    return (row[il] - row[elle]).exp().item()


everything, without_one = times_as_likely(), {}
for layer in range(layers):
    for head in range(heads):
        with gf.intervene(model, without_heads({f"decoder.layers.{layer}.cross_attention": [head]})):
            without_one[layer, head] = times_as_likely()

order = sorted(without_one, key=without_one.__getitem__)
bars = {"all heads": everything}
for layer, head in order[:6]:
    bars[f"without head {head} of layer {layer}"] = without_one[layer, head]

pictures.bars(
    bars,
    x_label="how many times as likely il is as elle",
    numbers=",.1f",
    alt="How many times as likely il is as elle, with all heads, and without each of six heads of the cross-attention.",
)

# %% [markdown]
# The shorter a bar, the more the model needs this head. Now the heads are switched off one after the other, the most
# needed first, until the translation changes:

# %% tags=["remove-input"]
off: dict[str, list[int]] = {}
gone = []
for layer, head in order:
    gone.append(f"{layer}.{head}")
    off.setdefault(f"decoder.layers.{layer}.cross_attention", []).append(head)
    with gf.intervene(model, without_heads(off)):
        without = translator.translate([TIRED])[0].text
    if without != tired:
        break

strongest = by_tired[order[0][0] * heads + order[0][1]]
Markdown(
    f"With all heads, “il” is {everything:,.0f} times as likely as “elle”. Without head {order[0][1]} of layer "
    f"{order[0][0]}, it is only {without_one[order[0]]:,.1f} times as likely. (This head gives {strongest.max():.0%} of "
    f"its weight to “{tokens[strongest.argmax()]}”.)\n"
    + (
        f"Then the translation changes: “{without}” A single head decides here."
        if len(gone) == 1
        else "So “il” has lost most of its lead, but it is still the likelier word, and the translation stays the same. "
        f"The translation changes when {len(gone)} of the {len(order)} heads are off ({', '.join(gone)}): “{without}” "
        "So the first of them matters most, but it does not decide alone."
    )
)

# %% [markdown]
# [An experiment](experiments/pronoun.py) repeats this with hundreds of sentences and three models.
#
# ## How it learned this
#
# In the beginning, all numbers that the model is to learn are random. Training shows it pairs of sentences, compares its
# probabilities with the word that really comes next, and moves each number a little in the direction that would have
# made the right word likelier. A *training step* does this for many pairs at once. The table and the curve below count
# these steps. During the demo's training, snapshots of the model were kept. Each of them translates the same sentence,
# and always writes the likeliest word (greedy search):

# %% tags=["remove-input"]
rows = ["| training step | translation of “… too wide” |", "|---|---|"]
for step, path in Snapshots(bundle.folder / "snapshots", keep=0).paths().items():
    young = copy.deepcopy(model)
    put_weights(young, read_weights(path), str(path))
    said = gf.Translator(bundle, young).translate([WIDE], beam_size=1)[0].text.split()
    rows.append(f"| {step} | {' '.join(said[:20])}{' …' * (len(said) > 20)} |")

log = [json.loads(line) for line in (bundle.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
steps = [line for line in log if line["type"] == "step"]
rows.append(f"| {steps[-1]['step']} | {translator.translate([WIDE], beam_size=1)[0].text} |")
Markdown("\n".join(rows))

# %% tags=["remove-input"]
pictures.curves(
    {"training loss": ([line["step"] for line in steps], [line["loss"] for line in steps])},
    x_label="training step",
    y_label="training loss",
    alt=f"The training loss falls from {steps[0]['loss']:.1f} to {steps[-1]['loss']:.2f}.",
)

# %% [markdown]
# The loss measures how surprised the model is by the right words. It cannot reach 0 here: in training, a tenth of the
# answer is spread over all words, so some surprise always remains.
#
# ## What you have seen
#
# 1. Words become rows of numbers, and their positions are added.
# 2. In attention, a query is compared with the key of each word, and the values of the words that fit are taken over,
#    in several heads at once.
# 3. A feed-forward network works on each word by itself. Both parts add to the row.
# 4. The encoder does this for the whole source sentence: the result is the memory.
# 5. The decoder writes word by word. It looks back at its own words and across at the memory.
# 6. Training makes the right next word likelier, again and again. Everything else follows from it.
#
# That is the Transformer but for two small parts: after each sum, a *norm* brings the numbers of a row back to the same
# size, and at the very end, a *linear* layer turns the decoder's row into one number for each French word. Its larger
# relatives have more layers, wider rows and more text, and hardly a step that is missing here.
#
# ## And ChatGPT?
#
# The model in ChatGPT is a Transformer, too. It continues a text: your question is the beginning, its answer what follows.
#
# | | this model | ChatGPT |
# |---|---|---|
# | parts | an encoder and a decoder | [only a decoder](what_came_after.py#gpt-only-the-decoder), which looks back at the question as at its own words |
# | mask | hides the words that come later | the same |
# | writing | one token after the other | the same |
# | next token | the likeliest | usually [drawn at random](decoding.py#sampling), likely tokens more often |
# | size | small: minutes of training | much larger |
# | training | pairs of sentences | the next token of a great many texts, then more training on conversations |
#
# The size matters when you try sentences of your own:

# %% tags=["remove-input"]
FREE = "I would like a cup of coffee, please."
free_ids = english.encode(FREE)
Markdown(
    f"This model knows {len(english)} English tokens. A free sentence soon has words that it does not know. In “{FREE}”, "
    f"it reads {free_ids.count(english.unk_id)} of {len(free_ids)} tokens as `<unk>`, the mark for an unknown word, and "
    f"writes: “{translator.translate([FREE])[0].text}”"
)

# %% [markdown]
# ## Where to go next
#
# - Change this sentence, switch heads off, make mistakes: [What
#   if?](../runs/demo/explorer.html#sheet=true&panel=changes) in the explorer.
# - See what attention replaced, and what it costs: [why attention at all](why_attention.py), the next page.
# - See how each step is computed, with every number: [the chapters](overview.py).
# - Know a tutorial already? The [errata](errata.py) show what many tutorials get wrong.
