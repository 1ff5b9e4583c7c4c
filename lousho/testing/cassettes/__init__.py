"""Cassettes: model calls recorded to a file and replayed from it.

`provider` is the entry; `recorder` writes, `replayer` answers; `cassette_file` is the format, `exchanges`, `requests`
and `failures` what is in it; `schemas`, `volatile`, `redaction` and `differences` decide what counts as the same.
"""
