"""Keys: they are checked before anything else is done, and their file can be read by those who could before."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from glassformer.serving.limits import Keys, add_key
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
        ("/immersive", b"400"),  # as LibreTranslate answers; no body can hold its key
        ("/v1/translate", b"401"),  # no body can hold its key
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


@pytest.mark.slow
def test_a_right_key_is_found_wherever_a_client_puts_it(keyed):
    served, key = keyed
    one = {"q": "the cat", "source": "en", "target": "es"}
    deepl = {"text": ["the cat"], "target_lang": "ES"}
    assert served.json("/translate", {**one, "api_key": key}).status == 200
    assert served.form("/translate", **one, api_key=key).status == 200
    assert served.json(f"/translate?api_key={key}", one).status == 200
    assert served.json("/translate", one, authorization=f"Bearer {key}").status == 200
    basic = "Basic dXNlcjpwYXNzd29yZA=="  # of a proxy
    assert served.json("/translate", {**one, "api_key": key}, authorization=basic).status == 200
    assert served.json("/translate", {**one, "api_key": ["x"]}).status == 400
    assert served.json("/v2/translate", deepl, authorization=f"DeepL-Auth-Key {key}").status == 200
    assert served.json("/v2/translate", {**deepl, "auth_key": key}).status == 200
    assert served.get(f"/v2/usage?auth_key={key}").status == 200
    assert served.get(f"/translate?q=the+cat&source=en&target=es&api_key={key}").status == 200
    assert served.get("/translate?q=the+cat&source=en&target=es").status == 400
    immersive = {"text_list": ["the cat"], "source_lang": "en", "target_lang": "es"}
    assert served.json(f"/immersive?api_key={key}", immersive).status == 200
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
