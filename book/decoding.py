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
# # Decoding: greedy, beam, and word by word
#
# ## The question
#
# A trained model answers one question: given a source and the first tokens of a target, how probable is each possible
# next token? A translation is a whole sentence. How do you get from next tokens to a sentence?
#
# You write a token, ask again, and write the next. A *search* chooses which token to write. This chapter builds three
# searches: greedy (always the most probable token), beam (several attempts side by side) and sampling (at random).

# %%
import math

import torch

import glassformer as gf
from glassformer.watch import pictures

_ = torch.set_grad_enabled(False)  # nothing is trained on this page

# %% tags=["hide-input"]
import copy

from glassformer.built_in import trained_demo

torch.manual_seed(1)
torch.set_printoptions(precision=4, sci_mode=False)

translator = gf.Translator.load(trained_demo("../runs/demo"))  # your own `make demo`, or the model in the package
model = copy.deepcopy(translator.model).double()  # float64, to compare exactly
read, write = translator.bundle.source_tokenizer, translator.bundle.target_tokenizer
pad_id, bos_id, eos_id = 0, 1, 2

# %% [markdown]
# ## The intuition
#
# The encoder reads the source once. Its output, the *memory*, does not change any more. Then the decoder writes. It
# starts with `<bos>` (beginning of sentence), and each token that it writes becomes part of what it reads at the next
# step. When it writes `<eos>` (end of sentence), the sentence is finished.
#
# Greedy search is like walking through a town by taking the widest street at each corner. Often that leads to the
# main square. Sometimes the widest street is a dead end, and the right way begins with a narrow one. A beam walks
# several ways at once, and compares them further on.
#
# ## The mathematics
#
# Let $x$ be the source and $y = (y_1, \dots, y_n)$ an output whose last token is `<eos>`. The model gives the
# probability of each token after the tokens before it. The probability of the whole output is the product of these. Its
# logarithm is a sum, which avoids very small numbers:
#
# $$\log p(y \mid x) = \sum_{t=1}^{n} \log p(y_t \mid y_1, \dots, y_{t-1}, x)$$
#
# The library calls this number `log_prob`. It is a natural logarithm and includes `<eos>`. A probability is at most 1,
# and $\log 1 = 0$, so each token adds 0 or a negative number, and longer outputs tend to have a lower `log_prob`. To make
# up for this, beam search ranks finished outputs by a *score* (§6.1; Wu et al. 2016, equation 14), where $n$ is the
# number of tokens, `<eos>` included:
#
# $$\operatorname{score}(y) = \frac{\log p(y \mid x)}{\operatorname{penalty}(n)} \qquad
# \operatorname{penalty}(n) = \left(\frac{5 + n}{6}\right)^{\alpha}$$
#
# Dividing a negative number by a larger penalty brings it closer to 0, so the longer output gains. No theory gives the
# 5 and the 6. Wu et al. first divided by $n$, then by $n^\alpha$, and settled on this form because it worked better. The
# paper chose $\alpha = 0.6$ by experiments on its development set.
#
# ## Line by line
#
# ### Encoder once, decoder in a loop
#
# `model` is the demo, `read` and `write` are its tokenizers. In the comments, $S$ is the number of source tokens, $T$ the number of target tokens, and $V$ the size of the
# vocabulary.

# %%
text = "The animal didn't cross the street because it was too wide."
source = torch.tensor([[*read.encode(text), eos_id]])  # (1, S)
memory = model.encode(source)  # (1, S, d_model): once
longest = source.shape[1] + 50  # the most tokens an output may have (§6.1)
print(f"source {tuple(source.shape)}, memory {tuple(memory.shape)}, at most {longest} tokens")

# %% tags=["hide-input", "check"]
from glassformer.decoding.hypothesis import max_length

assert longest == max_length(model.config, source.shape[1], extra_length=50)

# %% [markdown]
# Here is one step of the loop, slowly. The decoder reads `<bos>`. A softmax turns the *logits* of the last position
# into the probabilities of the first token. (`decode` gets the source again only for its padding, which the mask of
# cross-attention hides.)

# %%
target_input = torch.tensor([[bos_id]])  # (1, 1)
logits = model.decode(target_input, memory, source)  # (1, 1, V)
log_probs = logits[0, -1].log_softmax(-1)  # (V)
newest = log_probs.argmax().item()
first, probability = write.tokens([newest]), log_probs[newest].exp()
print(f"logits {tuple(logits.shape)}; first token {first}, probability {probability:.2f}")

# %% [markdown]
# Now the loop: append the most probable token and decode again, until `<eos>` comes or the output has its greatest
# allowed length.

# %%
tokens, token_log_probs = [], []
while len(tokens) < longest:
    target_input = torch.tensor([[bos_id, *tokens]])
    log_probs = model.decode(target_input, memory, source)[0, -1].log_softmax(-1)
    tokens.append(int(log_probs.argmax()))
    token_log_probs.append(log_probs[tokens[-1]].item())
    if tokens[-1] == eos_id:
        break

by_hand = write.decode(tokens)
by_hand

# %% tags=["hide-input", "check"]
[translation] = translator.translate([text], beam_size=1)
assert by_hand == translation.text
assert tuple(write.tokens(tokens)) == translation.tokens
# the translator's model computes in float32
assert abs(sum(token_log_probs) - translation.log_prob) < 1e-4

# %% [markdown]
# ### Watch it
#
# Here is the same loop as a picture. On the left is the source, in the middle the output so far. Lines lead from the
# word being written to the words that cross-attention looks at (mean over all heads, as in [the tour](tour.py)). On
# the right are the candidates, the most probable next tokens. Play it, or step through it. Stop at *elle* ("it", for
# *la rue*), and see whether *il* is among the candidates.

