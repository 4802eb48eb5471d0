//! Rate-limit headers in the names and formats of each provider, including deliberately wrong ones.

use crate::clock::{ceil_millis, ceil_seconds, exact_seconds, go_duration, http_date, rfc3339};
use crate::limit::{Bucket, DailyQuota, Denial, LimitLevel, ProviderLimits, SlidingLog, Window};
use crate::{HeaderStyle, RetryHint};
use std::time::Duration;

/// Header settings of a profile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeaderSettings {
    pub(crate) style: HeaderStyle,
    pub(crate) hint: RetryHint,
    /// Selects the wrong values of [`HeaderStyle::Wrong`].
    pub(crate) seed: u64,
}

type Pairs = Vec<(String, String)>;

impl HeaderSettings {
    /// Returns the rate-limit headers of an answer or a rejection; `since_1970` is the current time.
    pub(crate) fn levels(
        &self,
        limits: &ProviderLimits,
        admitted: u64,
        since_1970: Duration,
    ) -> Pairs {
        let bucket = |bucket: &Option<Bucket>| bucket.as_ref().map(Bucket::level);
        let window = limits.window.as_ref().map(Window::level);
        let sliding = limits.sliding.as_ref().map(SlidingLog::level);
        let requests = bucket(&limits.requests).or(window).or(sliding);
        let tokens = bucket(&limits.tokens);
        match self.style {
            HeaderStyle::None | HeaderStyle::RetryAfterOnly => Vec::new(),
            HeaderStyle::OpenAi => openai(requests, tokens),
            HeaderStyle::Groq => {
                openai(limits.quota.as_ref().map(DailyQuota::level).or(requests), tokens)
            }
            HeaderStyle::Anthropic => {
                let dimensions = [
                    ("requests", requests),
                    ("tokens", tokens),
                    ("input-tokens", bucket(&limits.input)),
                    ("output-tokens", bucket(&limits.output)),
                ];
                anthropic(&dimensions, since_1970)
            }
            HeaderStyle::Wrong => {
                let wrong = |level: LimitLevel| self.wrong_level(level, admitted);
                match self.seed % 4 {
                    0 => ["requests", "tokens"]
                        .iter()
                        .flat_map(|quantity| openai_names(quantity, ["-1", "-1", "0"]))
                        .collect(),
                    _ => openai(requests.map(wrong), tokens.map(wrong)),
                }
            }
        }
    }

    /// Returns a false level, selected by the seed.
    fn wrong_level(&self, level: LimitLevel, admitted: u64) -> LimitLevel {
        const MINUTES_PER_DAY: f64 = 1440.0;
        match self.seed % 4 {
            1 => LimitLevel { limit: 0.0, remaining: 0.0, reset: Duration::ZERO },
            2 => LimitLevel { remaining: level.limit, reset: Duration::ZERO, ..level },
            _ => {
                let limit = level.limit * MINUTES_PER_DAY;
                let remaining = (limit - admitted as f64).max(0.0);
                LimitLevel { limit, remaining, ..level }
            }
        }
    }

    /// Returns the retry header of a rejection. Only limits that refill over time have one.
    pub(crate) fn retry(&self, denial: Denial, since_1970: Duration) -> Pairs {
        let Denial::Limited { wait, full, .. } = denial else { return Vec::new() };
        let hint = match (self.style, self.hint) {
            (HeaderStyle::RetryAfterOnly, RetryHint::None) => RetryHint::Ceil,
            (_, hint) => hint,
        };
        // A limit that never refills has no date.
        let is_never = wait == Duration::MAX;
        let value = match hint {
            RetryHint::None => None,
            RetryHint::Fixed(wait) => Some(wait.as_secs().to_string()),
            RetryHint::Zero => Some("0".into()),
            RetryHint::Garbage => Some("soon".into()),
            _ if is_never => None,
            RetryHint::Exact => Some(exact_seconds(wait)),
            RetryHint::Ceil => Some(ceil_seconds(wait).to_string()),
            RetryHint::Full => Some(ceil_seconds(full.max(wait)).to_string()),
            RetryHint::HttpDate => http_date(since_1970.saturating_add(wait)),
            RetryHint::Ms => Some(ceil_millis(wait).to_string()),
        };
        let name = if hint == RetryHint::Ms { "retry-after-ms" } else { "retry-after" };
        value.map(|value| (name.to_owned(), value)).into_iter().collect()
    }
}

fn openai(requests: Option<LimitLevel>, tokens: Option<LimitLevel>) -> Pairs {
    let mut headers = Vec::new();
    for (quantity, level) in [("requests", requests), ("tokens", tokens)] {
        if let Some(LimitLevel { limit, remaining, reset }) = level {
            let values = [limit.floor().to_string(), remaining.to_string(), go_duration(reset)];
            headers.extend(openai_names(quantity, values));
        }
    }
    headers
}

fn openai_names(quantity: &str, values: [impl Into<String>; 3]) -> [(String, String); 3] {
    let [limit, remaining, reset] = values.map(Into::into);
    [
        (format!("x-ratelimit-limit-{quantity}"), limit),
        (format!("x-ratelimit-remaining-{quantity}"), remaining),
        (format!("x-ratelimit-reset-{quantity}"), reset),
    ]
}

