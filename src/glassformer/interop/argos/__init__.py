"""Export to and import from Argos Translate: packages that Argos Translate and LibreTranslate install."""
