"""The steps of the page "Write it yourself": what the reader writes, its name, and the chapter that explains it."""

from dataclasses import dataclass

__all__ = ["EXERCISES", "Exercise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """A step: one function or class, or two short functions."""

    names: tuple[str, ...]
    """The names that the reader's file must define."""
    signature: str
    """The names with their parameters."""
    task: str
    """What to write, in one or two sentences with shapes."""
    chapter: str
    """The chapter of the book that explains the step, as a name for `glassformer learn CHAPTER`."""

    @property
    def title(self) -> str:
        """The names, joined."""
        return ", ".join(self.names)


EXERCISES = (
    Exercise(
        names=("attention",),
        signature="attention(query, key, value, mask)",
        task="Return (output, weights): the weights are softmax(query keyᵀ / √d_k) over the keys, and 0 where the mask "
        "is False, also in a row that is False everywhere. Shapes: query (…, T, d_k), key (…, S, d_k), value (…, S, "
        "d_v), mask broadcast to (…, T, S).",
        chapter="attention",
    ),
    Exercise(
        names=("MultiHeadAttention",),
        signature="MultiHeadAttention(d_model, heads), with forward(x, memory, mask)",
        task="A torch.nn.Module with linear layers named query (applied to x), key and value (applied to the memory) "
        "and output. Split each projection into heads, call attention, join the heads, apply output.",
        chapter="heads",
    ),
    Exercise(
        names=("positions",),
        signature="positions(length, d_model)",
        task="Return a table of shape (length, d_model): in row p, column 2i is sin(p / 10000^(2i/d_model)) and "
        "column 2i + 1 its cosine.",
        chapter="positions",
    ),
    Exercise(
        names=("FeedForward",),
        signature="FeedForward(d_model, d_ff), with forward(x)",
        task="A torch.nn.Module with linear layers named expand (to d_ff) and contract (back to d_model), and a ReLU "
        "between them.",
        chapter="feed_forward",
    ),
    Exercise(
        names=("EncoderLayer",),
        signature="EncoderLayer(d_model, heads, d_ff), with forward(x, mask)",
        task="Parts: self_attention, self_attention_norm, feed_forward, feed_forward_norm. Post-norm, as in the paper: "
        "x becomes norm(x + sub-layer(x)), twice.",
        chapter="encoder",
    ),
    Exercise(
        names=("DecoderLayer",),
        signature="DecoderLayer(d_model, heads, d_ff), with forward(x, memory, mask, memory_mask)",
        task="Like the encoder's layer, with cross_attention and cross_attention_norm between the two: its queries "
        "come from x, its keys and values from the memory.",
        chapter="decoder",
    ),
    Exercise(
        names=("source_mask", "target_mask"),
        signature="source_mask(source) and target_mask(target)",
        task="Return boolean masks, True = may attend: (batch, 1, 1, S) hides padding (id 0); (batch, 1, T, T) hides "
        "padding and later positions.",
        chapter="masks",
    ),
    Exercise(
        names=("Transformer",),
        signature="Transformer(vocab_size, d_model, heads, d_ff, layers), with encode(source), decode(target_input, "
        "memory, source) and forward(source, target_input)",
        task="Parts: source_embedding, target_embedding, encoder and decoder (module lists), output (linear). The "
        "input of a stack is embedding · √d_model + positions; decode and forward return logits.",
        chapter="overview",
    ),
    Exercise(
        names=("loss",),
        signature="loss(logits, target)",
        task="Return the mean of −log p(token) over the target's tokens that are not padding (id 0).",
        chapter="training",
    ),
    Exercise(
        names=("greedy",),
        signature="greedy(model, source, length)",
        task="Encode once, start with <bos> (id 1), and append the most probable token `length` times. Return ids of "
        "shape (batch, length), without <bos>.",
        chapter="decoding",
    ),
    Exercise(
        names=("train",),
        signature="train()",
        task="Return a Transformer with vocab_size 13, trained to copy sequences of 10 symbols (ids 3 to 12) and <eos> "
        "(id 2): source and target are equal, and the target input begins with <bos>. It must copy 99 % of unseen "
        "sequences.",
        chapter="training",
    ),
)
