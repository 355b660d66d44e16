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
# # Backwards by hand
#
# ## The question
#
# The [first half](by_hand.py) computed a whole Transformer with a pencil, up to the loss: how wrong is its
# prediction? Now the other direction: which way should each of the 428 weights move, so that the loss falls? This page
# finds every gradient by hand, checks each one in two ways, and takes one step of training. A model of any size learns
# by the same steps.

# %% [markdown]
# ## The intuition
#
# Training asks about each weight: if it were a little larger, would the loss rise or fall, and how fast? That rate is
# the **gradient** of the loss with respect to that weight. Trying it out for each weight takes two passes through the
# model per weight. One backward pass through the model finds all gradients: each step is told how fast the loss changes
# with its *result*, and works out how fast the loss changes with its *inputs*. That is the chain rule of calculus,
# applied step by step from the end to the beginning (backpropagation).

# %% [markdown]
# ## The mathematics
#
# For any table $x$ of the forward pass, let $\bar{x}$ be the table of the same shape that holds $\partial L / \partial
# x$, cell by cell. Each step turns the $\bar{x}$ of its result into the $\bar{x}$ of its input, and computes the
# gradients of its weights on the way. The table goes from the loss upwards, as the page does.
#
# | step forward | step backward | paper |
# |---|---|---|
# | $p = \mathrm{softmax}(z)$, loss $-\sum_j y_j \ln p_j$, mean of 2 rows | $\bar{z} = (p - y) / 2$ | §5.4 |
# | $c = a W + b$ | $\bar{a} = \bar{c}\, W^\top$, $\bar{W} = a^\top \bar{c}$, $\bar{b}$ = sum of the rows of $\bar{c}$ | §3.3 |
# | layer norm of $a$ | $\bar{a}$ loses its share along "add one number" and along "stretch the row" | §3.1 |
# | residual sum $x + \mathrm{output}$ | the same $\bar{a}$ for both terms | §3.1 |
# | $\max(0, h)$ | passes where $h > 0$ | §3.3 |
# | weights $A = \mathrm{softmax}(s)$ | $\bar{s}_j = A_j (\bar{A}_j - \sum_k A_k \bar{A}_k)$ | §3.2.1 |
# | scores $s = q k^\top / \sqrt{d_k}$ | $\bar{q} = \bar{s}\, k / \sqrt{d_k}$, $\bar{k} = \bar{s}^\top q / \sqrt{d_k}$ | §3.2.1 |
# | one matrix used three times | the sum of three gradients | §3.4 |

# %% [markdown]
# ## Line by line
#
# ### The same model, forwards
#
# The tools, the words and the weights are the same as in the first half, cell for cell. The numbers of the forward
# pass come from the library this time: the first half has shown that the library computes every one of them as the
# pencil does.

# %%
import math
import re
import textwrap

import numpy as np
import torch

import glassformer as gf
from glassformer.watch import pictures


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


# %%
words = ["<pad>", "<bos>", "<eos>", "black", "cat", "dog", "chat", "noir"]
source = [words.index(word) for word in ("black", "cat")]
target_input = [words.index(word) for word in ("<bos>", "chat")]
target_output = [words.index(word) for word in ("chat", "noir")]
S, T, V = ["black", "cat"], ["<bos>", "chat"], len(words)  # names of the rows, and V
source, target_input, target_output

# %% tags=["hide-input"]
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


def put(model, params):
    """Give the model these weights; E is one matrix with three names, so one name is enough."""
    tables = state(params)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(tables[name])


def split(matrix):
    """(positions, 4) -> (2 heads, positions, 2)."""
    return np.stack([matrix[:, 0:2], matrix[:, 2:4]])


def of(tables, part):
    """Return the tables of one part of the model, by their short names."""
    return {name.removeprefix(f"{part}."): table for name, table in tables.items() if name.startswith(f"{part}.")}


# %% [markdown]
# `point` holds every table of the forward pass, by the library's name for it. The smoothed target and the loss are
# computed as before. A function for the loss of *any* weights will be of use below.

# %%
sizes = {"vocab_size": 8, "d_model": 4, "heads": 2, "d_ff": 6}
config = gf.ModelConfig(**sizes, encoder_layers=1, decoder_layers=1, dropout=0.0)
model = gf.Transformer(config).double().eval()


