//! Random mixes of limit, latency, retry hint, faults and connection set-up.

use super::ideal;
use super::rows::{Reference, RowStrategies, WorldRow};
use super::strategy::CEILING;
use bakeoff_sim::Profile;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Minimum time of an ideal scheduler for a mix in seconds, at scale 1.
const MIN_SECONDS: f64 = 60.0;
/// Bounds of the calls of a mix.
const MIN_CALLS: u32 = 10;
const MAX_CALLS: u32 = 100_000;

/// Draws a number of mixes, reproducible by seed.
pub(crate) fn mixes(count: u32, seed: u64, scale: f64) -> Vec<WorldRow> {
    let mut draw = MixGenerator(ChaCha8Rng::seed_from_u64(seed));
    (1..=count).map(|number| draw.mix(number, MIN_SECONDS * scale)).collect()
}

struct MixGenerator(ChaCha8Rng);

impl MixGenerator {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// Draws a whole number from a log-uniform distribution.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp().round()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.0.random_range(0..N)]
    }

    /// Draws a mix whose ideal time is at least `min_seconds`.
    fn mix(&mut self, number: u32, min_seconds: f64) -> WorldRow {
        let (limit_kind, limit) = self.limit(min_seconds);
        let (latency_kind, latency) = match limit_kind {
            // Batching defines the latency itself.
            "batching" => ("", String::new()),
            _ => self.latency(),
        };
        let mut keys = vec![limit, latency];
        if self.chance(0.6) {
            let hint =
                self.one_of(["exact", "ceil", "2s", "20s", "60s", "http-date", "ms", "zero"]);
            keys.push(format!("retry_after = \"{hint}\""));
        }
        if self.chance(0.2) {
            keys.push("headers = \"openai\"".to_owned());
        }
        if self.chance(0.4) {
            keys.push(self.faults());
        }
        if self.chance(0.2) {
            keys.push(format!("reject_rate = {:.3}", self.between(0.005, 0.05)));
        }
        if self.chance(0.4) {
            keys.push(format!("connect_ms = {}", self.magnitude(20.0, 400.0)));
        }
        keys.retain(|key| !key.is_empty());
        let separator = if latency_kind.is_empty() { "" } else { "-" };
        let profile = keys.join("\n");
        WorldRow {
            name: format!("mix-{number:03}-{limit_kind}{separator}{latency_kind}"),
            calls: calls(&profile, min_seconds),
            profile,
            reference: Reference::SimulatedFixed { ceiling: CEILING },
            strategies: RowStrategies::Chosen,
            rpm: None,
            http2_streams: None,
        }
    }

    /// Draws a limit; returns its kind and its keys. Changes take place within the ideal time.
    fn limit(&mut self, min_seconds: f64) -> (&'static str, String) {
        let rate = self.magnitude(2.0, 40.0);
        let burst = self.magnitude(1.0, 2.0 * rate);
        let cap = self.magnitude(3.0, 80.0);
        let seconds = self.magnitude(2.0, 10.0);
        let at_s = min_seconds * self.between(0.2, 0.6);
        let bucket = format!("requests = {{ rate_per_s = {rate}, burst = {burst} }}");
        let factor = self.one_of([0.3, 0.5, 2.0, 3.0]);
        match self.0.random_range(0..8) {
            0 => ("bucket", bucket),
            1 => ("cap", format!("concurrency = {cap}")),
            2 => ("bucket-cap", format!("{bucket}\nconcurrency = {cap}")),
            3 => {
                let requests = rate * seconds;
                ("window", format!("window = {{ requests = {requests}, seconds = {seconds} }}"))
            }
            4 => {
                let requests = rate * seconds;
                let keys = format!("{{ requests = {requests}, seconds = {seconds} }}");
                ("sliding", format!("sliding_window = {keys}"))
            }
            5 => {
                let per_request_ms = self.between(5.0, 40.0);
                let base_ms = self.magnitude(300.0, 2000.0);
                let keys = format!("base_ms = {base_ms}, per_request_ms = {per_request_ms:.1}");
                ("batching", format!("batching = {{ {keys} }}"))
            }
            6 => {
                let changed = (cap * factor).round().max(1.0);
                let step = format!("{{ at_s = {at_s:.1}, concurrency = {changed} }}");
                ("cap-step", format!("concurrency = {cap}\nconcurrency_steps = [{step}]"))
            }
            _ => {
                let step = format!("{{ at_s = {at_s:.1}, requests_per_s = {} }}", rate * factor);
                ("bucket-step", format!("{bucket}\nsteps = [{step}]"))
            }
        }
    }

    /// Draws a latency; returns its kind and its keys.
    fn latency(&mut self) -> (&'static str, String) {
        let ms = self.magnitude(100.0, 2500.0);
        let spread = self.between(0.1, 0.8);
        match self.0.random_range(0..3) {
            0 => ("fixed", format!("latency = {{ kind = \"fixed\", ms = {ms} }}")),
            1 => {
                let (min_ms, max_ms) = (ms * (1.0 - spread), ms * (1.0 + spread));
                let keys = format!("min_ms = {min_ms:.0}, max_ms = {max_ms:.0}");
                ("uniform", format!("latency = {{ kind = \"uniform\", {keys} }}"))
            }
            _ => {
                // A wider spread would make the slowest call, a matter of chance, decide the ideal time.
                let keys = format!("median_ms = {ms}, sigma = {:.2}", spread / 2.0);
                ("lognormal", format!("latency = {{ kind = \"lognormal\", {keys} }}"))
            }
        }
    }

    /// Draws up to three kinds of faults with a few percent each.
    fn faults(&mut self) -> String {
        let kinds =
            ["reset", "stall", "truncated", "malformed", "empty", "status_500", "status_201"];
        let first = self.0.random_range(0..kinds.len());
        let count = self.0.random_range(1..=3);
        let shares: Vec<String> = (0..count)
            .map(|offset| {
                let kind = kinds[(first + 2 * offset) % kinds.len()];
                // A stall costs a whole timeout, so it is rarer.
                let max = if kind == "stall" { 0.005 } else { 0.03 };
                format!("{kind} = {:.4}", self.between(0.001, max))
            })
            .collect();
        format!("faults = {{ {} }}", shares.join(", "))
    }
}

