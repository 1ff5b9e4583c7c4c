"""What `lousho init` writes: the templates, their values, and the steps around them (install, git)."""
