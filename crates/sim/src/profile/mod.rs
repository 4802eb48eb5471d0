//! Profile files: limits, outages and latency of a provider.
//!
//! All keys are optional; several limits apply together. This module parses and validates; modules
//! `limit` and `headers` apply the profile.

mod faults;
mod header_style;

pub(crate) use faults::DrawnFault;
pub use faults::Faults;
pub use header_style::{HeaderStyle, RetryHint};

use crate::number::{
    at_least_one, count, error_status, not_negative, positive, share, some_count, some_items,
    some_reject_status,
};
use crate::{Error, Latency, TokenCount};
use serde::Deserialize;

/// Limits, outages and latency of a provider.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Name; `profile-<position>` when absent from a file.
    pub name: String,
    /// Number of requests in a benchmark.
    #[serde(deserialize_with = "some_items")]
    pub items: Option<u64>,
    /// Latency of answers.
    pub latency: Option<Latency>,
    /// Prompt tokens of each request, instead of counted ones.
    pub input_tokens: Option<TokenCount>,
    /// Tokens of each answer, instead of counted ones.
    pub output_tokens: Option<TokenCount>,
    /// Rate-limit headers.
    pub headers: HeaderStyle,
    /// Retry header of rejections.
    pub retry_after: RetryHint,
    /// Rate limit of requests.
    pub requests: Option<Rate>,
    /// Rate limit of prompt and answer tokens.
    pub tokens: Option<Rate>,
    /// Rate limit of prompt tokens.
    pub input_tokens_limit: Option<Rate>,
    /// Rate limit of answer tokens.
    pub output_tokens_limit: Option<Rate>,
    /// Output tokens that these limits charge for each request instead of its answer, as with providers that charge
    /// `max_tokens`.
    #[serde(deserialize_with = "some_count")]
    pub charged_output_tokens: Option<u64>,
    /// Limit of requests per fixed window.
    pub window: Option<FixedWindow>,
    /// Limit of requests per sliding window.
    pub sliding_window: Option<SlidingWindow>,
    /// Maximum number of requests in flight; more are rejected.
    #[serde(deserialize_with = "some_count")]
    pub concurrency: Option<u64>,
    /// Changes of `concurrency`, ordered by time.
    pub concurrency_steps: Vec<ConcurrencyStep>,
    /// Load above which the provider slows down instead of rejecting requests.
    pub knee: Option<Knee>,
    /// Changes of the rate of `requests`, ordered by time.
    pub steps: Vec<RateStep>,
    /// Outages.
    pub outages: Vec<Outage>,
    /// Random faults of single requests.
    pub faults: Faults,
    /// Time to set up a connection in milliseconds, over HTTP only: the engine has no connections.
    #[serde(deserialize_with = "not_negative")]
    pub connect_ms: f64,
    /// Traffic of another tenant on the same limits.
    pub foreign: Option<ForeignTraffic>,
    /// Maximum number of admitted requests per day; days count from the start.
    #[serde(deserialize_with = "some_count")]
    pub daily_quota: Option<u64>,
    /// Whether rejected and failed requests count against the request limits.
    pub failures_charge: bool,
    /// Share of requests that fail with a transient 500.
    #[serde(deserialize_with = "share")]
    pub error_rate: f64,
    /// Latency of rejections and failures in milliseconds; 0 when absent.
    #[serde(deserialize_with = "not_negative")]
    pub reject_ms: f64,
    /// Status of rejections; 429 when absent.
    #[serde(deserialize_with = "some_reject_status")]
    pub reject_status: Option<u16>,
    /// Share of requests that are rejected irrespective of load.
    #[serde(deserialize_with = "share")]
    pub reject_rate: f64,
    /// Slowdown of a server that decodes all requests in flight together.
    pub batching: Option<Batching>,
}

/// Token bucket that starts full and refills continuously.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Refill per second.
    #[serde(deserialize_with = "positive")]
    pub rate_per_s: f64,
    /// Bucket size.
    #[serde(deserialize_with = "at_least_one")]
    pub burst: f64,
}

/// Maximum number of requests per window; windows follow each other at fixed times.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedWindow {
    /// Maximum number of requests in a window.
    #[serde(deserialize_with = "count")]
    pub requests: u64,
    /// Length of a window in seconds.
    #[serde(deserialize_with = "positive")]
    pub seconds: f64,
    /// Elapsed seconds of the first window at the start.
    #[serde(default, deserialize_with = "not_negative")]
    pub phase_s: f64,
}

