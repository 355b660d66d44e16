"""HTTP headers of the pages that glassformer serves: the translation service's page and the explorer's page."""

__all__ = ["EXPLORER_HEADERS", "PAGE_HEADERS"]

PAGE_HEADERS = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
EXPLORER_HEADERS = {
    **PAGE_HEADERS,
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
"""Headers of the explorer's page; the page itself contains the rest of its content security policy."""
