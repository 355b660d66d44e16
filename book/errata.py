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
# # Errata
#
# A Transformer takes few lines of code, and most of them can be wrong without any warning. The reason is that **shapes
# stay right**: use the wrong mask, leave out a factor, swap two axes, and the program still runs, and often even learns.
# So these mistakes are easy to write and hard to see; only a few of those below raise an error. All of them were made by
# careful people, in texts from which many readers have learned a lot. If you find a mistake of yours here, you are in
# good company.

# %% [markdown]
# ## You have code that runs
#
# You have followed a tutorial, and the code runs. Look for its lines here. The last column is a test for your own
# code: an expression that is True if the code is right. It is False for the mistake that the row names or warns of. The
# names stand for tensors of your code: `tgt` for ids of shape (B, T), `bos` for the id of `<bos>`, and `V` for the size
# of the vocabulary.
#
# | your line | verdict | because | test it |
# |---|---|---|---|
# | `scores.masked_fill(mask == 0, -1e9)` | harmless | In float32, a masked weight is exactly 0 wherever the row has a real key. A row without one looks at all hidden keys ([−10 000](#minus-ten-thousand)). [Step 1](write_it_yourself.py#step-1-attention) of your own model must give 0 there, so it rejects this line. float16 has no −1e9. | `(weights * (mask == 0)).sum() == 0` |
# | `tgt_mask = (tgt != 0)[:, None, :, None] & nopeak` | wrong | It hides rows. After −∞, a row that is hidden as a whole is NaN, and one layer later all rows are, because 0 · NaN is NaN. After −1e9, it matters where the padding is ([rows or columns](#mask-rows-or-columns)). The right index is `[:, None, None, :]`. | with padding in `tgt`, the last row hides the padding and nothing else: `torch.equal(tgt_mask[:, 0, -1], tgt != 0)` |
# | `nn.Embedding(V, d)`, then no factor | harmless | The rows are N(0, 1), so a word has the share 2/3 against its position, as in the paper ([embedding](#no-scaling-of-the-embedding)). | before training, and before the positions are added: `0.9 < x.std() < 1.1` |
# | `nn.Embedding(V, d)`, then `* math.sqrt(d)` | wrong | For d = 512 the position's share is 0.1 %. Draw the rows with `std=d**-0.5` ([positions](#embeddings-that-drown-the-positions)). | before training, and before the positions are added: `0.9 < x.std() < 1.1` (with the mistake, it is 22.6) |
# | `i` from `range(0, d, 2)`, then `10000 ** (2 * i / d)` | wrong | Such an `i` is 2i already. Half of the frequencies are lost ([exponent](#doubled-exponent)); without the `2 *` it is right. | `torch.allclose(pe.view(-1, d), gf.sinusoids(pe.numel() // d, d), atol=1e-3)` |
# | `model(src, tgt[:, :-1])`, loss against `tgt[:, 1:]` | right | Each position predicts the next token, if `tgt` begins with `<bos>` ([shift](#shifted-target)). | `read` is the model's input, and `said` is what the loss compares with: `torch.equal(read[:, 1:], said[:, :-1]) and (read[:, 0] == bos).all()` |
# | `torch.randint(1, V, (64, 100))` once, before the loop | harmless | A fixed batch can be learned by heart, so its loss goes to 0: the code can learn, and nothing more is shown. If each step draws a new source and, independently, a new target, only guessing is left: a right model's mean loss stays at ln(V − 1) or above, which is 8.52 for V = 5 000. A lower loss shows that the model reads the answer ([causal mask](#no-causal-mask), [shift](#shifted-target)). If the target follows from the source, new sequences can be learned ([step 11](write_it_yourself.py#step-11-training) copies them). | draw both inside the loop, and train: `loss > 0.9 * math.log(V - 1)` |
# | `k.view(B, h, S, dk)` | wrong | It mixes positions. Right: `.view(B, S, h, dk).transpose(1, 2)` ([view](#view-without-transpose)). | `torch.equal(heads[:, 0], k[..., :dk])` |
# | a last `softmax`, then `nn.CrossEntropyLoss()` | wrong | The loss takes logits, and applies a softmax itself. No answer gets below ln(e + V − 1) − 1, which is 7.52 for V = 5 000 ([softmax](#softmax-twice)). | `(output < 0).any()` |
# | `nn.CrossEntropyLoss(ignore_index=0)` | right | Padding does not count, and the mean is over real tokens, if 0 is the padding's id ([padding](#padding-in-the-loss)). | after `model.eval()`, compute the loss twice: `loss` as it is, and `longer` after you have added one `<pad>` at the end of each row of `tgt`: `torch.isclose(longer, loss)` |
# | `x = x + sublayer(norm(x))` | right | This is pre-norm, and needs one more norm after the last layer. The paper's post-norm is `norm(x + sublayer(x))`. Only `norm(x) + …` is wrong ([norm order](#norm-order-swapped), [residual](#residual-of-the-normalised-x)). | with `sublayer = torch.zeros_like`, and `out` for the new x: `torch.equal(out, x)` |
#
# To have your whole file checked step by step, see [Write it yourself](write_it_yourself.py).

# %% [markdown]
# ## Every mistake
#
# Each section below can be read by itself. It gives the mistake, its effect (in numbers), the fix (checked against this
# library or PyTorch), and, folded, the test that catches it. Look for your symptom in the table and follow the link.
#
# | the mistake | the symptom | section |
# |---|---|---|
# | the residual adds the normalised x | deep stacks learn slowly | [Residual](#residual-of-the-normalised-x) |
# | dropout is applied to the input instead of the result | attention has no effect | [Dropout](#dropout-on-the-wrong-tensor) |
# | a norm with n − 1, and ε outside the root | loaded weights are slightly off | [Norm](#another-layer-norm) |
# | embeddings from N(0, 1), times √d_model | word order hardly matters | [Positions](#embeddings-that-drown-the-positions) |
# | 10 rows for the ids 0 to 10 | an index error, or wrong words | [Vocabulary](#off-by-one-in-the-vocabulary) |
# | six layers made by copying one | all layers start equal | [Copies](#copied-layers) |
# | "three parameter vectors" | a query cannot mix features | [Three matrices](#three-vectors) |
# | "divide the word's 512 numbers into 8" | each head sees an eighth of the word | [Slices](#heads-are-not-slices) |
# | the mask hides rows instead of columns | padding changes the encoder's results, or NaN | [Rows or columns](#mask-rows-or-columns) |
# | positions as exp(−log …) in float32 | far positions are off by 4e-4 | [Log space](#positions-in-log-space) |
# | the exponent of the positions is doubled | half of the columns hardly change | [Exponent](#doubled-exponent) |
# | `*` where `@` is meant | nonsense of the right shape | [Product](#elementwise-instead-of-a-matrix-product) |
# | a square, a sign or an index is missing | your numbers differ from the text's | [Formulas](#three-formulas) |
# | "dot products of similar words tend to 1" | scores of 100 come as a surprise | [Dot products](#dot-products-are-not-bounded) |
# | the masked sub-layer is taken for the new one | cross-attention is missing | [New sub-layer](#which-sub-layer-is-new) |
# | "several heads are faster" | the wrong number of heads is chosen | [What for](#what-heads-are-for) |
# | a norm reads an attribute that was never set | an error at the first call | [Crash](#a-norm-that-crashes) |
# | ε = 1e-12 in a norm | NaN in float16; constant rows become noise | [ε](#an-epsilon-too-small) |
# | the attention matrix is not returned | nothing can be drawn | [Dropped](#a-matrix-computed-and-dropped) |
# | no √d_model, although the rows start small (1/√d_model) | words hardly matter | [Embedding](#no-scaling-of-the-embedding) |
# | masked scores become −10 000 | a fully masked row attends to padding | [−10 000](#minus-ten-thousand) |
# | `F.dropout` without `training=` | two runs give two results | [Dropout stays on](#dropout-that-stays-on) |
# | words and positions are "concatenated" | a width of 2 · d_model | [Adding](#concatenating-or-adding) |
# | a docstring with the wrong shape; mixed import roots | all words get the same position | [Docstring](#docstring-and-shape) |
# | `view` without `transpose` | results depend on the length | [View](#view-without-transpose) |
# | "masked to 0", before or after the softmax | hidden keys count | [Masked to 0](#masked-to-zero) |
# | a head's output is "(512, 64)" | the shapes do not match | [Shape](#shape-of-a-head) |
# | "the second word has position 2" | every position is off by one | [Position 1](#second-word-position-one) |
# | "strictly between −1 and 1" | a test that fails at position 0 | [Range](#closed-range) |
# | "8 heads bring 64 back to 512" | odd numbers of heads seem impossible | [Width](#heads-do-not-restore-the-width) |
# | queries "from the previous output" | the decoder forgets what it has written | [Which queries](#queries-from-the-previous-output) |
# | masked scores are filled with 0 | padding changes the results | [0 or −∞](#zero-is-not-minus-infinity) |
# | heads in a plain Python list | they are neither trained nor saved | [List](#heads-in-a-plain-list) |
# | a tensor made on the CPU in the forward pass | an error on a GPU | [Device](#a-tensor-on-the-wrong-device) |
# | (v, k, q) here, (q, k, v) there | a wrong result without an error | [Order](#order-of-arguments) |
# | the decoder sees the future | a wonderful loss, and gibberish | [Causal mask](#no-causal-mask) |
# | cross-attention with the target's padding mask | the ends of sources are lost | [Which mask](#targets-padding-in-cross-attention) |
# | cross-attention with the decoder's own keys | fluent output about something else | [Which keys](#keys-from-the-decoder) |
# | softmax, then cross-entropy | the loss stays high | [Softmax](#softmax-twice) |
# | the target is not shifted | the loss falls to 0, the output repeats itself | [Shift](#shifted-target) |
# | padding counts in the loss | the loss is too good | [Padding](#padding-in-the-loss) |
# | scores divided by √d_model, or by nothing | attention too even, or too sharp | [Scale](#scale-by-the-whole-width) |
# | pre-norm and post-norm are swapped | loaded weights give nonsense | [Norm order](#norm-order-swapped) |
#
# You can plant many of these mistakes in a working model: `plant(model, "no_scale")` makes the model commit one for a
# while. `gf.check` (on the command line: `glassformer check RUN`) is the self-test that should find this mistake.
# `verdict` below prints the findings: the likely mistake and the names of the failed checks. The check *reference*
# compares every number of a forward pass with a second implementation in NumPy. The checks *causality*, *padding* and
# *batch* change things that must not matter: later tokens, padding, and the other sentences of the batch. Tests are
# named by their file in `tests/`.

