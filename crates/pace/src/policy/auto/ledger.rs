//! The requests in flight and which of them count as admitted.
//!
//! Providers reject quickly and answer slowly. A request that was not rejected within a short time, the
//! patience, therefore counts as admitted, long before its answer arrives.

use super::mirror::MirrorStamp;
use crate::Flight;
use std::collections::{HashMap, VecDeque};

/// Number of accepted requests whose send times are kept.
pub(super) const MAX_RECENT: usize = 4096;

/// The purpose of a request: regular work, or a test of a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPurpose {
    /// No test.
    Work,
    /// Test whether the slot of an ended request can be used again.
    Clocked,
    /// Test whether time alone frees capacity.
    Timed,
    /// Test whether there is more capacity than before.
    Probe,
    /// Test whether a rejection was random.
    Burst,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentRequest {
    /// When it was sent.
    pub(super) at: f64,
    /// Number of requests sent before it.
    pub(super) number: u64,
    /// Requests in flight when it was sent, without itself.
    pub(super) level: u32,
    pub(super) purpose: SendPurpose,
    pub(super) is_admitted: bool,
    pub(super) stamps: [MirrorStamp; 4],
    /// Requests accepted before it.
    pub(super) accepted: f64,
}

#[cfg(test)]
impl SentRequest {
    /// Returns a first request without others in flight, for tests.
    pub(super) fn example(at: f64, purpose: SendPurpose) -> SentRequest {
        SentRequest {
            at,
            number: 0,
            level: 0,
            purpose,
            is_admitted: false,
            stamps: Default::default(),
            accepted: 0.0,
        }
    }
}

