//! Shortest possible time of a row, computed from the limits of its provider.

use crate::pace::{best_fixed_seconds, optimal_seconds};
use bakeoff_pace::MIN_STALL_TIMEOUT;
use bakeoff_sim::{Latency, Profile, SlidingWindow};

/// Seed of the latencies from which the optimum is computed.
const SEED: u64 = 1;

/// Returns the shortest possible seconds for a number of calls with at most `ceiling` in flight.
pub(crate) fn seconds(profile: &Profile, calls: u32, ceiling: u32) -> f64 {
    let requests = requests_needed(profile, calls);
    let mut base = profile.clone();
    if !profile.concurrency_steps.is_empty() {
        // The changing limit is computed below.
        base.concurrency = None;
    }
    let mut seconds = optimal_seconds(&base, SEED, requests, ceiling);
    let latency = mean_latency_seconds(profile);
    if let Some(window) = profile.sliding_window {
        seconds = seconds.max(sliding_seconds(requests, window) + min_latency_seconds(profile));
    }
    if !profile.concurrency_steps.is_empty() {
        seconds = seconds.max(stepped_seconds(f64::from(requests) * latency, profile));
    }
    seconds + profile.connect_ms / 1e3
}

/// Returns the seconds of the best fixed concurrency limit in virtual time, where connections need no set-up.
/// Of several stalled calls, the last one is expected at the end of the run; it takes the client's time limit longer.
pub(crate) fn fixed_seconds(profile: &Profile, calls: u32, ceiling: u32) -> f64 {
    let stalls = f64::from(calls) * profile.faults.stall;
    let mut profile = profile.clone();
    profile.faults.stall = 0.0;
    let ideal = seconds(&profile, calls, ceiling);
    let fixed = best_fixed_seconds(&profile, SEED, calls, ceiling).max(ideal);
    if stalls < 0.5 {
        return fixed;
    }
    let last_stall = fixed * stalls / (stalls + 1.0);
    fixed.max(last_stall + MIN_STALL_TIMEOUT.as_secs_f64() + mean_latency_seconds(&profile))
}

/// Returns the number of admitted requests until all calls are answered: requests with a broken response
/// are repeated and use the limits again.
fn requests_needed(profile: &Profile, calls: u32) -> u32 {
    // A cast from float to integer saturates.
    (f64::from(calls) / (1.0 - profile.faults.broken()).max(0.01)).round() as u32
}

/// Returns the time at which the last request is admitted: a full burst per period is optimal.
fn sliding_seconds(requests: u32, window: SlidingWindow) -> f64 {
    let periods = u64::from(requests).div_ceil(window.requests.max(1)).max(1) - 1;
    periods as f64 * window.seconds
}

/// Returns the time at which a changing concurrency limit has provided an amount of request seconds.
fn stepped_seconds(amount: f64, profile: &Profile) -> f64 {
    let mut limit = profile.concurrency.unwrap_or(1) as f64;
    let (mut now, mut missing) = (0.0, amount);
    for step in &profile.concurrency_steps {
        let provided = limit * (step.at_s - now);
        if provided >= missing {
            break;
        }
        missing -= provided;
        now = step.at_s;
        limit = step.concurrency as f64;
    }
    now + missing / limit.max(1.0)
}

pub(crate) fn mean_latency_seconds(profile: &Profile) -> f64 {
    let ms = match profile.latency {
        Some(Latency::Fixed { ms }) => ms,
        Some(Latency::Uniform { min_ms, max_ms }) => f64::midpoint(min_ms, max_ms),
        Some(Latency::Lognormal { median_ms, sigma }) => median_ms * (sigma * sigma / 2.0).exp(),
        None => profile.batching.map_or(0.0, |batching| batching.base_ms),
    };
    ms / 1e3
}

fn min_latency_seconds(profile: &Profile) -> f64 {
    match profile.latency {
        Some(Latency::Fixed { ms }) => ms / 1e3,
        Some(Latency::Uniform { min_ms, .. }) => min_ms / 1e3,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ideal(text: &str, calls: u32) -> f64 {
        let text = format!("[[profile]]\nlatency = {{ kind = \"fixed\", ms = 1000 }}\n{text}");
        let profile = Profile::parse_file_text(&text).unwrap().remove(0);
        (seconds(&profile, calls, 400) * 1e6).round() / 1e6
    }

    #[test]
    fn each_limit_has_its_formula() {
        assert_eq!(ideal("concurrency = 30", 300), 10.0);
        assert_eq!(ideal("concurrency = 30\nconnect_ms = 200", 300), 10.2);
        assert_eq!(ideal("sliding_window = { requests = 10, seconds = 60 }", 20), 61.0);
        assert_eq!(ideal("sliding_window = { requests = 10, seconds = 60 }", 21), 121.0);
        let steps = "concurrency = 10\nconcurrency_steps = [{ at_s = 20, concurrency = 40 }, \
                     { at_s = 40, concurrency = 20 }]";
        assert_eq!(ideal(steps, 100), 10.0);
        assert_eq!(ideal(steps, 1400), 60.0);
    }

    #[test]
    fn broken_responses_are_repeated() {
        assert_eq!(ideal("concurrency = 1\nfaults = { reset = 0.5, status_201 = 0.5 }", 10), 20.0);
        assert_eq!(ideal("concurrency = 1\nfaults = { status_500 = 0.5 }", 10), 10.0);
    }

    #[test]
    fn fixed_limit_is_never_faster_than_the_ideal_and_waits_for_stalled_calls() {
        let profile = |faults: &str| {
            let text = format!(
                "[[profile]]\nlatency = {{ kind = \"fixed\", ms = 1000 }}\n\
                 requests = {{ rate_per_s = 5, burst = 1 }}\n{faults}"
            );
            Profile::parse_file_text(&text).unwrap().remove(0)
        };
        let clean = fixed_seconds(&profile(""), 100, 50);
        assert!(clean >= seconds(&profile(""), 100, 50));
        assert!(clean < 30.0, "{clean}");
        let stalled = fixed_seconds(&profile("faults = { stall = 0.01 }"), 100, 50);
        assert!((stalled - (clean / 2.0 + 16.0)).abs() < 1e-9, "{stalled} for {clean}");
        assert_eq!(fixed_seconds(&profile("faults = { stall = 0.001 }"), 100, 50), clean);
    }
}
