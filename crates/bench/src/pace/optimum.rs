//! Optimal time of a scheduler with perfect knowledge of the provider.

use super::simulation::{self, Network, Simulation};
use bakeoff_pace::FixedPolicy;
use bakeoff_sim::{FixedWindow, Outage, Profile, Rate};
use std::time::Duration;

/// Latencies and tokens of all items together.
#[derive(Debug, Clone, Copy, Default)]
struct Workload {
    items: f64,
    latency: f64,
    latency_squared: f64,
    shortest: f64,
    longest: f64,
    input: f64,
    output: f64,
}

/// Returns the optimal seconds for a number of items with at most `ceiling` in flight.
pub(crate) fn seconds(profile: &Profile, seed: u64, items: u32, ceiling: u32) -> f64 {
    if profile.batching.is_some() {
        return best_fixed_seconds(profile, seed, items, ceiling);
    }
    let work = measure(profile, seed, max_items(profile, items));
    let outages = &profile.outages;
    // Where failures are charged, each error counts against the limit like a success.
    let charged = if profile.failures_charge {
        work.items / ((1.0 - profile.error_rate) * (1.0 - profile.reject_rate)).max(0.01)
    } else {
        work.items
    };
    let mut seconds = work.longest;
    if let Some(rate) = profile.requests {
        let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
        let mut rates = vec![(0.0, rate.rate_per_s - foreign)];
        rates.extend(profile.steps.iter().map(|step| (step.at_s, step.requests_per_s - foreign)));
        seconds = seconds.max(drain_seconds(charged, rate.burst, &rates, outages) + work.shortest);
    }
    let charge = profile.charged_output_tokens.map(|tokens| tokens as f64 * work.items);
    let output = charge.unwrap_or(work.output);
    for (limit, amount) in [
        (profile.tokens, work.input + output),
        (profile.input_tokens_limit, work.input),
        (profile.output_tokens_limit, output),
    ] {
        if let Some(Rate { rate_per_s, burst }) = limit {
            let time = drain_seconds(amount, burst, &[(0.0, rate_per_s)], outages);
            seconds = seconds.max(time + work.shortest);
        }
    }
    if let Some(window) = profile.window {
        seconds = seconds.max(window_seconds(charged, window, profile) + work.shortest);
    }
    let limits = [Some(u64::from(ceiling)), profile.concurrency, profile.knee.map(|knee| knee.k)];
    let in_flight = limits.into_iter().flatten().min().unwrap_or(1) as f64;
    seconds.max(concurrent_seconds(&work, in_flight, outages))
}

/// Numbers of requests in flight that are simulated next to the best one of the coarse grid.
const NEIGHBOURS: u32 = 12;

/// Returns the time with the best fixed number of requests in flight, by simulation; infinite if every
/// number loses items. A coarse grid finds the neighbourhood, and a fine one the optimum, which is sharp
/// for a cap.
pub(crate) fn best_fixed_seconds(profile: &Profile, seed: u64, items: u32, ceiling: u32) -> f64 {
    let max = ceiling.min(items).max(1);
    let seconds = |limit: u32| {
        let policy = Box::new(FixedPolicy::new(limit));
        let simulation = Simulation::new(profile, seed, items, policy, Network::Local);
        let result = simulation.run(Duration::MAX);
        if result.lost == 0 { result.seconds } else { f64::INFINITY }
    };
    let next = |limit: &u32| (*limit > 1).then(|| (limit * 3 / 4).max(1));
    let coarse = std::iter::successors(Some(max), next).map(|limit| (limit, seconds(limit)));
    let best = coarse.min_by(|one, other| one.1.total_cmp(&other.1));
    let Some((limit, coarse_seconds)) = best else { return f64::INFINITY };
    let (low, high) = (limit * 3 / 4, (limit * 4).div_ceil(3).min(max));
    let step = ((high - low) / NEIGHBOURS).max(1);
    let fine = (low.max(1)..=high).step_by(step as usize).map(seconds);
    fine.fold(coarse_seconds, f64::min)
}