# %%
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.attention import MultiHeadAttention, attention_weights, join_heads, split_heads
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap
from glassformer.watch import pictures
from glassformer.watch.inspection import MISTAKES, plant

_ = torch.manual_seed(1)

# %% tags=["hide-input"]
model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).double().eval()
source = torch.tensor([[4, 5, 6, 7, 8, 2]])  # five symbols and <eos>
target_input = torch.tensor([[1, 4, 5, 6]])  # <bos> and three symbols


def verdict(mistake):
    """Print what gf.check says while our model makes this mistake: the likely mistake and the failed checks."""
    with plant(model, mistake):
        failed = {one.name: one for one in gf.check(model).failures}
    assert MISTAKES[mistake].title in failed["reference"].likely
    print("likely:", *failed["reference"].likely)
    print("failed checks:", ", ".join(failed))


def short(numbers):
    """Return the numbers of a row, rounded to three decimals."""
    return [round(number, 3) for number in numbers.flatten().tolist()]


print(f"mistakes that plant knows: {len(MISTAKES)}; our model passes gf.check: {gf.check(model).passed}")

# %% tags=["hide-input", "check"]
assert gf.check(model).passed
# The numbers of "You have code that runs":
assert [round(math.log(4_999), 2), round(math.log(math.e + 4_999) - 1, 2)] == [8.52, 7.52]
assert round(math.sqrt(512), 1) == 22.6
share_of_position = gf.sinusoids(100, 512).square().mean() / (512 + 0.5)
assert round(100 * share_of_position.item(), 1) == 0.1

# %% [markdown]
# **From notebooks that build the encoder line by line**

# %% [markdown]
# ## Residual of the normalised x
#
# In a pre-norm layer, x is normalised and goes through a sub-layer, and the sub-layer's result is added to x. If the
# normalised value takes over the *name* x, the layer adds back the normalised x. To see what is lost, take a sub-layer
# that adds nothing: its input must come out unchanged.


# %%
def overwritten(x, norm, sublayer):
    x = norm(x)  # from here on, the x that came in is gone
    return x + sublayer(x)


def right(x, norm, sublayer):
    return x + sublayer(norm(x))


residual = Residual(nn.LayerNorm(4), "pre", dropout=0.0, tap=Tap())
x = 100 * torch.randn(1, 1, 4)
print("comes in:   ", short(x))
print("right:      ", short(right(x, residual.norm, torch.zeros_like)))
print("overwritten:", short(overwritten(x, residual.norm, torch.zeros_like)))
verdict("residual_normed")

# %% tags=["hide-input", "check"]
assert torch.equal(right(x, residual.norm, torch.zeros_like), x)
torch.testing.assert_close(right(x, residual.norm, torch.tanh), residual(x, torch.tanh))

# %% [markdown]
# The second sub-layer (feed-forward) invites the same mistake, so the mistake often occurs twice. The fix: give the
# normalised value its own name, or no name at all, as in `right`.
#
# More in [add & norm](residual.py#what-goes-wrong) and [the encoder](encoder.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_residual.py`: `test_pre_norm_normalises_the_input_and_adds_x_unchanged`.
#
# </details>

# %% [markdown]
# ## Dropout on the wrong tensor
#
# The code says `dropped = dropout(x)` where `dropout(attended)` is meant: the attention is computed and never used. The
# lines that follow, a transpose and a view, are meant to join heads (30, 8, 10, 64). Applied to the layer's input (30,
# 10, 512), they return the same shape, with the features of ten positions mixed up.

# %%
attend = MultiHeadAttention(d_model=512, heads=8, d_k=64, d_v=64, dropout=0.1).eval()
dropout = nn.Dropout(0.1).eval()  # in evaluation nothing is dropped, so that we can compare
x, heads = torch.randn(30, 10, 512), torch.randn(30, 8, 10, 64)


def joined(tensor):
    return tensor.transpose(1, 2).contiguous().view(30, -1, 512)


for attended in (attend(x), torch.zeros_like(x)):
    wrong = x + joined(dropout(x))  # attended is not used
    fixed = x + dropout(attended)
    print(f"first number of the output: wrong {wrong[0, 0, 0]:.4f}, fixed {fixed[0, 0, 0]:.4f}")

print("position 0 begins with:        ", short(joined(x)[0, 0, :4]))
print("feature 0 of positions 0 to 3: ", short(x[0, :4, 0]))

residual = Residual(nn.LayerNorm(512), "pre", dropout=0.1, tap=Tap()).eval()

# %% tags=["hide-input", "check"]
torch.testing.assert_close(joined(heads), join_heads(heads))  # its purpose
assert joined(x).shape == x.shape  # the same shape by accident:
assert torch.equal(joined(x)[0, 0, :10], x[0, :, 0])  # position 0 begins with feature 0 of all ten positions
torch.testing.assert_close(x + dropout(attend(residual.norm(x))), residual(x, attend))

# %% [markdown]
# The wrong code gives the same result, whatever the attention returns.
#
# More in [the encoder](encoder.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_residual.py`: `test_dropout_acts_on_the_output_of_the_sublayer_and_never_on_x`; for the joining,
# `model/test_attention.py`: `test_join_heads_undoes_split_heads`.
#
# </details>

# %% [markdown]
# ## Another layer norm
#
# Layer norm divides by $\sqrt{\sigma^2 + \varepsilon}$, where the variance $\sigma^2$ is the mean of the squared
# deviations (divided by $n$, the width) and $\varepsilon$ is a tiny number. `x.std()` divides by $n - 1$ instead, and
# $\varepsilon$ is often added outside the root.


# %%
def other_norm(x, eps=1e-5):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def usual_norm(x, eps=1e-5):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)


for width in (4, 512):
    x = torch.randn(1000, width, dtype=torch.float64)
    smaller = 1 - (other_norm(x) / usual_norm(x)).mean().item()
    print(f"width {width}: {smaller:.1%} smaller")

verdict("unbiased_norm")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(usual_norm(x), F.layer_norm(x, (width,)))
assert abs(1 - smaller - math.sqrt((width - 1) / width)) < 1e-3

# %% [markdown]
# A model trained with this norm adapts to it. With weights that were trained with the usual norm, the result of each
# norm is too small: by 13 % in an example on paper with 4 numbers.
#
# More in [add & norm](residual.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_residual.py`: `test_post_norm_normalises_the_sum`.
#
# </details>

# %% [markdown]
# ## Embeddings that drown the positions
#
# `nn.Embedding` draws its rows from N(0, 1), and the paper multiplies rows by $\sqrt{d_\mathrm{model}}$ (§3.4).
# Together, the two give values of ±70 and more for $d_\mathrm{model} = 512$, while positions stay within ±1. The rows
# have to start with a standard deviation of $1 / \sqrt{d_\mathrm{model}}$.

# %%
loud, ours = torch.randn(11, 512), torch.randn(11, 512) / math.sqrt(512)
positions = gf.sinusoids(10, 512)
for name, rows in {"N(0, 1)": loud, "N(0, 1/512)": ours}.items():
    words = rows * math.sqrt(512)
    share = positions.square().mean() / (words.square().mean() + positions.square().mean())
    print(f"{name:<12} largest value {words.abs().max():5.1f}, share of the position {share:.1%}")

# %% tags=["hide-input", "check"]
assert (loud * math.sqrt(512)).abs().max() > 60
assert abs(model.source.tokens.weight.std() * math.sqrt(128) - 1) < 0.1  # the library's, for d_model = 128

# %% [markdown]
# (A share here is a share of the squared length.) The mistake lies not in the factor but in the rows, which have to
# start small.
#
# More in [embeddings](embeddings.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_embedding.py`: `test_rows_start_with_a_standard_deviation_of_one_over_the_root_of_d_model`.
#
# </details>

# %% [markdown]
# ## Off by one in the vocabulary
#
# Symbols 1 to 10, and 0 for padding, make 11 ids. So the table needs 11 rows, and the row of id 5 is the *sixth*. (The
# number of rows is not "d_model + 1": $d_\mathrm{model}$ is the number of columns.) In a table of 10 rows, id 10 has no
# row:

# %%
try:
    nn.Embedding(10, 512)(torch.tensor([1, 5, 10]))
except IndexError as error:
    print("PyTorch:", error)

try:
    model.encode(torch.tensor([[1, 5, 11]]))  # our model has 11 rows, so 11 is too large
except gf.VocabularyError as error:
    print("glassformer:", error)

table = nn.Embedding(11, 512).weight

# %% tags=["hide-input", "check"]
assert table.shape == (11, 512)
assert torch.equal(table[5], list(table)[6 - 1])

# %% [markdown]
# More in [embeddings](embeddings.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_embedding.py`: `test_an_id_outside_the_vocabulary_is_an_error_that_names_the_range`.
#
# </details>

