//! A pool next to a simple model of its behaviour.

use crate::steps::PoolStep;
use bakeoff_pace::{
    Flight, PermitRequest, Policy, Quota, RunTag, Scheduler, SendOutcome, Ticket, TokenCost,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Maximum time until a request arrives at the provider.
const ARRIVAL_MARGIN: Duration = Duration::from_secs(2);

pub(crate) struct Model {
    pool: Scheduler,
    now: Duration,
    limit: u32,
    queues: BTreeMap<u64, RunQueue>,
    flights: Vec<Flight>,
    sends: Vec<GrantRecord>,
    /// All requests; those that are not cancelled at once have an index.
    requests: Vec<(Ticket, Option<usize>)>,
    cancelled: usize,
}

#[derive(Default)]
struct RunQueue {
    retries: VecDeque<(Ticket, TokenCost)>,
    fresh: VecDeque<(Ticket, TokenCost)>,
    /// Grants to other runs since this run was last served.
    overtaken: BTreeMap<u64, u32>,
}

impl RunQueue {
    fn len(&self) -> usize {
        self.retries.len() + self.fresh.len()
    }
}

struct GrantRecord {
    at: Duration,
    /// The latest time at which the provider may have received the request.
    arrived: Duration,
    ticket: Ticket,
    flight: Flight,
    estimate: TokenCost,
    cost: TokenCost,
    /// Usage of the last minute before the grant, if there was any.
    before: Option<TokenCost>,
}

impl Model {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Model {
        let limit = policy.limit();
        Model {
            pool: Scheduler::new(policy),
            now: Duration::ZERO,
            limit,
            queues: BTreeMap::new(),
            flights: Vec::new(),
            sends: Vec::new(),
            requests: Vec::new(),
            cancelled: 0,
        }
    }

    pub(crate) fn apply(&mut self, step: &PoolStep) {
        match step {
            PoolStep::Request { run, is_retry, cost } => {
                let index = self.requests.iter().filter(|(_, index)| index.is_some()).count();
                self.request(*run, *is_retry, *cost, Some(index));
            }
            PoolStep::Cancel(which) => {
                let waiting: Vec<Ticket> = self.waiting().collect();
                if !waiting.is_empty() {
                    self.cancel(*which.get(&waiting));
                }
            }
            PoolStep::CancelAny(which) => {
                let requests = self.requests.iter().filter(|(_, index)| index.is_some());
                let requests: Vec<Ticket> = requests.map(|(ticket, _)| *ticket).collect();
                if !requests.is_empty() {
                    self.cancel(*which.get(&requests));
                }
            }
            PoolStep::End(which, outcome) => {
                if !self.flights.is_empty() {
                    self.end(which.index(self.flights.len()), outcome);
                }
            }
            PoolStep::Pass(time) => self.pass(*time),
        }
        self.tick();
    }

    /// Adds and cancels requests of every run and of an otherwise unused run, one after the other and
    /// several at once.
    pub(crate) fn request_and_cancel(&mut self) {
        const COST: TokenCost = TokenCost { input: 1000, output: 1000 };
        for run in [0, 1, 2, 3, 99] {
            let ticket = self.request(run, false, COST, None);
            self.cancel(ticket);
            let tickets = [true, false, true].map(|retry| self.request(run, retry, COST, None));
            for ticket in tickets {
                self.cancel(ticket);
            }
        }
    }

    fn request(
        &mut self,
        run: u64,
        is_retry: bool,
        cost: TokenCost,
        index: Option<usize>,
    ) -> Ticket {
        let ticket = self.pool.on_request(
            self.now,
            PermitRequest::default().run(RunTag(run)).cost(cost).retry(is_retry),
        );
        let queue = self.queues.entry(run).or_default();
        if queue.len() == 0 {
            queue.overtaken.clear();
        }
        if is_retry { &mut queue.retries } else { &mut queue.fresh }.push_back((ticket, cost));
        self.requests.push((ticket, index));
        ticket
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.pool.on_cancel(ticket);
        let before = self.waiting().count();
        for queue in self.queues.values_mut() {
            queue.retries.retain(|(other, _)| *other != ticket);
            queue.fresh.retain(|(other, _)| *other != ticket);
        }
        self.cancelled += before - self.waiting().count();
        self.check_counts();
    }

    fn end(&mut self, index: usize, outcome: &SendOutcome) {
        let flight = self.flights.remove(index);
        self.pool.on_end(self.now, flight, outcome);
        let now = self.now;
        let send = self.sends.iter_mut().find(|send| send.flight == flight).unwrap();
        if *outcome != SendOutcome::Dropped {
            send.arrived = send.arrived.min(now);
        }
        send.cost = match outcome {
            SendOutcome::Answered { usage: Some(usage), .. } => *usage,
            SendOutcome::Rejected { .. } | SendOutcome::Refused => TokenCost::default(),
            _ => send.estimate,
        };
        self.check_counts();
        // A second end has no effect.
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

    /// Answers all requests until none is left.
    pub(crate) fn finish(&mut self) {
        self.tick();
        while self.waiting().count() + self.flights.len() > 0 {
            if self.flights.is_empty() {
                let wake_at =
                    self.pool.wake_at().expect("requests wait, but no event is scheduled");
                self.now = wake_at;
            } else {
                self.now += Duration::from_secs(1);
            }
            while let Some(last) = self.flights.len().checked_sub(1) {
                let usage = Some(TokenCost { input: 7, output: 11 });
                let outcome = SendOutcome::Answered { quota: Quota::default(), usage, clean: true };
                self.end(last, &outcome);
            }
            self.tick();
        }
    }

    fn tick(&mut self) {
        let mut granted = Vec::new();
        // No strategy changes its limit on a grant.
        let limit = self.pool.limit();
        self.pool.on_tick(self.now, |ticket, flight| granted.push((ticket, flight)));
        for (ticket, flight) in granted {
            assert!((self.flights.len() as u64) < u64::from(limit), "more than {limit} in flight");
            let cost = self.serve(ticket);
            let before = self.last_minute().next().is_some().then(|| self.used());
            let (at, arrived) = (self.now, self.now + ARRIVAL_MARGIN);
            let estimate = cost;
            self.sends.push(GrantRecord { at, arrived, ticket, flight, estimate, cost, before });
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

    /// Removes a granted request from its queue; checks that it is first and that its run is next.
    fn serve(&mut self, ticket: Ticket) -> TokenCost {
        let first = |queue: &RunQueue| queue.retries.front().or(queue.fresh.front()).copied();
        let is_first = |queue: &RunQueue| first(queue).is_some_and(|(first, _)| first == ticket);
        let run = self.queues.iter().find(|(_, queue)| is_first(queue)).map(|(run, _)| *run);
        let run = run.expect("only the first request of a run is granted");
        for (other, queue) in &mut self.queues {
            if *other != run && queue.len() > 0 {
                let times = queue.overtaken.entry(run).or_default();
                *times += 1;
                assert!(*times == 1, "run {run} twice while run {other} waits");
            }
        }
        let queue = self.queues.get_mut(&run).unwrap();
        queue.overtaken.clear();
        queue.retries.pop_front().or_else(|| queue.fresh.pop_front()).unwrap().1
    }

    fn check_counts(&self) {
        assert_eq!(self.pool.waiting(), self.waiting().count());
        assert_eq!(self.pool.in_flight() as usize, self.flights.len());
    }

    fn waiting(&self) -> impl Iterator<Item = Ticket> {
        let tickets =
            self.queues.values().flat_map(|queue| queue.retries.iter().chain(&queue.fresh));
        tickets.map(|(ticket, _)| *ticket)
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn requested(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn granted(&self) -> usize {
        self.sends.len()
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled
    }

    /// Returns index and time of all grants.
    pub(crate) fn grants_in_order(&self) -> Vec<(usize, Duration)> {
        let indices: BTreeMap<Ticket, Option<usize>> = self.requests.iter().copied().collect();
        self.sends.iter().map(|send| (indices[&send.ticket].unwrap(), send.at)).collect()
    }

    /// Returns the requests that count for the last minute. They expire in the order of sending.
    fn last_minute(&self) -> impl Iterator<Item = &GrantRecord> {
        self.sends.iter().skip_while(|send| send.arrived + MINUTE <= self.now)
    }

    /// Returns the tokens of the last minute.
    pub(crate) fn used(&self) -> TokenCost {
        let mut used = TokenCost::default();
        self.last_minute().for_each(|send| used += send.cost);
        used
    }

    /// Returns, for each grant, the usage of the last minute before it and the estimate.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = (Option<TokenCost>, TokenCost)> {
        self.sends.iter().map(|send| (send.before, send.estimate))
    }
}
