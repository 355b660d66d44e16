"""The right answers to those exercises of the book that are checked: a number, a few numbers, or a small function."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from glassformer.errors import ConfigError, nearest, quoted

__all__ = ["ANSWERS", "RightAnswer", "verdict"]


class RightAnswer(NamedTuple):
    """The right answer to an exercise, and how an answer is compared with it."""

    right: Callable[..., Any]
    """A function that returns the right numbers, given numbers of the chapter. If the answer is itself a function, it
    takes the answer and returns whether the answer is right."""
    look: str
    """A hint for a reader whose answer is wrong."""
    tolerance: float = 1e-3
    """The maximum relative difference from the right numbers."""
    is_function: bool = False


def _splits_heads(function: Callable[..., Any]) -> bool:
    import torch

    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    return torch.equal(function(x, 3), x.view(2, 5, 3, 4).transpose(1, 2))


def _is_rms_norm(function: Callable[..., Any]) -> bool:
    import torch

    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)) + 2
    return torch.allclose(function(x), x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt(), atol=1e-5)


def _without_river(q: Any, k: Any, v: Any) -> Any:
    from glassformer.model.attention import attention

    values = v.clone()
    values[2] = 0
    return attention(q, k, values).weighted_values[0]


def _limits(scores: Any) -> Any:
    import torch

    return torch.cat([(1e6 * scores[0]).softmax(0), (0 * scores[0]).softmax(0)])


def _normalised(numbers: Sequence[float]) -> list[float]:
    mean = math.fsum(numbers) / len(numbers)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in numbers) / len(numbers))
    return [(one - mean) / deviation for one in numbers]


def _clock_faces() -> list[float]:
    """Return two answers about the distance between the pattern of position 0 and the patterns of later positions.

    The answers are the position with the least distance for one clock hand (d_model = 2), and the least distance for
    four clock hands (d_model = 8).
    """
    import torch

    from glassformer.model.positions import sinusoids

    apart = [
        (table[1:] - table[0]).norm(dim=1) for table in (sinusoids(100, width, dtype=torch.float64) for width in (2, 8))
    ]
    return [apart[0].argmin().item() + 1, apart[1].min().item()]


def _standing_still(wrong_table: Callable[[int, int], Any]) -> list[int]:
    import torch

    from glassformer.model.positions import sinusoids

    tables = wrong_table(50, 64), sinusoids(50, 64, dtype=torch.float64)
    return [int(((one.amax(0) - one.amin(0)) < 0.01).sum()) for one in tables]


def _prefix_mask(words: int, prefix: int) -> list[int]:
    return [max(prefix, row + 1) for row in range(words)]


def _first_shift(french: Sequence[str], slipped: Sequence[str]) -> int:
    return next(n for n, (one, other) in enumerate(zip(french, slipped, strict=True)) if one != other)


def _without_brevity(bleu: Callable[..., Any], cut: Callable[[str], Any], outputs: Any, references: Any) -> float:
    value, _, brevity = bleu([cut(text)[:-2] for text in outputs], [cut(text) for text in references])
    return float(value / brevity)


def _of_the_lazy(bleu: Any, chrf: Any, cut: Callable[[str], Any], sources: Any, references: Any) -> list[float]:
    return [bleu([cut(text) for text in sources], [cut(text) for text in references])[0], chrf(sources, references)]


def _lost(pairs: Sequence[tuple[str, str]]) -> int:
    lengths = [sorted(len(side.split()) for side in pair) for pair in pairs]
    return sum(longer > 1.5 * shorter for shorter, longer in lengths)


def _missed(most: Sequence[int], origins: Sequence[int]) -> float:
    """Return the share of words whose largest weight is not on a word to which the reference links them.

    If all links of the reference are sure, this share is the alignment error rate (AER).
    """
    return 1 - sum(bits >> place & 1 for place, bits in zip(most, origins, strict=False)) / len(origins)


def _penalised(log_prob: float, length: int, alpha: float) -> float:
    from glassformer.decoding.hypothesis import length_penalty

    return log_prob / length_penalty(length, alpha)


def _break_even(one: Any, other: Any) -> float:
    """Return the α at which two outputs have the same score; the penalty of a length is a power with exponent α."""
    from glassformer.decoding.hypothesis import length_penalty

    penalties = length_penalty(len(one.tokens), 1) / length_penalty(len(other.tokens), 1)
    return math.log(one.log_prob / other.log_prob) / math.log(penalties)


def _differing(translator: Any, texts: Sequence[str]) -> int:
    few, many = (translator.translate(list(texts), beam_size=size) for size in (1, 8))
    return sum(one.text != other.text for one, other in zip(few, many, strict=True))


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the rank correlation of two lists; no number occurs twice in a list."""
    ranks = [[sorted(each).index(value) for value in each] for each in (one, other)]
    first, second = (_normalised(each) for each in ranks)
    return math.fsum(a * b for a, b in zip(first, second, strict=True)) / len(first)


def _hidden_weight(score: float) -> float:
    return math.exp(score) / (math.exp(score) + sum(map(math.exp, (1, 0, 1))))