# %% [markdown]
# ## Copied layers
#
# Many notebooks make one layer and copy it: `[copy.deepcopy(layer) for _ in range(6)]`. PyTorch's
# `nn.TransformerEncoder` does the same. The copies are six layers with six sets of weights, but the six sets start
# *equal*. Texts often say that "the other layers are exactly the same". Their *structure* is the same; the weights must
# be drawn for each layer. (`[layer] * 6` is worse: one layer, six times, with one set of weights.)

# %%
layer = nn.Linear(64, 64)
stacks = {
    "deep copies": nn.ModuleList(copy.deepcopy(layer) for _ in range(6)),
    "one layer, six times": nn.ModuleList([layer] * 6),
    "drawn for each layer": nn.ModuleList(nn.Linear(64, 64) for _ in range(6)),
}
apart = {}
for name, stack in stacks.items():
    adam = torch.optim.Adam(stack.parameters(), lr=1e-3)
    x = torch.randn(32, 64)
    starts = (stack[5].weight - stack[0].weight).norm().item()
    for _ in range(20):
        y = x
        for one in stack:
            y = y + one(y).tanh()
        adam.zero_grad()
        (y - x.roll(1, dims=-1)).square().mean().backward()
        adam.step()
    apart[name] = starts, (stack[5].weight - stack[0].weight).norm().item()
    weights = sum(weight.numel() for weight in stack.parameters())
    print(f"{name:<21} {weights:>6} weights, distance of layers 0 and 5: {starts:.2f}, trained {apart[name][1]:.2f}")

first, second = model.encoder.layers
copies = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False)

# %% tags=["hide-input", "check"]
assert apart["deep copies"][0] == apart["one layer, six times"][1] == 0 < apart["deep copies"][1]
assert not torch.equal(first.feed_forward.expand.weight, second.feed_forward.expand.weight)  # ours are drawn
assert torch.equal(copies.layers[0].linear1.weight, copies.layers[1].linear1.weight)

# %% [markdown]
# Copies do not stay equal: each sits at a different depth and gets a different gradient. But they start equal, so the
# stack begins with less variety than its number of weights suggests. The fix: draw the weights again after copying
# (`nn.init.xavier_uniform_` for each matrix), or make each layer by itself.
#
# More in [the encoder](encoder.py).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_transformer.py`: `test_layers_start_with_different_weights`.
#
# </details>

# %% [markdown]
# ## Three vectors
#
# "Each word is multiplied by three parameter vectors to get query, key and value." Query, key and value are vectors;
# the parameters are three *matrices*, $W_Q$, $W_K$ and $W_V$ (§3.2.2). A vector of parameters scales each feature
# separately, so number 0 of the query depends on feature 0 alone. A matrix mixes all features.

# %%
word = torch.randn(512, requires_grad=True)
vector, matrix = torch.randn(512), torch.randn(512, 64)
for name, query in {"a vector": word * vector, "a matrix": word @ matrix}.items():
    [gradient] = torch.autograd.grad(query[0], word)
    print(f"{name}: query of {len(query)} numbers; number 0 depends on {(gradient != 0).sum()} of 512 features")

attend = MultiHeadAttention(d_model=512, heads=8, d_k=64, d_v=64, dropout=0.0)
w_q, w_k, w_v = attend.input_projection.weight.split(attend.widths)
tuple(w_q.shape)

# %% tags=["hide-input", "check"]
assert w_q.shape == w_k.shape == w_v.shape == (8 * 64, 512)

# %% [markdown]
# More in [attention](attention.py#the-mathematics).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_one_matrix_for_all_heads_equals_a_matrix_for_each`.
#
# </details>

# %% [markdown]
# ## Heads are not slices
#
# "The word's 512 numbers are divided into 8 parts of 64, one for each head." What is divided is the *projected* vector:
# each head has its own 64 columns of $W_Q$, and each of these columns reads all 512 numbers. If the word itself were
# cut, head 0 would never see feature 511.

# %%
x = torch.randn(1, 10, 512)
touched = x.clone()
touched[..., 511] += 1.0  # the last feature


def cut(x):
    """Return the heads' queries when the word itself is cut into slices, each with a 64 × 64 matrix."""
    return split_heads(x, 8) @ torch.eye(64)


def query(x):
    """Return the heads' queries of the library."""
    return attend.query(x)


for name, heads_of in {"slices of the word": cut, "projections": query}.items():
    change = (heads_of(touched) - heads_of(x)).abs().amax((0, 2, 3))
    print(f"{name}: {(change > 0).sum()} of 8 heads notice feature 511")

# %% tags=["hide-input", "check"]
for heads_of, noticing in ((cut, 1), (query, 8)):
    assert ((heads_of(touched) - heads_of(x)).abs().amax((0, 2, 3)) > 0).sum() == noticing

# %% [markdown]
# More in [heads](heads.py#the-mathematics).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_a_head_is_a_slice_of_the_projection` and
# `test_one_matrix_for_all_heads_equals_a_matrix_for_each`.
#
# </details>

# %% [markdown]
# ## Mask rows or columns
#
# In the matrix of scores, a row is a query and a column is a key. Padding must not be *looked at*, so its *columns* are
# masked. With the mask turned by 90°, the rows of padding are masked: padding looks at nothing (which nobody needs),
# and all words look at padding. Both masks fit a square matrix. Here the last two of five words are padding, and we
# change them:

# %%
real = torch.tensor([True, True, True, False, False])
columns, turned = real[None, :].expand(5, 5), real[:, None].expand(5, 5)
words = torch.randn(5, 8)
other = torch.where(real[:, None], words, torch.randn(5, 8))  # the same words, other padding
for name, mask in {"columns": columns, "rows": turned}.items():
    one, two = (gf.attention(each, each, each, mask).weighted_values[:3] for each in (words, other))
    print(f"{name} masked: the three words' outputs change by {(one - two).abs().max():.2f}")

# %% tags=["hide-input", "check"]
for mask in (columns, turned):
    one, two = (gf.attention(each, each, each, mask).weighted_values[:3] for each in (words, other))
    assert torch.equal(one, two) == (mask is columns)

padding = gf.attention(words, words, words, columns).weights[3]  # a padding query may look at words: harmless
assert gf.attention(words, words, words, turned).weights[0, 3:].min() > 0  # padding has a weight
assert padding[3:].tolist() == [0, 0]


def change_of_words(mask, fill):
    """Return by how much other padding changes the three words after two layers of causal attention."""
    results = []
    for x in (words, other):
        for _ in range(2):
            x = x + (x @ x.mT).masked_fill(~mask, fill).softmax(-1) @ x
        results.append(x[:3])
    return (results[0] - results[1]).abs().max().item()


earlier = torch.ones(5, 5, dtype=torch.bool).tril()
assert change_of_words(turned & earlier, -1e9) == 0 == change_of_words(columns & earlier, -math.inf)
assert change_of_words(turned, -1e9) > 0.1
assert math.isnan(change_of_words(turned & earlier, -math.inf))

# %% [markdown]
# The rows of padding need no mask: their outputs are never read.
#
# An encoder has this symptom, and a decoder with padding at the front. In a decoder with padding at the *end*, the
# look-ahead mask hides the padding anyway, and the real rows do not change at all. But if the masked scores are −∞
# instead of −1e9, the masked rows become NaN, and in the next layer all other rows, too.
#
# In the library, `padding_mask` has the shape (B, 1, 1, S), which can only mask columns.
#
# More in [masks](masks.py).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_masks.py`: `test_padding_cannot_be_attended_to`, and `model/test_transformer.py`:
# `test_padding_does_not_change_real_positions`.
#
# </details>

# %% [markdown]
# ## Positions in log space
#
# Much code computes the frequencies as `exp(arange(0, d, 2) * -(log(10000) / d))`, "in log space". As a formula, this
# equals $10000^{-2i/d}$. Computed in float32, it is less exact: a frequency is rounded, and its error is multiplied by
# the position. The library computes the table in float64 and rounds once, at the end.

# %%
exact = gf.sinusoids(5000, 512, dtype=torch.float64)
frequency = torch.exp(torch.arange(0, 512, 2, dtype=torch.float32) * -(math.log(10000.0) / 512))
angles = torch.arange(5000, dtype=torch.float32)[:, None] * frequency
log_space = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
errors = {
    "float32, log space": (log_space - exact).abs().max().item(),
    "float64, rounded once": (gf.sinusoids(5000, 512, dtype=torch.float32) - exact).abs().max().item(),
}
for name, error in errors.items():
    print(f"{name}: largest error {error:.1e}")

# %% tags=["hide-input", "check"]
assert errors["float32, log space"] > 1e-4 > 1e-7 > errors["float64, rounded once"]

# %% [markdown]
# A model that was trained with one table translates the same with the other, because $4 \cdot 10^{-4}$ is small beside
# ±1. The difference matters when you compare two implementations number by number: it is larger than all other rounding
# errors.
#
# More in [positions](positions.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_positions.py`: `test_far_positions_are_exact_in_float32`.
#
# </details>

# %% [markdown]
# **From guides with pictures and one worked example**

# %% [markdown]
# ## Doubled exponent
#
# In dimensions $2i$ and $2i + 1$, the position matrix has the sine and cosine of $pos / 10000^{2i/d_\mathrm{model}}$
# (§3.5): $i$ counts *pairs*. It is easy to let `i` count dimensions (0, 1, 2, …), or step by two (0, 2, 4, …), and
# still write `2 * i`. Then the exponent goes up to almost 2 instead of almost 1.

