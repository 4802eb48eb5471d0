//! `auto` against simulated providers with one limit each, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_pace::{
    AutoConfig, AutoPolicy, BindingLimit, ChangeReason, DelayEnd, Flight, LearnedLimit,
    PermitRequest, Policy, Quota, Rates, RetryAfter, Scheduler, SendOutcome, read_quota,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, SystemTime};

/// The limit of a provider.
#[derive(Clone, Copy)]
enum Limit {
    /// Requests per second, and burst after a pause.
    Bucket { rate: f64, burst: f64 },
    /// Requests in flight.
    Cap(usize),
    /// Requests in each window of that length.
    Window { count: u32, seconds: f64 },
    /// Requests in any interval of that length.
    Sliding { count: usize, seconds: f64 },
    /// Requests in each window of a length, and of these, requests in any second.
    WindowOfSeconds { count: u32, seconds: f64, per_second: usize },
    /// A bucket with rate-limit headers.
    BucketWithHeaders { rate: f64, burst: f64 },
    /// Every n-th request is rejected irrespective of load.
    EveryNth(u32),
    /// The server processes that many requests at a time and queues the rest.
    Knee(f64),
}

struct Provider {
    limit: Limit,
    balance: f64,
    at: f64,
    window: f64,
    ends: Vec<f64>,
    /// Arrival times of admitted requests.
    admitted: Vec<f64>,
    hint: Option<f64>,
    /// Whether rejections have the status of an outage.
    sheds: bool,
}

impl Provider {
    fn new(limit: Limit) -> Provider {
        let balance = match limit {
            Limit::Bucket { burst, .. } | Limit::BucketWithHeaders { burst, .. } => burst,
            Limit::Window { count, .. } | Limit::WindowOfSeconds { count, .. } => f64::from(count),
            Limit::Cap(_) | Limit::Sliding { .. } | Limit::EveryNth(_) | Limit::Knee(_) => 0.0,
        };
        let (ends, admitted) = (Vec::new(), Vec::new());
        Provider { limit, balance, at: 0.0, window: 0.0, ends, admitted, hint: None, sheds: false }
    }

    /// Returns whether a request is admitted, and its headers.
    fn handle(&mut self, now: f64) -> (bool, Quota) {
        // Times were rounded to nanoseconds.
        self.ends.retain(|end| *end > now + 1e-6);
        let is_admitted = match self.limit {
            Limit::Bucket { rate, burst } | Limit::BucketWithHeaders { rate, burst } => {
                self.balance = (self.balance + rate * (now - self.at)).min(burst);
                self.at = now;
                self.balance >= 1.0 - 1e-9
            }
            Limit::Window { count, seconds } | Limit::WindowOfSeconds { count, seconds, .. } => {
                let window = (now / seconds).floor();
                if window > self.window {
                    self.window = window;
                    self.balance = f64::from(count);
                }
                self.admitted.retain(|at| at + 1.0 > now);
                let is_full = match self.limit {
                    Limit::WindowOfSeconds { per_second, .. } => self.admitted.len() >= per_second,
                    _ => false,
                };
                self.balance >= 1.0 && !is_full
            }
            Limit::Sliding { count, seconds } => {
                self.admitted.retain(|at| at + seconds > now);
                self.admitted.len() < count
            }
            Limit::Cap(max) => self.ends.len() < max,
            Limit::EveryNth(n) => {
                self.window += 1.0;
                self.window % f64::from(n) != 0.0
            }
            Limit::Knee(_) => true,
        };
        if is_admitted {
            self.balance -= 1.0;
            self.ends.push(now + LATENCY);
            self.admitted.push(now);
        }
        let mut quota = Quota::default();
        if let Limit::BucketWithHeaders { rate, burst } = self.limit {
            let remaining = self.balance.floor();
            let reset = format!("{}ms", ((burst - remaining) / rate * 1e3).ceil());
            let headers = [
                ("x-ratelimit-limit-requests", burst.to_string()),
                ("x-ratelimit-remaining-requests", remaining.to_string()),
                ("x-ratelimit-reset-requests", reset),
            ];
            let find = |name: &str| {
                headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
            };
            quota = read_quota(find, SystemTime::UNIX_EPOCH);
        }
        if !is_admitted {
            quota.retry_after = self.hint.map(Duration::from_secs_f64);
        }
        (is_admitted, quota)
    }
}

