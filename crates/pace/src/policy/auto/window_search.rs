//! Search for windows of fixed length while requests are paced.
//!
//! The sign of such a window is a long series of rejections followed by a burst of admissions, which no
//! bucket would allow. The time of the next burst gives the length of the window.

use super::ledger::SentRequest;
use super::window::TimeBounds;

/// Common lengths of windows, in seconds. They are tested first; others lie between two of them.
pub(super) const LENGTHS: [f64; 16] =
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0];
/// A common length is accepted if the window was closed until this share of it.
const CHECK_SHARE: f64 = 0.93;
/// Shares of the expected length at which single requests test whether the burst has used up the window, unless
/// it is shorter than the minimum. Another limit may have ended the burst, of a shorter time.
const EARLY_SHARES: [f64; 3] = [0.04, 0.15, 0.4];
const MIN_EARLY_LENGTH_S: f64 = 5.0;
/// Minimum number of requests in the burst of a window.
const MIN_BURST: f64 = 5.0;
/// A second rejection among so many requests after the first one ends a burst; a single one may be random.
const MAX_REJECTION_DISTANCE: u64 = 4;
/// Maximum length of a burst in seconds.
const MAX_BURST_S: f64 = 3.0;
/// Seconds after the expected opening at which a request tests it.
const OPENING_MARGIN_S: f64 = 0.02;

/// The state of the search.
#[derive(Debug)]
pub(super) enum WindowSearch {
    /// No sign of a window; counts the rejections since the last admission.
    Idle { rejections: u32, since: f64, last: f64 },
    /// A request was admitted after a long silence. Measures the burst.
    Burst {
        after: f64,
        opened: f64,
        silence: f64,
        /// The known rate before the silence.
        rate: f64,
        first: u64,
        sent: f64,
        next: f64,
        interval: f64,
        /// Number and send time of the latest rejected request; the rejection may be random.
        rejected: Option<(u64, f64)>,
    },
    /// A burst was admitted. Tests candidate lengths for the next one.
    Seek {
        first: TimeBounds,
        count: f64,
        /// The known rate before the silence.
        rate: f64,
        candidate: usize,
        /// Number of early tests so far.
        early: usize,
        /// Whether the candidate has been checked: the window was closed shortly before.
        is_checked: bool,
        /// Time of the last rejection.
        closed: f64,
        is_in_flight: bool,
    },
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SearchResult {
    Window(FoundWindow),
    /// Another limit ended the burst: the rate before the silence applies.
    KnownRate(f64),
}

/// A window that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FoundWindow {
    pub(super) count: f64,
    /// Two successive openings.
    pub(super) first: TimeBounds,
    pub(super) second: TimeBounds,
    /// Number of the request that was admitted first after the second.
    pub(super) number: u64,
}

impl WindowSearch {
    pub(super) fn new() -> WindowSearch {
        WindowSearch::Idle { rejections: 0, since: 0.0, last: 0.0 }
    }

    /// Returns when the next request may be sent, if the search is active.
    pub(super) fn next_at(&self) -> Option<f64> {
        match *self {
            WindowSearch::Idle { .. } => None,
            WindowSearch::Burst { next, .. } => Some(next),
            WindowSearch::Seek { is_in_flight: true, .. } => Some(f64::INFINITY),
            WindowSearch::Seek { .. } => self.next_test_at(),
        }
    }

    /// Returns the time of the next or current test for an open window.
    fn next_test_at(&self) -> Option<f64> {
        let WindowSearch::Seek { first, candidate, early, is_checked, .. } = *self else {
            return None;
        };
        let length = *LENGTHS.get(candidate)?;
        let until = match EARLY_SHARES.get(early) {
            Some(share) => share * length,
            None if is_checked => length + OPENING_MARGIN_S,
            None => CHECK_SHARE * length,
        };
        Some(first.until + until)
    }

