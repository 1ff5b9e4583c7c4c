"""Stores: where sessions and approvals live. They know JSON records, never a run's state."""
