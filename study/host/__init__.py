"""The host side: it decides, starts, waits and records. It never imports torch."""
