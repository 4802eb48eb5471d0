//! Random events and strategies.

use bakeoff_pace::{
    AdaptiveBounds, AdaptiveConfig, AdaptivePolicy, AutoConfig, AutoPolicy, FixedPolicy, Flight,
    Gate, Policy, PoolView, ProactiveConfig, ProactivePolicy, Quota, ReactivePolicy, RetryMode,
    SendOutcome, TokenCost,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) enum PoolStep {
    Request {
        run: u64,
        is_retry: bool,
        cost: TokenCost,
    },
    /// Cancels a waiting request.
    Cancel(Index),
    /// Cancels any earlier request, whether it waits or not.
    CancelAny(Index),
    End(Index, SendOutcome),
    Pass(Duration),
}

impl PoolStep {
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, PoolStep::Cancel(_) | PoolStep::CancelAny(_))
    }
}

/// A strategy with its parameters.
#[derive(Debug, Clone)]
pub(crate) enum PolicyKind {
    Fixed(u32),
    Adaptive(AdaptiveConfig),
    Reactive(Option<u32>),
    Proactive(ProactiveConfig),
    Unbounded,
    Auto(u32),
}

impl PolicyKind {
    pub(crate) fn build(&self) -> Box<dyn Policy> {
        match self.clone() {
            PolicyKind::Fixed(connections) => Box::new(FixedPolicy::new(connections)),
            PolicyKind::Adaptive(config) => Box::new(AdaptivePolicy::new(config)),
            PolicyKind::Reactive(connections) => Box::new(ReactivePolicy::new(connections)),
            PolicyKind::Proactive(config) => Box::new(ProactivePolicy::new(config)),
            PolicyKind::Unbounded => Box::new(FixedPolicy::unbounded()),
            PolicyKind::Auto(connections) => {
                let config = AutoConfig::default().connections(connections);
                Box::new(Ceiling { auto: AutoPolicy::new(config), connections })
            }
        }
    }
}

/// `auto` with its ceiling as limit; the limit it reports itself is an estimate.
#[derive(Debug)]
struct Ceiling {
    auto: AutoPolicy,
    connections: u32,
}

impl Policy for Ceiling {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        self.auto.gate(view, cost)
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.auto.on_sent(view, flight, cost);
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, outcome: &SendOutcome) {
        self.auto.on_ended(view, flight, cost, outcome);
    }

    fn retry_mode(&self, now: Duration) -> RetryMode {
        self.auto.retry_mode(now)
    }

    fn limit(&self) -> u32 {
        self.connections
    }

    fn set_max_connections(&mut self, max: u32) {
        self.auto.set_max_connections(max);
        self.connections = max;
    }
}

/// Strategies with low limits, so that requests queue.
pub(crate) fn policy() -> impl Strategy<Value = PolicyKind> {
    let connections = || prop::option::of(1_u32..6);
    let adaptive = (1_u32..4, 0_u32..4, 0_u32..8, 0.0..5.0, 0.1..0.9, 0.05..1.0).prop_map(
        |(min, more, extra, cooldown_seconds, decrease_factor, scale_up_percent)| {
            let bounds = AdaptiveBounds { min, start: min + more, max: min + more + extra };
            let mut config = AdaptiveConfig::default();
            config.bounds = bounds;
            config.cooldown_seconds = cooldown_seconds;
            config.decrease_factor = decrease_factor;
            config.scale_up_percent = scale_up_percent;
            config
        },
    );
    let limit = || prop::option::of(1_u64..200);
    let rates = (prop::option::of(1_u64..10), limit(), limit(), limit());
    let proactive = (rates, connections(), connections()).prop_map(
        |((rpm, tpm, itpm, otpm), connections, burst)| {
            let mut config = ProactiveConfig::default();
            (config.rpm, config.tpm, config.itpm, config.otpm) = (rpm, tpm, itpm, otpm);
            (config.connections, config.burst) = (connections, burst);
            config
        },
    );
    prop_oneof![
        (1_u32..6).prop_map(PolicyKind::Fixed),
        adaptive.prop_map(PolicyKind::Adaptive),
        connections().prop_map(PolicyKind::Reactive),
        proactive.prop_map(PolicyKind::Proactive),
        Just(PolicyKind::Unbounded),
        (1_u32..6).prop_map(PolicyKind::Auto),
    ]
}

fn cost() -> impl Strategy<Value = TokenCost> {
    (0_u64..60, 0_u64..60).prop_map(|(input, output)| TokenCost { input, output })
}

fn outcome() -> impl Strategy<Value = SendOutcome> {
    let retry_after = prop::option::of((1_u64..90).prop_map(Duration::from_secs));
    let quota = retry_after.prop_map(|retry_after| Quota { retry_after, ..Quota::default() });
    prop_oneof![
        6 => (prop::option::of(cost()), prop::bool::weighted(0.8)).prop_map(|(usage, clean)| {
            SendOutcome::Answered { quota: Quota::default(), usage, clean }
        }),
        2 => quota.prop_map(|quota| SendOutcome::Rejected { quota }),
        1 => Just(SendOutcome::Failed { retry_after: None }),
        1 => Just(SendOutcome::Refused),
        1 => Just(SendOutcome::Dropped),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<PoolStep>> {
    let request = (0_u64..4, prop::bool::weighted(0.3), cost())
        .prop_map(|(run, is_retry, cost)| PoolStep::Request { run, is_retry, cost });
    let pass = prop_oneof![0_u64..2_000, 0_u64..60_000].prop_map(Duration::from_millis);
    let step = prop_oneof![
        10 => request,
        3 => any::<Index>().prop_map(PoolStep::Cancel),
        1 => any::<Index>().prop_map(PoolStep::CancelAny),
        6 => (any::<Index>(), outcome()).prop_map(|(which, outcome)| PoolStep::End(which, outcome)),
        3 => pass.prop_map(PoolStep::Pass),
    ];
    prop::collection::vec(step, 0..150)
}
