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
# # A whole Transformer by hand
#
# ## The question
#
# Can you compute everything that a Transformer computes, using only a pencil? Yes, if the Transformer is small enough.
# This page computes a complete encoder–decoder, from two English words to the probabilities of the French ones. The
# [second half](by_hand_backward.py) goes backwards, from the loss to the gradient of every weight and one step of
# training. Every table is printed, and for each kind of step one cell is worked out in full. The model has 428 weights.
# The paper's base model has about 63 million ([counted here](output.py#line-by-line); the paper's table says 65) and
# takes the same steps.
#
# Print this page if you like. The only other thing you need is a calculator with `exp` and `√`.

# %% [markdown]
# ## The intuition
#
# The source is `black cat`. In French the order is reversed: `chat noir`. So to write its *first* word, the decoder
# should look at the *second* source word. An untrained model does not know this order. You will see its prediction, and
# a number that says how wrong it is: the loss.
#
# | size | name | here | paper's base model |
# |---|---|---|---|
# | vocabulary | $V$ | 8 | about 37 000 |
# | width of the stream of numbers that runs through the model | $d_{\mathrm{model}}$ | 4 | 512 |
# | heads, which attend side by side | $h$ | 2 | 8 |
# | width of a head's query, key and value | $d_k = d_v$ | 2 | 64 |
# | inner width of the feed-forward network | $d_{\mathrm{ff}}$ | 6 | 2048 |
# | layers of the encoder and of the decoder | $N$ | 1 and 1 | 6 and 6 |
#
# Dropout is off, because it would make the numbers random. Everything is counted from 0: dimensions 0 to 3, heads 0
# and 1.

# %% [markdown]
# ## The mathematics
#
# The table lists every formula of the forward pass. $x$ stands for the stream: a matrix with one row for each word and
# one column for each dimension. $E$ is the embedding table, with a row for each word of the vocabulary. Every $W$ is a
# matrix and every $b$ a bias (a row that is added); all of them are learned. Matrices multiply from the right, as in
# the paper. As in most texts, two letters have two meanings: $V$ is either the values or the size of the vocabulary,
# and $v$ is either a head's values or a variance.
#
# | step | formula | paper |
# |---|---|---|
# | embedding | row of $E$ for the word, times $\sqrt{d_{\mathrm{model}}}$ | §3.4 |
# | position $pos$ = 0, 1 | add $\sin(pos / 10000^{2i/d_{\mathrm{model}}})$ in dimension $2i$, the cosine of the same angle in $2i+1$ (for $i$ = 0, 1) | §3.5 |
# | query, key, value | $Q = x W_Q + b_Q$, $K = x W_K + b_K$, $V = x W_V + b_V$ | §3.2.2 |
# | scores | $Q K^\top / \sqrt{d_k}$, separately in each head | §3.2.1 |
# | weights | $\mathrm{softmax}$ of each row: $e^{s_j} / \sum_k e^{s_k}$; a masked score is $-\infty$ | §3.2.1 |
# | heads, joined, output | weights times $V$; placed side by side; times $W_O$, plus $b_O$ | §3.2.2 |
# | residual sum, layer norm | $(a - m) / \sqrt{v + 0.00001} \cdot g + b$ for $a = x + \mathrm{output}$, its mean $m$ and variance $v$ | §3.1 |
# | feed-forward | $\max(0, x W_1 + b_1) W_2 + b_2$ | §3.3 |
# | logits | last stream times $E^\top$: the same matrix as at the beginning | §3.4 |
# | probabilities | $\mathrm{softmax}$ of each row of logits | §3.4 |
#
# In cross-attention, $Q$ comes from the decoder's stream, while $K$ and $V$ come from the encoder's output, which is
# called memory.

# %% [markdown]
# ## Line by line
#
# ### Pencil and paper
#
# We need two small tools. They are folded away, like everything on this page that only prints. `show` prints tables
# side by side. `pencil` prints the arithmetic of one cell, and checks it first: if the printed line were false,
# building this page would fail. Numbers are shown with four decimals and computed with sixteen, so if you continue from
# the printed numbers, your last digit may differ.

# %%
import math
import re
import textwrap

import numpy as np
import torch

import glassformer as gf


# %% tags=["hide-input"]
def short(number, digits=4):
    """The number without trailing zeros, as we write it on paper."""
    text = f"{number:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text.replace("-", "−")


def factor(number):
    """The number, in brackets if it is negative."""
    return f"({short(number)})" if short(number).startswith("−") else short(number)


def products(left, right):
    """The terms of a dot product."""
    return " + ".join(f"{factor(a)}·{factor(b)}" for a, b in zip(left, right))


def total(numbers):
    """The terms of a sum."""
    return " + ".join(factor(number) for number in numbers)


KNOWN = {"sqrt": math.sqrt, "exp": math.exp, "ln": math.log, "max": max, "sin": math.sin, "cos": math.cos}


def pencil(cell, text, value):
    """Print how a cell is computed, after checking that the printed line is true."""
    code = re.sub(r"√(\d+)", r"sqrt(\1)", text).replace("√", "sqrt").replace("·", "*").replace("²", "**2")
    result = eval(code.replace("−", "-"), KNOWN)
    assert abs(result - value) < 1e-3, (text, result, value)
    print(textwrap.fill(f"{cell} = {text} = {short(value)}", 84, subsequent_indent="    "))