def forward(params):
    """Return every point's table for these weights."""
    put(model, params)
    with gf.record(model) as trace, torch.no_grad():
        model(torch.tensor([source]), torch.tensor([target_input]))
    return {name: (table if name.endswith("positions") else table[0]).numpy() for name, table in trace.items()}


# %%
point = forward(params)
E, memory = params["embedding"]["E"], point["encoder.output"]
probabilities = np.exp(point["log_probs"])
smoothed = np.full((2, V), 0.1 / V)
for place, word in enumerate(target_output):
    smoothed[place, word] += 1 - 0.1


def loss_of(params):
    return -(smoothed * forward(params)["log_probs"]).sum(-1).mean()


loss = loss_of(params)
DIMENSIONS = ["0", "1", "2", "3"]
count = sum(array.size for arrays in params.values() for array in arrays.values())
loss

# %% tags=["hide-input", "check"]
assert count == 428

# %% [markdown]
# ### From the loss to the logits
#
# For one row the loss is $-\sum_j y_j \ln p_j$ with $p = \mathrm{softmax}(z)$. Its derivative with respect to the
# logit $z_j$ is $p_j - y_j$: what the model says minus what it should say. The loss is a mean over 2 rows, so
# $\bar{z} = (p - y) / 2$. Each row sums to 0: what some words lose, others gain. In the code, `slope` holds the
# gradients of the points, by name, and `grads` the gradients of the weights.

# %%
slope = {}  # of the points
grads = {part: {name: np.zeros_like(array) for name, array in arrays.items()} for part, arrays in params.items()}
slope["logits"] = (probabilities - smoothed) / 2
show({"gradient of the logits": slope["logits"].T}, words, T)

# %% tags=["hide-input", "check"]
assert np.allclose(slope["logits"].sum(-1), 0)

# %% tags=["hide-input"]
pencil("[chat], in row <bos>", f"({short(probabilities[0, 6])} − {short(smoothed[0, 6])})/2", slope["logits"][0, 6])

# %% [markdown]
# ### Output matrix
#
# A product $z = h E^\top$ (here $h$ is the decoder's output, not the number of heads) has two gradients: $\bar{h} =
# \bar{z} E$ for the left factor, and $\bar{E} = \bar{z}^\top h$ for the matrix. The same rule holds for every product
# on this page. For $c = a W$,
#
# $$\bar{a} = \bar{c}\, W^\top, \qquad \bar{W} = a^\top \bar{c}, \qquad \bar{b} = \text{the sum of the rows of } \bar{c}$$
#
# with $b$ a bias that was added to each row. $E$ is used three times (output, source, target). This is the first of
# its three shares.

# %%
h = point["decoder.output"]
slope["decoder.output"] = slope["logits"] @ E
as_output = slope["logits"].T @ h
show({"gradient of E, share of the output": as_output}, words)
show({"gradient of decoder.output": slope["decoder.output"]}, T)

# %% tags=["hide-input"]
pencil("E[chat, 0]", products(slope["logits"][:, 6], h[:, 0]), as_output[6, 0])
pencil("decoder.output[<bos>, 0]", products(slope["logits"][0], E[:, 0]), slope["decoder.output"][0, 0])

# %% [markdown]
# ### Layer norm
#
# Let $a$ be a row before the norm, $\sigma = \sqrt{v + 0.00001}$, $n = (a - m)/\sigma$, and $c = n \cdot g + b$ (gain
# and shift, cell by cell). With $u = \bar{c} \cdot g$ (cell by cell), and $\operatorname{mean}$ over the row's 4
# cells,
#
# $$\bar{a} = \frac{u - \operatorname{mean}(u) - n \operatorname{mean}(u \cdot n)}{\sigma}, \qquad \bar{g} = \sum_{\text{rows}} \bar{c} \cdot n, \qquad \bar{b} = \sum_{\text{rows}} \bar{c}$$
#
# The two means are subtracted because the norm ignores two kinds of change: adding one number to the whole row, and
# stretching the row.


# %%
def norm_backward(part, slope, grads, upper):
    """From the gradient `upper` of a layer norm's result to the gradient of the sum that it normalised."""
    a, w = point[f"{part}.added"], params[part]
    # numpy's var divides by 4, as layer norm does
    sigma = np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    n = (a - a.mean(-1, keepdims=True)) / sigma
    u = upper * w["gain"]
    slope[f"{part}.normed"] = upper
    slope[f"{part}.added"] = (u - u.mean(-1, keepdims=True) - n * (u * n).mean(-1, keepdims=True)) / sigma
    grads[part]["gain"], grads[part]["shift"] = (upper * n).sum(0), upper.sum(0)
    return slope[f"{part}.added"]