    pub(super) fn on_sent(&mut self, now: f64, patience: f64) {
        match self {
            WindowSearch::Burst { next, interval, sent, .. } => {
                // The rate doubles each round trip; overshooting costs a small share of the burst.
                *sent += 1.0;
                let fastest = patience / (*sent / 8.0).max(8.0);
                *interval = (*interval / (*interval / patience).exp2()).max(fastest);
                *next = now + *interval;
            }
            WindowSearch::Seek { is_in_flight, .. } => *is_in_flight = true,
            WindowSearch::Idle { .. } => {}
        }
    }

    /// Handles an admission; `rate` is the known rate before the silence.
    pub(super) fn on_admitted(
        &mut self,
        sent: SentRequest,
        now: f64,
        rate: f64,
        patience: f64,
    ) -> Option<SearchResult> {
        match *self {
            WindowSearch::Idle { rejections, since, last } => {
                let silence = sent.at - since;
                let is_long = rejections >= 2 && silence > 0.4 && rate * silence > 2.0;
                *self = if is_long && sent.at > last {
                    WindowSearch::Burst {
                        after: last,
                        opened: sent.at,
                        silence,
                        rate,
                        first: sent.number,
                        sent: 1.0,
                        next: now,
                        interval: patience,
                        rejected: None,
                    }
                } else {
                    WindowSearch::new()
                };
                None
            }
            WindowSearch::Burst { opened, silence, .. } => {
                let duration = sent.at - opened;
                if duration < MAX_BURST_S.max(2.0 * silence) {
                    return None;
                }
                // No window admits requests for this long.
                *self = WindowSearch::new();
                None
            }
            WindowSearch::Seek { first, count, rate, early, closed, .. } => {
                let is_early = early < EARLY_SHARES.len();
                // Requests of the burst are admitted late if latency is long.
                let is_test = match self.next_test_at() {
                    Some(at) if is_early => sent.at + 1e-6 >= at,
                    _ => sent.at > closed,
                };
                if !is_test {
                    return None;
                }
                *self = WindowSearch::new();
                if is_early {
                    return Some(SearchResult::KnownRate(rate));
                }
                let second = TimeBounds { after: closed, until: sent.at };
                Some(SearchResult::Window(FoundWindow {
                    count,
                    first,
                    second,
                    number: sent.number,
                }))
            }
        }
    }

    /// Handles a request that was neither admitted nor rejected.
    pub(super) fn on_discarded(&mut self) {
        if let WindowSearch::Seek { is_in_flight, .. } = self {
            *is_in_flight = false;
        }
    }

    /// Returns whether a rejection may be random: the first one in a burst, unless the next requests are rejected
    /// too.
    pub(super) fn is_isolated(&mut self, sent: SentRequest) -> bool {
        let WindowSearch::Burst { rejected, .. } = self else { return false };
        let is_near =
            |(number, _): (u64, f64)| number.abs_diff(sent.number) <= MAX_REJECTION_DISTANCE;
        if rejected.is_some_and(is_near) {
            return false;
        }
        *rejected = Some((sent.number, sent.at));
        true
    }

