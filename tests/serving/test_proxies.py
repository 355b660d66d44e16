"""Addresses of clients behind proxies, counted from the right of X-Forwarded-For."""

import pytest

from glassformer.serving.proxies import BehindProxies
from serving.conftest import finished

PEER = ("10.0.0.9", 4711)


def seen(count, *headers):
    """Return the address and the scheme that an application sees."""
    found = {}

    async def app(scope, receive, send):
        found.update(scope)

    scope = {"type": "http", "client": PEER, "scheme": "http", "headers": headers}
    finished(BehindProxies(app, count)(scope, None, None))
    return found["client"][0], found["scheme"]


@pytest.mark.parametrize(
    ("count", "lines", "address"),
    [
        (1, ["203.0.113.7"], "203.0.113.7"),
        (1, ["6.6.6.6, 203.0.113.7"], "203.0.113.7"),
        (1, ["6.6.6.6", "203.0.113.7"], "203.0.113.7"),
        (2, ["6.6.6.6, 203.0.113.7, 192.0.2.1"], "203.0.113.7"),
        (2, ["6.6.6.6, 203.0.113.7", "192.0.2.1"], "203.0.113.7"),
        (2, ["203.0.113.7"], "203.0.113.7"),
        (1, ["203.0.113.7:5123"], "203.0.113.7"),
        (1, ["[2001:db8::7]:5123"], "2001:db8::7"),
        (1, ["2001:db8::7"], "2001:db8::7"),
        (1, ["6.6.6.6, unknown"], PEER[0]),
        (1, ["6.6.6.6, "], PEER[0]),
        (1, ["6.6.6.6, ' OR 1=1"], PEER[0]),
        (1, [], PEER[0]),
    ],
)
def test_the_address_is_what_the_first_trusted_proxy_has_seen(count, lines, address):
    headers = [(b"x-forwarded-for", line.encode()) for line in lines]
    assert seen(count, *headers) == (address, "http")


@pytest.mark.parametrize(("given", "scheme"), [("https", "https"), ("http, https", "https"), ("javascript", "http")])
def test_the_scheme_is_what_the_nearest_proxy_says(given, scheme):
    assert seen(1, (b"x-forwarded-proto", given.encode())) == (PEER[0], scheme)