down = norm_backward(DECODER_FF, slope, grads, slope["decoder.output"])
show({"gradient of the result": slope["decoder.output"], "gradient of the sum": down}, T)

# %% tags=["hide-input", "check"]
assert np.allclose(down.sum(-1), 0)

# %% tags=["hide-input"]
u, n, a = slope["decoder.output"][0], h[0], point[f"{DECODER_FF}.added"][0]
sigma = math.sqrt(a.var() + 1e-5)
pencil("mean(u), row <bos>", f"({total(u)})/4", u.mean())
pencil("mean(u·n), row <bos>", f"({products(u, n)})/4", (u * n).mean())
pencil("sum[<bos>, 0]", f"({short(u[0])} − {factor(u.mean())} − {factor(n[0])}·{factor((u * n).mean())})/{short(sigma)}", down[0, 0])  # fmt: skip

# %% [markdown]
# ### Feed-forward network
#
# Going backwards through $\max(0, \mathrm{hidden})$, a gradient passes where hidden was positive, and is 0 elsewhere.
# The residual sum $x + \mathrm{output}$ passes its gradient unchanged to both of its terms. So the gradient that
# continues downwards is the sum of two: one direct, one through the network.


# %%
def feed_forward_backward(part, slope, grads, upper):
    """From the gradient of a feed-forward sub-layer's result to the gradient of its input."""
    now, w, g = of(point, part), params[part], grads[part]
    output = norm_backward(part, slope, grads, upper)
    g["W_2"], g["b_2"] = now["activated"].T @ output, output.sum(0)
    activated = output @ w["W_2"].T
    hidden = np.where(now["hidden"] > 0, activated, 0.0)
    g["W_1"], g["b_1"] = now["input"].T @ hidden, hidden.sum(0)
    below = output + hidden @ w["W_1"].T  # directly, and through the network
    slope |= {f"{part}.{name}": table for name, table in
              {"output": output, "activated": activated, "hidden": hidden, "input": below}.items()}  # fmt: skip
    return below


down = feed_forward_backward(DECODER_FF, slope, grads, slope["decoder.output"])
now = of(slope, DECODER_FF)
show({"gradient of activated": now["activated"]}, T)
show({"gradient of hidden": now["hidden"]}, T)

# %%
show({"gradient of W_2": grads[DECODER_FF]["W_2"]}, [*DIMENSIONS, "4", "5"])
show({"gradient of W_1": grads[DECODER_FF]["W_1"]}, DIMENSIONS)
show({"gradient of the input": down}, T)

# %% tags=["hide-input"]
unit = int((point[f"{DECODER_FF}.activated"] > 0).all(0).argmax())  # active in both rows, if there is such a unit
pencil(f"W_2[{unit}, 0]", products(point[f"{DECODER_FF}.activated"][:, unit], now["output"][:, 0]), grads[DECODER_FF]["W_2"][unit, 0])  # fmt: skip

# %% [markdown]
# ### Attention
#
# We go down through $W_O$ and the split into heads as before. In one head, with weights $A$, scores $s$, and heads $=
# A v$, the rule for products gives $\bar{v} = A^\top\, \overline{\mathrm{heads}}$ and $\bar{A} =
# \overline{\mathrm{heads}}\, v^\top$. Then comes the softmax, row by row:
#
# $$\bar{s}_j = A_j \Big( \bar{A}_j - \sum_k A_k \bar{A}_k \Big)$$
#
# In words: $\bar{A}_j$ says how much the loss would rise with more weight on key $j$. If that is more than the
# average of the row, the score has a positive gradient, and training will lower it. If it is less, training will
# raise it. The larger the weight already is, the larger the effect; a weight of 0 (masked) has no effect at all.
# Finally, $s = q k^\top / \sqrt{2}$ gives $\bar{q} = \bar{s}\, k / \sqrt{2}$ and $\bar{k} = \bar{s}^\top q /
# \sqrt{2}$. From there on we have products again.


