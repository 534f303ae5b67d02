"""What changes something: turns, approvals, interruptions, budgets."""