# %%
with gf.record(model) as trace:
    model.decode(torch.tensor([[bos_id, *tokens[:-1]]]), memory, source)

layers = [trace[f"decoder.layers.{layer}.cross_attention.weights"][0] for layer in (0, 1)]
looks = torch.cat(layers).mean(0)  # (T, S)
candidates = trace["log_probs"][0].exp()  # (T, V)
print(f"looks {tuple(looks.shape)}, candidates {tuple(candidates.shape)}")

# %% tags=["hide-input", "check"]
explanation = translator.explain(text, beam_size=1)
alignment = explanation.alignment  # the heads that align words best, which the library shows
aligning = trace[f"{alignment.module}.weights"][0, list(alignment.heads)].mean(0)
library = torch.tensor(explanation.attention, dtype=torch.float64)
torch.testing.assert_close(torch.stack(alignment.shifted(aligning)), library, rtol=0, atol=1e-4)

# %% [markdown]
# (One forward pass over the finished sentence gives the same numbers as the steps one by one. This is due to the
# causal mask: no position sees what comes after it.)

# %% tags=["hide-input"]
source_words, target_words = read.tokens(source[0].tolist()), write.tokens(tokens)


def frame(step):
    figure, (left, right) = pictures.canvas(7.2, 3.7, ncols=2, gridspec_kw={"width_ratios": [1.7, 1]})
    rows = max(len(source_words), len(target_words))
    for place, word in enumerate(source_words):
        left.text(0.30, -place, word, ha="right", va="center", fontsize=10)
    for place, word in enumerate(target_words[: max(step, 0)]):
        left.text(0.70, -place, word, ha="left", va="center", fontsize=10, weight="bold" if place == step - 1 else None)
    left.set(xlim=(0, 1), ylim=(-rows + 0.5, 0.8))
    left.axis("off")
    if step == 0:
        right.axis("off")
        return pictures.picture(figure, "The encoder has read the source; nothing is written yet.")
    for place, weight in enumerate(looks[step - 1].tolist()):
        if weight >= 0.02:
            left.plot([0.68, 0.32], [-step + 1, -place], color=pictures.BLUE, linewidth=6 * weight, alpha=0.85)
    best = candidates[step - 1].topk(4)
    names = write.tokens(best.indices.tolist())
    right.barh(range(4), best.values.tolist(), color=[pictures.BLUE] + 3 * [pictures.GREY], alpha=0.75)
    for place, value in enumerate(best.values.tolist()):
        right.annotate(f"{value:.3f}", (value, place), (3, 0), textcoords="offset points", va="center", fontsize=9)
    right.set_yticks(range(4), names)
    right.set(xlim=(0, 1.25), xticks=[0, 0.5, 1], xlabel="probability")
    right.invert_yaxis()
    looked = source_words[looks[step - 1].argmax()]
    return pictures.picture(
        figure,
        f"Step {step}: {target_words[step - 1]} is written, with probability {best.values[0]:.2f}; cross-attention looks "
        f"most at {looked}.",
    )


pictures.player(
    [frame(step) for step in range(len(tokens) + 1)],
    ["The encoder has read the source, once."]
    + [f"Step {step + 1}: {' '.join(target_words[: step + 1])}" for step in range(len(tokens))],
)

# %% [markdown]
# In the explorer, *Play* writes any sentence word by word, and *What if?* forces its first words: [this sentence
# there](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide.).
#
# ### Where greedy is wrong
#
# A toy "model" shows it plainly: a table that says which token follows which, and ignores the source. Rows are the
# last token, columns the next one.

# %%
words = ["<pad>", "<bos>", "<eos>", "the", "this", "cat", "dog", "bird"]
table = torch.zeros(8, 8, dtype=torch.float64)
table[1, [3, 4]] = torch.tensor([0.6, 0.4]).double()  # <bos> → the, this
table[3, [5, 6, 7]] = torch.tensor([0.4, 0.35, 0.25]).double()  # the → cat, dog, bird
table[4, [5, 6]] = torch.tensor([0.9, 0.1]).double()  # this → cat, dog
table[[5, 6, 7], 2] = 1.0  # then <eos>

# %% tags=["hide-input"]
pictures.heat_map(
    table[[1, 3, 4, 5, 6, 7]],
    [words[i] for i in (1, 3, 4, 5, 6, 7)],
    words,
    alt="The toy's transitions: <bos> to 'the' 0.6 or 'this' 0.4; 'the' to cat 0.4, dog 0.35, bird 0.25; "
    "'this' to cat 0.9, dog 0.1; each animal to <eos>.",
)

# %% [markdown]
# Greedy takes *the* (0.6), then *cat* (0.4), which makes 0.24. But *this cat* has 0.4 · 0.9 = 0.36. The first step
# was the best first step, but it led to a worse sentence.
#
# ### The tree
#
# A *beam search* keeps several beginnings side by side. Here is what greedy search (left) and a beam of 2 (right)
# consider, as a tree. Follow *this*: greedy drops it at once. The beam keeps it, and sees one step later that it was the
# better beginning. Blue beginnings are continued, green ones are finished, grey ones are dropped. The numbers are the
# probabilities of everything up to that token. Each step shows the best two candidates of greedy search, and the best
# four of the beam. The others, *the bird* on the left and *this dog* on the right, are left out. (The folded code uses
# the library's searches. Its `table_step` gives them a table where they expect a model.)

# %% tags=["hide-input"]
from types import SimpleNamespace

from glassformer.decoding import SearchTree, beam_search, greedy, length_penalty
from glassformer.decoding.beam import search_tree


