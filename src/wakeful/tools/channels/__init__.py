"""Services that reach a phone. Each is an adapter of `ports.channels.Channel`, without an SDK."""
