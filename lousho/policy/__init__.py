"""May this call run? Permission rules, the gate every call passes, and what a decision is."""