def table_step(table):
    return SimpleNamespace(
        vocab_size=8,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
        device=torch.device("cpu"),
        start=lambda: None,  # the state: a table remembers nothing
        advance=lambda tokens, state: (table[tokens].log(), state),  # (R) -> (R, V)
        select=lambda state, **_: state,  # keeps some hypotheses: nothing to do
    )


def arrange(node, children, heights, leaves):
    for child in children[node.id]:
        arrange(child, children, heights, leaves)
    below = [heights[child.id] for child in children[node.id]]
    heights[node.id] = sum(below) / len(below) if below else -len(leaves)
    if not below:
        leaves.append(node)


def draw_tree(axes, tree: SearchTree, title):
    children = {node.id: [other for other in tree.nodes if other.parent == node.id] for node in tree.nodes}
    heights = {}
    arrange(tree.nodes[0], children, heights, leaves=[])
    colours = {"kept": pictures.BLUE, "finished": pictures.GREEN, "pruned": pictures.GREY}
    for node in tree.nodes:
        x, y = node.position + 1, heights[node.id]
        if node.parent is not None:
            dashed = "--" if node.state == "pruned" else "-"
            axes.plot([x - 0.62, x - 0.3], [heights[node.parent], y], dashed, color=colours[node.state], linewidth=1.6)
        axes.text(x, y + 0.04, words[node.token], ha="center", va="bottom", fontsize=10)
        axes.text(
            x,
            y - 0.04,
            f"{math.exp(node.log_prob):.2f}",
            ha="center",
            va="top",
            fontsize=8.5,
            color=colours[node.state],
        )
    axes.set(xlim=(-0.4, 3.4), ylim=(-3.6, 0.6), title=title)
    axes.axis("off")


toy = table_step(table)
trees = [search_tree(toy, beam_size=size, max_length=5)[1] for size in (1, 2)]
figure, both = pictures.canvas(7.6, 2.9, ncols=2)
for axes, tree, title in zip(both, trees, ("greedy", "beam of 2")):
    draw_tree(axes, tree, title)

pictures.picture(
    figure,
    "Two search trees. Greedy keeps 'the', drops 'this', and ends with 'the cat' at 0.24. The beam of 2 keeps both and "
    "ends with 'this cat' at 0.36 before 'the cat' at 0.24.",
)

# %% tags=["hide-input", "check"]
at_each_step = [[sum(node.position == step for node in tree.nodes) for step in range(3)] for tree in trees]
assert at_each_step == [[2, 2, 1], [2, 4, 2]]
assert words.index("bird") not in [node.token for node in trees[0].nodes]

# %% tags=["hide-input", "check"]
[by_greedy] = greedy(toy, max_lengths=[5])
[[by_beam]] = beam_search(toy, beam_size=2, max_lengths=[5])
assert math.isclose(math.exp(by_greedy.log_prob), 0.6 * 0.4, rel_tol=1e-6)
assert math.isclose(math.exp(by_beam.log_prob), 0.4 * 0.9, rel_tol=1e-6)

# %% [markdown]
# ### One step as a table
#
# Take the beam of 2 after its first step. It holds two beginnings, *the* and *this*. Continue each of them with every
# token that may follow, and multiply the probabilities. These are the *candidates*; the best two are kept.

# %%
candidates = []
for word, probability in (("the", 0.6), ("this", 0.4)):
    for next_word in ("cat", "dog", "bird"):
        after = table[words.index(word), words.index(next_word)].item()
        factors = f"{probability} · {after:.2f}"
        candidates.append((probability * after, f"{word} {next_word}", factors))

for place, (probability, output, factors) in enumerate(sorted(candidates, reverse=True)):
    fate = "kept" if place < 2 else "dropped"
    print(f"{output:10} {factors:10} = {probability:.2f}  {fate}")

# %% [markdown]
# ### A beam by hand
#
# A *hypothesis* is an unfinished output with its log probability. Beam search keeps the $N$ best hypotheses, where $N$
# is the `beam_size`. At each step every hypothesis is continued with every token, as in the table; log probabilities
# are added instead of multiplying probabilities:


# %%
def continued(living, next_log_probs, must_end):
    """Return all continuations of the hypotheses, as (log_prob, tokens), best first."""
    candidates = []
    for log_prob, tokens in living:
        log_probs = next_log_probs(tokens)
        # never <pad> or <bos>
        for token in [eos_id] if must_end else range(eos_id, len(log_probs)):
            if log_probs[token] > -math.inf:
                candidates.append((log_prob + log_probs[token].item(), [*tokens, token]))
    return sorted(candidates, reverse=True)


# %% [markdown]
# A candidate that ends in `<eos>` is finished if it is among the best $N$. Of the other candidates, the best $N$ are the
# hypotheses of the next step.
#
# The search ends when $N$ outputs are finished and none of them is worse than the best unfinished hypothesis. For this
# comparison, the hypothesis gets the score that it would have if it ended at its present length.
#
# Could the hypothesis still win if the search went on? With $\alpha = 0$ it could not: a further token never raises
# `log_prob`. With $\alpha > 0$ it could, because the penalty grows with the length, too. The search does not wait for that,
# so it may miss a better output ([an example](#a-beam-can-stop-too-early) follows).


# %%
def beam(next_log_probs, beam_size, most, alpha=0.6):
    """Return the best outputs of at most `most` tokens, as (score, log_prob, tokens)."""
    living, finished = [(0.0, [])], []
    for length in range(1, most + 1):
        penalty = ((5 + length) / 6) ** alpha
        candidates = continued(living, next_log_probs, must_end=length == most)
        for log_prob, tokens in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((log_prob / penalty, log_prob, tokens))
        finished = sorted(finished, reverse=True)[:beam_size]
        living = [one for one in candidates if one[1][-1] != eos_id][:beam_size]
        if not living:
            break
        best_unfinished = living[0][0] / penalty  # as if it ended here
        if len(finished) == beam_size and finished[-1][0] >= best_unfinished:
            break
    return finished


