"""A blog's post on batch size and GPU: its studies and its printed figures."""

import study

study.plain_matplotlib()
