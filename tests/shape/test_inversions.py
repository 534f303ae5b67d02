"""For every safety check there is an inversion: a test that shows what is done where the check does not stop it.

The list names each check and where it is turned round. What is named here is collected and not skipped, or this fails.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

SETTING = "test_a_run_with_another_value_comes_to_something_else"
AGENT = f"unit/agents/test_no_inert_control.py::{SETTING}"
LOOP = f"unit/service/test_no_inert_setting.py::{SETTING}"
GUARD = "unit/agents/test_guards_inverted.py::test_it_is_the_check_that_stops_it"
WAYS = "unit/agents/test_invariants_of_the_loop.py"
APPROVALS = "unit/service/test_approvals.py"
DELEGATION = "unit/agents/test_delegation.py"

CONTROLS: dict[str, tuple[str, ...]] = {
    # --- the gate
    "one gate: a class that is off, on every path": (
        f"{WAYS}::test_on_every_path_a_class_that_is_off_is_out_of_reach_and_a_person_is_asked",
    ),
    "one gate: a deny wins, on every path": (
        f"{WAYS}::test_one_gate_judges_every_execution_and_its_deny_beats_every_later_word",
    ),
    "each layer of the gate": (
        "unit/decisions/policy/test_judging.py::test_each_layer_alone_stops_a_call_that_passes_without_it",
        "unit/decisions/policy/test_judging.py::test_a_gate_that_lost_a_layer_is_found_out",
    ),
    "a gate that fails is shut": (
        f"{WAYS}::test_a_gate_hook_validator_or_approver_that_raises_or_answers_nonsense_denies",
    ),
    "hooks": (
        f"{AGENT}[hooks]",
        "unit/service/test_abilities.py::test_inversion_without_the_decision_the_same_call_runs",
    ),
    "rules": (f"{AGENT}[policy.rules.decision]", f"{AGENT}[policy.rules.match]"),
    "provenance": (f"{AGENT}[policy.provenance.all_three]", f"{AGENT}[policy.provenance.external_evidence]"),
    "commands that nothing holds": (f"{AGENT}[policy.tools.unconfined]", f"{AGENT}[sandbox.confinement]"),
    "injected fields stay out": (
        "unit/service/test_injected_fields.py::test_without_the_configuration_the_same_words_do_reach_it",
    ),
    # --- people
    "tools that need a person": (
        f"{APPROVALS}::test_without_the_list_the_same_call_runs_unasked",
        "hostile/test_model_and_gate.py::test_without_the_list_of_what_needs_a_person_the_command_runs",
    ),
    "tools that need a person, in children": (f"{WAYS}::test_what_needs_a_person_needs_one_in_a_child",),
    "approval default": (f"{GUARD}[approval default]", f"{APPROVALS}::test_only_an_explicit_yes_executes"),
    "approvals expire": (f"{GUARD}[an approval in time]", f"{AGENT}[approval_expiry]"),
    "approvals are decided once": (
        f"{GUARD}[the first word holds]",
        "unit/service/test_runtime_tools.py::test_inversion_a_store_that_lets_everybody_win_continues_the_run_twice",
    ),
    "approvals are bound to what was seen": (
        "unit/mediation/test_binding.py::test_without_the_binding_the_changed_call_would_run",
    ),
    "who may decide": (f"{APPROVALS}::test_without_named_approvers_anybody_may",),
    # --- children
    "subset rule: safe for children": (f"{GUARD}[subset rule: safe for children]",),
    "subset rule: the parent's own tools": (f"{GUARD}[subset rule: the parent's own tools]",),
    "children of one call": (f"{AGENT}[max_parallel_subagents]", f"{GUARD}[at most seven children of a call]"),
    "the parallel tool is off": (f"{AGENT}[allow_parallel_subagents]",),
    # --- budget
    "each limit of the one budget": ("unit/agents/test_tree_budgets.py::test_with_room_the_same_tree_is_not_stopped",),
    "no overspending together": (
        "unit/decisions/test_trees.py::test_without_a_limit_the_same_check_finds_it_exceeded",
    ),
    "steps": (f"{AGENT}[max_steps]",),
    "context budget": (
        f"{AGENT}[budget_awareness]",
        "unit/agents/test_budget_awareness.py::test_where_compaction_does_not_help_the_run_ends_with_a_result",
    ),
    "money": (f"{AGENT}[budget.usd]", f"{AGENT}[budget.unpriced_token_ceiling]"),
    "windows of spending": ("unit/service/test_spending.py::test_without_the_window_the_same_run_spends_all_of_it",),
    # --- what stays apart
    "the planner's conversation stays its own": (
        f"{WAYS}::test_nothing_the_planner_said_called_or_saw_is_in_the_executors_messages_or_in_the_plan",
    ),
    "an effect is not repeated": (
        "crash/test_controls.py::test_without_the_intent_the_kills_find_effects_that_are_lost_and_repeated",
    ),
}
"""The checks of an agent's controls: gate, people, children, budget."""

