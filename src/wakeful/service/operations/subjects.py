"""Why things are as they are: everything that is neither idle nor asleep, or one message, timer, notice or turn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import NoRequest, OpenStore, Operation

if TYPE_CHECKING:
    from wakeful.views.runtime_records import AgentLife
    from wakeful.views.subject_story import SubjectStory


@dataclass(frozen=True, slots=True)
class SubjectName:
    """A message, timer, notice or turn by its id or the beginning of it; also a turn by its key, a timer by its
    name."""

    subject: str


async def _restless(opened: OpenStore, asked: NoRequest) -> "list[AgentLife]":
    from wakeful.service.queries.subject_stories import restless_agents

    return await restless_agents(opened.engine)


async def _why(opened: OpenStore, asked: SubjectName) -> "SubjectStory":
    from wakeful.service.queries.subject_stories import why_subject

    return await why_subject(opened.engine, asked.subject)


EXPLAIN_ALL = Operation(
    "runtime.why_all", "observe", NoRequest, "wakeful.views.runtime_records.AgentLife", _restless, many=True
)
EXPLAIN_SUBJECT = Operation(
    "runtime.why_subject", "observe", SubjectName, "wakeful.views.subject_story.SubjectStory", _why
)