# %% [markdown]
# The search needs only a function that gives the log probabilities of the next token. For the toy this is a row of the
# table, for the demo a pass through its decoder:


# %%
def table_log_probs(table):
    return lambda tokens: table[[bos_id, *tokens][-1]].log()


def model_log_probs(tokens):
    target_input = torch.tensor([[bos_id, *tokens]])
    return model.decode(target_input, memory, source)[0, -1].log_softmax(-1)


def phrase(tokens):
    return " ".join(words[token] for token in tokens)


for score, log_prob, found in beam(table_log_probs(table), 2, 5):
    print(f"score {score:6.3f}, log_prob {log_prob:6.3f}: {phrase(found)}")

for score, log_prob, found in beam(model_log_probs, 4, longest):
    print(f"score {score:6.3f}, log_prob {log_prob:6.3f}: {write.decode(found)}")

# %% tags=["hide-input", "check"]
from glassformer.decoding.transformer_step import TransformerStep

for next_log_probs, step, beam_size, most in [
    *((table_log_probs(table), toy, size, 5) for size in (1, 2, 4)),
    (model_log_probs, TransformerStep(model, source), 4, longest),
]:
    ours = beam(next_log_probs, beam_size, most)
    [library] = beam_search(step, beam_size=beam_size, max_lengths=[most], n_best=beam_size)
    assert [tuple(tokens) for _, _, tokens in ours] == [hypothesis.tokens for hypothesis in library]
    for (score, log_prob, _), hypothesis in zip(ours, library):
        # While it searches, the library sums log_prob in float32.
        assert math.isclose(log_prob, hypothesis.log_prob, rel_tol=1e-5)
        assert math.isclose(score, hypothesis.score, rel_tol=1e-5)

# %% [markdown]
# ### A beam can stop too early
#
# In the next table, a beam of 2 has two finished outputs after two tokens: *the* and *dog*, each with `<eos>`. The
# unfinished *the this* would score −1.043 at this length, which is less than both, so the search stops. But *cat*,
# *bird* and `<eos>` follow it with certainty. The `log_prob` stays the same, and the greater length lifts the score to
# −0.842. A beam of 3 waits for a third finished output, and so finds it:

# %%
early = torch.zeros(8, 8, dtype=torch.float64)
early[1, [3, 6]] = torch.tensor([0.65, 0.35]).double()  # <bos> → the, dog
early[3, [2, 4]] = torch.tensor([0.51, 0.49]).double()  # the → <eos>, this
early[[4, 5, 7, 6], [5, 7, 2, 2]] = 1.0  # this → cat → bird → <eos>; dog → <eos>
for size in (2, 3):
    for score, log_prob, found in beam(table_log_probs(early), size, 5):
        print(f"beam of {size}: score {score:.3f}, log_prob {log_prob:.3f}: {phrase(found)}")

# %% tags=["hide-input", "check"]
stopped, patient = (beam(table_log_probs(early), size, 5) for size in (2, 3))
unfinished = math.log(0.65 * 0.49)
assert round(unfinished / length_penalty(2, 0.6), 3) == -1.043 < round(stopped[-1][0], 3) == -1.007
assert math.isclose(patient[0][1], unfinished, rel_tol=1e-6) and round(patient[0][0], 3) == -0.842
for size, ours in ((2, stopped), (3, patient)):
    [library] = beam_search(table_step(early), beam_size=size, max_lengths=[5], n_best=size)
    assert [tuple(tokens) for _, _, tokens in ours] == [one.tokens for one in library]

assert beam(table_log_probs(early), 3, 5, alpha=0)[0][2] == stopped[0][2]

# %% [markdown]
# ### A beam can end worse than greedy search
#
# A beam of $N$ keeps the $N$ best *beginnings*, and greedy's own beginning may not be among them. In the next table,
# greedy search writes *the bird*, with 0.55 · 0.38 = 0.209. After two tokens, *this cat* (0.45 · 0.52 = 0.234) and *this
# dog* (0.216) push *the bird* out of a beam of 2. Only then does it turn out that each of them goes on in two ways,
# `<eos>` or *bird*. The best output left is *this cat bird*, with 0.234 · 0.6 = 0.1404. A beam
# of 3 has room for all three beginnings:

# %%
trap = torch.zeros(8, 8, dtype=torch.float64)
trap[1, [3, 4]] = torch.tensor([0.55, 0.45]).double()  # <bos> → the, this
trap[3, [5, 6, 7]] = torch.tensor([0.3, 0.32, 0.38]).double()  # the → cat, dog, bird
trap[4, [5, 6]] = torch.tensor([0.52, 0.48]).double()  # this → cat, dog
trap[5, [2, 7]] = torch.tensor([0.4, 0.6]).double()  # cat → <eos>, bird
trap[6, [2, 7]] = torch.tensor([0.6, 0.4]).double()  # dog → <eos>, bird
trap[7, 2] = 1.0  # bird → <eos>
for size in (1, 2, 3):
    _, log_prob, found = beam(table_log_probs(trap), size, 5)[0]
    print(f"beam of {size}: {phrase(found)}, p = {math.exp(log_prob):.4f}")

