#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
//! What holds in a pool whatever happens, and whatever the strategy is.

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
    /// The model checks after each step: no more in flight than the limit, an end frees exactly one
    /// place, who has cancelled is gone, first come first served within a run with retries before
    /// the others, runs take turns, and the history of the limit has no gap.
    #[test]
    fn the_pool_does_as_the_model(policy in policy(), steps in steps()) {
        let mut model = Model::new(policy.build());
        for step in &steps {
            model.take(step);
        }
    }

    #[test]
    fn everybody_is_granted_in_the_end(policy in policy(), steps in steps()) {
        let mut model = Model::new(policy.build());
        for step in &steps {
            model.take(step);
        }
        model.finish();
        prop_assert_eq!(model.granted() + model.cancelled(), model.asked());
    }

    #[test]
    fn who_cancels_leaves_no_trace(policy in policy(), steps in steps()) {
        // The same twice, but once with some who come and go before each step.
        let (mut calm, mut busy) = (Model::new(policy.build()), Model::new(policy.build()));
        for step in steps.iter().filter(|step| !step.is_cancel()) {
            busy.come_and_go();
            calm.take(step);
            busy.take(step);
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
        let config = ProactiveConfig { rpm, tpm: Some(tpm), connections, ..Default::default() };
        let proactive = SharedPolicy(Arc::new(Mutex::new(ProactivePolicy::new(config))));
        let mut model = Model::new(Box::new(proactive.clone()));
        for step in &steps {
            model.take(step);
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

/// A strategy that can be looked at from outside of its pool.
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

    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, ending: &SendOutcome) {
        self.0.lock().unwrap().on_ended(view, flight, cost, ending);
    }

    fn retry_mode(&self, now: Duration) -> RetryMode {
        self.0.lock().unwrap().retry_mode(now)
    }

    fn limit(&self) -> u32 {
        self.0.lock().unwrap().limit()
    }
}
