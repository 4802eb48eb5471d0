//! One test for each thing that is said of adaptive connections where they come from, the
//! documentation of Inspect AI:
//!
//! | what is said | test |
//! |---|---|
//! | starts at 20 and scales between 4 and 200; a high max is harmless | `starts_at_20_between_4_and_200` |
//! | one controller per model | `pool::one_key_has_one_pool_and_the_first_limits_count` |
//! | doubles in slow start until the first rate-limit episode | `doubles_per_clean_round_until_the_first_rejection`, `slow_start_ends_even_where_there_is_nothing_to_cut` |
//! | max is the ceiling, min the floor | `never_grows_beyond_max`, `never_shrinks_below_min_nor_below_one` |
//! | `min-max` (start 20, clamped), `min-start-max`, `true`, `false`, a number | `connections::reads_every_form` |
//! | what is wrong with a shorthand | `connections::every_mistake_has_its_own_message` |
//! | max is about requests per minute × seconds / 60 | `as_many_in_flight_as_keep_a_rate_busy` in `bakeoff-llm` |
//! | 429, `ThrottlingException`, `RESOURCE_EXHAUSTED` are rate limits; other 5xx, timeouts and the network are transient; by provider | the table of failures in `bakeoff-llm` |
//! | a rate limit shrinks by `decrease_factor` | `a_rejection_cuts_to_80_percent_rounded_down` |
//! | a burst is one cut | `one_burst_is_one_cut`, `a_rejection_ends_the_round` |
//! | a transient retry pauses growth and does not shrink; its success does not count | `a_transient_failure_pauses_growth_and_never_shrinks`, `what_is_refused_or_given_up_is_neutral` |
//! | at least `cooldown_seconds` between cuts | `the_next_cut_comes_after_the_cooldown_at_the_earliest`, `nothing_counts_during_the_cooldown` |
//! | Retry-After extends the cooldown | `retry_after_extends_the_cooldown_and_never_shortens_it`, and three about hints that are long or many |
//! | else the reset headers of OpenAI, Groq, Azure and Anthropic do | `each_reset_header_extends_the_cooldown`, `the_longest_reset_counts_and_only_without_retry_after` |
//! | a success after a retry is neutral | `an_answer_after_a_retry_is_neutral` |
//! | a cache hit is neutral | `an_answer_from_the_cache_moves_no_window` in `bakeoff-llm` |
//! | the three tunables | `the_cooldown_can_be_set`, `the_factor_of_a_cut_can_be_set_and_loses_nothing_to_arithmetic`, `the_growth_of_a_round_can_be_set` |
//! | growth in steady state is a share of the limit | `steady_growth_is_a_share_of_the_limit_and_at_least_one` |
//! | history: time, model, old and new limit, reason; live as well | `changes_carry_their_time_and_are_told_once`, `pool::changes_of_the_limit_carry_the_name_and_the_time`, `limit_changes_are_logged_streamed_and_summarized` in `bakeoff` |
//! | only `rate_limit` is a scale-down | `only_a_rejection_shrinks` |
//! | the trials in preparation follow the limit, with a small buffer | `trials_in_preparation_follow_the_window` in `bakeoff-eval` |

use super::*;
use crate::{Ask, RunTag, Scheduler, read_quota};
use std::collections::HashMap;
use std::time::SystemTime;

mod growth;
mod rejections;
mod tunables;

/// A strategy with a provider that does as it is told.
struct Trial {
    adaptive: Adaptive,
    now: Duration,
    in_flight: u32,
}

fn trial(config: AdaptiveConfig) -> Trial {
    Trial { adaptive: Adaptive::new(config), now: Duration::ZERO, in_flight: 0 }
}

fn bounded(min: u32, start: u32, max: u32) -> Trial {
    trial(AdaptiveConfig {
        bounds: crate::AdaptiveBounds { min, start, max },
        ..Default::default()
    })
}

fn clean() -> Ending {
    Ending::Answered { quota: Quota::default(), usage: None, clean: true }
}

fn after_retry() -> Ending {
    Ending::Answered { quota: Quota::default(), usage: None, clean: false }
}

fn rejected() -> Ending {
    Ending::Rejected { quota: Quota::default() }
}

/// A rejection whose `Retry-After` is that many seconds.
fn rejected_for(seconds: u64) -> Ending {
    let retry_after = Some(Duration::from_secs(seconds));
    Ending::Rejected { quota: Quota { retry_after, ..Quota::default() } }
}

impl Trial {
    fn limit(&self) -> u32 {
        self.adaptive.limit()
    }

    fn view(&self) -> View {
        View { now: self.now, in_flight: self.in_flight, waiting: 1000 }
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn is_open(&mut self) -> bool {
        self.adaptive.gate(self.view(), Cost::default()) == Gate::Open
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            self.in_flight += 1;
            self.adaptive.sent(self.view(), Flight(0), Cost::default());
        }
    }

    fn end(&mut self, count: u32, ending: &Ending) {
        for _ in 0..count {
            self.in_flight -= 1;
            self.adaptive.ended(self.view(), Flight(0), Cost::default(), ending);
        }
    }

    /// That many at once, all with that ending.
    fn burst(&mut self, count: u32, ending: &Ending) {
        self.send(count);
        self.end(count, ending);
    }

    /// One after the other.
    fn series(&mut self, count: u32, ending: &Ending) {
        for _ in 0..count {
            self.burst(1, ending);
        }
    }

    /// As many at once as possible, all answered.
    fn clean_round(&mut self) {
        self.burst(self.limit().max(SMALLEST_ROUND), &clean());
    }

    /// Ends slow start and waits until the episode is over.
    fn steady(mut self) -> Trial {
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
