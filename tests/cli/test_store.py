"""`glassformer bulk` from and into an object store whose requests often fail: the same bytes, and each part once."""

import json
import re

import fsspec
import pytest
from benchmarks.bulk import contents, write_nasty

import word_by_word
from cli.flaky_store import HOST, flaky_store


@pytest.mark.long
def test_parts_in_an_object_store_equal_local_parts(trained, glassformer, tmp_path, monkeypatch):
    lines = tmp_path / "nasty.txt"
    write_nasty(lines, 300, 5, list(word_by_word.WORDS))
    options = ["--part-bytes", "1000", "--beam-size", "1"]
    glassformer("bulk", trained, lines, "--output", tmp_path / "local", *options)
    expected = contents(tmp_path / "local")
    with flaky_store(share=0.05) as proxy:
        for name, value in {"KEY_ID": "any", "SECRET_ACCESS_KEY": "any", "ACCESS_KEY_ID": "any"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:{proxy.server_port}")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        store = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
        store.mkdir("corpus")
        store.put_file(str(lines), "corpus/texts/nasty.txt")
        command = ["bulk", trained, "s3://corpus/texts/*.txt", "--output", "s3://corpus/french", *options]
        result = glassformer(*command)
        assert result.status == 0, result.err

        def there() -> dict[str, bytes]:
            return {path.rpartition("/")[2]: store.cat_file(path) for path in store.ls("corpus/french/parts")}

        assert there() == expected
        part = next(name for name in sorted(expected) if name.endswith(".txt") and expected[name])
        store.rm_file(f"corpus/french/parts/{part}")
        assert "1 missing" in glassformer(*command, "--finish").err
        assert re.search(r"translated now: 1;", glassformer(*command).out)
        store.pipe_file(f"corpus/french/parts/{part}", expected[part][:-1])
        assert "1 cut or altered" in glassformer(*command, "--finish").err
        assert re.search(r"translated now: 1;", glassformer(*command).out)
        assert glassformer(*command, "--finish").status == 0
        manifest = json.loads(store.cat_file("corpus/french/manifest.json"))
        assert manifest["files"][0]["lines"] == 300
        assert {name: content for name, content in there().items() if not name.endswith(".damaged")} == expected
        assert proxy.refused > 5
        assert proxy.passed > 100
