//! Who waits, and who is next.
//!
//! Runs take turns; within a run it is first come, first served, with retries before everybody
//! else. Who leaves is only forgotten, and the empty place skipped later, so that everything costs
//! the same however many wait.

use std::collections::{HashMap, VecDeque};

/// One waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Whose request it is: pools are shared fairly between these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RunTag(pub u64);

/// Empty places that do no harm yet, beside as many as there are taken ones.
const FEW: usize = 32;

/// The waiting requests of a pool, each with something of its own.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Everybody who waits. Who has left is still in a line, and is skipped there.
    waiting: HashMap<Ticket, Waiter<T>>,
    lines: HashMap<RunTag, Line>,
    /// Runs with a line, the next one first, and turns of lines that are gone.
    turns: VecDeque<Turn>,
    /// Turns there have been.
    turn_count: u64,
    /// Places in lines of those who have left.
    gone: usize,
}

#[derive(Debug)]
struct Waiter<T> {
    run: RunTag,
    of: T,
}

/// A run's place among the others. A run that leaves and comes again gets another number, so that
/// its old place is not taken for its new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    run: RunTag,
    number: u64,
}

#[derive(Debug)]
struct Line {
    turn: Turn,
    /// Those in it who have not left.
    live: usize,
    retries: VecDeque<Ticket>,
    fresh: VecDeque<Ticket>,
}

impl Line {
    fn places(&self) -> usize {
        self.retries.len() + self.fresh.len()
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            waiting: HashMap::new(),
            lines: HashMap::new(),
            turns: VecDeque::new(),
            turn_count: 0,
            gone: 0,
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Joins its run's line.
    pub(crate) fn push(&mut self, ticket: Ticket, run: RunTag, is_retry: bool, of: T) {
        let line = self.lines.entry(run).or_insert_with(|| {
            let turn = Turn { run, number: self.turn_count };
            self.turn_count += 1;
            self.turns.push_back(turn);
            Line { turn, live: 0, retries: VecDeque::new(), fresh: VecDeque::new() }
        });
        line.live += 1;
        if is_retry { &mut line.retries } else { &mut line.fresh }.push_back(ticket);
        self.waiting.insert(ticket, Waiter { run, of });
    }

    /// Leaves, without having been served. The last of a run takes its turn along.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let Waiter { run, of } = self.waiting.remove(&ticket)?;
        self.gone += 1;
        if self.leave(run) {
            self.drop_line(run);
        }
        // Else a crowd that comes and goes would fill the memory.
        if self.gone > self.waiting.len() + FEW {
            self.sweep_lines();
        }
        if self.turns.len() > 2 * self.lines.len() + FEW {
            let lines = &self.lines;
            self.turns.retain(|turn| is_current(lines, *turn));
        }
        Some(of)
    }

    /// Who is next.
    pub(crate) fn front(&mut self) -> Option<(Ticket, &T)> {
        while !is_current(&self.lines, *self.turns.front()?) {
            self.turns.pop_front();
        }
        let line = self.lines.get_mut(&self.turns.front()?.run)?;
        let mut first = None;
        for tickets in [&mut line.retries, &mut line.fresh] {
            while first.is_none()
                && let Some(ticket) = tickets.front()
            {
                if self.waiting.contains_key(ticket) {
                    first = Some(*ticket);
                } else {
                    tickets.pop_front();
                    self.gone = self.gone.saturating_sub(1);
                }
            }
        }
        let ticket = first?;
        self.waiting.get(&ticket).map(|waiter| (ticket, &waiter.of))
    }

    /// Serves who is next; its run goes to the end of the turns.
    pub(crate) fn pop(&mut self) -> Option<(Ticket, T)> {
        let (ticket, _) = self.front()?;
        let turn = self.turns.pop_front()?;
        if let Some(line) = self.lines.get_mut(&turn.run) {
            if line.retries.front() == Some(&ticket) {
                line.retries.pop_front();
            } else {
                line.fresh.pop_front();
            }
        }
        if self.leave(turn.run) {
            self.drop_line(turn.run);
        } else {
            self.turns.push_back(turn);
        }
        self.waiting.remove(&ticket).map(|waiter| (ticket, waiter.of))
    }

    /// Everybody leaves.
    pub(crate) fn clear(&mut self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.waiting.drain().map(|(ticket, _)| ticket).collect();
        tickets.sort_unstable();
        *self = Queue::default();
        tickets
    }

    /// One less in a line; whether it was the last.
    fn leave(&mut self, run: RunTag) -> bool {
        self.lines.get_mut(&run).is_some_and(|line| {
            line.live = line.live.saturating_sub(1);
            line.live == 0
        })
    }

    /// Takes away a line in which nobody is left. Its turn is skipped when it comes.
    fn drop_line(&mut self, run: RunTag) {
        if let Some(line) = self.lines.remove(&run) {
            self.gone = self.gone.saturating_sub(line.places());
        }
    }

    fn sweep_lines(&mut self) {
        for line in self.lines.values_mut() {
            line.retries.retain(|ticket| self.waiting.contains_key(ticket));
            line.fresh.retain(|ticket| self.waiting.contains_key(ticket));
        }
        self.gone = 0;
    }
}

fn is_current(lines: &HashMap<RunTag, Line>, turn: Turn) -> bool {
    lines.get(&turn.run).is_some_and(|line| line.turn == turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_waiters_have_all_left_loses_its_turn() {
        let mut queue = Queue::default();
        queue.push(Ticket(0), RunTag(1), false, ());
        queue.push(Ticket(1), RunTag(2), false, ());
        queue.remove(Ticket(0));
        queue.push(Ticket(2), RunTag(1), false, ());
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(t, ())| t.0).collect();
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn a_crowd_that_comes_and_goes_leaves_nothing_behind() {
        let mut queue = Queue::default();
        queue.push(Ticket(0), RunTag(0), false, ());
        for number in 1..10_000 {
            queue.push(Ticket(number), RunTag(number % 7), number % 2 == 0, ());
            queue.remove(Ticket(number));
        }
        let places: usize = queue.lines.values().map(Line::places).sum();
        assert_eq!((queue.lines.len(), queue.len()), (1, 1));
        assert!(places <= 2 * FEW && queue.turns.len() <= 2 * FEW, "{places}");
        assert_eq!(queue.pop(), Some((Ticket(0), ())));
        assert_eq!(queue.pop(), None);
    }
}