# %%
def attention_backward(part, slope, grads, upper, memory=None):
    """From the gradient of an attention sub-layer's result to the gradients of its stream and its memory."""
    now, w, g = of(point, part), params[part], grads[part]
    x = now["input"]
    memory = x if memory is None else memory
    output = norm_backward(part, slope, grads, upper)
    g["W_O"], g["b_O"] = now["joined"].T @ output, output.sum(0)
    joined = output @ w["W_O"].T
    heads, A = split(joined), now["weights"]
    q, k, v = now["query"], now["key"], now["value"]
    value = A.transpose(0, 2, 1) @ heads
    weights = heads @ v.transpose(0, 2, 1)
    scores = A * (weights - (A * weights).sum(-1, keepdims=True))
    query, key = scores @ k / math.sqrt(2), scores.transpose(0, 2, 1) @ q / math.sqrt(2)
    streams = {}
    for name, table, read in (("Q", query, x), ("K", key, memory), ("V", value, memory)):
        both = np.concatenate([table[0], table[1]], axis=1)
        g[f"W_{name}"], g[f"b_{name}"] = read.T @ both, both.sum(0)
        streams[name] = both @ w[f"W_{name}"].T
    slope |= {f"{part}.{name}": table for name, table in
              {"output": output, "joined": joined, "heads": heads, "weights": weights, "scores": scores,
               "query": query, "key": key, "value": value}.items()}  # fmt: skip
    return output + streams["Q"], streams["K"] + streams["V"]


# %%
down, to_memory = attention_backward(CROSS, slope, grads, down, memory)
slope[f"{CROSS}.input"] = down
now = of(slope, CROSS)
show(
    {
        "gradient of weights, head 0": now["weights"][0],
        "gradient of scores, head 0": now["scores"][0],
    },
    T,
    S,
)
show({"gradient of W_Q": grads[CROSS]["W_Q"]}, DIMENSIONS)
show({"gradient of the memory": to_memory}, S)

# %% tags=["hide-input"]
A, worth = point[f"{CROSS}.weights"][0, 0], now["weights"][0, 0]
pencil("average of row <bos>", products(A, worth), (A * worth).sum())
pencil("scores[head 0, <bos>, cat]", f"{short(A[1])}·({short(worth[1])} − {factor((A * worth).sum())})", now["scores"][0, 0, 1])  # fmt: skip

# %% [markdown]
# The rest uses the same functions, from the end to the beginning: the decoder's masked self-attention, then the
# encoder, which the gradient reaches only through the memory.

# %%
down, from_keys = attention_backward(MASKED, slope, grads, down)
# x was query, key and value
slope["target.input"] = slope[f"{MASKED}.input"] = down + from_keys
up = feed_forward_backward(ENCODER_FF, slope, grads, to_memory)
slope["encoder.output"] = to_memory
down, from_keys = attention_backward(ENCODER, slope, grads, up)
slope["source.input"] = slope[f"{ENCODER}.input"] = down + from_keys
show({"gradient of source.input": slope["source.input"]}, S)
show({"gradient of target.input": slope["target.input"]}, T)

# %% tags=["hide-input", "check"]
# the row of <bos> had one key: nothing to choose
assert (slope[f"{MASKED}.scores"][:, 0] == 0).all()

# %% [markdown]
# ### The embedding, from three sides
#
# A word's row of $E$ was looked up (and multiplied by 2), and it was also used in the output. Because the paper shares
# one matrix (§3.4), these gradients add up. `dog` was in neither sentence, so its only share comes from the output.

# %%
as_source, as_target = np.zeros_like(E), np.zeros_like(E)
for place, (source_id, target_id) in enumerate(zip(source, target_input)):
    as_source[source_id] += 2 * slope["source.input"][place]
    as_target[target_id] += 2 * slope["target.input"][place]

grads["embedding"]["E"] = as_output + as_source + as_target
show(
    {"as output": as_output, "as source": as_source, "as target": as_target},
    words,
    digits=3,
)

# %%
show({"gradient of E": grads["embedding"]["E"]}, words)

# %% tags=["hide-input"]
parts = [share[6, 0] for share in (as_output, as_source, as_target)]
pencil("E[chat, 0]", total(parts), grads["embedding"]["E"][6, 0])

# %% [markdown]
# ### Is it right?
#
# We check the gradients in two ways. First, PyTorch's autograd goes backwards through `gf.Transformer`. Autograd must
# find the same gradients for all 428 weights and for every table on the way. (`gf.record` keeps the tensors in the
# graph, so we can ask for their gradients.)

# %%
with gf.record(model) as trace:
    z = model(torch.tensor([source]), torch.tensor([target_input]))[0]

