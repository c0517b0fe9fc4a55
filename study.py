"""Reproducible training studies: what makes training fast on this machine, and how sure are we?"""

__version__ = "0.1.0"
