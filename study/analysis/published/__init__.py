"""The figures and claims of published documents, beside the runs here."""