def show(tables, rows, columns=None, digits=4):
    """Print tables with the same number of rows, each below its name, as many side by side as fit on the page."""
    margin = max(map(len, rows))
    names = [" " * margin] * 2 + [row.ljust(margin) for row in rows]
    lines = names
    for name, table in tables.items():
        table = np.asarray(table, dtype=float)
        heads = columns or [str(place) for place in range(table.shape[1])]
        wide = max(digits + 4, *(len(head) + 2 for head in heads))
        cells = ["".join(f"{value:.{digits}f}".replace("-", "−").rjust(wide) for value in row) for row in table]
        header = "".join(head.rjust(wide) for head in heads)
        block = [name.center(len(header)), header, *cells]
        if lines is not names and len(lines[1]) + len(block[1]) > 90:
            print("\n".join(line.rstrip() for line in lines) + "\n")
            lines = names
        lines = [f"{left}  {right}" for left, right in zip(lines, block)]
    print("\n".join(line.rstrip() for line in lines) + "\n")


# %% [markdown]
# ### The words and the weights
#
# There are eight words, and three of them are special: `<pad>` fills up short sentences, `<bos>` begins a sentence,
# and `<eos>` ends it. In training, the decoder reads the right translation shifted by one position (`<bos> chat`),
# and each of its rows must predict the word that comes next (`chat noir`). One thing is left out to keep the tables
# small: real sources and targets end with `<eos>`.

# %%
words = ["<pad>", "<bos>", "<eos>", "black", "cat", "dog", "chat", "noir"]
source = [words.index(word) for word in ("black", "cat")]
target_input = [words.index(word) for word in ("<bos>", "chat")]
target_output = [words.index(word) for word in ("chat", "noir")]
S, T, V = ["black", "cat"], ["<bos>", "chat"], len(words)  # names of the rows, and V
source, target_input, target_output

# %% [markdown]
# The weights are drawn at random, with one decimal. (The seed was picked from several, so that no attention weight is
# close to 0 or 1.) As in an untrained model, the biases of attention are 0, and a layer norm has gains $g = 1$ and
# shifts $b = 0$. The feed-forward networks get non-zero biases, so that you see where they enter. `params` holds
# everything that training may change.

# %%
random = np.random.default_rng(1603)


def draw(*shape):
    return random.integers(-9, 10, shape) / 10


ENCODER = "encoder.layers.0.self_attention"
MASKED, CROSS = "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"
ENCODER_FF = "encoder.layers.0.feed_forward"
DECODER_FF = "decoder.layers.0.feed_forward"

params = {"embedding": {"E": draw(8, 4)}}
for part in (ENCODER, MASKED, CROSS):
    params[part] = {name: draw(4, 4) for name in ("W_Q", "W_K", "W_V", "W_O")}
    params[part] |= {name: np.zeros(4) for name in ("b_Q", "b_K", "b_V", "b_O")}

for part in (ENCODER_FF, DECODER_FF):
    params[part] = {"W_1": draw(4, 6), "b_1": draw(6), "W_2": draw(6, 4), "b_2": draw(4)}

for part in (ENCODER, MASKED, CROSS, ENCODER_FF, DECODER_FF):
    # for the layer norm that follows this sub-layer
    params[part] |= {"gain": np.ones(4), "shift": np.zeros(4)}

# %%
show({"E": params["embedding"]["E"]}, words, digits=1)

# %% tags=["hide-input"]
DIMENSIONS = ["0", "1", "2", "3"]


def show_weights(part):
    """Print an attention's matrices, or a feed-forward network's with biases below."""
    w = params[part]
    if "W_Q" in w:
        print(part)
        show(
            {name: w[name] for name in ("W_Q", "W_K", "W_V", "W_O")},
            DIMENSIONS,
            digits=1,
        )
    else:
        print(part)
        show(
            {"W_1, below it b_1": np.vstack([w["W_1"], w["b_1"]])},
            [*DIMENSIONS, "b_1"],
            digits=1,
        )
        show(
            {"W_2, below it b_2": np.vstack([w["W_2"], w["b_2"]])},
            [*DIMENSIONS, "4", "5", "b_2"],
            digits=1,
        )


show_weights(ENCODER)
show_weights(MASKED)
show_weights(CROSS)

# %%
show_weights(ENCODER_FF)

# %%
show_weights(DECODER_FF)

# %% [markdown]
# How many numbers is that? The library's model of the same sizes has exactly the same number.

# %%
sizes = {"vocab_size": 8, "d_model": 4, "heads": 2, "d_ff": 6}
config = gf.ModelConfig(**sizes, encoder_layers=1, decoder_layers=1, dropout=0.0)
model = gf.Transformer(config).double().eval()
for part, arrays in params.items():
    sizes = ", ".join(f"{name} {'×'.join(map(str, array.shape))}" for name, array in arrays.items())
    print(f"{sum(array.size for array in arrays.values()):4}  {part}")
    print(textwrap.fill(sizes, 78, initial_indent="      ", subsequent_indent="      "))

count = sum(array.size for arrays in params.values() for array in arrays.values())
count

# %% tags=["hide-input", "check"]
assert count == sum(weight.numel() for weight in model.parameters()) == 428

# %% [markdown]
# ### Embedding and positions
#
# Each word takes its row of $E$, times $\sqrt{4} = 2$. Then the pattern of its position (0 or 1) is added. `point`
# keeps every result under the library's name for it.