library_loss = torch.nn.functional.cross_entropy(z, torch.tensor(target_output), label_smoothing=0.1)
asked = list(slope)
weights_of = dict(model.named_parameters())
found = torch.autograd.grad(library_loss, [*weights_of.values(), *(trace[name] for name in asked)])


print(f"equal to autograd: {count} weights, {len(asked)} tables on the way")

# %% tags=["hide-input", "check"]
assert abs(library_loss.item() - loss) < 1e-12
for (name, _), gradient in zip(weights_of.items(), found):
    torch.testing.assert_close(gradient, state(grads)[name], rtol=0, atol=1e-12)

for name, gradient in zip(asked, found[len(weights_of) :]):
    torch.testing.assert_close(gradient[0], torch.tensor(slope[name]), rtol=0, atol=1e-12)

# %% [markdown]
# The library's own loss, which never holds all logits at once, has the same value and gradient:

# %%
from glassformer.training.objective import smoothed_cross_entropy

last = torch.tensor(h, requires_grad=True)
own = smoothed_cross_entropy(last, torch.tensor(E), torch.tensor(target_output), 0.1).smoothed / 2
own.backward()
own.item()

# %% tags=["hide-input", "check"]
assert abs(own.item() - loss) < 1e-12
torch.testing.assert_close(last.grad, torch.tensor(slope["decoder.output"]), rtol=0, atol=1e-12)

# %% [markdown]
# The second check uses nothing but the forward pass. Make a weight larger and smaller by $\delta = 0.00001$, compute
# the whole model both times, and divide the difference of the losses by $2\delta$. That is what a gradient *means*.
# First four weights to look at, then all of them.


# %%
def measured(part, name, cell, delta=1e-5):
    """Return how fast the loss changes with one weight, by trying."""
    array = params[part][name]
    kept = array[cell]
    found = []
    for change in (delta, -delta):
        array[cell] = kept + change
        found.append(loss_of(params))
        array[cell] = kept
    return (found[0] - found[1]) / (2 * delta)


for part, name, cell in ((CROSS, "W_Q", (1, 0)), ("embedding", "E", (4, 2)), (ENCODER_FF, "W_1", (0, 1)), (ENCODER, "gain", (3,))):  # fmt: skip
    print(f"{part}.{name}{list(cell)}: by hand {grads[part][name][cell]:+.8f}, tried {measured(part, name, cell):+.8f}")

worst = max(abs(measured(part, name, cell) - grads[part][name][cell])
            for part, arrays in params.items() for name, array in arrays.items() for cell in np.ndindex(array.shape))  # fmt: skip
print(f"largest difference of all {count}: {worst:.1e}")

# %% tags=["hide-input", "check"]
assert worst < 1e-8  # the error of the method itself is about δ²

# %% [markdown]
# ### The step
#
# **Gradient descent**: each weight moves against its gradient, $w \leftarrow w - \eta \bar{w}$, with a small learning
# rate $\eta$ (here 0.05). If the loss were a straight line, it would fall by $\eta$ times the sum of all squared
# gradients. The loss is not a straight line, so it falls only roughly by this amount.


# %%
def moved(params, change):
    """Return the weights, each moved by `change(part, name)`."""
    return {
        part: {name: array + change(part, name) for name, array in arrays.items()} for part, arrays in params.items()
    }


rate = 0.05
after = moved(params, lambda part, name: -rate * grads[part][name])
promised = rate * sum((gradient**2).sum() for arrays in grads.values() for gradient in arrays.values())
print(f"loss before {loss:.4f}, after {loss_of(after):.4f}; promised {loss - promised:.4f}")

# %% tags=["hide-input", "check"]
assert loss_of(after) < loss

# %% tags=["hide-input"]
pencil("new W_2[0, 0] of the decoder", f"{params[DECODER_FF]['W_2'][0, 0]} − 0.05·{factor(grads[DECODER_FF]['W_2'][0, 0])}".replace("-", "−"), after[DECODER_FF]["W_2"][0, 0])  # fmt: skip

