"""Models: one request type, one chunk vocabulary and one usage vocabulary for every vendor."""
