//! The queue of a pool: fair between runs, first in first out within a run, retries first.
//!
//! Cancelled requests are removed from an index only. Their entries in the queues stay as tombstones
//! and are skipped later, so that every operation takes constant time, amortized.

use std::collections::{HashMap, VecDeque};

/// A waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The run that a request belongs to. Pools are shared fairly between runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RunTag(pub u64);

/// Tombstones tolerated before compaction, beyond one for each live entry.
const MAX_TOMBSTONES: usize = 32;

/// The waiting requests of a pool, each with a value.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// All waiting requests. A ticket in a run's queue that is missing here is a tombstone.
    waiting: HashMap<Ticket, Waiter<T>>,
    runs: HashMap<RunTag, RunQueue>,
    /// Slots of the runs, the next one first. Slots of runs that have left are skipped.
    slots: VecDeque<RunSlot>,
    /// Number of slots assigned so far.
    slot_count: u64,
    tombstones: usize,
}

#[derive(Debug)]
struct Waiter<T> {
    run: RunTag,
    value: T,
}

/// A run's position in the round robin. A run that leaves and returns gets a slot with another
/// number, which distinguishes it from the old slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunSlot {
    run: RunTag,
    number: u64,
}

/// The waiting requests of one run.
#[derive(Debug)]
struct RunQueue {
    slot: RunSlot,
    /// Number of entries that are not tombstones.
    live: usize,
    retries: VecDeque<Ticket>,
    fresh: VecDeque<Ticket>,
}

impl RunQueue {
    /// Returns the number of entries, tombstones included.
    fn entries(&self) -> usize {
        self.retries.len() + self.fresh.len()
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            waiting: HashMap::new(),
            runs: HashMap::new(),
            slots: VecDeque::new(),
            slot_count: 0,
            tombstones: 0,
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Appends a request to the queue of its run.
    pub(crate) fn push(&mut self, ticket: Ticket, run: RunTag, is_retry: bool, value: T) {
        let queue = self.runs.entry(run).or_insert_with(|| {
            let slot = RunSlot { run, number: self.slot_count };
            self.slot_count += 1;
            self.slots.push_back(slot);
            RunQueue { slot, live: 0, retries: VecDeque::new(), fresh: VecDeque::new() }
        });
        queue.live += 1;
        if is_retry { &mut queue.retries } else { &mut queue.fresh }.push_back(ticket);
        self.waiting.insert(ticket, Waiter { run, value });
    }

    /// Removes a request that was not granted. A run without requests loses its slot.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let Waiter { run, value } = self.waiting.remove(&ticket)?;
        self.tombstones += 1;
        if self.remove_live(run) {
            self.drop_run(run);
        }
        // Without compaction, requests that come and go would fill the memory.
        if self.tombstones > self.waiting.len() + MAX_TOMBSTONES {
            self.compact();
        }
        if self.slots.len() > 2 * self.runs.len() + MAX_TOMBSTONES {
            let runs = &self.runs;
            self.slots.retain(|slot| is_current(runs, *slot));
        }
        Some(value)
    }

    /// Returns the next request.
    pub(crate) fn front(&mut self) -> Option<(Ticket, &T)> {
        while !is_current(&self.runs, *self.slots.front()?) {
            self.slots.pop_front();
        }
        let queue = self.runs.get_mut(&self.slots.front()?.run)?;
        let mut first = None;
        for tickets in [&mut queue.retries, &mut queue.fresh] {
            while first.is_none()
                && let Some(ticket) = tickets.front()
            {
                if self.waiting.contains_key(ticket) {
                    first = Some(*ticket);
                } else {
                    tickets.pop_front();
                    self.tombstones = self.tombstones.saturating_sub(1);
                }
            }
        }
        let ticket = first?;
        self.waiting.get(&ticket).map(|waiter| (ticket, &waiter.value))
    }

    /// Removes and returns the next request; its run goes to the end of the round robin.
    pub(crate) fn pop(&mut self) -> Option<(Ticket, T)> {
        let (ticket, _) = self.front()?;
        let slot = self.slots.pop_front()?;
        if let Some(queue) = self.runs.get_mut(&slot.run) {
            if queue.retries.front() == Some(&ticket) {
                queue.retries.pop_front();
            } else {
                queue.fresh.pop_front();
            }
        }
        if self.remove_live(slot.run) {
            self.drop_run(slot.run);
        } else {
            self.slots.push_back(slot);
        }
        self.waiting.remove(&ticket).map(|waiter| (ticket, waiter.value))
    }

    /// Removes and returns all requests.
    pub(crate) fn clear(&mut self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.waiting.drain().map(|(ticket, _)| ticket).collect();
        tickets.sort_unstable();
        *self = Queue::default();
        tickets
    }

    /// Counts one live entry less; returns whether it was the run's last.
    fn remove_live(&mut self, run: RunTag) -> bool {
        self.runs.get_mut(&run).is_some_and(|queue| {
            queue.live = queue.live.saturating_sub(1);
            queue.live == 0
        })
    }

    /// Removes a run without live entries. Its slot is skipped later.
    fn drop_run(&mut self, run: RunTag) {
        if let Some(queue) = self.runs.remove(&run) {
            self.tombstones = self.tombstones.saturating_sub(queue.entries());
        }
    }

    /// Removes all tombstones.
    fn compact(&mut self) {
        for queue in self.runs.values_mut() {
            queue.retries.retain(|ticket| self.waiting.contains_key(ticket));
            queue.fresh.retain(|ticket| self.waiting.contains_key(ticket));
        }
        self.tombstones = 0;
    }
}

fn is_current(runs: &HashMap<RunTag, RunQueue>, slot: RunSlot) -> bool {
    runs.get(&slot.run).is_some_and(|queue| queue.slot == slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_without_waiting_requests_loses_its_slot() {
        let mut queue = Queue::default();
        queue.push(Ticket(0), RunTag(1), false, ());
        queue.push(Ticket(1), RunTag(2), false, ());
        queue.remove(Ticket(0));
        queue.push(Ticket(2), RunTag(1), false, ());
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(t, ())| t.0).collect();
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn cancelled_requests_leave_few_tombstones() {
        let mut queue = Queue::default();
        queue.push(Ticket(0), RunTag(0), false, ());
        for number in 1..10_000 {
            queue.push(Ticket(number), RunTag(number % 7), number % 2 == 0, ());
            queue.remove(Ticket(number));
        }
        let entries: usize = queue.runs.values().map(RunQueue::entries).sum();
        assert_eq!((queue.runs.len(), queue.len()), (1, 1));
        assert!(
            entries <= 2 * MAX_TOMBSTONES && queue.slots.len() <= 2 * MAX_TOMBSTONES,
            "{entries}"
        );
        assert_eq!(queue.pop(), Some((Ticket(0), ())));
        assert_eq!(queue.pop(), None);
    }
}
