import json
import subprocess
import sys
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import pytest
from pydantic import TypeAdapter
from sentencepiece import SentencePieceTrainer

from glassformer.errors import CheckpointError, CheckpointVersionError, ConfigError, VocabularyError
from glassformer.text.characters import CharacterTokenizer
from glassformer.text.normalisation import Normalisation
from glassformer.text.tokenizer import (
    TOKENIZER_KINDS,
    KindName,
    SentencePieceTokenizer,
    SubwordTokenizer,
    Tokenizer,
    TokenizerConfig,
    TokenizerKind,
    WordTokenizer,
    load_tokenizers,
    save_tokenizers,
    train_tokenizers,
)
from glassformer.text.vocabulary import Vocabulary

TRAINABLE = [kind for kind, row in TOKENIZER_KINDS.items() if row.trainable]
SOURCE = ["the black cat didn't sleep", "the brown dog slept", "a cat, a dog"]
TARGET = ["le chat noir n'a pas dormi", "le chien marron dormait", "un chat, un chien"]


class Syllables(CharacterTokenizer):
    """A new kind with two files: a vocabulary, and the number of characters per token."""

    kind = "syllables"
    length = 2

    @staticmethod
    def cut(text: str) -> list[str]:
        characters = "".join(CharacterTokenizer.cut(text))
        return [characters[at : at + Syllables.length] for at in range(0, len(characters), Syllables.length)]

    def save(self, stem: Path) -> None:
        super().save(stem)
        stem.with_suffix(".length").write_text(str(self.length))

    @classmethod
    def load(cls, stem: Path, normalisation: Normalisation | None = None) -> "Syllables":
        assert stem.with_suffix(".length").read_text() == "2"
        return super().load(stem, normalisation)

    def to_dict(self) -> dict:
        return {**super().to_dict(), "length": self.length}


def joint(kind) -> Tokenizer:
    return train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind=kind, vocab_size=200))[0]


@pytest.mark.parametrize("kind", TRAINABLE)
def test_every_kind_is_a_tokenizer(kind) -> None:
    tokenizer = joint(kind)
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.kind, tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id) == (
        kind,
        0,
        1,
        2,
        3,
    )
    assert tokenizer.tokens([0, 1, 2, 3]) == ["<pad>", "<bos>", "<eos>", "<unk>"]


@pytest.mark.parametrize("kind", TRAINABLE)
@pytest.mark.parametrize("text", [*SOURCE, *TARGET, "", "  the\u00a0cat  "])
def test_decoding_restores_the_text(kind, text: str) -> None:
    tokenizer = joint(kind)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == " ".join(text.split())
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == " ".join(text.split())
    assert tokenizer.tokens(ids) == tokenizer.split(text)


@pytest.mark.parametrize("kind", TRAINABLE)
def test_many_texts_are_encoded_like_single_texts(kind) -> None:
    tokenizer = joint(kind)
    texts = [*SOURCE, "", " ", "  the\u00a0cat  ", *TARGET, "Щ", "a▁cat"] * 40
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_all([]) == []


@pytest.mark.parametrize("kind", TRAINABLE)
def test_unknown_tokens_are_decoded_as_unk(kind) -> None:
    tokenizer = joint(kind)
    assert tokenizer.unk_id in tokenizer.encode("Щ")
    assert tokenizer.decode(tokenizer.encode("Щ")) == "<unk>"
    assert "Щ" in "".join(tokenizer.split("Щ"))


@pytest.mark.parametrize("kind", TRAINABLE)
def test_an_id_that_is_not_in_the_vocabulary_is_an_error(kind) -> None:
    with pytest.raises(VocabularyError, match="token id 100000"):
        joint(kind).decode([4, 100_000])


@pytest.mark.parametrize("kind", TRAINABLE)
def test_a_joint_tokenizer_is_one_object_before_and_after_saving(tmp_path: Path, kind) -> None:
    source, target = train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind=kind, vocab_size=150))
    save_tokenizers(tmp_path / "tokenizer", source, target)
    loaded_source, loaded_target = load_tokenizers(tmp_path / "tokenizer")
    assert source is target
    assert loaded_source is loaded_target
    assert loaded_source.kind == kind
    assert [loaded_source.encode(line) for line in SOURCE + TARGET] == [source.encode(line) for line in SOURCE + TARGET]


@pytest.mark.parametrize("kind", TRAINABLE)
def test_kinds_with_subwords_can_be_resampled(kind) -> None:
    assert isinstance(joint(kind), SubwordTokenizer) == TOKENIZER_KINDS[kind].subwords


def test_the_names_of_the_kinds_match_the_table() -> None:
    assert get_args(KindName) == tuple(TOKENIZER_KINDS)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("both", [True, False])
