"""Agents that are watched in the terminal UI: those of `served_agents`, and `ops`, whose child waits for rain."""

from kit.runs.child_agents import calls, family, spawning
from kit.surfaces import served_agents

RAIN = calls("wait_for", reason="rain", wake="external")
agents = [*served_agents.agents, family(spawning("It digs."), lambda request: RAIN)]
