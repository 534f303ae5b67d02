"""For every safety check there is an inversion: a test that shows what is done where the check does not stop it.

The list names each check and where it is turned round. What is named here is collected and not skipped, or this fails.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

SETTING = "test_a_run_with_another_value_comes_to_something_else"
AGENT = f"unit/engine/test_no_inert_control.py::{SETTING}"
LOOP = f"unit/service/test_no_inert_setting.py::{SETTING}"
GUARD = "unit/engine/test_guards_inverted.py::test_it_is_the_check_that_stops_it"
WAYS = "unit/engine/test_invariants_of_the_loop.py"
APPROVALS = "unit/service/commands/test_approvals.py"
OWN_APPROVALS = "hostile/test_own_approvals.py"
PROGRAMS = "hostile/test_planted_programs.py"
CODE = "hostile/test_planted_code.py"
ANCHOR = "unit/store/sqlite/test_anchor.py"
STOPPED = "crash/test_stopped_effects.py"
DELEGATION = "unit/engine/test_delegation.py"

WORLDS = "unit/runtime/test_simulation.py"

CONTROLS: dict[str, tuple[str, ...]] = {
    # --- the daemon
    "no command operates the daemon, whatever holds it and whatever network it has": (
        "hostile/test_commands_and_the_daemon.py::test_inversion_the_same_program_without_a_wall_reaches_all_of_it",
        "hostile/test_commands_and_the_daemon.py::test_inversion_landlock_without_the_filter_leaves_the_socket_open",
    ),
    "a daemon that is killed under load: what breaks a promise is seen": (
        "crash/test_daemon_kills.py::test_inversion_a_store_that_forgets_is_caught",
        "crash/test_daemon_kills.py::test_inversion_clients_without_keys_and_cursors_are_caught",
    ),
    "whoever is given what is committed here reads the log where another process has written": (
        "unit/store/test_watches.py::test_inversion_facts_of_a_watch_that_does_not_hear_of_the_others_have_a_gap",
    ),
    "those who read what is stored take turns, and a message does not wait for them": (
        "unit/service/queries/test_replay_queue.py::test_inversion_without_turns_a_message_waits_for_each_of_them",
    ),
    "a head has an end, and what comes after a body says nothing about its request": (
        "unit/surfaces/http/test_peer_protocol.py::test_inversion_without_the_count_a_head_is_held_whatever_its_size",
        "unit/surfaces/http/test_peer_protocol.py"
        "::test_inversion_the_parser_takes_headers_after_a_body_for_headers_of_the_request",
    ),
    "connections that ask for nothing leave room to those that do": (
        "unit/surfaces/http/test_peer_protocol.py::test_inversion_without_the_bound_all_of_them_are_held",
    ),
    "a page of another site has no say": (
        "hostile/test_cross_site_page.py::test_inversion_a_program_with_the_same_token_is_served",
    ),
    # --- the runtime
    "messages that are sent at once are not looked up, and none of them takes the place of another": (
        "unit/store/sqlite/test_writing.py::test_inversion_a_row_that_is_put_takes_the_place_of_the_one_that_is_there",
    ),
    "nothing in a backup leads out of the home": (
        "unit/service/backups/test_archive.py::test_inversion_the_same_archive_without_anything_planted_is_unpacked",
        "unit/service/backups/test_archive.py"
        "::test_inversion_without_its_rules_a_backup_would_bring_secrets_of_its_own",
    ),
    "a code of a button decides about its own approval, with its own arguments": (
        "unit/decisions/test_channels.py::test_inversion_the_code_of_this_approval_with_these_arguments_is_taken",
    ),
    "words from a phone are about one question, and are not the operator's": (
        "unit/decisions/test_channel_answers.py::test_inversion_the_code_of_this_question_is_taken",
        "journeys/test_channels.py::test_inversion_the_same_answer_typed_at_the_terminal_is_the_operators",
    ),
    "notices go to no address of this network": (
        "unit/runtime/test_notices.py::test_inversion_an_address_that_is_allowed_is_spoken_to",
    ),
    "a request with a key is begun in the log before it is carried out": (
        "unit/service/commands/test_keyed_requests.py"
        "::test_inversion_without_its_begin_a_request_that_was_cut_off_is_done_twice",
    ),
    "an override of a model reaches the agents that its agent makes": (
        "unit/runtime/test_child_models.py"
        "::test_inversion_an_agent_that_nobody_made_keeps_the_model_that_was_taken_from_another",
    ),
    "what is behind a child is behind all that it tells": (
        "hostile/test_children.py::test_inversion_the_briefs_of_a_child_that_read_what_is_the_operators_are_not",
    ),
    "a child has the folders of its parent, and speaks with nobody else": (
        "hostile/test_children.py::test_inversion_a_folder_that_is_its_parents_is_not_asked_about",
        "hostile/test_children.py::test_inversion_its_own_parent_may",
    ),
    "what a private child says is its parent's to hear": (
        "unit/runtime/test_child_notices.py"
        "::test_inversion_the_same_of_an_agent_that_is_nobodys_child_is_told_to_people",
    ),
    "a daemon loads nothing of another version": (
        "unit/sandbox/test_package_files.py"
        "::test_inversion_a_process_that_does_not_hold_its_package_loads_parts_of_the_other_one",
    ),
    "a wake that was lost is found": (
        "unit/runtime/test_liveness.py::test_inversion_without_the_watchdog_a_lost_wake_is_never_found",
    ),
    "simulated lives: each invariant sees what breaks it": (
        *(
            f"{WORLDS}::test_inversion_a_broken_store_is_caught[{broken}-]"
            for broken in ("Forgetful", "Deaf", "Trusting", "Careless", "Laundering", "Skipping")
        ),
        f"{WORLDS}::test_inversion_a_tool_that_repeats_its_effect_is_caught",
        f"{WORLDS}::test_inversion_a_model_that_costs_more_than_it_says_is_caught",
    ),
    "retention: what is open is not touched": (
        "unit/runtime/test_retention.py::test_inversion_a_rule_that_does_not_ask_for_open_turns_takes_what_they_need",
    ),
    "signatures of deliveries": (
        "unit/runtime/test_trigger_inversions.py::test_inversion_without_a_signature_the_same_forged_body_is_taken",
        "unit/runtime/test_trigger_inversions.py::test_inversion_without_an_id_each_copy_counts",
        "unit/runtime/test_trigger_inversions.py::test_inversion_with_the_clock_at_its_time_an_old_delivery_is_taken",
    ),
    "an address that is made after a backup does not follow from it": (
        "unit/runtime/test_trigger_inversions.py"
        "::test_inversion_without_a_salt_the_next_address_follows_from_an_older_copy",
    ),
    # --- memory
    "no link, and nothing but a plain file, where the runtime reads and writes in an agent's home": (
        "hostile/test_agent_homes.py::test_inversion_the_same_words_in_a_plain_file_are_found",
        "hostile/test_agent_homes.py::test_inversion_the_plan_that_the_agent_wrote_is_read",
    ),
    "whose entries a chat finds, and who finds all": (
        "unit/runtime/test_memory.py::test_a_chat_finds_what_is_its_own_and_main_finds_all",
        "unit/runtime/test_memory.py::test_a_strangers_message_finds_what_is_the_agents_own_and_nothing_of_its_people",
    ),
    "a tainted entry, and a turn that was shown none": (
        "unit/runtime/test_corrected_memory.py::test_a_tainted_entry_makes_the_turn_one_with_untrusted_input",
    ),
    "a worktree that holds work is kept": (
        "unit/workspaces/test_worktrees.py::test_inversion_without_the_look_at_commits_they_are_lost_with_the_branch",
        "unit/workspaces/test_worktrees.py"
        "::test_inversion_without_force_git_itself_refuses_what_changed_after_the_look",
    ),
    # --- the gate
    "one gate: a class that is off, on every path": (
        f"{WAYS}::test_on_every_path_a_class_that_is_off_is_out_of_reach_and_a_person_is_asked",
    ),
    "one gate: a deny wins, on every path": (
        f"{WAYS}::test_one_gate_judges_every_execution_and_its_deny_beats_every_later_word",
    ),
    "each layer of the gate": (
        "unit/decisions/policy/test_verdict.py::test_each_layer_alone_stops_a_call_that_passes_without_it",
        "unit/decisions/policy/test_verdict.py::test_a_gate_that_lost_a_layer_is_found_out",
    ),
    "the verdict is the only thing that lets a call through": (
        "unit/gate/test_one_verdict.py::test_inversion_without_the_layer_the_same_calls_reach_their_tools",
    ),
    "a search of the provider's own, after private and untrusted input": (
        "unit/tools/test_web_search.py::test_inversion_after_untrusted_and_private_input_no_search_is_offered",
    ),
    "a gate that fails is shut": (
        f"{WAYS}::test_a_gate_hook_validator_or_approver_that_raises_or_answers_nonsense_denies",
    ),
    "a tool never decides": (
        "journeys/test_store_in_python.py::test_a_tool_may_not_decide_and_the_same_line_outside_one_may",
        "journeys/test_store_reasons.py::test_a_tool_may_neither_revoke_nor_grant_and_the_same_lines_outside_one_may",
        "unit/surfaces/library/test_tool_refusals.py::test_a_tool_may_not_and_the_same_line_outside_one_may",
    ),
    "hooks": (
        f"{AGENT}[hooks]",
        "contract/hosts/abilities/test_registry.py::test_inversion_without_the_decision_the_same_call_runs",
    ),
    "rules": (f"{AGENT}[policy.rules.decision]", f"{AGENT}[policy.rules.match]"),
    "rules about commands, in a batch": (
        "hostile/test_model_and_command_rules.py::test_what_is_denied_or_asked_for_one_command_is_so_in_a_batch",
        "hostile/test_model_and_command_rules.py::test_a_batch_is_allowed_only_where_each_of_its_commands_is",
    ),
    "rules about commands, in another shell": (
        "hostile/test_model_and_command_rules.py::test_an_allow_that_names_no_command_means_every_way_to_run_one",
    ),
    "tools of servers that say nothing of themselves": (
        "unit/tools/mcp/test_in_a_run.py::test_with_a_class_that_does_not_ask_the_same_call_runs_unasked",
    ),
    "a stream's end in memory is what the database says": (
        "unit/store/sqlite/test_writing.py"
        "::test_an_owner_that_is_alone_goes_on_from_what_another_process_wrote_meanwhile",
        "unit/store/sqlite/test_writing.py::test_an_owner_that_is_alone_and_was_replaced_writes_nothing_more",
    ),
    "threads in memory are what the log says": (
        "unit/engine/test_warm_threads.py::test_a_thread_that_somebody_else_went_on_with_is_read_again",
    ),
    "a turn that its caller opened keeps its place": (
        "contract/store/test_queued_messages.py::test_a_turn_that_its_caller_opened_is_not_overtaken",
    ),
    "a thread is claimed by one at a time": (
        "contract/store/test_queued_messages.py::test_a_thread_in_which_a_turn_runs_opens_no_other",
    ),
    "a number of a process that was given again": (
        "unit/processes/test_process_identity.py::test_by_its_number_alone_the_other_process_would_have_been_ended",
    ),
    "rules about commands, typed into one": (
        "hostile/test_model_and_tasks.py::test_without_a_rule_what_is_typed_runs",
    ),
    "taint of what a task writes after its call": (
        "hostile/test_model_and_tasks.py::test_what_a_task_of_a_tainted_turn_writes_later_is_tainted[True]",
        "hostile/test_model_and_tasks.py::test_what_a_task_of_a_tainted_turn_writes_later_is_tainted[False]",
    ),
    "what a task's command said is not the owner's word": (
        "unit/decisions/test_task_ends.py::test_what_a_command_said_is_never_the_owners_word",
    ),
    "a task's key and socket are hidden from commands": (
        "unit/processes/test_supervised_commands.py"
        "::test_a_command_reads_no_key_of_a_task_and_gets_no_answer_at_its_socket[False-bubblewrap]",
    ),
    "stores are their owner's": (
        "unit/store/sqlite/test_file_rights.py::test_a_store_that_others_could_read_is_narrowed_when_it_is_opened",
    ),
    "secret-shaped text in views": (
        "unit/decisions/test_secret_shapes.py::test_views_hide_it_and_the_run_itself_does_not",
    ),
    "one call does not stop the process": (
        "hostile/test_schema_bombs.py::test_without_the_bounds_a_pattern_and_a_schema_would_take_for_ever",
        "unit/decisions/test_schema_validator.py::test_without_the_limit_each_level_would_take_twice_as_long",
    ),
    "provenance": (f"{AGENT}[policy.provenance.all_three]", f"{AGENT}[policy.provenance.external_evidence]"),
    "arguments that are not the owner's": (
        f"{AGENT}[policy.provenance.derived]",
        "hostile/test_derived_arguments.py::test_without_the_declaration_the_same_letter_goes_to_whom_it_likes",
        "hostile/test_injections.py::test_with_tools_that_declare_nothing_nearly_every_attack_acts",
    ),
    "the home and the settings in a workspace": (
        f"{OWN_APPROVALS}::test_file_tools_reach_neither_the_home_nor_the_settings_of_the_owner",
        f"{OWN_APPROVALS}::test_file_tools_do_not_reach_the_home_of_the_runtime_they_run_in",
    ),
    "sockets by other names": (
        "hostile/test_neighbours.py::test_a_socket_with_a_name_that_only_its_owner_understands_is_not_reached",
    ),
    "folders of hooks that included settings name": (
        "hostile/test_repositories.py::test_a_folder_of_hooks_that_an_included_file_names_is_held",
    ),
    "taint in files": (
        "hostile/test_tainted_files.py::test_what_the_owner_or_an_untainted_turn_wrote_is_the_owners",
        "hostile/test_tainted_files.py"
        "::test_what_a_command_makes_of_tainted_files_is_tainted_in_a_turn_that_has_read_nothing_itself",
        "hostile/test_tainted_files.py::test_an_error_that_quotes_a_tainted_file_is_untrusted",
    ),
    "guidance is accepted by digest": (
        "hostile/test_tainted_files.py::test_guidance_and_skills_are_untrusted_until_the_owner_accepted_them",
    ),
    "servers that a workspace names are accepted by digest": (
        "unit/engine/test_named_servers.py::test_a_file_of_the_workspace_counts_only_as_it_was_trusted",
    ),
    "commands that nothing holds": (f"{AGENT}[policy.tools.unconfined]", f"{AGENT}[sandbox.confinement]"),
    "attachments that a model cannot take": (
        "unit/providers/test_attachments.py::test_it_is_the_profile_and_the_wire_that_keep_it_from_being_sent",
    ),
    "injected fields stay out": (
        "unit/service/test_injected_fields.py::test_without_the_configuration_the_same_words_do_reach_it",
    ),
    # --- what is sent
    "requests fit the vendors' types": (
        "unit/providers/test_sent_by_the_runtime.py::test_inversion_a_request_that_is_not_the_vendors_is_refused",
        "unit/providers/test_sent_by_the_runtime.py"
        "::test_inversion_a_cache_key_for_every_model_is_refused_by_anthropics_types",
    ),
    "headers of one provider stay there": (
        "unit/providers/test_sent_by_the_runtime.py::test_inversion_the_same_provider_is_sent_its_own_headers",
        "unit/providers/test_sent_by_the_runtime.py"
        "::test_inversion_another_server_of_the_same_name_is_sent_no_headers_of_ones_own",
    ),
    "keys are no settings": (
        "unit/contracts/test_model_settings.py::test_inversion_a_header_that_is_no_key_is_stored_and_sent",
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
        "unit/service/client_tools/test_lifecycle.py::test_inversion_a_store_that_lets_everybody_win_continues_the_run_twice",
    ),
    "approvals are bound to what was seen": (
        "unit/gate/test_approval_binding.py::test_without_the_binding_the_changed_call_would_run",
    ),
    "who may decide": (f"{APPROVALS}::test_without_named_approvers_anybody_may",),
    "no agent approves itself": (
        f"{OWN_APPROVALS}::test_without_a_sandbox_the_same_line_decides",
        f"{OWN_APPROVALS}::test_where_landlock_is_told_of_the_whole_folder_the_same_line_decides",
        f"{OWN_APPROVALS}::test_a_store_with_a_second_name_in_the_workspace_stops_commands",
    ),
    "a command that nothing confines asks": (
        f"{OWN_APPROVALS}::test_a_command_that_nothing_confines_asks_unless_the_owner_says_otherwise",
    ),
    # --- what runs in the runtime or beside it
    "planted programs": (
        f"{PROGRAMS}::test_a_program_planted_in_the_workspace_is_started_neither_in_this_session_nor_in_the_next",
        f"{PROGRAMS}::test_a_link_from_elsewhere_into_a_write_root_is_passed_over",
        f"{PROGRAMS}::test_a_bubblewrap_that_other_users_could_exchange_is_not_used",
    ),
    "terminals of other programs": (f"{PROGRAMS}::test_the_terminal_of_another_program_is_out_of_reach",),
    "planted code": (
        f"{CODE}::test_without_a_sandbox_each_of_them_is_written",
        f"{CODE}::test_what_an_agent_writes_on_the_search_path_is_not_imported_in_the_middle_of_a_run",
        f"{CODE}::test_the_command_line_imports_no_module_that_an_agent_made_or_changed",
        f"{CODE}::test_a_file_in_the_current_folder_takes_the_place_of_no_library",
        f"{CODE}::test_hooks_of_a_package_that_an_agent_may_have_made_are_not_loaded",
    ),
    # --- children
    "subset rule: safe for children": (f"{GUARD}[subset rule: safe for children]",),
    "subset rule: the parent's own tools": (f"{GUARD}[subset rule: the parent's own tools]",),
    "children of one call": (f"{AGENT}[max_parallel_subagents]", f"{GUARD}[at most seven children of a call]"),
    "the parallel tool is off": (f"{AGENT}[allow_parallel_subagents]",),
    # --- budget
    "each limit of the one budget": ("unit/engine/test_tree_budgets.py::test_with_room_the_same_tree_is_not_stopped",),
    "no overspending together": (
        "unit/decisions/test_trees.py::test_without_a_limit_the_same_check_finds_it_exceeded",
    ),
    "steps": (f"{AGENT}[max_steps]",),
    "context budget": (
        f"{AGENT}[budget_awareness]",
        "unit/engine/test_budget_awareness.py::test_where_compaction_does_not_help_the_run_ends_with_a_result",
    ),
    "time in which the process was stopped": (
        "crash/test_suspension.py::test_the_time_for_which_a_process_was_stopped_is_not_counted",
    ),
    "money": (f"{AGENT}[budget.usd]", f"{AGENT}[budget.unpriced_token_ceiling]"),
    "windows of spending": (
        "unit/service/commands/test_spend_windows.py::test_without_the_window_the_same_run_spends_all_of_it",
    ),
    # --- what stays apart
    "the planner's conversation stays its own": (
        f"{WAYS}::test_nothing_the_planner_said_called_or_saw_is_in_the_executors_messages_or_in_the_plan",
    ),
    # --- providers
    "reasoning goes to its own server": (
        "unit/providers/openai_chat/test_reasoning_runs.py"
        "::test_inversion_without_an_owner_reasoning_would_go_to_anybody",
    ),
    "a call that its provider refused is not run": (
        "unit/providers/openai_chat/test_reasoning_runs.py"
        "::test_inversion_the_same_call_runs_where_the_provider_did_not_refuse_it",
    ),
    "the end of the log": (
        f"{ANCHOR}::test_inversion_without_the_anchor_the_same_flipped_bit_rewinds_the_log_without_a_word",
        f"{ANCHOR}::test_inversion_without_a_key_that_forger_is_not_found",
    ),
    "an older program adds nothing to a store that was updated": (
        "unit/store/sqlite/test_older_rows.py::test_no_program_of_an_older_version_adds_rows_of_the_old_form",
        "unit/store/sqlite/test_older_rows.py::"
        "test_inversion_without_the_lock_rows_of_the_old_form_get_into_a_stream_that_went_on",
    ),
    "the store is still there": (
        "unit/service/test_lost_stores.py::test_inversion_where_nobody_looks_the_effect_happens_and_its_intent_is_in_no_store",
    ),
    "owners that may be alive": (
        f"{STOPPED}::test_inversion_taken_for_dead_the_probe_is_believed_and_the_effect_happens_twice",
        f"{STOPPED}::test_inversion_without_asking_for_the_lease_the_woken_owner_changes_what_its_successor_wrote",
        "unit/store/sqlite/test_forks.py::test_inversion_a_child_that_keeps_the_lock_makes_its_dead_parent_look_alive",
    ),
    "a message is run by its own caller": (
        "contract/store/test_claims.py::test_inversion_without_a_reservation_the_turn_is_anybodys_who_asks_first",
    ),
    "a thread has one owner": (
        "unit/store/sqlite/test_opening.py::test_a_lease_by_agent_becomes_one_for_each_thread_in_which_something_is_open",
        "unit/service/commands/test_turns.py::test_inversion_a_thread_whose_lease_nobody_minds_is_run_by_two_at_once",
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
        "unit/gate/test_locks.py::test_without_its_locks_they_run_together",
    ),
    "width": (
        f"{LOOP}[MAX_PARALLEL_PER_TURN]",
        f"{DELEGATION}::test_the_whole_tree_shares_one_number_of_slots_and_waiting_for_a_child_takes_none[8]",
    ),
    "sibling isolation: a failure": (
        "unit/engine/test_interrupts.py::test_a_tool_says_what_its_failure_does_to_the_calls_beside_it[cancel_siblings]",
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
    "secrets in previews": ("unit/views/test_tree.py::test_without_learning_the_secrets_the_echo_would_be_shown",),
    # --- around commands
    "planting in repositories": (
        "hostile/test_repositories.py::test_git_runs_nothing_that_a_command_planted_in_a_nested_repository[bubblewrap-hook]",
        "hostile/test_repositories.py::test_a_repository_that_a_command_made_runs_nothing[bubblewrap-a repository]",
        "hostile/test_repositories.py::test_hooks_that_are_files_of_the_project_are_held_and_come_from_remotes_only[bubblewrap]",
    ),
    "history is not lost": ("hostile/test_repositories.py::test_no_command_loses_history[bubblewrap-removed]",),
    "other processes' limits": (
        "hostile/test_neighbours.py::test_limits_and_priorities_of_other_processes_stay_as_they_are",
    ),
    "setuid files": (
        "hostile/test_neighbours.py::test_no_file_that_runs_as_its_owner_is_left_in_the_workspace[bubblewrap-chmod]",
    ),
    "IPC objects": ("hostile/test_neighbours.py::test_system_v_objects_are_the_commands_own_or_refused",),
    "shared memory": (
        "hostile/test_neighbours.py::test_memory_that_no_process_has_for_itself_counts[bubblewrap-memfd]",
    ),
    "growth": (
        "hostile/test_neighbours.py::test_the_folders_that_may_be_written_do_not_grow_without_end[bubblewrap-files]",
    ),
    "sockets in files": (
        "hostile/test_neighbours.py::test_programs_that_listen_at_a_file_outside_are_not_reached[none]",
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
    for tests in ((), ("unit/engine/test_delegation.py::test_nobody_wrote",), (f"{LOOP}[MAX_NOTHING]",)):
        with pytest.raises(AssertionError, match="not collected"):
            turned_round({"some check": tests}, collected)