# %%
dimension = torch.arange(8, dtype=torch.float64)
exponents = {
    "right": 2 * (dimension // 2) / 8,
    "i counts dimensions": 2 * dimension / 8,  # sine and cosine of a pair differ
    "i steps by two": 2 * (dimension - dimension % 2) / 8,  # they agree, but slow down twice as fast
}


def table_of(exponent, length=100):
    angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000**exponent
    return torch.where(dimension % 2 == 0, angles.sin(), angles.cos())


def error_of_a_shift(table):
    """Return the largest error of the best matrix that moves every row on by one position."""
    best = torch.linalg.lstsq(table[:-1], table[1:], driver="gelsd").solution
    return (table[:-1] @ best - table[1:]).abs().max().item()


for name, exponent in exponents.items():
    print(f"{name:<20} {exponent.tolist()}  error of a shift {error_of_a_shift(table_of(exponent)):.0e}")

verdict("doubled_exponent")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(table_of(exponents["right"]), gf.sinusoids(100, 8, dtype=torch.float64))
assert error_of_a_shift(table_of(exponents["i counts dimensions"])) > 0.1
assert error_of_a_shift(table_of(exponents["i steps by two"])) < 1e-9
assert exponents["i steps by two"].tolist() == [0, 0, 0.5, 0.5, 1, 1, 1.5, 1.5]

# %% [markdown]
# In the second line, each pair has two different speeds, and no matrix moves all rows on by one position: the shift
# property is lost. In the third line it holds: a shift is still a rotation. But only every second one of
# the right frequencies is left (exponents 0 and 0.5). The other half of the dimensions has new, slower frequencies
# (exponents 1 and 1.5), which hardly turn.
#
# More in [positions](positions.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_positions.py`: `test_sinusoids_equal_the_formula_of_the_paper` and
# `test_a_shift_is_the_same_rotation_at_every_position`.
#
# </details>

# %% [markdown]
# ## Elementwise instead of a matrix product
#
# The weights are computed as the softmax of `((q * k.T) / √3) * v`, and then multiplied by `v` once more. Two things
# are wrong. `*` multiplies cell by cell, where the matrix product `@` is meant. And the values have no place inside the
# softmax: it takes the scores alone. Three words of width 3 hide all of this, because every shape is (3, 3).

# %%
x = torch.tensor([[1, 0, 1, 0], [1, 2, 2, 0], [1, 2, 1, 1]], dtype=torch.float64)  # set, yourself, free
q = x @ torch.tensor([[2, 1, 1], [0, 2, 2], [0, 1, 0], [2, 2, 1]], dtype=torch.float64)
k = x @ torch.tensor([[1, 1, 2], [2, 0, 2], [0, 2, 0], [2, 2, 1]], dtype=torch.float64)
v = x @ torch.tensor([[2, 1, 1], [1, 2, 1], [2, 2, 0], [0, 2, 0]], dtype=torch.float64)

wrong_weights = ((q * k.T) / math.sqrt(3) * v).softmax(dim=-1)
fixed_weights = (q @ k.T / math.sqrt(3)).softmax(dim=-1)
wrong, fixed = wrong_weights @ v, fixed_weights @ v
print("wrong: weights", short(wrong_weights[0]), "output", short(wrong[0]))
print("right: weights", short(fixed_weights[0]), "output", short(fixed[0]))

# %% tags=["hide-input", "check"]
torch.testing.assert_close(fixed, gf.attention(q, k, v).weighted_values)
assert [f"{100 * weight:.4f}" for weight in wrong_weights[0]] == ["0.0003", "99.9995", "0.0002"]
assert [f"{100 * weight:.1f}" for weight in fixed_weights[0]] == ["0.0", "5.3", "94.7"]
assert short(wrong[0]) == [8.0, 9.0, 3.0]  # the value of "yourself"
assert short(fixed[0]) == [6.106, 9.0, 3.0]

# %% [markdown]
# So "set" attends to "yourself" with 99.9995 %, where 94.7 % to "free" is right. Nothing about the wrong row looks
# suspicious: its weights sum to 1, and its output is a value.
#
# A good habit is to try code with sizes that are all different (5 words of width 3): then `q * k.T` stops by itself.
# For this reason the library's tests give every size a different prime.
#
# The whole example is in [attention](attention.py#line-by-line).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_set_yourself_free_is_computed_as_by_hand`.
#
# </details>

# %% [markdown]
# ## Three formulas
#
# Three printed formulas each have one small slip. In the variance $\sigma^2 = \frac{1}{d} \sum_{k=1}^{d}$, the summand
# $(v_k - \mu)^2$ is missing. (A more common slip leaves out only the square: then the variance is always 0.) The
# feed-forward network's `max(0, x W_1 + b_1) W_2 = b_2` should end in `+ b_2`. And the second output, $y_2 = \sum_j
# w_{2j} v_j$, sums over *different* values $v_j$. Printed with $v_1$ in each term, it is always $v_1$: the weights
# $w_{2j}$ sum to 1 and have no effect.

# %%
deviations = q[2] - q[2].mean()
variance, without_square = deviations.square().mean(), deviations.mean()
print(f"variance {variance:.3f}, without the square {without_square:.3f}")
weights = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)
same = sum(weights[j] * v[0] for j in range(3))
fixed = sum(weights[j] * v[j] for j in range(3))
print("v_1 in each term:", short(same), " v_j:", short(fixed))

# %% tags=["hide-input", "check"]
torch.testing.assert_close(variance, q[2].var(unbiased=False))
assert without_square.abs() < 1e-12
feed_forward = copy.deepcopy(model.encoder.layers[0].feed_forward)
nn.init.normal_(feed_forward.contract.bias)
h = torch.randn(1, 1, 128, dtype=torch.float64)
inner = (h @ feed_forward.expand.weight.T + feed_forward.expand.bias).clamp(min=0)
torch.testing.assert_close(inner @ feed_forward.contract.weight.T + feed_forward.contract.bias, feed_forward(h))
torch.testing.assert_close(same, v[0])  # whatever the weights are
torch.testing.assert_close(fixed, weights @ v)

# %% [markdown]
# More in [feed-forward](feed_forward.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_residual.py`: `test_post_norm_normalises_the_sum`; `model/test_feed_forward.py`:
# `test_feed_forward_equals_equation_two_in_plain_numbers`; `model/test_attention.py`:
# `test_attention_equals_a_loop_over_plain_numbers`.
#
# </details>

# %% [markdown]
# ## Dot products are not bounded
#
# "The dot product of similar words tends to 1" is true of the *cosine*, which divides both vectors by their lengths.
# Attention does not divide by lengths: a key that is twice as long has twice the score.

# %%
raw, cosine = q @ k.T, F.cosine_similarity(q[:, None], k[None], dim=-1)
print(f"largest dot product {raw.max():.0f}, largest cosine {cosine.max():.3f}")

# %% tags=["hide-input", "check"]
assert raw.max() == 110
assert cosine.max() <= 1
torch.testing.assert_close(q @ (2 * k).T, 2 * raw)
torch.testing.assert_close(F.cosine_similarity(q[:, None], 2 * k[None], dim=-1), cosine)

# %% [markdown]
# A longer key makes each of its scores larger, whether positive or negative. Only the *weights* are bounded, by the
# softmax.
#
# More in [attention](attention.py#what-goes-wrong) and [embeddings](embeddings.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_set_yourself_free_is_computed_as_by_hand`, with scores far above 1.
#
# </details>

# %% [markdown]
# ## Which sub-layer is new
#
# An encoder layer has self-attention and feed-forward. The decoder's *additional*, third sub-layer is cross-attention,
# which reads the encoder's output. The masked sub-layer is the same self-attention with a different mask.


# %%
def sublayers(layer):
    return {name for name, _ in layer.named_children() if not name.endswith("_residual")}


encoder_has, decoder_has = sublayers(model.encoder.layers[0]), sublayers(model.decoder.layers[0])
sorted(encoder_has), sorted(decoder_has)

# %% tags=["hide-input", "check"]
assert decoder_has - encoder_has == {"cross_attention"}
assert hasattr(nn.TransformerDecoderLayer(8, 2), "multihead_attn")  # PyTorch's name for it
assert not hasattr(nn.TransformerEncoderLayer(8, 2), "multihead_attn")

# %% [markdown]
# More in [the decoder](decoder.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_parity.py`: `test_the_logits_equal_torchs`.
#
# </details>

# %% [markdown]
# ## What heads are for
#
# Heads are not there for speed. Eight heads of width 64 have as many weights, and take as many multiplications, as one
# head of width 512. But each head has its own map of scores and its own softmaxes, so eight heads have eight times as
# many scores and softmaxes. Several heads are there to attend to *different things at once*: one softmax has a total
# weight of 1 to give away, and each of two heads has such a total of its own.

