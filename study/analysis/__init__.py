"""Pure functions of the records: tables, statistics, figures and the report."""
