"""Times as a person says them, as cron lines: `weekdays 07:00`, `every 15 minutes`, `mon,thu 18:30`."""

import re
from typing import Final

FORMS: Final = (
    "07:00",
    "weekdays 07:00",
    "weekends 10:00",
    "mon,thu 18:30",
    "hourly",
    "every 15 minutes",
    "every 2 hours",
    "0 7 * * 1-5",
)
"""One example of each form that is understood."""
_DAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_GROUPS: Final = {"daily": "*", "every day": "*", "weekdays": "1-5", "weekends": "0,6", "": "*"}
_CLOCK: Final = re.compile(r"^(?P<days>.*?)\s*(?:at\s+)?(?P<hour>\d{1,2}):(?P<minute>\d{2})$")
_EVERY: Final = re.compile(r"^every\s+(?P<count>\d{1,2})\s*(?P<unit>min(?:ute)?s?|m|hours?|h)$")
_CRON: Final = re.compile(r"^\S+(?:\s+\S+){4}$")


class NotASchedule(ValueError):
    """The words are none of the forms that are understood."""


def cron_of(said: str) -> str:
    """The cron line of a schedule in words. A line that looks like one is given back. Raises NotASchedule."""
    words = " ".join(said.lower().split())
    if words == "hourly":
        return "0 * * * *"
    if (every := _EVERY.match(words)) is not None:
        return _every(int(every["count"]), every["unit"], said)
    if (clock := _CLOCK.match(words)) is not None:
        hour, minute = int(clock["hour"]), int(clock["minute"])
        if hour > 23 or minute > 59:
            raise NotASchedule(f"{said!r}: {clock['hour']}:{clock['minute']} is not a time of day")
        return f"{minute} {hour} * * {_days(clock['days'], said)}"
    if _CRON.match(words):
        return words
    raise NotASchedule(f"{said!r} is not a time that wakeful understands")


def _every(count: int, unit: str, said: str) -> str:
    most = 24 if unit.startswith("h") else 60
    if not 1 <= count < most or most % count:
        fits = ", ".join(str(each) for each in range(1, most) if most % each == 0)
        raise NotASchedule(
            f"{said!r} does not divide {'a day' if most == 24 else 'an hour'} evenly: give one of {fits}"
        )
    if unit.startswith("h"):
        return f"0 */{count} * * *" if count > 1 else "0 * * * *"
    return f"*/{count} * * * *" if count > 1 else "* * * * *"


def _days(words: str, said: str) -> str:
    if words in _GROUPS:
        return _GROUPS[words]
    found = []
    for each in re.split(r"\s*(?:,|and)\s*|\s+", words):
        day = _DAYS.get(each[:3])
        if day is None or not _is_day(each):
            raise NotASchedule(f"{said!r}: {each!r} is not a day of the week")
        found.append(day)
    return ",".join(str(day) for day in dict.fromkeys(found))


def _is_day(word: str) -> bool:
    whole = ("sundays", "mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays")
    return len(word) >= 3 and any(day.startswith(word) for day in whole)
