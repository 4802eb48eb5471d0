//! The work itself: packs flow, answers are journaled, rows are written in order.
//!
//! One task owns everything: it reads rows, starts requests as the pool has room for them, and takes
//! in what comes back. Requests are tasks of their own and know nothing of each other. There are no
//! waves: whenever something ends, something else may start.

use super::ask::{Asker, Ended};
use super::budget::Budget;
use super::doubt::{Doubt, Ruling, Waiting};
use super::facts::Fact;
use super::ladder::{Answer, FIRST, Ladder, Node, Outcome};
use super::record::{AskedRecord, Name};
use super::resume::Replay;
use super::shelf::{Done, Shelf};
use super::source::Source;
use super::spent::Spent;
use super::survey::Digest;
use super::{Finished, HeldRows, Progress, Stop};
use crate::error::Error;
use crate::pack::Pack;
use crate::row::Row;
use bakeoff_core::NanoDollars;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Most requests that are under way or wait for their turn.
const MOST_REQUESTS: usize = 4096;

/// Requests that wait for a permit, at least and at most: enough that there is always one, few
/// enough that what is asked again does not wait for long.
const WAITING: std::ops::RangeInclusive<usize> = 16..=64;

/// How often it is looked whether the pool has room, when nothing ends.
const TICK: Duration = Duration::from_millis(20);

/// A pack that is under way.
struct Active {
    pack: Arc<Pack>,
    /// A name for its rows.
    of: String,
    ladder: Ladder,
    facts: Vec<Fact>,
}

/// A request that has ended.
struct Returned {
    pack: u64,
    node: Node,
    expected: NanoDollars,
    ended: Ended,
    spent: Spent,
}

/// What came of a request.
#[derive(Debug)]
struct Settled {
    pack: u64,
    node: Node,
    outcome: Outcome,
    batch: Option<Answer>,
    spent: Spent,
}

/// How far it may go.
pub(super) struct Bounds {
    pub(super) budget: Budget,
    pub(super) held: HeldRows,
}

/// A job at work.
pub(super) struct Work<'l> {
    asker: Arc<Asker>,
    shelf: Shelf,
    replay: Replay,
    bounds: Bounds,
    active: HashMap<u64, Active>,
    requests: JoinSet<Returned>,
    /// Requests that wait until it is known what those under way cost.
    postponed: VecDeque<(u64, Node)>,
    /// Failures of the last model.
    doubtful: Waiting<Settled>,
    progress: Progress,
    stop: Option<Stop>,
    listen: &'l mut (dyn FnMut(&Progress) + Send),
}

