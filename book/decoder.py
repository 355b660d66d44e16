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
# # The decoder and cross-attention
#
# [The encoder](encoder.py) has read the source and left a *memory*, one vector for each source position. Now the
# target has to be written. This chapter builds the decoder line by line, with tensors small enough to print whole,
# and then watches a trained decoder fetch "black" from the source at the moment it writes "noir".

# %% [markdown]
# ## The question
#
# How does the decoder know what it has already written, how does it read the source, and how can it be trained on
# every word of a sentence at once without cheating?

# %% [markdown]
# ## The intuition
#
# Imagine translating a sentence word by word. Before each word you do three things:
#
# 1. You look back at **what you have written so far**. What you will write later does not exist yet. This is *masked
#    self-attention*.
# 2. You look over at **the source**, at the words that matter for the next one. This is *cross-attention*: the
#    question comes from your draft, the answer from the source.
# 3. You **think** about what you have found, at this position alone. This is the *feed-forward network*.
#
# A decoder layer has these three sub-layers, each wrapped in a residual connection and a norm. Only cross-attention
# is new compared with an encoder layer. The first sub-layer is the self-attention that you know, with a different
# mask.

# %% [markdown]
# ## The mathematics
#
# Let $X$ be the decoder's stream, of shape $(B, T, d_{\text{model}})$: $B$ sentences, $T$ target positions, and
# $d_{\text{model}}$ numbers at each. Let $Y$ be the memory, of shape $(B, S, d_{\text{model}})$, with $S$ source
# positions. The paper's layer (§3.1, Figure 1 right; dropout left out) is
#
# $$X \leftarrow \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X, X, X))$$
# $$X \leftarrow \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X, Y, Y))$$
# $$X \leftarrow \mathrm{LayerNorm}(X + \mathrm{FFN}(X))$$
#
# $\mathrm{LayerNorm}$ rescales each position's numbers to mean 0 and standard deviation 1, and $\mathrm{FFN}$ is the
# feed-forward network. $\mathrm{MultiHead}$ is attention in $h$ heads. Its three arguments are the inputs of queries,
# keys and values, in this order. The first line hides the future: query position $i$ may look at key positions $j \le
# i$. In the second line $Q = X W_Q$ comes from the decoder, while $K = Y W_K$ and $V = Y W_V$ come from the encoder
# (§3.2.3). The matrices $W$ are learned. In each head, the scores are therefore
#
# $$\frac{Q K^\top}{\sqrt{d_k}} \quad\text{of shape}\quad (B, h, T, S)$$
#
# with a row for each target position and a column for each source position. $d_k$ is the width of a head's queries
# and keys.
#
# The decoder reads the target **shifted right** by one position, after a token `<bos>` (beginning of sentence). At
# each position it must predict the *next* token. The last token to predict is `<eos>` (end of sentence).

# %% [markdown]
# ## Line by line
#
# ### Two sentence pairs
#
# The sizes are small and nearly all different, so that no axis can be mistaken for another: $B = 2$, $S = 4$, $T =
# 5$, $d_{\text{model}} = 12$, 3 heads with $d_k = 4$, and $d_{\text{ff}} = 20$, the inner width of the feed-forward
# network. The second pair is shorter and gets padding. Everything is in float64, so that equality can be checked to
# the last digits.

# %%
import math

import torch

import glassformer as gf
from glassformer.watch import inspection, pictures

torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=3, sci_mode=False, linewidth=88)

# %%
special = ["<pad>", "<bos>", "<eos>"]
words = [*special, "black", "cats", "sleep", "les", "chats", "noirs", "dorment"]


def ids(text):
    return [words.index(word) for word in text.split()]


source = torch.tensor([ids("black cats sleep <eos>"), ids("cats sleep <eos> <pad>")])
target_output = torch.tensor(
    [ids("les chats noirs dorment <eos>"), ids("les chats dorment <eos> <pad>")],
)
target_input = torch.tensor(
    [ids("<bos> les chats noirs dorment"), ids("<bos> les chats dorment <pad>")],
)
source.shape, target_input.shape, target_output.shape

# %% [markdown]
# Print `target_input` above `target_output` and you see the shift: below each token stands the token to predict.

# %%
for row in (target_input[0], target_output[0]):
    print("".join(f"{words[id]:<10}" for id in row.tolist()))

# %% [markdown]
# A model with random weights will do for now; a trained one comes later. Biases and gains get random values too, so
# that nothing can hide behind a 0 or a 1.

# %%
torch.manual_seed(1)
sizes = {"vocab_size": 10, "d_model": 12, "heads": 3, "d_ff": 20}
config = gf.ModelConfig(**sizes, encoder_layers=2, decoder_layers=2)
model = gf.Transformer(config).eval().requires_grad_(False)
for weight in model.parameters():
    weight += 0.1 * torch.randn_like(weight)

memory = model.encode(source)  # Y: (2, 4) -> (2, 4, 12)
# X: (2, 5) -> (2, 5, 12), embedding · √d_model + position
x = model.target(target_input)
start = x
x[0, :, :4]

# %% tags=["hide-input", "check"]
assert memory.shape == (2, 4, 12)
assert x.shape == (2, 5, 12)

# %% [markdown]
# ### The masks
#
# There are two masks, in which `True` means "may attend". The target mask hides padding and the future. The source
# mask hides the source's padding.

