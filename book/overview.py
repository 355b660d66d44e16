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
# *The animal didn't cross the street because it was too tired.* A small model translates this into French and writes *il*
# for *it*, because an animal is masculine in French. Change the last word to *wide*, and the model writes *elle*, because
# a street is feminine. Nobody gave the model a rule for this. How can a machine made of numbers do it? [The
# tour](tour.py) shows it in ten minutes, with pictures and without mathematics. **Begin there.**
#
# Then read this book. It explains the Transformer of *Attention Is All You Need* (Vaswani et al., 2017, "the paper" from
# here on). Each chapter asks one question and answers it four times: in words, in the paper's mathematics, line by line
# with every value and shape, and once more with the library's own function, which must give the same numbers. Every
# plotted number is computed on the page itself, comes from the log of `make demo`, or was measured by an experiment
# whose results are stored with the book.
#
# ## Where to begin
#
# | time | who you are | read |
# |---|---|---|
# | an hour | you want the idea, and a first look at the code | [the tour](tour.py), the first half of [why attention at all](why_attention.py), up to [*Read on after the chapter on attention*](why_attention.py#read-on-after-the-chapter-on-attention), and [attention](attention.py) without its exercises |
# | a day | you want to know how all of it works | the tour, [why attention at all](why_attention.py), then every chapter from [words and embeddings](embeddings.py) to [decoding](decoding.py) |
# | everything | you want to build it, test it and teach it | all pages, in the order of [the table](#the-chapters) |
# | ten minutes | you have written a Transformer from a tutorial | [You have code that runs](errata.py#you-have-code-that-runs); with more time, [Write it yourself](write_it_yourself.py), which checks your file |
#
# You need no mathematics for the tour, and it shows no code. For the chapters, you need basic Python and a little linear algebra: what a vector
# is, and how two matrices are multiplied. [Training](training.py) and [backwards by hand](by_hand_backward.py) also use
# derivatives. At the end of each page, *Next* leads to the page after it.

# %% [markdown]
# ## The whole architecture
#
# Source words enter at the lower left, go up through the encoder's layers and become the *memory*. The decoder on the
# right reads the words written so far, looks at the memory, and gives a probability to each word that could come next.
# One arrow leads from left to right. It carries the memory, which is all that the decoder gets of the source. The boxes
# from the first attention to the last add & norm are one layer; the paper stacks six such layers on each side. Click a
# box to open its chapter, *code* to see the lines that compute it, or *numbers* to open it in the explorer.
#
# The whole model is also in one file, [capstone/mine.py](capstone/mine.py). The file is a spoiler: it is the solution of
# [Write it yourself](write_it_yourself.py).

# %% tags=["hide-input"]
from glassformer.watch import pictures
from glassformer.watch.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, Box


def box(text, column, row, colour, chapter, code, opened, width=1.5):
    """A box that leads to its chapter, to the lines of the library, and to the box that the explorer opens."""
    look = f"zoom=%7B%22box%22:%22{opened}%22,%22key%22:null%7D" if opened else "chapter=0"
    more = {"code": f"../src/glassformer/{code}", "numbers": f"../runs/demo/explorer.html#{look}"}
    return Box(text, column, row, colour, chapter, width, more)


