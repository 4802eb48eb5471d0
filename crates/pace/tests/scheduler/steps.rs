//! What can happen in a pool, at random.

use bakeoff_pace::{
    Adaptive, AdaptiveBounds, AdaptiveConfig, Auto, AutoConfig, Comeback, Cost, Ending, Fixed,
    Flight, Gate, Policy, Proactive, ProactiveConfig, Quota, Reactive, View,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Ask {
        run: u64,
        is_retry: bool,
        cost: Cost,
    },
    /// Of those who wait.
    Cancel(Index),
    /// Of all who ever asked.
    CancelAgain(Index),
    End(Index, Ending),
    Pass(Duration),
}

impl Step {
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, Step::Cancel(_) | Step::CancelAgain(_))
    }
}

/// A strategy with its parameters.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Fixed(u32),
    Adaptive(AdaptiveConfig),
    Reactive(Option<u32>),
    Proactive(ProactiveConfig),
    Unbounded,
    Auto(u32),
}

impl Kind {
    pub(crate) fn build(&self) -> Box<dyn Policy> {
        match self.clone() {
            Kind::Fixed(connections) => Box::new(Fixed::new(connections)),
            Kind::Adaptive(config) => Box::new(Adaptive::new(config)),
            Kind::Reactive(connections) => Box::new(Reactive::new(connections)),
            Kind::Proactive(config) => Box::new(Proactive::new(config)),
            Kind::Unbounded => Box::new(Fixed::unbounded()),
            Kind::Auto(connections) => {
                let config = AutoConfig { connections, ..AutoConfig::default() };
                Box::new(Ceiling { auto: Auto::new(config), connections })
            }
        }
    }
}

/// `auto` with its ceiling as its limit: what it tells in between is an estimate.
#[derive(Debug)]
struct Ceiling {
    auto: Auto,
    connections: u32,
}

impl Policy for Ceiling {
    fn gate(&mut self, view: View, cost: Cost) -> Gate {
        self.auto.gate(view, cost)
    }

    fn sent(&mut self, view: View, flight: Flight, cost: Cost) {
        self.auto.sent(view, flight, cost);
    }

    fn ended(&mut self, view: View, flight: Flight, cost: Cost, ending: &Ending) {
        self.auto.ended(view, flight, cost, ending);
    }

    fn comeback(&self, now: Duration) -> Comeback {
        self.auto.comeback(now)
    }

    fn limit(&self) -> u32 {
        self.connections
    }
}

/// Narrow ones, so that there is a queue.
pub(crate) fn policy() -> impl Strategy<Value = Kind> {
    let connections = || prop::option::of(1_u32..6);
    let adaptive = (1_u32..4, 0_u32..4, 0_u32..8, 0.0..5.0, 0.1..0.9, 0.05..1.0).prop_map(
        |(min, more, most, cooldown_seconds, decrease_factor, scale_up_percent)| {
            let bounds = AdaptiveBounds { min, start: min + more, max: min + more + most };
            AdaptiveConfig { bounds, cooldown_seconds, decrease_factor, scale_up_percent }
        },
    );
    let limit = || prop::option::of(1_u64..200);
    let rates = (prop::option::of(1_u64..10), limit(), limit(), limit());
    let proactive = (rates, connections(), connections()).prop_map(
        |((rpm, tpm, itpm, otpm), connections, burst)| ProactiveConfig {
            rpm,
            tpm,
            itpm,
            otpm,
            connections,
            burst,
        },
    );
    prop_oneof![
        (1_u32..6).prop_map(Kind::Fixed),
        adaptive.prop_map(Kind::Adaptive),
        connections().prop_map(Kind::Reactive),
        proactive.prop_map(Kind::Proactive),
        Just(Kind::Unbounded),
        (1_u32..6).prop_map(Kind::Auto),
    ]
}

fn cost() -> impl Strategy<Value = Cost> {
    (0_u64..60, 0_u64..60).prop_map(|(input, output)| Cost { input, output })
}

fn ending() -> impl Strategy<Value = Ending> {
    let retry_after = prop::option::of((1_u64..90).prop_map(Duration::from_secs));
    let quota = retry_after.prop_map(|retry_after| Quota { retry_after, ..Quota::default() });
    prop_oneof![
        6 => (prop::option::of(cost()), prop::bool::weighted(0.8)).prop_map(|(usage, clean)| {
            Ending::Answered { quota: Quota::default(), usage, clean }
        }),
        2 => quota.prop_map(|quota| Ending::Rejected { quota }),
        1 => Just(Ending::Failed),
        1 => Just(Ending::Refused),
        1 => Just(Ending::Dropped),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ask = (0_u64..4, prop::bool::weighted(0.3), cost())
        .prop_map(|(run, is_retry, cost)| Step::Ask { run, is_retry, cost });
    let pass = prop_oneof![0_u64..2_000, 0_u64..60_000].prop_map(Duration::from_millis);
    let step = prop_oneof![
        10 => ask,
        3 => any::<Index>().prop_map(Step::Cancel),
        1 => any::<Index>().prop_map(Step::CancelAgain),
        6 => (any::<Index>(), ending()).prop_map(|(which, ending)| Step::End(which, ending)),
        3 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..150)
}
