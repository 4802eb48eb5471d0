//! Random providers over the whole profile format.
//!
//! Each run is long enough to rate a scheduler: at least 300 items, 100 latencies and 20 windows, because the
//! optimum ignores the tail of the last requests.

use bakeoff_sim::{
    Batching, FixedWindow, ForeignTraffic, HeaderStyle, Knee, Latency, Outage, Profile, Rate,
    RateStep, RetryHint, TokenCount,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// The kinds of providers to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomKinds {
    /// Limits, outages, other tenants and misleading headers.
    Classic,
    /// The same, and rejections irrespective of load, continuous batching, windows of any length,
    /// and announced waits that are longer than needed.
    World,
}

/// Share of the additional kinds among the providers of [`RandomKinds::World`].
const WORLD_SHARE: f64 = 0.5;

/// Returns a number of random profiles, reproducible by seed. A profile of [`RandomKinds::World`]
/// either equals the classic one of the same number or replaces it.
pub fn profiles(count: u32, seed: u64, kinds: RandomKinds) -> Vec<Profile> {
    let mut draw = ProfileGenerator(ChaCha8Rng::seed_from_u64(seed));
    let mut world = ProfileGenerator(ChaCha8Rng::seed_from_u64(seed ^ 0x77_6f72_6c64));
    (0..count)
        .map(|number| {
            let classic = draw.profile(number);
            let is_replaced = kinds == RandomKinds::World && world.chance(WORLD_SHARE);
            if is_replaced { world.world_profile(number) } else { classic }
        })
        .collect()
}

struct ProfileGenerator(ChaCha8Rng);