# %% tags=["hide-input", "check"]
best = [beam(table_log_probs(trap), size, 5)[0] for size in (1, 2, 3)]
assert tuple(best[0][2]) == tuple(best[2][2]) == greedy(table_step(trap), max_lengths=[5])[0].tokens
assert [round(math.exp(log_prob), 4) for _, log_prob, _ in best[:2]] == [0.209, 0.1404]
assert phrase(best[1][2]) == "this cat bird <eos>"
for size, (score, _, tokens) in zip((1, 2, 3), best):
    [[library]] = beam_search(table_step(trap), beam_size=size, max_lengths=[5])
    assert tuple(tokens) == library.tokens and math.isclose(score, library.score, rel_tol=1e-5)

# %% [markdown]
# Does this happen in the demo? Count it on the 300 sentences of the split "longer", which are longer than all sentences
# in training. Here the beams rank by log p alone (`length_penalty=0`). So where the log p is below greedy's, the beam has
# dropped greedy's beginning. Then compare the last two columns: a higher log p is not always a better translation.

# %% tags=["hide-input"]
from glassformer.corpus.tasks import english_french

longer = english_french(train=1).splits["longer"][:300]
sources = [one.source for one in longer]
by_size = {size: translator.translate(sources, beam_size=size, length_penalty=0) for size in (1, 2, 4)}
print(f"{'':9} log p below greedy's  above  translations equal to the reference")
for size, several in by_size.items():
    gains = [one.log_prob - other.log_prob for one, other in zip(several, by_size[1], strict=True)]
    lower, higher = sum(gain < -1e-3 for gain in gains), sum(gain > 1e-3 for gain in gains)
    exact = sum(one.text == example.target for one, example in zip(several, longer, strict=True))
    print(f"beam of {size} {lower:20} {higher:6} {exact:37}")

# %% [markdown]
# A beam of 4 changes many of these outputs, but hardly the number of exact matches. An exact match gives no credit to an
# output that is nearly right. *BLEU* does: it counts the pieces of one to four words that an output shares with the
# reference. By BLEU the demo gains from a beam of 4 on these sentences, and models that were trained for a
# third of the time lose ([the experiment](experiments/beam.py)). On sentences like its training data, the demo is so sure
# of itself that greedy and beam hardly ever differ. The paper uses a beam of 4.
#
# ## The same from the library
#
# The library's searches give the same outputs: tokens, `log_prob` and score.
#
# <details>
# <summary>How the library searches a table</summary>
#
# Its searches ask a model for one thing only: "one more token, please". This is the [Step
# protocol](../src/glassformer/decoding/step.py#Step). `start` returns a state. `advance` takes it with the newest
# tokens, and returns log probabilities and the next state. `table_step` makes such an object from a table.
#
# </details>
#
# ### Score and length penalty
#
# `translate` takes `beam_size`, `length_penalty` and `n_best`. The best output is the translation; the others are its
# `alternatives`. The score follows the formula:

# %%
[translation] = translator.translate([text], beam_size=4, n_best=4)
for one in (translation, *translation.alternatives):
    n = len(one.tokens)
    print(f"log_prob {one.log_prob:7.3f}, {n} tokens, score {one.score:7.3f}: {one.text}")

# %% tags=["hide-input", "check"]
for one in (translation, *translation.alternatives):
    n = len(one.tokens)
    assert one.tokens[-1] == "<eos>"
    assert math.isclose(one.score, one.log_prob / ((5 + n) / 6) ** 0.6, rel_tol=1e-9)
    assert math.isclose(((5 + n) / 6) ** 0.6, length_penalty(n, 0.6), rel_tol=1e-12)

# %% [markdown]
# ### Rescoring: is it really log p?
#
# `log_prob` was summed while the tokens were being chosen. Feed the finished output to the decoder in one go (*forced
# decoding*) and read off the log probability of each token. The sum must be the same.

# %%
output = torch.tensor([*write.encode(translation.text), eos_id])  # (T): y, with <eos>
# (1, T): y, shifted right
target_input = torch.cat([torch.tensor([bos_id]), output[:-1]])[None]
log_probs = model(source, target_input)[0].log_softmax(-1)  # (T, V)
forced = log_probs.gather(1, output[:, None]).squeeze(1)  # (T)
print(f"sum {forced.sum():.4f}, log_prob {translation.log_prob:.4f}")

# %% tags=["hide-input", "check"]
[scored] = translator.score([(text, translation.text)])
theirs = torch.tensor(scored.token_log_probs).double()
assert abs(forced.sum().item() - translation.log_prob) < 1e-4
assert abs(scored.log_prob - translation.log_prob) < 1e-4
torch.testing.assert_close(forced, theirs, rtol=0, atol=1e-4)

# %% [markdown]
# ### The cache
#
# The loop above decodes the whole beginning again at each step. But the keys and values of earlier tokens do not
# change, because no token looks ahead, so they can be kept. The model's `start` and `advance` do this, and the
# library's searches use them. The logits are the same at each step (the [decoder
# chapter](decoder.py#step-by-step-with-a-cache) explains why):

# %%
cache, newest, largest = model.start(source), bos_id, 0.0
for place, token in enumerate(output.tolist()):
    cached, cache = model.advance(torch.tensor([newest]), cache)  # reads one token
    # reads all tokens again
    full = model.decode(target_input[:, : place + 1], memory, source)[:, -1]
    largest = max(largest, (cached - full).abs().max().item())
    newest = token

print(f"{place + 1} steps; largest difference of the logits {largest:.0e}")

# %% tags=["hide-input", "check"]
assert largest < 1e-10

# %% [markdown]
# ### A forced beginning
#
# `prefix` is the required beginning of the output. The search continues from there. Force the wrong pronoun, and see
# what happens to the rest. (*Large* has one form for *il* and *elle*.) The two sums show how much less probable the
# whole output becomes.

