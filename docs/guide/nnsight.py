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
# # Look inside with nnsight
#
# [nnsight](https://nnsight.net) reads and edits the inputs and outputs of modules during a forward pass. nnsight works
# with a `gf.Transformer` without changes. This page compares nnsight with [named
# points](../../src/glassformer/model/taps.py#record) in three experiments, and shows which values only named points
# reach.
#
# All numbers come from the run of `make demo` and were computed when this page was built.

# %%
import warnings

import torch
from nnsight import NNsight

import glassformer as gf
from glassformer.built_in import trained_demo
from glassformer.corpus.tasks import CLASSIC
from glassformer.watch import pictures
from glassformer.watch.inspection import without_heads

torch.set_grad_enabled(False)
translator = gf.Translator.load(trained_demo("../../runs/demo"))  # your own `make demo`, or the model in the package
model, bundle = translator.model, translator.bundle

# %% [markdown]
# The question comes from the book's [experiment on patching](../../book/experiments/patching.py). Two sentences differ
# in their last word, "tired" or "wide". After "L'animal n'a pas traversé la rue parce qu'", how much does the model
# prefer "elle" (the street) to "il" (the animal)?

# %%
encode, eos, bos = bundle.source_tokenizer.encode, model.config.eos_id, model.config.bos_id
tired, wide = (torch.tensor([[*encode(example.source), eos]]) for example in CLASSIC[1:3])
begun = bundle.target_tokenizer.encode("L'animal n'a pas traversé la rue parce qu'")
prefix = torch.tensor([[bos, *begun]])
il, elle = (bundle.target_tokenizer.encode(word)[0] for word in ("il", "elle"))


def preference(logits):
    """Return log p(elle) − log p(il) for the next word."""
    return (logits[0, -1, elle] - logits[0, -1, il]).item()


{"tired": preference(model(tired, prefix)), "wide": preference(model(wide, prefix))}

# %% [markdown]
# nnsight's `source` and `output` are also names of two submodules of our model, so nnsight calls these submodules
# `E_source` and `E_output`, with a warning.

# %%
with warnings.catch_warnings(action="ignore"):
    glass = NNsight(model)

# %% [markdown]
# ## Read
#
# nnsight reads values from modules, and `gf.record` reads the same values from named points. The differences are
# rounding errors: attention runs in one fused kernel, but step by step while its values are recorded.

# %%
with glass.trace(wide, prefix):
    embedded = glass.E_source.output.save()
    attended = glass.encoder.layers[0].self_attention.output.save()
    encoded = glass.encoder.layers[0].output.save()
    joined = glass.decoder.layers[1].cross_attention.output_projection.input.save()
    logits = glass.output.save()

with gf.record(model) as trace:
    model(wide, prefix)

same = {
    "source.input": embedded,
    "encoder.layers.0.self_attention.output": attended,
    "encoder.layers.0.feed_forward.normed": encoded,
    "decoder.layers.1.cross_attention.joined": joined,
    "logits": logits,
}
differences = {name: (trace[name] - value).abs().max().item() for name, value in same.items()}
differences

# %% tags=["hide-input", "check"]
assert max(differences.values()) < 1e-4

# %% [markdown]
# ## Patch
#
# Take the vector of "tired" from the encoder's output, and put it in place of "wide".

# %%
words = [*bundle.source_tokenizer.tokens(wide[0, :-1].tolist()), "<eos>"]
place = words.index("wide")

with glass.trace(tired, prefix):
    donor = glass.encoder.output.save()

with glass.trace(wide, prefix):
    glass.encoder.output[:, place] = donor[:, place]
    by_nnsight = glass.output.save()


# %%
def transplant(memory):
    return memory.index_copy(1, torch.tensor([place]), donor[:, [place]])


with gf.intervene(model, {"encoder.output": transplant}):
    by_point = model(wide, prefix)

{
    "wide": preference(logits),
    "patched by nnsight": preference(by_nnsight),
    "patched by gf.intervene": preference(by_point),
}

# %% tags=["hide-input", "check"]
assert torch.allclose(by_nnsight, by_point, atol=1e-4)

# %% [markdown]
# ## Ablate heads
#
# The input of `output_projection` contains all heads side by side, so nnsight can set one head to 0. `without_heads`
# makes the same edit for `gf.intervene`. This cell ablates the heads of the last cross-attention in turn:

# %%
name, width = "decoder.layers.1.cross_attention", model.config.d_v
ablated, differences = [], []
for head in range(model.config.heads):
    with glass.trace(wide, prefix):
        heads = glass.decoder.layers[1].cross_attention.output_projection.input
        heads[..., head * width : (head + 1) * width] = 0
        by_nnsight = glass.output.save()
    with gf.intervene(model, without_heads({name: [head]})):
        by_point = model(wide, prefix)
    ablated.append(preference(by_nnsight))
    differences.append((by_nnsight - by_point).abs().max().item())

f"largest difference between the two: {max(differences):.0e}"

# %% tags=["hide-input", "check"]
assert max(differences) < 1e-4

# %% tags=["hide-input"]
pictures.bars(
    {f"without head {head}": value for head, value in enumerate(ablated)},
    x_label="log p(elle) − log p(il)",
    alt="How much the model prefers elle to il without each head of the last cross-attention.",
)

