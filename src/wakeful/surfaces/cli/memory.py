"""`wakeful memory list`, `memory show`, `memory edit` and `memory forget`: what an agent remembers."""

from typing import Annotated

import typer

from wakeful.service.operations.memory import (
    EDIT_MEMORY,
    FORGET_MEMORY,
    LIST_MEMORY,
    PAGE,
    SHOW_MEMORY,
    SHOW_WORKING_MEMORY,
    MemoryEdit,
    MemoryName,
    MemoryOwner,
    MemoryQuery,
)
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose, short
from wakeful.surfaces.cli.shown_values import age_cell, json_text, moment, one_line, out, plain
from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name.")]
RefArgument = Annotated[str, typer.Argument(metavar="REF", help="The entry, as wakeful memory list shows it.")]


def listed(
    agent: AgentArgument,
    find: Annotated[
        str | None, typer.Option("--find", metavar="WORDS", help="Only entries that match these words.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many are shown.")] = PAGE,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List what an agent remembers, the newest first: where each entry is from, and when it was last used."""
    place = place_to_ask(store)
    found = ask(LIST_MEMORY, MemoryQuery(agent, find, limit), place)
    remember("memory entries", [each.source_ref for each in found], place, of=agent)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        prose(f"agent {plain(agent)} remembers nothing" + (" with these words" if find else " yet"))
    else:
        cells = [
            (
                each.source_ref[:12],
                each.kind,
                age_cell(int(each.updated_at * 1e6)),
                age_cell(int(each.last_used_at * 1e6)) if each.last_used_at is not None else "-",
                plain(each.principal or "-"),
                one_line(each.title, 200),
            )
            for each in found
        ]
        out(columns(cells, ("REF", "KIND", "WRITTEN", "USED", "FROM", "TITLE"), wide=wide))


def show(
    agent: AgentArgument,
    ref: Annotated[str | None, typer.Argument(metavar="REF", help="An entry. Default: working memory.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show one entry in full; without REF, the working memory that the agent's turns begin with."""
    place = place_to_ask(store)
    if ref is None:
        state = ask(SHOW_WORKING_MEMORY, MemoryOwner(agent), place)
        out(json_text(state.model_dump(mode="json"), indent=2) if json else _working(state))
        return
    record = ask(SHOW_MEMORY, MemoryName(agent, ref), place)
    out(json_text(record.model_dump(mode="json"), indent=2) if json else _entry(record))


def edit(
    agent: AgentArgument,
    ref: RefArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new text of the entry.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Correct an entry. A section of a file is changed in the file; other entries are shown with the new text."""
    record = ask(EDIT_MEMORY, MemoryEdit(agent, ref, text), place_to_ask(store))
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        prose(f"{record.source_ref[:12]} has the new text, in searches and in prompts")


def forget(
    agent: AgentArgument,
    ref: RefArgument,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Forget an entry: no search finds it and no prompt shows it. The log still holds what it was made from."""
    record = ask(FORGET_MEMORY, MemoryName(agent, ref), place_to_ask(store))
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        prose(f"forgotten: {one_line(record.title, 100)}")


def _entry(record: MemoryRecord) -> list[str]:
    used = "never used"
    if record.last_used_at is not None:
        used = f"used {record.uses} times, last {moment(int(record.last_used_at * 1e6))} in turn "
        used += short(record.last_used_in or "")
    source = record.source_path or ", ".join(f"{name} {value}" for name, value in record.metadata.items()) or "-"
    lines = [
        f"{record.source_ref}  {record.kind}, written {moment(int(record.updated_at * 1e6))}",
        f"from: {plain(record.principal or 'the agent itself')}; source: {plain(source)}",
        used,
    ]
    if record.edited_by is not None:
        lines.append(f"corrected by {plain(record.edited_by)}")
    if record.untrusted:
        lines.append(f"untrusted: {plain(record.untrusted)}")
    return [*lines, "", *(plain(line) for line in record.text.splitlines())]


def _working(state: WorkingMemoryState) -> list[str]:
    shown = state.current_working_memory
    lines = [
        f"revision {state.working_memory_revision}; prompts begin with {state.snapshot_revision}, and the newest turn "
        f"knows {state.last_prompted_working_memory_revision or 0}",
        f"episodes: {state.archived_episode_count} finished, "
        + (f"{state.active_episode_id} is open" if state.active_episode_id else "none is open"),
        "",
    ]
    for name, value in shown.model_dump(exclude_defaults=True).items():
        label = name.replace("_", " ")
        if isinstance(value, list | tuple):
            said = [each["text"] if isinstance(each, dict) else str(each) for each in value]
            lines += [f"{label}:", *(f"  - {one_line(each, 300)}" for each in said)]
        else:
            lines.append(f"{label}: {one_line(str(value), 600)}")
    return lines if len(lines) > 3 else [*lines, "nothing yet"]