# %%
prefix = "L'animal n'a pas traversé la rue parce qu'il"
[forced_il] = translator.translate([text], prefix=prefix)
print(forced_il.text)
wrong, free = forced_il.log_prob, translation.log_prob
print(f"log_prob {wrong:.3f}; without the forced beginning {free:.3f}")

# %% tags=["hide-input", "check"]
assert forced_il.text.startswith(prefix)
assert forced_il.log_prob < translation.log_prob

# %% [markdown]
# ### How sure of each word?
#
# The exponential (`exp`) of a token's log probability is its probability, given everything before it: the model's
# confidence in this token. Here are the tokens of the output with the wrong pronoun. One bar is almost invisible. Find
# it: such a word deserves a second look. Nearly all the others are close to 0.90, which is as
# sure as this model gets, because its training smoothed the target with $\varepsilon = 0.1$ ([label
# smoothing](output.py)). Look at the words after *il* too: given the mistake, does the rest fit again?

# %%
pairs = zip(forced_il.tokens, forced_il.token_log_probs)
confidence = {f"{i}  {token}": math.exp(log_p) for i, (token, log_p) in enumerate(pairs, 1)}
lowest = min(confidence, key=confidence.get)
n, least = len(confidence), confidence[lowest]
pictures.bars(
    confidence,
    x_label="probability of the token",
    numbers=".3f",
    alt=f"A bar for each of {n} tokens. The shortest is {lowest} with {least:.4f}.",
)

# %% tags=["hide-input", "check"]
assert lowest.endswith("il")

# %% [markdown]
# ## Sampling
#
# For a translation you want the best output. To get many different outputs, or to see what else the model considers
# possible, draw each token at random. Three settings reshape the distribution first:
#
# - **temperature** $\tau$: divide the log probabilities by $\tau$ and take the softmax again. A value below 1
#   sharpens the distribution, a value above 1 flattens it.
# - **top_k**: keep the $k$ most probable tokens, and divide by their sum, so that they add up to 1 again.
# - **top_p**: go down the list from the most probable token until the tokens passed have a total probability of at
#   least $p$. Keep these.


# %%
def with_temperature(log_probs, temperature):
    return (log_probs / temperature).softmax(-1)


def with_top_k(log_probs, k):
    kept = torch.full_like(log_probs, -math.inf)
    best = log_probs.topk(k)
    kept[best.indices] = best.values
    return kept.softmax(-1)


def with_top_p(log_probs, p):
    ordered = log_probs.exp().sort(descending=True)
    count = int((ordered.values.cumsum(0) < p).sum()) + 1
    return with_top_k(log_probs, count)


# %% [markdown]
# The finished model is too sure of itself to show much. So take the model as it was at step 128 of its training (a
# [snapshot](training.py#what-it-learns-first)), and ask what it would write after "L'animal n'a pas traversé".

# %%
from glassformer.bundle import put_weights, read_weights
from glassformer.training.snapshots import Snapshots

young = copy.deepcopy(translator.model)
path = Snapshots(translator.bundle.folder / "snapshots", keep=0).paths()[128]
put_weights(young, read_weights(path), str(path))
beginning = torch.tensor([[bos_id, *write.encode("L'animal n'a pas traversé")]])
log_probs = young(source, beginning)[0, -1].double().log_softmax(-1)  # (V)
bent = {
    "as it is": log_probs.exp(),
    "temperature 0.5": with_temperature(log_probs, 0.5),
    "temperature 1.3": with_temperature(log_probs, 1.3),
    "top_k = 3": with_top_k(log_probs, 3),
    "top_p = 0.8": with_top_p(log_probs, 0.8),
}
for name, probs in bent.items():
    print(f"{name:15} tokens that can be drawn: {int((probs > 0).sum())}")

# %% tags=["hide-input", "check"]
from glassformer.decoding.sampling import draw

settings = ({}, {"temperature": 0.5}, {"temperature": 1.3}, {"top_k": 3}, {"top_p": 0.8})
heights = (torch.arange(1000).double() + 0.5) / 1000  # evenly spread "random" numbers
for (name, probs), setting in zip(bent.items(), settings, strict=True):
    torch.testing.assert_close(probs.sum(), torch.tensor(1.0).double())
    chosen = draw(
        log_probs.repeat(1000, 1),
        heights,
        **{"temperature": 1.0, "top_k": 0, "top_p": 1.0, **setting},
    )
    shares = chosen.bincount(minlength=len(probs)) / 1000
    # the library draws each token by exactly this share
    assert (shares - probs).abs().max() <= 0.002, name

# %% [markdown]
# The lines count the tokens that can still be drawn. The picture shows the eight most probable tokens (the same in
# each panel). A low temperature makes large probabilities larger. A high temperature gives unlikely tokens a chance. At
# temperature 1.3, the most probable token loses probability, most of it to the many tokens that are not shown. `top_k`
# and `top_p` cut this tail off.

# %% tags=["hide-input"]
eight = log_probs.topk(8).indices
figure, panels = pictures.canvas(7.6, 2.7, ncols=5, sharey=True)
for axes, colour, (name, probs) in zip(panels, pictures.PALETTE, bent.items()):
    axes.barh(range(8), probs[eight].tolist(), color=colour, alpha=0.75)
    axes.set_title(name, fontsize=9.5)
    axes.set(xlim=(0, 1), xticks=[0, 1])

panels[0].set_yticks(range(8), write.tokens(eight.tolist()))
panels[0].invert_yaxis()
pictures.picture(
    figure,
    "Five panels of the same eight tokens: the distribution as it is, sharper at temperature 0.5, flatter at 1.3, cut to "
    "three tokens by top_k, and cut to the tokens that make up 0.8 by top_p.",
)

# %% [markdown]
# In the library, `translate(…, sample=True)` draws, with these settings and a seed. The same seed draws the same output,
# whatever else is in the batch.

