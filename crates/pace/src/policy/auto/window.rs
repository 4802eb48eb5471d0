//! The hypothesis of fixed windows: a number of requests is allowed in each window of fixed length.
//! They are sent when the window opens, and then nothing until the next.

use super::ledger::{SendPurpose, SentRequest};
use super::window_search::FoundWindow;

/// Seconds in which the requests of a window are sent.
const BURST_S: f64 = 0.3;
/// Rejected canaries in a row after which the hypothesis is refuted.
const MAX_EARLY_CANARIES: u32 = 2;
/// Minimum number of windows and requests per check of the silence, and the share of it after which it
/// is sent.
const CHECK_EVERY: u32 = 12;
const REQUESTS_PER_CHECK: f64 = 100.0;
const CHECK_SHARE: f64 = 0.9;

/// Uncertainty of an opening that is not worth a rejection, in seconds and as a share of the length.
const OPENING_TOLERANCE: (f64, f64) = (0.06, 0.02);
/// Rejections of one window that may be random.
const MAX_RANDOM: u32 = 3;
/// Minimum length in seconds.
const MIN_LENGTH_S: f64 = 0.5;
/// Steps of round lengths in seconds; the length is the roundest one that agrees with the openings.
const ROUND_STEPS: [f64; 7] = [60.0, 30.0, 10.0, 5.0, 1.0, 0.5, 0.1];

/// A time that is known to lie between two others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeBounds {
    pub(super) after: f64,
    pub(super) until: f64,
}

impl TimeBounds {
    fn width(self) -> f64 {
        self.until - self.after
    }
}

/// A known window.
#[derive(Debug)]
pub(super) struct WindowHypothesis {
    count: f64,
    /// The first opening, and the current or next one.
    first: TimeBounds,
    opening: TimeBounds,
    /// Windows between these, and bounds of their length.
    distance: f64,
    length: TimeBounds,
    state: WindowState,
    /// Windows so far, and canaries in a row that were sent too early.
    windows: u32,
    early: u32,
}

#[derive(Debug, Clone, Copy)]
enum WindowState {
    /// Waits until the next window opens.
    Wait,
    /// One request tests whether it has opened.
    Canary,
    /// It is open: number of its first request, and requests sent and not rejected.
    Open { first: u64, sent: f64, next: f64 },
    /// A request was rejected before the window was used up; one request tests whether it is open.
    Doubt { first: u64, sent: f64, admitted: f64, rejected: u32, is_in_flight: bool },
    /// It is used up; one request tests whether it stays closed until the next.
    Check { is_in_flight: bool },
}

impl WindowHypothesis {
    pub(super) fn new(found: FoundWindow) -> WindowHypothesis {
        let FoundWindow { count, first, second, number } = found;
        WindowHypothesis {
            count,
            first,
            opening: second,
            distance: 1.0,
            length: TimeBounds {
                after: second.after - first.until,
                until: second.until - first.after,
            },
            state: WindowState::Open { first: number, sent: 1.0, next: 0.0 },
            windows: 0,
            early: 0,
        }
    }

    /// Returns the length in seconds.
    pub(super) fn length(&self) -> f64 {
        let TimeBounds { after, until } = self.length;
        let rounded = ROUND_STEPS.iter().map(|step| (after / step).ceil() * step);
        let round = rounded.into_iter().find(|length| *length <= until && *length > 0.0);
        round.unwrap_or(f64::midpoint(after, until)).max(MIN_LENGTH_S)
    }

    /// Moves on to the next window.
    fn advance(&mut self) {
        let length = self.length();
        let bounds = if self.length.width() < 0.04 * length {
            TimeBounds { after: length, until: length }
        } else {
            self.length
        };
        self.opening.after += bounds.after;
        self.opening.until += bounds.until;
        self.distance += 1.0;
        self.early = 0;
        self.windows += 1;
        self.state = WindowState::Wait;
    }

    /// Restricts the length by the bounds of the current opening.
    fn learn_length(&mut self) {
        if self.distance < 1.0 {
            return;
        }
        let nominal = self.length();
        let after = (self.opening.after - self.first.until) / self.distance;
        let until = (self.opening.until - self.first.after) / self.distance;
        self.length.after = self.length.after.max(after);
        self.length.until = self.length.until.min(until);
        if self.length.after > self.length.until {
            // The openings drift: only those from now on count.
            self.length = TimeBounds { after: 0.95 * nominal, until: 1.05 * nominal };
            self.first = self.opening;
            self.distance = 0.0;
        }
    }

