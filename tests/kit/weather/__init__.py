"""Programs of README, guides, examples, demos and journeys once more, with list prices and weather."""
