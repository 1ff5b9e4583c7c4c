"""The run: explicit state, small steps that say what comes next, and the stream of events they leave behind."""
