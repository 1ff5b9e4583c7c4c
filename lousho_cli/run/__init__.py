"""What `lousho run` does: find the prompt, run one turn without a person, end with a code that a script can trust."""
