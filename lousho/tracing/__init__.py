"""Spans of a run: a seam that costs nothing while nobody listens."""
