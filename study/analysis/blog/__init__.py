"""A post for a blog, in Markdown, from the records."""
