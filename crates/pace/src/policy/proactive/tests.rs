use super::*;
use crate::{PermitRequest, Quota, RetryMode, RunTag, Scheduler, Ticket};
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn tokens(input: u64, output: u64) -> TokenCost {
    TokenCost { input, output }
}

fn answered(usage: Option<TokenCost>) -> SendOutcome {
    SendOutcome::Answered { quota: Quota::default(), usage, clean: true }
}

/// A strategy and the number of requests in flight.
struct ProactiveRun {
    proactive: ProactivePolicy,
    in_flight: u32,
}

fn proactive_run(config: ProactiveConfig) -> ProactiveRun {
    ProactiveRun { proactive: ProactivePolicy::new(config), in_flight: 0 }
}

impl ProactiveRun {
    fn view(&self, now: Duration) -> PoolView {
        PoolView { now, in_flight: self.in_flight, waiting: 0 }
    }

    fn gate(&mut self, now: Duration, cost: TokenCost) -> Gate {
        self.proactive.gate(self.view(now), cost)
    }

    fn send(&mut self, now: Duration, flight: u64, cost: TokenCost) {
        self.in_flight += 1;
        self.proactive.on_sent(self.view(now), Flight(flight), cost);
    }

    fn end(&mut self, now: Duration, flight: u64, outcome: &SendOutcome) {
        self.in_flight -= 1;
        self.proactive.on_ended(self.view(now), Flight(flight), TokenCost::default(), outcome);
    }
}

#[test]
fn requests_per_minute_are_limited() {
    let mut proactive_run = proactive_run(ProactiveConfig { rpm: Some(2), ..Default::default() });
    proactive_run.send(secs(10), 0, TokenCost::default());
    proactive_run.end(secs(10), 0, &answered(None));
    assert_eq!(proactive_run.gate(secs(30), TokenCost::default()), Gate::Open);
    proactive_run.send(secs(30), 1, TokenCost::default());
    assert_eq!(proactive_run.gate(secs(30), TokenCost::default()), Gate::Until(secs(70)));
    let almost = secs(70) - Duration::from_nanos(1);
    assert_eq!(proactive_run.gate(almost, TokenCost::default()), Gate::Until(secs(70)));
    assert_eq!(proactive_run.gate(secs(70), TokenCost::default()), Gate::Open);
}

#[test]
fn request_counts_from_its_arrival_at_the_provider() {
    let mut run = proactive_run(ProactiveConfig { rpm: Some(1), ..Default::default() });
    run.send(secs(0), 0, TokenCost::default());
    let cost = TokenCost::default();
    assert_eq!(run.gate(secs(1), cost), Gate::Until(secs(62)), "it may still be on its way");
    // It arrived before its response.
    run.end(secs(1), 0, &answered(None));
    assert_eq!(run.gate(secs(1), cost), Gate::Until(secs(61)));
    run.send(secs(61), 1, TokenCost::default());
    run.end(secs(90), 1, &answered(None));
    assert_eq!(run.gate(secs(91), cost), Gate::Until(secs(123)), "answers may be slow");
}

#[test]
fn rejected_request_counts_without_tokens() {
    let config = ProactiveConfig { rpm: Some(2), tpm: Some(100), ..Default::default() };
    let rejected = SendOutcome::Rejected { quota: Quota::default() };
    for outcome in [rejected, SendOutcome::Refused] {
        let mut proactive_run = proactive_run(config);
        proactive_run.send(secs(0), 0, tokens(60, 20));
        proactive_run.end(secs(0), 0, &outcome);
        assert_eq!(proactive_run.proactive.used(secs(0)), TokenCost::default());
        assert_eq!(proactive_run.gate(secs(0), tokens(100, 0)), Gate::Open);
        proactive_run.send(secs(1), 1, TokenCost::default());
        assert_eq!(proactive_run.gate(secs(1), TokenCost::default()), Gate::Until(secs(60)));
        assert_eq!(proactive_run.proactive.retry_mode(secs(1)), RetryMode::Backoff);
    }
}

#[test]
fn tokens_are_reserved_by_the_estimate() {
    for (config, costs) in [
        (
            ProactiveConfig { tpm: Some(100), ..Default::default() },
            [tokens(50, 30), tokens(10, 11)],
        ),
        (ProactiveConfig { itpm: Some(80), ..Default::default() }, [tokens(50, 99), tokens(31, 0)]),
        (ProactiveConfig { otpm: Some(80), ..Default::default() }, [tokens(99, 50), tokens(0, 31)]),
    ] {
        let mut proactive_run = proactive_run(config);
        proactive_run.send(secs(5), 0, costs[0]);
        assert_eq!(proactive_run.gate(secs(6), costs[1]), Gate::Until(secs(67)), "{config:?}");
        let less = tokens(costs[1].input.saturating_sub(1), costs[1].output.saturating_sub(1));
        assert_eq!(proactive_run.gate(secs(6), less), Gate::Open, "{config:?}");
    }
}