    /// Returns when to test whether the next window has opened.
    fn canary_at(&self) -> f64 {
        let tolerance = OPENING_TOLERANCE.0.max(OPENING_TOLERANCE.1 * self.length());
        if self.opening.width() > tolerance && self.length.width() > tolerance {
            f64::midpoint(self.opening.after, self.opening.until)
        } else {
            self.opening.until
        }
    }

    /// Returns for how long the current window stays closed for certain; not positive if its length is
    /// hardly known.
    fn silence(&self) -> f64 {
        self.opening.after + self.length.after - self.opening.until
    }

    /// Returns the requests per window.
    pub(super) fn count(&self) -> f64 {
        self.count
    }

    /// Returns the requests per second.
    pub(super) fn rate(&self) -> f64 {
        self.count / self.length()
    }

    pub(super) fn next(&mut self, now: f64) -> Result<SendPurpose, Option<f64>> {
        if let WindowState::Open { sent, .. } = self.state
            && sent >= self.count
        {
            let interval = CHECK_EVERY.max((REQUESTS_PER_CHECK / self.count) as u32);
            // The first window is not checked if its length is hardly known.
            let is_due =
                self.windows.is_multiple_of(interval) && (self.windows > 0 || self.silence() > 0.0);
            self.state = WindowState::Check { is_in_flight: !is_due };
        }
        if let WindowState::Check { is_in_flight: true } = self.state {
            self.advance();
        }
        let (at, purpose) = match self.state {
            WindowState::Canary => return Err(None),
            WindowState::Wait => (self.canary_at(), SendPurpose::Probe),
            WindowState::Open { next, .. } => (next, SendPurpose::Work),
            WindowState::Doubt { is_in_flight: true, .. } => return Err(None),
            WindowState::Doubt { .. } => (now, SendPurpose::Clocked),
            WindowState::Check { .. } => {
                (self.opening.until + CHECK_SHARE * self.silence().max(0.0), SendPurpose::Timed)
            }
        };
        if now >= at { Ok(purpose) } else { Err(Some(at)) }
    }

    pub(super) fn on_sent(&mut self, now: f64) {
        match &mut self.state {
            state @ WindowState::Wait => *state = WindowState::Canary,
            WindowState::Open { sent, next, .. } => {
                *sent += 1.0;
                *next = now + BURST_S / self.count;
            }
            WindowState::Check { is_in_flight } => *is_in_flight = true,
            WindowState::Doubt { sent, is_in_flight, .. } => {
                *sent += 1.0;
                *is_in_flight = true;
            }
            WindowState::Canary => {}
        }
    }

    /// Returns whether the window is refuted.
    pub(super) fn on_admitted(&mut self, now: f64, sent: SentRequest) -> bool {
        if let (WindowState::Canary, SendPurpose::Probe) = (self.state, sent.purpose) {
            self.opening.until = self.opening.until.min(sent.at);
            self.learn_length();
            self.state = WindowState::Open { first: sent.number, sent: 1.0, next: now };
        }
        if let (WindowState::Doubt { first, sent: out, .. }, SendPurpose::Clocked) =
            (self.state, sent.purpose)
        {
            // The rejection was random.
            self.state = WindowState::Open { first, sent: out, next: now };
        }
        sent.purpose == SendPurpose::Timed
    }

    /// Returns whether the window is refuted.
    pub(super) fn on_rejected(&mut self, sent: SentRequest) -> bool {
        match (&mut self.state, sent.purpose) {
            (WindowState::Canary, SendPurpose::Probe) => {
                self.state = WindowState::Wait;
                self.opening.after = sent.at;
                if sent.at + 1e-3 >= self.opening.until {
                    // The window should be open by now.
                    self.early += 1;
                    let length = self.length();
                    self.opening.until = sent.at + 0.02 * length;
                    self.length.until = self.length.until.max(1.05 * length);
                }
                self.learn_length();
                self.early > MAX_EARLY_CANARIES
            }
            (&mut WindowState::Open { first, sent: out, .. }, SendPurpose::Work)
                if sent.number >= first && out.is_finite() =>
            {
                // Requests rejected earlier in this window are in neither number.
                let admitted = (sent.number - first) as f64;
                if admitted >= self.count - 1.5 {
                    return self.close(admitted);
                }
                self.state = WindowState::Doubt {
                    first: first + 1,
                    sent: out - 1.0,
                    admitted,
                    rejected: 1,
                    is_in_flight: false,
                };
                false
            }
            (
                WindowState::Doubt { first, sent: out, admitted, rejected, .. },
                SendPurpose::Work,
            ) if sent.number >= *first => {
                *first += 1;
                *out -= 1.0;
                *rejected += 1;
                let (admitted, rejected) = (*admitted, *rejected);
                rejected > MAX_RANDOM && self.close(admitted)
            }
            (&mut WindowState::Doubt { admitted, .. }, SendPurpose::Clocked) => {
                self.close(admitted)
            }
            _ => false,
        }
    }

