//! Schedulers side by side, in virtual time, on providers of every kind.

mod cubic;
mod optimum;
mod random;
mod world;

use bakeoff_pace::{Fixed, Policy};
use bakeoff_sim::Profile;
use std::time::Duration;

/// A scheduler in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// Ours.
    Auto,
    /// Ours, with leave to test whether announced waits are needed.
    AutoTest,
    /// A window of ten.
    Fixed10,
    /// A window of a hundred.
    Fixed100,
    /// The AWS SDKs' adaptive mode.
    Cubic,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// The best possible time over the time it took.
    pub efficiency: f64,
    /// Rejections per success.
    pub rejections: f64,
    /// Items lost.
    pub lost: u64,
    /// Seconds it took.
    pub seconds: f64,
}

/// The built-in profiles.
pub fn table() -> Vec<Profile> {
    Profile::parse_file_text(include_str!("../../profiles/table.toml")).unwrap_or_default()
}

/// Random ones.
pub fn random_profiles(count: u32, seed: u64) -> Vec<Profile> {
    random::profiles(count, seed)
}

/// Runs once.
pub fn trial(profile: &Profile, contender: Contender, seed: u64, ceiling: u32) -> Trial {
    let items = u32::try_from(profile.items.unwrap_or(1000)).unwrap_or(u32::MAX);
    let best = optimum::seconds(profile, seed, items, ceiling);
    let policy: Box<dyn Policy> = match contender {
        Contender::AutoTest => Box::new(bakeoff_pace::Auto::new(bakeoff_pace::AutoConfig {
            connections: ceiling,
            retry_after: bakeoff_pace::RetryAfter::Test,
            ..Default::default()
        })),
        Contender::Auto => Box::new(bakeoff_pace::Auto::new(bakeoff_pace::AutoConfig {
            connections: ceiling,
            ..Default::default()
        })),
        Contender::Fixed10 => Box::new(Fixed::new(10)),
        Contender::Fixed100 => Box::new(Fixed::new(100)),
        Contender::Cubic => Box::new(cubic::Cubic::new(ceiling)),
    };
    let most = best * 12.0;
    let outcomes =
        world::World::new(profile, seed, items, policy).run(Duration::from_secs_f64(most));
    let done = f64::from(optimum::done(profile, items));
    let seconds = if outcomes.lost > 0 { most } else { outcomes.seconds };
    Trial {
        // Who is first in a window gets more than is left beside the other tenant.
        efficiency: (best / seconds).min(1.0) * (outcomes.answered as f64 / done).min(1.0),
        rejections: outcomes.rejected as f64 / (outcomes.answered as f64).max(1.0),
        lost: outcomes.lost,
        seconds,
    }
}
