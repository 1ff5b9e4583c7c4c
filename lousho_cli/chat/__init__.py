"""The terminal chat: a reader of an agent's event stream that happens to have a keyboard.

`repl` is the loop and needs no terminal, `renderer` turns events into text, `lines` and `terminal` are the two ways to
be typed at, `screen` is the only place that writes. `start` puts them together for `lousho chat`.
"""