# %%
young_translator = gf.Translator(translator.bundle, young)
drawn = []
for seed in (1, 2, 3, 1):
    drawn += young_translator.translate([text], sample=True, top_p=0.6, seed=seed)

[whole] = young_translator.translate([text], sample=True, seed=1)
for seed, one in zip((1, 2, 3), drawn):
    print(f"top_p = 0.6, seed {seed}: {one.text}")

print(f"all tokens,  seed 1: {whole.text}")

# %% tags=["hide-input", "check"]
assert drawn[0] == drawn[3]

# %% [markdown]
# This is a young model, so most lines have mistakes. But look in the last line, which is drawn from all tokens, for words
# that do not fit at all. Each unlikely token alone has a very small probability, but at each step all
# unlikely tokens together have a considerable one, and a sentence has many steps.

# %% [markdown]
# ## What goes wrong
#
# ### No stop at `<eos>`
#
# The model was never trained on anything after the end. Let the greedy loop run on for six more tokens:

# %%
running = list(tokens)
for _ in range(6):
    running.append(int(model_log_probs(running).argmax()))

write.tokens(running[len(tokens) - 2 :])

# %% tags=["hide-input", "check"]
assert running[: len(tokens)] == tokens

# %% [markdown]
# Conversely, a search also needs a limit, because a model may never write `<eos>`. Here *the* and *this* follow each
# other for ever. The library closes such an output with `<eos>` at the last allowed position. The translation then
# has the status `"max_length"`.

# %%
endless = table.clone()
endless[[3, 4]] = 0.0
endless[3, 4] = endless[4, 3] = 1.0
endless[:, eos_id] = 1e-6  # not impossible, but never chosen
[cut] = greedy(table_step(endless), max_lengths=[6])
[words[token] for token in cut.tokens]

# %% tags=["hide-input", "check"]
assert len(cut.tokens) == 6 and cut.tokens[-1] == eos_id

# %% [markdown]
# ### The mean of the probabilities
#
# The mean is a tempting measure of an output, but it ranks outputs differently. One output has tokens of probability
# 0.9 and 0.1, another 0.4 and 0.4. The mean prefers the first output, but the second is nearly twice as probable.

# %%
first, second = torch.tensor([0.9, 0.1]), torch.tensor([0.4, 0.4])
print(f"mean {first.mean():.2f} and {second.mean():.2f}")
print(f"product {first.prod():.2f} and {second.prod():.2f}")

# %% tags=["hide-input", "check"]
assert first.mean() > second.mean()
assert first.log().sum() < second.log().sum()

# %% [markdown]
# ### Softmax twice
#
# Suppose that a model returns probabilities, and a search takes them for logits and applies the softmax again
# ([errata](errata.py#softmax-twice)). The order of the tokens within one step stays the same, so greedy search does
# not notice. A beam adds up several steps, and there the order changes. In this table *the cat* has 0.5 · 0.5 = 0.25
# and *this cat* has 0.2 · 0.95 = 0.19.

# %%
other = table.clone()
# <bos> → the, this, dog, bird
other[1] = torch.tensor([0, 0, 0, 0.5, 0.2, 0, 0.15, 0.15]).double()
other[3] = torch.tensor([0, 0, 0, 0, 0, 0.5, 0.3, 0.2]).double()
other[4] = torch.tensor([0, 0, 0, 0, 0, 0.95, 0.05, 0]).double()
other[[6, 7]] = torch.tensor([0, 0, 0.25, 0, 0, 0.25, 0.25, 0.25]).double()
once, twice = table_step(other), table_step(other.softmax(-1))
[[right]] = beam_search(once, beam_size=4, max_lengths=[3])
[[wrong]] = beam_search(twice, beam_size=4, max_lengths=[3])
for name, one in (("once", right), ("twice", wrong)):
    print(f"softmax {name}: {phrase(one.tokens)}")

# %% tags=["hide-input", "check"]
assert [words[token] for token in right.tokens] == ["the", "cat", "<eos>"]
assert wrong.tokens != right.tokens

# %% [markdown]
# ### Outputs of different length, compared by log_prob
#
# No token raises `log_prob`. A beam that ranks by `log_prob` ($\alpha = 0$) prefers short outputs, and the larger the
# beam, the more short outputs it finds. Compare an output of two tokens and `<eos>` with `log_prob` $-2.0$ and an
# output of nine tokens and `<eos>` with `log_prob` $-2.3$:

# %%
short, long = (-2.0, 3), (-2.3, 10)  # (log_prob, tokens with <eos>)
scores = {}
for alpha in (0.0, 0.6, 1.0):
    scores[alpha] = [log_prob / length_penalty(n, alpha) for log_prob, n in (short, long)]
    print(f"α = {alpha}: short {scores[alpha][0]:.2f}, long {scores[alpha][1]:.2f}")

# %% tags=["hide-input", "check"]
assert scores[0.0][0] > scores[0.0][1]
assert scores[0.6][0] < scores[0.6][1]

# %% [markdown]
# Some programs divide by the plain length $n$. This is a different formula from the line $\alpha = 1$, which divides by
# $(5 + n)/6$: it gives −0.67 and −0.23, the mean per token, and longer outputs win more often. It is the default of fairseq
# (`--lenpen 1`) and of Hugging Face (`length_penalty=1.0`).
#
# ### What do many believe?
#
# *"A length penalty punishes long outputs."* Its name says so, but it does the opposite: in the lines above, the long
# output wins with 0.6 and 1, and loses only without a penalty.
#
# ### A batch that changes its results
#
# The sentences of a batch are padded to the same length. This padding must be masked, or each sentence depends on its
# neighbours. Right: pad with `pad_id`, which the model masks. Wrong: pad with any other id, here `<eos>`, which the
# model takes for a word ([masks](masks.py)).

