"""A toy model for searches, with given probabilities, which checks how it is called."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest
import torch

Rule = Callable[[int, tuple[int, ...]], Sequence[float]]
"""(sentence, tokens after <bos>) → log probability of each next token."""


@dataclass(frozen=True)
class State:
    histories: list[tuple[int, ...]]  # for each row: all tokens fed to it
    owners: list[int]  # for each row: the index of its sentence at the start
    sentences: list[int]  # the remaining sentences


@dataclass
class ToyStep:
    """The `Step` of a rule: the next token depends on the sentence and on all tokens fed to its row."""

    rule: Rule
    sentences: list[int]
    vocab_size: int
    dtype: torch.dtype = torch.float64
    seen: list[int] = field(default_factory=list)  # number of rows of each `advance`

    pad_id, bos_id, eos_id, device = 0, 1, 2, torch.device("cpu")

    def start(self):
        return State([()] * len(self.sentences), list(self.sentences), list(self.sentences))

    def advance(self, tokens, state):
        assert len(tokens) == len(state.histories)
        histories = [(*history, token) for history, token in zip(state.histories, tokens.tolist(), strict=True)]
        assert all(history[0] == self.bos_id for history in histories)
        self.seen.append(len(histories))
        rows = [self.rule(owner, history[1:]) for owner, history in zip(state.owners, histories, strict=True)]
        return torch.tensor(rows, dtype=self.dtype), State(histories, state.owners, state.sentences)

    def select(self, state, rows, sentences):
        kept = [state.sentences[index] for index in sentences.tolist()]
        assert kept == sorted(set(kept)), "sentences may only be dropped"
        owners = [state.owners[row] for row in rows.tolist()]
        per_sentence = len(owners) // len(kept)
        assert owners == [sentence for sentence in kept for _ in range(per_sentence)], "rows must be sentence-major"
        return State([state.histories[row] for row in rows.tolist()], owners, kept)

    def alone(self, sentence):
        """Return the same model with one of its sentences."""
        return ToyStep(self.rule, [self.sentences[sentence]], self.vocab_size, self.dtype)

    def rescore(self, sentence, tokens):
        """Return the log probability of each token when all tokens are forced."""
        step = self.alone(sentence)
        state, log_probs = step.start(), []
        for fed, token in itertools.pairwise((step.bos_id, *tokens)):
            row, state = step.advance(torch.tensor([fed]), state)
            log_probs.append(row[0, token].item())
        return tuple(log_probs)

    def outputs(self, sentence, max_length, alpha):
        """Return all possible outputs up to a number of tokens with their scores, best first (exhaustive search)."""
        words = [token for token in range(self.vocab_size) if token not in (self.pad_id, self.bos_id, self.eos_id)]
        found = []
        for length in range(max_length):
            for chosen in itertools.product(words, repeat=length):
                tokens = (*chosen, self.eos_id)
                score = sum(self.rescore(sentence, tokens)) / ((5 + len(tokens)) / 6) ** alpha
                found.append((score, tokens))
        return sorted((each for each in found if each[0] > -math.inf), reverse=True)


@pytest.fixture(scope="session")
def written_toy():
    """Return a function that makes a toy of one sentence from probabilities {words so far: {token: probability}}."""

    def make(table, *, vocab_size=5, copies=1):
        def rule(sentence, history):
            known = table.get(history, {2: 1.0})
            return [math.log(known[token]) if known.get(token) else -math.inf for token in range(vocab_size)]

        return ToyStep(rule, [0] * copies if copies == 1 else list(range(copies)), vocab_size)

    return make


@pytest.fixture(scope="session")
def random_toy():
    """Return a function that makes a toy with random probabilities; with `holes`, some are 0, but never for `<eos>`."""

    def make(seed, *, sentences=1, vocab_size=5, holes=0.0, dtype=torch.float64):
        @cache
        def rule(sentence, history):
            chance = random.Random(repr((seed, sentence, history)))
            logits = [chance.gauss(0, 2) for _ in range(vocab_size)]
            logits = [-math.inf if token > 2 and chance.random() < holes else x for token, x in enumerate(logits)]
            total = math.log(sum(math.exp(x) for x in logits))
            return tuple(x - total for x in logits)

        return ToyStep(rule, list(range(sentences)), vocab_size, dtype)

    return make


@pytest.fixture
def make_task(make_model):
    """Return a function that makes a random model, and sources of these lengths, as lists of ids."""

    def make(seed, lengths=(5,), **config):
        torch.manual_seed(seed)
        model = make_model(**{"target_vocab_size": 7, "tie_output": False, **config})
        model.output.weight.data *= 3  # makes the probabilities as unequal as those of a trained model
        return model, [[*torch.randint(4, 19, (length - 1,)).tolist(), 2] for length in lengths]

    return make
