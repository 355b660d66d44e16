"""Configuration files and built-in recipes: correct files load as intended, and mistakes are named."""

import tomllib
from contextlib import suppress
from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import CheckpointVersionError, ConfigError
from glassformer.model.config import PRESETS, ModelConfig
from glassformer.recipes.configuration import (
    IMPORT_FACTS,
    TOKENIZER_FACTS,
    Configuration,
    DataConfig,
    RunConfig,
    TrainingConfig,
)
from glassformer.recipes.files import recipes
from glassformer.recipes.toml import from_dict, load, load_stored, model_config, set_values, to_toml
from glassformer.text.tokenizer import TokenizerConfig

TASK = {"data": {"task": "copy"}}


# Correct configurations


OF_TASKS = ("copy", "demo")
OF_YOURS = dict.fromkeys(("adapt", "translation"), ("data.source=mine.tsv",))


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_loads(name, tmp_path):
    folder = None if name in OF_TASKS else tmp_path
    configuration = load(name, OF_YOURS.get(name, ()), data=folder)
    assert configuration.run.directory == f"runs/{name}"
    assert configuration.data.directory == str(folder or "")
    assert model_config(configuration, 101, 101 if configuration.tokenizer.joint else 103).encoder_layers > 0


def test_the_recipe_for_your_corpus_asks_for_it():
    with pytest.raises(ConfigError, match=r"got task = '' and source = ''; name a task or files, such as --set"):
        load("translation")


def test_missing_settings_have_their_defaults():
    configuration = from_dict(TASK)
    assert configuration == Configuration(data=DataConfig(task="copy"))
    training = configuration.training
    assert (training.epsilon, training.warmup) == (1e-9, 4000)
    assert (training.label_smoothing, training.schedule, training.optimiser) == (0.1, "paper", "adam")
    assert (configuration.decoding.beam_size, configuration.decoding.length_penalty) == (4, 0.6)
    assert model_config(configuration, 37_000, 37_000) == ModelConfig.preset("base", vocab_size=37_000)


def test_the_folder_of_a_run_is_named_after_its_configuration(write_config):
    assert load(write_config()).run.directory == "runs/mine"
    assert load(write_config(), ["run.directory=elsewhere"]).run.directory == "elsewhere"


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("training.steps=60", 60),
        ("training.minutes=7", 7.0),
        ("training.learning_rate=1e-3", 0.001),
        ("training.schedule=cosine", "cosine"),
        ('training.schedule = "cosine"', "cosine"),
        ("data.source=some/file=x.txt", "some/file=x.txt"),
        ("data.source=", ""),
        ("tokenizer.joint=false", False),
    ],
)
def test_an_override_is_read_as_toml_or_as_text(override, value):
    values = {}
    set_values(values, override)
    [[found]] = [section.values() for section in values.values()]
    assert found == value
    assert type(found) is type(value) or isinstance(value, float)


def test_overrides_replace_the_files_values_and_the_last_wins(write_config):
    configuration = load(write_config(), ["training.steps=5", "training.steps=7", "model.d_ff=17"], data="corpus")
    assert configuration.training.steps == 7
    assert model_config(configuration, 11, 11) == ModelConfig.preset("tiny", vocab_size=11, d_ff=17)
    assert (configuration.data.source, configuration.data.directory) == ("a.txt", "corpus")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_written_and_read_back(preset):
    configuration = from_dict({**TASK, "model": {"preset": preset}})
    model = model_config(configuration, 101, 101)
    again = from_dict(tomllib.loads(to_toml(configuration, model)))
    assert model_config(again, 101, 101) == model == ModelConfig.preset(preset, vocab_size=101)
    assert again.training == configuration.training


@pytest.mark.parametrize("name", recipes())
def test_a_written_configuration_is_complete_and_reads_back_equal(name, write_config):
    overrides = ["training.minutes=0.5", "run.seed=7", *OF_YOURS.get(name, ())]
    configuration = load(name, overrides, data=None if name in OF_TASKS else 'some "folder" of München\\')
    joint = configuration.tokenizer.joint
    model = model_config(configuration, 101, 101 if joint else 103)
    text = to_toml(configuration, model)
    again = load(write_config(text))
    assert again.data == configuration.data
    assert all(
        getattr(again, one.name) == getattr(configuration, one.name) for one in fields(again) if one.name != "model"
    )
    assert model_config(again, 101, 101 if joint else 103) == model
    assert to_toml(again, model) == text
    assert set(tomllib.loads(text)["training"]) == {field.name for field in fields(TrainingConfig)}