    /// Handles a rejection that carries news.
    pub(super) fn on_rejected(&mut self, sent: SentRequest) {
        match self {
            WindowSearch::Idle { rejections, since, last } => {
                if *rejections == 0 {
                    *since = sent.at;
                }
                *rejections += 1;
                *last = sent.at;
            }
            WindowSearch::Burst { after, opened, silence, rate, first, rejected, .. } => {
                let first_rejected = rejected.filter(|(number, _)| *number < sent.number);
                let (number, ended) = first_rejected.unwrap_or((sent.number, sent.at));
                let admitted = number.saturating_sub(*first) as f64;
                let duration = ended - *opened;
                let is_burst =
                    admitted >= MIN_BURST && (admitted - 2.0) / duration.max(1e-3) > 3.0 / *silence;
                // Both the last rejection before the burst and the first one of the silence fell into
                // the previous window.
                let min_length = *after - (*opened - *silence);
                let candidate = LENGTHS
                    .iter()
                    .position(|length| *opened + length > sent.at && *length > 0.98 * min_length);
                *self = match candidate {
                    Some(candidate) if is_burst => {
                        let length = LENGTHS[candidate];
                        let is_past = |share: &&f64| *opened + **share * length <= sent.at;
                        let early = match length < MIN_EARLY_LENGTH_S {
                            true => EARLY_SHARES.len(),
                            false => EARLY_SHARES.iter().take_while(is_past).count(),
                        };
                        let closed = sent.at.max(*after + min_length);
                        WindowSearch::Seek {
                            first: TimeBounds { after: *after, until: *opened },
                            count: admitted,
                            rate: *rate,
                            candidate,
                            early,
                            is_checked: *opened + CHECK_SHARE * LENGTHS[candidate] <= closed,
                            closed,
                            is_in_flight: false,
                        }
                    }
                    _ => WindowSearch::Idle { rejections: 1, since: sent.at, last: sent.at },
                };
            }
            WindowSearch::Seek {
                first,
                candidate,
                early,
                is_checked,
                closed,
                is_in_flight,
                ..
            } => {
                *is_in_flight = false;
                *closed = closed.max(sent.at);
                if *early < EARLY_SHARES.len() {
                    *early += 1;
                    return;
                }
                if !*is_checked {
                    *is_checked = true;
                    return;
                }
                *candidate += 1;
                match LENGTHS.get(*candidate) {
                    Some(length) => *is_checked = first.until + CHECK_SHARE * length <= *closed,
                    None => *self = WindowSearch::new(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::SendPurpose;
    use super::*;

    fn sent(at: f64, number: u64) -> SentRequest {
        SentRequest { number, ..SentRequest::example(at, SendPurpose::Work) }
    }

    /// Returns a search after rejections at 1, 2 and 3.
    fn silent() -> WindowSearch {
        let mut search = WindowSearch::new();
        (1..=3).for_each(|number| search.on_rejected(sent(number as f64, number)));
        search
    }

    /// Returns a search in which a request was admitted after four seconds of silence.
    fn burst() -> WindowSearch {
        let mut search = silent();
        assert_eq!(search.on_admitted(sent(5.0, 4), 5.2, 2.0, 0.2), None);
        search
    }

    #[test]
    fn silence_and_two_bursts_are_a_window() {
        let mut search = burst();
        // Six were admitted within half a second.
        search.on_rejected(sent(5.5, 10));
        // A window is at least as long as the time between the rejections of its silence. Shortly
        // before the end of each common length it must still be closed.
        for (number, at) in [6.86, 7.02, 7.79, 8.02, 8.72, 9.02, 9.65].into_iter().enumerate() {
            let next = search.next_at().unwrap();
            assert!((next - at).abs() < 1e-9, "{next} for {at}");
            search.on_sent(next, 0.2);
            assert_eq!(search.next_at(), Some(f64::INFINITY), "one at a time");
            search.on_rejected(sent(next, 11 + number as u64));
        }
        let at = search.next_at().unwrap();
        let result = search.on_admitted(sent(at, 18), 10.2, 2.0, 0.2);
        let Some(SearchResult::Window(found)) = result else { panic!("{result:?}") };
        assert_eq!((found.count, found.number), (6.0, 18));
        assert_eq!(found.first, TimeBounds { after: 3.0, until: 5.0 });
        assert!((found.second.after - 9.65).abs() < 1e-9);
        assert!((found.second.until - 10.02).abs() < 1e-9);
    }

    #[test]
    fn single_rejection_does_not_end_a_burst() {
        let mut search = burst();
        assert!(search.is_isolated(sent(5.1, 6)));
        assert!(search.is_isolated(sent(5.4, 16)), "far from the first one");
        // The next request is rejected, too: the burst ended at the first of both.
        assert!(!search.is_isolated(sent(5.5, 17)));
        search.on_rejected(sent(5.5, 17));
        let WindowSearch::Seek { count, closed, .. } = search else { panic!("{search:?}") };
        assert_eq!((count, closed), (12.0, 5.5));
        assert!(!search.is_isolated(sent(7.0, 18)), "not in a burst");
    }

    #[test]
    fn shorter_limit_that_ends_a_burst_is_no_window() {
        let mut search = WindowSearch::new();
        (0..=3).for_each(|number| search.on_rejected(sent(15.0 * number as f64, number)));
        assert_eq!(search.on_admitted(sent(50.0, 4), 50.2, 20.0, 0.2), None);
        search.on_rejected(sent(50.5, 24));
        // The window may have 60 seconds. Single requests test whether it is used up.
        for at in [52.4, 59.0] {
            let next = search.next_at().unwrap();
            assert!((next - at).abs() < 1e-9, "{next} for {at}");
            search.on_sent(next, 0.2);
            assert_eq!(search.on_admitted(sent(50.4, 23), next, 20.0, 0.2), None, "a late answer");
            search.on_rejected(sent(next, 25));
        }
        let at = search.next_at().unwrap();
        let result = search.on_admitted(sent(at, 26), at, 20.0, 0.2);
        assert_eq!(result, Some(SearchResult::KnownRate(20.0)));
        assert_eq!(search.next_at(), None);
    }

    #[test]
    fn burst_requests_accelerate() {
        let mut search = burst();
        assert_eq!(search.next_at(), Some(5.2));
        search.on_sent(5.2, 0.2);
        let second = search.next_at().unwrap() - 5.2;
        assert!((second - 0.1).abs() < 1e-9, "half a round trip: {second}");
        (0..20).for_each(|_| search.on_sent(5.2, 0.2));
        let later = search.next_at().unwrap() - 5.2;
        assert!((later - 0.2 / 8.0).abs() < 1e-9, "an eighth of it: {later}");
    }

    #[test]
    fn small_or_slow_burst_is_no_window() {
        let mut few = burst();
        few.on_rejected(sent(5.5, 8));
        assert_eq!(few.next_at(), None);
        // One per second is no burst.
        let mut slow = burst();
        slow.on_rejected(sent(11.0, 10));
        assert_eq!(slow.next_at(), None);
        let mut endless = burst();
        assert_eq!(endless.on_admitted(sent(12.9, 30), 13.0, 2.0, 0.2), None);
        assert!(endless.next_at().is_some());
        assert_eq!(endless.on_admitted(sent(13.0, 31), 13.1, 2.0, 0.2), None);
        assert_eq!(endless.next_at(), None);
    }

    #[test]
    fn silence_must_be_long_for_the_rate() {
        let mut slow_rate = silent();
        slow_rate.on_admitted(sent(5.0, 4), 5.2, 0.5, 0.2);
        assert_eq!(slow_rate.next_at(), None, "at one in two seconds, four seconds are short");
        let mut single = WindowSearch::new();
        single.on_rejected(sent(1.0, 0));
        single.on_admitted(sent(5.0, 1), 5.2, 2.0, 0.2);
        assert_eq!(single.next_at(), None, "one rejection is no silence");
        let mut late = silent();
        late.on_admitted(sent(2.5, 2), 5.2, 2.0, 0.2);
        assert_eq!(late.next_at(), None, "one was rejected after it");
    }

    #[test]
    fn discarded_request_is_followed_by_another() {
        let mut search = burst();
        search.on_rejected(sent(5.5, 10));
        let at = search.next_at().unwrap();
        search.on_sent(at, 0.2);
        search.on_discarded();
        assert_eq!(search.next_at(), Some(at));
    }

    #[test]
    fn search_ends_if_no_length_fits() {
        let mut search = burst();
        search.on_rejected(sent(5.5, 10));
        let mut probes = 0;
        while let Some(at) = search.next_at() {
            search.on_rejected(sent(at, 11));
            probes += 1;
        }
        assert!(matches!(search, WindowSearch::Idle { .. }), "{search:?}");
        assert!(probes < 2 * LENGTHS.len(), "{probes}");
    }
}
