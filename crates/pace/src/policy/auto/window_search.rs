//! Looks for windows of fixed length while requests are paced.
//!
//! Such a window betrays itself: rejections for a long time, and then suddenly a whole burst goes
//! through, which no bucket would allow. When the next burst goes through tells its length.

use super::ledger::SentRequest;
use super::window::LENGTHS;

/// Fewest requests of a burst that count as a window.
const MIN_BURST: f64 = 5.0;
/// A burst that is not over by then is no burst.
const MAX_BURST_S: f64 = 3.0;
/// A little later than exactly a window later.
const OPENING_MARGIN_S: f64 = 0.02;

/// Looks for a window while requests are paced.
#[derive(Debug)]
pub(super) enum WindowSearch {
    /// Rejections since the last admission.
    Idle { rejections: u32, since: f64, last: f64 },
    /// Something was let in after a long silence: how much more?
    Burst { after: f64, opened: f64, silence: f64, first: u64, sent: f64, next: f64, interval: f64 },
    /// A burst went through: when does the next one?
    Seek { after: f64, opened: f64, count: f64, candidate: usize, is_out: bool },
}

/// A window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FoundWindow {
    pub(super) length: f64,
    pub(super) count: f64,
    /// A window opened between these times.
    pub(super) after: f64,
    pub(super) opened: f64,
    /// The number of the request that found it open.
    pub(super) number: u64,
}

impl WindowSearch {
    pub(super) fn new() -> WindowSearch {
        WindowSearch::Idle { rejections: 0, since: 0.0, last: 0.0 }
    }

    /// When the next request may go out, where the search has an opinion.
    pub(super) fn next_at(&self) -> Option<f64> {
        match *self {
            WindowSearch::Idle { .. } => None,
            WindowSearch::Burst { next, .. } => Some(next),
            WindowSearch::Seek { is_out: true, .. } => Some(f64::INFINITY),
            WindowSearch::Seek { opened, candidate, .. } => {
                LENGTHS.get(candidate).map(|length| opened + length + OPENING_MARGIN_S)
            }
        }
    }

    pub(super) fn on_sent(&mut self, now: f64, patience: f64) {
        match self {
            WindowSearch::Burst { next, interval, sent, .. } => {
                // Twice as fast each round trip; overshooting costs a small share of the burst.
                *sent += 1.0;
                let fastest = patience / (*sent / 8.0).max(8.0);
                *interval = (*interval / (*interval / patience).exp2()).max(fastest);
                *next = now + *interval;
            }
            WindowSearch::Seek { is_out, .. } => *is_out = true,
            WindowSearch::Idle { .. } => {}
        }
    }

