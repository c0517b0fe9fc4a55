"""A mini-project on CIFAR-10: its study, its network and its printed figures."""
