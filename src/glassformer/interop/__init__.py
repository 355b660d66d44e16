"""CTranslate2: converting models to its format, verifying them, and decoding with its engine."""
