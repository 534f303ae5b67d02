"""What a turn is given to read besides results: messages, an earlier history, knowledge, skills."""

from wakeful.contracts.authority import lowest
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import HistoryImported, KnowledgeRetrieved, MessageAdmitted, SkillActivated
from wakeful.contracts.skills import ActiveSkill
from wakeful.decisions.levels import Begun, Heard
from wakeful.decisions.policy.provenance import Exposure, begun, merged
from wakeful.decisions.state import TurnState


def admitted(state: TurnState, fact: Fact, event: MessageAdmitted) -> None:
    turn_id = fact.turn_id or ""
    if not state.begins or state.begins[-1].turn_id != turn_id:
        state.begins.append(Begun(turn_id, len(state.items), len(state.items)))
    state.heard.append(Heard(len(state.items), event.message_id, event.authority_class, turn_id))
    state.items.append(event.item)
    state.derived_from = lowest((event.authority_class, event.derived_from or event.authority_class))
    state.exposure = merged(state.exposure, begun(state.derived_from))
    state.scratch.update(event.notes)
    state.depth = event.depth


def history_imported(state: TurnState, event: HistoryImported) -> None:
    """The message opens its turn and is stored first; in the conversation it comes after what it follows."""
    state.items[-1:-1] = event.items
    newest = state.heard.pop()
    state.heard.append(newest._replace(place=len(state.items) - 1))


def knowledge_retrieved(state: TurnState, event: KnowledgeRetrieved) -> None:
    state.items.append(event.item)
    if event.untrusted:
        state.exposure = merged(state.exposure, Exposure(untrusted=", ".join(event.collections)))


def skill_activated(state: TurnState, event: SkillActivated) -> None:
    skill = ActiveSkill(
        name=event.skill, entrypoint_path=event.entrypoint_path, state="restored", load_reason=event.load_reason
    )
    state.opened.setdefault(event.entrypoint_path, skill)
