"""Keys: they are checked before anything else is done, and the permissions of the key file do not change."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.serving.limits import Keys, add_key
from glassformer.serving.reading import MOST_FIELDS, MOST_VALUES, decoded_form, decoded_json, field_of_form
from glassformer.serving.refusals import RequestError
from profiles import scaled
from serving.conftest import Served, connected, service

KEYED = {
    "/translate": "Bearer KEY",
    "/detect": "bearer KEY",
    "/translate_file": "Bearer KEY",
    "/v1/translate": "Bearer KEY",
    "/v2/translate": "DeepL-Auth-Key KEY",
    "/v2/languages": "DeepL-Auth-Key KEY",
    "/immersive": "Bearer KEY",
}
UNREAD = "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n{more}\r\n"


@pytest.fixture(scope="module")
def keyed(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """Return a service with keys, and a key."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    key = add_key(keys, "me")
    with service(str(run_folder), "--languages", "en:es", "--keys", str(keys), "--log", "nothing") as one:
        yield one, key


def answer_to(served: Served, head: str) -> bytes:
    """Return the beginning of the answer to the head of a request whose body never comes."""
    with connected(served, head.encode()) as client:
        client.settimeout(5)
        return client.recv(65536)


@pytest.mark.slow
@pytest.mark.parametrize("path", KEYED)
def test_a_wrong_key_in_the_head_is_refused_before_the_body_is_there(keyed, path):
    served, _ = keyed
    scheme = KEYED[path].replace("KEY", "wrong")
    assert answer_to(served, UNREAD.format(path=path, more=f"Authorization: {scheme}\r\n")).startswith(b"HTTP/1.1 403 ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/translate?api_key=wrong", b"403"),
        ("/detect?q=a&api_key=wrong", b"403"),
        ("/v2/translate?auth_key=wrong", b"403"),
        ("/immersive?api_key=wrong", b"403"),
        ("/immersive", b"400"),  # LibreTranslate's status; a key in the body does not count here
        ("/v1/translate", b"401"),  # a key in the body does not count here
    ],
)
def test_a_key_in_a_query_or_no_key_at_all_is_refused_before_the_body_is_there(keyed, path, status):
    served, _ = keyed
    assert answer_to(served, UNREAD.format(path=path, more="")).startswith(b"HTTP/1.1 %b " % status)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/translate", json.dumps({"q": ["", 3], "api_key": "wrong"}), "application/json", 403),
        ("/translate", "source=zz&alternatives=x&api_key=wrong", "application/x-www-form-urlencoded", 403),
        ("/translate", "q=a&source=zz", "application/x-www-form-urlencoded", 400),
        ("/translate", "source=en&source=fr&api_key=wrong", "application/x-www-form-urlencoded", 403),
        ("/translate", "api%5Fkey=wron%67&q=" + "%41" * 100_000, "application/x-www-form-urlencoded", 403),
        ("/detect", json.dumps({"q": 3, "api_key": "wrong"}), "application/json", 403),
        ("/v2/translate", "text=&auth_key=wrong", "application/x-www-form-urlencoded", 403),
        ("/v2/translate", json.dumps({"target_lang": 3}), "application/json", 403),
        (
            "/translate_file",
            '--x\r\nContent-Disposition: form-data; name="file"; filename="a.doc"\r\n\r\n\x00\r\n'
            '--x\r\nContent-Disposition: form-data; name="api_key"\r\n\r\nwrong\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
            403,
        ),
    ],
)
def test_a_key_in_the_body_is_checked_before_the_other_fields(keyed, path, body, kind, status):
    served, _ = keyed
    answer = served.ask(path, body=body.encode(), content_type=kind)
    assert answer.status == status
    [said] = answer.json.values()
    assert "key" in said


PARTS = st.sampled_from(
    ["api_key", "api%5Fkey", "%61pi_key", "q", "=", "=", "&", "&", "%41", "+", "%", "é", "\ud83d", "a", ";"]
)


@given(st.lists(PARTS, max_size=20).map("".join))
@scaled(300)
def test_the_key_of_a_form_is_the_one_that_its_decoder_reads(text):
    body = text.encode("utf-8", "surrogatepass")
    values = [value for name, value in decoded_form(body) if name == "api_key"]
    assert field_of_form(body, "api_key") == (values[0] if values else None)