# %%
point = {}


def of(tables, part):
    """Return the tables of one part of the model, by their short names."""
    return {name.removeprefix(f"{part}."): table for name, table in tables.items() if name.startswith(f"{part}.")}


E = params["embedding"]["E"]
point["source.embedding"] = E[source] * 2
angles = np.array([[pos / 10000 ** (0 / 4), pos / 10000 ** (2 / 4)] for pos in (0, 1)])
point["source.positions"] = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(2, 4)
point["source.input"] = point["source.embedding"] + point["source.positions"]

show({name: point[f"source.{name}"] for name in ("embedding", "positions", "input")}, S)

# %% tags=["hide-input"]
pencil("embedding[cat, 1]", f"√4·{factor(E[4, 1])}", point["source.embedding"][1, 1])
pencil("positions[1, 0]", "sin(1)", point["source.positions"][1, 0])
pencil("positions[1, 2]", "sin(1/100)", point["source.positions"][1, 2])
pencil("input[cat, 1]", total([point["source.embedding"][1, 1], point["source.positions"][1, 1]]), point["source.input"][1, 1])  # fmt: skip

# %% [markdown]
# ### The encoder's self-attention
#
# **Query, key, value.** These are three products of the same stream $x$. Columns 0 and 1 belong to head 0, columns 2
# and 3 to head 1. The split into heads is nothing more than that.

# %%
x, w = point["source.input"], params[ENCODER]
Q, K, values = x @ w["W_Q"] + w["b_Q"], x @ w["W_K"] + w["b_K"], x @ w["W_V"] + w["b_V"]
show({"Q": Q, "K": K, "V": values}, S)

# %% tags=["hide-input"]
pencil("Q[black, 0]", products(x[0], w["W_Q"][:, 0]), Q[0, 0])


# %%
def split(matrix):
    """(positions, 4) -> (2 heads, positions, 2)."""
    return np.stack([matrix[:, 0:2], matrix[:, 2:4]])


q, k, v = split(Q), split(K), split(values)
q.shape

# %% [markdown]
# **Scores.** A score is the query of one word times the key of another, divided by $\sqrt{d_k} = \sqrt{2}$. Each row is
# a query, each column a key.

# %%
scores = np.stack([q[head] @ k[head].T / math.sqrt(2) for head in (0, 1)])
show({"scores, head 0": scores[0], "scores, head 1": scores[1]}, S, S)

# %% tags=["hide-input"]
pencil("scores[head 0, black, cat]", f"({products(q[0, 0], k[0, 1])})/√2", scores[0, 0, 1])

# %% [markdown]
# **Weights.** The softmax turns each row of scores into weights: all weights are positive, and each row sums to 1.
# Nothing is masked here, as the source has no padding.

# %%
powers = np.exp(scores)
weights = powers / powers.sum(-1, keepdims=True)
show({"weights, head 0": weights[0], "weights, head 1": weights[1]}, S, S)

# %% tags=["hide-input", "check"]
assert np.allclose(weights.sum(-1), 1)

# %% tags=["hide-input"]
a, b = short(scores[0, 0, 0]), short(scores[0, 0, 1])
pencil("weights[head 0, black, cat]", f"exp({b})/(exp({a}) + exp({b}))", weights[0, 0, 1])

# %% [markdown]
# **Heads, joined, output.** Each head takes its weighted average of the values. The two results are placed side by
# side (joined), and $W_O$ mixes them.

# %%
heads = np.stack([weights[head] @ v[head] for head in (0, 1)])
joined = np.concatenate([heads[0], heads[1]], axis=1)
output = joined @ w["W_O"] + w["b_O"]
show({"heads, head 0": heads[0], "heads, head 1": heads[1]}, S)
show({"joined": joined, "output": output}, S)

# %% tags=["hide-input"]
pencil("heads[head 0, black, 0]", products(weights[0, 0], v[0, :, 0]), heads[0, 0, 0])
pencil("output[black, 0]", products(joined[0], w["W_O"][:, 0]), output[0, 0])

# %% [markdown]
# **Residual sum and layer norm.** The output is added to the input. Then each row is shifted and scaled to mean 0 and
# variance 1.

# %%
added = x + output
mean = added.mean(-1, keepdims=True)
variance = ((added - mean) ** 2).mean(-1, keepdims=True)
normed = (added - mean) / np.sqrt(variance + 1e-5) * w["gain"] + w["shift"]
show({"added": added, "mean": mean, "variance": variance, "normed": normed}, S)

# %% tags=["hide-input"]
row = added[0]
pencil("added[black, 0]", total([x[0, 0], output[0, 0]]), row[0])
pencil("mean[black]", f"({total(row)})/4", mean[0, 0])
deviations = " + ".join(f"{factor(value)}²" for value in row - mean[0])
pencil("variance[black]", f"({deviations})/4", variance[0, 0])
pencil("normed[black, 0]", f"({short(row[0])} − {factor(mean[0, 0])})/√({short(variance[0, 0])} + 0.00001)", normed[0, 0])  # fmt: skip

# %% [markdown]
# The decoder uses these lines twice more. So here they are as functions, which also put every result into `point`.
# The stream `x` gives the queries; `memory` gives the keys and values (in self-attention it is `x` itself).


