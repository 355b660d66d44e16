"""Reading .zst files: zstandard's own reader takes a file that ends too early for a whole one."""

import io

import zstandard

__all__ = ["ZstandardFile"]

PACKED = 1 << 11
"""Bytes that are unpacked at once: not more than about 64 MB can come from so few."""


class ZstandardFile(io.RawIOBase):
    """The text of a .zst file, which may have several frames.

    Raises:
        EOFError: the file ends within a frame.
        OSError: it is not zstandard, or damaged.
    """

    def __init__(self, packed: io.BufferedIOBase) -> None:
        self.packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._within, self._left, self._text = False, b"", memoryview(b"")

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as unpacked text is at hand, and return how far; 0 at the end."""
        while not self._text:
            packed = self._left or self.packed.read(PACKED)
            if not packed and self._within:
                raise EOFError("it ends before its end was marked")
            if not packed:
                return 0
            self._unpack(packed)
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        return count

    def _unpack(self, packed: bytes) -> None:
        try:
            self._text = memoryview(self._frame.decompress(packed))
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from error
        self._within, self._left = True, b""
        if self._frame.eof:
            self._within, self._left = False, self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
