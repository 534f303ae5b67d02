"""One line for each thing that happens in a run, as people watch it: the same live, and from the log."""

from rich.text import Text

from wakeful.surfaces.cli.people import named_people
from wakeful.surfaces.cli.screen import short
from wakeful.surfaces.cli.shown_values import arguments_text, duration, one_line, plain
from wakeful.views.run_stream_events import (
    ContextEvent,
    ErrorEvent,
    McpProgressEvent,
    MessageInjectedEvent,
    RunEvent,
    StatusEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    WaitingEvent,
    WarningEvent,
)


def line(event: RunEvent) -> Text | None:
    """The line of an event; None for what only marks an order."""
    match event:
        case StatusEvent(status="starting"):
            return Text.assemble(("● ", "cyan"), f"turn {event.turn_id}")
        case StatusEvent(status="suspended", reason="provider"):
            return None  # it goes on by itself, or the end of the run says how
        case StatusEvent(status="suspended"):
            return Text(f"‖ waits for {', '.join(map(short, event.waiting_for))}", "yellow")
        case StatusEvent(status="completed"):
            return Text("● completed", "green")
        case StatusEvent():
            return Text(f"● {event.status} ({event.stop_reason}): {one_line(event.message)}", "red")
        case TextEvent():
            return Text(f"  {plain(event.text).strip()}", "dim") if event.text.strip() else None
        case ToolCallEvent():
            return Text.assemble(("  → ", "cyan"), (plain(event.tool_name), "bold"), f"({_arguments(event)})")
        case ToolResultEvent(success=True):
            return Text.assemble(
                ("  ✓ ", "green"),
                plain(event.tool_name),
                _took(event),
                (f"  {one_line(event.preview)}" if event.preview else "", "dim"),
            )
        case ToolResultEvent():
            return Text.assemble(
                ("  ✗ ", "red"), plain(event.tool_name), _took(event), (f"  {one_line(event.error or '', 200)}", "red")
            )
        case ErrorEvent():
            after = "; trying again" if event.retryable else ""
            said = f"  ! {event.model_ref}: {event.failure_kind}: {one_line(event.message)}{after}"
            return Text(said, "yellow")
        case WaitingEvent():
            when = f"next try in {duration(event.seconds * 1000)}"
            return Text(f"  … waiting for {plain(event.provider)} ({event.failure_kind}), {when}", "yellow")
        case McpProgressEvent():
            of = f"/{event.total:g}" if event.total is not None else ""
            return Text(f"  · {plain(event.tool_name)} {event.progress:g}{of} {one_line(event.message or '')}", "dim")
        case ContextEvent():
            size = f", {event.tokens_before} → {event.tokens} tokens" if event.tokens_before and event.tokens else ""
            said = f"  ◦ context: {event.change.replace('_', ' ')}{size} {one_line(event.reason)}"
            return Text(said.rstrip(), "dim")
        case MessageInjectedEvent():
            return Text.assemble(("  ← ", "cyan"), f"{plain(named_people(event.said_by))}: {one_line(event.text)}")
        case UsageEvent() | StepEvent() | WarningEvent():
            return None  # warnings stand at the end, with the outcome


def _arguments(event: ToolCallEvent) -> str:
    return arguments_text(event.arguments)


def _took(event: ToolResultEvent) -> tuple[str, str]:
    return (f"  {duration(event.duration_ms)}", "dim")
