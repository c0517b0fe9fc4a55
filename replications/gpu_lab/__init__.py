"""Two reports of a lab on training with a GPU: studies, networks and printed figures."""
