"""The Lousho runtime and SDK."""
