"""A report on distribution strategies on MNIST: its study, its network and its printed figures."""