const LATENCY: f64 = 0.8;
const REJECTION: f64 = 0.05;

/// The result of a simulated run.
struct RunStats {
    seconds: f64,
    rejected: u32,
    sends: Vec<f64>,
    /// Arrival times of rejections with a hint.
    blocks: Vec<f64>,
    /// The reasons of decreases of the limit.
    decreases: Vec<ChangeReason>,
    /// What limited the rate at changes of the limit.
    bindings: Vec<String>,
    binding: Option<BindingLimit>,
    learned: Option<LearnedLimit>,
}

/// Requests all items at once and runs until all are answered.
fn run(items: u32, mut provider: Provider, config: AutoConfig) -> RunStats {
    let mut scheduler = Scheduler::new(Box::new(AutoPolicy::new(config)));
    (0..items).for_each(|_| {
        scheduler.on_request(Duration::ZERO, PermitRequest::default());
    });
    let mut stats = RunStats {
        seconds: 0.0,
        rejected: 0,
        sends: Vec::new(),
        blocks: Vec::new(),
        decreases: Vec::new(),
        bindings: Vec::new(),
        binding: None,
        learned: None,
    };
    let mut agenda: BinaryHeap<Reverse<(Duration, Flight, u32)>> = BinaryHeap::new();
    let mut outcomes: std::collections::HashMap<Flight, SendOutcome> =
        std::collections::HashMap::new();
    let (mut now, mut answered) = (Duration::ZERO, 0);
    while answered < items {
        let mut granted = Vec::new();
        scheduler.on_tick(now, |_, flight| granted.push(flight));
        for flight in granted {
            stats.sends.push(now.as_secs_f64());
            let (is_admitted, quota) = provider.handle(now.as_secs_f64());
            let slowdown = match provider.limit {
                Limit::Knee(width) => (f64::from(scheduler.in_flight()) / width).max(1.0),
                _ => 1.0,
            };
            let (delay, outcome) = if is_admitted {
                (LATENCY * slowdown, SendOutcome::Answered { quota, usage: None, clean: true })
            } else if provider.sheds {
                (REJECTION, SendOutcome::Overloaded { retry_after: quota.retry_after })
            } else {
                (REJECTION, SendOutcome::Rejected { quota })
            };
            agenda.push(Reverse((now + Duration::from_secs_f64(delay), flight, 0)));
            outcomes.insert(flight, outcome);
        }
        let next = agenda.peek().map(|Reverse((at, _, _))| *at);
        let wake = scheduler.wake_at();
        now = match (next, wake) {
            (Some(next), Some(wake)) if wake < next => wake,
            (Some(next), _) => next,
            (None, Some(wake)) => wake,
            (None, None) => panic!("deadlock after {answered} of {items}"),
        };
        assert!(now < Duration::from_secs(36_000), "{answered} of {items} after ten hours");
        while let Some(Reverse((at, flight, _))) = agenda.peek().copied()
            && at <= now
        {
            agenda.pop();
            let outcome = outcomes.remove(&flight).unwrap();
            let is_rejected = scheduler.on_end(now, flight, &outcome);
            match outcome {
                SendOutcome::Rejected { quota } => {
                    stats.rejected += 1;
                    if quota.retry_after.is_some() {
                        stats.blocks.push(now.as_secs_f64());
                    }
                    scheduler.on_request(Duration::ZERO, PermitRequest::default().retry(true));
                }
                SendOutcome::Overloaded { .. } => {
                    stats.rejected += 1;
                    let pause = if is_rejected { Duration::ZERO } else { Duration::from_secs(1) };
                    scheduler.on_request(
                        now,
                        PermitRequest::default().delayed(pause, DelayEnd::Recovery),
                    );
                }
                _ => {
                    answered += 1;
                    stats.seconds = now.as_secs_f64();
                }
            }
        }
        if answered < items / 2 {
            stats.binding = scheduler.binding();
        }
    }
    let changes = scheduler.take_changes();
    let bindings = changes.iter().filter_map(|change| change.binding);
    stats.bindings = bindings.map(|binding| binding.to_string()).collect();
    let decreases = changes.iter().filter(|change| change.new_limit < change.old_limit);
    stats.decreases = decreases.map(|change| change.reason).collect();
    stats.learned = scheduler.learned();
    stats
}