# %%
who, where = torch.tensor([9.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 9.0])  # scores of two questions for three words
print("one softmax:", short((who + where).softmax(-1)))
print("two heads:  ", [short(scores.softmax(-1)) for scores in (who, where)])
one, eight = (MultiHeadAttention(512, heads, 512 // heads, 512 // heads, 0.0) for heads in (1, 8))
sizes = [sum(weight.numel() for weight in part.parameters()) for part in (one, eight)]

words = torch.randn(1, 10, 512)
maps = []
for part in (one, eight):
    with gf.record(part, "scores") as trace, torch.no_grad():
        part(words)
    maps.append(trace["scores"].numel())

print(f"weights {sizes[0]} and {sizes[1]}, scores {maps[0]} and {maps[1]}")

# %% tags=["hide-input", "check"]
assert sizes[0] == sizes[1] == 4 * (512 * 512 + 512)
assert maps == [1 * 10 * 10, 8 * 10 * 10]

# %% [markdown]
# More in [heads](heads.py#the-intuition).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_one_matrix_for_all_heads_equals_a_matrix_for_each` and
# `test_join_heads_undoes_split_heads`.
#
# </details>

# %% [markdown]
# **From step-by-step code with a class for each step**

# %% [markdown]
# ## A norm that crashes
#
# The norm's `forward` reads `self.eps`, and no line sets it. Python looks up an attribute only when it is read, so you
# can define the class and make objects without complaint. The first call stops with an error.


# %%
class Norm(nn.Module):
    def forward(self, x):
        deviation = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + self.eps)
        return (x - x.mean(-1, keepdim=True)) / deviation


norm, x = Norm(), torch.randn(2, 4)
try:
    norm(x)
except AttributeError as error:
    print(error)

norm.eps = 1e-5  # the fix: in __init__, self.eps = eps

broken = copy.deepcopy(model)
broken.encoder.layers[0].feed_forward_residual.norm = Norm()
[check] = [one for one in gf.check(broken).failures if one.name == "determinism"]
check.note

# %% tags=["hide-input", "check"]
torch.testing.assert_close(norm(x), F.layer_norm(x, (4,)))

# %% [markdown]
# This mistake is easy to find, because it raises an error. Call each class once, right after you write it.
#
# <details>
# <summary>Caught by</summary>
#
# Any test that calls it, such as `model/test_residual.py`: `test_post_norm_normalises_the_sum`; and by `gf.check`,
# where a check that stops with an error counts as failed, with the reason.
#
# </details>

# %% [markdown]
# ## An epsilon too small
#
# Some norms use $\varepsilon = 10^{-12}$. The number is there for rows whose variance is almost 0, such as a row of
# equal numbers. In float16, 1e-12 *is* 0, and such a row becomes 0/0. In float32 it is too small to protect a row that
# is constant up to rounding: the rounding errors are blown up to the size of real features. The library's norms use
# PyTorch's default, 1e-5.


# %%
def norm_by_hand(x, eps):
    variance = x.var(-1, keepdim=True, unbiased=False)
    return (x - x.mean(-1, keepdim=True)) / (variance + torch.tensor(eps, dtype=x.dtype)).sqrt()


constant = torch.full((4,), 3.0, dtype=torch.float16)
nearly = torch.tensor([3.0, 3.0, 3.0, 3.0 + 2e-6])  # constant up to rounding
for eps in (1e-12, 1e-5):
    print(f"ε = {eps:.0e}: constant row in float16 {norm_by_hand(constant, eps).tolist()}")
    print(f"           nearly constant in float32 {short(norm_by_hand(nearly, eps))}")

# %% tags=["hide-input", "check"]
assert torch.tensor(1e-12, dtype=torch.float16) == 0
assert norm_by_hand(constant, 1e-12).isnan().all()
assert norm_by_hand(nearly, 1e-12).abs().max() > 0.5 > 1e-3 > norm_by_hand(nearly, 1e-5).abs().max()
torch.testing.assert_close(norm_by_hand(nearly, 1e-5), F.layer_norm(nearly, (4,)), atol=1e-6, rtol=0)
assert model.encoder.layers[0].feed_forward_residual.norm.eps == 1e-5
usual = F.layer_norm(torch.randn(512, dtype=torch.float64), (512,))
assert 4e-6 < (norm_by_hand(usual, 1e-12) / norm_by_hand(usual, 1e-5) - 1).abs().max() < 6e-6

# %% [markdown]
# (PyTorch's own norm computes in float32 inside, even for float16, so it does not divide by 0.) For usual rows, with a
# variance near 1, the results with these two numbers differ by about five millionths of their size.
#
# More in [add & norm](residual.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_transformer.py`: `test_the_whole_model_works_in_other_precisions`.
#
# </details>

# %% [markdown]
# ## A matrix computed and dropped
#
# A function computes the attention matrix "to visualise it if needed", and its caller keeps only the first result. Or
# the module stores the matrix, and the next call replaces it. The output is right, but you cannot look inside. The
# library returns the weights beside the output, and `gf.record` records every weight matrix of a model by name:

# %%
output, weights = gf.attention(q, k, v)  # both
with gf.record(model, "*.weights") as trace, torch.no_grad():
    model(source, target_input)

{name: tuple(weights.shape) for name, weights in trace.items()}

# %% tags=["hide-input", "check"]
torch.testing.assert_close(weights @ v, output)
assert len(trace) == 2 + 2 * 2  # one in each encoder layer, two in each decoder layer

# %% [markdown]
# More in [the encoder](encoder.py#every-number-has-a-name).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_taps.py`: `test_the_names_are_the_documented_ones` and `test_every_point_fires_once_in_a_forward_pass`.
#
# </details>

# %% [markdown]
# ## No scaling of the embedding
#
# This is the opposite of [embeddings that drown the positions](#embeddings-that-drown-the-positions): the rows have a
# standard deviation of $1 / \sqrt{d_\mathrm{model}}$, and the factor $\sqrt{d_\mathrm{model}}$ (§3.4) is left out. Now
# the words are drowned.

# %%
rows = model.source.tokens.weight.detach()  # (11, 128)
positions = gf.sinusoids(10, 128, dtype=torch.float64)
shares = {}
for name, words in {
    "without √d_model": rows,
    "with √d_model": rows * math.sqrt(128),
    "N(0, 1), without √d_model": torch.randn(1000, 128, dtype=torch.float64),
}.items():
    shares[name] = (words.square().mean() / (words.square().mean() + positions.square().mean())).item()
    print(f"{name:<26} share of the word {shares[name]:.1%}")

with gf.record(model, "source.embedding") as trace, torch.no_grad():
    model.encode(source)

verdict("no_embedding_scale")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(trace["source.embedding"], rows[source] * math.sqrt(128))
# 128 000 draws: the mean square is off by about 0.4 %, our 1 408 draws by about 4 %.
assert math.isclose(shares["N(0, 1), without √d_model"], 2 / 3, abs_tol=0.005)
assert math.isclose(shares["with √d_model"], 2 / 3, abs_tol=0.05)
assert shares["without √d_model"] < 0.05

# %% [markdown]
# The last line is the commonest case in code: `nn.Embedding` as it comes, with rows from N(0, 1), *and* no factor.
# These two departures from the paper cancel each other: the word has the same share as in the right model. Each of them
# alone goes wrong: rows from N(0, 1) *with* the factor, or small rows *without* the factor.
#
# More in [embeddings](embeddings.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_embedding.py`:
# `test_a_row_is_scaled_by_the_root_of_d_model_plus_its_position`.
#
# </details>

# %% [markdown]
# ## Minus ten thousand
#
# A masked score of −10 000 is finite. Usually that does no harm: $e^{-10000}$ is rounded to exactly 0. But this works
# only if some real score in the same row is more than about 104 larger, that is, above about −9 900. And where
# *everything* is masked, all scores are equal again, and the row attends evenly to padding.

# %%
rows = {
    "a usual row": (torch.tensor([2.0, 1.0, 3.0]), torch.tensor([True, True, False])),
    "very small real scores": (torch.tensor([-10001.0, -10002.0, 3.0]), torch.tensor([True, True, False])),
    "everything masked": (torch.tensor([2.0, 1.0, 3.0]), torch.tensor([False, False, False])),
}
for name, (scores, mask) in rows.items():
    finite = scores.masked_fill(~mask, -10000.0).softmax(-1)
    print(f"{name}:")
    print(f"    −10 000  {short(finite)}")
    print(f"    library  {short(attention_weights(scores, mask))}")

# %% tags=["hide-input", "check"]
for scores, mask in rows.values():
    finite = scores.masked_fill(~mask, -10000.0).softmax(-1)
    if mask.any():
        infinite = scores.masked_fill(~mask, -math.inf).softmax(-1)
        torch.testing.assert_close(attention_weights(scores, mask), infinite)
    else:
        assert (attention_weights(scores, mask) == 0).all()
        torch.testing.assert_close(finite, torch.full((3,), 1 / 3))

# %% [markdown]
# The fix is −∞, and a row of zeros for a query that may not look at anything (−∞ alone gives NaN there).
#
# In most rows the weights are the same to the last bit, so only rows with very small scores, or with every score
# masked, show the mistake. More in [masks](masks.py#why-and-no-other-number).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_a_masked_score_gets_no_weight_even_beside_very_small_scores` and
# `test_a_query_without_visible_keys_gets_zeros_and_a_finite_gradient`.
#
# </details>

# %% [markdown]
# ## Dropout that stays on
#
# `F.dropout(x)` has two surprising defaults. It is on unless you pass `training=False`, whatever `model.eval()` says.
# And its probability is 0.5, so a class that takes `p` but does not pass it on drops half of everything.


# %%
class AlwaysOn(nn.Module):
    def forward(self, x):
        return F.dropout(x)  # should be F.dropout(x, self.p, training=self.training)


ones, always_on = torch.ones(10_000), AlwaysOn()
always_on.p = 0.1  # the probability asked for, which is never read
torch.manual_seed(1)
dropped = (always_on.eval()(ones) == 0).double().mean().item()
print(f"asked for 10 %, in evaluation 0 %: dropped {dropped:.1%}")

broken = copy.deepcopy(model)
broken.source.dropout = always_on
[check] = gf.check(broken.eval()).failures
print(check.name, *check.likely, sep="\n")

# %% tags=["hide-input", "check"]
assert 0.45 < dropped < 0.55
assert torch.equal(nn.Dropout(0.1).eval()(ones), ones)  # the fix: the module knows
assert torch.equal(F.dropout(ones, 0.1, training=False), ones)
assert check.name == "determinism"

# %% [markdown]
# More in [add & norm](residual.py#dropout).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*determinism*), and `model/test_residual.py`: `test_nothing_is_dropped_in_evaluation`.
#
# </details>

# %% [markdown]
# ## Concatenating or adding
#
# Some texts say that word and position are "concatenated". They are added, number by number (§3.5), and the width stays
# $d_\mathrm{model}$. Concatenation would double the width, and no later matrix would fit.

# %%
with gf.record(model, "source.*") as trace, torch.no_grad():
    model.encode(source)

word, position = trace["source.embedding"], trace["source.positions"]
tuple((word + position).shape), tuple(torch.cat([word, position.expand_as(word)], dim=-1).shape)

# %% tags=["hide-input", "check"]
torch.testing.assert_close(trace["source.input"], word + position)

# %% [markdown]
# Why the sum does not blur the two: [positions](positions.py#adding-and-what-stays-apart).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_embedding.py`: `test_a_row_is_scaled_by_the_root_of_d_model_plus_its_position`.
#
# </details>

# %% [markdown]
# ## Docstring and shape
#
# A class for positions has a docstring that promises a different shape from the one it returns. A reader who believes
# the docstring takes the wrong axis, and broadcasting hides the mistake. Here the table is (T, D), positions by width,
# and the reader was told that its first axis is the batch (B):

# %%
batch, table = torch.zeros(2, 9, 128), gf.sinusoids(9, 128)  # (B, T, D) and (T, D)
by_sentence = batch + table[: batch.shape[0], None]  # believes the docstring
by_position = batch + table[: batch.shape[1]]
print("all words of a sentence alike:", torch.equal(by_sentence[1, 0], by_sentence[1, 8]))

# %% tags=["hide-input", "check"]
assert by_sentence.shape == by_position.shape
assert torch.equal(by_sentence[1, 0], by_sentence[1, 8])
assert torch.equal(by_position[1], gf.sinusoids(9, 128))

# %% [markdown]
# In the library, the shape is part of the signature, `-> Float[Tensor, "T D"]`. The tests compare it with the real
# shape at every call, so the signature cannot become outdated.
#
# A related mistake is **mixed import roots**. One file says `from toy.toy_masks import Mask`; another, started in the
# folder toy, says `from toy_masks import Mask`. Python then loads the same file twice, and you have two classes with
# the same name:

# %%
import importlib
import sys
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "toy").mkdir()
    (Path(folder) / "toy" / "toy_masks.py").write_text("class Mask:\n    pass\n")
    sys.path[:0] = [folder, str(Path(folder) / "toy")]
    one, other = importlib.import_module("toy.toy_masks"), importlib.import_module("toy_masks")
    del sys.path[:2]