# %%
not_future = torch.ones(5, 5, dtype=torch.bool).tril()
target_mask = (target_input != 0)[:, None, None, :] & not_future  # (2, 1, 5, 5)
source_mask = (source != 0)[:, None, None, :]  # (2, 1, 1, 4)

print(target_mask[1, 0].int())
print(source_mask[1, 0].int())

# %% tags=["hide-input", "check"]
assert target_mask.shape == (2, 1, 5, 5)
assert source_mask.shape == (2, 1, 1, 4)

# %% [markdown]
# These are the masks of the second pair. Its last target token is padding, so the last column of its target mask is
# all 0. The last entry of its source mask is 0 for the same reason.
#
# ### First sub-layer: masked self-attention
#
# As in the encoder, query, key and value come from one stream. The library stores their three matrices stacked on top
# of each other; `three_parts` (folded) separates them. `split_heads` and `join_heads` are those of [several
# heads](heads.py). (`nn.Linear` stores a matrix transposed, hence `.mT`.) At the end a fourth matrix, $W_O$, mixes what
# the heads have found.

# %% tags=["hide-input"]
layer = model.decoder.layers[0]
heads, d_k = 3, 4


def three_parts(attention):
    projection = attention.input_projection
    return *projection.weight.split(12), *projection.bias.split(12)


def split_heads(x):
    # (2, T, 12) -> (2, T, 3, 4) -> (2, 3, T, 4)
    return x.view(2, -1, heads, d_k).transpose(1, 2)


def join_heads(x):
    # (2, 3, T, 4) -> (2, T, 3, 4) -> (2, T, 12)
    return x.transpose(1, 2).reshape(2, -1, heads * d_k)


# %%
W_Q, W_K, W_V, query_bias, key_bias, value_bias = three_parts(layer.self_attention)
query = split_heads(x @ W_Q.mT + query_bias)
key = split_heads(x @ W_K.mT + key_bias)
value = split_heads(x @ W_V.mT + value_bias)

scores = query @ key.mT / math.sqrt(d_k)  # (2, 3, 5, 5)
weights = scores.masked_fill(~target_mask, -math.inf).softmax(-1)
joined = join_heads(weights @ value)
share = layer.self_attention.output_projection(joined)  # W_O
x = layer.self_attention_residual.norm(x + share)  # post-norm, as in the paper
after_self_attention = x

weights[0, 0]

# %% tags=["hide-input", "check"]
assert query.shape == key.shape == value.shape == (2, 3, 5, 4)
assert weights.shape == (2, 3, 5, 5)

# %% [markdown]
# Everything above the diagonal is exactly 0: no position looks ahead. Each row sums to 1.
#
# ### Second sub-layer: cross-attention
#
# Now follows the part that an encoder layer does not have. The **query** comes from the decoder's $X$:

# %%
W_Q, W_K, W_V, query_bias, key_bias, value_bias = three_parts(layer.cross_attention)

query = split_heads(x @ W_Q.mT + query_bias)  # (2, 5, 12) -> (2, 3, 5, 4)
query[0, 0]

# %% tags=["hide-input", "check"]
assert query.shape == (2, 3, 5, 4)

# %% [markdown]
# **Key** and **value** come from the memory $Y$. There are four of each, one for each source position:

# %%
key = split_heads(memory @ W_K.mT + key_bias)  # (2, 4, 12) -> (2, 3, 4, 4)
value = split_heads(memory @ W_V.mT + value_bias)

key[0, 0]

# %% tags=["hide-input", "check"]
assert key.shape == value.shape == (2, 3, 4, 4)

# %% [markdown]
# Five queries meet four keys: the matrix of scores is no longer square. Its mask is the *source's* padding mask. Every
# target position may look at the whole source, so this mask has no triangle of hidden future positions.

# %%
scores = query @ key.mT / math.sqrt(d_k)  # (2, 3, 5, 4) @ (2, 3, 4, 4) -> (2, 3, 5, 4)
weights = scores.masked_fill(~source_mask, -math.inf).softmax(-1)

cross_weights = weights
weights[:, 0]

# %% tags=["hide-input", "check"]
assert scores.shape == weights.shape == (2, 3, 5, 4)  # (B, h, T, S)
torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))
assert bool((weights[1, :, :, 3] == 0).all())  # the padding of the second source

# %% [markdown]
# These are the first head's weights for both pairs. The last column of the second pair is 0, because it is padding.
# Each target position receives a weighted average of *source* values:

# %%
attended = weights @ value  # (2, 3, 5, 4) @ (2, 3, 4, 4) -> (2, 3, 5, 4)
joined = join_heads(attended)  # -> (2, 5, 12)
share = layer.cross_attention.output_projection(joined)  # W_O
x = layer.cross_attention_residual.norm(x + share)
after_cross_attention = x

x[0, :, :4]

# %% tags=["hide-input", "check"]
assert joined.shape == share.shape == x.shape == (2, 5, 12)

# %% [markdown]
# Do query, key and value come from the same input? In self-attention they do: all three come from $X$. In
# cross-attention they do not: the query comes from $X$, key and value from $Y$.
#
# ### Third sub-layer: feed-forward
#
# Each position is processed alone, as in the encoder:

