"""Other programs' formats: every foreign convention ends here."""