#[test]
fn each_kind_of_limit_is_detected_and_used() {
    let table: [(&str, u32, Limit, f64); 8] = [
        ("5/s", 1000, Limit::Bucket { rate: 5.0, burst: 5.0 }, 995.0 / 5.0 + LATENCY),
        ("5/s, one at once", 1000, Limit::Bucket { rate: 5.0, burst: 1.0 }, 999.0 / 5.0 + LATENCY),
        ("50/s", 6000, Limit::Bucket { rate: 50.0, burst: 500.0 }, 5500.0 / 50.0 + LATENCY),
        ("8 in flight", 1000, Limit::Cap(8), 125.0 * LATENCY),
        ("60 in flight", 6000, Limit::Cap(60), 100.0 * LATENCY),
        ("60 per 10 s", 1200, Limit::Window { count: 60, seconds: 10.0 }, 190.0 + LATENCY),
        ("60 in any 10 s", 1200, Limit::Sliding { count: 60, seconds: 10.0 }, 190.0 + LATENCY),
        (
            "5/s with headers",
            1000,
            Limit::BucketWithHeaders { rate: 5.0, burst: 20.0 },
            980.0 / 5.0 + LATENCY,
        ),
    ];
    for (name, items, limit, best) in table {
        let stats = run(items, Provider::new(limit), AutoConfig::default());
        let efficiency = best / stats.seconds;
        let rejections = f64::from(stats.rejected) / f64::from(items);
        assert!(efficiency > 0.93, "{name}: {efficiency:.3}, {rejections:.3} rejected");
        assert!(rejections < 0.08, "{name}: {rejections:.3} rejected, {efficiency:.3}");
    }
}

#[test]
fn rejections_with_the_status_of_an_outage_are_recognised() {
    let table = [
        ("2/s", 240, Limit::Bucket { rate: 2.0, burst: 3.0 }, 237.0 / 2.0 + LATENCY),
        ("8/s", 800, Limit::Bucket { rate: 8.0, burst: 8.0 }, 792.0 / 8.0 + LATENCY),
        ("25 in flight", 3000, Limit::Cap(25), 120.0 * LATENCY),
    ];
    for (name, items, limit, best) in table {
        let provider = Provider { sheds: true, ..Provider::new(limit) };
        let stats = run(items, provider, AutoConfig::default());
        let efficiency = best / stats.seconds;
        assert!(efficiency > 0.9, "{name}: {efficiency:.3}, {} rejected", stats.rejected);
        // Most of them before the limit is recognised.
        assert!(stats.rejected < 200, "{name}: {} rejected, {efficiency:.3}", stats.rejected);
    }
}

#[test]
fn exhausted_window_does_not_hide_a_limit_per_second() {
    let limit = Limit::WindowOfSeconds { count: 300, seconds: 60.0, per_second: 20 };
    let stats = run(1100, Provider::new(limit), AutoConfig::default());
    // Three full windows, and ten seconds for the last two hundred.
    assert!(stats.seconds < 210.0, "{}", stats.seconds);
    assert!(stats.rejected < 180, "{}", stats.rejected);
}

#[test]
fn headers_avoid_nearly_all_rejections() {
    let limit = Limit::BucketWithHeaders { rate: 5.0, burst: 20.0 };
    let stats = run(1000, Provider::new(limit), AutoConfig::default());
    assert!(stats.rejected <= 5, "{}", stats.rejected);
}

