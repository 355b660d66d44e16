"""Doors in and out: CTranslate2 as an engine, models imported from other programs and exported to them."""
