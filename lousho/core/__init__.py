"""Words that every room speaks: messages, events, usage, errors, schemas, cancellation, ids. Imports nothing of ours."""
