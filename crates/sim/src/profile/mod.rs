//! Profile files: one provider's limits and habits, for virtual time and for HTTP alike.
//!
//! Everything is optional; several limits together mean all of them. This module reads and checks;
//! `limit` and `headers` act on it.

mod words;

pub use words::{HeaderStyle, RetryHint};

use crate::number::{
    at_least_one, count, error_status, not_negative, positive, share, some_count, some_items,
};
use crate::{Error, Latency, TokenCount};
use serde::Deserialize;

/// A provider's limits and habits.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Its name; `profile-<position>` when absent from a file.
    pub name: String,
    /// How many requests a benchmark makes of it.
    #[serde(deserialize_with = "some_items")]
    pub items: Option<u64>,
    /// How long answers take.
    pub latency: Option<Latency>,
    /// Prompt tokens of each request, instead of counting.
    pub input_tokens: Option<TokenCount>,
    /// Tokens of each answer, instead of counting.
    pub output_tokens: Option<TokenCount>,
    /// Which headers tell about the limits.
    pub headers: HeaderStyle,
    /// What a rejected request is told about waiting.
    pub retry_after: RetryHint,
    /// Requests per time.
    pub requests: Option<Rate>,
    /// Tokens of prompt and answer per time.
    pub tokens: Option<Rate>,
    /// Prompt tokens per time.
    pub input_tokens_limit: Option<Rate>,
    /// Answer tokens per time.
    pub output_tokens_limit: Option<Rate>,
    /// Requests per fixed window.
    pub window: Option<FixedWindow>,
    /// Most requests in flight; more are rejected.
    #[serde(deserialize_with = "some_count")]
    pub concurrency: Option<u64>,
    /// Requests in flight above which the provider slows down instead of rejecting.
    pub knee: Option<Knee>,
    /// Changes of the rate of `requests`, in the order of time.
    pub steps: Vec<Step>,
    /// Times when nothing works.
    pub outages: Vec<Outage>,
    /// Another tenant on the same quota.
    pub foreign: Option<Foreign>,
    /// Most admitted requests per day of 24 hours since the start.
    #[serde(deserialize_with = "some_count")]
    pub daily_quota: Option<u64>,
    /// Rejected and failed requests consume the request limits too.
    pub failures_charge: bool,
    /// Share of requests that fail with a transient 500.
    #[serde(deserialize_with = "share")]
    pub error_rate: f64,
    /// Milliseconds until a rejection or a failure is back; at once when absent.
    #[serde(deserialize_with = "not_negative")]
    pub reject_ms: f64,
}

/// A bucket that starts full and refills continuously.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Refill per second.
    #[serde(deserialize_with = "positive")]
    pub rate_per_s: f64,
    /// Its size.
    #[serde(deserialize_with = "at_least_one")]
    pub burst: f64,
}

/// So many requests per window; the windows follow each other without regard to requests.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedWindow {
    /// Requests in one window.
    #[serde(deserialize_with = "count")]
    pub requests: u64,
    /// Length of a window.
    #[serde(deserialize_with = "positive")]
    pub seconds: f64,
    /// How much of the first window is over at the start.
    #[serde(default, deserialize_with = "not_negative")]
    pub phase_s: f64,
}

/// A server that slows down instead of rejecting.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// Above so many in flight latency grows in proportion, so throughput no longer does.
    #[serde(deserialize_with = "count")]
    pub k: u64,
    /// Above so many latency grows with the square, so throughput falls.
    #[serde(default, deserialize_with = "some_count")]
    pub thrash_at: Option<u64>,
}

/// A change of the request rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When.
    #[serde(deserialize_with = "not_negative")]
    pub at_s: f64,
    /// The rate from then on.
    #[serde(deserialize_with = "positive")]
    pub requests_per_s: f64,
}

/// A time when nothing works.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Its start.
    #[serde(deserialize_with = "not_negative")]
    pub from_s: f64,
    /// Its end, when things work again.
    #[serde(deserialize_with = "positive")]
    pub to_s: f64,
    /// What everybody gets; 503 when absent.
    #[serde(default = "unavailable", deserialize_with = "error_status")]
    pub status: u16,
}

fn unavailable() -> u16 {
    503
}

/// Another tenant on the same quota.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// What it takes, steadily.
    #[serde(deserialize_with = "positive")]
    pub requests_per_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    profile: Vec<Profile>,
}

impl Profile {
    /// Reads the text of a profile file.
    ///
    /// # Errors
    ///
    /// The first key or value that is wrong, or the first profile whose keys do not fit together.
    pub fn parse_file_text(text: &str) -> Result<Vec<Profile>, Error> {
        let File { profile: mut profiles } =
            toml::from_str(text).map_err(|error| Error::from_toml(&error, text))?;
        if profiles.is_empty() {
            return Err(Error::NoProfile);
        }
        for (index, profile) in profiles.iter_mut().enumerate() {
            if profile.name.is_empty() {
                profile.name = format!("profile-{}", index + 1);
            }
            profile.check()?;
        }
        Ok(profiles)
    }

    /// Whether the keys fit together; each by itself is right once it has been read.
    fn check(&self) -> Result<(), Error> {
        let wrong = |message: &str| {
            Err(Error::Profile { profile: self.name.clone(), message: message.to_owned() })
        };
        if !self.steps.is_empty() && self.requests.is_none() {
            return wrong("`steps` change the rate of `requests`, which is missing");
        }
        if !self.steps.is_sorted_by(|a, b| a.at_s < b.at_s) {
            return wrong("`steps` must be in the order of their `at_s`");
        }
        if self.outages.iter().any(|outage| outage.from_s >= outage.to_s) {
            return wrong("an outage must have its `from_s` before its `to_s`");
        }
        if self.foreign.is_some() && self.requests.is_none() && self.window.is_none() {
            return wrong("`foreign` shares `requests` or `window`, and both are missing");
        }
        if self.knee.is_some_and(|knee| knee.thrash_at.is_some_and(|at| at < knee.k)) {
            return wrong("`thrash_at` must not be below `k`");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