/// All requests in flight and the counts derived from them.
#[derive(Debug)]
pub(super) struct Ledger {
    flights: HashMap<Flight, SentRequest>,
    /// Requests not known to be admitted, oldest first. Ended ones are skipped.
    undecided: VecDeque<(f64, Flight)>,
    sends: u64,
    /// Requests sent and not rejected: their number, and the send times of the last ones.
    accepted: f64,
    recent: VecDeque<f64>,
    /// Maximum time until a rejection, in seconds.
    patience: f64,
    has_rejections: bool,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger {
            flights: HashMap::new(),
            undecided: VecDeque::new(),
            sends: 0,
            accepted: 0.0,
            recent: VecDeque::new(),
            patience: 0.25,
            has_rejections: false,
        }
    }

    pub(super) fn send(
        &mut self,
        flight: Flight,
        at: f64,
        level: u32,
        purpose: SendPurpose,
        stamps: [MirrorStamp; 4],
    ) {
        let number = self.sends;
        let sent = SentRequest {
            at,
            number,
            level,
            purpose,
            is_admitted: false,
            stamps,
            accepted: self.accepted,
        };
        self.accepted += 1.0;
        self.recent.push_back(at);
        if self.recent.len() > MAX_RECENT {
            self.recent.pop_front();
        }
        self.sends += 1;
        self.flights.insert(flight, sent);
        self.undecided.push_back((at, flight));
    }

    /// Returns the next request that counts as admitted by now.
    pub(super) fn admit_next(&mut self, now: f64) -> Option<SentRequest> {
        while let Some(&(at, flight)) = self.undecided.front()
            && at + self.patience <= now
        {
            self.undecided.pop_front();
            if let Some(sent) = self.flights.get_mut(&flight)
                && !sent.is_admitted
            {
                sent.is_admitted = true;
                return Some(*sent);
            }
        }
        None
    }

    /// Returns the number of requests that were sent after that one and admitted.
    pub(super) fn admitted_after(&self, number: u64) -> u64 {
        let newest = self.undecided.iter().rev().map_while(|(_, flight)| {
            let later = self.flights.get(flight);
            later.is_none_or(|later| later.number > number).then_some(later)
        });
        let undecided = newest.flatten().filter(|later| !later.is_admitted).count() as u64;
        (self.sends - 1).saturating_sub(number).saturating_sub(undecided)
    }

    /// Returns whether the outcome of a request is neither known nor assumed.
    pub(super) fn has_undecided(&self) -> bool {
        let mut flights = self.undecided.iter().filter_map(|(_, flight)| self.flights.get(flight));
        flights.any(|sent| !sent.is_admitted)
    }

    /// Removes a request that has ended.
    pub(super) fn remove(&mut self, flight: Flight) -> Option<SentRequest> {
        self.flights.remove(&flight)
    }

    /// Handles a rejection that took `after` seconds. The patience follows the time of rejections.
    pub(super) fn reject(&mut self, sent: &SentRequest, after: f64) {
        self.accepted -= 1.0;
        let index = self.recent.partition_point(|at| *at < sent.at);
        if self.recent.get(index) == Some(&sent.at) {
            self.recent.remove(index);
        }
        self.correct_later(sent.number, |later| later.accepted -= 1.0);
        self.free(sent);
        let patience =
            if self.has_rejections { (1.6 * after).max(self.patience) } else { 2.0 * after };
        self.has_rejections = true;
        self.patience = patience.clamp(0.08, 1.0);
    }

    /// Handles a request that ended before it counted as admitted, so that it probably never took a
    /// slot: requests sent meanwhile met one request less in flight than was counted.
    pub(super) fn free(&mut self, sent: &SentRequest) {
        let correct = |later: &mut SentRequest| later.level = later.level.saturating_sub(1);
        self.correct_later(sent.number, correct);
    }

    /// Calls `correct` with the undecided requests that were sent after that one.
    fn correct_later(&mut self, number: u64, correct: impl Fn(&mut SentRequest)) {
        for (_, flight) in self.undecided.iter().rev() {
            match self.flights.get_mut(flight) {
                Some(later) if later.number > number => correct(later),
                Some(_) => break,
                None => {}
            }
        }
    }

    /// Returns the number of requests sent and not rejected.
    pub(super) fn accepted(&self) -> f64 {
        self.accepted
    }

    /// Returns when the request was sent after which `count` - 1 were accepted, if it is known.
    pub(super) fn nth_last_accepted(&self, count: usize) -> Option<f64> {
        self.recent.get(self.recent.len().checked_sub(count)?).copied()
    }

    /// Returns the number of requests sent, including rejected ones.
    pub(super) fn sends(&self) -> u64 {
        self.sends
    }

    pub(super) fn patience(&self) -> f64 {
        self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(ledger: &mut Ledger, number: u64, at: f64, level: u32) {
        ledger.send(Flight(number), at, level, SendPurpose::Work, Default::default());
    }

    #[test]
    fn requests_not_rejected_in_time_count_as_admitted() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 0, 0.0, 0);
        send(&mut ledger, 1, 0.1, 1);
        assert!(ledger.admit_next(0.2).is_none());
        assert_eq!(ledger.admit_next(0.3).map(|sent| sent.number), Some(0));
        assert!(ledger.admit_next(0.3).is_none());
        let ended = ledger.remove(Flight(1)).unwrap();
        assert!(!ended.is_admitted);
        assert!(ledger.admit_next(9.0).is_none(), "it has ended");
    }

    #[test]
    fn rejection_corrects_later_requests() {
        let mut ledger = Ledger::new();
        (0..3).for_each(|number| send(&mut ledger, number, number as f64 / 100.0, number as u32));
        let rejected = ledger.remove(Flight(1)).unwrap();
        ledger.reject(&rejected, 0.05);
        let later = ledger.remove(Flight(2)).unwrap();
        assert_eq!((later.level, later.accepted), (1, 1.0));
        let earlier = ledger.remove(Flight(0)).unwrap();
        assert_eq!((earlier.level, earlier.accepted), (0, 0.0));
        assert_eq!(ledger.accepted(), 2.0);
        assert_eq!(ledger.nth_last_accepted(1), Some(0.02));
        assert_eq!(ledger.nth_last_accepted(2), Some(0.0), "the second was rejected");
        assert_eq!(ledger.nth_last_accepted(3), None);
    }

    #[test]
    fn patience_follows_the_time_of_rejections() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 0, 0.0, 0);
        let sent = ledger.remove(Flight(0)).unwrap();
        ledger.reject(&sent, 0.1);
        assert_eq!(ledger.patience(), 0.2);
        ledger.reject(&sent, 0.3);
        assert!((ledger.patience() - 0.48).abs() < 1e-9);
        ledger.reject(&sent, 9.0);
        assert_eq!(ledger.patience(), 1.0);
    }
}
