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
# # The Transformer, from a token to a translation
#
# This book explains the Transformer of *Attention Is All You Need* (Vaswani et al., 2017, "the paper" from here on): a
# model that translates. One half of it, the *encoder*, reads a sentence in *tokens* (words, pieces of words,
# punctuation marks). The other half, the *decoder*, writes the translation. You can see every number inside. Each
# chapter asks one question and answers it four times. It explains the answer in words, then in the paper's mathematics.
# Then it computes the answer line by line, showing every value and shape, and once more with the library's own
# function, which must give the same numbers. Every plotted number is computed on the page itself, comes from the log of
# `make demo`, or was measured by an experiment whose results are stored with the book.
#
# The models are real. The examples look into a translator from English to French that `make demo` trains in about four
# minutes on two processor cores. [Experiments](experiments/pronoun.py) test popular explanations (such as "the head
# that knows what *it* means") on hundreds of sentences and several models, and report the result whatever it is.

# %% [markdown]
# ## The whole architecture
#
# Source words enter at the lower left, go up through the encoder's layers and become the *memory*. The decoder on the
# right reads the words written so far, looks at the memory, and gives a probability to each word that could come next.
# One arrow leads from left to right. It carries the memory, which is all that the decoder gets of the source. The boxes
# from the first attention to the last add & norm are one layer; the paper stacks six such layers on each side. The
# chapters explain what the words in the boxes mean. Click a box to open its chapter, *code* to see the lines that
# compute it, or *numbers* to see its values in the explorer.

# %% tags=["hide-input"]
from glassformer.watch import pictures
from glassformer.watch.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, Box


def box(text, column, row, colour, chapter, code, step, width=1.5):
    """A box that leads to its chapter, to the lines of the library, and to its numbers in the explorer."""
    look = step if "=" in step else f"stage=point&point=%7B%22name%22:%22{step}%22,%22head%22:0%7D"
    more = {"code": f"../src/glassformer/{code}", "numbers": f"../runs/demo/explorer.html#{look}"}
    return Box(text, column, row, colour, chapter, width, more)


residual, embedding = "model/residual.py#Residual.forward", "model/embedding.py#InputEmbedding.forward"
attention, network = "model/attention.py#MultiHeadAttention", "model/feed_forward.py#FeedForward"
boxes = {
    "source": box("source words", 0, 0, GREY, "embeddings.py", "text/words.py", "panel=numbers"),
    "source embedding": box("embedding × √d_model", 0, 1, GREEN, "embeddings.py", embedding, "source.embedding"),
    "source positions": box(
        "+ positions", 0, 2, GREEN, "positions.py", "model/positions.py#sinusoids", "source.positions"
    ),
    "encoder attention": box(
        "self-attention in several heads",
        0,
        3.2,
        ORANGE,
        "heads.py",
        attention,
        "encoder.layers.0.self_attention.weights",
    ),
    "encoder norm 1": box(
        "add & norm", 0, 4.2, PURPLE, "residual.py", residual, "encoder.layers.0.self_attention.added"
    ),
    "encoder network": box(
        "feed-forward", 0, 5.2, BLUE, "feed_forward.py", network, "encoder.layers.0.feed_forward.hidden"
    ),
    "encoder norm 2": box("add & norm", 0, 6.2, PURPLE, "residual.py", residual, "encoder.layers.0.feed_forward.added"),
    "memory": box("memory", 0, 7.4, GREY, "encoder.py", "model/encoder.py#Encoder", "encoder.output"),
    "target": box("target words so far", 2, 2.2, GREY, "decoder.py", "model/decoder.py#Decoder", "panel=numbers"),
    "target embedding": box("embedding × √d_model", 2, 3.2, GREEN, "embeddings.py", embedding, "target.embedding"),
    "target positions": box(
        "+ positions", 2, 4.2, GREEN, "positions.py", "model/positions.py#sinusoids", "target.positions"
    ),
    "decoder attention": box(
        "masked self-attention",
        2,
        5.4,
        ORANGE,
        "masks.py",
        "model/masks.py#target_mask",
        "decoder.layers.0.self_attention.weights",
    ),
    "decoder norm 1": box(
        "add & norm", 2, 6.4, PURPLE, "residual.py", residual, "decoder.layers.0.self_attention.added"
    ),
    "cross": box(
        "cross-attention",
        2,
        7.4,
        ORANGE,
        "decoder.py",
        "model/decoder.py#DecoderLayer",
        "decoder.layers.0.cross_attention.weights",
    ),
    "decoder norm 2": box(
        "add & norm", 2, 8.4, PURPLE, "residual.py", residual, "decoder.layers.0.cross_attention.added"
    ),
    "decoder network": box(
        "feed-forward", 2, 9.4, BLUE, "feed_forward.py", network, "decoder.layers.0.feed_forward.hidden"
    ),
    "decoder norm 3": box(
        "add & norm", 2, 10.4, PURPLE, "residual.py", residual, "decoder.layers.0.feed_forward.added"
    ),
    "output": box("linear → softmax", 2, 11.6, GREY, "output.py", "model/transformer.py#Transformer.logits", "logits"),
    "next": box(
        "probability of each next word",
        2,
        12.6,
        GREY,
        "decoding.py",
        "decoding/greedy_search.py#greedy",
        "panel=beam",
        1.7,
    ),
}
encoder = ["source", "source embedding", "source positions", "encoder attention", "encoder norm 1", "encoder network"]
encoder += ["encoder norm 2", "memory"]
decoder = ["target", "target embedding", "target positions", "decoder attention", "decoder norm 1", "cross"]
decoder += ["decoder norm 2", "decoder network", "decoder norm 3", "output", "next"]
arrows = [*zip(encoder, encoder[1:]), *zip(decoder, decoder[1:]), ("memory", "cross", "key, value")]
pictures.flow(
    boxes, arrows, row=0.72, alt="The Transformer: encoder on the left, decoder on the right, the memory between them"
)