# %%
def layer_norm(a, w):
    mean = a.mean(-1, keepdims=True)
    variance = ((a - mean) ** 2).mean(-1, keepdims=True)
    return (a - mean) / np.sqrt(variance + 1e-5) * w["gain"] + w["shift"]


def attention_by_hand(point, part, w, x, memory, mask):
    """Attention, residual sum, layer norm; `mask[i, j]`: may query i attend to key j?"""
    q, k, v = (split(y @ w[f"W_{n}"] + w[f"b_{n}"]) for y, n in ((x, "Q"), (memory, "K"), (memory, "V")))
    scores = np.stack([q[head] @ k[head].T / math.sqrt(2) for head in (0, 1)])
    powers = np.where(mask, np.exp(scores), 0.0)  # exp(−∞) = 0
    weights = powers / powers.sum(-1, keepdims=True)
    heads = np.stack([weights[head] @ v[head] for head in (0, 1)])
    joined = np.concatenate([heads[0], heads[1]], axis=1)
    output = joined @ w["W_O"] + w["b_O"]
    added = x + output
    results = {"input": x, "query": q, "key": k, "value": v, "scores": scores, "weights": weights, "heads": heads,
               "joined": joined, "output": output, "added": added, "normed": layer_norm(added, w)}  # fmt: skip
    point |= {f"{part}.{name}": result for name, result in results.items()}
    return results["normed"]


x = attention_by_hand(point, ENCODER, params[ENCODER], x, x, np.ones((2, 2), bool))

# %% tags=["hide-input", "check"]
assert np.allclose(x, normed, atol=1e-12)
assert np.allclose(point[f"{ENCODER}.weights"], weights, atol=1e-12)

# %% [markdown]
# ### The encoder's feed-forward network
#
# Each word passes alone through the same two layers: the first turns 4 numbers into 6, negative numbers become 0, and
# the second turns the 6 numbers into 4 again. Then come the sum and the norm again. The result is the **memory**.


# %%
def feed_forward_by_hand(point, part, w, x):
    """One feed-forward network with residual sum and layer norm."""
    hidden = x @ w["W_1"] + w["b_1"]
    activated = np.maximum(hidden, 0)
    output = activated @ w["W_2"] + w["b_2"]
    added = x + output
    results = {"input": x, "hidden": hidden, "activated": activated, "output": output, "added": added,
               "normed": layer_norm(added, w)}  # fmt: skip
    point |= {f"{part}.{name}": result for name, result in results.items()}
    return results["normed"]


memory = feed_forward_by_hand(point, ENCODER_FF, params[ENCODER_FF], x)
point["encoder.output"] = memory
now, w = of(point, ENCODER_FF), params[ENCODER_FF]
show({"hidden": now["hidden"]}, S)
show({"activated": now["activated"]}, S)
show({"output": now["output"], "added": now["added"]}, S)
show({"normed = memory": memory}, S)

# %% tags=["hide-input"]
pencil("hidden[black, 0]", f"{products(x[0], w['W_1'][:, 0])} + {factor(w['b_1'][0])}", now["hidden"][0, 0])
pencil("activated[black, 0]", f"max(0, {short(now['hidden'][0, 0])})", now["activated"][0, 0])
pencil(
    "output[black, 0]", f"{products(now['activated'][0], w['W_2'][:, 0])} + {factor(w['b_2'][0])}", now["output"][0, 0]
)

# %% [markdown]
# ### The decoder's masked self-attention
#
# The target's words come from the same $E$ and get the same positions. The row of `<bos>` may not look at `chat`,
# because that word is the answer it must give. The score of `chat` is −∞ before the softmax, so its weight is exactly 0.
# (The score tables show the scores before the mask is applied, as the library's point `scores` does.)

# %%
point["target.embedding"] = E[target_input] * 2
point["target.positions"] = point["source.positions"]
point["target.input"] = point["target.embedding"] + point["target.positions"]
causal = np.array([[True, False], [True, True]])
x = point["target.input"]
stream = attention_by_hand(point, MASKED, params[MASKED], x, x, causal)
now = of(point, MASKED)
show({"input": now["input"]}, T)
show(
    {f"{name}, head {head}": now[name][head] for head in (0, 1) for name in ("query", "key", "value")},
    T,
    digits=3,
)

# %%
show({"scores, head 0": now["scores"][0], "scores, head 1": now["scores"][1]}, T, T)
show({"weights, head 0": now["weights"][0], "weights, head 1": now["weights"][1]}, T, T)
show({"joined": now["joined"], "output": now["output"]}, T)
show({"added": now["added"], "normed": now["normed"]}, T)

# %% tags=["hide-input", "check"]
assert (now["weights"][:, 0] == [1.0, 0.0]).all()

# %% tags=["hide-input"]
a, b = (short(value) for value in now["scores"][0, 1])
print("weights[head 0, <bos>]: exp(−∞) = 0, so exp(s)/(exp(s) + 0) = 1, whatever the score s")
pencil("weights[head 0, chat, <bos>]", f"exp({a})/(exp({a}) + exp({b}))", now["weights"][0, 1, 0])

# %% [markdown]
# ### Cross-attention
#
# Queries come from the decoder's stream, keys and values from the memory. The rows are now target words and the
# columns source words: here the French looks at the English.

