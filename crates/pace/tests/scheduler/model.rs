//! A pool beside a simple description of what it should do.

use crate::steps::Step;
use bakeoff_pace::{
    Flight, PermitRequest, Policy, Quota, RunTag, Scheduler, SendOutcome, Ticket, TokenCost,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Model {
    pool: Scheduler,
    now: Duration,
    limit: u32,
    lines: BTreeMap<u64, Line>,
    flights: Vec<Flight>,
    sends: Vec<Send>,
    /// Each who asked, with the place among them that does not count who comes and goes at once.
    asked: Vec<(Ticket, Option<usize>)>,
    cancelled: usize,
}

#[derive(Default)]
struct Line {
    retries: VecDeque<(Ticket, TokenCost)>,
    fresh: VecDeque<(Ticket, TokenCost)>,
    /// What other runs were granted while this one waited for its turn.
    overtaken: BTreeMap<u64, u32>,
}

impl Line {
    fn len(&self) -> usize {
        self.retries.len() + self.fresh.len()
    }
}

struct Send {
    at: Duration,
    ticket: Ticket,
    flight: Flight,
    estimate: TokenCost,
    cost: TokenCost,
    /// What the last minute had used before, if it held anything.
    before: Option<TokenCost>,
}

impl Model {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Model {
        let limit = policy.limit();
        Model {
            pool: Scheduler::new(policy),
            now: Duration::ZERO,
            limit,
            lines: BTreeMap::new(),
            flights: Vec::new(),
            sends: Vec::new(),
            asked: Vec::new(),
            cancelled: 0,
        }
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::PermitRequest { run, is_retry, cost } => {
                let place = self.asked.iter().filter(|(_, place)| place.is_some()).count();
                self.ask(*run, *is_retry, *cost, Some(place));
            }
            Step::Cancel(which) => {
                let waiting: Vec<Ticket> = self.waiting().collect();
                if !waiting.is_empty() {
                    self.cancel(*which.get(&waiting));
                }
            }
            Step::CancelAgain(which) => {
                let asked = self.asked.iter().filter(|(_, place)| place.is_some());
                let asked: Vec<Ticket> = asked.map(|(ticket, _)| *ticket).collect();
                if !asked.is_empty() {
                    self.cancel(*which.get(&asked));
                }
            }
            Step::End(which, ending) => {
                if !self.flights.is_empty() {
                    self.end(which.index(self.flights.len()), ending);
                }
            }
            Step::Pass(time) => self.pass(*time),
        }
        self.tick();
    }

    /// Some of every run, and of one that nobody else is of, ask and do not want it any more: one
    /// after the other, and several at once.
    pub(crate) fn come_and_go(&mut self) {
        const COST: TokenCost = TokenCost { input: 1000, output: 1000 };
        for run in [0, 1, 2, 3, 99] {
            let ticket = self.ask(run, false, COST, None);
            self.cancel(ticket);
            let tickets = [true, false, true].map(|retry| self.ask(run, retry, COST, None));
            for ticket in tickets {
                self.cancel(ticket);
            }
        }
    }

    fn ask(&mut self, run: u64, is_retry: bool, cost: TokenCost, place: Option<usize>) -> Ticket {
        let ticket = self.pool.on_request(PermitRequest { run: RunTag(run), cost, is_retry });
        let line = self.lines.entry(run).or_default();
        if line.len() == 0 {
            line.overtaken.clear();
        }
        if is_retry { &mut line.retries } else { &mut line.fresh }.push_back((ticket, cost));
        self.asked.push((ticket, place));
        ticket
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.pool.on_cancel(ticket);
        let before = self.waiting().count();
        for line in self.lines.values_mut() {
            line.retries.retain(|(other, _)| *other != ticket);
            line.fresh.retain(|(other, _)| *other != ticket);
        }
        self.cancelled += before - self.waiting().count();
        self.check_counts();
    }

    fn end(&mut self, index: usize, ending: &SendOutcome) {
        let flight = self.flights.remove(index);
        self.pool.on_end(self.now, flight, ending);
        let send = self.sends.iter_mut().find(|send| send.flight == flight).unwrap();
        send.cost = match ending {
            SendOutcome::Answered { usage: Some(usage), .. } => *usage,
            SendOutcome::Rejected { .. } | SendOutcome::Refused => TokenCost::default(),
            _ => send.estimate,
        };
        self.check_counts();
        // It cannot end twice.
        let limit = self.pool.limit();
        self.pool.on_end(self.now, flight, &SendOutcome::Rejected { quota: Quota::default() });
        assert_eq!(self.pool.limit(), limit);
        self.check_counts();
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(wake_at) = self.pool.wake_at().filter(|at| *at <= until) {
            self.now = wake_at;
            self.tick();
        }
        self.now = until;
    }

    /// Answers everybody until nobody is left.
    pub(crate) fn finish(&mut self) {
        self.tick();
        while self.waiting().count() + self.flights.len() > 0 {
            if self.flights.is_empty() {
                let wake_at = self.pool.wake_at().expect("somebody waits and nothing will happen");
                self.now = wake_at;
            } else {
                self.now += Duration::from_secs(1);
            }
            while let Some(last) = self.flights.len().checked_sub(1) {
                let usage = Some(TokenCost { input: 7, output: 11 });
                let ending = SendOutcome::Answered { quota: Quota::default(), usage, clean: true };
                self.end(last, &ending);
            }
            self.tick();
        }
    }

    fn tick(&mut self) {
        let mut granted = Vec::new();
        // No strategy moves its limit when it grants.
        let limit = self.pool.limit();
        self.pool.on_tick(self.now, |ticket, flight| granted.push((ticket, flight)));
        for (ticket, flight) in granted {
            assert!((self.flights.len() as u64) < u64::from(limit), "more than {limit} in flight");
            let cost = self.serve(ticket);
            let before = self.sends.iter().any(|send| send.at + MINUTE > self.now);
            let before = before.then(|| self.used());
            let at = self.now;
            self.sends.push(Send { at, ticket, flight, estimate: cost, cost, before });
            self.flights.push(flight);
        }
        self.check_counts();
        assert!(self.pool.wake_at().is_none_or(|at| at > self.now));
        for change in self.pool.take_changes() {
            assert_eq!(change.old_limit, self.limit);
            self.limit = change.new_limit;
        }
        assert_eq!(self.pool.limit(), self.limit);
    }

    /// Takes somebody out of the line who must be the first there, when it is their run's turn.
    fn serve(&mut self, ticket: Ticket) -> TokenCost {
        let first = |line: &Line| line.retries.front().or(line.fresh.front()).copied();
        let is_first = |line: &Line| first(line).is_some_and(|(first, _)| first == ticket);
        let run = self.lines.iter().find(|(_, line)| is_first(line)).map(|(run, _)| *run);
        let run = run.expect("only who is first in a line is granted");
        for (other, line) in &mut self.lines {
            if *other != run && line.len() > 0 {
                let times = line.overtaken.entry(run).or_default();
                *times += 1;
                assert!(*times == 1, "run {run} twice while run {other} waits");
            }
        }
        let line = self.lines.get_mut(&run).unwrap();
        line.overtaken.clear();
        line.retries.pop_front().or_else(|| line.fresh.pop_front()).unwrap().1
    }

    fn check_counts(&self) {
        assert_eq!(self.pool.waiting(), self.waiting().count());
        assert_eq!(self.pool.in_flight() as usize, self.flights.len());
    }

    fn waiting(&self) -> impl Iterator<Item = Ticket> {
        let tickets = self.lines.values().flat_map(|line| line.retries.iter().chain(&line.fresh));
        tickets.map(|(ticket, _)| *ticket)
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn granted(&self) -> usize {
        self.sends.len()
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled
    }

    /// Who was granted and when, by their places among those who did not come and go at once.
    pub(crate) fn grants_in_order(&self) -> Vec<(usize, Duration)> {
        let places: BTreeMap<Ticket, Option<usize>> = self.asked.iter().copied().collect();
        self.sends.iter().map(|send| (places[&send.ticket].unwrap(), send.at)).collect()
    }

    /// The tokens of the last minute.
    pub(crate) fn used(&self) -> TokenCost {
        let mut used = TokenCost::default();
        for send in self.sends.iter().filter(|send| send.at + MINUTE > self.now) {
            used += send.cost;
        }
        used
    }

    /// Of each grant, what the last minute had used before, and the estimate.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = (Option<TokenCost>, TokenCost)> {
        self.sends.iter().map(|send| (send.before, send.estimate))
    }
}