#[test]
fn nothing_is_sent_during_an_announced_block() {
    let mut provider = Provider::new(Limit::Bucket { rate: 5.0, burst: 10.0 });
    provider.hint = Some(3.0);
    let stats = run(300, provider, AutoConfig::default().retry_after(RetryAfter::Strict));
    assert!(!stats.blocks.is_empty());
    for announced in &stats.blocks {
        let within = stats.sends.iter().filter(|at| **at > *announced && **at < announced + 3.0);
        assert_eq!(within.count(), 0, "after the rejection at {announced}");
    }
}

#[test]
fn test_mode_detects_blocks_that_are_too_long() {
    let limit = Limit::Bucket { rate: 5.0, burst: 10.0 };
    let seconds = |retry_after| {
        let mut provider = Provider::new(limit);
        provider.hint = Some(60.0);
        run(300, provider, AutoConfig::default().retry_after(retry_after)).seconds
    };
    assert!(seconds(RetryAfter::Test) < 80.0);
    assert!(seconds(RetryAfter::Strict) > 80.0);
}

#[test]
fn user_rates_are_never_exceeded() {
    let rates = Rates { rpm: Some(120.0), ..Rates::default() };
    let config = AutoConfig::default().rates(rates);
    let stats = run(300, Provider::new(Limit::Cap(1000)), config);
    assert_eq!(stats.rejected, 0);
    for (index, start) in stats.sends.iter().enumerate() {
        let minute = stats.sends[index..].iter().filter(|at| **at < start + 60.0).count();
        // The rate of a minute and the burst of a second.
        assert!(minute <= 122, "{minute} within a minute of {start}");
    }
}

#[test]
fn learned_limit_reduces_rejections_of_the_next_run() {
    let limit = Limit::Cap(30);
    let first = run(2000, Provider::new(limit), AutoConfig::default());
    let learned = LearnedLimit::Cap(30);
    let second = run(2000, Provider::new(limit), AutoConfig::default().learned(learned));
    assert!(second.rejected < first.rejected, "{} and {}", second.rejected, first.rejected);
    assert!(second.seconds < first.seconds);
    let limit = Limit::Bucket { rate: 5.0, burst: 5.0 };
    let first = run(300, Provider::new(limit), AutoConfig::default());
    let learned = LearnedLimit::Rate(5.0);
    let second = run(300, Provider::new(limit), AutoConfig::default().learned(learned));
    assert!(second.rejected < first.rejected, "{} and {}", second.rejected, first.rejected);
}

#[test]
fn maximum_connections_are_never_exceeded() {
    let config = AutoConfig::default().connections(3);
    let stats = run(90, Provider::new(Limit::Cap(1000)), config);
    assert!((stats.seconds - 30.0 * LATENCY).abs() < 0.2, "{}", stats.seconds);
    let mut policy = AutoPolicy::new(AutoConfig::default().connections(3));
    assert_eq!(policy.limit(), 3);
    assert!(policy.take_changes().is_empty());
}

#[test]
fn rejections_irrespective_of_load_do_not_slow_it_down() {
    let config = || AutoConfig::default().connections(200);
    let free = run(8000, Provider::new(Limit::Cap(1000)), config());
    let random = run(8000, Provider::new(Limit::EveryNth(20)), config());
    assert!(random.seconds < 1.25 * free.seconds, "{} for {}", random.seconds, free.seconds);
    assert_eq!(random.learned, None);
}

#[test]
fn windows_of_any_length_are_used() {
    for (count, seconds) in [(37, 7.0), (20, 3.7), (50, 11.0)] {
        let windows = 20;
        let stats = run(
            windows * count,
            Provider::new(Limit::Window { count, seconds }),
            AutoConfig::default(),
        );
        let efficiency = f64::from(windows - 1) * seconds / stats.seconds;
        let rejections = f64::from(stats.rejected) / f64::from(windows * count);
        assert!(efficiency > 0.9, "{count} per {seconds} s: {efficiency:.3}");
        assert!(rejections < 0.1, "{count} per {seconds} s: {rejections:.3} rejected");
    }
}

