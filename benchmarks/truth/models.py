"""Two small models of the demo's task: a pre-norm model of pieces of words, and an imported `torch.nn.Transformer`."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.command import make
from glassformer.corpus.tasks import english_french
from glassformer.model.positions import sinusoids
from glassformer.text.vocabulary import SPECIALS
from glassformer.text.words import split_words

__all__ = ["imported", "pieces"]

PAD, BOS, EOS, UNK = range(4)
WIDTH, HEADS, LAYERS, LONGEST = 64, 4, 2, 80
UPDATES, BATCH = 600, 64


def pieces(folder: Path) -> Path:
    """Return a pre-norm run with pieces of words; train it in the folder if it is missing."""
    run = folder / "pieces"
    sizes = {"d_model": WIDTH, "heads": HEADS, "d_ff": 2 * WIDTH, "norm": "pre"}
    steps = dict.fromkeys(("steps", "validate_every", "checkpoint_every"), 400)
    settings = {"run.directory": run, "tokenizer.kind": "unigram", "tokenizer.vocab_size": 300}
    settings |= {f"model.{name}": value for name, value in sizes.items()}
    settings |= {f"training.{name}": value for name, value in {**steps, "snapshots": 3}.items()}
    folder.mkdir(exist_ok=True)
    make({"pieces": ["train", "demo", *(f"--set={name}={value}" for name, value in settings.items())]}, folder)
    return run


def imported(folder: Path) -> Path:
    """Return the run of an imported state dict; train the model in the folder if it is missing."""
    run, weights = folder / "imported", folder / "transformer.pt"
    files = [folder / f"{side}.txt" for side in ("source", "target")]
    folder.mkdir(exist_ok=True)
    if not weights.exists():
        texts = english_french(1, train=20_000, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=0).splits["train"]
        pairs = [(split_words(one.source), split_words(one.target)) for one in texts]
        vocabularies = [vocabulary([pair[side] for pair in pairs]) for side in (0, 1)]
        for path, words in zip(files, vocabularies, strict=True):
            path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        torch.save(trained(pairs, vocabularies).state_dict(), weights)
    names = [f"--{side}-vocabulary={path}" for side, path in zip(("source", "target"), files, strict=True)]
    make({"imported": ["import", str(weights), str(run), f"--heads={HEADS}", *names]}, folder)
    return run


class Table(nn.Module):
    """A parameter of a submodule, named as in PyTorch's tutorial."""

    def __init__(self, name: str, part: nn.Module | Tensor) -> None:
        super().__init__()
        if isinstance(part, Tensor):
            self.register_buffer(name, part)
        else:
            self.add_module(name, part)


class TutorialTransformer(nn.Module):
    """`nn.Transformer` between embeddings and a generator, with the names of PyTorch's tutorial on translation."""

    def __init__(self, source: int, target: int) -> None:
        super().__init__()
        self.transformer = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(WIDTH, target)
        self.src_tok_emb = Table("embedding", nn.Embedding(source, WIDTH))
        self.tgt_tok_emb = Table("embedding", nn.Embedding(target, WIDTH))
        self.positional_encoding = Table("pos_embedding", sinusoids(LONGEST, WIDTH)[:, None])
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embedded(self, table: nn.Module, ids: Tensor) -> Tensor:
        positions = self.positional_encoding.get_buffer("pos_embedding")[: ids.shape[1], 0]
        found: Tensor = table.get_submodule("embedding")(ids) * math.sqrt(WIDTH) + positions
        return found

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = self.transformer(
            self.embedded(self.src_tok_emb, source),
            self.embedded(self.tgt_tok_emb, target),
            tgt_mask=torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        logits: Tensor = self.generator(hidden)
        return logits


def vocabulary(texts: Sequence[Sequence[str]]) -> list[str]:
    """Return the special tokens, and the words that occur more than once."""
    counts = Counter(word for text in texts for word in text)
    return [*SPECIALS, *(word for word, count in counts.most_common() if count > 1)]


def trained(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], vocabularies: Sequence[Sequence[str]]
) -> TutorialTransformer:
    """Return a model after some updates; training ends in less than two minutes on two cores."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = TutorialTransformer(*map(len, vocabularies))
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
        for source, target in batches(pairs, vocabularies):
            logits = model(source, target[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model.eval()


def batches(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], vocabularies: Sequence[Sequence[str]]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches of all updates: sources with an end, targets with a beginning and an end."""
    chance = random.Random(1)
    ids = [{word: id for id, word in enumerate(words)} for words in vocabularies]
    for _ in range(UPDATES):
        chosen = chance.sample(pairs, BATCH)
        sides = [
            [[*([BOS] if side else []), *(ids[side].get(word, UNK) for word in pair[side]), EOS] for pair in chosen]
            for side in (0, 1)
        ]
        source, target = (
            nn.utils.rnn.pad_sequence([torch.tensor(one) for one in rows], batch_first=True, padding_value=PAD)
            for rows in sides
        )
        yield source, target