def test_a_class_and_a_row_make_a_new_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, both: bool) -> None:
    row = TokenizerKind(train=lambda lines, config: Syllables.train(lines, config.vocab_size), load=Syllables.load)
    monkeypatch.setitem(TOKENIZER_KINDS, "syllables", row)
    kind = next(field for field in fields(TokenizerConfig) if field.name == "kind")
    # besides the two lines of a new kind, its name must be in KindName
    monkeypatch.setattr(kind, "type", Literal["syllables"])
    source, target = train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind="syllables", joint=both))
    save_tokenizers(tmp_path, source, target)
    again, _ = load_tokenizers(tmp_path)
    assert again.tokens(again.encode("the cat")) == ["th", "e▁", "ca", "t"]
    assert again.decode(again.encode("the cat")) == "the cat"
    assert (
        again.to_dict() == source.to_dict() == {"kind": "syllables", "tokens": [*source.vocabulary.tokens], "length": 2}
    )
    assert len(list(tmp_path.iterdir())) == (3 if both else 5)
    with pytest.raises(ConfigError, match="expected its default with the kinds syllables and syllables, got True"):
        TokenizerConfig(kind="syllables", byte_fallback=True)


def test_two_tokenizers_can_be_of_different_kinds(tmp_path: Path) -> None:
    config = TokenizerConfig(joint=False, kind="characters", target_kind="words")
    source, target = train_tokenizers(["cat"], ["K AE1 T"], config)
    save_tokenizers(tmp_path, source, target)
    loaded_source, loaded_target = load_tokenizers(tmp_path)
    assert (loaded_source.kind, loaded_target.kind) == ("characters", "words")
    assert loaded_source.split("cat") == ["c", "a", "t"]
    assert loaded_target.decode(loaded_target.encode("K AE1 T")) == "K AE1 T"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source.json", "target.json", "tokenizer.json"]


@pytest.mark.parametrize("kind", TRAINABLE)
def test_two_tokenizers_of_one_kind_stay_separate(tmp_path: Path, kind) -> None:
    source, target = train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind=kind, vocab_size=100, joint=False))
    save_tokenizers(tmp_path, source, target)
    loaded_source, loaded_target = load_tokenizers(tmp_path)
    assert loaded_source.tokens(range(len(loaded_source))) == source.tokens(range(len(source)))
    assert loaded_target.tokens(range(len(loaded_target))) == target.tokens(range(len(target)))
    assert loaded_source.encode("le chien") != loaded_target.encode("le chien")


def test_the_index_has_kind_and_version(tmp_path: Path) -> None:
    save_tokenizers(tmp_path, *train_tokenizers(SOURCE, TARGET, TokenizerConfig(vocab_size=150)))
    index = json.loads((tmp_path / "tokenizer.json").read_text())
    assert index == {"format_version": 1, "joint": True, "source": "bpe", "target": "bpe", "normalisation": "plain"}


def older_tokenizer(kind, lines: list[str]) -> Tokenizer:
    """Return a tokenizer as older versions trained it: only the white space of the lines was normalised."""
    match kind:
        case "words" | "characters":
            row = {"words": WordTokenizer, "characters": CharacterTokenizer}[kind]
            return row(Vocabulary.build(map(row.cut, lines)))
        case _:
            model = BytesIO()
            ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
            settings = {"vocab_size": 200, "hard_vocab_limit": False, "normalization_rule_name": "identity"}
            SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=model, model_type=kind, minloglevel=2, **ids, **settings
            )
            return SentencePieceTokenizer(kind, model.getvalue())


def without_the_name(folder: Path) -> None:
    """Make a folder of tokenizers what an older version wrote."""
    index = json.loads((folder / "tokenizer.json").read_text())
    del index["normalisation"]
    (folder / "tokenizer.json").write_text(json.dumps(index))


@pytest.mark.parametrize("kind", TRAINABLE)
@pytest.mark.parametrize(
    ("line", "normalisation"),
    [("une année d'été", "plain"), ("une anne\u0301e d'e\u0301te\u0301", "spaces"), ("l'an\u00adnée", "spaces")],
)
def test_an_older_run_reads_texts_as_it_was_trained(
    tmp_path: Path, kind, line: str, normalisation: Normalisation
) -> None:
    older = older_tokenizer(kind, [*SOURCE, line])
    save_tokenizers(tmp_path, older, older)
    without_the_name(tmp_path)
    for _ in range(2):
        tokenizer, _ = load_tokenizers(tmp_path)
        assert tokenizer.normalisation == normalisation
        assert tokenizer.decode(tokenizer.encode(line)) == line
        save_tokenizers(tmp_path, tokenizer, tokenizer)
        assert json.loads((tmp_path / "tokenizer.json").read_text())["normalisation"] == normalisation


@pytest.mark.parametrize("kind", TRAINABLE)
def test_a_new_tokenizer_is_plain_whatever_its_tokens(tmp_path: Path, kind) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=100, joint=False)
    source, target = train_tokenizers(["แมวสีดำนอน", "ที่นี่"], ["l'anne\u0301e"], config)
    save_tokenizers(tmp_path, source, target)
    source, target = load_tokenizers(tmp_path)
    assert (source.normalisation, target.normalisation) == ("plain", "plain")
    assert target.decode(target.encode("l'an\u00adne\u0301e")) == "l'année"
    without_the_name(tmp_path)
    source, target = load_tokenizers(tmp_path)
    assert (source.normalisation, target.normalisation) == ("spaces", "plain")
    save_tokenizers(tmp_path, source, target)
    assert "normalisation" not in json.loads((tmp_path / "tokenizer.json").read_text())


