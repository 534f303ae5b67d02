"""What of the journeys is run under which weather, what is left out, and what does not come through it yet.

Every journey is run, but for files in which it shows nothing (`FILES_LEFT_OUT`): those that ask their own provider,
those in which no agent answers, and those that count, list or draw what a run in fine weather left. A single test of
another file that needs fine weather has its reason below. `EXPECTED_FAILURES` only shrinks: a test named there that
passes fails the run. Tests are named by the end of their id, with or without its parameters.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kit.weather.served_scripts import GPT, ServedModel

OUTAGE_SECONDS = 3.0
"""How long the provider is away in each test, after the rate limit and the cut stream."""


class ExpectedFailure(NamedTuple):
    """Why it fails, and at which model: others may be cheaper."""

    reason: str
    model: ServedModel = GPT


EXPECTED_FAILURES: dict[str, ExpectedFailure] = {}
_OWN = "asks a provider of its own, with weather of its own"
_SILENT = "no agent answers anybody in it"
_LOOKS = "counts, lists or shows what a run left: lost attempts and list prices would stand there, too"
_SCREEN = "looks for lines of a screen, which lost attempts and costs move"
FILES_LEFT_OUT = {
    **dict.fromkeys(
        (
            *("test_keys_stay_here", "test_money", "test_provider_away", "test_runtime_outages"),
            *("cli/test_cut_answers", "cli/test_models", "cli/test_run_while_away", "cli/test_today"),
            *("cli/test_words_of_outages",),
        ),
        _OWN,
    ),
    **dict.fromkeys(
        (
            *("test_docs", "test_first_mistakes", "cli/test_check", "cli/test_completion", "cli/test_config"),
            *("cli/test_daemon_commands", "cli/test_daemon_install", "cli/test_daemon_places", "cli/test_debug_prompt"),
            *("cli/test_event_types", "cli/test_help", "cli/test_idle_options", "cli/test_init", "cli/test_settings"),
            *("cli/test_templates", "cli/test_tools", "cli/test_unknown", "cli/test_wrong_inputs"),
            *("http/test_agents_over_http", "http/test_pages", "http/test_routes_of_files", "http/test_wrong_requests"),
        ),
        _SILENT,
    ),
    **dict.fromkeys(
        (
            *("test_store_in_python", "test_store_reasons", "cli/test_backup", "cli/test_context", "cli/test_cost"),
            *("cli/test_every_verb", "cli/test_events", "cli/test_replay_and_schema", "cli/test_rows"),
            *("cli/test_status", "cli/test_store_transfer", "cli/test_store_upkeep", "cli/test_stores"),
            *("cli/test_tail", "cli/test_tools_and_why", "cli/test_tree", "cli/test_why", "http/test_telemetry"),
        ),
        _LOOKS,
    ),
    **dict.fromkeys(
        (
            *("tui/test_console", "tui/test_hostile_text", "tui/test_long_panes"),
            "tui/test_what_stands_round",
        ),
        _SCREEN,
    ),
}
"""Below tests/journeys, without `.py`."""
FINE = {
    "test_an_agent_wakes_in_the_morning_asks_and_repairs": "holds the clock still, so that no wait of it ends",
    "test_an_agent_works_on_a_repository_for_days_and_leaves_it_merged": "holds the clock still",
    "a_program_that_runs_as_printed[schedules-and-waits]": "holds the clock still",
    "a_program_that_runs_as_printed[testing]": "compares runs with the first one, and only that one would have weather",
    "test_a_workspace_that_is_gone_holds_up_its_agent_alone_until_it_is_back": "holds the clock still",
    "test_a_worktree_that_somebody_deleted_is_left_and_its_agent_goes_on_elsewhere": "holds the clock still",
    "test_an_answer_that_did_not_fit_is_corrected_when_it_is_tried_again": "counts what its model was asked",
    "test_a_memory_index_that_cannot_be_read_is_told_and_made_again": "counts what its model was asked",
    "test_what_is_open_is_named_with_what_ends_it": "counts every attempt in what it cost",
}
"""List prices, and fine weather."""
SHORT = {
    "test_what_is_sent_while_nobody_runs_the_agents_is_answered_by_the_next_runtime": (
        "runs a runtime until nothing is due, and who waits for a provider is not"
    ),
    "test_client_tools_are_asked_and_answered_while_the_stream_goes_on": "waits for the first rest of its turn",
}
"""Weather that is over before a turn has to rest: no outage."""
COUNTING = {
    "a_program_that_runs_as_printed[subtasks-and-workflows]": "prints how often the model was called",
    "a_program_that_runs_as_printed[budgets-and-cost]": "prints how often the model was called, which it limits",
    "test_research_splits_into_subtasks_and_a_second_run_is_free": "prints how often the model was called",
    "test_a_budget_stops_a_run_with_an_answer_where_there_is_room_for_one": "ends by how often the model was called",
    "test_a_limit_ends_the_run_as_incomplete": "ends by how often the model was called",
}
"""A cut answer is paid, and so counts. Weather that costs nothing: no cut stream."""
FREE = {
    "a_program_that_runs_as_printed[models]": "prints what a script costs, which is nothing",
    "test_the_picture_shows_what_the_demo_prints_today": "draws the log of a run in fine weather",
    "test_a_call_too_long_for_its_record_is_read_from_the_log_before_it_is_approved": (
        "makes a call that is longer than a vendor's longest answer"
    ),
    "test_json_is_one_document_with_the_use_of_tokens_at_its_top": "adds up tokens that its script reports",
    "test_words_are_seen_before_they_are_stored": "its model says words before it is asked over a wire",
    "test_words_are_on_the_screen_before_they_are_stored_and_the_budget_below": "its model says words before that, too",
}
"""Tests of what is so only with a script."""


def file_left_out(nodeid: str) -> str | None:
    """Why the file of a test is left out."""
    _, _, inside = nodeid.partition("::")[0].partition("tests/journeys/")
    return FILES_LEFT_OUT.get(inside.removesuffix(".py"))


def expected(nodeid: str) -> ExpectedFailure | None:
    found = _named(nodeid, EXPECTED_FAILURES)
    return EXPECTED_FAILURES[found] if found is not None else None


def without_weather(nodeid: str) -> str | None:
    """Why a test is left out."""
    found = _named(nodeid, FREE)
    return FREE[found] if found is not None else None


def weather_of(nodeid: str) -> list[str]:
    """The words for the first requests of a test."""
    if _named(nodeid, FINE) is not None:
        return []
    cut = [] if _named(nodeid, COUNTING) is not None else ["cut"]
    away = [] if _named(nodeid, SHORT) is not None else [f"outage seconds={OUTAGE_SECONDS:g}"]
    return ["429 after=0.05", *cut, *away]


def _named(nodeid: str, names: Iterable[str]) -> str | None:
    """The name by which a test is listed."""
    return next((name for name in names if nodeid.endswith(name) or nodeid.partition("[")[0].endswith(name)), None)
