//! Comparison of schedulers on simulated providers, in virtual time.
//!
//! Efficiency is the optimal time divided by the measured time. Excessive retries can increase efficiency, so
//! rejections per success are reported with it.

mod contender;
mod cubic;
mod optimum;
mod random;
mod recovery;
mod simulation;
mod summary;

pub use contender::Contender;
pub(crate) use optimum::{best_fixed_seconds, seconds as optimal_seconds};
pub use random::{RandomKinds, profiles as random_profiles};
pub use simulation::Network;
pub use summary::{Group, PaceSummary, summarise};

use bakeoff_sim::{HeaderStyle, Profile};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Items of a profile that does not set them.
const DEFAULT_ITEMS: u64 = 1000;
/// A run is stopped after this multiple of the optimal time.
const MAX_SLOWDOWN: f64 = 12.0;
/// Minimum time limit of a run in seconds.
const MIN_TIME_LIMIT_S: f64 = 60.0;

/// Configuration of the pace benchmark.
#[derive(Debug, Clone)]
pub struct PaceConfig {
    /// Providers.
    pub profiles: Vec<Profile>,
    /// Schedulers.
    pub contenders: Vec<Contender>,
    /// Runs per scheduler and provider, each with another seed.
    pub seeds: u32,
    /// Maximum number of requests in flight, for all schedulers.
    pub ceiling: u32,
    /// Network between client and provider.
    pub network: Network,
}

/// Results of one scheduler on one provider, averaged over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct PaceRow {
    /// Name of the provider.
    pub profile: String,
    /// Whether the provider announces its limits in headers.
    pub announces_limits: bool,
    /// Scheduler.
    pub contender: Contender,
    /// Optimal time divided by the measured time.
    pub efficiency: f64,
    /// Efficiency of the worst seed.
    pub worst: f64,
    /// Rejections per success.
    pub rejections_per_success: f64,
    /// Items that failed or were not finished in time, over all seeds.
    pub lost: u64,
    /// Measured seconds.
    pub seconds: f64,
    /// Seconds from a change of the rate until 90 % of the new rate are used, for profiles with changes.
    pub recovery_seconds: Option<f64>,
}

/// Returns the built-in providers.
pub fn table() -> Vec<Profile> {
    // The file is embedded, and a test parses it.
    Profile::parse_file_text(include_str!("../../profiles/table.toml")).unwrap_or_default()
}

/// Runs all combinations on all processors; calls `progress` with the finished and total number.
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
                    // A panicked thread loses its row; the others stop at the poisoned lock.
                    let Ok(mut rows) = rows.lock() else { return };
                    rows.push(row);
                    progress(rows.len(), pairs.len());
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_default();
    let position = |row: &PaceRow| {
        pairs.iter().position(|(profile, contender)| {
            profile.name == row.profile && *contender == row.contender
        })
    };
    rows.sort_by_key(position);
    rows
}

fn row(profile: &Profile, contender: Contender, config: &PaceConfig) -> PaceRow {
    let runs: Vec<PaceRun> = (1..=u64::from(config.seeds.max(1)))
        .map(|seed| run(profile, contender, seed, config))
        .collect();
    let mean = |part: fn(&PaceRun) -> f64| runs.iter().map(part).sum::<f64>() / runs.len() as f64;
    let recoveries: Vec<f64> = runs.iter().filter_map(|run| run.recovery_seconds).collect();
    PaceRow {
        profile: profile.name.clone(),
        announces_limits: matches!(
            profile.headers,
            HeaderStyle::OpenAi | HeaderStyle::Anthropic | HeaderStyle::Groq
        ),
        contender,
        efficiency: mean(|run| run.efficiency),
        worst: runs.iter().map(|run| run.efficiency).fold(f64::INFINITY, f64::min),
        rejections_per_success: mean(|run| run.rejections_per_success),
        lost: runs.iter().map(|run| run.lost).sum(),
        seconds: mean(|run| run.seconds),
        recovery_seconds: (!recoveries.is_empty())
            .then(|| recoveries.iter().sum::<f64>() / recoveries.len() as f64),
    }
}