# %%
network = layer.feed_forward
hidden = x @ network.expand.weight.mT + network.expand.bias  # (2, 5, 12) -> (2, 5, 20)
activated = hidden.clamp(min=0)
share = activated @ network.contract.weight.mT + network.contract.bias  # -> (2, 5, 12)
x = layer.feed_forward_residual.norm(x + share)
after_layer = x

x[0, :, :4]

# %% tags=["hide-input", "check"]
assert hidden.shape == (2, 5, 20)
assert x.shape == (2, 5, 12)

# %% [markdown]
# Here is the whole layer as a picture. The stream rises on the left. The memory enters from the right, and nothing
# flows back into it. The labels on the arrows are shapes.

# %% tags=["hide-input"]
Box = pictures.Box
BLUE, ORANGE, GREEN, PURPLE, GREY = pictures.BLUE, pictures.ORANGE, pictures.GREEN, pictures.PURPLE, pictures.GREY
X = "(2, 5, 12)"
pictures.flow(
    {
        "x": Box("X: target so far", 0, 0),
        "project": Box("W_Q, W_K, W_V, heads", 1.7, 0, BLUE, "heads.py", 1.2),
        "self": Box("self-attention\nmask (2, 1, 5, 5)", 1.7, 1, BLUE, "masks.py", 1.2),
        "mix 1": Box("join, W_O, dropout", 1.7, 2, BLUE, "heads.py", 1.2),
        "add 1": Box("+", 0, 2, GREEN, "residual.py", 0.4),
        "norm 1": Box("LayerNorm", 0, 3, GREY, "residual.py"),
        "query": Box("W_Q, heads", 1.7, 3, PURPLE, "heads.py", 1.2),
        "memory": Box("Y: memory", 3.4, 3, GREY, "encoder.py"),
        "key value": Box("W_K, W_V, heads", 3.4, 4, PURPLE, "heads.py"),
        "cross": Box("cross-attention\nmask (2, 1, 1, 4)", 1.7, 4, PURPLE, "masks.py", 1.2),
        "mix 2": Box("join, W_O, dropout", 1.7, 5, PURPLE, "heads.py", 1.2),
        "add 2": Box("+", 0, 5, GREEN, "residual.py", 0.4),
        "norm 2": Box("LayerNorm", 0, 6, GREY, "residual.py"),
        "feed": Box("W_1, ReLU, W_2", 1.7, 6, ORANGE, "feed_forward.py", 1.2),
        "drop": Box("dropout", 1.7, 7, ORANGE, "residual.py", 1.2),
        "add 3": Box("+", 0, 7, GREEN, "residual.py", 0.4),
        "norm 3": Box("LayerNorm", 0, 8, GREY, "residual.py"),
        "out": Box("X, for the next layer", 0, 9),
    },
    [
        ("x", "project", X),
        ("project", "self", "3 × (2, 3, 5, 4)"),
        ("self", "mix 1", "(2, 3, 5, 4)"),
        ("mix 1", "add 1", X),
        ("x", "add 1", X),
        ("add 1", "norm 1", X),
        ("norm 1", "query", X),
        ("query", "cross", "(2, 3, 5, 4)"),
        ("memory", "key value", "(2, 4, 12)"),
        ("key value", "cross", "2 × (2, 3, 4, 4)"),
        ("cross", "mix 2", "(2, 3, 5, 4)"),
        ("mix 2", "add 2", X),
        ("norm 1", "add 2", X),
        ("add 2", "norm 2", X),
        ("norm 2", "feed", X),
        ("feed", "drop", X),
        ("drop", "add 3", X),
        ("norm 2", "add 3", X),
        ("add 3", "norm 3", X),
        ("norm 3", "out", X),
    ],
    row=0.66,
    column=1.75,
    alt="Data flow of a post-norm decoder layer. The stream X of shape (2, 5, 12) goes up through three sums, each "
    "followed by a LayerNorm. Masked self-attention feeds the first sum. Cross-attention feeds the second: its query "
    "comes from the stream, its keys and values from the memory of shape (2, 4, 12). Feed-forward feeds the third.",
)

# %% [markdown]
# ### All layers read the same memory
#
# The next layer does the same with weights of its own. The next layer gets the new $X$ and **the same** $Y$: the output
# of the *last* encoder layer goes to *every* decoder layer. Written as a function and applied to all layers:


# %%
def attention_sublayer(x, y, mask, attention):
    W_Q, W_K, W_V, query_bias, key_bias, value_bias = three_parts(attention)
    query = split_heads(x @ W_Q.mT + query_bias)  # x asks
    key = split_heads(y @ W_K.mT + key_bias)  # y answers
    value = split_heads(y @ W_V.mT + value_bias)
    scores = query @ key.mT / math.sqrt(d_k)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return attention.output_projection(join_heads(weights @ value))


def decoder_layer(x, memory, layer):
    share = attention_sublayer(x, x, target_mask, layer.self_attention)
    x = layer.self_attention_residual.norm(x + share)
    share = attention_sublayer(x, memory, source_mask, layer.cross_attention)
    x = layer.cross_attention_residual.norm(x + share)
    return layer.feed_forward_residual.norm(x + layer.feed_forward(x))


x = start
for each in model.decoder.layers:
    x = decoder_layer(x, memory, each)