ANSWERS: Mapping[str, RightAnswer] = {
    "why_attention.1": RightAnswer(
        lambda: (512 - 1,), "divide 4nd² + 2n²d and 6nd² by 2nd: attention needs fewer if n < d"
    ),
    "why_attention.2": RightAnswer(lambda: (21 - 1,), "each layer adds one word on each side, not three"),
    "embeddings.1": RightAnswer(lambda: (37_000 * 512,), "the table has V rows of d_model numbers"),
    "positions.1": RightAnswer(
        lambda: (math.sin(5 / 10000 ** (2 / 8)), math.cos(5 / 10000 ** (2 / 8))),
        "the pair's divisor is 10, the angle is in radians, and the sine comes first",
    ),
    "positions.2": RightAnswer(lambda: (2 * math.pi * 10000 ** (510 / 512),), "the last exponent is 510/512", 1e-4),
    "positions.4": RightAnswer(
        _clock_faces, "compare whole rows of gf.sinusoids(100, 2) and gf.sinusoids(100, 8)", 5e-3
    ),
    "positions.5": RightAnswer(_standing_still, "amax(dim=0) − amin(dim=0) of both tables; first the doubled exponent"),
    "attention.1": RightAnswer(
        _without_river, "of the values that are left, only that of “of” has a weight above 0", 0.05
    ),
    "attention.2": RightAnswer(lambda: (1 / 3, 1 / 3, 1 / 3), "all scores are 0, and a softmax sums to 1"),
    "attention.4": RightAnswer(
        _limits, "first the three limits of large scores: one key wins; then those of small ones"
    ),
    "heads.1": RightAnswer(lambda: (1024 / 16,), "the heads share d_model equally"),
    "heads.2": RightAnswer(
        _splits_heads, "the result is (B, H, T, K), and head i has K neighbouring columns", is_function=True
    ),
    "masks.1": RightAnswer(lambda: (1 + 2 + 3 + 4 + 4,), "both masks must allow a cell; the last column is padding"),
    "residual.1": RightAnswer(lambda: _normalised((1, 1, 1, 5)), "the variance is a mean over all four numbers"),
    "residual.3": RightAnswer(
        _is_rms_norm, "eps is added to the mean square, and no mean is subtracted", is_function=True
    ),
    "feed_forward.1": RightAnswer(lambda: (2 * 1024 * 4096 + 4096 + 1024,), "two matrices, and two biases"),
    "encoder.1": RightAnswer(
        lambda: (4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512,),
        "four projections, two matrices and two norms; all have a bias",
        1e-5,
    ),
    "geometry.1": RightAnswer(lambda: (0.0,), "R times its transpose is the identity"),
    "geometry.2": RightAnswer(lambda: (3 * 360 / 16, 3 * 360 / 16), "one position is 360/16 degrees"),
    "decoder.1": RightAnswer(
        lambda: (6 * 2 * 8 * 64 * (20 + 15),), "layers · (keys and values) · heads · width · tokens"
    ),
    "output.1": RightAnswer(
        lambda: (math.log(37_000), 37_000, math.log(37_000)),
        "the mean of equal numbers is that number, smoothed or not",
    ),
    "output.2": RightAnswer(lambda: (math.exp(3 / 20),), "divide −log_prob by the number of tokens first"),
    "output.3": RightAnswer(
        lambda: (math.log((0.9 + 0.1 / 37_000) / (0.1 / 37_000)),),
        "the right word's probability is 0.9 + 0.1/V, each other word's 0.1/V",
    ),
    "training.1": RightAnswer(lambda: (4_000 * 2**2,), "the peak is at step 4 000, and √t must double"),
    "training.3": RightAnswer(lambda: ((100 * 2.0 + 300 * 1.0) / 400,), "every token counts the same"),
    "grow_it.1": RightAnswer(lambda: (math.log(32),), "the loss is −ln p"),
    "grow_it.2": RightAnswer(
        lambda table: (table["one layer with both"][1] - table["norm"][1],),
        "subtract the loss of three layers, “norm”, from that of one",
        0.02,
    ),
    "decoding.5": RightAnswer(
        lambda: (_penalised(-3.0, 3, 0.6), _penalised(-3.5, 6, 0.6)),
        "divide by length_penalty(n, 0.6); the scores stay negative",
    ),
    "by_hand.1": RightAnswer(
        lambda Q, K: ((Q[1, 2] * K[0, 2] + Q[1, 3] * K[0, 3]) / math.sqrt(2),),
        "head 1 has columns 2 and 3; the sum of two products is divided by √2",
    ),
    "by_hand_backward.1": RightAnswer(
        lambda probabilities, smoothed: ((probabilities[1, 7] - smoothed[1, 7]) / 2,),
        "probability minus smoothed target, divided by the two rows",
    ),
    "by_hand_backward.3": RightAnswer(lambda: (10, 1), "Adam divides a gradient by its own size"),
    "byte_pairs.1": RightAnswer(
        lambda counts, merges: (len(set("".join(counts))) + len(merges),),
        "one token for each different letter, ▁ included, and one for each merge",
    ),
    "corpora.1": RightAnswer(_first_shift, "the sum of differences is least at the gap", 5 / 1500),
    "corpora.3": RightAnswer(_without_brevity, "divide the value by the brevity penalty"),
    "corpora.4": RightAnswer(_of_the_lazy, "BLEU compares words, chrF runs of letters; first BLEU"),
    "corpora.5": RightAnswer(
        lambda good: (_lost(good),), "a pair is lost if its longer side has more than 1.5 times the words"
    ),
    "what_came_after.1": RightAnswer(
        lambda: _prefix_mask(6, 3), "row by row: at least the prefix, and each later word one more"
    ),
    "alignment.1": RightAnswer(
        lambda origins, words: (sum(bits.bit_count() for bits in origins) / len(origins) / words,),
        "each word has k/n; take the mean over the words",
    ),
    "alignment.2": RightAnswer(lambda most, origins: (_missed(most, origins),), "all links of this sentence are sure"),
    "bank.3": RightAnswer(lambda: (_correlation((0.5, 0.3, 0.2), (7, 1, 2)),), "correlate (2, 1, 0) with (2, 0, 1)"),
    "beam.2": RightAnswer(lambda one, other: (_break_even(one, other),), "α is a quotient of two logarithms", 0.01),
    "beam.3": RightAnswer(lambda translator, texts: (_differing(translator, texts),), "compare the texts pair by pair"),
    "hidden_key.3": RightAnswer(
        lambda: (_hidden_weight(0), _hidden_weight(-10)), "the other scores are 1, 0, 1; first the weight with 0"
    ),
    "importance.1": RightAnswer(
        lambda: (math.log(0.9 / 0.45), math.log(0.9 / 0.009)),
        "a difference of logarithms is the log of the quotient",
        0.01,
    ),
    "importance.2": RightAnswer(
        lambda: (_correlation((3, 1, 2), (30, 10, 20)), _correlation((3, 1, 2), (1, 3, 2))), "replace numbers by ranks"
    ),
    "norms.1": RightAnswer(lambda: [3e-3 * step / 200 for step in (1, 50, 200)], "the rate at step t is 0.003 · t/200"),
    "norms.3": RightAnswer(lambda: (10 * math.log(10) / 11,), "divide by the 11 tokens, the end included", 0.01),
    "one_head.1": RightAnswer(lambda: (4 * (128 * 128 + 128),), "four matrices, and four biases"),
    "one_head.3": RightAnswer(
        lambda: (2 * 8 * 14 * 14, 2 * 14 * 14), "layers · heads · queries · keys; then with one head"
    ),
    "parts.1": RightAnswer(lambda: (math.sqrt(256 / 9),), "variances add up, standard deviations do not", 0.01),
    "parts.2": RightAnswer(lambda: [w * (1 - w) for w in (0.1, 0.5, 0.99)], "insert the three weights into w(1 − w)"),
    "pronoun.3": RightAnswer(lambda: (3 * 3 * 3 / 48,), "three pairs, three heads each, and 3 of 48", 0.02),
}
"""The right answers, by chapter and number of the exercise."""


