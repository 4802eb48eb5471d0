//! Retries that wait for their time before they enter the queue.

use crate::{PermitRequest, Ticket};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What ends the delay of a retry before its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DelayEnd {
    /// Nothing.
    #[default]
    Never,
    /// The end of an outage of the provider.
    Recovery,
    /// An answer to another request while no request is in the queue.
    Idle,
}

/// The delayed retries of a pool, ordered by their time.
#[derive(Debug, Default)]
pub(crate) struct DelayedRetries {
    by_time: BTreeMap<(Duration, Ticket), PermitRequest>,
    times: HashMap<Ticket, Duration>,
}

impl DelayedRetries {
    pub(crate) fn len(&self) -> usize {
        self.by_time.len()
    }

    pub(crate) fn insert(&mut self, at: Duration, ticket: Ticket, request: PermitRequest) {
        self.by_time.insert((at, ticket), request);
        self.times.insert(ticket, at);
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) {
        if let Some(at) = self.times.remove(&ticket) {
            self.by_time.remove(&(at, ticket));
        }
    }

    /// Returns the time of the next retry.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the next retry whose time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Ticket, PermitRequest)> {
        let due = self.by_time.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, ticket), request) = due.remove_entry();
        self.times.remove(&ticket);
        Some((ticket, request))
    }

    /// Removes and returns the retries that back off from failures, in the order in which they failed.
    pub(crate) fn take_backing_off(&mut self) -> Vec<(Ticket, PermitRequest)> {
        let mut taken = Vec::new();
        self.by_time.retain(|(_, ticket), request| {
            let is_released = request.delay_end == DelayEnd::Recovery;
            if is_released {
                taken.push((*ticket, *request));
            }
            !is_released
        });
        for (ticket, _) in &taken {
            self.times.remove(ticket);
        }
        taken.sort_unstable_by_key(|(ticket, _)| *ticket);
        taken
    }

    /// Removes and returns the next retry whose delay ends when the queue is empty.
    pub(crate) fn pop_idle(&mut self) -> Option<(Ticket, PermitRequest)> {
        let mut idle =
            self.by_time.iter().filter(|(_, request)| request.delay_end == DelayEnd::Idle);
        let (key, request) = idle.next().map(|(key, request)| (*key, *request))?;
        self.by_time.remove(&key);
        self.times.remove(&key.1);
        Some((key.1, request))
    }

    /// Removes all retries and returns their tickets.
    pub(crate) fn clear(&mut self) -> Vec<Ticket> {
        self.times.clear();
        std::mem::take(&mut self.by_time).into_keys().map(|(_, ticket)| ticket).collect()
    }
}
