"""A blog's post on batch size and GPU: its studies, its printed figures, and a post like it."""
