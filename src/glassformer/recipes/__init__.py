"""Configurations: their sections as dataclasses, their TOML form, and the built-in recipes."""