output = x
logits = output @ model.output.weight.mT  # (2, 5, 12) -> (2, 5, 10)
logits[0]

# %% tags=["hide-input", "check"]
torch.testing.assert_close(decoder_layer(start, memory, layer), after_layer)
assert logits.shape == (2, 5, 10)

# %% [markdown]
# The logits have five rows, one for each target position, and ten columns, one for each vocabulary entry. They are the
# model's opinion of what comes next, for all positions at once. How logits become probabilities is the subject of [the
# next chapter](output.py).

# %% [markdown]
# ## The same from the library
#
# The library has a function for each step: [attention](../src/glassformer/model/attention.py#attention) for the heart
# of cross-attention, [DecoderLayer](../src/glassformer/model/decoder.py#DecoderLayer) for the layer, and
# `model(source, target_input)` for the whole model. The layer takes the memory's keys and values in a cache, as
# [key_value](../src/glassformer/model/attention.py#MultiHeadAttention.key_value) returns them (more about the cache
# soon).

# %%
with gf.record(model) as trace:
    model(source, target_input)

point = "decoder.layers.0"
for name in trace:
    if name.startswith(f"{point}.cross_attention"):
        print(f"{name:<42} {tuple(trace[name].shape)}")

# %% tags=["hide-input", "check"]
from glassformer.model.cache import LayerCache
from glassformer.model.masks import padding_mask
from glassformer.model.masks import target_mask as library_target_mask

attended_again, weights_again = gf.attention(query, key, value, source_mask)
keys_values = layer.cross_attention.key_value(memory)
library_layer = layer(start, target_mask, LayerCache(keys_values), source_mask)
assert torch.equal(padding_mask(source, pad_id=0), source_mask)
assert torch.equal(library_target_mask(target_input, pad_id=0), target_mask)
torch.testing.assert_close(attended_again, attended)
torch.testing.assert_close(weights_again, cross_weights)
torch.testing.assert_close(keys_values.key, key)
torch.testing.assert_close(keys_values.value, value)
torch.testing.assert_close(library_layer, after_layer)
torch.testing.assert_close(model.decoder_output(target_input, memory, source), output)
torch.testing.assert_close(model(source, target_input), logits)
torch.testing.assert_close(model.decode(target_input, memory, source), logits)
torch.testing.assert_close(trace[f"{point}.self_attention.normed"], after_self_attention)
torch.testing.assert_close(trace[f"{point}.cross_attention.weights"], cross_weights)
torch.testing.assert_close(trace[f"{point}.cross_attention.normed"], after_cross_attention)
torch.testing.assert_close(trace[f"{point}.feed_forward.normed"], after_layer)

# %% [markdown]
# ## Nobody looks ahead
#
# All positions are computed at once, from a target that contains the answers. Why is this not cheating? Because later
# positions cannot influence earlier ones: target positions exchange information only in self-attention, and there the
# mask hides the later positions. Test it: change the last input token, "dorment", and only the last row of logits
# changes:

# %%
other = target_input.clone()
other[0, 4] = words.index("cats")
difference = (model(source, other) - model(source, target_input))[0].abs().amax(-1)
difference

# %% tags=["hide-input", "check"]
assert bool((difference[:4] == 0).all())  # not small: exactly 0
assert difference[4] > 0

# %% [markdown]
# The gradient shows the same for all small changes at once. In the picture below, the cell in row $i$ and column $j$
# shows how strongly the logits of position $i$ depend on the input vector of position $j$. The number in a cell is the
# largest absolute derivative of any logit with respect to any number of that vector. Look for the triangle: the cells
# above the diagonal are exactly 0.

# %% tags=["hide-input"]


def all_logits(vectors):
    caches = model.decoder.start(memory[:1])
    hidden = model.decoder(vectors, target_mask[:1], caches, source_mask[:1])
    return model.output(hidden)[0]  # (5, 10)


derivatives = torch.autograd.functional.jacobian(all_logits, start[:1])  # (5, 10, 1, 5, 12)
influence = derivatives.abs().amax((1, 2, 4))  # (5, 5): of all logits, by all numbers of a vector
assert bool((influence.triu(1) == 0).all())
labels = [words[id] for id in target_input[0].tolist()]
pictures.heat_map(
    influence,
    labels,
    labels,
    row_label="logits of position i",
    column_label="input of position j",
    alt="A five by five matrix whose cells above the diagonal are exactly 0: logits depend on earlier inputs only.",
)

# %% [markdown]
# ## Step by step, with a cache
#
# In training the target is known, and all positions run at once. In translation it is not: the decoder chooses a
# token, appends it to its own input and runs again. Running *all* positions again would be wasteful, since earlier
# positions cannot have changed (nobody looks ahead). All that later positions need from earlier ones is their keys
# and values. So these are kept, in a *cache*.
#
# | kept, for each decoder layer | shape | when it is made |
# |---|---|---|
# | keys and values of the memory (cross-attention) | $(B, h, S, d_k)$ | once, when the source has been read |
# | keys and values of the target so far (self-attention) | $(B, h, T, d_k)$ | one more position at each step |
#
# Here is the self-attention of the first layer by hand. Only the newest position needs a query. The keys and values of
# the four positions before it come from the cache:

# %%
W_Q, W_K, W_V, query_bias, key_bias, value_bias = three_parts(layer.self_attention)
# (2, 3, 4, 4): after four tokens
kept_key = split_heads(start[:, :4] @ W_K.mT + key_bias)
kept_value = split_heads(start[:, :4] @ W_V.mT + value_bias)

newest = start[:, 4:]  # (2, 1, 12)
query = split_heads(newest @ W_Q.mT + query_bias)  # (2, 3, 1, 4): one query
# (2, 3, 5, 4)
key = torch.cat([kept_key, split_heads(newest @ W_K.mT + key_bias)], dim=2)
value = torch.cat([kept_value, split_heads(newest @ W_V.mT + value_bias)], dim=2)
# (2, 3, 1, 5); no mask: there is only the past
scores = query @ key.mT / math.sqrt(d_k)
attended = scores.softmax(-1) @ value
share = layer.self_attention.output_projection(join_heads(attended))

last = layer.self_attention_residual.norm(newest + share)  # (2, 1, 12)
last[0, 0, :4]

# %% tags=["hide-input", "check"]
# the same as all at once
torch.testing.assert_close(last[0, 0], after_self_attention[0, 4])

# %% [markdown]
# The library does this for all layers: [model.start](../src/glassformer/model/transformer.py#Transformer.start)
# encodes the source, [model.advance](../src/glassformer/model/transformer.py#Transformer.advance) feeds one token to
# each row. A cache is a value: `advance` takes a cache and returns the next one. Watch the shapes, and compare each
# step's logits with the logits that were computed all at once:

# %%
cache, stepped = model.start(source[:1]), []
print(f"memory's keys, layer 0: {tuple(cache.layers[0].memory.key.shape)}")
for step in range(5):
    step_logits, cache = model.advance(target_input[:1, step], cache)
    stepped.append(step_logits)
    word = words[target_input[0, step]]
    shape = tuple(cache.layers[0].past.key.shape)
    print(f"after {word:<8} target's keys, layer 0: {shape}, tokens fed: {cache.length}")

distance = (torch.stack(stepped, 1) - logits[:1]).abs().max().item()
print(f"largest difference of the logits: {distance:.0e}")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(torch.stack(stepped, 1), logits[:1])
torch.testing.assert_close(cache.layers[0].past.key, key[:1])

# %% [markdown]
# (The second sentence is left out because its last input is padding, which is never fed in translation.)

# %% [markdown]
# ## A trained decoder reads
#
# Now the demo model: English to French, two layers, eight heads. Let it translate a sentence. Then run the finished
# translation through the model once more, and record where cross-attention looks.

# %%
from glassformer.built_in import trained_demo

torch.set_default_dtype(torch.float32)  # as the demo was trained
translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
demo = translator.model.eval().requires_grad_(False)

text = "The black cat sat on the couch and the brown dog slept on the rug."
[translation] = translator.translate([text])
translation.text

# %% tags=["hide-input", "check"]
expected = "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis."
assert translation.text == expected

# %%
source_tokenizer = translator.bundle.source_tokenizer
target_tokenizer = translator.bundle.target_tokenizer
demo_source = torch.tensor([[*source_tokenizer.encode(text), demo.config.eos_id]])
demo_output = torch.tensor([*target_tokenizer.encode(translation.text), demo.config.eos_id])
demo_input = torch.cat([torch.tensor([demo.config.bos_id]), demo_output[:-1]])[None]

english = source_tokenizer.tokens(demo_source[0].tolist())
french = target_tokenizer.tokens(demo_output.tolist())
with gf.record(demo, "decoder.layers.*.cross_attention.weights") as trace:
    demo_logits = demo(demo_source, demo_input)

cross = [trace[f"decoder.layers.{number}.cross_attention.weights"][0] for number in (0, 1)]
cross[1].shape

# %% tags=["hide-input", "check"]
assert cross[1].shape == (8, 18, 17)  # heads, target positions, source positions

# %% [markdown]
# The picture shows the second layer (layer 1, counted from 0), averaged over its heads. A row is a target position,
# labelled with the word **about to be written** there; a column is a source word. Look along the diagonal, and at the
# two places where it breaks: French puts the colour after the noun, so "chat noir" crosses "black cat" and "chien
# marron" crosses "brown dog".

# %% tags=["hide-input"]
pictures.heat_map(
    cross[1].mean(0),
    [f"→ {word}" for word in french],
    english,
    alt="Cross-attention of the second layer, mean over heads, 18 French by 17 English tokens. The strong cells "
    "follow the diagonal; chat looks at cat and noir at black, which stand in the opposite order, "
    "and so do chien and marron.",
)

# %% [markdown]
# Here are the same weights for the first four steps, drawn as lines from the word about to be written (above) to the
# source words that it looks at (below). The thicker the line, the larger the weight. The lines of "chat" and "noir"
# cross.

# %% tags=["hide-input"]
pictures.attention_lines(
    cross[1].mean(0)[:4, :5],
    french[:4],
    english[:5],
    alt="Lines from Le, chat, noir, était to The, black, cat, sat, on. The thick line of chat leads to cat, the line "
    "of noir to black; they cross.",
)