#[test]
fn wait_ends_when_enough_requests_have_expired() {
    let mut proactive_run = proactive_run(ProactiveConfig { tpm: Some(100), ..Default::default() });
    for second in 0..10 {
        proactive_run.send(secs(second), second, tokens(10, 0));
    }
    assert_eq!(proactive_run.gate(secs(20), tokens(1, 0)), Gate::Until(secs(62)));
    assert_eq!(proactive_run.gate(secs(20), tokens(10, 0)), Gate::Until(secs(62)));
    assert_eq!(proactive_run.gate(secs(20), tokens(11, 0)), Gate::Until(secs(63)));
    assert_eq!(proactive_run.gate(secs(20), tokens(100, 0)), Gate::Until(secs(71)));
}

#[test]
fn end_of_a_request_settles_its_tokens() {
    let table = [
        (answered(Some(tokens(20, 10))), tokens(20, 10)),
        (answered(Some(tokens(200, 10))), tokens(200, 10)),
        (answered(None), tokens(60, 20)),
        (SendOutcome::Failed { retry_after: None }, tokens(60, 20)),
        (SendOutcome::Dropped, tokens(60, 20)),
    ];
    for (outcome, used) in table {
        let mut proactive_run =
            proactive_run(ProactiveConfig { tpm: Some(100), ..Default::default() });
        proactive_run.send(secs(0), 0, tokens(1, 1));
        proactive_run.send(secs(0), 1, tokens(60, 20));
        proactive_run.end(secs(9), 0, &answered(Some(TokenCost::default())));
        proactive_run.end(secs(10), 1, &outcome);
        assert_eq!(proactive_run.proactive.used(secs(10)), used, "{outcome:?}");
        let left = 100_u64.saturating_sub(used.total());
        let fits = if used.total() <= 100 { Gate::Open } else { Gate::Until(secs(62)) };
        assert_eq!(proactive_run.gate(secs(10), tokens(left, 0)), fits, "{outcome:?}");
        assert_eq!(proactive_run.proactive.used(secs(62)), TokenCost::default(), "{outcome:?}");
    }
}

#[test]
fn end_after_the_minute_changes_nothing() {
    let mut proactive_run = proactive_run(ProactiveConfig { tpm: Some(100), ..Default::default() });
    proactive_run.send(secs(0), 0, tokens(90, 0));
    proactive_run.send(secs(50), 1, tokens(5, 0));
    assert_eq!(proactive_run.proactive.used(secs(63)), tokens(5, 0));
    proactive_run.end(secs(63), 0, &answered(Some(tokens(90, 90))));
    assert_eq!(proactive_run.proactive.used(secs(63)), tokens(5, 0));
    proactive_run.end(secs(63), 1, &answered(Some(tokens(7, 0))));
    assert_eq!(proactive_run.proactive.used(secs(63)), tokens(7, 0));
}

#[test]
fn request_above_the_limit_is_sent_alone() {
    let mut proactive_run = proactive_run(ProactiveConfig { tpm: Some(100), ..Default::default() });
    let large = tokens(150, 0);
    assert_eq!(proactive_run.gate(secs(0), large), Gate::Open);
    proactive_run.send(secs(0), 0, tokens(1, 0));
    proactive_run.send(secs(7), 1, tokens(1, 0));
    assert_eq!(proactive_run.gate(secs(8), large), Gate::Until(secs(69)));
    assert_eq!(proactive_run.gate(secs(69), large), Gate::Open);
    proactive_run.send(secs(69), 2, large);
    assert_eq!(proactive_run.gate(secs(70), tokens(1, 0)), Gate::Until(secs(131)));
    assert_eq!(proactive_run.gate(secs(70), large), Gate::Until(secs(131)));
}

#[test]
fn all_limits_apply() {
    let config = ProactiveConfig {
        rpm: Some(1),
        tpm: Some(100),
        connections: Some(2),
        ..Default::default()
    };
    let mut proactive_run = proactive_run(config);
    proactive_run.send(secs(0), 0, tokens(90, 0));
    assert_eq!(proactive_run.gate(secs(0), tokens(1, 0)), Gate::Until(secs(62)));
    proactive_run.send(secs(62), 1, tokens(90, 0));
    assert_eq!(proactive_run.gate(secs(124), tokens(1, 0)), Gate::Closed);
    proactive_run.end(secs(124), 0, &SendOutcome::Failed { retry_after: None });
    assert_eq!(proactive_run.gate(secs(124), tokens(1, 0)), Gate::Open);
    assert_eq!(proactive_run.proactive.limit(), 2);
}

#[test]
fn check_names_missing_and_invalid_limits() {
    let table = [
        (
            ProactiveConfig::default(),
            Err("the strategy proactive needs rpm or tpm (or itpm, otpm)"),
        ),
        (ProactiveConfig { rpm: Some(1), ..Default::default() }, Ok(())),
        (ProactiveConfig { otpm: Some(1), ..Default::default() }, Ok(())),
        (ProactiveConfig { rpm: Some(0), ..Default::default() }, Err("rpm must be at least 1")),
        (
            ProactiveConfig { rpm: Some(1), itpm: Some(0), ..Default::default() },
            Err("itpm must be at least 1"),
        ),
        (
            ProactiveConfig { rpm: Some(1), connections: Some(0), ..Default::default() },
            Err("connections must be at least 1"),
        ),
    ];
    for (config, expected) in table {
        let found = config.check().map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{config:?}");
    }
}

