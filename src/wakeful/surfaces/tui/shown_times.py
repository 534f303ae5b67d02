"""Times as the screen shows them. Whoever takes a picture of it gives times that stand still."""

from datetime import datetime

DAY = 86_400.0


class ShownTimes:
    """The clock on the wall, and times of events."""

    def now(self) -> datetime:
        return datetime.now()

    def of(self, ts: str) -> str:
        """The time of an event."""
        return f"{datetime.fromisoformat(ts).astimezone():%H:%M}"

    def at(self, seconds: float) -> str:
        """A time in Unix seconds; with the day where it is not today."""
        when = datetime.fromtimestamp(seconds)
        return f"{when:%H:%M}" if when.date() == self.now().date() else f"{when:%a %H:%M}"

    def from_now(self, seconds: float) -> str:
        """How far away it is, in either direction."""
        return span(abs(seconds - self.now().timestamp()))


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `23 h`, `3 d`."""
    left = max(0, int(seconds))
    if left < 60:
        return f"{left} s"
    if left < 3600:
        return f"{left // 60} min"
    return f"{left // 3600} h" if left < 2 * DAY else f"{left // int(DAY)} d"
