//! Every request that is on its way, and which of them count as admitted.
//!
//! Providers reject quickly and answer slowly. So a request that has not bounced within a short
//! patience counts as admitted, long before its answer is there.

use super::mirror::Stamp;
use crate::Flight;
use std::collections::{HashMap, VecDeque};

/// Why a request goes out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
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
pub(super) struct Sent {
    /// When it went out.
    pub(super) at: f64,
    /// How many went out before it.
    pub(super) number: u64,
    /// How many were in flight when it went out, itself not counted.
    pub(super) level: u32,
    pub(super) purpose: Purpose,
    pub(super) is_admitted: bool,
    pub(super) stamps: [Stamp; 4],
}

#[derive(Debug)]
pub(super) struct Ledger {
    flights: HashMap<Flight, Sent>,
    /// Not yet known to be admitted, oldest first; those that have ended are skipped.
    undecided: VecDeque<(f64, Flight)>,
    sends: u64,
    bounces: u64,
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
            bounces: 0,
            patience: 0.25,
            has_bounced: false,
        }
    }

    pub(super) fn send(
        &mut self,
        flight: Flight,
        at: f64,
        level: u32,
        purpose: Purpose,
        stamps: [Stamp; 4],
    ) {
        let number = self.sends;
        let sent = Sent { at, number, level, purpose, is_admitted: false, stamps };
        self.sends += 1;
        self.flights.insert(flight, sent);
        self.undecided.push_back((at, flight));
    }

    /// The next request that counts as admitted by now.
    pub(super) fn admit_next(&mut self, now: f64) -> Option<Sent> {
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
    pub(super) fn remove(&mut self, flight: Flight) -> Option<Sent> {
        self.flights.remove(&flight)
    }

    /// A request was rejected after so long. Bounces take about as long as each other.
    pub(super) fn bounce(&mut self, after: f64) {
        self.bounces += 1;
        let patience =
            if self.has_bounced { (1.6 * after).max(self.patience) } else { 2.0 * after };
        self.has_bounced = true;
        self.patience = patience.clamp(0.08, 1.0);
    }

    /// Requests sent, rejected ones too.
    pub(super) fn sends(&self) -> u64 {
        self.sends
    }

    /// Requests rejected.
    pub(super) fn bounces(&self) -> u64 {
        self.bounces
    }

    pub(super) fn patience(&self) -> f64 {
        self.patience
    }
}
