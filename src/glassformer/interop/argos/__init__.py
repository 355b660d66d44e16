"""Argos Translate: packages that LibreTranslate and Argos open, and runs from such packages."""
