"""The Lousho command line, thin over the `lousho` package."""
