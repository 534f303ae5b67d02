"""The events that `stream()` yields, and the events of the log that `store.events()` gives.

    from wakeful.events import StreamEvent, TextEvent, ToolCallEvent

    async with stream(agent, prompt) as s:
        async for event in s:
            match event:
                case TextEvent():
                    print("  " * len(event.path), event.text)
                case ToolCallEvent():
                    print("  " * len(event.path), event.tool, event.arguments)

`StreamEvent` is the union of all that `stream()` yields. Each event has a `type`, and a `path`: empty for the run
itself, the ids of the levels from the top for a subtask. `event_seq` is the number of the stored event behind it, None
for text and output that is shown while it comes.

StatusEvent            the run starts, waits (`suspended`) or ends; the first event and the last
StepEvent              a round of the model and its tool calls starts or ends
TextEvent              words of the model as they come
ErrorEvent             an attempt at the model failed; text of the same step and attempt is void
WaitingEvent           no model answers for now; the request is made again later
UsageEvent             tokens that a round used
ToolCallEvent          a tool call starts
McpProgressEvent       progress of a running call (`ctx.progress`, or an MCP server)
OutputEvent            output of a running call (`ctx.show`)
ToolResultEvent        a tool call ends
SubtaskEvent           a subtask starts or ends
ContextEvent           the conversation shown to the model was chosen anew or compacted
WarningEvent           the run was warned, and goes on
MessageInjectedEvent   a message reached the run while it was under way
"""

from wakeful.contracts.envelope import RuntimeEvent
from wakeful.views.run_stream_events import (
    ContextEvent,
    ErrorEvent,
    McpProgressEvent,
    MessageInjectedEvent,
    OutputEvent,
    StatusEvent,
    StepEvent,
    StreamEvent,
    SubtaskEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    WaitingEvent,
    WarningEvent,
)

__all__ = [
    "ContextEvent",
    "ErrorEvent",
    "McpProgressEvent",
    "MessageInjectedEvent",
    "OutputEvent",
    "RuntimeEvent",
    "StatusEvent",
    "StepEvent",
    "StreamEvent",
    "SubtaskEvent",
    "TextEvent",
    "ToolCallEvent",
    "ToolResultEvent",
    "UsageEvent",
    "WaitingEvent",
    "WarningEvent",
]