@pytest.mark.parametrize("kind", TRAINABLE)
def test_the_page_is_told_only_of_older_normalisations(kind) -> None:
    assert "normalisation" not in joint(kind).to_dict()


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ({"format_version": 2}, CheckpointVersionError),
        ({"format_version": 1}, CheckpointError),
        ({"format_version": 1, "joint": True, "source": "bpe"}, CheckpointError),
        ({"format_version": 1, "joint": True, "source": "word", "target": "word"}, CheckpointError),
        ({"format_version": 1, "joint": False, "source": "words"}, CheckpointError),
        (
            {"format_version": 1, "joint": True, "source": "words", "target": "words", "normalisation": "NFD"},
            CheckpointError,
        ),
    ],
)
def test_a_damaged_folder_is_an_error(tmp_path: Path, index: dict, error: type[Exception]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(index))
    with pytest.raises(error, match=r"tokenizer\.json|joint"):
        load_tokenizers(tmp_path)


def test_a_folder_without_tokenizers_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_tokenizers(tmp_path)


@pytest.mark.parametrize("kind", TRAINABLE)
def test_lines_without_text_are_an_error(kind) -> None:
    with pytest.raises(VocabularyError, match="text"):
        train_tokenizers([""], [" "], TokenizerConfig(kind=kind))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_kind": "words"}, r"tokenizer\.target_kind.*joint = false"),
        ({"vocab_size": 4}, r"tokenizer\.vocab_size.*got 4"),
        ({"character_coverage": 0.97}, r"tokenizer\.character_coverage: expected a number from 0\.98 to 1, got 0\.97"),
        ({"symbols": ("<0x4A>",), "byte_fallback": True}, r"tokenizer\.symbols: .*none of them special, got '<0x4A>'"),
        ({"character_coverage": 1.1}, r"tokenizer\.character_coverage"),
        ({"kind": "words", "byte_fallback": True}, r"tokenizer\.byte_fallback: expected its default"),
        ({"kind": "characters", "character_coverage": 0.99}, r"tokenizer\.character_coverage: expected its default"),
        ({"kind": "words", "symbols": ("<de>",)}, r"tokenizer\.symbols: expected its default"),
        ({"kind": "characters", "sampling": 0.1}, r"tokenizer\.sampling: expected its default"),
        (
            {"joint": False, "kind": "words", "target_kind": "characters", "sampling": 0.1},
            r"sampling: expected its default",
        ),
        ({"sampling": 1.0}, r"tokenizer\.sampling.*got 1\.0"),
        ({"sampling": -0.1}, r"tokenizer\.sampling.*got -0\.1"),
        ({"symbols": ("<de>", " ")}, r"tokenizer\.symbols.*got ' '"),
        ({"symbols": ("",)}, r"tokenizer\.symbols.*got ''"),
        ({"symbols": ("to German",)}, r"tokenizer\.symbols.*got 'to German'"),
        ({"symbols": ("<de>", "<fr>", "<de>")}, r"tokenizer\.symbols.*got '<de>'"),
        ({"symbols": ("<eos>",)}, r"tokenizer\.symbols.*got '<eos>'"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_the_field(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TokenizerConfig(**settings)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("field", ["kind", "target_kind"])
def test_an_unknown_kind_is_an_error_that_names_the_nearest(field: str) -> None:
    with pytest.raises(ConfigError, match=rf"tokenizer\.{field}: .*'word' \(did you mean 'words'\?\)"):
        TokenizerConfig(**{"joint": False, field: "word"})


def test_pydantic_can_build_and_check_the_configuration() -> None:
    adapter = TypeAdapter(TokenizerConfig)
    assert adapter.validate_python({"kind": "words", "vocab_size": 50}) == TokenizerConfig(kind="words", vocab_size=50)
    with pytest.raises(ValueError, match=r"tokenizer\.vocab_size"):
        adapter.validate_python({"vocab_size": 3})


def test_settings_for_subwords_are_allowed_if_one_side_has_subwords() -> None:
    config = TokenizerConfig(joint=False, kind="characters", target_kind="bpe", byte_fallback=True)
    assert config.kinds == ("characters", "bpe")


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("glassformer.text.tokenizer", {"torch", "numpy", "sentencepiece", "jaxtyping"}),
        (
            "glassformer.corpus.readers, glassformer.evaluation.metrics",
            {"torch", "sacrebleu", "rapidfuzz", "jaxtyping"},
        ),
    ],
)
def test_importing_the_package_loads_nothing_heavy(modules: str, heavy: set[str]) -> None:
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("set()\n", "")
