"""The ground that every wing stands on. Nothing here knows what a study is."""