impl<'l> Work<'l> {
    /// Nothing has been started.
    pub(super) fn new(
        asker: Asker,
        shelf: Shelf,
        replay: Replay,
        bounds: Bounds,
        progress: Progress,
        listen: &'l mut (dyn FnMut(&Progress) + Send),
    ) -> Work<'l> {
        Work {
            asker: Arc::new(asker),
            shelf,
            replay,
            bounds,
            active: HashMap::new(),
            requests: JoinSet::new(),
            postponed: VecDeque::new(),
            doubtful: Waiting::default(),
            progress,
            stop: None,
            listen,
        }
    }

    /// Works until every row has been written, or until it is stopped.
    pub(super) async fn go(
        mut self,
        mut source: Source,
        stop: &CancellationToken,
    ) -> Result<Finished, Error> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_exhausted = false;
        loop {
            // Looked at here as well, because answers may come without a pause.
            if stop.is_cancelled() {
                self.end(Stop::Interrupted);
            }
            // First of all into the journal, whatever comes next.
            self.write()?;
            self.ask_postponed();
            while self.stop.is_none() && !is_exhausted && self.has_room() {
                match source.next(&self.asker.task)? {
                    Some(pack) => self.start(pack)?,
                    None => is_exhausted = true,
                }
            }
            if self.requests.is_empty() {
                let ruling = self.doubtful.nothing_left();
                if self.stop.is_none() {
                    self.rule(ruling)?;
                }
                // Nothing is under way, and nothing can be written or started any more.
                let is_stuck = is_exhausted || (!self.has_room() && !self.shelf.is_moving());
                if self.stop.is_some() || (is_stuck && self.requests.is_empty()) {
                    break;
                }
                // Everything so far was known already; there is more.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(returned) = self.requests.join_next() => {
                    self.take(returned)?;
                    while let Some(returned) = self.requests.try_join_next() {
                        self.take(returned)?;
                    }
                }
                () = stop.cancelled(), if self.stop.is_none() => self.end(Stop::Interrupted),
                _ = tick.tick() => {}
            }
        }
        self.conclude()
    }

    /// Whether another pack may start.
    fn has_room(&self) -> bool {
        let is_full = !self.shelf.has_room(self.bounds.held);
        if is_full || !self.postponed.is_empty() || self.requests.len() >= MOST_REQUESTS {
            return false;
        }
        let Some((_, model)) = self.asker.models.first() else { return false };
        let Ok(pool) = self.asker.client.pool(model) else { return true };
        let snapshot = pool.snapshot();
        let others = self.asker.client.pools().into_iter().filter(|other| !other.ptr_eq(&pool));
        let in_flight: usize = others.map(|other| other.snapshot().in_flight as usize).sum();
        let in_flight = in_flight + snapshot.in_flight as usize;
        let room = snapshot.limit.saturating_sub(snapshot.in_flight) as usize;
        let waiting = self.requests.len().saturating_sub(in_flight);
        waiting < room.clamp(*WAITING.start(), *WAITING.end())
    }

    fn start(&mut self, pack: Pack) -> Result<(), Error> {
        self.shelf.reserve(&pack);
        let (number, pack) = (pack.number, Arc::new(pack));
        if let Some(reason) = &pack.refused {
            let answers = vec![Err(reason.clone()); pack.rows.len()];
            self.shelf.put(Done { pack, answers, facts: Vec::new() }, &mut self.progress);
            return Ok(());
        }
        let (ladder, first) = Ladder::new(pack.rows.len(), self.asker.turns());
        let mut digest = Digest::default();
        pack.rows.iter().for_each(|row| digest.add(row));
        let active = Active { pack, of: digest.finish(), ladder, facts: Vec::new() };
        self.active.insert(number, active);
        self.ask(number, vec![first])
    }

    /// Asks, unless an earlier process has asked already.
    fn ask(&mut self, number: u64, nodes: Vec<Node>) -> Result<(), Error> {
        let mut nodes = VecDeque::from(nodes);
        while let Some(node) = nodes.pop_front() {
            let Some(name) = self.name(number, &node) else { continue };
            let was_over = self.replay.is_over();
            let recorded = self.replay.take(&name)?;
            match recorded.and_then(|record| record.outcome(&node)) {
                Some((outcome, batch)) => {
                    let is_answer = outcome.answers.iter().any(Result::is_ok);
                    nodes.extend(self.settle(number, &node, outcome, batch));
                    if is_answer && self.asker.turns().is_last(node.turn) {
                        let failures = self.doubtful.answered_before();
                        self.rule(Ruling::Take(failures))?;
                    }
                }
                None => self.postponed.push_back((number, node)),
            }
            if self.replay.is_over() && !was_over {
                // Before anything is paid for: what is there is what would be written.
                self.write()?;
                self.shelf.expect_end()?;
            }
        }
        self.ask_postponed();
        Ok(())
    }

    /// The name of a request in the journal.
    fn name(&self, pack: u64, node: &Node) -> Option<Name> {
        let of = self.active.get(&pack)?.of.clone();
        Some(Name { pack, of, path: node.path.clone() })
    }

    /// Makes the requests that there is money for. What is not asked is asked by the next process.
    fn ask_postponed(&mut self) {
        while self.stop.is_none()
            && let Some((number, node)) = self.postponed.pop_front()
        {
            let Some(active) = self.active.get(&number) else { continue };
            let (asker, pack) = (Arc::clone(&self.asker), Arc::clone(&active.pack));
            let expected = match self.bounds.budget.is_bounded() {
                true => asker.expected(&node, &rows_of(&node, &pack)),
                false => NanoDollars(0),
            };
            if !self.bounds.budget.allows(expected) {
                self.postponed.push_front((number, node));
                if self.requests.is_empty() {
                    self.end(Stop::Budget);
                }
                break;
            }
            self.bounds.budget.start(expected);
            self.requests.spawn(async move {
                let (ended, spent) = asker.ask(&node, &rows_of(&node, &pack)).await;
                Returned { pack: number, node, expected, ended, spent }
            });
        }
        if self.stop.is_some() {
            self.postponed.clear();
        }
    }

    /// Takes in what came back: first into the journal, then into the books.
    fn take(&mut self, returned: Result<Returned, tokio::task::JoinError>) -> Result<(), Error> {
        // A task that broke is a fault of this program; its rows are asked about by the next process.
        let Ok(Returned { pack, node, expected, ended, spent }) = returned else {
            self.end(Stop::Refused("a request broke; please report this".to_owned()));
            return Ok(());
        };
        self.progress.requests += spent.requests;
        self.progress.cached += spent.cached;
        self.progress.again += if node.path == FIRST { 0 } else { spent.requests };
        let costs = self.progress.cost.zip(spent.cost);
        self.progress.cost = costs.map(|(sum, cost)| sum.saturating_add(cost));
        self.progress.usage += spent.usage;
        self.bounds.budget.end(expected, spent.cost.unwrap_or(NanoDollars(0)));
        let (is_last, rows) = (self.asker.turns().is_last(node.turn), node.rows.len());
        let settled = |outcome, batch| Settled { pack, node, outcome, batch, spent };
        match ended {
            Ended::Answered { outcome, batch } => {
                self.note(settled(outcome, batch))?;
                if is_last {
                    let failures = match spent.requests {
                        0 => self.doubtful.answered_before(),
                        _ => self.doubtful.answered(),
                    };
                    self.rule(Ruling::Take(failures))?;
                }
            }
            Ended::Doubtful(outcome, doubt) if is_last => {
                let ruling = self.doubtful.failed(settled(outcome, None), doubt);
                self.rule(ruling)?;
            }
            Ended::Failed(outcome) | Ended::Doubtful(outcome, _) => {
                self.note(settled(outcome, None))?;
            }
            Ended::Refused(reason) if is_last => self.end(Stop::Refused(reason)),
            Ended::Refused(reason) => {
                self.note(settled(Outcome::failed(&reason, rows, false), None))?;
            }
            Ended::Stopped => {}
        }
        // Whoever still waits for a turn need not.
        if self.bounds.budget.is_exceeded() {
            self.end(Stop::Budget);
        }
        Ok(())
    }

    /// Does what is to be done about failures.
    fn rule(&mut self, ruling: Ruling<Settled>) -> Result<(), Error> {
        match ruling {
            Ruling::Wait => {}
            Ruling::Take(failures) => {
                for (failure, doubt) in failures {
                    match doubt == Doubt::Trouble && !failure.node.is_second {
                        true => {
                            let node = Node { is_second: true, ..failure.node };
                            self.postponed.push_back((failure.pack, node));
                        }
                        false => self.note(failure)?,
                    }
                }
                self.ask_postponed();
            }
            Ruling::GiveUp(last) => {
                let reason = last.outcome.reason().unwrap_or_default();
                self.end(Stop::Refused(format!("no request is answered any more: {reason}")));
            }
        }
        Ok(())
    }

    fn note(&mut self, settled: Settled) -> Result<(), Error> {
        let Settled { pack, node, outcome, batch, spent } = settled;
        let Some(name) = self.name(pack, &node) else { return Ok(()) };
        self.shelf.journal(AskedRecord::new(name, &node, &outcome, batch.as_ref(), spent))?;
        let next = self.settle(pack, &node, outcome, batch);
        self.ask(pack, next)
    }

    fn settle(
        &mut self,
        number: u64,
        node: &Node,
        outcome: Outcome,
        batch: Option<Answer>,
    ) -> Vec<Node> {
        let Some(active) = self.active.get_mut(&number) else { return Vec::new() };
        if let (Some(values), Some(turn)) = (batch, self.asker.turn(node.turn)) {
            let rows = node.rows.iter().filter_map(|row| active.pack.rows.get(*row));
            active.facts.push(Fact {
                path: node.path.clone(),
                model: turn.name.to_owned(),
                rows: rows.map(|row| row.index).collect(),
                values,
            });
        }
        let next = active.ladder.settle(node, outcome);
        if active.ladder.is_over()
            && let Some(Active { pack, ladder, facts, .. }) = self.active.remove(&number)
        {
            let answers = ladder.into_answers();
            self.shelf.put(Done { pack, answers, facts }, &mut self.progress);
        }
        next
    }

    fn write(&mut self) -> Result<(), Error> {
        self.progress.under_way = self.requests.len() as u64;
        self.shelf.write(&mut self.progress)?;
        (self.listen)(&self.progress);
        Ok(())
    }

    /// Starts nothing more; the first reason counts.
    fn end(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
        self.asker.stop.cancel();
    }

    fn conclude(mut self) -> Result<Finished, Error> {
        self.write()?;
        if self.progress.done == self.progress.rows {
            self.stop = None;
        } else if self.stop.is_none() {
            return Err(Error::Unfinished(self.progress.rows - self.progress.done));
        }
        self.shelf.finish(&self.progress)?;
        let refused = match self.stop {
            // Which one that is has been told.
            Some(Stop::Refused(_)) => Vec::new(),
            _ => self.asker.refused(),
        };
        Ok(Finished { progress: self.progress, stop: self.stop, refused })
    }
}

/// The rows that a request is about.
fn rows_of<'p>(node: &Node, pack: &'p Pack) -> Vec<&'p Row> {
    node.rows.iter().filter_map(|row| pack.rows.get(*row)).collect()
}