@pytest.mark.parametrize(("preset", "smoothing"), [("D-smoothing0.0", 0.0), ("D-smoothing0.2", 0.2), ("base", 0.1)])
def test_the_presets_of_label_smoothing_set_it_unless_it_is_given(preset, smoothing):
    model = {"preset": f"table3-{preset}"}
    assert from_dict({**TASK, "model": model}).training.label_smoothing == smoothing
    assert from_dict({**TASK, "model": model, "training": {"steps": 7}}).training.label_smoothing == smoothing
    given = {"label_smoothing": 0.3}
    assert from_dict({**TASK, "model": model, "training": given}).training.label_smoothing == 0.3


def test_numbers_in_quotes_are_numbers():
    configuration = from_dict({**TASK, "training": {"steps": "60"}, "model": {"d_model": "64", "dropout": "0.3"}})
    model = model_config(configuration, 11, 11)
    assert (configuration.training.steps, model.d_model, model.dropout) == (60, 64, 0.3)


lines = st.text("aé\u2028\"\\'\n\x1f 中.*/{}", min_size=1)
files = st.one_of(lines, st.lists(lines, min_size=1, max_size=3).map(tuple))


@given(
    source=files,
    target=files,
    valid=st.none() | st.tuples(files, files),
    symbols=st.lists(lines.filter(lambda line: line.split() == [line]), max_size=3, unique=True).map(tuple),
    minutes=st.floats(0, 1e6),
    rate=st.floats(0, 10, exclude_max=True),
    seed=st.integers(0, 2**63 - 1),
    patience=st.integers(0, 10**6),
)
def test_any_written_configuration_reads_back_equal(
    write_config, source, target, valid, symbols, minutes, rate, seed, patience
):
    configuration = Configuration(
        data=DataConfig(
            source=source,
            target=target,
            valid_source=valid[0] if valid else "",
            valid_target=valid[1] if valid else "",
        ),
        run=RunConfig(directory="some/where", seed=seed),
        tokenizer=TokenizerConfig(symbols=symbols),
        training=TrainingConfig(minutes=minutes, learning_rate=rate, patience=patience),
    )
    model = model_config(configuration, 101, 101)
    again = load(write_config(to_toml(configuration, model)))
    assert replace(again, model={}) == configuration
    assert model_config(again, 101, 101) == model


@pytest.mark.parametrize("name", [field.name for field in fields(Configuration) if field.name != "model"])
def test_every_changed_field_reads_back_changed(name):
    """The writer forgets no field, and every type is restored."""
    before = from_dict({"data": {"source": "a.tsv"}, "run": {"directory": "x"}})
    for changed in changes(getattr(before, name)):
        configuration = replace(before, **{name: changed})
        model = model_config(configuration, 11, 11)
        again, again_model = load_stored(to_toml(configuration, model).encode(), 11, 11)
        assert again_model == model
        assert getattr(again, name) == changed != getattr(before, name)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_run_of_an_earlier_version_loads_without_the_fields_that_left(share):
    configuration = from_dict(TASK)
    text = to_toml(configuration, model_config(configuration, 17, 17))
    earlier = text.replace("[tokenizer]\n", f"[tokenizer]\nplaceholders = {share}\n")
    assert load_stored(earlier.encode(), 17, 17) == load_stored(text.encode(), 17, 17)


def test_a_field_that_left_is_unknown_unless_its_value_had_no_effect():
    words = {"kind": "words"}
    assert from_dict({**TASK, "tokenizer": {**words, "placeholders": 0}}) == from_dict({**TASK, "tokenizer": words})
    with pytest.raises(ConfigError, match=r"tokenizer\.placeholders: unknown field"):
        from_dict({**TASK, "tokenizer": {**words, "placeholders": 0.2}})


def changes(section):
    """Yield the section with one field changed, for each field that can be changed separately."""
    others = {str: "x.tsv", int: 3, float: 0.25, tuple: ("<a>", "<b>"), type(None): "words"}
    for field in fields(section):
        old = getattr(section, field.name)
        choices = [choice for choice in get_args(field.type) if isinstance(choice, str) and choice != old]
        choices += [not old] if isinstance(old, bool) else []
        with suppress(ConfigError):
            yield replace(section, **{field.name: choices[0] if choices else others[type(old)]})