fn anthropic(dimensions: &[(&str, Option<LimitLevel>)], since_1970: Duration) -> Pairs {
    let mut headers = Vec::new();
    for (quantity, level) in dimensions {
        let Some(LimitLevel { limit, remaining, reset }) = *level else { continue };
        // Anthropic rounds token counts to thousands. ProviderLimits below a thousand are not rounded, because
        // the result would be zero.
        let remaining = if quantity.ends_with("tokens") && limit >= 1000.0 {
            (remaining / 1000.0).round() * 1000.0
        } else {
            remaining
        };
        let prefix = format!("anthropic-ratelimit-{quantity}");
        headers.push((format!("{prefix}-limit"), limit.floor().to_string()));
        headers.push((format!("{prefix}-remaining"), remaining.min(limit.floor()).to_string()));
        if let Some(date) = rfc3339(since_1970.saturating_add(reset)) {
            headers.push((format!("{prefix}-reset"), date));
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::TokenCost;
    use crate::{Profile, Rate};

    fn limits() -> ProviderLimits {
        let rate = |rate_per_s, burst| Some(Rate { rate_per_s, burst });
        let mut limits = ProviderLimits::new(&Profile {
            requests: rate(5.0, 300.0),
            tokens: rate(1000.0, 60_000.0),
            input_tokens_limit: rate(500.0, 30_000.0),
            output_tokens_limit: rate(100.0, 900.0),
            daily_quota: Some(14_400),
            ..Profile::default()
        });
        limits.admit(TokenCost { input: 400, output: 200 });
        limits
    }

    fn header_lines(style: HeaderStyle, seed: u64) -> Vec<String> {
        let headers = HeaderSettings { style, hint: RetryHint::None, seed };
        let pairs = headers.levels(&limits(), 1, Duration::from_secs(1_000_000_000));
        pairs.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn openai_headers_give_counts_and_time_until_full() {
        assert_eq!(
            header_lines(HeaderStyle::OpenAi, 0),
            [
                "x-ratelimit-limit-requests: 300",
                "x-ratelimit-remaining-requests: 299",
                "x-ratelimit-reset-requests: 200ms",
                "x-ratelimit-limit-tokens: 60000",
                "x-ratelimit-remaining-tokens: 59400",
                "x-ratelimit-reset-tokens: 600ms",
            ]
        );
    }

    #[test]
    fn groq_request_headers_give_the_daily_quota() {
        let lines = header_lines(HeaderStyle::Groq, 0);
        assert_eq!(
            lines[..3],
            [
                "x-ratelimit-limit-requests: 14400",
                "x-ratelimit-remaining-requests: 14399",
                "x-ratelimit-reset-requests: 6s",
            ]
        );
        assert_eq!(lines[5], "x-ratelimit-reset-tokens: 600ms");
    }

    #[test]
    fn anthropic_headers_give_dates_and_rounded_tokens() {
        assert_eq!(
            header_lines(HeaderStyle::Anthropic, 0),
            [
                "anthropic-ratelimit-requests-limit: 300",
                "anthropic-ratelimit-requests-remaining: 299",
                "anthropic-ratelimit-requests-reset: 2001-09-09T01:46:41Z",
                "anthropic-ratelimit-tokens-limit: 60000",
                "anthropic-ratelimit-tokens-remaining: 59000",
                "anthropic-ratelimit-tokens-reset: 2001-09-09T01:46:41Z",
                "anthropic-ratelimit-input-tokens-limit: 30000",
                "anthropic-ratelimit-input-tokens-remaining: 30000",
                "anthropic-ratelimit-input-tokens-reset: 2001-09-09T01:46:41Z",
                "anthropic-ratelimit-output-tokens-limit: 900",
                "anthropic-ratelimit-output-tokens-remaining: 700",
                "anthropic-ratelimit-output-tokens-reset: 2001-09-09T01:46:42Z",
            ]
        );
    }

    #[test]
    fn wrong_headers_depend_on_the_seed() {
        let remaining = |seed| header_lines(HeaderStyle::Wrong, seed)[1].clone();
        let name = "x-ratelimit-remaining-requests";
        assert_eq!(remaining(0), format!("{name}: -1"));
        assert_eq!(remaining(1), format!("{name}: 0"));
        assert_eq!(remaining(2), format!("{name}: 300"));
        assert_eq!(remaining(3), format!("{name}: 431999"));
        assert!(header_lines(HeaderStyle::None, 0).is_empty());
    }

    #[test]
    fn retry_header_has_every_format() {
        let retry = |style, hint| {
            let denial = Denial::Limited {
                quantity: "requests",
                wait: Duration::from_millis(1500),
                full: Duration::from_secs(40),
            };
            let headers = HeaderSettings { style, hint, seed: 0 };
            let pairs = headers.retry(denial, Duration::from_millis(784_111_775_500));
            pairs.into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<String>()
        };
        for (hint, expected) in [
            (RetryHint::None, ""),
            (RetryHint::Exact, "retry-after: 1.500"),
            (RetryHint::Ceil, "retry-after: 2"),
            (RetryHint::Full, "retry-after: 40"),
            (RetryHint::Fixed(Duration::from_secs(60)), "retry-after: 60"),
            (RetryHint::HttpDate, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT"),
            (RetryHint::Ms, "retry-after-ms: 1500"),
            (RetryHint::Zero, "retry-after: 0"),
            (RetryHint::Garbage, "retry-after: soon"),
        ] {
            assert_eq!(retry(HeaderStyle::None, hint), expected);
        }
        assert_eq!(retry(HeaderStyle::RetryAfterOnly, RetryHint::None), "retry-after: 2");
        let headers = HeaderSettings { hint: RetryHint::Zero, ..HeaderSettings::default() };
        assert!(headers.retry(Denial::Quota, Duration::ZERO).is_empty());
    }
}