impl ProfileGenerator {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// Draws from a log-uniform distribution.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.0.random_range(0..N)]
    }

    fn profile(&mut self, number: u32) -> Profile {
        let median_ms = self.magnitude(300.0, 3000.0).round();
        let latency = if self.chance(0.2) {
            Latency::Fixed { ms: median_ms }
        } else {
            Latency::Lognormal { median_ms, sigma: self.between(0.1, 0.6) }
        };
        let seconds = median_ms / 1e3;
        let mut profile = Profile {
            latency: Some(latency),
            reject_ms: self.between(20.0, 150.0).round(),
            ..Profile::default()
        };
        let kind = self.set_limit(&mut profile, seconds);
        profile.name = format!("{number:03}-{kind}");
        self.set_headers(&mut profile);
        // Throughput per second, and duration of the work.
        let per_second = throughput(&profile, seconds);
        let mut duration = self.magnitude(100.0, 400.0).max(100.0 * seconds);
        if let Some(window) = profile.window {
            duration = duration.max(20.0 * window.seconds);
        }
        self.set_changes(&mut profile, duration, per_second);
        let per_second = per_second - profile.foreign.map_or(0.0, |other| other.requests_per_s);
        let at_start = profile.requests.map_or(0.0, |rate| rate.burst);
        let items = (per_second * duration + at_start).clamp(300.0, 30_000.0).round() as u64;
        profile.items = Some(items);
        if self.chance(0.02) {
            profile.daily_quota = Some(items * 2 / 3);
        }
        profile
    }

    /// Draws a provider of the additional kinds.
    fn world_profile(&mut self, number: u32) -> Profile {
        let median_ms = self.magnitude(50.0, 3000.0).round();
        let seconds = median_ms / 1e3;
        let latency = Latency::Lognormal { median_ms, sigma: self.between(0.1, 0.5) };
        let mut profile = Profile {
            latency: Some(latency),
            reject_ms: self.between(20.0, 150.0).round(),
            ..Profile::default()
        };
        let duration = self.magnitude(60.0, 300.0).max(40.0 * seconds);
        let kind = match self.0.random_range(0..4) {
            0 => {
                profile.reject_rate = self.magnitude(0.005, 0.1);
                if self.chance(0.3) {
                    profile.retry_after =
                        RetryHint::Fixed(Duration::from_secs(self.0.random_range(1..=10)));
                }
                if self.chance(0.4) {
                    profile.concurrency = Some(self.magnitude(5.0, 300.0).round() as u64);
                } else if self.chance(0.5) {
                    profile.requests = Some(self.bucket());
                }
                "random-rejections"
            }
            1 => {
                let per_request_ms = self.magnitude(2.0, 30.0);
                profile.latency =
                    self.chance(0.5).then_some(Latency::Lognormal { median_ms, sigma: 0.3 });
                profile.batching = Some(Batching { base_ms: median_ms, per_request_ms });
                "batching"
            }
            2 => {
                let length = (self.between(1.0, 12.0) * 10.0).round() / 10.0;
                let requests = (self.magnitude(0.5, 30.0) * length).round().max(5.0) as u64;
                let phase_s = self.between(0.0, length);
                profile.window = Some(FixedWindow { requests, seconds: length, phase_s });
                "short-window"
            }
            _ => {
                if self.chance(0.5) {
                    profile.concurrency = Some(self.magnitude(2.0, 200.0).round() as u64);
                } else {
                    profile.requests = Some(self.bucket());
                }
                let hint = self.one_of([1, 2, 5, 10, 20, 30, 60]);
                profile.retry_after = RetryHint::Fixed(Duration::from_secs(hint));
                "long-hint"
            }
        };
        profile.name = format!("{number:03}-{kind}");
        let per_second = match profile.batching {
            Some(batching) => 1000.0 / batching.per_request_ms,
            None => throughput(&profile, seconds).min(400.0 / seconds),
        };
        let at_start = profile.requests.map_or(0.0, |rate| rate.burst);
        let items = (per_second * duration + at_start).clamp(300.0, 30_000.0);
        profile.items = Some(items.round() as u64);
        profile
    }

    /// Sets the limit and returns its name.
    fn set_limit(&mut self, profile: &mut Profile, seconds: f64) -> &'static str {
        match self.0.random_range(0..100) {
            0..40 => {
                profile.requests = Some(self.bucket());
                "bucket"
            }
            40..52 => {
                self.tokens(profile);
                "tokens"
            }
            52..58 => {
                self.tokens(profile);
                profile.requests = Some(self.bucket());
                "bucket-tokens"
            }
            58..74 => {
                profile.concurrency = Some(self.magnitude(1.0, 300.0).round() as u64);
                "cap"
            }
            74..79 => {
                let cap = self.magnitude(2.0, 100.0).round();
                profile.concurrency = Some(cap as u64);
                let mut bucket = self.bucket();
                bucket.rate_per_s = cap / seconds * self.magnitude(0.5, 2.0);
                profile.requests = Some(bucket);
                "cap-bucket"
            }
            79..91 => {
                let length = self.one_of([1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0]);
                let requests = (self.magnitude(0.2, 60.0) * length).round().max(5.0) as u64;
                let phase_s = self.between(0.0, length);
                profile.window = Some(FixedWindow { requests, seconds: length, phase_s });
                "window"
            }
            _ => {
                let k = self.magnitude(4.0, 200.0).round();
                let thrash = self.chance(0.6).then(|| (k * self.between(1.5, 6.0)).round() as u64);
                profile.knee = Some(Knee { k: k as u64, thrash_at: thrash });
                "knee"
            }
        }
    }

    /// Draws a bucket with a size from one request to the requests of a minute.
    fn bucket(&mut self) -> Rate {
        let rate_per_s = self.magnitude(0.3, 60.0);
        let burst = self.magnitude(1.0, (60.0 * rate_per_s).max(2.0)).floor();
        Rate { rate_per_s, burst }
    }

    fn tokens(&mut self, profile: &mut Profile) {
        let input = self.magnitude(100.0, 2000.0).round();
        let output = self.magnitude(50.0, 500.0).round();
        profile.input_tokens = Some(if self.chance(0.5) {
            TokenCount::Fixed(input as u64)
        } else {
            TokenCount::Lognormal { median: input, sigma: self.between(0.1, 0.8) }
        });
        profile.output_tokens =
            Some(TokenCount::Lognormal { median: output, sigma: self.between(0.1, 0.8) });
        let limit = |draw: &mut ProfileGenerator, tokens: f64| {
            let Rate { rate_per_s, burst } = draw.bucket();
            // At least five requests fit into the bucket.
            Rate { rate_per_s: rate_per_s * tokens, burst: (burst * tokens).max(tokens * 5.0) }
        };
        let (input, output) = (mean(profile.input_tokens), mean(profile.output_tokens));
        if self.chance(0.6) {
            profile.tokens = Some(limit(self, input + output));
        } else {
            profile.input_tokens_limit = Some(limit(self, input));
            if self.chance(0.6) {
                profile.output_tokens_limit = Some(limit(self, output));
            }
        }
    }

    /// Sets headers, retry hints and errors.
    fn set_headers(&mut self, profile: &mut Profile) {
        let limits_input = profile.input_tokens_limit.is_some();
        if profile.knee.is_none() && self.chance(0.3) {
            profile.headers = match self.0.random_range(0..10) {
                0..4 if !limits_input => HeaderStyle::OpenAi,
                0..7 => HeaderStyle::Anthropic,
                7 => HeaderStyle::Groq,
                8 => HeaderStyle::Wrong,
                _ => HeaderStyle::RetryAfterOnly,
            };
        }
        if self.chance(0.3) {
            profile.retry_after = self.one_of([
                RetryHint::Exact,
                RetryHint::Ceil,
                RetryHint::Full,
                RetryHint::Fixed(Duration::from_secs(60)),
                RetryHint::HttpDate,
                RetryHint::Ms,
                RetryHint::Zero,
                RetryHint::Garbage,
            ]);
        }
        profile.failures_charge = self.chance(0.06);
        if self.chance(0.1) {
            profile.error_rate = self.magnitude(0.002, 0.03);
        }
    }

    /// Sets outages, foreign traffic and rate steps.
    fn set_changes(&mut self, profile: &mut Profile, duration: f64, per_second: f64) {
        if self.chance(0.08) {
            let from_s = duration * self.between(0.1, 0.7);
            let status = self.one_of([500, 502, 503, 529]);
            let to_s = from_s + self.magnitude(5.0, 40.0);
            profile.outages = vec![Outage { from_s, to_s, status }];
        }
        let has_request_limit = profile.requests.is_some() || profile.window.is_some();
        if has_request_limit && self.chance(0.1) {
            let limit = profile.requests.map_or(per_second, |rate| rate.rate_per_s);
            let requests_per_s = limit * self.between(0.1, 0.5);
            profile.foreign = Some(ForeignTraffic { requests_per_s });
        }
        if let Some(rate) = profile.requests
            && profile.foreign.is_none()
            && self.chance(0.2)
        {
            let mut at_s = 0.0;
            for _ in 0..self.0.random_range(1..4) {
                at_s += duration * self.between(0.15, 0.35);
                let requests_per_s = rate.rate_per_s * self.magnitude(0.2, 5.0);
                profile.steps.push(RateStep { at_s, requests_per_s });
            }
        }
    }
}

/// Estimates the requests per second of a provider.
fn throughput(profile: &Profile, seconds: f64) -> f64 {
    let (input, output) = (mean(profile.input_tokens), mean(profile.output_tokens));
    let rate = |limit: Option<Rate>, cost: f64| limit.map(|rate| rate.rate_per_s / cost);
    let concurrent = |count: u64| count as f64 / seconds;
    [
        rate(profile.requests, 1.0),
        rate(profile.tokens, input + output),
        rate(profile.input_tokens_limit, input),
        rate(profile.output_tokens_limit, output),
        profile.window.map(|window| window.requests as f64 / window.seconds),
        profile.concurrency.map(concurrent),
        profile.knee.map(|knee| concurrent(knee.k)),
    ]
    .into_iter()
    .flatten()
    .fold(f64::INFINITY, f64::min)
}

fn mean(count: Option<TokenCount>) -> f64 {
    match count {
        None => 1.0,
        Some(TokenCount::Fixed(tokens)) => tokens as f64,
        Some(TokenCount::Lognormal { median, sigma }) => median * (sigma * sigma / 2.0).exp(),
    }
}