#[test]
fn limit_of_zero_admits_one_request_per_minute() {
    let config = ProactiveConfig { rpm: Some(0), connections: Some(0), ..Default::default() };
    let mut proactive_run = proactive_run(config);
    assert_eq!(proactive_run.gate(secs(0), TokenCost::default()), Gate::Open);
    proactive_run.send(secs(0), 0, TokenCost::default());
    proactive_run.end(secs(0), 0, &SendOutcome::Failed { retry_after: None });
    assert_eq!(proactive_run.gate(secs(0), TokenCost::default()), Gate::Until(secs(60)));
}

proptest! {
    #[test]
    fn no_minute_exceeds_the_limit(
        arrivals in prop::collection::vec(0_u64..90_000, 200),
        latencies in prop::collection::vec(0_u64..150_000, 200),
        patience in prop::collection::vec(prop::option::weighted(0.3, 0_u64..400_000), 200),
        connections in prop::option::of(1_u32..20),
    ) {
        const RPM: usize = 10;
        let config = ProactiveConfig { rpm: Some(RPM as u64), connections, ..Default::default() };
        let (sent, left) = run(config, &arrivals, &latencies, &patience);
        prop_assert!(sent.iter().all(|(_, ticket)| !left.contains(ticket)));
        prop_assert_eq!(sent.len() + left.len(), 200);
        for some in sent.windows(RPM + 1) {
            let (first, last) = (some[0].0, some[RPM].0);
            prop_assert!(last - first >= MINUTE, "{first:?} and {last:?}");
        }
        if connections.is_none() {
            // No minute is wasted: waiting requests are sent as soon as the limit allows.
            let last = sent.last().map_or(Duration::ZERO, |(at, _)| *at);
            let bound = secs(90) + (MINUTE + ARRIVAL_MARGIN) * ((sent.len() / RPM) as u32);
            prop_assert!(last <= bound, "{last:?}");
        }
    }
}

/// Runs requests in virtual time; some are cancelled when their patience ends. Returns the send times
/// and the cancelled requests.
fn run(
    config: ProactiveConfig,
    arrivals: &[u64],
    latencies: &[u64],
    patience: &[Option<u64>],
) -> (Vec<(Duration, Ticket)>, Vec<Ticket>) {
    let mut pool = Scheduler::new(Box::new(ProactivePolicy::new(config)));
    let mut arrivals: Vec<Duration> = arrivals.iter().copied().map(Duration::from_millis).collect();
    arrivals.sort_unstable();
    let mut arrivals = arrivals.into_iter().peekable();
    let mut ends: Vec<(Duration, Flight)> = Vec::new();
    let mut leaves: Vec<(Duration, Ticket)> = Vec::new();
    let (mut sent, mut left) = (Vec::new(), Vec::new());
    loop {
        let next = [
            arrivals.peek().copied(),
            ends.iter().map(|(at, _)| *at).min(),
            leaves.iter().map(|(at, _)| *at).min(),
            pool.wake_at(),
        ];
        let Some(now) = next.into_iter().flatten().min() else { return (sent, left) };
        while arrivals.next_if(|at| *at <= now).is_some() {
            let run = RunTag(now.as_millis() as u64 % 3);
            let ticket =
                pool.on_request(Duration::ZERO, PermitRequest { run, ..PermitRequest::default() });
            let patience = patience[ticket.0 as usize].map(Duration::from_millis);
            leaves.extend(patience.map(|patience| (now + patience, ticket)));
        }
        for (_, ticket) in leaves.extract_if(.., |(at, _)| *at <= now) {
            pool.on_cancel(ticket);
            left.push(ticket);
        }
        for (_, flight) in ends.extract_if(.., |(at, _)| *at <= now) {
            pool.on_end(now, flight, &answered(None));
        }
        pool.on_tick(now, |ticket, flight| {
            sent.push((now, ticket));
            ends.push((now + Duration::from_millis(latencies[ticket.0 as usize]), flight));
            leaves.retain(|(_, other)| *other != ticket);
        });
    }
}

#[test]
fn burst_spreads_requests_over_the_minute() {
    let config = ProactiveConfig { rpm: Some(60), burst: Some(2), ..Default::default() };
    let mut policy = ProactivePolicy::new(config);
    let mut now = Duration::ZERO;
    let mut sent = Vec::new();
    for number in 0..5 {
        loop {
            let view = PoolView { now, in_flight: 0, waiting: 1 };
            match policy.gate(view, TokenCost::default()) {
                Gate::Open => break,
                Gate::Until(time) => now = time,
                Gate::Closed => panic!("nothing is in flight"),
            }
        }
        policy.on_sent(
            PoolView { now, in_flight: 1, waiting: 0 },
            Flight(number),
            TokenCost::default(),
        );
        sent.push(now.as_secs());
    }
    // At most two in two seconds.
    assert_eq!(sent, [0, 0, 2, 2, 4]);
}
