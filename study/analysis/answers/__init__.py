"""What a study answers. Each kind of answer is one class in one file: its fields, how it is found, and its words."""
