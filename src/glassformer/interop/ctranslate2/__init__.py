"""Export to and import from CTranslate2, and the engine that translates with it."""