@pytest.mark.parametrize("text", ['["a.gz", "b.gz"]', ' [ "a.gz","b.gz" ] '])
def test_several_files_can_be_a_list_on_the_command_line(write_config, text):
    configuration = load(write_config(), [f"data.source={text}", 'data.target=["c.gz"]'])
    assert (configuration.data.source, configuration.data.target) == (("a.gz", "b.gz"), ("c.gz",))


# Mistakes

WRONG = {
    "[trainin]\nsteps = 3": "[trainin]: unknown section (did you mean 'training'?)",
    "training = 3": "training: expected a section with fields, got 3",
    "[training]\nstepz = 3": "training.stepz: unknown field (did you mean 'steps'?)",
    "[training]\nlabel-smoothing = 0.2": "training.label-smoothing: unknown field (did you mean 'label_smoothing'?)",
    '[training]\nsteps = "many"': "training.steps: expected an integer from 0 to 1,000,000,000,000, got 'many'",
    "[training]\nsteps = 1.5": "training.steps: expected an integer from 0 to 1,000,000,000,000, got 1.5",
    "[training]\nsteps = [3]": "training.steps: expected an integer from 0 to 1,000,000,000,000, got [3]",
    "[training]\nsteps = -1": "training.steps: expected an integer from 0 to 1,000,000,000,000, got -1",
    "[training]\nminutes = nan": "training.minutes: expected a number from 0 to 10,000,000, got nan",
    "[training]\nlearning_rate = inf": "training.learning_rate: expected a number from 0 to 10, got inf",
    "[training]\nwarmup = -1": "training.warmup: expected an integer from 0 to 1,000,000,000,000, got -1",
    "[training]\nlabel_smoothing = 1.0": "training.label_smoothing: expected a number from 0 to 0.999, got 1.0",
    "[training]\nema = nan": "training.ema: expected a number from 0 to 0.999999, got nan",
    "[training]\nepsilon = 0": "training.epsilon: expected a number from 1e-30 to 1, got 0.0",
    '[training]\nschedule = "cosin"': "training.schedule: expected one of paper, cosine, constant, got 'cosin' (did yo",
    '[training]\nmetric = "blue"': "training.metric: expected one of bleu, chrf, exact, word_error, wer, per, cer, non",
    "[training]\nweight_decay = 0.1": 'training.weight_decay: expected 0 with optimiser = "adam", got 0.1; choose "ada',
    '[training]\nbest_by = "metric"': 'training.best_by: expected "loss" without training.metric, got "metric"; set th',
    "[training]\naverage = 7": "training.average: expected at most keep_checkpoints = 5, got 7; raise keep_checkpoints",
    "[training]\nsnapshots = -1": "training.snapshots: expected an integer from 0 to 1,000, got -1",
    "[training]\nsnapshot = 3": "training.snapshot: unknown field (did you mean 'snapshots'?)",
    "[decoding]\nbeam_size = 0": "decoding.beam_size: expected an integer from 1 to 1,000, got 0",
    "[decoding]\nlength_penalty = nan": "decoding.length_penalty: expected a number from -100 to 100, got nan",
    "[run]\ndirectory = 3": "run.directory: expected text, got 3",
    "[model]\nd_modl = 3": "model.d_modl: unknown field (did you mean 'd_model'?)",
    '[model]\nd_model = "big"': "model.d_model: expected an integer from 1 to 65,536, got 'big'",
    "[model]\nheads = [3]": "model.heads: expected an integer from 1 to 4,096, got [3]",
    '[model]\ndropout = "some"': "model.dropout: expected a number from 0 to 0.999, got 'some'",
    "[model]\ndropout = 1.5": "model.dropout: expected a number from 0 to 0.999, got 1.5",
    '[model]\nnorm = "middle"': "model.norm: expected one of post, pre, got 'middle'",
    '[model]\ntie_output = "perhaps"': "model.tie_output: expected true or false, got 'perhaps'",
    '[model]\npreset = "tinny"': "model.preset: expected the name of a preset, got 'tinny' (did you mean 'tiny'?); the",
    "[model]\npreset = 3": "model.preset: expected the name of a preset, got '3'; the presets are tiny, small, base, ",
    "[model]\npreset = []": "model.preset: expected the name of a preset, got '[]'; the presets are tiny, small, base",
    "[training]\nsteps = true": "training.steps: expected an integer from 0 to 1,000,000,000,000, got True",
    "[training]\nminutes = true": "training.minutes: expected a number from 0 to 10,000,000, got True",
    "[training]\nlearning_rate = 1e20": "training.learning_rate: expected a number from 0 to 10, got 1e+20",
    "[model]\ndropout = false": "model.dropout: expected a number from 0 to 0.999, got False",
    "[model]\ndecoder_layers = 1_000_000_000_000": "model.decoder_layers: expected an integer from 1 to 1,000, got ",
    "[decoding]\nbeam_size = 65536": "decoding.beam_size: expected an integer from 1 to 1,000, got 65536",
    "[run]\nseed = -5": "run.seed: expected an integer from 0 to 9,223,372,036,854,775,807, got -5",
    '[run]\ndirectory = "a\\u0000b"': "run.directory: expected UTF-8 text without NUL characters, got 'a\\x00b'",
    "format_version = true": "format_version: expected an integer, got True",
    "[model]\nheads = 7": "model.heads: expected a divisor of model.d_model = 512, got 7; or give model.d_k and model.",
    '[model]\npositions = "learned"\nmax_length = 64': "model.max_length: expected at least data.max_length = 256 for ",
    "[embeddings]\nfreeze = true": "embeddings.freeze: expected false without vectors, got true; set embeddings.source",
    '[tokenizer]\nkind = "word"': "tokenizer.kind: expected one of words, characters, bpe, unigram, marian, auto, got",
    "[tokenizer]\nvocab_size = 4": "tokenizer.vocab_size: expected more than the 4 special tokens, got 4",
    "format_version = 'one'": "format_version: expected an integer, got 'one'",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=map(repr, WRONG))
