"""The address and the scheme of a client behind reverse proxies."""

from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BehindProxies"]


class BehindProxies:
    """Replaces a client's address by the address that trusted proxies have written into `X-Forwarded-For`.

    Each proxy appends the address of its own client. Therefore, entries are counted from the right, one entry per
    trusted proxy; the client itself may have sent all entries further left.
    """

    def __init__(self, app: ASGIApp, count: int) -> None:
        self.app, self.count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            addresses = _entries(scope, b"x-forwarded-for")[-self.count :]
            if addresses and (address := _address(addresses[0])):
                scope["client"] = (address, 0)
            schemes = _entries(scope, b"x-forwarded-proto")[-1:]
            if schemes in (["http"], ["https"]):
                scope["scheme"] = schemes[0]
        await self.app(scope, receive, send)


def _entries(scope: Scope, name: bytes) -> list[str]:
    """Return the entries of a header that may occur several times."""
    values = (value.decode("latin-1") for key, value in scope["headers"] if key == name)
    return [entry.strip() for value in values for entry in value.split(",")]


def _address(entry: str) -> str | None:
    """Return the address in an entry, which may also have a port; None if there is no address, as in "unknown"."""
    host = entry.partition("]")[0].lstrip("[") if entry.startswith("[") else entry
    host = host.partition(":")[0] if host.count(":") == 1 else host
    try:
        return str(ip_address(host))
    except ValueError:
        return None
