"""`wakeful agent show`, `create`, `model`, `archive`, `delete`, `history` and `diff`: what an agent of a runtime is.

None of them needs the process that runs the agents: they ask the store, and write to it.
"""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.service.operations.runtime_agents import (
    ARCHIVE_AGENT,
    CREATE_AGENT,
    DELETE_AGENT,
    LIST_REVISIONS,
    SET_MODEL,
    SHOW_AGENT,
    SHOW_CHANGE,
    AgentRemoval,
    AgentTarget,
    ModelOfAgent,
    NewAgent,
    RevisionPair,
)
from wakeful.surfaces.cli.agent_control import AgentArgument, ReasonOption
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.places import UNATTENDED, ask, place_to_ask, place_to_fill
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import STATES, age_cell, ago, counted, json_text, out, plain
from wakeful.views.agent_state import AgentModelState
from wakeful.views.child_agents import ActiveChild
from wakeful.views.runtime_records import AgentDetails, ChildRecord

NEW_STORE = "wakeful agent create main --model openai:gpt-5.5"


def show(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Default: the default agent.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show one agent: identity, status, model, work, children, and when it was changed."""
    found = ask(SHOW_AGENT, AgentTarget(agent), place_to_ask(store, NEW_STORE))
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    else:
        out(_lines(found))


def create(
    agent: AgentArgument,
    model: Annotated[str, typer.Option("--model", metavar="PROVIDER:MODEL", help="Its model.")],
    instructions: Annotated[str, typer.Option("--instructions", metavar="TEXT", help="Its instructions.")] = "",
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="ID|DIR",
            help="Make its home from a template: wakeful-default, wakeful-developer, another folder of "
            "~/.agents/templates, or the absolute path of a folder with an AGENTS.md.",
        ),
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="The folder that it works in.")
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Create an agent. It is kept in the store; a runtime that is open, or is opened later, runs it."""
    definition: dict[str, object] = {"name": agent, "model": model, "instructions": instructions}
    if workspace is not None:
        definition["workspace"] = str(workspace.absolute())
    place = place_to_fill(store)
    record = ask(CREATE_AGENT, NewAgent(definition, template), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    out([f"agent {plain(record.agent)} is created", f"home: {plain(record.agent_home)}"])
    if place.is_unattended:
        out(UNATTENDED)
    out(f'now: wakeful send {plain(record.agent)} "hello"{place.flag}')


def model(
    agent: AgentArgument,
    model: Annotated[
        str | None, typer.Argument(metavar="PROVIDER:MODEL", help="Its model from the next turn on.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Back to the model of its definition.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show an agent's model, or change it for turns that begin from now on."""
    if clear and model is not None:
        raise WrongRequest(f"--clear and {model} were both given", "leave one out")
    place = place_to_ask(store, NEW_STORE)
    if clear or model is not None:
        found = ask(SET_MODEL, ModelOfAgent(agent, model), place)
    else:
        found = ask(SHOW_AGENT, AgentTarget(agent), place).model
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
    else:
        out(f"agent {plain(agent)}: {_model(found)}")


def archive(
    agent: AgentArgument,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Archive an agent. It leaves the lists and does nothing until wakeful agent resume."""
    place = place_to_ask(store, NEW_STORE)
    record = ask(ARCHIVE_AGENT, AgentRemoval(agent, reason=reason), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        name = plain(record.agent)
        out([f"agent {name} is archived", f"to bring it back: wakeful agent resume {name}{place.flag}"])


def delete(
    agent: AgentArgument,
    reason: ReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Delete an agent that was created here. Its log stays; its name cannot be used again."""
    ask(DELETE_AGENT, AgentRemoval(agent, reason=reason), place_to_ask(store, NEW_STORE))
    out(json_text({"agent": agent, "deleted": True}, indent=2) if json else f"agent {plain(agent)} is deleted")


def history(
    agent: AgentArgument, json: JsonOption = False, wide: WideOption = False, store: StoreOption = None
) -> None:
    """List the revisions of an agent's definition, newest first, with the turns that began with each."""
    place = place_to_ask(store, NEW_STORE)
    found = ask(LIST_REVISIONS, AgentTarget(agent), place)
    remember("revisions", [each.revision for each in found], place, of=agent)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        prose(f"agent {agent} has no definition yet")
    else:
        cells = [
            (
                short_revision(each.revision),
                age_cell(int(each.at * 1e6)),
                str(each.turns),
                "in force" if each.in_force else "-",
                plain(each.place or each.source),
            )
            for each in found
        ]
        out(columns(cells, ("REVISION", "SINCE", "TURNS", "STATE", "FROM"), wide=wide))


def diff(
    agent: AgentArgument,
    old: Annotated[str | None, typer.Argument(metavar="OLD", help="A revision. Default: the one before.")] = None,
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="A revision. Default: the one in force.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what changed between two revisions of an agent's definition; without names, the newest change."""
    found = ask(SHOW_CHANGE, RevisionPair(agent, old, new), place_to_ask(store, NEW_STORE))
    if json:
        out(json_text({"agent": found.agent, "diff": found.diff}, indent=2))
    else:
        out([plain(line) for line in found.diff.splitlines()] or "nothing changed between them")


def short_revision(revision: str) -> str:
    return revision.removeprefix("sha256:")[:12] or "-"


def _lines(found: AgentDetails) -> list[str]:
    state = found.state
    made = f", made by {found.lineage_parent_agent_id}" if found.lineage_parent_agent_id is not None else ""
    waits = f" ({found.closure.waiting_reason})" if found.closure.waiting_reason is not None else ""
    lines = [
        found.agent,
        f"  status     {STATES.get(found.status, found.status)}, {found.closure.outcome}{waits}",
        f"  identity   {found.kind}, {found.visibility}, {found.ownership}, {found.profile_preset}{made}",
        f"  home       {found.agent_home}",
        f"  model      {_model(found.model)}",
        f"  definition {found.source} {short_revision(found.revision)}, {_changed(found)}",
        f"  queue      {counted(state.pending, 'message')} pending, {counted(len(state.active_task_ids), 'task')}",
        f"  so far     {counted(state.total_message_count, 'message')}, {counted(state.total_model_rounds, 'round')}, "
        f"{state.total_input_tokens + state.total_output_tokens:,} tokens",
    ]
    if found.control != "running":
        lines.append(
            f"  why        {found.reason or found.cause} ({named_people(found.changed_by)}, {_ago(found.changed_at)})"
        )
    if state.current_work_item_id is not None:
        lines.append(f"  works on   {state.current_work_item_id}")
    at_work = {child.agent_id: child for child in found.active_children}
    lines += [_child(child, at_work.get(child.identity.agent_id)) for child in found.children]
    return [plain(line) for line in lines]


def _child(child: ChildRecord, at_work: ActiveChild | None) -> str:
    """`ops.c1: asleep, running (task_c1): Dig a hole.`"""
    name = f"  child      {child.identity.agent_id}: {child.status}"
    if at_work is None:
        return name
    seen = at_work.child_observability
    why = seen.blocked_reason or seen.waiting_reason
    return f"{name}, {seen.phase}{f' ({why})' if why else ''}, {at_work.supervision_task_id}: {at_work.label}"


def _changed(found: AgentDetails) -> str:
    """`changed 2 h ago, 3 turns since`."""
    if found.revised_at is None:
        return "not loaded yet"
    return f"changed {_ago(found.revised_at)}, {counted(found.turns_since_revision, 'turn')} since"


def _ago(at: float) -> str:
    return f"{ago(int(at * 1e6))} ago"


def _model(state: AgentModelState) -> str:
    fallbacks = f", then {', '.join(state.effective_fallback_models)}" if state.effective_fallback_models else ""
    if state.source == "agent_override":
        default = state.runtime_default_model or "the model of its definition"
        return f"{state.effective_model} (override of {default}){fallbacks}"
    return f"{state.effective_model or 'unknown here'} (of its definition){fallbacks}"