/// Returns a number of calls that takes an ideal scheduler `min_seconds` or somewhat more.
fn calls(profile: &str, min_seconds: f64) -> u32 {
    // A test parses all kinds of keys; without a profile the row fails with its error.
    let Ok(profiles) = Profile::parse_file_text(&format!("[[profile]]\n{profile}")) else {
        return MIN_CALLS;
    };
    let seconds = |calls: u32| {
        let seconds = profiles.iter().map(|profile| match profile.batching {
            // The throughput with all calls in flight. The exact time would need many simulations.
            Some(batching) => {
                let in_flight = f64::from(calls.min(CEILING));
                let latency = batching.base_ms + batching.per_request_ms * in_flight;
                f64::from(calls) / in_flight * latency / 1e3
            }
            None => ideal::seconds(profile, calls, CEILING),
        });
        seconds.fold(0.0, f64::max)
    };
    let mut calls = MIN_CALLS;
    while calls < MAX_CALLS {
        let missing = min_seconds / seconds(calls).max(f64::MIN_POSITIVE);
        if missing <= 1.0 {
            break;
        }
        // Small steps, because the time is not proportional: buckets have bursts and windows have steps.
        calls = (f64::from(calls) * missing.clamp(1.05, 2.0)).ceil() as u32;
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_valid_and_long_enough_and_cover_every_kind() {
        let rows = mixes(40, 7, 0.4);
        assert_eq!(rows[..3], mixes(3, 7, 0.4));
        assert_ne!(rows[0], mixes(1, 8, 0.4)[0]);
        for row in &rows {
            let text = format!("[[profile]]\n{}", row.profile);
            let profile = Profile::parse_file_text(&text).unwrap().remove(0);
            if profile.batching.is_some() {
                assert!((100..10_000).contains(&row.calls), "{}: {}", row.name, row.calls);
                continue;
            }
            let seconds = ideal::seconds(&profile, row.calls, CEILING);
            assert!((24.0..60.0).contains(&seconds), "{}: {seconds} s\n{text}", row.name);
        }
        let all: String = rows.iter().map(|row| row.profile.as_str()).collect();
        for key in [
            "requests",
            "concurrency",
            "window",
            "sliding_window",
            "batching",
            "concurrency_steps",
            "steps",
            "fixed",
            "uniform",
            "lognormal",
            "retry_after",
            "headers",
            "reset",
            "stall",
            "truncated",
            "malformed",
            "empty",
            "status_500",
            "status_201",
            "reject_rate",
            "connect_ms",
        ] {
            assert!(all.contains(key), "{key}");
        }
    }
}
