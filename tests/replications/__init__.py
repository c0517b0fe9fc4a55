"""What belongs to one document: its networks, studies, figures and post."""