# %%
before = stream
stream = attention_by_hand(point, CROSS, params[CROSS], stream, memory, np.ones((2, 2), bool))
now = of(point, CROSS)
show({f"query, head {head}": now["query"][head] for head in (0, 1)}, T)
show(
    {f"{name}, head {head}": now[name][head] for head in (0, 1) for name in ("key", "value")},
    S,
)

# %%
show({"scores, head 0": now["scores"][0], "scores, head 1": now["scores"][1]}, T, S)
show({"weights, head 0": now["weights"][0], "weights, head 1": now["weights"][1]}, T, S)
show({"joined": now["joined"], "output": now["output"]}, T)
show({"added": now["added"], "normed": now["normed"]}, T)

# %% tags=["hide-input"]
pencil("query[head 0, <bos>, 0]", products(before[0], params[CROSS]["W_Q"][:, 0]), now["query"][0, 0, 0])
pencil("key[head 0, cat, 0]", products(memory[1], params[CROSS]["W_K"][:, 0]), now["key"][0, 1, 0])
pencil("scores[head 0, <bos>, cat]", f"({products(now['query'][0, 0], now['key'][0, 1])})/√2", now["scores"][0, 0, 1])

# %% [markdown]
# ### The decoder's feed-forward network

# %%
stream = feed_forward_by_hand(point, DECODER_FF, params[DECODER_FF], stream)
point["decoder.output"] = stream
now = of(point, DECODER_FF)
show({"hidden": now["hidden"]}, T)
show({"activated": now["activated"]}, T)
show({"output": now["output"], "added": now["added"]}, T)
show({"normed = decoder.output": stream}, T)

# %% [markdown]
# ### Logits, probabilities, loss
#
# Each word of the vocabulary gets a number, the logit: the dot product of its row of $E$ with the decoder's output.
# Softmax turns the logits into probabilities. The row of `<bos>` says which word comes first.

# %%
logits = stream @ E.T
powers = np.exp(logits)
probabilities = powers / powers.sum(-1, keepdims=True)
point["logits"], point["log_probs"] = logits, np.log(probabilities)
show({"<bos>": np.stack([logits[0], probabilities[0]], 1), "chat": np.stack([logits[1], probabilities[1]], 1)}, words,
     ["logit", "p"])  # fmt: skip
print("most probable first word:", words[probabilities[0].argmax()])

# %% tags=["hide-input"]
pencil("logits[<bos>, chat]", products(stream[0], E[6]), logits[0, 6])
pencil("p[<bos>, chat]", f"exp({short(logits[0, 6])})/({' + '.join(f'exp({short(z)})' for z in logits[0])})", probabilities[0, 6])  # fmt: skip

# %% [markdown]
# The model would end the sentence before it has begun. The loss says how wrong that is. With label smoothing
# $\varepsilon = 0.1$ (§5.4), the target $y$ (called $q$ in [output and loss](output.py)) is not 1 for the right
# word and 0 for all others. Instead, $y$ has $1 - \varepsilon$ on the right word, plus $\varepsilon / V = 0.1 / 8 =
# 0.0125$ on each of the 8. The loss of a row is $-\sum_j y_j \ln p_j$; the loss $L$ is the mean of the two rows.

# %%
smoothed = np.full((2, V), 0.1 / V)
for place, word in enumerate(target_output):
    smoothed[place, word] += 1 - 0.1

losses = -(smoothed * np.log(probabilities)).sum(-1)
loss = losses.mean()
show({"<bos>": np.stack([smoothed[0], probabilities[0]], 1), "chat": np.stack([smoothed[1], probabilities[1]], 1)}, words,
     ["y", "p"])  # fmt: skip

# %% tags=["hide-input"]
terms = " + ".join(f"{factor(aim)}·ln({short(said)})" for aim, said in zip(smoothed[0], probabilities[0]))
pencil("loss[<bos>]", f"−({terms})", losses[0])
pencil("L", f"({total(losses)})/2", loss)

# %% [markdown]
# ## Everything on one page
#
# Here are the same numbers as a drawing, from bottom to top as in the paper's Figure 1, with the encoder on the left
# and the decoder on the right. The first frame shows everything, for printing; the others build it up step by step.
# Notice how the memory enters the decoder from the side, and how narrow everything is: four numbers per word, all the
# way.

# %% tags=["hide-input"]
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from glassformer.watch import pictures

# name, column, height of its lower edge, rows, values, colour, stage
STAGES = ["embedding + position", "the encoder's self-attention", "the encoder's feed-forward network: memory",
          "the target: embedding + position", "masked self-attention: <bos> does not see chat",
          "cross-attention: the French looks at the English", "the decoder's feed-forward network",
          "logits and probabilities"]  # fmt: skip


def beside(two):
    return np.concatenate([two[0], two[1]], axis=1)