/// Returns the number of items that the daily quota permits.
pub(crate) fn max_items(profile: &Profile, items: u32) -> u32 {
    profile.daily_quota.map_or(items, |quota| items.min(u32::try_from(quota).unwrap_or(u32::MAX)))
}

fn measure(profile: &Profile, seed: u64, items: u32) -> Workload {
    let engine = simulation::engine(profile, seed);
    let request = simulation::request();
    let mut work = Workload { shortest: f64::INFINITY, ..Workload::default() };
    for item in 0..items {
        let estimate = engine.estimate(&request, item, 0);
        let latency = estimate.latency.as_secs_f64();
        work.items += 1.0;
        work.latency += latency;
        work.latency_squared += latency * latency;
        work.shortest = work.shortest.min(latency);
        work.longest = work.longest.max(latency);
        work.input += estimate.input as f64;
        work.output += estimate.output as f64;
    }
    // A request that is rejected irrespective of load holds one of the client's slots meanwhile.
    let rejections = work.items * profile.reject_rate / (1.0 - profile.reject_rate);
    let rejection_ms =
        if profile.reject_ms > 0.0 { profile.reject_ms } else { simulation::DEFAULT_REJECT_MS };
    work.latency += rejections * rejection_ms / 1e3;
    if items == 0 { Workload::default() } else { work }
}

/// Returns the time at which a full bucket has provided an amount. During an outage it refills and provides
/// nothing.
fn drain_seconds(amount: f64, burst: f64, rates: &[(f64, f64)], outages: &[Outage]) -> f64 {
    let mut times: Vec<f64> = rates.iter().map(|(at, _)| *at).collect();
    times.extend(outages.iter().flat_map(|outage| [outage.from_s, outage.to_s]));
    times.push(f64::INFINITY);
    times.sort_by(f64::total_cmp);
    let (mut now, mut missing, mut balance) = (0.0, amount, burst);
    for end in times {
        if end < now {
            continue;
        }
        let rate = rates.iter().rev().find(|(at, _)| *at <= now).map_or(0.0, |(_, rate)| *rate);
        let is_out = outages.iter().any(|outage| (outage.from_s..outage.to_s).contains(&now));
        if !is_out {
            let taken = balance.min(missing);
            missing -= taken;
            balance -= taken;
            if missing <= rate * (end - now) {
                return now + missing / rate;
            }
            missing -= rate.max(0.0) * (end - now);
        } else {
            balance = (balance + rate.max(0.0) * (end - now)).min(burst);
        }
        now = end;
    }
    f64::INFINITY
}

/// Returns the time at which the windows have admitted all items, given the share of another tenant.
fn window_seconds(items: f64, window: FixedWindow, profile: &Profile) -> f64 {
    let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
    let elapsed = window.phase_s % window.seconds;
    let mut missing = items - (window.requests as f64 - foreign * elapsed).floor().max(0.0);
    let mut now = 0.0;
    let mut next = window.seconds - elapsed;
    while missing > 0.0 {
        let out = profile.outages.iter().find(|out| (out.from_s..out.to_s).contains(&next));
        let opens = out.map_or(next, |outage| outage.to_s);
        if opens < next + window.seconds {
            missing -= (window.requests as f64 - foreign * window.seconds).floor().max(1.0);
            now = opens;
        }
        next += window.seconds;
    }
    now
}

