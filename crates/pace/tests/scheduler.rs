#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
//! Invariants of a pool under random events, for each strategy.

#[path = "scheduler/model.rs"]
mod model;
#[path = "scheduler/steps.rs"]
mod steps;

use bakeoff_pace::{
    Flight, Gate, Policy, PoolView, ProactiveConfig, ProactivePolicy, RetryMode, SendOutcome,
    TokenCost,
};
use model::Model;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steps::{policy, steps};

proptest! {
    /// The model checks after each step: requests in flight stay within the limit, an end frees exactly
    /// one slot, cancelled requests are never granted, each run is first in first out with retries
    /// first, runs alternate, and the history of the limit has no gap.
    #[test]
    fn pool_matches_the_model(policy in policy(), steps in steps()) {
        let mut model = Model::new(policy.build());
        for step in &steps {
            model.apply(step);
        }
    }

    #[test]
    fn all_requests_are_granted_eventually(policy in policy(), steps in steps()) {
        let mut model = Model::new(policy.build());
        for step in &steps {
            model.apply(step);
        }
        model.finish();
        prop_assert_eq!(model.granted() + model.cancelled(), model.requested());
    }

    #[test]
    fn cancelled_requests_have_no_effect(policy in policy(), steps in steps()) {
        // The same steps twice, once with requests that are cancelled before each step.
        let (mut calm, mut busy) = (Model::new(policy.build()), Model::new(policy.build()));
        for step in steps.iter().filter(|step| !step.is_cancel()) {
            busy.request_and_cancel();
            calm.apply(step);
            busy.apply(step);
            prop_assert_eq!(calm.grants_in_order(), busy.grants_in_order());
        }
    }

    #[test]
    fn reserved_tokens_are_settled(
        rpm in prop::option::of(1_u64..20),
        tpm in 50_u64..400,
        connections in prop::option::of(1_u32..8),
        steps in steps(),
    ) {
        let mut config = ProactiveConfig::default();
        config.rpm = rpm;
        config.tpm = Some(tpm);
        config.connections = connections;
        let proactive = SharedPolicy(Arc::new(Mutex::new(ProactivePolicy::new(config))));
        let mut model = Model::new(Box::new(proactive.clone()));
        for step in &steps {
            model.apply(step);
            prop_assert_eq!(proactive.used(model.now()), model.used());
        }
        model.finish();
        prop_assert_eq!(proactive.used(model.now()), model.used());
        for (before, cost) in model.reservations() {
            let (before, cost) = (before.map(TokenCost::total), cost.total());
            prop_assert!(before.is_none_or(|before| before + cost <= tpm), "{before:?} + {cost}");
        }
    }
}

/// A strategy that the test can inspect while the pool owns it.
#[derive(Debug, Clone)]
struct SharedPolicy(Arc<Mutex<ProactivePolicy>>);

impl SharedPolicy {
    fn used(&self, now: Duration) -> TokenCost {
        self.0.lock().unwrap().used(now)
    }
}

impl Policy for SharedPolicy {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        self.0.lock().unwrap().gate(view, cost)
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.0.lock().unwrap().on_sent(view, flight, cost);
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, outcome: &SendOutcome) {
        self.0.lock().unwrap().on_ended(view, flight, cost, outcome);
    }

    fn retry_mode(&self, now: Duration) -> RetryMode {
        self.0.lock().unwrap().retry_mode(now)
    }

    fn limit(&self) -> u32 {
        self.0.lock().unwrap().limit()
    }

    fn set_max_connections(&mut self, max: u32) {
        self.0.lock().unwrap().set_max_connections(max);
    }
}