BOXES = [
    ("x = 2·E[word] + position", 0, 0, S, point["source.input"], pictures.ORANGE, 0),
    ("weights: head 0, head 1", 0, 1, S, beside(point[f"{ENCODER}.weights"]), pictures.BLUE, 1),
    ("output of the attention", 0, 2, S, point[f"{ENCODER}.output"], pictures.BLUE, 1),
    ("sum, layer norm", 0, 3, S, point[f"{ENCODER}.normed"], pictures.GREEN, 1),
    ("activated (6 numbers)", 0, 4, S, point[f"{ENCODER_FF}.activated"], pictures.PURPLE, 2),
    ("sum, layer norm = memory", 0, 5, S, memory, pictures.GREEN, 2),
    ("x = 2·E[word] + position", 1, 0, T, point["target.input"], pictures.ORANGE, 3),
    ("masked weights: head 0, head 1", 1, 1, T, beside(point[f"{MASKED}.weights"]), pictures.BLUE, 4),
    ("output of the attention", 1, 2, T, point[f"{MASKED}.output"], pictures.BLUE, 4),
    ("sum, layer norm", 1, 3, T, point[f"{MASKED}.normed"], pictures.GREEN, 4),
    ("cross weights: head 0, head 1", 1, 4, T, beside(point[f"{CROSS}.weights"]), pictures.RED, 5),
    ("output of the attention", 1, 5, T, point[f"{CROSS}.output"], pictures.RED, 5),
    ("sum, layer norm", 1, 6, T, point[f"{CROSS}.normed"], pictures.GREEN, 5),
    ("activated (6 numbers)", 1, 7, T, point[f"{DECODER_FF}.activated"], pictures.PURPLE, 6),
    ("sum, layer norm", 1, 8, T, point["decoder.output"], pictures.GREEN, 6),
    ("probabilities of black, cat, dog, chat, noir", 1, 9, T, probabilities[:, 3:], pictures.GREY, 7),
]


def page(last, current=None):
    """Draw the boxes of all stages up to `last`; the `current` stage stands out."""
    figure, axes = pictures.canvas(7.2, 8.6)
    for title, column, level, rows, table, colour, stage in BOXES:
        if stage > last:
            continue
        left, low, strong = column * 1.12, level, stage == current
        ground, line = (*to_rgb(colour), 0.3 if strong else 0.1), 2 if strong else 1
        axes.add_patch(Rectangle((left, low), 1.0, 0.8, facecolor=ground, edgecolor=colour, linewidth=line))
        axes.text(left + 0.03, low + 0.64, title, fontsize=8, va="center", weight="bold")
        for place, (word, row) in enumerate(zip(rows, table)):
            height = low + 0.4 - 0.24 * place
            axes.text(left + 0.03, height, word, fontsize=8, va="center", alpha=0.8)
            for number, value in enumerate(row):
                right = left + 0.17 + (number + 1) * 0.81 / max(len(row), 4)
                axes.text(right, height, f"{value:.2f}".replace("-", "−"), fontsize=8, va="center", ha="right")
        above = [box for box in BOXES if box[1] == column and box[2] == level + 1 and box[6] <= last]
        if above:
            style = {"arrowstyle": "-|>", "color": "black"}
            axes.annotate("", (left + 0.5, low + 1), (left + 0.5, low + 0.8), arrowprops=style)
    if last >= 5:
        style = {"arrowstyle": "-|>", "color": pictures.RED, "linewidth": 1.6, "connectionstyle": "arc3,rad=-0.25"}
        axes.annotate("", (1.12, 4.4), (1.0, 5.4), arrowprops=style)
        axes.text(0.5, 6.05, "memory: keys and values", ha="center", fontsize=9, color=pictures.RED)
    axes.set(xlim=(-0.02, 2.14), ylim=(-0.1, 9.9))
    axes.axis("off")
    what = "in every step of the whole model" if current is None else f"up to this step: {STAGES[current]}"
    return pictures.picture(figure, f"encoder on the left, decoder on the right, with the numbers {what}")


pictures.player(
    [page(7), *(page(stage, stage) for stage in range(8))], ["The whole model, with two decimals.", *STAGES]
)

# %% [markdown]
# ## The same from the library
#
# Now we give exactly these weights to `gf.Transformer`. PyTorch's `Linear` stores a matrix transposed (outputs ×
# inputs), and the library stores $W_Q$, $W_K$ and $W_V$ in one matrix, one below the other. `state` puts our tables
# into that form. Then `gf.record` listens to **every** named point of the model, and each must equal ours.


# %% tags=["hide-input"]
def state(params):
    """Return our tables under the library's names and in its form."""
    both = {"source.tokens.weight": params["embedding"]["E"]}
    for part in (ENCODER, MASKED, CROSS):
        w = params[part]
        both[f"{part}.input_projection.weight"] = np.concatenate([w["W_Q"], w["W_K"], w["W_V"]], axis=1).T
        both[f"{part}.input_projection.bias"] = np.concatenate([w["b_Q"], w["b_K"], w["b_V"]])
        both[f"{part}.output_projection.weight"] = w["W_O"].T
        both[f"{part}.output_projection.bias"] = w["b_O"]
    for part in (ENCODER_FF, DECODER_FF):
        w = params[part]
        both[f"{part}.expand.weight"] = w["W_1"].T
        both[f"{part}.expand.bias"] = w["b_1"]
        both[f"{part}.contract.weight"] = w["W_2"].T
        both[f"{part}.contract.bias"] = w["b_2"]
    for part in (ENCODER, MASKED, CROSS, ENCODER_FF, DECODER_FF):
        both[f"{part}_residual.norm.weight"] = params[part]["gain"]
        both[f"{part}_residual.norm.bias"] = params[part]["shift"]
    return {name: torch.tensor(array) for name, array in both.items()}


# %%
def put(model, params):
    """Give the model these weights; E is one matrix with three names, so one name is enough."""
    tables = state(params)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(tables[name])