    /// Ends the current window after a number of admissions; returns whether windows are refuted.
    fn close(&mut self, admitted: f64) -> bool {
        // Nothing more is sent in this window.
        self.state = WindowState::Open { first: u64::MAX, sent: f64::INFINITY, next: 0.0 };
        if admitted < 0.6 * self.count {
            // Windows do not shrink, so another kind of limit applies.
            return true;
        }
        if admitted < self.count - 1.5 {
            self.count = admitted;
        }
        false
    }

    /// Handles a request that was neither admitted nor rejected: another one replaces it.
    pub(super) fn on_discarded(&mut self, sent: SentRequest) {
        match &mut self.state {
            WindowState::Canary => self.state = WindowState::Wait,
            WindowState::Doubt { sent: out, is_in_flight, .. }
                if sent.purpose == SendPurpose::Clocked =>
            {
                *out -= 1.0;
                *is_in_flight = false;
            }
            WindowState::Open { first, sent: out, .. } if sent.number > *first => {
                *first += 1;
                *out -= 1.0;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: f64, number: u64, purpose: SendPurpose) -> SentRequest {
        SentRequest { number, ..SentRequest::example(at, purpose) }
    }

    /// Returns windows of that length with ten requests each; one has opened at 20 with request 100.
    fn open(length: f64) -> WindowHypothesis {
        let bounds = |until: f64| TimeBounds { after: until - 0.01, until };
        let (first, second) = (bounds(20.0 - length), bounds(20.0));
        WindowHypothesis::new(FoundWindow { count: 10.0, first, second, number: 100 })
    }

    /// Sends all requests allowed at about that time; returns their number.
    fn work(window: &mut WindowHypothesis, mut now: f64) -> u32 {
        let mut count = 0;
        loop {
            match window.next(now) {
                Ok(SendPurpose::Work) => {
                    window.on_sent(now);
                    count += 1;
                }
                Err(Some(at)) if at < now + 0.1 => now = at,
                _ => return count,
            }
        }
    }

    /// Returns the same after that window was used up and checked.
    fn waiting(length: f64) -> WindowHypothesis {
        let mut window = open(length);
        work(&mut window, 20.0);
        window.on_sent(21.0);
        assert_eq!(window.next(21.0), Err(Some(20.0 + length)));
        window
    }

    /// Rejects a canary at that time; returns whether the window is refuted.
    fn early(window: &mut WindowHypothesis, at: f64) -> bool {
        assert_eq!(window.next(at), Ok(SendPurpose::Probe));
        window.on_sent(at);
        assert_eq!(window.next(at + 9.0), Err(None), "one at a time");
        window.on_rejected(sent(at, 110, SendPurpose::Probe))
    }

    #[test]
    fn requests_are_sent_when_the_window_opens() {
        let mut window = waiting(10.0);
        assert_eq!(window.next(29.9), Err(Some(30.0)));
        assert_eq!(window.next(30.0), Ok(SendPurpose::Probe));
        window.on_sent(30.0);
        assert!(!window.on_admitted(30.1, sent(30.0, 110, SendPurpose::Probe)));
        assert_eq!(work(&mut window, 30.1), 9, "the canary was the first of ten");
        assert_eq!(window.next(30.5), Err(Some(40.0)));
    }

    #[test]
    fn early_canary_is_followed_by_a_later_one() {
        let mut window = waiting(10.0);
        assert!(!early(&mut window, 30.0));
        assert_eq!(window.next(30.1), Err(Some(30.2)));
        window.on_sent(30.2);
        assert!(!window.on_admitted(30.3, sent(30.2, 111, SendPurpose::Probe)));
        assert_eq!(work(&mut window, 30.3), 9);
        assert_eq!(window.next(30.8), Err(Some(40.2)), "the next one is as late");
    }

    #[test]
    fn one_that_does_not_open_is_none() {
        let mut window = waiting(10.0);
        assert!(!early(&mut window, 30.0));
        assert!(!early(&mut window, 30.5));
        assert!(early(&mut window, 31.0));
    }

    #[test]
    fn admission_between_windows_refutes_the_hypothesis() {
        let mut window = open(10.0);
        assert_eq!(work(&mut window, 20.0), 9);
        let Err(Some(at)) = window.next(21.0) else { panic!("a check is due") };
        assert!((28.9..29.1).contains(&at), "late in the silence: {at}");
        assert_eq!(window.next(at), Ok(SendPurpose::Timed));
        window.on_sent(at);
        assert!(!window.on_rejected(sent(at, 110, SendPurpose::Timed)));
        assert!(window.on_admitted(at + 0.1, sent(at, 110, SendPurpose::Timed)));
    }

    #[test]
    fn shrinking_window_refutes_the_hypothesis() {
        let mut window = doubtful(108);
        assert!(!window.on_rejected(sent(20.2, 109, SendPurpose::Clocked)));
        assert_eq!(window.count(), 8.0);
        assert_eq!(work(&mut window, 20.3), 0, "nothing more is sent in this window");
        let mut window = doubtful(105);
        assert!(window.on_rejected(sent(20.2, 109, SendPurpose::Clocked)));
        assert_eq!(window.rate(), 1.0, "the rate is still the best estimate");
        let mut window = doubtful(105);
        let mut reject = |number| window.on_rejected(sent(20.1, number, SendPurpose::Work));
        assert_eq!([106, 107, 108].map(&mut reject), [false, false, true], "too many to be random");
    }

    #[test]
    fn random_rejection_does_not_end_the_window() {
        let mut window = doubtful(103);
        assert!(!window.on_rejected(sent(20.1, 104, SendPurpose::Work)));
        assert!(!window.on_admitted(20.3, sent(20.2, 109, SendPurpose::Clocked)));
        // Nine were sent before and one as a test, and two of these were rejected.
        assert_eq!(work(&mut window, 20.3), 2);
        let mut window = doubtful(103);
        window.on_discarded(sent(20.2, 109, SendPurpose::Clocked));
        assert_eq!(window.next(20.2), Ok(SendPurpose::Clocked), "another test");
    }

    /// Returns a window of ten that rejected one of the nine requests from 100 on. A test is in flight.
    fn doubtful(rejected: u64) -> WindowHypothesis {
        let mut window = open(10.0);
        (0..8).for_each(|_| window.on_sent(20.0));
        assert!(!window.on_rejected(sent(20.1, rejected, SendPurpose::Work)));
        assert_eq!(window.next(20.2), Ok(SendPurpose::Clocked));
        window.on_sent(20.2);
        assert_eq!(window.next(20.2), Err(None));
        window
    }

    /// Runs windows of that length; the second opening is only known to two seconds. Returns the
    /// number of canaries that were sent too early, and the length found.
    fn find_length(length: f64) -> (u32, f64) {
        let first = TimeBounds { after: 9.5, until: 10.0 };
        let second = TimeBounds { after: 9.0 + length, until: 11.0 + length };
        let found = FoundWindow { count: 10.0, first, second, number: 100 };
        let (mut window, mut rejected) = (WindowHypothesis::new(found), 0);
        let mut now = second.until;
        while now < 30.0 * length {
            match window.next(now) {
                Err(Some(at)) => now = at,
                Err(None) => panic!("nothing is in flight"),
                Ok(purpose) => {
                    window.on_sent(now);
                    let opened = ((now - 9.8) / length).floor() * length + 9.8;
                    let is_open = purpose != SendPurpose::Timed && now - opened < 0.4 * length;
                    let request = sent(now, 0, purpose);
                    if is_open {
                        assert!(!window.on_admitted(now, request));
                    } else {
                        rejected += u32::from(purpose == SendPurpose::Probe);
                        assert!(!window.on_rejected(request));
                    }
                }
            }
        }
        (rejected, window.length())
    }

    #[test]
    fn length_is_found_by_a_few_canaries() {
        for length in [7.0, 3.7, 11.0, 8.3] {
            let (rejected, found) = find_length(length);
            assert!((found / length - 1.0).abs() < 0.02, "{found} for {length}");
            assert!(rejected < 15, "{rejected} for {length}");
        }
    }

    #[test]
    fn discarded_request_is_followed_by_another() {
        let mut window = open(10.0);
        window.on_sent(20.0);
        window.on_discarded(sent(20.0, 101, SendPurpose::Work));
        assert_eq!(work(&mut window, 20.0), 9);
        let mut window = waiting(10.0);
        window.on_sent(30.0);
        window.on_discarded(sent(30.0, 110, SendPurpose::Probe));
        assert_eq!(window.next(30.0), Ok(SendPurpose::Probe));
    }
}