THE_LOOP: dict[str, tuple[str, ...]] = {
    # --- what a tool may be called with, and by whom
    "permission class": (f"{LOOP}[tool.permission_class]", f"{LOOP}[policy.tools.classes]"),
    "classes that ask": (f"{LOOP}[policy.tools.ask]",),
    "servers that are named": (f"{LOOP}[policy.tools.allowed_mcp_servers]",),
    "only what is in the belt": (f"{GUARD}[only what is there is called]", f"{LOOP}[run_subtask.tools]"),
    "arguments fit their schema": (f"{GUARD}[arguments that fit]", f"{LOOP}[manifest.parameters]"),
    "inside the workspace": (f"{GUARD}[inside the workspace]", f"{LOOP}[policy.tools.workspace_root]"),
    "places in it that nobody writes": (
        "unit/workspaces/test_workspace.py::test_without_its_list_the_same_names_are_written",
    ),
    # --- side by side
    "writers run alone": (f"{LOOP}[tool.parallel_safe]",),
    "locks": (
        f"{LOOP}[tool.requires_exclusive_lock]",
        f"{DELEGATION}::test_two_calls_with_one_lock_never_overlap_whatever_level_they_are_of[False]",
        "unit/mediation/test_locks.py::test_without_its_locks_they_run_together",
    ),
    "width": (
        f"{LOOP}[MAX_PARALLEL_PER_TURN]",
        f"{DELEGATION}::test_the_whole_tree_shares_one_number_of_slots_and_waiting_for_a_child_takes_none[8]",
    ),
    "sibling isolation: a failure": (
        "unit/agents/test_interrupts.py::test_a_tool_says_what_its_failure_does_to_the_calls_beside_it[cancel_siblings]",
    ),
    "sibling isolation: notes": (f"{GUARD}[sibling isolation: notes]",),
    # --- children
    "depth": (f"{LOOP}[MAX_DEPTH]", f"{DELEGATION}::test_with_another_limit_the_depth_is_another"),
    "a list of tools is the whole belt": (
        f"{GUARD}[subset rule: nothing beyond the list]",
        f"{DELEGATION}::test_a_child_without_a_list_has_what_its_parent_has",
    ),
    "results fit their schema": (f"{GUARD}[a result that fits its schema]", f"{LOOP}[MAX_SCHEMA_RETRIES]"),
    "notes of the runtime alone": (f"{GUARD}[notes of the runtime alone]",),
    # --- budgets
    "rounds of a level": (f"{LOOP}[MAX_ITERATIONS_PER_LEVEL]",),
    "subtasks": (f"{LOOP}[MAX_TOTAL_SUBTASKS]",),
    "model calls": (f"{LOOP}[MAX_TOTAL_LLM_CALLS]",),
    "tool calls": (f"{LOOP}[MAX_TOTAL_TOOL_CALLS]",),
    "wall clock": (f"{LOOP}[MAX_WALL_CLOCK_MS]",),
    "bytes of a result": (f"{LOOP}[MAX_TOOL_RESULT_BYTES]",),
    "tokens of the history": (f"{LOOP}[MAX_HISTORY_TOKENS]",),
    # --- workflows
    "graphs hold together": ("unit/service/test_workflow_registry.py::test_without_the_check_it_would_be",),
    "size of a graph": (f"{LOOP}[MAX_NODES]", f"{LOOP}[MAX_EDGES]", f"{LOOP}[MAX_GRAPH_BYTES]"),
    "corrections of a plan": (f"{LOOP}[MAX_CORRECTIONS]",),
    "a name takes nobody's workflow": ("unit/service/test_workflow_registry.py::test_by_its_name_alone_it_would",),
    # --- clients
    "whose thread it is": (f"{GUARD}[a thread is its first speaker's]",),
    "an answer to what was asked": (f"{LOOP}[result.request_id]", f"{LOOP}[result.ok]"),
    "a client's tools in an editor alone": (f"{GUARD}[a client's tools in an editor alone]",),
    "a context that cannot be read": (f"{LOOP}[media_generation.mode]", f"{LOOP}[chat_context.kind]"),
    "secrets in previews": (
        "unit/decisions/views/test_tree.py::test_without_learning_the_secrets_the_echo_would_be_shown",
    ),
}
"""The checks of the loop: what may be called, what runs together, children, budgets, workflows, clients."""


