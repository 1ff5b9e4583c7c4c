"""What `lousho inspect` does: load an agent as every command loads it, and show what it is made of."""