# %% [markdown]
# ## The chapters
#
# | chapter | its question |
# |---|---|
# | [Words and embeddings](embeddings.py) | How does a word become numbers? |
# | [Positions](positions.py) | How does the model know which word comes first? |
# | [Attention](attention.py) | How does a word gather what it needs from the other words? |
# | [Several heads](heads.py) | Why look several times at once? |
# | [Masks](masks.py) | What must not be looked at, and how is it hidden? |
# | [Add & norm](residual.py) | How does a deep stack stay trainable? |
# | [Feed-forward](feed_forward.py) | What happens to the information that attention gathered? |
# | [The encoder](encoder.py) | What comes out when all the parts are put together, line by line? |
# | [The decoder](decoder.py) | How does the output look back at the input? |
# | [Output and loss](output.py) | How do numbers become words, and how wrong is a word? |
# | [Training](training.py) | How does the model learn, starting from nothing? |
# | [Decoding](decoding.py) | How is a sentence chosen, word by word? |
# | [By hand](by_hand.py) | Can you follow every number of a whole Transformer with a pencil? |
# | [Backwards by hand](by_hand_backward.py) | Which way should each weight move? |
# | [Real corpora](corpora.py) | What changes with a corpus of your own? |
# | [Why attention at all](why_attention.py) | What was there before, and what does attention cost? |
# | [What came after](what_came_after.py) | What have BERT, GPT and their successors changed? |
# | [Write it yourself](write_it_yourself.py) | Can you write all of it, starting from an empty file? |
#
# After the chapters come the [experiments](experiments/pronoun.py) and the [errata](errata.py): mistakes that many
# tutorials make, each with its effect and its correction. Reading maps lead you from a text that you know to the
# matching chapters:
#
# - [the paper](maps/paper.toml)
# - a notebook that builds [the encoder line by line](maps/encoder_notebook.toml)
# - a tour of [the whole model with pictures](maps/whole_model.toml)
# - code with [a class per step](maps/step_by_step.toml)
# - [short posts](maps/posts.toml) about single steps
# - [the intuitions](maps/intuitions.toml) behind the model

# %% [markdown]
# ## How to read it
#
# On the site, read and click. Each chapter is also a plain Python file in the folder `book/`, a notebook in Jupytext's
# percent format. Open it in Jupyter (with the `jupytext` package, "Open With → Notebook") or in VS Code, or paste its
# cells one after the other into a Python interpreter. Chapters that look into the demo model need a trained demo:
#
# ```sh
# make demo   # train the demo model, in about four minutes
# make docs   # execute all chapters and build this site
# ```
#
# You can watch every model at work in [the explorer](../runs/demo/explorer.html), which runs the model in your browser
# and shows how each number was made. Here it is, live, with the demo model inside:

# %% tags=["hide-input"]
from IPython.display import IFrame

IFrame("../runs/demo/explorer.html", width="100%", height=720)

# %% [markdown]
# ## Words used throughout
#
# | symbol | meaning | the paper's base model |
# |---|---|---|
# | $B$ | batch size: the number of sentences computed at once | |
# | $S$, $T$ | length of the source and of the target, in tokens | |
# | $V$ | size of the vocabulary | about 37 000 |
# | $d_{\mathrm{model}}$ | width of the vector that represents one token | 512 |
# | $h$ | number of attention heads | 8 |
# | $d_k$, $d_v$ | width of a head's query and key, and of its value | 64, 64 |
# | $d_{ff}$ | inner width of the feed-forward network | 2048 |
# | $N$ | number of layers in the encoder, and in the decoder | 6 |
#
# The *source* goes in, the *target* comes out, and the *memory* is the encoder's output. A *mask* is True for each
# position that may be looked at. A *softmax* turns numbers into positive numbers that sum to 1: its inputs are called
# *scores*, its outputs *weights*. *Logits* are scores for the words of the vocabulary. Sections such as §3.2.1 are
# sections of the paper.