#[test]
fn decrease_without_rejection_is_due_to_latency() {
    let stats = run(2000, Provider::new(Limit::Knee(20.0)), AutoConfig::default());
    assert_eq!(stats.rejected, 0);
    assert!(!stats.decreases.is_empty());
    assert!(stats.decreases.iter().all(|reason| *reason == ChangeReason::Latency));
    assert!(stats.binding.is_some_and(|limit| matches!(limit, BindingLimit::Saturation(_))));
    let stats = run(500, Provider::new(Limit::Cap(10)), AutoConfig::default());
    assert!(stats.decreases.contains(&ChangeReason::RateLimit));
}

#[test]
fn binding_limit_is_described() {
    let binding =
        |limit, config| run(1000, Provider::new(limit), config).binding.unwrap().to_string();
    let auto = AutoConfig::default;
    assert_eq!(binding(Limit::Cap(30), auto()), "cap 30");
    let rate = binding(Limit::Bucket { rate: 5.0, burst: 5.0 }, auto());
    assert!(rate.ends_with("/s (measured)"), "{rate}");
    assert_eq!(binding(Limit::Window { count: 37, seconds: 7.0 }, auto()), "37 per 7 s");
    let sliding = binding(Limit::Sliding { count: 60, seconds: 10.0 }, auto());
    assert_eq!(sliding, "60 per 10 s");
    let remembered = || auto().learned(LearnedLimit::Cap(20));
    assert_eq!(binding(Limit::Cap(1000), remembered()), "still growing");
    let first = run(50, Provider::new(Limit::Cap(1000)), remembered()).binding.unwrap();
    assert_eq!(first.to_string(), "cap 20 (earlier run)");
    let remembered = || auto().learned(LearnedLimit::Rate(3.0));
    let first = run(50, Provider::new(Limit::Cap(1000)), remembered()).binding.unwrap();
    assert_eq!(first.to_string(), "3.0/s (earlier run)");
    assert_eq!(binding(Limit::Cap(1000), remembered()), "still growing");
    let headers = binding(Limit::BucketWithHeaders { rate: 5.0, burst: 20.0 }, auto());
    assert!(headers.ends_with("/s (headers)"), "{headers}");
    let rates = Rates { rpm: Some(300.0), ..Rates::default() };
    assert_eq!(binding(Limit::Cap(1000), auto().rates(rates)), "300 requests/min (configured)");
    assert_eq!(binding(Limit::Cap(1000), auto().connections(40)), "max 40 in flight (configured)");
}

#[test]
fn history_names_a_limit_when_it_is_found() {
    let stats = run(1000, Provider::new(Limit::Cap(30)), AutoConfig::default());
    assert!(stats.bindings.contains(&"cap 30".to_owned()), "{:?}", stats.bindings);
    let first = stats.bindings.first().map(String::as_str);
    assert_eq!(first, Some("still growing"), "not the limit that is found later");
}

#[test]
fn only_limits_of_this_run_are_learned() {
    for learned in [LearnedLimit::Cap(30), LearnedLimit::Rate(5.0)] {
        let policy = AutoPolicy::new(AutoConfig::default().learned(learned));
        assert_eq!(policy.learned(), None, "{learned:?}");
    }
    // Five items neither fill the cap nor meet a rejection.
    let few = AutoConfig::default().learned(LearnedLimit::Cap(30));
    assert_eq!(run(5, Provider::new(Limit::Cap(20)), few).learned, None);
    let stats = run(1000, Provider::new(Limit::Cap(30)), AutoConfig::default());
    assert_eq!(stats.learned, Some(LearnedLimit::Cap(30)));
    let limit = Limit::Bucket { rate: 5.0, burst: 5.0 };
    let Some(LearnedLimit::Rate(rate)) =
        run(500, Provider::new(limit), AutoConfig::default()).learned
    else {
        panic!("a rate");
    };
    assert!((4.7..5.4).contains(&rate), "{rate}");
}