# %%
alone = model(source, target_input).log_softmax(-1)
filled = torch.nn.functional.pad(source, (0, 5), value=pad_id)
masked = model(filled, target_input).log_softmax(-1)
unmasked = model(filled.masked_fill(filled == pad_id, eos_id), target_input).log_softmax(-1)
changed = (unmasked - alone).gather(-1, output[None, :, None]).abs().max().item()
print("largest change of a token's log probability:")
print(f"{changed:.3f} without the mask, {(masked - alone).abs().max():.0e} with it")

# %% tags=["hide-input", "check"]
torch.testing.assert_close(masked, alone, rtol=0, atol=1e-10)
assert changed > 1e-3

# %% [markdown]
# ## In short
#
# - A sentence comes from next tokens in a loop: encode the source once, write a token, let the decoder read it, and ask
#   again until `<eos>`.
# - Greedy search writes the most probable token each time, beam search keeps several attempts side by side, and
#   sampling draws tokens at random. A beam search may miss the best output: it may drop its beginning, or stop too early.
# - A further token never raises the log-probability, so beam search divides it by a length penalty before it compares
#   finished outputs.
#
# ## Exercises
#
# **1.** *Easy · 3 min.* Translate "The black cat sat on the couch and the brown dog slept on the rug." by greedy search
# and with a beam of 4. Do the translations differ?
#
# <details><summary>Hint</summary>
#
# `translator.translate([sentence], beam_size=4)` returns a list of translations with a `text`.
#
# </details>

# %% tags=["hide-cell"]
sentence = "The black cat sat on the couch and the brown dog slept on the rug."
by_size = {size: translator.translate([sentence], beam_size=size)[0] for size in (1, 4)}
assert by_size[1].text == by_size[4].text
by_size[4].text

# %% [markdown]
# **2.** *Medium · 8 min.* Is *this cat* really the toy's most probable output? Try all outputs of up to four tokens.
#
# <details><summary>Hint</summary>
#
# `itertools.product` lists all sequences of a length. The probability of a sequence is the product along its steps.
#
# </details>

# %% tags=["hide-cell"]
from itertools import product

probabilities = {}
for length in range(1, 5):
    for output_tokens in product(range(3, 8), repeat=length - 1):
        steps = [bos_id, *output_tokens, eos_id]
        probabilities[(*output_tokens, eos_id)] = math.prod(table[a, b].item() for a, b in zip(steps, steps[1:]))

assert math.isclose(sum(probabilities.values()), 1.0, rel_tol=1e-6)  # no output of the toy is longer
best = max(probabilities, key=probabilities.get)
assert best == by_beam.tokens
[words[token] for token in best], probabilities[best]

# %% [markdown]
# **3.** *Medium · 5 min.* Beam search with `beam_size=1` is greedy search. Why does the length penalty make no
# difference there? Check it.
#
# <details><summary>Hint</summary>
#
# How long are the hypotheses that are compared with each other?
#
# </details>

# %% tags=["hide-cell"]
# The only living hypothesis is compared with no other: all candidates of one step have the same length, and the
# search ends with the first <eos>.
found = {beam_search(toy, beam_size=1, max_lengths=[5], length_penalty=alpha)[0][0].tokens for alpha in (0.0, 0.6, 2.0)}
assert found == {by_greedy.tokens}
found

# %% [markdown]
# **4.** *Easy · 3 min.* What does sampling become as the temperature goes to 0? And as it grows without bound?
#
# <details><summary>Hint</summary>
#
# Use `with_temperature` with a very small and a very large number.
#
# </details>

# %% tags=["hide-cell"]
cold, hot = with_temperature(log_probs, 0.001), with_temperature(log_probs, 1e6)
assert cold.argmax() == log_probs.argmax() and cold.max() > 0.999  # greedy search
assert (hot - 1 / len(hot)).abs().max() < 1e-6  # all tokens equally likely, whatever the model thinks
cold.max(), hot.min(), hot.max()

# %% [markdown]
# **5.** *Easy · 4 min.* One hypothesis has 3 tokens and log probability −3.0, another has 6 tokens and −3.5. What are
# their scores with the paper's $\alpha = 0.6$, and which one wins?
#
# <details><summary>Hint</summary>
#
# Divide each log probability by $((5 + n) / 6)^\alpha$.
#
# </details>

# %%
from glassformer.watch.capstone import verdict

answer = None  # instead of None: both scores, as a list
print(verdict("decoding.5", answer))

# %% tags=["hide-cell"]
both = [-3.0 / length_penalty(3, 0.6), -3.5 / length_penalty(6, 0.6)]
assert verdict("decoding.5", both) == "right"
assert both[1] > both[0]  # the longer one wins, although its log probability is lower
both

# %% [markdown]
# **6.** *Easy · 2 min · on the stage.* How wide must the beam be, before a translation with “elle” is among those that
# it finds? [Widen it on the
# stage](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired.&beam=1&zoom=%7B%22box%22:%22decoder.softmax%22,%22key%22:null%7D&panel=beam&task=beam).
#
# <details><summary>Hint</summary>
#
# The field *Beam size* is above the tree, and the finished outputs are listed below it.
#
# </details>
#
# ## Next
#
# You have now seen every part at work. [By hand](by_hand.py) computes a whole tiny Transformer, number by number, as
# you could on paper. Or open the [beam of this chapter's sentence in the
# explorer](../runs/demo/explorer.html#text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide.&beam=4&zoom=%7B%22box%22:%22decoder.softmax%22,%22key%22:null%7D&panel=beam).
