"""What `lousho doctor` checks: this machine, the keys, and one agent. Nothing here prints."""