# %% [markdown]
# **Adam** (§5.3) is what the paper uses. For each weight with gradient $g$ it keeps two running means: of the
# gradient, $m \leftarrow \beta_1 m + (1 - \beta_1) g$, and of its square, $v \leftarrow \beta_2 v + (1 - \beta_2)
# g^2$, with $\beta_1 = 0.9$ and $\beta_2 = 0.98$. Both start at 0. To make up for that, they are divided by $1 -
# \beta_1^t$ and $1 - \beta_2^t$ at step $t$, which gives $\hat{m}$ and $\hat{v}$. Then $w \leftarrow w - \eta\,
# \hat{m} / (\sqrt{\hat{v}} + 10^{-9})$. At the first step $\hat{m} = g$ and $\hat{v} = g^2$, so each weight moves by
# $\eta$ against the sign of its gradient, however small the gradient is.


# %%
def adam_step(part, name, rate=0.01):
    """Return the change of Adam's first step."""
    g = grads[part][name]
    m, v = 0.1 * g, 0.02 * g**2
    m_hat, v_hat = m / (1 - 0.9), v / (1 - 0.98)
    return -rate * m_hat / (np.sqrt(v_hat) + 1e-9)


after = moved(params, adam_step)
show(
    {"gradient": grads[CROSS]["W_Q"], "change by Adam": adam_step(CROSS, "W_Q")},
    DIMENSIONS,
)
print(f"loss before {loss:.4f}, after {loss_of(after):.4f}")

# %% tags=["hide-input", "check"]
assert loss_of(after) < loss
put(model, params)  # the loss after the step was computed with other weights
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
for weight, gradient in zip(model.parameters(), found):
    weight.grad = gradient

optimiser.step()
for name, weight in model.named_parameters():
    torch.testing.assert_close(weight.detach(), state(after)[name], rtol=0, atol=1e-9)

# %% [markdown]
# After 60 such steps the little model knows its one sentence by heart. Label smoothing keeps the loss above 0. The best
# possible loss is reached when the probabilities equal the smoothed target: $-\sum_j y_j \ln y_j$.

# %%
put(model, params)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
fall = []
for _ in range(60):
    z = model(torch.tensor([source]), torch.tensor([target_input]))[0]
    value = torch.nn.functional.cross_entropy(z, torch.tensor(target_output), label_smoothing=0.1)
    fall.append(value.item())
    optimiser.zero_grad()
    value.backward()
    optimiser.step()

with gf.record(model) as trained, torch.no_grad():
    model(torch.tensor([source]), torch.tensor([target_input]))

said = [words[place] for place in trained["log_probs"][0].argmax(-1)]
best = -(smoothed * np.log(smoothed)).sum(-1).mean()
print(f"black cat → {' '.join(said)}; loss {fall[0]:.3f} → {fall[-1]:.3f}, best possible {best:.3f}")
show({"p after <bos>, before and after": np.stack([probabilities[0], trained["log_probs"][0, 0].exp()], 1)}, words, ["before", "after"])  # fmt: skip

# %% tags=["hide-input", "check"]
assert said == ["chat", "noir"]
assert best < fall[-1] < loss

# %% [markdown]
# See where the curve flattens: towards the dashed line, not towards 0.

# %% tags=["hide-input"]
pictures.curves(
    {"loss": (range(60), fall), "best possible": ([0, 59], [best, best])},
    x_label="steps of Adam",
    y_label="loss",
    alt=f"the loss falls from {fall[0]:.2f} to {fall[-1]:.2f} in 60 steps, close to the best possible {best:.2f}",
)

# %% [markdown]
# ## What goes wrong
#
# A wrong gradient seldom crashes: its table has the right shape, and the loss often still falls, only more slowly. Each
# line printed below shows one cell computed the wrong way, next to the right value.
#
# - Only the network's share at a residual sum, without the direct one.
# - Layer norm backwards as a division by $\sigma$ alone, as if mean and variance were constants.
# - The softmax backwards without the average of the row.
# - The shared matrix $E$ with only the share that comes from the output.
# - The loss as a sum over the rows instead of their mean: every gradient is twice as large.

# %%
now, back = of(point, CROSS), of(slope, CROSS)
ff, ff_back = of(point, DECODER_FF), of(slope, DECODER_FF)
sigma = np.sqrt(ff["added"].var(-1, keepdims=True) + 1e-5)
wrong = {
    "input of the decoder's feed-forward[<bos>, 0], without the direct share": (
        (ff_back["hidden"] @ params[DECODER_FF]["W_1"].T)[0, 0],
        ff_back["input"][0, 0],
    ),
    "sum before its norm[<bos>, 0], divided by σ alone": (
        (ff_back["normed"] / sigma)[0, 0],
        ff_back["added"][0, 0],
    ),
    "scores[head 0, <bos>, cat], without the average": (
        (now["weights"] * back["weights"])[0, 0, 1],
        back["scores"][0, 0, 1],
    ),
    "E[cat, 0], share of the output alone": (as_output[4, 0], grads["embedding"]["E"][4, 0]),
    "logits[<bos>, chat], sum over the rows": ((probabilities - smoothed)[0, 6], slope["logits"][0, 6]),
}
for what, (bad, good) in wrong.items():
    print(f"{what}: {short(bad)} instead of {short(good)}")

