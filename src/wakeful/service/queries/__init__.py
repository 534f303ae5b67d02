"""What only reads: turns, events, cost, reports."""
