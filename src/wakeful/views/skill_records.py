"""Skills as readers see them."""

from wakeful.contracts.skills import SkillEntry


class SkillText(SkillEntry):
    """A skill with what its `SKILL.md` says."""

    text: str
    is_cut: bool = False
    """The file is longer than what is shown."""
