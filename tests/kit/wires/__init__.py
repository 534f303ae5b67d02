"""What providers send and take: servers on loopback, recorded shapes, the vendors' own types."""
