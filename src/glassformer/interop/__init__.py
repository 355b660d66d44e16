"""Import and export of models in the formats of other tools, and CTranslate2 as an engine."""
