"""Read .zst files, and check that they are complete, because zstandard's own reader does not check this."""

import io

import zstandard

__all__ = ["ZstandardFile"]

PACKED = 1 << 11
"""Number of compressed bytes per step: so few that they decompress to at most about 64 MB."""


class ZstandardFile(io.RawIOBase):
    """The decompressed text of a .zst file of one or more frames.

    Raises:
        EOFError: the file ends within a frame.
        OSError: the file is not in Zstandard format, or is damaged.
    """

    def __init__(self, packed: io.BufferedIOBase) -> None:
        self.packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._within, self._left, self._text = False, b"", memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Write decompressed text into the buffer; return the number of bytes written, which is 0 at the end."""
        while not self._text:
            packed = self._left or self.packed.read(PACKED)
            if not packed and self._within:
                raise EOFError("the compressed data ends too early")
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
