"""The first screen of a study, whose parts the page and the terminal print alike: one file for each part."""
