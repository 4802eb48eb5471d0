//! Schedulers side by side, in virtual time, on providers of every kind.
//!
//! Efficiency is the best possible time over the time it took. Hammering buys efficiency, so
//! rejections per success stand beside it.

mod contender;
mod cubic;
mod optimum;
mod random;
mod recovery;
mod summary;
mod world;

pub use contender::Contender;
pub use random::profiles as random_profiles;
pub use summary::{Group, Summary, summarise};

use bakeoff_sim::{HeaderStyle, Profile};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Items of a profile that does not say.
const ITEMS: u64 = 1000;
/// What takes so many times the best possible time is cut off.
const PATIENCE: f64 = 12.0;
/// A run may take so many seconds, however short the ideal time.
const LEAST_S: f64 = 60.0;

/// What to compare.
#[derive(Debug, Clone)]
pub struct PaceConfig {
    /// The providers.
    pub profiles: Vec<Profile>,
    /// The schedulers.
    pub contenders: Vec<Contender>,
    /// How often each is run on each provider, with another seed each time.
    pub seeds: u32,
    /// Most requests in flight, for all of them.
    pub ceiling: u32,
}

/// One scheduler on one provider, averaged over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct PaceRow {
    /// The provider.
    pub profile: String,
    /// It tells its limits in headers.
    pub is_told: bool,
    /// The scheduler.
    pub contender: Contender,
    /// The best possible time over the time it took.
    pub efficiency: f64,
    /// The worst seed's efficiency.
    pub worst: f64,
    /// Rejections per success.
    pub rejections_per_success: f64,
    /// Items given up or not done in time, over all seeds.
    pub lost: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Seconds from a change of the rate until nine tenths of the new one are used, where there
    /// are changes.
    pub recovery_seconds: Option<f64>,
}

/// The providers of the table.
pub fn table() -> Vec<Profile> {
    // The file is part of this crate, and a test reads it.
    Profile::parse_file_text(include_str!("../../profiles/table.toml")).unwrap_or_default()
}

/// Runs everything, on all processors; `progress` is told how much of it is done.
pub fn compare(config: &PaceConfig, progress: &(dyn Fn(usize, usize) + Sync)) -> Vec<PaceRow> {
    let pairs: Vec<(&Profile, Contender)> = config
        .profiles
        .iter()
        .flat_map(|profile| config.contenders.iter().map(move |contender| (profile, *contender)))
        .collect();
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((profile, contender)) =
                    pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let row = row(profile, *contender, config);
                    // A thread that panicked has taken its row with it; the others go on.
                    let Ok(mut rows) = rows.lock() else { return };
                    rows.push(row);
                    progress(rows.len(), pairs.len());
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_default();
    let place = |row: &PaceRow| {
        pairs.iter().position(|(profile, contender)| {
            profile.name == row.profile && *contender == row.contender
        })
    };
    rows.sort_by_key(place);
    rows
}

fn row(profile: &Profile, contender: Contender, config: &PaceConfig) -> PaceRow {
    let trials: Vec<Trial> = (1..=u64::from(config.seeds.max(1)))
        .map(|seed| trial(profile, contender, seed, config.ceiling))
        .collect();
    let mean = |part: fn(&Trial) -> f64| trials.iter().map(part).sum::<f64>() / trials.len() as f64;
    let recoveries: Vec<f64> = trials.iter().filter_map(|trial| trial.recovery_seconds).collect();
    PaceRow {
        profile: profile.name.clone(),
        is_told: matches!(
            profile.headers,
            HeaderStyle::OpenAi | HeaderStyle::Anthropic | HeaderStyle::Groq
        ),
        contender,
        efficiency: mean(|trial| trial.efficiency),
        worst: trials.iter().map(|trial| trial.efficiency).fold(f64::INFINITY, f64::min),
        rejections_per_success: mean(|trial| trial.rejections_per_success),
        lost: trials.iter().map(|trial| trial.lost).sum(),
        seconds: mean(|trial| trial.seconds),
        recovery_seconds: (!recoveries.is_empty())
            .then(|| recoveries.iter().sum::<f64>() / recoveries.len() as f64),
    }
}

/// One run.
#[derive(Debug, Clone, Copy)]
struct Trial {
    efficiency: f64,
    rejections_per_success: f64,
    lost: u64,
    seconds: f64,
    recovery_seconds: Option<f64>,
}

fn trial(profile: &Profile, contender: Contender, seed: u64, ceiling: u32) -> Trial {
    let items = u32::try_from(profile.items.unwrap_or(ITEMS)).unwrap_or(u32::MAX);
    let best = optimum::seconds(profile, seed, items, ceiling);
    let most = (best * PATIENCE).max(LEAST_S);
    let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX);
    let policy = contender.policy(profile, ceiling);
    let outcomes = world::World::new(profile, seed, items, policy).run(most);
    let done = f64::from(optimum::done(profile, items)).max(1.0);
    let seconds = if outcomes.lost > 0 { best * PATIENCE } else { outcomes.seconds };
    Trial {
        // Who is first in a window gets more than is left beside another tenant.
        efficiency: (best / seconds).min(1.0) * (outcomes.answered as f64 / done).min(1.0),
        rejections_per_success: outcomes.rejected as f64 / (outcomes.answered as f64).max(1.0),
        lost: outcomes.lost,
        seconds,
        recovery_seconds: recovery::seconds(profile, &outcomes.accepted_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_provider_of_every_kind() {
        let profiles = table();
        assert!(profiles.len() > 50, "{}", profiles.len());
        let any = |part: fn(&Profile) -> bool| profiles.iter().any(part);
        assert!(any(|profile| profile.knee.is_some()));
        assert!(any(|profile| profile.daily_quota.is_some()));
        assert!(any(|profile| profile.headers == HeaderStyle::Wrong));
    }

    #[test]
    fn what_is_told_to_the_proactive_one_is_kept() {
        let profiles = Profile::parse_file_text(
            "[[profile]]\nitems = 60\nlatency = { kind = \"fixed\", ms = 500 }\n\
             requests = { rate_per_s = 0.5, burst = 30 }",
        )
        .unwrap();
        let contenders = vec![Contender::Proactive, Contender::Fixed(10)];
        let config = PaceConfig { profiles, contenders, seeds: 2, ceiling: 400 };
        let rows = compare(&config, &|_, _| {});
        let names: Vec<_> = rows.iter().map(|row| row.contender.to_string()).collect();
        assert_eq!(names, ["proactive", "fixed-10"]);
        assert_eq!((rows[0].rejections_per_success, rows[0].lost), (0.0, 0));
        assert!(rows[1].rejections_per_success > 0.0);
    }

    #[test]
    fn one_seed_is_one_run() {
        let profiles = random_profiles(3, 5);
        let contenders = vec![Contender::Auto, Contender::Cubic];
        let config = PaceConfig { profiles, contenders, seeds: 1, ceiling: 100 };
        assert_eq!(compare(&config, &|_, _| {}), compare(&config, &|_, _| {}));
    }

    #[test]
    fn a_used_up_quota_ends_it_and_nothing_is_lost() {
        let profiles = table().into_iter().filter(|profile| profile.name == "daily-quota");
        let config = PaceConfig {
            profiles: profiles.collect(),
            contenders: vec![Contender::Auto],
            seeds: 1,
            ceiling: 400,
        };
        let rows = compare(&config, &|_, _| {});
        assert_eq!(rows[0].lost, 0);
        assert!(rows[0].efficiency > 0.5);
    }
}
