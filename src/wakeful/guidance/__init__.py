"""Guidance that people leave in files for agents: `AGENTS.md`, and where there is none, a project's `CLAUDE.md`.

Here lives finding and reading them. Not here: where they go in a prompt and what their word is worth
(`decisions.prompt`, `decisions.prompt_words`).
"""

from wakeful.guidance.guidance_files import AGENTS_MD, GuidanceFile, LoadedGuidance, load_guidance

__all__ = ["AGENTS_MD", "GuidanceFile", "LoadedGuidance", "load_guidance"]