# %% tags=["hide-input", "check"]
assert all(abs(bad - good) > 0.005 for bad, good in wrong.values())

# %% [markdown]
# All five are found by the same check: compare with the change of the loss that `measured` finds by trying. PyTorch has
# this check as `torch.autograd.gradcheck`.

# %% [markdown]
# ## Exercises
#
# **1. A gradient with the pencil.** *Easy · 3 min.* Compute the gradient of the logit of `noir` in the row of `chat`.
# Which sign must it have, and why?
#
# <details><summary>Hint</summary>
#
# The gradient is the probability minus the smoothed target, divided by the number of rows.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: the gradient
print(verdict("by_hand_backward.1", answer, probabilities, smoothed))

# %% tags=["hide-cell"]
# `noir` is the right word there, so its logit should rise: the gradient is negative.
answer = (probabilities[1, 7] - smoothed[1, 7]) / 2
pencil("[noir], in row chat", f"({short(probabilities[1, 7])} − {short(smoothed[1, 7])})/2", answer)
assert answer == slope["logits"][1, 7] < 0
assert verdict("by_hand_backward.1", answer, probabilities, smoothed) == "right"

# %% [markdown]
# **2. Words that nobody said.** *Medium · 5 min.* `dog` and `<eos>` occur neither in the source nor in the target's
# input. Do their rows of $E$ change in a step of gradient descent? Would they, if the output had a matrix of its own?
#
# <details><summary>Hint</summary>
#
# $E$ is used three times: as both inputs and as the output. Which of these uses involves words that do not occur?
#
# </details>

# %% tags=["hide-cell"]
# They change: as wrong answers, they are pushed away. With a matrix of its own, the output would not touch them here.
for word in (words.index("dog"), words.index("<eos>")):
    assert abs(grads["embedding"]["E"][word]).max() > 1e-3
    assert (as_source[word] == 0).all() and (as_target[word] == 0).all()

# %% [markdown]
# **3. A louder loss.** *Medium · 4 min.* Multiply the loss by 10. What happens to the step of gradient descent, and
# what to the first step of Adam?
#
# <details><summary>Hint</summary>
#
# By which factor does the gradient change? What does Adam divide it by?
#
# </details>

# %%
answer = None  # instead of None: two factors, for gradient descent and for Adam, as a list
print(verdict("by_hand_backward.3", answer))

# %% tags=["hide-cell"]
# Gradient descent's step is 10 times as long. Adam divides by the size of the gradient, so its step stays as it is.
before = adam_step(CROSS, "W_Q")
kept = grads[CROSS]["W_Q"]
grads[CROSS]["W_Q"] = 10 * kept
assert np.allclose(adam_step(CROSS, "W_Q"), before, rtol=0, atol=1e-7)
assert verdict("by_hand_backward.3", [10, 1]) == "right"
grads[CROSS]["W_Q"] = kept

# %% [markdown]
# **4. A weight that can never learn.** *Hard · 6 min.* The gradient of the bias of the keys, `b_K`, is 0 in all three
# attentions. Why?
#
# <details><summary>Hint</summary>
#
# What does the bias add to the scores of one query?
#
# </details>

# %% tags=["hide-cell"]
# A bias adds the same vector to all keys, so one query's scores all change by the same number, q · b_K / √2. The softmax
# ignores a number that is added to a whole row.
for part in (ENCODER, MASKED, CROSS):
    assert abs(grads[part]["b_K"]).max() < 1e-15
    assert abs(grads[part]["b_V"]).max() > 1e-3

# %% [markdown]
# ## Next
#
# You have seen every number of a model that knows eight words, forwards and backwards. [Byte pairs by hand](byte_pairs.py)
# shows how a model gets by with a vocabulary of pieces, and cuts words that nobody has seen. [Training](training.py)
# repeats the step of this page until the model translates. In the library, read
# [training/objective.py](../src/glassformer/training/objective.py#smoothed_cross_entropy).
