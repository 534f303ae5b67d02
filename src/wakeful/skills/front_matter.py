"""The head of a `SKILL.md`: YAML between two lines of dashes. What is not there, or is not YAML, says nothing."""

MAX_VALUE = 2_000


def read_front_matter(text: str) -> dict[str, str]:
    """`name` and `description`, as far as they are plain values."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}
    import yaml  # an agent without skills must not pay for it

    try:
        said = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError:
        return {}
    if not isinstance(said, dict):
        return {}
    found = {}
    for field in ("name", "description"):
        value = said.get(field)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            words = " ".join(str(value).split())[:MAX_VALUE]
            if words:
                found[field] = words
    return found
