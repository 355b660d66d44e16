"""Turn texts into the ids that models read, and requests into jobs for an engine."""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Ids, Job, Search, Sources
from glassformer.decoding.hypothesis import max_length
from glassformer.errors import ConfigError, DecodingError, quoted
from glassformer.text.normalisation import SPACE_MARK, is_normal, normalise
from glassformer.text.tokenizer import Tokenizer
from glassformer.translating.request import Request
from glassformer.translating.translation import MOST_CHARACTERS, Status

if TYPE_CHECKING:
    from glassformer.corpus.shortlist import Shortlist

__all__ = ["Reader", "status_of", "with_eos"]


class Reader:
    """Tokenizes texts for one model, or for an ensemble, whose models may have different source tokenizers."""

    def __init__(self, bundles: Sequence[Bundle], longest: int) -> None:
        self.bundles = bundles
        self.bundle = bundles[0]
        self.longest = longest
        """Maximum number of positions of a source or an output."""

    def read(self, asked: Request) -> Request:
        """Return a request with its fields `statuses` and `sources` filled."""
        statuses, sources = self.sources(asked.texts, asked.search.settings.max_source)
        return asked._replace(statuses=statuses, sources=sources)

    def sources(self, texts: Sequence[str], longest: int) -> tuple[list[Status], dict[int, Sources]]:
        """Return the status of each text, and the ids of each translatable text by the index of the text."""
        statuses = [status_of(text) for text in texts]
        places = [place for place, status in enumerate(statuses) if status == "ok"]
        readable = [texts[place] for place in places]
        longest = min(longest, self.longest)
        each = [with_eos(bundle.source_tokenizer, readable) for bundle in self.bundles]
        read: dict[int, Sources] = {}
        for place, sources in zip(places, zip(*each, strict=True), strict=True):
            if max(map(len, sources)) <= longest:
                read[place] = sources
            else:
                statuses[place] = "too_long"
        return statuses, read

    def targets(self, texts: Sequence[str], longest: int) -> list[tuple[Status, Ids]]:
        """Return the status and the ids of each target to score; the ids are empty if the target is not "ok"."""
        statuses = [status_of(text) for text in texts]
        writable = [text for text, status in zip(texts, statuses, strict=True) if status == "ok"]
        encoded = iter(with_eos(self.bundle.target_tokenizer, writable))
        longest = min(longest, self.longest)
        targets: list[tuple[Status, Ids]] = []
        for status in statuses:
            ids = next(encoded) if status == "ok" else ()
            targets.append(("too_long" if len(ids) > longest else status, ids))
        return targets

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a text outside the source vocabulary, which the model reads as `<unk>`."""
        return _unknown(self.bundle.source_tokenizer, text)

    def jobs(self, asked: Request) -> dict[Job, list[int]]:
        """Return the distinct jobs of a tokenized request, each with the indices of its texts."""
        # cached, because all texts may have the same long prefix
        search, beginning = asked.search, cache(self.beginning)
        jobs: dict[Job, list[int]] = {}
        for place, sources in asked.sources.items():
            seed = search.settings.seed * 1_000_003 + asked.seeds[place] if search.sample else 0
            prefix = asked.prefixes[place]
            begin = beginning(prefix) if prefix else ()
            jobs.setdefault(self.job(sources, begin, search, seed), []).append(place)
        return jobs

    def job(self, sources: Sources, begin: Ids, search: Search, seed: int = 0) -> Job:
        """Return the job that translates a text with these source ids; its output begins with the ids in `begin`."""
        extra = search.settings.extra_length
        lengths = (
            max_length(bundle.model_config, len(one), extra) for bundle, one in zip(self.bundles, sources, strict=True)
        )
        tokenizer, count = self.bundle.target_tokenizer, search.settings.shortlist
        job = Job(sources, begin, min(self.longest, *lengths), seed)
        if not count or begin:
            return job
        return job._replace(candidates=self._shortlist.of(sources[0], count, (tokenizer.eos_id, tokenizer.unk_id)))

    def beginning(self, prefix: str) -> Ids:
        """Return the ids of a prefix, with which an output begins, normalised, character by character.

        Raises:
            ConfigError: the model writes from right to left.
            DecodingError: the target vocabulary cannot spell the prefix.
        """
        tokenizer = self.bundle.target_tokenizer
        if self.bundle.configuration.data.reverse_target:
            raise ConfigError(
                "this model writes from right to left (data.reverse_target = true), so its outputs cannot "
                "begin with a given text: leave out the prefix, or use a run that writes from left to right"
            )
        ids = tuple(tokenizer.encode(prefix))
        if tokenizer.unk_id in ids:
            unknown = [token.removeprefix(SPACE_MARK) for token in _unknown(tokenizer, prefix)]
            raise DecodingError(
                f"the prefix {quoted(prefix)} cannot begin an output of this model: its target vocabulary lacks "
                f"{', '.join(map(quoted, unknown[:3]))}; leave the prefix out, or shorten it"
            )
        if normalise(written := tokenizer.decode(ids), "plain") != normalise(prefix, "plain"):
            raise DecodingError(
                f"the prefix {quoted(prefix)} cannot begin an output of this model, which spells it as "
                f"{quoted(written)}; give the prefix in this form"
            )
        return ids

    @cached_property
    def _shortlist(self) -> "Shortlist":
        """The shortlist of the first model, which gives the candidate tokens for each source token."""
        return self.bundle.shortlist()


def _unknown(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """Return the tokens of a text that are not in the vocabulary."""
    tokens, ids = tokenizer.split(text), tokenizer.encode(text)
    of_tokens = ids[len(ids) - len(tokens) :]  # drops the `<bos>` that some tokenizers put first
    return tuple(token for token, id in zip(tokens, of_tokens, strict=True) if id == tokenizer.unk_id)


def with_eos(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    """Return the ids of texts, each with `<eos>` at its end."""
    return [(*ids, tokenizer.eos_id) for ids in tokenizer.encode_all(texts)]


def status_of(text: str) -> Status:
    """Return "ok" if a text can be tokenized, and otherwise the reason: "blank", "undecodable" or "too_long"."""
    if len(text) > MOST_CHARACTERS:
        return "too_long"
    if is_normal(text):
        return "ok" if text else "blank"
    if not normalise(text, "plain"):
        return "blank"
    return "undecodable" if any("\ud800" <= character <= "\udfff" for character in text) else "ok"
