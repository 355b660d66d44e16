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
# # Attribute an output with captum
#
# Which source words made the model write "elle"? [captum](https://captum.ai) answers with gradients. captum works with
# a `gf.Transformer` without changes. With [named points](../../src/glassformer/model/taps.py#intervene), captum also
# works where the model has no module.
#
# All numbers come from the run of `make demo` and were computed when this page was built.

# %%
from functools import partial

import torch
from captum.attr import IntegratedGradients, LayerIntegratedGradients

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC
from glassformer.watch import pictures
from glassformer.watch.inspection import Changes, changed

translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model.requires_grad_(False), translator.bundle
eos, bos = model.config.eos_id, model.config.bos_id

# %% [markdown]
# The output that we explain is how much the model prefers "elle" to "il" after "L'animal n'a pas traversé la rue parce
# qu'". captum calls this function with many sources at once, so the function returns one number for each row:

# %%
source = torch.tensor([[*bundle.source_tokenizer.encode(CLASSIC[2].source), eos]])
begun = bundle.target_tokenizer.encode("L'animal n'a pas traversé la rue parce qu'")
prefix = torch.tensor([[bos, *begun]])
il, elle = (bundle.target_tokenizer.encode(word)[0] for word in ("il", "elle"))


def preference(source, prefix):
    """Return log p(elle) − log p(il) for the next word, one number for each row."""
    logits = model(source, prefix)[:, -1]
    return logits[:, elle] - logits[:, il]


CLASSIC[2].source, preference(source, prefix).item()

# %% [markdown]
# ## Integrated gradients
#
# The input moves in a straight line from a *baseline* to the sentence, and the gradient is summed along the line. So
# the attributions of all words add up to the difference between the preferences at both ends. This property is called
# *completeness*. Completeness holds up to the error of the sum, here a sum of 200 steps.
#
# `LayerIntegratedGradients` attributes to the output of a module. Here the module is the embedding of the source
# tokens, and the baseline has the unknown word in place of each word.

# %%
unknown = torch.full_like(source, bundle.source_tokenizer.encode("?unknown?")[0])
unknown[0, -1] = eos
layer = LayerIntegratedGradients(preference, model.source.tokens)
from_unknown = layer.attribute(source, unknown, additional_forward_args=(prefix,), n_steps=200)

whole = (preference(source, prefix) - preference(unknown, prefix)).item()
{"sum of attributions": from_unknown.sum().item(), "difference to the baseline": whole}

# %% tags=["hide-input", "check"]
assert abs(from_unknown.sum().item() - whole) < 0.1

# %% [markdown]
# ## Any named point as the input
#
# Vectors of zeros are also a possible baseline, but no token has such a vector. The function `preference_with`
# therefore puts a given tensor at a named point, and captum attributes to this tensor.


# %%
def preference_with(point, tensor):
    """Return the preference, one number for each row, with this tensor at a point."""
    rows = len(tensor)  # captum gives the steps of the integral as a batch
    with gf.intervene(model, {point: lambda _: tensor}):
        return preference(source.expand(rows, -1), prefix.expand(rows, -1))


def attributions(point):
    """Return the integrated gradients from zeros to the recorded tensor at a point."""
    with torch.no_grad(), gf.record(model, point) as trace:
        preference(source, prefix)
    return IntegratedGradients(partial(preference_with, point)).attribute(trace[point], n_steps=200)


from_zeros = attributions("source.embedding")


# %% tags=["hide-input", "check"]
def incomplete(point, found):
    """Return how far the attributions at a point are from the difference that they must add up to."""
    with torch.no_grad(), gf.record(model, point) as trace:
        whole = preference(source, prefix)
    return (found.sum() - (whole - preference_with(point, torch.zeros_like(trace[point])))).abs().item()


assert incomplete("source.embedding", from_zeros) < 0.1

# %% [markdown]
# ## Beside hiding a word
#
# The straight line leads through vectors that belong to no sentence. glassformer's own method changes the model's
# computation instead: hide one word from all attention to the source, and measure how much of the preference is lost.

# %%
of_the_source = ("encoder.*.self_attention.scores", "decoder.*.cross_attention.scores")
with torch.no_grad(), gf.record(model, of_the_source) as trace:
    usual = preference(source, prefix)

attentions = [name.removesuffix(".scores") for name in trace]


def hidden(word):
    """Return how much of the preference is lost if no position may attend to a word."""
    rows = max(source.shape[1], prefix.shape[1])
    cells = [(row, word, False) for row in range(rows)]
    changes = Changes(masks=dict.fromkeys(attentions, cells))
    with torch.no_grad(), changed(model, changes):
        return (usual - preference(source, prefix)).item()


words = [*bundle.source_tokenizer.tokens(source[0, :-1].tolist()), "<eos>"]
lost = [hidden(word) for word in range(len(words))]

# %% [markdown]
# This cell shows the three measures side by side. Each row answers a different question, so the rows differ. The model
# also has a preference for a baseline, which the attributions leave out: unknown words still have an embedding, and
# zeros still leave the positions. Hiding a word takes the word out of each softmax, so the weights of the remaining
# words grow. Hiding needs no baseline, but the numbers do not add up to the preference.

# %% tags=["hide-input"]
three = torch.stack([from_unknown.sum(-1)[0], from_zeros.sum(-1)[0], torch.tensor(lost)])
pictures.heat_map(
    three.round(decimals=1) + 0.0,  # no −0.0
    ["gradients, from unknown words", "gradients, from zeros", "lost by hiding the word"],
    words,
    numbers=".1f",
    alt="Three measures of what each source word contributes to the preference for elle.",
)

# %% [markdown]
# ## Attribute to attention weights
#
# No module returns the weights of attention, so `LayerIntegratedGradients` cannot attribute to them. With the named
# points of cross-attention, `attributions` shows which head used which word. Each cell of the picture is the sum over
# all positions of the output. A large weight can contribute little: compare this picture with the weights on the page
# about [nnsight](nnsight.py).

# %%
layers = range(model.config.decoder_layers)
points = [f"decoder.layers.{layer}.cross_attention.weights" for layer in layers]
by_head = [attributions(point)[0].sum(1) for point in points]

# %% tags=["hide-input", "check"]
assert max(map(incomplete, points, by_head)) < 0.1

# %% tags=["hide-input"]
pictures.heat_map(
    torch.cat(by_head),
    [f"layer {layer}, head {head}" for layer in layers for head in range(model.config.heads)],
    words,
    alt="Integrated gradients of the weights of cross-attention: one row for each head, one column for each "
    "source word.",
)
