"""What the published documents print, and what the runs here say beside it."""
