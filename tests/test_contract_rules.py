"""The contract's table of rules: each names the tests that show it, and a test that is gone or renamed is noticed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parent

RULES: dict[str, tuple[str, ...]] = {
    "claim order, in a tenant and pool": (
        "test_ledger.test_the_urgent_come_first_and_every_fourth_is_the_earliest",
        "test_ledger.test_jobs_of_one_priority_come_in_the_order_of_their_due_times",
        "test_ledger.test_jobs_due_at_the_same_instant_come_in_the_order_of_their_ids",
    ),
    "between tenants": (
        "test_index.test_tenants_take_turns",
        "test_worker.test_every_tenant_has_its_turn",
    ),
    "claim-ahead": (
        "test_slots.test_nothing_is_claimed_ahead_of_jobs_that_are_long_or_unknown",
        "test_concurrency.test_for_a_slot_that_is_busy_nobody_claims_what_needs_a_key",
        "test_worker.test_a_withdrawn_row_that_was_claimed_ahead_never_starts",
        "test_worker_gates.test_a_held_job_claimed_ahead_never_starts",
        "test_ledger.test_a_job_handed_back_before_it_started_had_no_attempt",
        "test_slots.test_a_ticket_that_has_waited_too_long_is_not_begun",
    ),
    "lease / renewal": (
        "test_ledger.test_a_claim_leases_the_job_and_opens_its_first_attempt",
        "test_ledger.test_renewals_stop_at_the_deadline",
        "test_worker.test_leases_are_renewed_while_tasks_hold_every_cpu",
    ),
    "execution timeout": (
        "test_ledger.test_a_lease_that_ends_with_the_deadline_is_a_time_out",
        "test_worker.test_a_task_that_does_not_stop_is_killed",
    ),
    "retries": (
        "test_ledger.test_a_failed_attempt_comes_again_after_its_delay",
        "test_ledger.test_a_job_is_dead_after_its_last_attempt",
        "test_slots.test_a_retry_policy_that_makes_no_sense_is_refused",
    ),
    "slots": ("test_pools.test_a_pool_of_which_nothing_is_said_has_four_exclusive_slots",),
    "poll, hints": (
        "test_index.test_no_order_of_an_empty_claim_and_an_enqueue_strands_the_job",
        "test_index.test_the_sweep_finds_all_work_though_every_hint_was_lost",
    ),
    "reaper": (
        "test_ledger.test_a_lease_is_reaped_at_its_end_and_not_a_millisecond_before",
        "test_worker_parts.test_a_worker_that_dies_right_after_its_claim_is_found_by_the_reapers",
    ),
    "manual retry": (
        "test_ledger_by_hand.test_a_retry_begins_a_new_round_and_keeps_every_attempt",
        "test_ledger_by_hand.test_other_arguments_are_other_work_from_the_beginning",
        "test_ledger_by_hand.test_a_job_whose_outcome_nobody_knows_is_not_sent_again_unasked",
        "test_ledger_by_hand.test_what_has_happened_is_not_sent_again_unless_it_is_forced",
    ),
    "skip / cancel": (
        "test_ledger_refusals.test_cancel_does_what_the_table_of_states_says",
        "test_ledger_by_hand.test_a_skipped_job_is_canceled_and_says_so",
    ),
    "reschedule": (
        "test_ledger_by_hand.test_a_job_for_later_may_run_now",
        "test_ledger_by_hand.test_a_job_may_be_put_off",
        "test_ledger_by_hand.test_a_job_may_be_made_more_urgent",
    ),
    "hold": (
        "test_holds.test_what_is_held_is_not_claimed_until_it_is_released",
        "test_holds.test_a_hold_ends_by_itself_at_its_instant",
    ),
    "start-by expiry": ("test_ledger.test_a_job_that_nobody_started_in_time_is_dead_whoever_finds_it",),
    "instance": (
        "test_instances.test_a_pending_job_keeps_the_time_it_has_left",
        "test_instances.test_a_running_job_loses_its_right_at_once_and_pauses_with_nothing_left",
        "test_instances.test_the_end_cancels_what_is_cleared_and_lets_the_rest_go_on",
        "test_instances.test_jobs_of_tasks_that_are_not_pausable_go_on",
    ),
    "idempotency key": (
        "test_ledger.test_a_kept_key_still_gives_the_job_after_its_end",
        "test_ledger.test_an_active_key_is_free_again_when_the_job_has_ended",
        "test_ledger.test_other_arguments_under_the_same_key_are_refused",
    ),
    "concurrency key": (
        "test_concurrency.test_one_job_of_a_key_runs_at_a_time_and_the_others_keep_nobody_waiting",
        "test_concurrency.test_the_last_word_on_a_limit_counts_and_a_lower_one_lets_the_holders_finish",
        "test_concurrency.test_an_exclusive_job_runs_alone_in_its_instance",
        "test_concurrency.test_a_canceled_job_holds_its_key_until_its_worker_has_stopped",
    ),
    "rate limit": (
        "test_rates.test_no_more_start_in_a_period_than_the_limit_says",
        "test_rates.test_starts_are_counted_over_all_pools",
    ),
    "error text": ("test_worker.test_an_error_text_is_cut_and_its_stack_kept_apart",),
    "retention": (
        "test_retention.test_a_succeeded_job_goes_after_a_day_and_leaves_nothing",
        "test_retention.test_the_oldest_go_before_their_day_when_there_are_too_many",
        "test_retention.test_what_waits_for_a_person_does_not_go",
        "test_retention.test_when_all_jobs_have_gone_nothing_of_them_is_left",
    ),
    "alerts": (
        "test_notices.test_the_first_death_of_a_kind_is_told_ten_seconds_later_with_all_since",
        "test_notices.test_each_notifier_hears_what_died_and_is_called_again_when_it_failed",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_shown_by_tests_that_are_there(rule: str) -> None:
    for name in RULES[rule]:
        module, _, test = name.partition(".")
        assert (HERE / f"{module}.py").exists(), name
        assert callable(getattr(import_module(f"tests.{module}"), test)), name


def test_defaults_are_those_of_the_table() -> None:
    """The numbers that the table promises, where the product keeps them."""
    from tenure.lease.ledger import LEASE_MS
    from tenure.lease.pools import BUILT_IN
    from tenure.lease.retention import DEFAULTS as KEPT
    from tenure.lease.retry import Retry
    from tenure.lease.tasks import DEFAULT_POOL, DEFAULT_TIMEOUT_MS
    from tenure.scripts.fields import DEFAULTS
    from tenure.settings import Settings

    settings, retry = Settings(data=HERE), Retry()
    assert (LEASE_MS, settings.lease_ms, settings.renew_ms, settings.poll_ms) == (
        60_000,
        60_000,
        15_000,
        2_000,
    )
    assert (DEFAULT_TIMEOUT_MS, DEFAULTS["priority"], DEFAULTS["max_lost"]) == (600_000, "5", "3")
    assert [retry.backoff_ms(failures) for failures in (1, 2, 9)] == [30_000, 60_000, 900_000]
    assert (retry.max_attempts, DEFAULT_POOL, BUILT_IN) == (3, "advance", ("advance", "outbound"))
    assert {state: (keep.after_ms, keep.most) for state, keep in KEPT.items()} == {
        "succeeded": (86_400_000, 100_000),
        "canceled": (86_400_000, 100_000),
    }
