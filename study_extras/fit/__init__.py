"""The laws and the optimum of any table of times: no plan, no records, no torch."""