def test_a_mistake_is_named_with_its_field_its_value_and_the_allowed_values(unchecked, write_config, text, message):
    data = '[data]\ntask = "copy"\n'
    path = write_config(text + "\n" + data if "=" in text.splitlines()[0] else data + text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


DATA = {
    "": "data: expected a built-in task or source files, got task = '' and source = ''; name a task or files, such a",
    "[data]": "data: expected a built-in task or source files, got task = '' and source = ''; name a task or files, su",
    '[data]\ntask = "copy"\nsource = "a"\ntarget = "b"': "data: expected a built-in task or source files, got task = '",
    '[data]\ntask = "copy"\nsource_language = "English"': "data.source_language: expected a BCP 47 tag, such as en or",
    '[data]\ntask = "copy"\ntarget_language = "fr_FR"': "data.target_language: expected a BCP 47 tag, such as en or ",
    '[data]\nsource = "a.txt"': "data.target: expected the translation of data.source = 'a.txt', got nothing; name its",
    '[data]\nsource = "a.csv.gz"': "got nothing; .csv is not read: convert the file to .tsv or .jsonl",
    '[data]\nsource = "a.tsv.gz"\ntarget = "b"': "data.target: expected no value with 'a.tsv.gz', which holds source ",
    '[data]\nsource = ["a.txt", "b.txt"]': "data.target: expected the translation of data.source = ('a.txt', 'b.txt'),",
    '[data]\nsource = ["a.tsv", "b.txt.gz"]': "data.source: expected files of one format (plain lines, .tsv or .jsonl)",
    '[data]\nsource = ["a.tsv", "b.jsonl"]': "data.source: expected files of one format (plain lines, .tsv or .jsonl),",
    '[data]\nsource = "a"\ntarget = ["b", "c.tsv"]': "data.target: expected files of one format (plain lines, .tsv or ",
    '[data]\nsource = "a"\ntarget = "b.tsv"': "data.target: expected a file with one side, got 'b.tsv', which holds so",
    "[data]\nsource = 3": "data.source: expected text or a list of texts, got 3",
    '[data]\nsource = ["a", 3]\ntarget = "b"': "data.source: expected text or a list of texts, got ['a', 3]",
    '[data]\nsource = [""]\ntarget = "b"': "data.source: expected names of files, got an empty name in ('',)",
    '[data]\nsource = "a"\ntarget = "b"\nsource_column = 2': "data.source_column: expected no value with plain files,",
    '[data]\nsource = "a.jsonl"\ntarget_column = 2': "data.target_column: expected the name of a field of JSONL files,",
    '[data]\nsource = "a.tsv"\ntarget_column = -1': "data.target_column: expected an integer from 0 to 1,000,000 or te",
    '[data]\nsource = "a.tsv"\ntest_source = "t"': "data.test_target: expected the translation of data.test_source = '",
    '[data]\nsource = "a.tsv"\nvalid_source = "v"': "data.valid_target: expected the translation of data.valid_source ",
    '[data]\nsource = "a.tsv"\nvalid_target = "v"': "data.valid_source: expected the source of data.valid_target = 'v'",
    '[data]\ntask = "copy"\nvalid_source = "v.tsv"': "data.valid_source: expected no value with a built-in task, got ",
    '[data]\ntask = "copy"\ndirectory = "d"': "data.directory: expected no value with a built-in task, got 'd' (--dat",
    '[data]\ntask = "copy"\nmax_length = 1': "data.max_length: expected an integer from 2 to 10,000,000, got 1",
}


@pytest.mark.parametrize(("text", "message"), DATA.items(), ids=map(repr, DATA))
def test_an_incomplete_corpus_is_named(unchecked, write_config, text, message):
    with pytest.raises(ConfigError) as caught:
        load(write_config(text))
    assert message in str(caught.value)


@pytest.mark.parametrize("override", ["training.steps", "steps=3", "=3", ".steps=3", "training.=3", ""])
def test_an_override_has_a_section_a_field_and_a_value(override):
    with pytest.raises(ConfigError, match=r"--set: expected section\.field=value, such as training\.steps=60, got "):
        set_values({}, override)


@pytest.mark.parametrize("options", [{"overrides": ["data.task=copy"]}, {"data": "folder"}])
def test_a_value_that_is_not_a_section_cannot_be_overridden(write_config, options):
    with pytest.raises(ConfigError, match="data: expected a section with fields, got 3"):
        load(write_config("data = 3"), **options)


def test_a_newer_format_is_refused(write_config):
    with pytest.raises(CheckpointVersionError, match="format_version: expected at most 1, got 2; upgrade glassformer"):
        load(write_config("format_version = 2\n[data]\nunheard_of = 3"))


@pytest.mark.parametrize("text", ["[data", "data = ", "[data]\nsource = 'a'\nsource = 'b'", "<html>"])
def test_a_file_that_is_not_toml_is_named(write_config, text):
    with pytest.raises(ConfigError, match=r"mine\.toml cannot be read as TOML: "):
        load(write_config(text))


def test_a_file_that_is_not_text_is_named(write_config):
    path = write_config()
    path.write_bytes(b"\xe9[data]")
    with pytest.raises(ConfigError, match=r"mine\.toml cannot be read as TOML: .*utf-8"):
        load(path)


def test_a_missing_file_and_an_unknown_recipe_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(
        ConfigError, match=r"CONFIG: expected a file or one of adapt, .*, got 'coppy' \(did you mean 'copy'\?\)"
    ):
        load("coppy")


@pytest.mark.parametrize("name", TOKENIZER_FACTS)
def test_what_the_tokenizers_decide_is_no_setting(name):
    """The fields of ModelConfig that no configuration accepts are in no written configuration either."""
    message = rf"model\.{name}: expected no value, got 5; leave it out, because the tokenizers, .*, decide it"
    with pytest.raises(ConfigError, match=message):
        from_dict({**TASK, "model": {name: 5}})
    with pytest.raises(ConfigError, match=message):
        model_config(Configuration(data=DataConfig(task="copy"), model={name: 5}), 17, 17)
    configuration = from_dict(TASK)
    assert name not in tomllib.loads(to_toml(configuration, model_config(configuration, 17, 17)))["model"]


@pytest.mark.parametrize("name", IMPORT_FACTS)
def test_what_an_import_decides_is_no_setting(write_config, name):
    path = write_config(f"[data]\ntask = 'copy'\n[model]\n{name} = true")
    message = rf"model\.{name}: expected no value, got True; leave it out, because an imported model brings it"
    with pytest.raises(ConfigError, match=message):
        load(path)
    with pytest.raises(ConfigError, match=message):
        load("copy", [f"model.{name}=true"])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("different", [True, False])
def test_a_written_configuration_has_what_an_import_decided(norm, different):
    facts = {"final_norm": (norm == "pre") != different, "output_bias": different}
    configuration = from_dict({**TASK, "model": {"norm": norm, **facts}})
    model = model_config(configuration, 17, 17)
    text = to_toml(configuration, model)
    assert (facts.keys() & tomllib.loads(text)["model"].keys()) == (facts.keys() if different else set())
    assert load_stored(text.encode(), 17, 17)[1] == model


def test_loading_does_not_change_the_given_mapping():
    values = {"format_version": 1, **TASK, "model": {"preset": "tiny"}}
    from_dict(values)
    assert values == {"format_version": 1, "data": {"task": "copy"}, "model": {"preset": "tiny"}}


def test_unknown_model_fields_of_a_configuration_object_are_named():
    configuration = Configuration(data=DataConfig(task="copy"), model={"d_modl": 3})
    with pytest.raises(ConfigError, match=r"model.d_modl: unknown field \(did you mean 'd_model'\?\)"):
        model_config(configuration, 11, 11)


def test_a_long_value_or_name_is_shortened():
    long = "a" * 5_000_000
    for values in ({long: {}}, {"data": {long: 1}}, {"model": {long: 1}}, {"run": {"seed": long}}, {"run": long}):
        with pytest.raises(ConfigError) as caught:
            from_dict({**TASK, **values})
        assert len(str(caught.value)) < 250


def test_a_training_needs_an_end():
    for limit in ({"steps": 1}, {"minutes": 0.1}, {"patience": 1}):
        TrainingConfig(**limit).check_limit()
    with pytest.raises(ConfigError, match=r"training\.steps: expected .*, got 0 for all three; set a limit"):
        TrainingConfig(steps=0, minutes=0).check_limit()


def test_values_nested_too_deeply_are_named(write_config):
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(write_config(f"[data]\ntask = {'[' * 100_000}"))


DOTS = ".a" * 16
"""Makes a key too long, but not a text."""
KEYS = [
    f"a{DOTS} = 1",
    f"x = 1\n[ a{DOTS} ]",
    f"[[a{DOTS}]]",
    f"x = [{{y = 1, a{DOTS} = 1}}]",
    f"x = '''\n''''' \n'a' . \"\\\"\"{DOTS} = 1",
    f'x = """\\""" """ \na{DOTS} = 1',
    f"x = '#' # '\na{DOTS} = 1",
]
TEXTS = [
    f"'a{DOTS}'",
    rf'"a{DOTS}\"{DOTS}"',
    f'"""\n""a{DOTS}"""""',
    f"'''\n''a{DOTS}'''''",
    f"''  # a{DOTS} isn't a key",
    f'""  # "a{DOTS}',
]


@pytest.mark.parametrize("number", ["0x" + "f" * 5000, "-" + "9" * 5000, "1" * 5000 + ".0"])
def test_a_number_of_thousands_of_digits_is_refused(number, write_config):
    sentence = "line 2: expected keys and numbers of at most 1000 characters"
    with pytest.raises(ConfigError, match=sentence):
        load(write_config(f"[training]\nsteps = {number}\n"))
    with pytest.raises(ConfigError, match=sentence):
        load_stored(f"[training]\nsteps = {number}\n".encode(), 7, 7)
    with pytest.raises(ConfigError, match=r"training\.steps: expected"):
        load(write_config(""), [f"training.steps={number}"])


@pytest.mark.parametrize("text", KEYS)
def test_a_key_of_more_than_16_parts_is_refused_before_it_is_read(text, write_config, monkeypatch):
    path, line = write_config(text), text.count("\n") + 1
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("the text was read"))
    with pytest.raises(
        ConfigError, match=rf"mine\.toml .*line {line}: expected keys of at most 16 parts, got .*; corr"
    ):
        load(path)
    with pytest.raises(ConfigError, match=rf"line {line}: expected keys of at most 16 parts"):
        load_stored(text.encode(), 7, 7)


@pytest.mark.parametrize("value", TEXTS)
def test_texts_and_comments_may_have_dots(value, write_config):
    text = f"base = 'copy'\r\n[run]\r\ndirectory = {value}\r\n"
    given = load(write_config(text)).run
    overridden = load("copy", [f"run.directory={value}"]).run
    assert given.directory == overridden.directory == tomllib.loads(text)["run"]["directory"]


def test_a_configuration_has_at_most_a_million_characters(write_config):
    with pytest.raises(ConfigError, match=r"mine\.toml .*: expected at most 1000000 characters, got more; correct"):
        load(write_config("#" * 1_000_001))


@pytest.mark.parametrize("value", ["{" + "a." * 50_000 + "a = 1}", "9" * 5000, "[" * 50_000])
def test_an_override_that_cannot_be_read_as_toml_is_a_text(value):
    with pytest.raises(ConfigError, match=r"training\.steps: expected .*, got ['{\[9]"):
        load("copy", [f"training.steps={value}"])