    /// A request was let in; `rate` is what was known before the silence.
    pub(super) fn on_admitted(
        &mut self,
        sent: SentRequest,
        now: f64,
        rate: f64,
        patience: f64,
    ) -> Option<FoundWindow> {
        match *self {
            WindowSearch::Idle { rejections, since, last } => {
                let silence = sent.at - since;
                let is_long = rejections >= 2 && silence > 0.4 && rate * silence > 2.0;
                *self = if is_long && sent.at > last {
                    WindowSearch::Burst {
                        after: last,
                        opened: sent.at,
                        silence,
                        first: sent.number,
                        sent: 1.0,
                        next: now,
                        interval: patience,
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
                // No window lets in for so long.
                *self = WindowSearch::new();
                None
            }
            WindowSearch::Seek { after, opened, count, candidate, .. } => {
                let length = LENGTHS.get(candidate).copied().unwrap_or(1.0);
                if sent.at < opened + length {
                    return None;
                }
                *self = WindowSearch::new();
                Some(FoundWindow {
                    length,
                    count,
                    after: after + length,
                    opened: opened + length + OPENING_MARGIN_S,
                    number: sent.number,
                })
            }
        }
    }

    /// A request came to nothing.
    pub(super) fn on_discarded(&mut self) {
        if let WindowSearch::Seek { is_out, .. } = self {
            *is_out = false;
        }
    }

    /// A request bounced that was news.
    pub(super) fn on_rejected(&mut self, sent: SentRequest) {
        match self {
            WindowSearch::Idle { rejections, since, last } => {
                if *rejections == 0 {
                    *since = sent.at;
                }
                *rejections += 1;
                *last = sent.at;
            }
            WindowSearch::Burst { after, opened, silence, first, .. } => {
                let admitted = sent.number.saturating_sub(*first) as f64;
                let duration = sent.at - *opened;
                let is_burst =
                    admitted >= MIN_BURST && (admitted - 2.0) / duration.max(1e-3) > 3.0 / *silence;
                let candidate = LENGTHS
                    .iter()
                    .position(|length| *opened + length > sent.at && *length > 0.98 * *silence);
                *self = match candidate {
                    Some(candidate) if is_burst => WindowSearch::Seek {
                        after: *after,
                        opened: *opened,
                        count: admitted,
                        candidate,
                        is_out: false,
                    },
                    _ => WindowSearch::Idle { rejections: 1, since: sent.at, last: sent.at },
                };
            }
            WindowSearch::Seek { candidate, is_out, .. } => {
                *is_out = false;
                *candidate += 1;
                if *candidate >= LENGTHS.len() {
                    *self = WindowSearch::new();
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

    /// Rejections from 1 to 3.
    fn silent() -> WindowSearch {
        let mut search = WindowSearch::new();
        (1..=3).for_each(|number| search.on_rejected(sent(number as f64, number)));
        search
    }

    /// And then one was let in, after four seconds of silence.
    fn burst() -> WindowSearch {
        let mut search = silent();
        assert_eq!(search.on_admitted(sent(5.0, 4), 5.2, 2.0, 0.2), None);
        search
    }

    #[test]
    fn silence_and_a_burst_are_a_window_and_the_next_burst_tells_its_length() {
        let mut search = burst();
        // Six went through within half a second.
        search.on_rejected(sent(5.5, 10));
        // A window is no shorter than its silence.
        assert_eq!(search.next_at(), Some(9.02));
        search.on_sent(9.02, 0.2);
        assert_eq!(search.next_at(), Some(f64::INFINITY), "one at a time");
        search.on_rejected(sent(9.02, 11));
        assert_eq!(search.next_at(), Some(10.02));
        search.on_sent(10.02, 0.2);
        let found =
            FoundWindow { length: 5.0, count: 6.0, after: 3.0 + 5.0, opened: 10.02, number: 12 };
        assert_eq!(search.on_admitted(sent(10.02, 12), 10.2, 2.0, 0.2), Some(found));
    }

    #[test]
    fn a_burst_is_tried_faster_and_faster() {
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
    fn a_bucket_that_lets_in_few_or_slowly_is_no_window() {
        let mut few = burst();
        few.on_rejected(sent(5.5, 8));
        assert_eq!(few.next_at(), None);
        // One each second is no burst.
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
    fn only_a_silence_that_is_long_for_the_rate_counts() {
        let mut usual = silent();
        usual.on_admitted(sent(5.0, 4), 5.2, 0.5, 0.2);
        assert_eq!(usual.next_at(), None, "one in two seconds: four are nothing");
        let mut single = WindowSearch::new();
        single.on_rejected(sent(1.0, 0));
        single.on_admitted(sent(5.0, 1), 5.2, 2.0, 0.2);
        assert_eq!(single.next_at(), None, "one rejection is no silence");
        let mut late = silent();
        late.on_admitted(sent(2.5, 2), 5.2, 2.0, 0.2);
        assert_eq!(late.next_at(), None, "one was rejected after it");
    }

    #[test]
    fn a_request_that_comes_to_nothing_is_followed_by_another() {
        let mut search = burst();
        search.on_rejected(sent(5.5, 10));
        search.on_sent(9.02, 0.2);
        search.on_discarded();
        assert_eq!(search.next_at(), Some(9.02));
    }

    #[test]
    fn when_no_length_fits_it_gives_up() {
        let mut search = burst();
        search.on_rejected(sent(5.5, 10));
        let longer = LENGTHS.iter().filter(|length| **length >= 4.0).count();
        (1..longer).for_each(|_| search.on_rejected(sent(9.0, 11)));
        assert_eq!(search.next_at(), Some(5.0 + 3600.0 + 0.02));
        search.on_rejected(sent(4000.0, 12));
        assert!(matches!(search, WindowSearch::Idle { .. }), "{search:?}");
    }
}