# %% [markdown]
# Notice two things. At `<bos>`, the model is about to write "Le". Check whether it looks at "The" alone or at "cat"
# as well: the article needs the noun's gender and number. And which *position* looks at "black"? The position whose
# input is "chat". There "chat" has just been read, and "noir" must be said.
#
# ### What does it read for "noir"?
#
# A mean over heads may look clearer than the single heads do. Here is that step in full: for each head of both layers,
# the source token with the most weight.

# %%
step = french.index("noir")
black, cat = english.index("black"), english.index("cat")
for number, weights in enumerate(cross):
    print(f"layer {number}, mean weight on 'black': {weights[:, step, black].mean():.2f}")
    most, places = weights[:, step].max(-1)
    pairs = zip(most, places, strict=True)
    tops = [f"{english[place]} {weight:.2f}" for weight, place in pairs]
    print("   heads 0 to 3:", ", ".join(tops[:4]))
    print("   heads 4 to 7:", ", ".join(tops[4:]))

# %% tags=["hide-input", "check"]
assert cross[1][:, step, black].mean() > 0.5

# %% [markdown]
# In the second layer, most of the weight is on "black". In the first, count the heads that look elsewhere, at the
# full stop for instance. A likely reason, which these numbers do not prove: a head's weights must sum to 1, so a head
# with nothing to fetch must still put its weight somewhere. A token with little content is a good place for it.
#
# But is a weight on "black" a *reason* for "noir"? Find out by changing it. Hide "black" from this one step, then
# hide everything else, and see which words become likely:

# %%
noir = int(demo_output[step])


def top_words(place, hidden_columns):
    cells = [(place, column, False) for column in hidden_columns]
    attentions = [f"decoder.layers.{number}.cross_attention" for number in (0, 1)]
    with gf.intervene(demo, inspection.with_mask(dict.fromkeys(attentions, cells))):
        probabilities = demo(demo_source, demo_input)[0, place].softmax(-1)
    best = probabilities.topk(3)
    names = target_tokenizer.tokens(best.indices.tolist())
    pairs = zip(names, best.values, strict=True)
    return probabilities, [f"{name} {p:.3f}" for name, p in pairs]


everything = range(len(english))
unchanged, unchanged_top = top_words(step, [])
without_black, without_top = top_words(step, [black])
only_black, only_top = top_words(step, [place for place in everything if place != black])
print("unchanged:      ", unchanged_top)
print("'black' hidden: ", without_top)
print("only 'black':   ", only_top)

# %% tags=["hide-input", "check"]
assert unchanged[noir] > 0.5
assert only_black[noir] > without_black[noir]
assert without_black[noir] < unchanged[noir]

# %% [markdown]
# So for this word, the second layer's weights do point to what matters. Without "black", "noir" disappears; the middle
# line shows what the model would say instead. With nothing but "black" it still says "noir". Be careful all the same: a
# column of the memory is not a *word*. A column is the encoder's vector at that position, which has already looked at
# all the other words. The experiment on [alignment](experiments/alignment.py) shows where weights alone mislead, and
# how to find out.
#
# Look at it yourself: [cross-attention at the step of "noir" in the
# explorer](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch+and+the+brown+dog+slept+on+the+rug.&row=2&zoom=%7B%22box%22:%22decoder.layers.1.cross_attention%22,%22key%22:null%7D).

# %% [markdown]
# ## What goes wrong
#
# Errors in a decoder are hard to see: all shapes fit, and the loss often still falls. `inspection.plant` makes a
# working model commit a classic mistake for a while. Our measure is the average $-\log p$ of the right tokens, where
# $p$ is the probability that the model gives to the right token after the target so far. The smaller the average, the
# better. Beside it we print the most probable token at each position.

# %%
from glassformer.decoding import greedy


def measured(*mistakes):
    with inspection.plant(demo, *mistakes):
        log_probs = demo(demo_source, demo_input)[0].log_softmax(-1)
    chosen = log_probs[range(len(french)), demo_output]
    return float(-chosen.mean()), target_tokenizer.decode(log_probs.argmax(-1).tolist())


def written(*mistakes):
    changes = inspection.Changes(mistakes=mistakes)
    step = inspection.RecomputingStep(demo, demo_source, changes)
    [hypothesis] = greedy(step, max_lengths=[30])
    return target_tokenizer.decode(hypothesis.tokens)


right, said = measured()
print(f"{right:.2f}", said)

# %% tags=["hide-input", "check"]
assert right < 0.2

# %% [markdown]
# **"The decoder reads one source word per step."** It does not. At each step, each head of each layer gives a weight to
# every source position, and the mask hides only padding. Above, the third step wrote "noir" and looked most at the
# second word, "black". And a translation may take more steps than the source has words, or fewer.
#
# **Which sub-layer is new?** ([errata](errata.py#which-sub-layer-is-new)) Not the masked one. An encoder layer has
# self-attention and feed-forward. A decoder layer has both of these and, in addition, cross-attention. The mask is
# only a different argument. Count the parts:


# %%
def sublayers(layer):
    return {name for name, _ in layer.named_children() if not name.endswith("_residual")}


encoder_parts = sublayers(demo.encoder.layers[0])
decoder_parts = sublayers(demo.decoder.layers[0])
encoder_parts, decoder_parts

# %% tags=["hide-input", "check"]
assert decoder_parts - encoder_parts == {"cross_attention"}