def test_a_form_of_too_many_fields_is_refused_before_its_key_is_looked_for():
    assert field_of_form(b"&" * (MOST_FIELDS - 1) + b"api_key=x", "api_key") == "x"
    for read in (decoded_form, lambda body: field_of_form(body, "api_key")):
        with pytest.raises(RequestError, match="at most 2000 fields"):
            read(b"&" * MOST_FIELDS + b"api_key=x")


def test_too_many_values_are_refused_before_they_are_read():
    """The bodies end with text that is not JSON, so that a decoder would report an error."""
    some = MOST_VALUES // 2
    for body in (
        b'{"q": [' + b"[]," * (some + 2),
        b'{"q": [' + b"1," * (2 * some + 2),
        b"{" + b'"a":{"b":1},' * (some + 2),
    ):
        with pytest.raises(RequestError, match="at most 20000 values"):
            decoded_json(body)
        with pytest.raises(RequestError, match="Invalid JSON format"):
            decoded_json(body[: len(body) // 2])


def test_commas_and_brackets_in_texts_are_not_values():
    text = '[,{\\"' * MOST_VALUES
    assert decoded_json(json.dumps({"q": [text, text], "n": [1.0] * (MOST_VALUES - 10)}).encode())["q"] == [text, text]


@pytest.mark.slow
def test_a_right_key_is_found_wherever_a_client_puts_it(keyed):
    served, key = keyed
    one = {"q": "the cat", "source": "en", "target": "es"}
    deepl = {"text": ["the cat"], "target_lang": "ES"}
    assert served.json("/translate", {**one, "api_key": key}).status == 200
    assert served.form("/translate", **one, api_key=key).status == 200
    assert served.json(f"/translate?api_key={key}", one).status == 200
    assert served.json("/translate", one, authorization=f"Bearer {key}").status == 200
    basic = "Basic dXNlcjpwYXNzd29yZA=="  # credentials for a proxy in front of the service
    assert served.json("/translate", {**one, "api_key": key}, authorization=basic).status == 200
    assert served.json("/translate", {**one, "api_key": ["x"]}).status == 400
    assert served.json("/v2/translate", deepl, authorization=f"DeepL-Auth-Key {key}").status == 200
    assert served.json("/v2/translate", deepl, authorization=f"Bearer {key}").status == 200
    assert served.json("/v2/translate", {**deepl, "auth_key": key}).status == 200
    assert served.get(f"/v2/usage?auth_key={key}").status == 200
    assert served.get(f"/translate?q=the+cat&source=en&target=es&api_key={key}").status == 200
    assert served.get("/translate?q=the+cat&source=en&target=es").status == 400
    immersive = {"text_list": ["the cat"], "source_lang": "en", "target_lang": "es"}
    assert served.json(f"/immersive?api_key={key}", immersive).status == 200
    assert served.json("/immersive", immersive, authorization=f"Bearer {key}").status == 200
    assert served.form("/v2/languages", type="target", auth_key=key).status == 200
    assert served.get("/v2/glossary-language-pairs").status == 403
    assert served.json("/v1/translate", {"texts": ["the cat"]}, authorization=f"Bearer {key}").status == 200
    for path in ("/health", "/languages", "/spec", "/"):
        assert served.get(path).status == 200


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_a_further_key_leaves_the_mode_of_the_file(tmp_path, mode):
    path = tmp_path / "keys"
    first = add_key(path, "first")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(mode)
    before = path.stat()
    second = add_key(path, "second")
    after = path.stat()
    assert (after.st_mode & 0o777, after.st_ino, after.st_uid) == (mode, before.st_ino, before.st_uid)
    keys = Keys(path)
    assert [keys.name_of(first), keys.name_of(second)] == ["first", "second"]


def test_a_key_begins_a_line_of_its_own_whatever_an_editor_left(tmp_path):
    path = tmp_path / "keys"
    first = add_key(path, "first")
    path.write_text(path.read_text().rstrip("\n"))
    second = add_key(path, "second")
    keys = Keys(path)
    assert [keys.name_of(first), keys.name_of(second)] == ["first", "second"]
