//! Who waits, and who is next.
//!
//! Runs take turns; within a run it is first come, first served, with retries before everybody
//! else.

use std::collections::{HashMap, VecDeque};

/// One waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Whose request it is: pools are shared fairly between these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RunTag(pub u64);

/// The waiting requests of a pool, each with something of its own.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Everybody who waits. Who has left is still in a line, and is skipped there.
    waiting: HashMap<Ticket, T>,
    lines: HashMap<RunTag, Line>,
    /// Runs with a line, the next one first.
    turns: VecDeque<RunTag>,
    /// Places in lines of those who have left.
    gone: usize,
}

#[derive(Debug, Default)]
struct Line {
    retries: VecDeque<Ticket>,
    fresh: VecDeque<Ticket>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { waiting: HashMap::new(), lines: HashMap::new(), turns: VecDeque::new(), gone: 0 }
    }
}

impl<T> Queue<T> {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Joins its run's line.
    pub(crate) fn push(&mut self, ticket: Ticket, run: RunTag, is_retry: bool, of: T) {
        let line = self.lines.entry(run).or_insert_with(|| {
            self.turns.push_back(run);
            Line::default()
        });
        if is_retry { &mut line.retries } else { &mut line.fresh }.push_back(ticket);
        self.waiting.insert(ticket, of);
    }

    /// Leaves, without having been served.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let of = self.waiting.remove(&ticket)?;
        self.gone += 1;
        // Else a crowd that comes and goes would fill the memory.
        if self.gone > self.waiting.len() + 32 {
            self.sweep();
        }
        Some(of)
    }

    /// Who is next.
    pub(crate) fn front(&mut self) -> Option<(Ticket, &T)> {
        let ticket = loop {
            let run = *self.turns.front()?;
            let ticket = self.lines.get_mut(&run).and_then(|line| {
                let tickets = [&mut line.retries, &mut line.fresh];
                tickets.into_iter().find_map(|tickets| {
                    while let Some(ticket) = tickets.front() {
                        if self.waiting.contains_key(ticket) {
                            return Some(*ticket);
                        }
                        tickets.pop_front();
                        self.gone = self.gone.saturating_sub(1);
                    }
                    None
                })
            });
            match ticket {
                Some(ticket) => break ticket,
                None => {
                    self.turns.pop_front();
                    self.lines.remove(&run);
                }
            }
        };
        self.waiting.get(&ticket).map(|of| (ticket, of))
    }

    /// Serves who is next; its run goes to the end of the turns.
    pub(crate) fn pop(&mut self) -> Option<(Ticket, T)> {
        let (ticket, _) = self.front()?;
        let run = self.turns.pop_front()?;
        if let Some(line) = self.lines.get_mut(&run) {
            if line.retries.front() == Some(&ticket) {
                line.retries.pop_front();
            } else {
                line.fresh.pop_front();
            }
            if line.retries.is_empty() && line.fresh.is_empty() {
                self.lines.remove(&run);
            } else {
                self.turns.push_back(run);
            }
        }
        self.waiting.remove(&ticket).map(|of| (ticket, of))
    }

    /// Everybody leaves.
    pub(crate) fn clear(&mut self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.waiting.drain().map(|(ticket, _)| ticket).collect();
        tickets.sort_unstable();
        *self = Queue::default();
        tickets
    }

    fn sweep(&mut self) {
        for line in self.lines.values_mut() {
            line.retries.retain(|ticket| self.waiting.contains_key(ticket));
            line.fresh.retain(|ticket| self.waiting.contains_key(ticket));
        }
        self.gone = 0;
    }
}
