"""When an agent wakes: where it stands, what a message means to it, how long it backs off, when a schedule is due."""