/// Maximum number of requests within any period of a length; rejected requests do not count.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlidingWindow {
    /// Maximum number of requests in a period.
    #[serde(deserialize_with = "count")]
    pub requests: u64,
    /// Length of the period in seconds.
    #[serde(deserialize_with = "positive")]
    pub seconds: f64,
}

/// Slowdown of a server under load.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// Requests in flight above which latency grows in proportion, so throughput stays constant.
    #[serde(deserialize_with = "count")]
    pub k: u64,
    /// Requests in flight above which latency grows with the square, so throughput falls.
    #[serde(default, deserialize_with = "some_count")]
    pub thrash_at: Option<u64>,
}

/// Continuous batching: every decoding step serves all requests in flight and takes longer the more
/// there are, so throughput grows with load along a concave curve towards `1 / per_request_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// Latency without load; that of all requests unless the profile sets `latency`.
    #[serde(deserialize_with = "positive")]
    pub base_ms: f64,
    /// Additional latency per request in flight.
    #[serde(deserialize_with = "positive")]
    pub per_request_ms: f64,
}

/// Change of the request rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time of the change in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub at_s: f64,
    /// New rate.
    #[serde(deserialize_with = "positive")]
    pub requests_per_s: f64,
}

/// Change of the concurrency limit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyStep {
    /// Time of the change in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub at_s: f64,
    /// New limit.
    #[serde(deserialize_with = "count")]
    pub concurrency: u64,
}

/// Period in which all requests fail.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start in seconds.
    #[serde(deserialize_with = "not_negative")]
    pub from_s: f64,
    /// End in seconds, exclusive.
    #[serde(deserialize_with = "positive")]
    pub to_s: f64,
    /// Status of all requests; 503 when absent.
    #[serde(default = "default_outage_status", deserialize_with = "error_status")]
    pub status: u16,
}

fn default_outage_status() -> u16 {
    503
}

/// Traffic of another tenant on the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignTraffic {
    /// Constant rate.
    #[serde(deserialize_with = "positive")]
    pub requests_per_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    #[serde(default)]
    profile: Vec<Profile>,
}

impl Profile {
    /// Parses the text of a profile file.
    ///
    /// # Errors
    ///
    /// Returns the first invalid key or value, or the first profile with inconsistent keys.
    pub fn parse_file_text(text: &str) -> Result<Vec<Profile>, Error> {
        let ProfileFile { profile: mut profiles } =
            toml::from_str(text).map_err(|error| Error::from_toml(&error, text))?;
        if profiles.is_empty() {
            return Err(Error::NoProfile);
        }
        for (index, profile) in profiles.iter_mut().enumerate() {
            if profile.name.is_empty() {
                profile.name = format!("profile-{}", index + 1);
            }
            profile.validate()?;
        }
        Ok(profiles)
    }

    /// Validates combinations of keys; single keys are validated by the deserializer.
    fn validate(&self) -> Result<(), Error> {
        let invalid = |message: &str| {
            Err(Error::Profile { profile: self.name.clone(), message: message.to_owned() })
        };
        if !self.steps.is_empty() && self.requests.is_none() {
            return invalid("`steps` need `requests`, which is missing");
        }
        if !self.steps.is_sorted_by(|a, b| a.at_s < b.at_s) {
            return invalid("`steps` must be in the order of `at_s`");
        }
        if !self.concurrency_steps.is_empty() && self.concurrency.is_none() {
            return invalid("`concurrency_steps` need `concurrency`, which is missing");
        }
        if !self.concurrency_steps.is_sorted_by(|a, b| a.at_s < b.at_s) {
            return invalid("`concurrency_steps` must be in the order of `at_s`");
        }
        if self.faults.total() > 1.0 {
            return invalid("the shares of `faults` must not add up to more than 1");
        }
        if self.outages.iter().any(|outage| outage.from_s >= outage.to_s) {
            return invalid("`from_s` of an outage must be before `to_s`");
        }
        if self.foreign.is_some() && self.requests.is_none() && self.window.is_none() {
            return invalid("`foreign` needs `requests` or `window`; both are missing");
        }
        if self.knee.is_some_and(|knee| knee.thrash_at.is_some_and(|at| at < knee.k)) {
            return invalid("`thrash_at` must not be below `k`");
        }
        if self.knee.is_some() && self.batching.is_some() {
            return invalid("`knee` and `batching` exclude each other");
        }
        if self.reject_rate >= 1.0 {
            return invalid("`reject_rate` must be below 1, or no request succeeds");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
