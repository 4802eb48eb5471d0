//! Load shedding: servers that reject requests above a limit with the status of an outage.
//!
//! nginx, for example, uses 503 for its rate limits by default. During an outage, nothing is answered; a
//! server that sheds load answers some requests all the time.

use std::collections::VecDeque;
use std::time::Duration;

/// Latest requests of which results are kept until shedding is proven.
const MAX_SENT: usize = 4096;
/// Overload responses that prove shedding, in at least that many groups. Each group is between two answers
/// that were sent close to each other, and there are no more answers than overload responses.
const MIN_OVERLOADED: usize = 10;
const MIN_GROUPS: usize = 3;
const MAX_GROUP_LENGTH: Duration = Duration::from_secs(20);
/// Time without an answer after which overload responses may be an outage, or that many latencies.
const MAX_SILENCE: Duration = Duration::from_secs(10);
const MAX_SILENCE_LATENCIES: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestResult {
    /// In flight, or ended in another way.
    Unknown,
    Answered,
    Overloaded,
}

/// Whether a provider sheds load. Once proven, it applies to the rest of the run.
#[derive(Debug, Default)]
pub(crate) struct LoadShedding {
    /// The latest requests in the order of sending. Rejections arrive sooner than answers, so the order of
    /// arrival proves nothing.
    sent: VecDeque<(Duration, RequestResult)>,
    /// Number of the first of them.
    first: u64,
    is_proven: bool,
    /// Arrival and latency of the latest answer.
    last_answer: Option<(Duration, Duration)>,
}

impl LoadShedding {
    /// Handles the sending of a request. Requests are numbered from zero.
    pub(crate) fn on_sent(&mut self, now: Duration) {
        if self.sent.len() == MAX_SENT {
            self.sent.pop_front();
            self.first += 1;
        }
        self.sent.push_back((now, RequestResult::Unknown));
    }

    /// Handles the answer to the request with that number.
    pub(crate) fn on_answered(&mut self, now: Duration, (number, sent_at): (u64, Duration)) {
        self.set(number, RequestResult::Answered);
        self.last_answer = Some((now, now.saturating_sub(sent_at)));
    }

    /// Handles an overload response; returns whether it proves that the provider sheds load, for the first
    /// time.
    pub(crate) fn on_overloaded(&mut self, number: u64) -> bool {
        self.set(number, RequestResult::Overloaded);
        let is_new = !self.is_proven && self.proves_shedding();
        self.is_proven |= is_new;
        is_new
    }

    /// Returns whether overload responses are rejections because of load.
    pub(crate) fn explains_overload(&self, now: Duration) -> bool {
        self.is_proven && !self.is_silent(now)
    }

    fn set(&mut self, number: u64, result: RequestResult) {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.sent.get_mut(index)) {
            entry.1 = result;
        }
    }

    /// Returns whether the provider has not answered for so long that it may be down.
    fn is_silent(&self, now: Duration) -> bool {
        self.last_answer.is_none_or(|(at, latency)| {
            now.saturating_sub(at) > MAX_SILENCE.max(latency * MAX_SILENCE_LATENCIES)
        })
    }

    fn proves_shedding(&self) -> bool {
        let (mut answered, mut overloaded, mut groups) = (0, 0, 0);
        // The answer that was sent after the overload responses of the current group.
        let mut next_answer: Option<Duration> = None;
        let mut group = 0;
        for (at, result) in self.sent.iter().rev() {
            match result {
                RequestResult::Unknown => {}
                RequestResult::Overloaded => group += 1,
                RequestResult::Answered => {
                    answered += 1;
                    overloaded += group;
                    let is_short = next_answer.is_some_and(|next| *at + MAX_GROUP_LENGTH > next);
                    groups += usize::from(group > 0 && is_short);
                    (group, next_answer) = (0, Some(*at));
                    if groups >= MIN_GROUPS
                        && overloaded >= MIN_OVERLOADED
                        && overloaded >= answered
                    {
                        return true;
                    }
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends requests at distances of `gap_ms`: `a` is answered and `x` is not. Returns for each `x` whether
    /// it is a rejection because of load.
    fn results(
        shedding: &mut LoadShedding,
        start_ms: u64,
        gap_ms: u64,
        results: &str,
    ) -> Vec<bool> {
        let first = shedding.first + shedding.sent.len() as u64;
        let mut rejections = Vec::new();
        for (index, result) in (0_u64..).zip(results.chars()) {
            let now = Duration::from_millis(start_ms + index * gap_ms);
            shedding.on_sent(now);
            match result {
                'a' => shedding.on_answered(now, (first + index, now)),
                _ => {
                    shedding.on_overloaded(first + index);
                    rejections.push(shedding.explains_overload(now));
                }
            }
        }
        rejections
    }

    #[test]
    fn answers_among_overload_responses_prove_shedding() {
        let mut shedding = LoadShedding::default();
        let rejections = results(&mut shedding, 0, 100, "axxxxxaxxxaxxxxax");
        assert_eq!(rejections.iter().position(|is| *is), Some(12), "after the fourth answer");
    }

    #[test]
    fn outages_and_random_failures_prove_nothing() {
        let outage = format!("aaa{}aaa", "x".repeat(200));
        let table = [
            ("one outage", 100, outage.as_str()),
            ("outages that last", 5000, "axxxxxxaxxxxxxaxxxxxxax"),
            ("few failures", 100, "axaxaxaxaaaaaaaaaaaaaaaaaaaaaax"),
            ("a third fails", 100, "aaxaaxaaxaaxaaxaaxaaxaaxaaxaaxaaxaax"),
            ("no answer", 100, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ];
        for (name, gap_ms, outcomes) in table {
            let rejections = results(&mut LoadShedding::default(), 0, gap_ms, outcomes);
            assert!(!rejections.contains(&true), "{name}");
        }
    }

    #[test]
    fn silence_is_an_outage_until_the_next_answer() {
        let mut shedding = LoadShedding::default();
        results(&mut shedding, 0, 100, "axxxxxaxxxaxxxxa");
        assert_eq!(results(&mut shedding, 2000, 4000, "xxx"), [true, true, true]);
        assert_eq!(results(&mut shedding, 12_000, 100, "xx"), [false, false]);
        assert_eq!(results(&mut shedding, 13_000, 100, "ax"), [true]);
    }

    #[test]
    fn slow_answers_allow_longer_silences() {
        let mut shedding = LoadShedding::default();
        results(&mut shedding, 0, 100, "axxxxxaxxxaxxxx");
        shedding.on_sent(Duration::from_secs(2));
        shedding.on_answered(Duration::from_secs(62), (15, Duration::from_secs(2)));
        assert_eq!(results(&mut shedding, 100_000, 1000, "x"), [true]);
        assert_eq!(results(&mut shedding, 183_000, 1000, "x"), [false]);
    }
}