one.Mask, other.Mask

# %% tags=["hide-input", "check"]
assert not isinstance(one.Mask(), other.Mask)
assert gf.attention is sys.modules["glassformer.model.attention"].attention  # one root, one function

# %% [markdown]
# More in [positions](positions.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_transformer.py`: `test_a_batch_of_30_sentences_of_10_tokens_has_the_expected_shapes`, which, like all
# tests, checks the shapes in signatures; and `test_house_rules.py`:
# `test_imports_are_absolute_and_annotations_are_not_postponed`.
#
# </details>

# %% [markdown]
# ## View without transpose
#
# Here a tutorial rightly *warns* of a mistake, and the next cell shows why. The heads are made by `view(B, T, H,
# K).transpose(1, 2)`. Asking for (B, H, T, K) at once gives the same shape with different numbers. Take three words of
# four features, and two heads; the tens digit tells the word:

# %%
tiny = torch.tensor([[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]])
wrong, fixed = tiny.view(1, 2, 3, 2), tiny.view(1, 3, 2, 2).transpose(1, 2)
print("right, head 0:", fixed[0, 0].tolist())
print("wrong, head 0:", wrong[0, 0].tolist())
verdict("no_transpose")

# %% tags=["hide-input", "check"]
assert wrong.shape == fixed.shape
assert torch.equal(fixed, split_heads(tiny, 2))
assert not torch.equal(wrong, fixed)

# %% [markdown]
# The three "positions" of the wrong head 0 hold the whole first word and half of the second. Masks no longer hide what
# they should, so *causality* and *padding* fail too.
#
# More in [heads](heads.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check`, and `model/test_attention.py`: `test_a_view_without_the_transpose_has_the_same_shape_but_other_numbers`
# and `test_a_head_is_a_slice_of_the_projection`.
#
# </details>

# %% [markdown]
# **From posts that explain in words**

# %% [markdown]
# ## Masked to zero
#
# "Masked positions are set to 0 before the softmax." The *weight* has to be 0, and for that the *score* has to be −∞.
# Setting the weights to 0 *after* the softmax is too late: the row does not sum to 1, and its sum betrays the hidden
# scores. Here the query may see only the first of three scores:

# %%
scores, mask = torch.tensor([2.0, 1.0, 3.0]), torch.tensor([True, False, False])
for name, weights in {
    "0 before": scores.masked_fill(~mask, 0.0).softmax(-1),
    "0 after": scores.softmax(-1).masked_fill(~mask, 0.0),
    "−∞ before": attention_weights(scores, mask),
}.items():
    print(f"{name:<10} {short(weights)}  sum {weights.sum():.3f}")

verdict("mask_after_softmax")

# %% tags=["hide-input", "check"]
assert attention_weights(scores, mask).tolist() == [1.0, 0.0, 0.0]

# %% [markdown]
# More in [masks](masks.py#why-and-no-other-number).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*attention*: weights sum to 1 and are 0 where masked; *causality*, *padding*, *batch*), and
# `model/test_attention.py`: `test_set_yourself_free_with_the_causal_mask_is_computed_as_by_hand`.
#
# </details>

# %% [markdown]
# ## Shape of a head
#
# "The output of a head, Z_i, has shape (512, 64)." In fact it has a row for each *word*, so its shape is (length, 64).
# The head's matrices $W_Q$, $W_K$ and $W_V$ have the shape (512, 64). Side by side, the outputs of all $h$ heads have
# the shape (length, $h \cdot d_v$): still a row for each word.

# %%
attend = MultiHeadAttention(d_model=512, heads=8, d_k=64, d_v=64, dropout=0.0)
x = torch.randn(1, 10, 512)
with gf.record(attend, "heads") as trace, torch.no_grad():
    attend(x)

w_v = attend.input_projection.weight.split(attend.widths)[2].T[:, :64]  # W_V of head 0
z = trace["heads"][0]  # (heads, length, 64)
tuple(w_v.shape), tuple(z[0].shape), tuple(torch.cat([*z], dim=-1).shape)

# %% tags=["hide-input", "check"]
assert w_v.shape == (512, 64)
assert z[0].shape == (10, 64)
torch.testing.assert_close(join_heads(trace["heads"])[0], torch.cat([*z], dim=-1))

# %% [markdown]
# More in [heads](heads.py#line-by-line).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_transformer.py`: `test_a_batch_of_30_sentences_of_10_tokens_has_the_expected_shapes`.
#
# </details>

# %% [markdown]
# ## Second word, position one
#
# Positions count from 0, so the second word has position 1. In the first row all angles are 0, so all sines are 0 and
# all cosines are 1. If you count from 1, every word gets the pattern of the next position. All distances stay the same,
# so a trained model still writes nearly the same words. But it computes other numbers than it did in its training.

# %%
from_zero, from_one = gf.sinusoids(2, 4), gf.sinusoids(3, 4)[1:]

with gf.intervene(model, {"*.positions": lambda rows: gf.sinusoids(len(rows) + 1, 128, dtype=rows.dtype)[1:]}):
    [check] = [one for one in gf.check(model).failures if one.name == "reference"]

print(*check.likely)

# %% tags=["hide-input", "check"]
from glassformer.built_in import trained_demo

assert from_zero[0].tolist() == [0, 1, 0, 1]
torch.testing.assert_close(from_zero[1, :2], torch.tensor([math.sin(1), math.cos(1)]))
assert torch.equal(from_one[0], from_zero[1])
translator = gf.Translator.load(trained_demo("../runs/demo"))
vocabularies = translator.bundle.source_tokenizer, translator.bundle.target_tokenizer
english, french = "The cat slept in the park.", "Le chat dormait dans le parc."
read, written = (torch.tensor([[*one.encode(text)]]) for one, text in zip(vocabularies, (english, french), strict=True))
read, written = F.pad(read, (0, 1), value=2), F.pad(written, (1, 0), value=1)
with torch.no_grad():
    usual = translator.model(read, written)
    with gf.intervene(translator.model, {"*.positions": lambda rows: gf.sinusoids(len(rows) + 1, 128)[1:]}):
        moved = translator.model(read, written)

assert torch.equal(moved.argmax(-1), usual.argmax(-1)) and (moved - usual).abs().max() > 0.1

# %% [markdown]
# More in [positions](positions.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_positions.py`: `test_position_zero_alternates_between_zero_and_one`.
#
# </details>

# %% [markdown]
# ## Closed range
#
# "Values strictly between −1 and 1": sine and cosine reach both ends, so the range is closed, $[-1, 1]$. At position 0,
# every cosine is already 1.

# %%
table = gf.sinusoids(356, 8)
table.min().item(), table.max().item()

# %% tags=["hide-input", "check"]
assert table[0, 1::2].tolist() == [1, 1, 1, 1]
assert table[355, 1] == -1  # 355 is so near to 113 π that float32 sees no difference
assert table.abs().max() == 1

# %% [markdown]
# More in [positions](positions.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_positions.py`: `test_values_lie_in_the_closed_range_from_minus_one_to_one`.
#
# </details>

# %% [markdown]
# ## Heads do not restore the width
#
# "Each head returns 64 numbers, so 8 heads are needed to get back to 512." It is a choice that $8 \cdot 64 = 512$. The
# matrix $W_O$ brings back $d_\mathrm{model}$ from any number of heads of any width (§3.2.2):

# %%
for heads, d_v in ((8, 64), (1, 64), (5, 30)):
    attend = MultiHeadAttention(d_model=512, heads=heads, d_k=20, d_v=d_v, dropout=0.0)
    joined = attend.output_projection.weight.shape[1]
    print(f"{heads} × {d_v}: joined (10, {joined}), after W_O {tuple(attend(torch.randn(1, 10, 512))[0].shape)}")