put(model, params)
with gf.record(model) as trace:
    model(torch.tensor([source]), torch.tensor([target_input]))

differences = []
for name in trace:
    # without the batch axis
    shape = trace[name].shape if name.endswith("positions") else trace[name][0].shape
    differences.append((trace[name].view(shape) - torch.tensor(point[name])).abs().max().item())

size = sum(table.size for table in point.values())
print(f"{len(point)} points, {size} numbers; largest difference from the library's {max(differences):.0e}")

# %% tags=["hide-input", "check"]
assert set(state(params)) == {name for name, _ in model.named_parameters()}
assert max(differences) < 1e-12
assert set(trace) == set(gf.points(model)) == set(point)

# %% [markdown]
# The next cell is the shortest way through the same model, as one function of weights and words. This function lets us
# try changes in the exercises.


# %%
def by_hand(params, source, target_input, positions=True):
    """Return every point's table for these weights and words; without positions, their tables are 0."""
    point = {}
    for name, ids in (("source", source), ("target", target_input)):
        pairs = [[pos, pos / 100] for pos in range(len(ids))]
        point[f"{name}.embedding"] = params["embedding"]["E"][list(ids)] * 2
        table = np.array([[wave(angle) for angle in pair for wave in (math.sin, math.cos)] for pair in pairs])
        point[f"{name}.positions"] = table * positions
        point[f"{name}.input"] = point[f"{name}.embedding"] + point[f"{name}.positions"]
    x, y = point["source.input"], point["target.input"]
    n, m = len(source), len(target_input)
    x = attention_by_hand(point, ENCODER, params[ENCODER], x, x, np.ones((n, n), bool))
    memory = point["encoder.output"] = feed_forward_by_hand(point, ENCODER_FF, params[ENCODER_FF], x)
    y = attention_by_hand(point, MASKED, params[MASKED], y, y, np.tril(np.ones((m, m), bool)))
    y = attention_by_hand(point, CROSS, params[CROSS], y, memory, np.ones((m, n), bool))
    y = point["decoder.output"] = feed_forward_by_hand(point, DECODER_FF, params[DECODER_FF], y)
    point["logits"] = y @ params["embedding"]["E"].T
    point["log_probs"] = point["logits"] - np.log(np.exp(point["logits"]).sum(-1, keepdims=True))
    return point


again = by_hand(params, source, target_input)

# %% tags=["hide-input", "check"]
assert all(np.allclose(again[name], point[name], atol=1e-12) for name in point)

# %% [markdown]
# ## What goes wrong
#
# With pencil or keyboard, these mistakes are easy to make and hard to see, because every table keeps its shape. Each
# line printed below shows one cell computed the wrong way, next to the right value.
#
# - Dividing the variance by 3 instead of 4 ([another layer norm](errata.py#another-layer-norm)): at width 4, a
#   difference of 13 %.
# - Dividing scores by $\sqrt{d_{\mathrm{model}}}$ instead of $\sqrt{d_k}$ ([scale by the whole
#   width](errata.py#scale-by-the-whole-width)).
# - Cutting heads by a reshape alone ([view without transpose](errata.py#view-without-transpose)).
# - A softmax down the columns: the weights of each *key* then sum to 1.
# - A matrix from PyTorch's `Linear` used without transposing it: 4 × 4 fits both ways.
# - The embedding without its factor 2 ([no scaling of the embedding](errata.py#no-scaling-of-the-embedding)).

# %%
now, w = of(point, ENCODER), params[ENCODER]
row = now["added"][0]
wrong = {
    "normed[black, 0], variance divided by 3": (
        (row[0] - row.mean()) / row.std(ddof=1),
        now["normed"][0, 0],
    ),
    "scores[head 0, black, cat], divided by √4": (
        now["query"][0, 0] @ now["key"][0, 1] / 2,
        now["scores"][0, 0, 1],
    ),
    "query[head 0, cat, 0], reshape only": (
        Q.reshape(2, 2, 2)[0, 1, 0],
        now["query"][0, 1, 0],
    ),
    "weights[head 0, black, cat], softmax by columns": (
        np.exp(now["scores"][0])[0, 1] / np.exp(now["scores"][0])[:, 1].sum(),
        now["weights"][0, 0, 1],
    ),
    "Q[black, 0], matrix not transposed": ((now["input"] @ w["W_Q"].T)[0, 0], Q[0, 0]),
    "input[cat, 1], embedding not scaled": (
        E[4, 1] + point["source.positions"][1, 1],
        point["source.input"][1, 1],
    ),
}
# %%
for what, (bad, good) in wrong.items():
    print(f"{what}: {short(bad)} instead of {short(good)}")

# %% tags=["hide-input", "check"]
assert all(abs(bad - good) > 0.05 for bad, good in wrong.values())

# %% [markdown]
# Working with a pencil adds one more source of error: **rounding on the way**. What if you carry only two decimals, or
# one? `gf.intervene` replaces each tensor by a rounded one. Look at the last line: even with one decimal you would not
# be far off.

# %%
put(model, params)
for decimals in (4, 3, 2, 1):
    changes = {"*": lambda tensor, decimals=decimals: tensor.round(decimals=decimals)}
    with gf.intervene(model, changes), torch.no_grad():
        rounded = model(torch.tensor([source]), torch.tensor([target_input]))[0].softmax(-1)
    error = abs(rounded.numpy() - probabilities).max()
    print(f"{decimals} decimals on the way: the probabilities are off by up to {error:.4f}")