/// Returns the time for all items with a concurrency limit. Requests in flight at the start of an outage finish,
/// but their slots then stay empty.
fn concurrent_seconds(work: &Workload, in_flight: f64, outages: &[Outage]) -> f64 {
    let residual = work.latency_squared / (2.0 * work.latency).max(f64::MIN_POSITIVE);
    let mut seconds = work.latency / in_flight;
    for outage in outages {
        if outage.from_s < seconds {
            seconds += (outage.to_s - outage.from_s - residual).max(0.0);
        }
    }
    seconds.max(work.longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_fixed_limit_fills_a_cap_exactly() {
        let text = "[[profile]]\nlatency = { kind = \"fixed\", ms = 1000 }\nconcurrency = 44";
        let profile = Profile::parse_file_text(text).unwrap().remove(0);
        // Twenty rounds of 44; the coarse grid has only 39 and 52.
        let seconds = best_fixed_seconds(&profile, 1, 880, 400);
        assert!((20.0..20.2).contains(&seconds), "{seconds}");
    }
    use bakeoff_sim::Latency;

    fn profile(text: &str) -> Profile {
        let file = format!("[[profile]]\nlatency = {{ kind = \"fixed\", ms = 1000 }}\n{text}");
        Profile::parse_file_text(&file).unwrap().remove(0)
    }

    fn best(text: &str, items: u32) -> f64 {
        let seconds = seconds(&profile(text), 1, items, 400);
        (seconds * 1e6).round() / 1e6
    }

    #[test]
    fn each_limit_has_its_formula() {
        assert_eq!(best("requests = { rate_per_s = 5, burst = 5 }", 1500), 1495.0 / 5.0 + 1.0);
        assert_eq!(
            best(
                "input_tokens = 400\noutput_tokens = 100\n\
                 tokens = { rate_per_s = 5000, burst = 20000 }",
                1000
            ),
            480_000.0 / 5000.0 + 1.0
        );
        assert_eq!(best("concurrency = 30", 300), 10.0);
        assert_eq!(best("knee = { k = 24 }", 240), 10.0);
        assert_eq!(
            best("window = { requests = 100, seconds = 10, phase_s = 3 }", 450),
            4.0 * 10.0 - 3.0 + 1.0
        );
        assert_eq!(
            best("requests = { rate_per_s = 5, burst = 5 }\nforeign = { requests_per_s = 2 }", 305),
            101.0
        );
        // 60 s at 5, then 20 per second.
        assert_eq!(
            best(
                "requests = { rate_per_s = 5, burst = 5 }\n\
                 steps = [{ at_s = 60, requests_per_s = 20 }]",
                705
            ),
            60.0 + 20.0 + 1.0
        );
        // No requests for 30 s, then the burst of 5.
        assert_eq!(
            best(
                "requests = { rate_per_s = 5, burst = 5 }\n\
                 outages = [{ from_s = 60, to_s = 90 }]",
                5 + 300 + 5 + 100
            ),
            90.0 + 20.0 + 1.0
        );
    }

    #[test]
    fn random_rejections_hold_slots_of_the_client() {
        let seconds = best("reject_rate = 0.2\nreject_ms = 100", 4000);
        assert!((seconds - (4000.0 + 1000.0 * 0.1) / 400.0).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn batching_optimum_is_the_best_fixed_limit() {
        let batching = Profile::parse_file_text(
            "[[profile]]\nbatching = { base_ms = 1000, per_request_ms = 10 }",
        )
        .unwrap()
        .remove(0);
        // With all 400 in flight at once, the last answer takes 1 s + 400 * 10 ms.
        let all_at_once = seconds(&batching, 1, 400, 1000);
        assert!((4.9..5.1).contains(&all_at_once), "{all_at_once}");
        let bounded = seconds(&batching, 1, 400, 10);
        assert!((43.0..45.0).contains(&bounded), "{bounded}");
    }

    #[test]
    fn strictest_limit_applies_and_quota_bounds_the_work() {
        assert_eq!(best("concurrency = 30\nrequests = { rate_per_s = 5, burst = 5 }", 305), 61.0);
        assert_eq!(best("concurrency = 1\nrequests = { rate_per_s = 5, burst = 5 }", 305), 305.0);
        assert_eq!(best("daily_quota = 100\nconcurrency = 1", 305), 100.0);
        let free = Profile { latency: Some(Latency::Fixed { ms: 1000.0 }), ..Profile::default() };
        assert_eq!(seconds(&free, 1, 800, 400), 2.0);
    }
}
