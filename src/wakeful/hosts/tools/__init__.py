"""Tools of hosts: their declarations as hosts write them, their sources, and the way from a call to its result."""