# %% [markdown]
# The explorer does this kind of arithmetic for the demo's model: click any number of [the decoder's
# cross-attention](../runs/demo/explorer.html#text=The+black+cat+slept.&zoom=%7B%22box%22:%22decoder.layers.0.cross_attention%22,%22key%22:null%7D),
# and it writes out how the number was made.

# %% [markdown]
# ### What do many believe?
#
# *"Nobody knows what a Transformer computes."* Everybody can know it: each step is the arithmetic of this page, and a large
# model repeats it with more numbers. But nobody chose the weights of a trained model. Training found them, so it is hard to
# say why they work, and what a single number means.
#
# ## Exercises
#
# **1. A cell with the pencil.** *Easy · 4 min.* Compute `scores[head 1, cat, black]` of the encoder from the tables Q
# and K. Which columns do you need?
#
# <details><summary>Hint</summary>
#
# Head 1 has the last two columns. The query is the row of cat, the key the row of black.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the score
print(verdict("by_hand.1", answer, Q, K))

# %% tags=["hide-cell"]
answer = (Q[1, 2] * K[0, 2] + Q[1, 3] * K[0, 3]) / math.sqrt(2)  # head 1 has columns 2 and 3
pencil("scores[head 1, cat, black]", f"({products(Q[1, 2:], K[0, 2:])})/√2", answer)
assert abs(answer - point[f"{ENCODER}.scores"][1, 1, 0]) < 1e-12
assert verdict("by_hand.1", answer, Q, K) == "right"

# %% [markdown]
# **2. A different word.** *Medium · 6 min.* Replace `cat` by `dog`. Before you run it: which tables stay as they are,
# and in which does only one row change?
#
# <details><summary>Hint</summary>
#
# Go through the calculation: which step is the first in which one word sees another?
#
# </details>

# %% tags=["hide-cell"]
other = by_hand(params, [3, 5], target_input)
same = {name for name in point if np.allclose(point[name], other[name], atol=1e-12)}
# Before cross-attention, the target knows nothing about the source. Its queries are the last table that stays.
assert same == {"source.positions", f"{CROSS}.input", f"{CROSS}.query"} | {
    name for name in point if name.startswith(("target.", f"{MASKED}."))
}
one_row = [name for name in ("source.input", f"{ENCODER}.query", f"{ENCODER}.key", f"{ENCODER}.value", f"{ENCODER}.weights")
           if np.allclose(point[name][..., 0, :], other[name][..., 0, :])]  # fmt: skip
assert one_row == ["source.input", f"{ENCODER}.query", f"{ENCODER}.key", f"{ENCODER}.value"]
print(f"{len(same)} tables stay; of these only the row of dog changes:", *one_row, sep="\n  ")

# %% [markdown]
# **3. Swap two words.** *Medium · 5 min.* Let the source be `cat black`. How do the probabilities change with
# positions, and how do they change without positions (`positions=False`)?
#
# <details><summary>Hint</summary>
#
# Without positions, which two rows of the memory does the decoder get, and in which order? Does a weighted sum depend
# on the order of its terms?
#
# </details>

# %% tags=["hide-cell"]
for positions in (True, False):
    right, swapped = (by_hand(params, ids, target_input, positions) for ids in (source, source[::-1]))
    change = abs(np.exp(right["log_probs"]) - np.exp(swapped["log_probs"])).max()
    print(f"positions={positions}: the probabilities change by up to {change:.4f}")

# Without positions the memory is the same two rows in a different order, and a weighted sum ignores order.
assert change < 1e-12
assert np.allclose(right["encoder.output"], swapped["encoder.output"][::-1], atol=1e-12)

# %% [markdown]
# **4. Cover up the answer.** *Easy · 3 min.* Feed the decoder `<bos>` alone. What does it now say about the first word,
# compared with before? What does that tell you about the mask?
#
# <details><summary>Hint</summary>
#
# Which cells of the masked attention may the first row see?
#
# </details>

# %% tags=["hide-cell"]
alone = by_hand(params, source, target_input[:1])
assert np.allclose(alone["log_probs"][0], point["log_probs"][0], atol=1e-12)
print("the same: the row of <bos> never saw chat. So all rows can be trained at once.")

# %% [markdown]
# **5.** *Medium · 4 min · on the stage.* You can now imagine what happens if one step of the calculation is wrong.
# [Make a mistake on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&sheet=true&panel=changes&task=mistake)
# that changes the translation; not every mistake does.
#
# <details><summary>Hint</summary>
#
# The list is under *Classic mistakes*. Before you try a mistake, guess how large a share of the numbers it changes.
#
# </details>
#
# ## Next
#
# You have seen every number of a model that knows eight words, and its loss. [Backwards by
# hand](by_hand_backward.py) goes from this loss to the gradient of every weight, and makes the loss smaller. The
# steps of this page have a chapter each: [embeddings](embeddings.py), [positions](positions.py),
# [attention](attention.py), [heads](heads.py), [masks](masks.py), [add & norm](residual.py),
# [feed-forward](feed_forward.py), [output and loss](output.py). In the library, read
# [model/transformer.py](../src/glassformer/model/transformer.py#Transformer) and
# [model/attention.py](../src/glassformer/model/attention.py#attention).
