use super::*;
use crate::{Ask, RunTag, Scheduler, read_quota};
use std::collections::HashMap;
use std::time::SystemTime;

mod growth;
mod rejections;
mod tunables;

/// A strategy with a provider that does as it is told.
struct Trial {
    adaptive: Adaptive,
    now: Duration,
    in_flight: u32,
}

fn trial(config: AdaptiveConfig) -> Trial {
    Trial { adaptive: Adaptive::new(config), now: Duration::ZERO, in_flight: 0 }
}

fn bounded(min: u32, start: u32, max: u32) -> Trial {
    trial(AdaptiveConfig {
        bounds: crate::AdaptiveBounds { min, start, max },
        ..Default::default()
    })
}

fn clean() -> Ending {
    Ending::Answered { quota: Quota::default(), usage: None, clean: true }
}

fn after_retry() -> Ending {
    Ending::Answered { quota: Quota::default(), usage: None, clean: false }
}

fn rejected() -> Ending {
    Ending::Rejected { quota: Quota::default() }
}

/// A rejection whose `Retry-After` is that many seconds.
fn rejected_for(seconds: u64) -> Ending {
    let retry_after = Some(Duration::from_secs(seconds));
    Ending::Rejected { quota: Quota { retry_after, ..Quota::default() } }
}

impl Trial {
    fn limit(&self) -> u32 {
        self.adaptive.limit()
    }

    fn view(&self) -> View {
        View { now: self.now, in_flight: self.in_flight, waiting: 1000 }
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn is_open(&mut self) -> bool {
        self.adaptive.gate(self.view(), Cost::default()) == Gate::Open
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            self.in_flight += 1;
            self.adaptive.sent(self.view(), Flight(0), Cost::default());
        }
    }

    fn end(&mut self, count: u32, ending: &Ending) {
        for _ in 0..count {
            self.in_flight -= 1;
            self.adaptive.ended(self.view(), Flight(0), Cost::default(), ending);
        }
    }

    /// That many at once, all with that ending.
    fn burst(&mut self, count: u32, ending: &Ending) {
        self.send(count);
        self.end(count, ending);
    }

    /// One after the other.
    fn series(&mut self, count: u32, ending: &Ending) {
        for _ in 0..count {
            self.burst(1, ending);
        }
    }

    /// As many at once as possible, all answered.
    fn clean_round(&mut self) {
        self.burst(self.limit().max(SMALLEST_ROUND), &clean());
    }

    /// Ends slow start and waits until the episode is over.
    fn steady(mut self) -> Trial {
        self.burst(1, &rejected());
        self.wait(15.0);
        self.adaptive.take_changes();
        self
    }

    fn reasons(&mut self) -> Vec<(u32, u32, &'static str)> {
        let change =
            |change: LimitChange| (change.old_limit, change.new_limit, change.reason.as_str());
        self.adaptive.take_changes().into_iter().map(change).collect()
    }
}