UNSURE = ("skip", "skipif", "xfail")


@pytest.fixture(scope="module")
def collected(root: Path, request: pytest.FixtureRequest) -> set[str]:
    """The tests of every file that is named, without those that are skipped or may fail."""
    named = {test for tests in (*CONTROLS.values(), *THE_LOOP.values()) for test in tests}
    items = request.session.items
    here = {item.nodeid for item in items if not any(item.get_closest_marker(mark) for mark in UNSURE)}
    found = {node.removeprefix("tests/") for node in here}
    return _collected(root, named) if absent(named, found) else found


def absent(tests: Iterable[str], found: set[str]) -> list[str]:
    """Those that are not among them; one that is named without its case is there with any."""
    bare = {node.partition("[")[0] for node in found}
    return [test for test in tests if test not in found and ("[" in test or test not in bare)]


def _collected(root: Path, named: set[str]) -> set[str]:
    """What a run of their files would run."""
    files = sorted({f"tests/{test.partition('::')[0]}" for test in named})
    marks = " and ".join(f"not {mark}" for mark in UNSURE)
    asking = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", marks)
    done = subprocess.run([*asking, *files], cwd=root, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}


def turned_round(checks: dict[str, tuple[str, ...]], collected: set[str]) -> None:
    missing = {check: lost for check, tests in checks.items() if (lost := absent(tests or ("no test",), collected))}
    assert missing == {}, "checks whose inversion is not collected"


@pytest.mark.spec("CTL-INV-10")
def test_each_check_of_the_controls_has_an_inversion_that_is_run(collected: set[str]) -> None:
    turned_round(CONTROLS, collected)
    for named in ("one gate", "subset rule", "approval default", "each limit of the one budget"):
        assert any(check.startswith(named) for check in CONTROLS), named


@pytest.mark.spec("LOOP-INV-08")
def test_each_check_of_the_loop_has_an_inversion_that_is_run(collected: set[str]) -> None:
    turned_round(THE_LOOP, collected)


def test_a_check_without_one_is_named(collected: set[str]) -> None:
    """The inversion of the list itself."""
    for tests in ((), ("unit/agents/test_delegation.py::test_nobody_wrote",), (f"{LOOP}[MAX_NOTHING]",)):
        with pytest.raises(AssertionError, match="not collected"):
            turned_round({"some check": tests}, collected)
