"""Headers of the pages that are served: the service's own page, and the explorer's."""

__all__ = ["EXPLORER_HEADERS", "PAGE_HEADERS"]

PAGE_HEADERS = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
EXPLORER_HEADERS = {
    **PAGE_HEADERS,
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
"""Headers of the explorer's page; the page itself contains the rest of its policy."""