# %% tags=["hide-input", "check"]
assert joined == heads * d_v == 150

# %% [markdown]
# More in [heads](heads.py#what-goes-wrong); [what heads are for](#what-heads-are-for) is another question.
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_config.py`: `test_given_head_widths_need_no_divisor`.
#
# </details>

# %% [markdown]
# ## Queries from the previous output
#
# "In cross-attention, K and V come from the encoder and Q comes from the previous output of the decoder." It is easy to
# read this as the *word* that was written last. The queries come from the sub-layer *below*, the masked self-attention
# of the same layer, and each target position has a query. So a query knows all words written so far. Here we change
# the first symbol and look at the queries of the last position:

# %%
other_input = target_input.clone()
other_input[0, 1] = 9  # the second of four tokens; the last one stays the same
layer = model.decoder.layers[0]


# %%
def from_last_word(ids):
    """Return the last position's queries, made from the embedding of the last word alone."""
    with torch.no_grad():
        return layer.cross_attention.query(model.target(ids))[0, :, -1]


def from_below(ids):
    """Return the last position's queries, as the library makes them."""
    with gf.record(model, "decoder.layers.0.*") as trace, torch.no_grad():
        model(source, ids)
    stream = trace["decoder.layers.0.self_attention.normed"]  # the output of the sub-layer below (post-norm)
    return layer.cross_attention.query(stream).detach()[0, :, -1]


# %%
for name, queries in {"from the last word": from_last_word, "from the sub-layer below": from_below}.items():
    change = (queries(other_input) - queries(target_input)).abs().max().item()
    print(f"{name}: an earlier word changes the last query by {change:.3f}")

# %% tags=["hide-input", "check"]
with gf.record(model, "decoder.layers.0.cross_attention.query") as trace, torch.no_grad():
    model(source, target_input)

[query] = trace.values()
assert query.shape[2] == target_input.shape[1]  # a query at each target position
torch.testing.assert_close(from_below(target_input), query[0, :, -1])
assert (from_below(other_input) - from_below(target_input)).abs().max() > 0
assert torch.equal(from_last_word(other_input), from_last_word(target_input))

# %% [markdown]
# Then what is "shifted right" in the paper's Figure 1? The decoder's *input*: the target with `<bos>` before it, so
# that position $i$ has read the words up to $i - 1$ and predicts word $i$.
#
# More in [the decoder](decoder.py#the-mathematics).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_cross_attention_takes_queries_from_x_and_the_rest_from_memory`.
#
# </details>

# %% [markdown]
# **From pieces on the intuition, with code beside it**

# %% [markdown]
# ## Zero is not minus infinity
#
# The code says `scores.masked_fill(mask == 0, 0)`, and the softmax follows. A score of 0 is a score like any other: its
# weight is $e^0 = 1$ divided by the sum. The more padding a sentence has, the more weight goes to padding. Here are
# five real keys, each with a score of 1, and more and more padding:

# %%
shares = {}
for name, hidden in (("masked scores set to 0", 0.0), ("masked scores set to −∞", -math.inf)):
    rows = [torch.tensor([1.0] * 5 + [hidden] * padding).softmax(-1) for padding in range(41)]
    shares[name] = (range(41), [100 * row[5:].sum().item() for row in rows])

verdict("mask_zero")

# %% tags=["hide-input", "check"]
assert max(shares["masked scores set to −∞"][1]) == 0
assert shares["masked scores set to 0"][1][40] > 70

# %% [markdown]
# Look how soon the padding takes most of the weight; with −∞ the line stays at 0:

# %% tags=["hide-input"]
pictures.curves(
    shares,
    x_label="padding beside five real keys",
    y_label="% of the weight that padding gets",
    alt="Two lines. With masked scores of 0 the share of padding rises to about 75 percent; with minus infinity it is 0.",
)

# %% [markdown]
# More in [masks](masks.py#why-and-no-other-number).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*, *causality*, *padding*, *batch*, *cache*, *attention*), and `model/test_attention.py`:
# `test_weights_sum_to_one_and_are_exactly_zero_where_masked`.
#
# </details>

# %% [markdown]
# ## Heads in a plain list
#
# The code says `self.heads = [Head(), Head()]`. PyTorch finds parts that are attributes, or items of an
# `nn.ModuleList`; it does not look into plain lists. Such heads compute, but the optimiser never gets their weights,
# and no file saves these weights.


# %%
class Heads(nn.Module):
    def __init__(self, container):
        super().__init__()
        self.heads = container(nn.Linear(512, 64) for _ in range(8))


for container in (list, nn.ModuleList):
    found = Heads(container)
    print(f"{container.__name__}: {len(list(found.parameters()))} tensors to train, {len(found.state_dict())} to save")


broken = copy.deepcopy(model)
layers = list(broken.encoder.layers)
del broken.encoder.layers
broken.encoder.layers = layers
[check] = [one for one in gf.check(broken).failures if one.name == "save and load"]
print(*check.likely, sep="\n")

# %% tags=["hide-input", "check"]
assert list(Heads(list).parameters()) == []
assert len(Heads(nn.ModuleList).state_dict()) == 8 + 8  # weights and biases

# %% [markdown]
# More in [heads](heads.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*save and load*), and `model/test_transformer.py`: `test_the_names_of_the_parameters_match_saved_models`
# and `test_every_parameter_learns`.
#
# </details>

# %% [markdown]
# ## A tensor on the wrong device
#
# The heads' outputs are concatenated onto `torch.empty(0)`, which is made in the middle of the forward pass and always
# on the CPU. With the model on a GPU, this stops with an error. You can see it without a GPU: a tensor on PyTorch's
# device `meta`, which has a shape but no numbers, is not on the CPU either.

# %%
parts = [torch.ones(10, 64, device="meta") for _ in range(8)]
try:
    torch.cat([torch.empty(10, 0), parts[0]], dim=-1)
except RuntimeError as error:
    print(error)

joined = join_heads(torch.ones(1, 8, 10, 64, device="meta"))
tuple(joined.shape), joined.device

# %% tags=["hide-input", "check"]
assert torch.cat(parts, dim=-1).shape == (10, 512)  # the fix: collect in a list, concatenate once
assert joined.device.type == "meta"

# %% [markdown]
# Where you need a new tensor, take the device from an existing one: `x.new_zeros(…)`,
# `torch.arange(…, device=x.device)`.
#
# More in [heads](heads.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_masks.py`: `test_a_mask_is_on_the_device_of_its_ids`, which also uses `meta`.
#
# </details>

# %% [markdown]
# ## Order of arguments
#
# A class takes (v, k, q), and the function inside it takes (q, k, v). In self-attention all three have the same shape,
# so swapped arguments raise no error and give a wrong result. The library's order is query, key, value everywhere. With
# different lengths and widths, swapped arguments raise an error:

# %%
fixed, swapped = gf.attention(q, k, v).weighted_values, gf.attention(v, k, q).weighted_values
print(f"largest difference, no error: {(fixed - swapped).abs().max():.1f}")

query, key, value = torch.ones(2, 3), torch.ones(5, 3), torch.ones(5, 7)
try:
    gf.attention(value, key, query)
except gf.ShapeError as error:
    print(error)

# %% tags=["hide-input", "check"]
assert fixed.shape == swapped.shape
torch.testing.assert_close(fixed, F.scaled_dot_product_attention(q[None], k[None], v[None])[0])
assert gf.attention(query, key, value).weighted_values.shape == (2, 7)

# %% [markdown]
# More in [attention](attention.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `model/test_attention.py`: `test_attention_equals_a_loop_over_plain_numbers` and
# `test_shapes_that_do_not_fit_are_named`.
#
# </details>

# %% [markdown]
# **From the field: seen again and again in real code**

# %% [markdown]
# ## No causal mask
#
# The decoder's self-attention gets only the padding mask, or a causal mask that is upside down. Then the answer is in
# the input during training, and the loss falls to almost nothing. A model trained this way writes gibberish when it
# translates, because it has no future to copy. The test: change the *last* token, and see whether *earlier* outputs
# change.

# %%
changed = target_input.clone()
changed[0, -1] = 9


def change_of_earlier_logits(*mistakes):
    with plant(model, *mistakes), torch.no_grad():
        return (model(source, target_input) - model(source, changed))[:, :-1].abs().max().item()


print(f"with the mask {change_of_earlier_logits():.1e}, without {change_of_earlier_logits('no_causal_mask'):.2f}")
causal = torch.ones(4, 4, dtype=torch.bool).tril()
print("the fix, True as 1:", *causal.int().tolist())
verdict("no_causal_mask")

# %% tags=["hide-input", "check"]
assert change_of_earlier_logits() < 1e-12 < 1e-3 < change_of_earlier_logits("no_causal_mask")
with gf.record(model, "decoder.layers.0.self_attention.weights") as trace, torch.no_grad():
    model(source, target_input)

assert ((trace["decoder.layers.0.self_attention.weights"] > 0) == causal).all()

# %% [markdown]
# The chapter on [masks](masks.py#what-goes-wrong) trains a model with this leak.
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*, *causality*, *cache*, *attention*), and `model/test_transformer.py`:
# `test_a_later_token_does_not_change_earlier_logits`.
#
# </details>

# %% [markdown]
# ## Targets' padding in cross-attention
#
# In cross-attention the target asks and the source is looked at, so the mask must say where the *source* is padding.
# With the target's mask, the model sees only as many source tokens as the target has real tokens. If the two lengths
# are about equal, this mask hides little. In a translation that has only begun, it hides nearly everything:

# %%
point = "decoder.layers.0.cross_attention.weights"
begun = target_input[:, :2]  # <bos> and one symbol
for mistakes in ((), ("target_padding_mask",)):
    with plant(model, *mistakes), gf.record(model, point) as trace, torch.no_grad():
        model(source, begun)
    weights = trace[point][0, 0, 1]  # head 0, the newest position: a weight for each of 6 source tokens
    print("wrong:" if mistakes else "right:", short(weights))

verdict("target_padding_mask")

# %% tags=["hide-input", "check"]
assert (weights[2:] == 0).all()

# %% [markdown]
# The fix is `padding_mask(source, pad_id)`, whatever the target.
#
# More in [the decoder](decoder.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*, *causality*, *cache*, *attention*), and `model/test_transformer.py`:
# `test_cross_attention_masks_the_padding_of_the_source_not_of_the_target`.
#
# </details>

# %% [markdown]
# ## Keys from the decoder
#
# The code says `cross_attention(x, x, x)` instead of `(x, memory, memory)`. This is a second self-attention, and the
# source is never read. Such a model writes fluent sentences about something else. The test: a different source must
# give a different output.

# %%
other_source = torch.tensor([[9, 9, 3, 10, 3, 2]])


def change_by_the_source(*mistakes):
    with plant(model, *mistakes), torch.no_grad():
        return (model(source, target_input) - model(other_source, target_input)).abs().max().item()


print(f"right {change_by_the_source():.2f}, keys from the decoder {change_by_the_source('decoder_keys'):.2f}")
verdict("decoder_keys")

# %% tags=["hide-input", "check"]
assert change_by_the_source("decoder_keys") == 0 < 0.01 < change_by_the_source()

# %% [markdown]
# More in [the decoder](decoder.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*, and *source* above all), and `model/test_attention.py`:
# `test_cross_attention_takes_queries_from_x_and_the_rest_from_memory`.
#
# </details>

# %% [markdown]
# ## Softmax twice
#
# The model ends with a softmax, and `F.cross_entropy`, which expects *logits*, applies another. To the second softmax,
# numbers between 0 and 1 are nearly equal: even a perfect answer has a high loss. The best word is still the best, so
# greedy translations hide the mistake.

# %%
logits, answer = torch.zeros(11), torch.tensor(7)
logits[7] = 50.0  # as sure as can be
once, twice = F.cross_entropy(logits, answer), F.cross_entropy(logits.softmax(-1), answer)
print(f"a perfect answer: loss {once:.3f}, with softmax twice {twice:.3f}; knowing nothing {math.log(11):.3f}")
verdict("double_softmax")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(twice, torch.tensor(math.log(math.e + 10) - 1))
torch.testing.assert_close(once, -logits.log_softmax(-1)[7])  # the fix: logits into the loss

# %% [markdown]
# More in [the output](output.py#what-goes-wrong), and for the search in [decoding](decoding.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `training/test_objective.py`: `test_value_and_both_gradients_equal_torchs`.
#
# </details>

# %% [markdown]
# ## Shifted target
#
# The decoder reads token $i$ and has to say token $i + 1$. If input and answer are the same slice, the best model is
# one that repeats what it has read. Here are such a parrot and its losses with and without the mistake:

# %%
batch = torch.tensor([[1, 4, 5, 6, 2]])  # <bos>, three symbols, <eos>
read, said = batch[:, :-1], batch[:, 1:]  # right: what is read, what must be said
parrot = 20.0 * F.one_hot(read, 11)  # certain of the token that it has just read
unshifted = F.cross_entropy(parrot.flatten(0, 1), read.flatten()).item()
shifted = F.cross_entropy(parrot.flatten(0, 1), said.flatten()).item()
print(f"loss of the parrot: target not shifted {unshifted:.6f}, shifted {shifted:.2f}")
read.tolist(), said.tolist()

# %% tags=["hide-input", "check"]
assert unshifted < 1e-6 < 19 < shifted

# %% [markdown]
# The telltale sign is a loss that falls to 0 within a few hundred steps. Fed with `<bos>`, the parrot says `<bos>`, for
# ever.
#
# A model trained this way, with its curve, is in [the output](output.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `training/test_loop.py`: `test_a_training_equals_a_simple_loop`; for scoring, `test_translator.py`:
# `test_the_prefix_counts_in_the_log_probability`.
#
# </details>

# %% [markdown]
# ## Padding in the loss
#
# The sentences of a batch are filled up with padding, and the loss averages over all positions. Padding is the easiest
# word of all, so the loss looks better than the model is. The loss also changes with the number of padding positions in
# the batch. Here are two sentences with ten and three real tokens. At real positions, the model finds all 11 ids
# equally likely; of padding it is certain:

# %%
said = torch.tensor([[4, 5, 6, 7, 8, 9, 4, 5, 6, 2], [7, 8, 2, 0, 0, 0, 0, 0, 0, 0]])
logits = torch.zeros(2, 10, 11)
logits[said == 0, 0] = 50.0
counted = F.cross_entropy(logits.flatten(0, 1), said.flatten()).item()
fixed = F.cross_entropy(logits.flatten(0, 1), said.flatten(), ignore_index=0).item()
print(f"with padding {counted:.3f}, without {fixed:.3f}")

# %% tags=["hide-input", "check"]
assert math.isclose(fixed, math.log(11), rel_tol=1e-6)
assert math.isclose(counted, 13 / 20 * math.log(11), rel_tol=1e-6)

# %% [markdown]
# More in [training](training.py#what-goes-wrong) and [the output](output.py#what-goes-wrong).
#
# <details>
# <summary>Caught by</summary>
#
# `training/test_loop.py`: `test_padding_does_not_count`.
#
# </details>

# %% [markdown]
# ## Scale by the whole width
#
# Scores are divided by $\sqrt{d_k}$, the root of the width of *a head's* query and key (§3.2.1). Divided by
# $\sqrt{d_\mathrm{model}}$, they are too small by a factor of $\sqrt{h}$ for $h$ heads, and attention stays too even.
# Without any division, they start with a standard deviation of $\sqrt{d_k}$, one key takes nearly all the weight, and
# gradients vanish. Here are 8 heads, $d_\mathrm{model} = 512$, $d_k = 64$, with random queries and keys:

# %%
torch.manual_seed(1)
query, key = torch.randn(2, 1000, 10, 64)  # 1000 sentences of 10 words, one head
largest = {}
for name, divisor in (("by √d_k", 8.0), ("by √d_model", math.sqrt(512)), ("by nothing", 1.0)):
    scores = query @ key.mT / divisor
    largest[name] = scores.softmax(-1).amax(-1).mean().item()
    print(f"divided {name:<12} standard deviation {scores.std():.2f}, largest of 10 weights {largest[name]:.2f}")

verdict("scale_d_model")
verdict("no_scale")

# %% tags=["hide-input", "check"]
torch.testing.assert_close((query @ key.mT / 8.0).softmax(-1), gf.attention(query, key, key).weights)
assert largest["by √d_model"] < largest["by √d_k"] < largest["by nothing"]

# %% [markdown]
# Look at the middle bar, which is close to an even distribution (0.10), and at the last bar, which leaves little for
# nine of the ten keys:

# %% tags=["hide-input"]
pictures.bars(
    {f"divided {name}": weight for name, weight in largest.items()},
    x_label="mean of the largest of 10 weights",
    numbers=".2f",
    alt="Three bars: the largest weight is about 0.3 with √d_k, about 0.2 with √d_model and about 0.9 with no division.",
)

# %% [markdown]
# The reason for the root is in [attention](attention.py#why-the-scores-are-divided).
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), and `model/test_attention.py`: `test_set_yourself_free_is_computed_as_by_hand`;
# `model/test_parity.py`: `test_the_encoder_equals_torchs`.
#
# </details>

# %% [markdown]
# ## Norm order swapped
#
# Each order is one line: the paper's post-norm is `norm(x + sublayer(x))`, pre-norm is `x + sublayer(norm(x))`. Every
# weight has the same shape in both orders, so the weights of a model with one order load into a model with the other.
# The demo is post-norm. This is what it writes when it runs as pre-norm:

# %%
from glassformer.built_in import trained_demo

x, sublayer = torch.randn(1, 2, 4), torch.tanh
post, pre = (Residual(nn.LayerNorm(4), place, dropout=0.0, tap=Tap()) for place in ("post", "pre"))

demo, sentence = gf.Translator.load(trained_demo("../runs/demo")), "The black cat sat on the couch."
[fixed] = demo.translate([sentence])
with plant(demo.model, "norm_order"):
    [wrong] = demo.translate([sentence])

print("right:", fixed.text)
print("wrong:", wrong.text[:80])
verdict("norm_order")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(post.norm(x + sublayer(x)), post(x, sublayer))
torch.testing.assert_close(x + sublayer(pre.norm(x)), pre(x, sublayer))
assert not torch.allclose(post(x, sublayer), pre(x, sublayer))
assert wrong.text != fixed.text

# %% [markdown]
# Trained from the start, a model learns in either order; post-norm needs a warm-up, and a pre-norm stack needs one more
# norm at its end.
#
# More in [add & norm](residual.py#what-goes-wrong); the experiment on [norms](experiments/norms.py) trains both orders
# side by side.
#
# <details>
# <summary>Caught by</summary>
#
# `gf.check` (*reference*), `model/test_residual.py`: `test_post_norm_normalises_the_sum`, and `model/test_parity.py`:
# `test_the_encoder_equals_torchs`.
#
# </details>
#
# And if your mistake is not on this page? Compare your code number by number with code that is right: `gf.record` names
# every intermediate value, and the first value that differs comes right after the mistake. To see how that looks, open
# [the demo with the mistake "No
# √d_k"](../runs/demo/explorer.html#text=The+black+cat+sat+on+the+couch.&mistakes=%5B%22no_scale%22%5D&sheet=true&panel=changes)
# in the explorer, which names the first tensor that differs and shows how the translation changes.