# %% [markdown]
# **Keys and values from the decoder** ([errata](errata.py#keys-from-the-decoder)). If cross-attention makes $K$ and $V$
# from $X$ instead of $Y$, it becomes a second self-attention, and the source is never read. A model trained this way
# writes fluent sentences that have nothing to do with the source. Our model was trained correctly. With the mistake
# planted, its predictions are wrong:

# %%
wrong, said = measured("decoder_keys")
print(f"{wrong:.2f}", said)

# %% tags=["hide-input", "check"]
assert wrong > 3 * right

# %% [markdown]
# **The target's padding mask in cross-attention** ([errata](errata.py#targets-padding-in-cross-attention)). The keys
# are source positions, so the mask must be the *source's*. The target's mask hides positions of the source wherever
# the *target* is padded. On this pair, 17 and 18 tokens long, little changes, and that is the trap. While a
# translation is being written, however, the target so far is short, and the model sees only as many source words as
# it has target tokens:

# %%
wrong, said = measured("target_padding_mask")
print(f"{wrong:.2f}", said)
print("written step by step:", written("target_padding_mask"))

# %% tags=["hide-input", "check"]
assert abs(wrong - right) < 1
assert written("target_padding_mask") != translation.text

# %% [markdown]
# **No causal mask** ([errata](errata.py#no-causal-mask)). Self-attention then sees the token that it has to predict. A
# model *trained* this way copies that token: its loss falls to almost nothing, and its translations are gibberish,
# because there is nothing to copy while the future is unwritten. Our model was trained with the mask. When the whole
# target is given and the mask is missing, its predictions get worse, because it has never seen later tokens. When it
# writes step by step, its translation may stay the same:

# %%
wrong, said = measured("no_causal_mask")
print(f"{wrong:.2f}", said)
print("written step by step:", written("no_causal_mask"))

# %% tags=["hide-input", "check"]
assert wrong > right

# %% [markdown]
# So does the missing mask change nothing step by step? Not quite. The newest position sees what it always saw, since
# nothing is written after it yet. But the positions before it now see what was written after *them*. If they are
# computed anew at each step, their vectors change in the first layer, and the second layer gives the newest position
# different keys and values to read. With a cache they are never computed again, and nothing changes. In a decoder of
# one layer nothing changes either, because the first layer's keys and values come straight from the embeddings. Here
# are three small decoders with random weights. For each step, we print how far the log-probabilities of the next token
# move when the mask is missing:


# %% tags=["hide-input"]
def next_token(model, source, target_input, *mistakes):
    # log-probabilities at each step: computed anew from all tokens so far, and with a cache
    anew, cached = [], []
    with inspection.plant(model, *mistakes):
        memory, cache = model.encode(source), model.start(source)
        for length in range(1, target_input.shape[1] + 1):
            anew.append(model.decode(target_input[:, :length], memory, source)[0, -1])
            logits, cache = model.advance(target_input[:, length - 1], cache)
            cached.append(logits[0])
    return torch.stack(anew).log_softmax(-1), torch.stack(cached).log_softmax(-1)


def largest_changes(*arguments):
    pairs = zip(next_token(*arguments), next_token(*arguments, "no_causal_mask"), strict=True)
    return [(right - wrong).abs().amax(-1) for right, wrong in pairs]


# %%
moves = {}
for layers in (1, 2, 3):
    torch.manual_seed(1)
    small_config = gf.ModelConfig(**sizes, encoder_layers=2, decoder_layers=layers)
    small = gf.Transformer(small_config).eval().requires_grad_(False)
    anew, cached = moves[layers] = largest_changes(small, source[:1], target_input[:1])
    print(f"decoder layers: {layers}   computed anew:", *(f"{change:.3f}" for change in anew))
    print("                     with a cache: ", *(f"{change:.3f}" for change in cached))

# %% tags=["hide-input", "check"]
for layers, (anew, cached) in moves.items():
    assert cached.max() < 1e-6  # the cache holds what was computed before the future was written
    assert anew[0] < 1e-6  # one token: there is nothing to mask
    assert anew[1:].max() < 1e-6 if layers == 1 else anew[1:].min() > 1e-3

# %% [markdown]
# The demo has two decoder layers, so its log-probabilities move too. Along the sentence above, the largest change of a
# log-probability is:

# %%
anew, cached = largest_changes(demo, demo_source, demo_input)
print(f"computed anew: up to {anew.max():.1f} nats; with a cache: up to {cached.max():.1f}")

# %% [markdown]
# So a translation that looks right does not prove that the mask is right. `gf.check` therefore tests causality
# directly.
#
# **The shifted target** ([errata](errata.py#shifted-target)). Row $i$ of the logits predicts the token *after* input
# $i$. If you forget the shift and compare the row with input $i$ itself, the loss of a good model is very high. A model
# that is trained this way quickly learns to repeat its input, which is useless ([the next
# chapter](output.py#what-goes-wrong) trains such a model):

# %%
log_probs = demo_logits[0].log_softmax(-1)
unshifted = float(-log_probs[range(len(french)), demo_input[0]].mean())
print(f"against the next token: {right:.2f}; against the token just read: {unshifted:.2f}")

# %% tags=["hide-input", "check"]
assert unshifted > 5 * right