def verdict(exercise: str, answer: Any, *given: Any) -> str:
    """Return whether the answer of an exercise is right, as a short text; numbers may be rounded to about 1 in 1,000.

    Args:
        exercise: the chapter and the number, such as "masks.1".
        answer: a number, a list or tensor of numbers, or a function, as the exercise asks; None if there is no
            answer yet.
        given: values that the chapter has computed, if the right answer depends on them.

    Raises:
        ConfigError: the exercise is unknown.

    >>> verdict("training.3", 1.5)
    'not yet: 1.5 is not the answer; every token counts the same'
    """
    if exercise not in ANSWERS:
        raise ConfigError(
            f"exercise: expected one of {', '.join(ANSWERS)}, got {quoted(exercise)}{nearest(exercise, ANSWERS)}"
        )
    if answer is None:
        return "no answer yet: write it in place of None, and run the cell again"
    right, look, tolerance, is_function = ANSWERS[exercise]
    try:
        found = right(answer) if is_function else _fits(_numbers(answer), _numbers(right(*given)), tolerance)
    except Exception as error:  # the reader's function may raise anything
        return f"not yet: {type(error).__name__}: {error}"
    if found is True:
        return "right"
    return f"not yet: {found or f'{quoted(answer)} is not the answer'}; {look}"


def _numbers(value: Any) -> list[Any]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def _fits(numbers: list[Any], right: list[Any], tolerance: float) -> bool | str:
    """Return True if all numbers are right; otherwise, how many are right, or False for a single number."""
    if len(numbers) != len(right):
        return f"expected {len(right)} numbers, got {len(numbers)}"
    fitting = sum(
        math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9) for one, other in zip(numbers, right, strict=True)
    )
    return fitting == len(right) or (len(right) > 1 and f"{fitting} of {len(right)} numbers are right")
