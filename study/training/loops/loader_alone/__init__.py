"""The loader by itself: batches are fetched, and nothing trains."""
