//! One test for each statement about adaptive connections in their origin, the documentation of
//! Inspect AI:
//!
//! | statement | test |
//! |---|---|
//! | starts at 20 and scales between 4 and 200; a high max is harmless | `starts_at_20_between_4_and_200` |
//! | one controller per model | `pool::each_key_has_one_pool_with_its_first_limits` |
//! | doubles in slow start until the first rate-limit episode | `doubles_per_clean_round_until_the_first_rejection`, `slow_start_ends_at_a_rejection_without_a_cut` |
//! | max is the ceiling, min the floor | `never_grows_beyond_max`, `never_shrinks_below_min_nor_below_one` |
//! | `min-max` (start 20, clamped), `min-start-max`, `true`, `false`, a number | `connections::parses_every_form` |
//! | errors in a shorthand | `connections::each_invalid_shorthand_has_its_own_message` |
//! | max is about requests per minute × seconds / 60 | `as_many_in_flight_as_keep_a_rate_busy` in `bakeoff-llm` |
//! | 429, `ThrottlingException`, `RESOURCE_EXHAUSTED` are rate limits; other 5xx, timeouts and the network are transient; by provider | the table of failures in `bakeoff-llm` |
//! | a rate limit shrinks by `decrease_factor` | `rejection_cuts_to_80_percent_rounded_down` |
//! | a burst is one cut | `one_burst_is_one_cut`, `rejection_ends_the_round` |
//! | a transient retry pauses growth and does not shrink; its success does not count | `transient_failure_pauses_growth_and_never_shrinks`, `refused_and_dropped_requests_are_neutral` |
//! | at least `cooldown_seconds` between cuts | `next_cut_waits_for_the_cooldown`, `nothing_counts_during_the_cooldown` |
//! | Retry-After extends the cooldown | `retry_after_extends_the_cooldown_and_never_shortens_it`, and three tests of long and repeated hints |
//! | else the reset headers of OpenAI, Groq, Azure and Anthropic do | `each_reset_header_extends_the_cooldown`, `longest_reset_counts_only_without_retry_after` |
//! | a success after a retry is neutral | `answer_after_a_retry_is_neutral` |
//! | a cache hit is neutral | `an_answer_from_the_cache_moves_no_window` in `bakeoff-llm` |
//! | the three tunables | `cooldown_is_configurable`, `decrease_factor_is_configurable_and_exact`, `growth_is_configurable` |
//! | growth in steady state is a share of the limit | `steady_growth_is_a_share_of_the_limit_and_at_least_one` |
//! | history: time, model, old and new limit, reason; live as well | `changes_carry_their_time_and_are_returned_once`, `pool::limit_changes_carry_model_and_time`, `limit_changes_are_logged_streamed_and_summarized` in `bakeoff` |
//! | only `rate_limit` is a scale-down | `only_rejections_shrink_the_limit` |
//! | the trials in preparation follow the limit, with a small buffer | `trials_in_preparation_follow_the_window` in `bakeoff-eval` |

use super::*;
use crate::{PermitRequest, RunTag, Scheduler, read_quota};
use std::collections::HashMap;
use std::time::SystemTime;

mod growth;
mod rejections;
mod tunables;

/// A strategy and a scripted provider.
struct AdaptiveRun {
    adaptive: AdaptivePolicy,
    now: Duration,
    in_flight: u32,
}

fn run(config: AdaptiveConfig) -> AdaptiveRun {
    AdaptiveRun { adaptive: AdaptivePolicy::new(config), now: Duration::ZERO, in_flight: 0 }
}

fn bounded(min: u32, start: u32, max: u32) -> AdaptiveRun {
    run(AdaptiveConfig { bounds: crate::AdaptiveBounds { min, start, max }, ..Default::default() })
}

fn clean() -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage: None, clean: true }
}

fn after_retry() -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage: None, clean: false }
}

fn rejected() -> SendOutcome {
    SendOutcome::Rejected { quota: Quota::default() }
}

/// Returns a rejection with that `Retry-After` in seconds.
fn rejected_for(seconds: u64) -> SendOutcome {
    let retry_after = Some(Duration::from_secs(seconds));
    SendOutcome::Rejected { quota: Quota { retry_after, ..Quota::default() } }
}

impl AdaptiveRun {
    fn limit(&self) -> u32 {
        self.adaptive.limit()
    }

    fn view(&self) -> PoolView {
        PoolView { now: self.now, in_flight: self.in_flight, waiting: 1000 }
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn is_open(&mut self) -> bool {
        self.adaptive.gate(self.view(), TokenCost::default()) == Gate::Open
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            self.in_flight += 1;
            self.adaptive.on_sent(self.view(), Flight(0), TokenCost::default());
        }
    }

    fn end(&mut self, count: u32, outcome: &SendOutcome) {
        for _ in 0..count {
            self.in_flight -= 1;
            self.adaptive.on_ended(self.view(), Flight(0), TokenCost::default(), outcome);
        }
    }

    /// Sends that many requests at once; all have the same outcome.
    fn burst(&mut self, count: u32, outcome: &SendOutcome) {
        self.send(count);
        self.end(count, outcome);
    }

    /// Sends that many requests one after the other.
    fn series(&mut self, count: u32, outcome: &SendOutcome) {
        for _ in 0..count {
            self.burst(1, outcome);
        }
    }

    /// Sends as many requests at once as the limit allows; all are answered.
    fn clean_round(&mut self) {
        self.burst(self.limit().max(MIN_ROUND), &clean());
    }

    /// Ends slow start and waits for the end of the episode.
    fn steady(mut self) -> AdaptiveRun {
        self.burst(1, &rejected());
        self.wait(15.0);
        self.adaptive.take_changes();
        self
    }

    fn reasons(&mut self) -> Vec<(u32, u32, &'static str)> {
        let change =
            |change: LimitChange| (change.old_limit, change.new_limit, change.reason.as_str());
        self.adaptive.take_changes().into_iter().map(change).collect()
    }
}