# %% [markdown]
# ## What modules do not reach
#
# ### Attention weights
#
# No module returns attention weights, because the fused kernel never stores them. `gf.record` makes attention compute
# step by step, and records the scores before the mask, the weights after the softmax, and each head's weighted values.
# These are the weights of all heads when the decoder chooses the pronoun.

# %%
layers = range(model.config.decoder_layers)
rows = [trace[f"decoder.layers.{layer}.cross_attention.weights"][0, :, -1] for layer in layers]

# %% tags=["hide-input"]
pictures.heat_map(
    torch.cat(rows),
    [f"layer {layer}, head {head}" for layer in layers for head in range(model.config.heads)],
    words,
    limit=1,
    alt="The weights of cross-attention at the position that chooses the pronoun: one row for each head, one "
    "column for each source word.",
)

# %% [markdown]
# An edit of the scores acts before the softmax, so the weights of the remaining words grow. Here, no head of
# cross-attention may attend to "wide" when the pronoun is chosen.

# %%
scores, weights = (f"decoder.layers.*.cross_attention.{value}" for value in ("scores", "weights"))


def hide(tensor):
    tensor = tensor.clone()
    tensor[..., -1, place] = -torch.inf
    return tensor


with gf.intervene(model, {scores: hide}), gf.record(model, weights) as hidden:
    logits_without = model(wide, prefix)

{"wide": preference(logits), "hidden from the decoder": preference(logits_without)}

# %% tags=["hide-input", "check"]
for one in hidden.values():
    assert (one[..., -1, place] == 0).all()
    assert torch.allclose(one.sum(-1), torch.ones(1))

# %% [markdown]
# ### Modules that are never called
#
# A hook sees a module only if the module is called. Cross-attention does not call its `input_projection`, but uses
# parts of its weight, because the keys and values of the encoder's output are computed once for the whole translation.
# A translation calls `model.encode` and `model.advance`, never the model itself.

# %%
called = []
modules = {
    "the model": model,
    "cross-attention": model.get_submodule(f"{name}.input_projection"),
    "self-attention": model.get_submodule("decoder.layers.1.self_attention.input_projection"),
}
hooks = []
for what, module in modules.items():
    hooks.append(module.register_forward_hook(lambda *_, what=what: called.append(what)))

[translation] = translator.translate([CLASSIC[2].source], beam_size=1)
for hook in hooks:
    hook.remove()

translation.text, {what: called.count(what) for what in modules}

# %% tags=["hide-input", "check"]
assert called.count("the model") == called.count("cross-attention") == 0

# %% [markdown]
# Named points do not depend on which function is called. `history` has a value for each step of the translation, and an
# edit of `log_probs` changes what the model writes. Here, the model may not write "elle".

# %%
with gf.record(model, [f"{name}.query", "log_probs"]) as steps:
    translator.translate([CLASSIC[2].source], beam_size=1)


def without_elle(log_probs):
    return log_probs.index_fill(-1, torch.tensor([elle]), -torch.inf)


with gf.intervene(model, {"log_probs": without_elle}):
    [forbidden] = translator.translate([CLASSIC[2].source], beam_size=1)

forbidden.text, f"{len(steps.history('log_probs'))} steps"

# %% tags=["hide-input", "check"]
assert "elle" not in forbidden.tokens
assert len(steps.history("log_probs")) == len(steps.history(f"{name}.query")) == len(translation.tokens)

# %% [markdown]
# ## Both together
#
# nnsight and named points can observe the same forward pass. nnsight can also look between modules: `.source` rewrites
# a `forward`, so that nnsight sees each call and each variable. Unless a point is recorded, attention computes neither
# scores nor weights. During a recording, nnsight finds the scores, too. (The names after `.source` come from the lines
# of our code and change when the code changes. The [named points](../reference.md#points) are part of the interface.)

# %%
with gf.record(model, f"{name}.scores") as trace, glass.trace(wide, prefix):
    attend = glass.decoder.layers[1].cross_attention.source.self_attend_0
    from_source = attend.source.self__explained_0.source.attention_scores_0.output.save()

tuple(from_source.shape), torch.equal(from_source, trace[f"{name}.scores"])

# %% tags=["hide-input", "check"]
assert torch.equal(from_source, trace[f"{name}.scores"])

# %% [markdown]
# ## What each reaches
#
# | value | modules and nnsight | named points |
# |---|---|---|
# | the residual stream after a layer | the layer's output | `normed`, `added` after each sub-layer |
# | the heads, before W_O | input of `output_projection` | `joined`; one by one: `heads` |
# | queries, keys, values of self-attention | output of `input_projection`, side by side | `query`, `key`, `value` |
# | queries, keys, values of cross-attention | – | `query`, `key`, `value` |
# | scores and weights | – | `scores`, `weights` |
# | logits in a translation | output of `E_output` | `logits` |
# | log probabilities | – | `log_probs` |
# | any variable of a `forward` | `.source` | – |
# | gradients | `.grad` | `torch.autograd.grad`: recorded tensors keep their graph |
#
# The page about [captum](captum.py) uses gradients at named points.
