"""Attention in plain Python numbers: slow, but easy to check."""

import math

Matrix = list[list[float]]


def naive_attention(
    query: Matrix, key: Matrix, value: Matrix, mask: list[list[bool]] | None = None
) -> tuple[Matrix, Matrix]:
    """Return the output softmax(q kᵀ / √d_k) v and its weights; a weight is 0 if the mask is False."""
    output, weights = [], []
    for i in range(len(query)):
        allowed = [j for j in range(len(key)) if mask is None or mask[i][j]]
        weight_row = [0.0] * len(key)
        if allowed:
            scores = {j: dot(query[i], key[j]) / math.sqrt(len(query[i])) for j in allowed}
            highest = max(scores.values())
            total = sum(math.exp(score - highest) for score in scores.values())
            for j in allowed:
                weight_row[j] = math.exp(scores[j] - highest) / total
        weights.append(weight_row)
        output.append([sum(weight_row[j] * value[j][c] for j in range(len(key))) for c in range(len(value[0]))])
    return output, weights


def dot(a: list[float], b: list[float]) -> float:
    """Return the dot product of two vectors."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def project(x: Matrix, weight: Matrix, bias: list[float]) -> Matrix:
    """Return x Wᵀ + b, with one row of the weight for each output, as torch.nn.Linear stores it."""
    return [[dot(row, column) + b for column, b in zip(weight, bias, strict=True)] for row in x]
