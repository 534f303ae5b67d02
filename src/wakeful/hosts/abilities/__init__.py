"""Abilities: named operations that hosts, tools and clients dispatch."""
