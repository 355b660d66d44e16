"""Models imported from other programs and exported to them, and CTranslate2 as an engine."""