residual, embedding = "model/residual.py#Residual.forward", "model/embedding.py#InputEmbedding.forward"
attention, network = "model/attention.py#MultiHeadAttention", "model/feed_forward.py#FeedForward"
boxes = {
    "source": box("source words", 0, 0, GREY, "embeddings.py", "text/words.py", ""),
    "source embedding": box("embedding × √d_model", 0, 1, GREEN, "embeddings.py", embedding, "encoder.embedding"),
    "source positions": box(
        "+ positions", 0, 2, GREEN, "positions.py", "model/positions.py#sinusoids", "encoder.positions"
    ),
    "encoder attention": box(
        "self-attention in several heads",
        0,
        3.2,
        ORANGE,
        "heads.py",
        attention,
        "encoder.layers.0.self_attention",
    ),
    "encoder norm 1": box("add & norm", 0, 4.2, PURPLE, "residual.py", residual, "encoder.layers.0.self_attention.add"),
    "encoder network": box("feed-forward", 0, 5.2, BLUE, "feed_forward.py", network, "encoder.layers.0.feed_forward"),
    "encoder norm 2": box("add & norm", 0, 6.2, PURPLE, "residual.py", residual, "encoder.layers.0.feed_forward.add"),
    "memory": box("memory", 0, 7.4, GREY, "encoder.py", "model/encoder.py#Encoder", ""),
    "target": box("target words so far", 2, 2.2, GREY, "decoder.py", "model/decoder.py#Decoder", ""),
    "target embedding": box("embedding × √d_model", 2, 3.2, GREEN, "embeddings.py", embedding, "decoder.embedding"),
    "target positions": box(
        "+ positions", 2, 4.2, GREEN, "positions.py", "model/positions.py#sinusoids", "decoder.positions"
    ),
    "decoder attention": box(
        "masked self-attention",
        2,
        5.4,
        ORANGE,
        "masks.py",
        "model/masks.py#target_mask",
        "decoder.layers.0.self_attention",
    ),
    "decoder norm 1": box("add & norm", 2, 6.4, PURPLE, "residual.py", residual, "decoder.layers.0.self_attention.add"),
    "cross": box(
        "cross-attention",
        2,
        7.4,
        ORANGE,
        "decoder.py",
        "model/decoder.py#DecoderLayer",
        "decoder.layers.0.cross_attention",
    ),
    "decoder norm 2": box(
        "add & norm", 2, 8.4, PURPLE, "residual.py", residual, "decoder.layers.0.cross_attention.add"
    ),
    "decoder network": box("feed-forward", 2, 9.4, BLUE, "feed_forward.py", network, "decoder.layers.0.feed_forward"),
    "decoder norm 3": box("add & norm", 2, 10.4, PURPLE, "residual.py", residual, "decoder.layers.0.feed_forward.add"),
    "output": box(
        "linear → softmax", 2, 11.6, GREY, "output.py", "model/transformer.py#Transformer.logits", "decoder.linear"
    ),
    "next": box(
        "probability of each next word",
        2,
        12.6,
        GREY,
        "decoding.py",
        "decoding/greedy_search.py#greedy",
        "decoder.softmax",
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
# ## Words used throughout
#
# The *encoder* reads a sentence in *tokens*: words, pieces of words, punctuation marks. The *decoder* writes the
# translation. The *source* goes in, the *target* comes out, and the *memory* is the encoder's output. A *mask* is True
# for each position that may be looked at. A *softmax* turns numbers into positive numbers that sum to 1: its inputs are
# called *scores*, its outputs *weights*. *Logits* are scores for the words of the vocabulary. Sections such as §3.2.1
# are sections of the paper.
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

# %% [markdown]
# ## The chapters
#
# | page | its question | read before |
# |---|---|---|
# | [The tour](tour.py) | How can numbers translate a sentence? | nothing |
# | [Why attention at all](why_attention.py) | What was there before, and what does attention cost? | the tour |
# | [Words and embeddings](embeddings.py) | How does a word become numbers? | the tour, Python |
# | [Positions](positions.py) | How does the model know which word comes first? | embeddings |
# | [Attention](attention.py) | How does a word gather what it needs from the other words? | embeddings |
# | [Several heads](heads.py) | Why look several times at once? | attention |
# | [Masks](masks.py) | What must not be looked at, and how is it hidden? | attention |
# | [Add & norm](residual.py) | How does a deep stack stay trainable? | attention |
# | [Feed-forward](feed_forward.py) | What happens to the information that attention gathered? | attention |
# | [The encoder](encoder.py) | What comes out when all the parts are put together, line by line? | all parts above |
# | [Vectors in the plane](geometry.py) | What do the vectors look like, and what moves them? | the encoder |
# | [The decoder](decoder.py) | How does the output look back at the input? | the encoder |
# | [Output and loss](output.py) | How do numbers become words, and how wrong is a word? | embeddings |
# | [Training](training.py) | How does the model learn, starting from nothing? | output and loss, derivatives |
# | [Grow it](grow_it.py) | What does each part of the model buy? | training |
# | [Decoding](decoding.py) | How is a sentence chosen, word by word? | output and loss |
# | [By hand](by_hand.py) | Can you follow every number of a whole Transformer with a pencil? | attention, the decoder |
# | [Backwards by hand](by_hand_backward.py) | Which way should each weight move? | by hand, derivatives |
# | [Byte pairs by hand](byte_pairs.py) | Who decides where a word is cut into pieces? | embeddings |
# | [Real corpora](corpora.py) | What changes with a corpus of your own? | training |
# | [What came after](what_came_after.py) | What have BERT, GPT and their successors changed? | the decoder |
# | [Write it yourself](write_it_yourself.py) | Can you write all of it, starting from an empty file? | all chapters; writing takes hours |
# | [Which head decides "it"?](experiments/pronoun.py) | Does one head know what *it* means? | the decoder |
# | [Hiding the key of "street"](experiments/hidden_key.py) | Which words are needed, and where? | the first experiment |
# | [Patching "tired" into "wide"](experiments/patching.py) | Through which layers does the decisive word travel? | the first experiment |
# | [What tells "bank" which bank it is?](experiments/bank.py) | Which word makes the meaning clear? | the first experiment |
# | [Is cross-attention an alignment?](experiments/alignment.py) | Do the weights show which word is being translated? | the decoder |
# | [Does attention equal importance?](experiments/importance.py) | Do the weights show which words matter? | alignment |
# | [What does each part do?](experiments/parts.py) | What does a model lose without one of its parts? | training |
# | [One head or eight?](experiments/one_head.py) | Are several heads better than a wide one? | several heads |
# | [Norm before or after](experiments/norms.py) | Which placement needs a warm-up? | add & norm, training |
# | [What does a larger beam find?](experiments/beam.py) | Are likelier translations better translations? | decoding |
# | [Errata](errata.py) | Which mistakes do many tutorials make, and what do they cost? | the chapter of each mistake |
#
# The pages under *experiments* test popular explanations (such as "the head that knows what *it* means") on hundreds of
# sentences and several models, and report the result whatever it is.

# %% [markdown]
# ## What else to read
#
# This book grew from five tutorials. Each explains something better than the others, and for each there is a *map*, which
# leads from its steps to the chapters here. The tutorials in turn thank the last three texts of the table.
#
# | text | read it for | map |
# |---|---|---|
# | [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762) | the original, which is short and readable | [the paper](maps/paper.toml) |
# | *The annotated "annotated Transformers"* | the encoder in a notebook, one line at a time | [the encoder, line by line](maps/encoder_notebook.toml) |
# | *Transformers explained* | the whole model in pictures, and one example in numbers | [the whole model](maps/whole_model.toml) |
# | *Transformer code: Step-by-step Understanding* | a class for each step, in Chinese and English | [a class per step](maps/step_by_step.toml) |
# | *The Annotated The Annotated Transformer* | short answers to what the Annotated Transformer leaves open | [short posts](maps/posts.toml) |
# | *The Intuited Transformer* | the reasons: why a dot product, why keys and values, why heads | [the intuitions](maps/intuitions.toml) |
# | [*The Annotated Transformer*](https://nlp.seas.harvard.edu/annotated-transformer/) (Harvard NLP) | the paper's text with working code beside it | |
# | [*The Illustrated Transformer*](https://jalammar.github.io/illustrated-transformer/) (Jay Alammar) | one sentence, drawn through the whole model | |
# | *Solving Transformer by Hand* | every number of a tiny model, as in [by hand](by_hand.py) | |

# %% [markdown]
# ## How to read it
#
# On the site, read and click. Each page is there in English and in Chinese, and a link leads from one to the other.
# (`glassformer learn`, or `glassformer learn --zh`, opens them without a network.) Below its title, each chapter offers
# a notebook (`.ipynb`), whose first cell installs the package from a wheel in the same folder. Each chapter is also a
# plain Python file in the folder `book/`, a notebook in Jupytext's percent format. Open it in Jupyter (with the
# `jupytext` package, "Open With → Notebook") or in VS Code, or paste its cells one after the other into a Python
# interpreter. Chapters look into the model of `make demo` if you have trained it, and otherwise into the model in the
# package:
#
# ```sh
# make demo   # train the demo model, in about four minutes
# make site   # execute all chapters and build this site
# ```
#
# You can watch every model at work in [the explorer](../runs/demo/explorer.html), which runs the model in your browser
# and shows how each number was made. Here it is, live, with the demo model inside:

# %% tags=["hide-input"]
from IPython.display import IFrame

IFrame("../runs/demo/explorer.html", width="100%", height=720)

# %% [markdown]
# ## Next
#
# [The tour](tour.py) follows one sentence through the model.