/// Results of one run.
#[derive(Debug, Clone, Copy)]
struct PaceRun {
    efficiency: f64,
    rejections_per_success: f64,
    lost: u64,
    seconds: f64,
    recovery_seconds: Option<f64>,
}

fn run(profile: &Profile, contender: Contender, seed: u64, config: &PaceConfig) -> PaceRun {
    let PaceConfig { ceiling, network, .. } = *config;
    let items = u32::try_from(profile.items.unwrap_or(DEFAULT_ITEMS)).unwrap_or(u32::MAX);
    let best = optimum::seconds(profile, seed, items, ceiling);
    let time_limit = (best * MAX_SLOWDOWN).max(MIN_TIME_LIMIT_S);
    let time_limit = Duration::try_from_secs_f64(time_limit).unwrap_or(Duration::MAX);
    let policy = contender.policy(profile, ceiling);
    let result = simulation::Simulation::new(profile, seed, items, policy, network).run(time_limit);
    let done = f64::from(optimum::max_items(profile, items)).max(1.0);
    let seconds = if result.lost > 0 { best * MAX_SLOWDOWN } else { result.seconds };
    PaceRun {
        // At the start of a window a scheduler can use the share of another tenant and beat the optimum.
        efficiency: (best / seconds).min(1.0) * (result.answered as f64 / done).min(1.0),
        rejections_per_success: result.rejected as f64 / (result.answered as f64).max(1.0),
        lost: result.lost,
        seconds,
        recovery_seconds: recovery::seconds(profile, &result.accepted_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_covers_every_kind_of_provider() {
        let profiles = table();
        assert!(profiles.len() > 50, "{}", profiles.len());
        let any = |part: fn(&Profile) -> bool| profiles.iter().any(part);
        assert!(any(|profile| profile.knee.is_some()));
        assert!(any(|profile| profile.daily_quota.is_some()));
        assert!(any(|profile| profile.batching.is_some()));
        assert!(any(|profile| profile.reject_rate > 0.0));
        assert!(any(|profile| profile.headers == HeaderStyle::Wrong));
    }

    #[test]
    fn proactive_scheduler_keeps_the_configured_limits() {
        let profiles = Profile::parse_file_text(
            "[[profile]]\nitems = 60\nlatency = { kind = \"fixed\", ms = 500 }\n\
             requests = { rate_per_s = 0.5, burst = 30 }",
        )
        .unwrap();
        let contenders = vec![Contender::Proactive, Contender::Fixed(10)];
        let config =
            PaceConfig { profiles, contenders, seeds: 2, ceiling: 400, network: Network::Local };
        let rows = compare(&config, &|_, _| {});
        let names: Vec<_> = rows.iter().map(|row| row.contender.to_string()).collect();
        assert_eq!(names, ["proactive", "fixed-10"]);
        assert_eq!((rows[0].rejections_per_success, rows[0].lost), (0.0, 0));
        assert!(rows[1].rejections_per_success > 0.0);
    }

    #[test]
    fn equal_seeds_give_equal_results() {
        let profiles = random_profiles(3, 5, RandomKinds::World);
        let contenders = vec![Contender::Auto, Contender::Cubic];
        let config =
            PaceConfig { profiles, contenders, seeds: 1, ceiling: 100, network: Network::Local };
        assert_eq!(compare(&config, &|_, _| {}), compare(&config, &|_, _| {}));
    }

    #[test]
    fn exhausted_quota_ends_the_run_without_lost_items() {
        let profiles = table().into_iter().filter(|profile| profile.name == "daily-quota");
        let config = PaceConfig {
            profiles: profiles.collect(),
            contenders: vec![Contender::Auto],
            seeds: 1,
            ceiling: 400,
            network: Network::Local,
        };
        let rows = compare(&config, &|_, _| {});
        assert_eq!(rows[0].lost, 0);
        assert!(rows[0].efficiency > 0.5);
    }
}
