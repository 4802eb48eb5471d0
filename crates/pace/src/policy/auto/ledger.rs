//! Every request that is on its way, and which of them count as admitted.
//!
//! Providers reject quickly and answer slowly. So a request that has not bounced within a short
//! patience counts as admitted, long before its answer is there.

use super::mirror::MirrorStamp;
use crate::Flight;
use std::collections::{HashMap, VecDeque};

/// Why a request goes out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPurpose {
    /// It is its turn.
    Work,
    /// To find out whether a place that became free can be used again.
    Clocked,
    /// To find out whether time alone makes room.
    Timed,
    /// To find out whether there is more room than before.
    Probe,
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentRequest {
    /// When it went out.
    pub(super) at: f64,
    /// How many went out before it.
    pub(super) number: u64,
    /// How many were in flight when it went out, itself not counted.
    pub(super) level: u32,
    pub(super) purpose: SendPurpose,
    pub(super) is_admitted: bool,
    pub(super) stamps: [MirrorStamp; 4],
    /// What had been accepted before it.
    pub(super) accepted: f64,
}

#[cfg(test)]
impl SentRequest {
    /// One for tests: the first ever, alone in flight.
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

#[derive(Debug)]
pub(super) struct Ledger {
    flights: HashMap<Flight, SentRequest>,
    /// Not yet known to be admitted, oldest first; those that have ended are skipped.
    undecided: VecDeque<(f64, Flight)>,
    sends: u64,
    /// Everything sent and not rejected.
    accepted: f64,
    /// How long a rejection may take.
    patience: f64,
    has_bounced: bool,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger {
            flights: HashMap::new(),
            undecided: VecDeque::new(),
            sends: 0,
            accepted: 0.0,
            patience: 0.25,
            has_bounced: false,
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
        self.sends += 1;
        self.flights.insert(flight, sent);
        self.undecided.push_back((at, flight));
    }

    /// The next request that counts as admitted by now.
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

    /// A request has ended.
    pub(super) fn remove(&mut self, flight: Flight) -> Option<SentRequest> {
        self.flights.remove(&flight)
    }

    /// A request was rejected after so long. Bounces take about as long as each other.
    pub(super) fn bounce(&mut self, sent: &SentRequest, after: f64) {
        self.accepted -= 1.0;
        // Those that went out meanwhile found one less in flight than we believed.
        for (_, flight) in self.undecided.iter().rev() {
            match self.flights.get_mut(flight) {
                Some(later) if later.number > sent.number => {
                    later.level = later.level.saturating_sub(1);
                    later.accepted -= 1.0;
                }
                Some(_) => break,
                None => {}
            }
        }
        let patience =
            if self.has_bounced { (1.6 * after).max(self.patience) } else { 2.0 * after };
        self.has_bounced = true;
        self.patience = patience.clamp(0.08, 1.0);
    }

    /// Requests sent and not rejected.
    pub(super) fn accepted(&self) -> f64 {
        self.accepted
    }

    /// Requests sent, rejected ones too.
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
    fn what_has_not_bounced_for_a_while_counts_as_admitted() {
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
    fn a_rejection_corrects_what_was_believed_of_those_after_it() {
        let mut ledger = Ledger::new();
        (0..3).for_each(|number| send(&mut ledger, number, number as f64 / 100.0, number as u32));
        let rejected = ledger.remove(Flight(1)).unwrap();
        ledger.bounce(&rejected, 0.05);
        let later = ledger.remove(Flight(2)).unwrap();
        assert_eq!((later.level, later.accepted), (1, 1.0));
        let earlier = ledger.remove(Flight(0)).unwrap();
        assert_eq!((earlier.level, earlier.accepted), (0, 0.0));
        assert_eq!(ledger.accepted(), 2.0);
    }

    #[test]
    fn the_patience_follows_how_long_rejections_take() {
        let mut ledger = Ledger::new();
        send(&mut ledger, 0, 0.0, 0);
        let sent = ledger.remove(Flight(0)).unwrap();
        ledger.bounce(&sent, 0.1);
        assert_eq!(ledger.patience(), 0.2);
        ledger.bounce(&sent, 0.3);
        assert!((ledger.patience() - 0.48).abs() < 1e-9);
        ledger.bounce(&sent, 9.0);
        assert_eq!(ledger.patience(), 1.0);
    }
}