# %% [markdown]
# ## In short
#
# - Masked self-attention looks back at the tokens written so far, cross-attention looks over at the source, and the
#   feed-forward network works at each position on what they found.
# - In cross-attention the queries come from the decoder, and the keys and values come from the encoder's memory.
# - In training the decoder reads the right target, shifted by one token, and the look-ahead mask hides what is to be
#   predicted, so all positions learn at once without cheating.
#
# ## Exercises
#
# **1.** *Easy · 2 min.* A base model ($h = 8$, $d_k = 64$, 6 decoder layers) translates one sentence of 20 tokens and
# has been fed 15 target tokens. How many numbers does its cache hold?
#
# <details><summary>Hint</summary>
#
# Each layer keeps keys and values, twice: of the source and of the past. A head's key has $d_k$ numbers.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the number of numbers
print(verdict("decoder.1", answer))

# %% tags=["hide-cell"]
# layers · (keys and values) · heads · width · (source and target positions)
numbers = 6 * 2 * 8 * 64 * (20 + 15)
assert verdict("decoder.1", numbers) == "right"

base = gf.Transformer(gf.ModelConfig.preset("base", vocab_size=50)).eval().requires_grad_(False)
base_cache = base.start(torch.full((1, 20), 5))
for _ in range(15):
    _, base_cache = base.advance(torch.tensor([5]), base_cache)

held = [tensor for one in base_cache.layers for pair in (one.memory, one.past) for tensor in pair]
assert sum(tensor.numel() for tensor in held) == numbers
numbers

# %% [markdown]
# **2.** *Medium · 5 min.* Having read `<bos>`, the demo says "Le". Does it need "cat" for that? Hide "cat" from this
# step (use `top_words(0, …)`), and explain what it says instead.
#
# <details><summary>Hint</summary>
#
# `top_words(0, [cat])` hides "cat" from the first step. What does a French article have to agree with?
#
# </details>

# %% tags=["hide-cell"]
_, usual = top_words(0, [])
_, without_cat = top_words(0, [cat])
assert usual[0].startswith("Le ")
# The article agrees with a noun that the step can no longer see, so the model has to guess.
assert without_cat[0] != usual[0]
usual, without_cat

# %% [markdown]
# **3.** *Medium · 8 min.* In the small model above, which of the tensors `query`, `key`, `scores` of
# `decoder.layers.1.cross_attention` change if one *source* token changes, and which of them change if one *target*
# token changes? Predict, then check with `gf.record`.
#
# <details><summary>Hint</summary>
#
# Keys come from the memory, queries from the decoder. But what has layer 0 of the decoder already read?
#
# </details>

# %% tags=["hide-cell"]
torch.set_default_dtype(torch.float64)


def seen(source, target_input):
    with gf.record(model, "decoder.layers.1.cross_attention.*") as trace:
        model(source, target_input)
    return trace


def changed(one, other):
    names = [f"decoder.layers.1.cross_attention.{last}" for last in ("query", "key", "scores")]
    return [name.split(".")[-1] for name in names if not torch.equal(one[name], other[name])]


before = seen(source, target_input)
source_changed = source.clone()
source_changed[0, 0] = words.index("sleep")
# The query changes too: it comes from layer 0, whose cross-attention has already read the source.
assert changed(before, seen(source_changed, target_input)) == ["query", "key", "scores"]
# The memory knows nothing of the target.
assert changed(before, seen(source, other)) == ["query", "scores"]

# %% [markdown]
# **4.** *Hard · 15 min.* Change `decoder_layer` to pre-norm (norm before each sub-layer, no norm after the sum), add
# the final norm, and show that it equals a library model with `norm="pre"`.
#
# <details><summary>Hint</summary>
#
# Start from `decoder_layer`, and move each norm in front of its sub-layer. The sum stays without a norm until the end.
#
# </details>

# %% tags=["hide-cell"]
pre_config = gf.ModelConfig(**sizes, encoder_layers=2, decoder_layers=2, norm="pre")
pre = gf.Transformer(pre_config).eval().requires_grad_(False)


def pre_norm_layer(x, memory, layer):
    normed = layer.self_attention_residual.norm(x)
    x = x + attention_sublayer(normed, normed, target_mask, layer.self_attention)
    normed = layer.cross_attention_residual.norm(x)
    # The memory is already normed, by the encoder's final norm.
    x = x + attention_sublayer(normed, memory, source_mask, layer.cross_attention)
    return x + layer.feed_forward(layer.feed_forward_residual.norm(x))


x, pre_memory = pre.target(target_input), pre.encode(source)
for each in pre.decoder.layers:
    x = pre_norm_layer(x, pre_memory, each)

torch.testing.assert_close(pre.decoder.norm(x), pre.decoder_output(target_input, pre_memory, source))

# %% [markdown]
# **5.** *Easy · 2 min · on the stage.* The decoder decides about a pronoun by looking at the source. [Turn the
# attention of one head on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&task=turn),
# until the model writes “elle”.
#
# <details><summary>Hint</summary>
#
# Drag the blue knot in cross-attention from “tired” up to a different word.
#
# </details>
#
# ## Next
#
# The decoder's output is still 12 numbers (or 512) at each position. How they become a probability for each word of
# the vocabulary, and how to measure how wrong a prediction was, is the subject of [output and loss](output.py).
