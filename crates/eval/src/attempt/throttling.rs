//! Throttling of programs: recognized by their standard error, and retried.
//!
//! A program calls its provider itself, so its rejected requests are visible only in its messages.

use super::AttemptOutput;
use bakeoff_core::{Attempt, ErrorKind, TrialError, TrialKey};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Characters at the end of standard error that are searched: earlier messages may be of requests that
/// succeeded later.
const MAX_SEARCHED_CHARS: usize = 4_000;

/// Retries of a trial. With the delays, they span about a minute, which is the window of most limits.
pub(super) const DEFAULT_RETRIES: u32 = 5;

/// Mean delay before the first retry; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(2);

/// Messages in lower case and their kinds; the first match decides. Numbers need context: alone, they occur
/// as line numbers of stack traces.
const PATTERNS: &[(&str, ErrorKind)] = &[
    // The account is out of funds or of its period's quota: waiting for minutes does not help.
    ("insufficient_quota", ErrorKind::Quota),
    ("exceeded your current quota", ErrorKind::Quota),
    ("credit balance", ErrorKind::Quota),
    ("out of credits", ErrorKind::Quota),
    ("usage limit", ErrorKind::Quota),
    ("billing_hard_limit", ErrorKind::Quota),
    // The provider limits the rate.
    // Not `ratelimit` alone: a missing module or a limiter of the program may have that name.
    ("ratelimiterror", ErrorKind::RateLimit),
    ("ratelimitexce", ErrorKind::RateLimit),
    ("ratelimited", ErrorKind::RateLimit),
    ("rate limit", ErrorKind::RateLimit),
    ("rate_limit", ErrorKind::RateLimit),
    ("rate-limit", ErrorKind::RateLimit),
    ("too many requests", ErrorKind::RateLimit),
    ("toomanyrequests", ErrorKind::RateLimit),
    ("resource_exhausted", ErrorKind::RateLimit),
    ("resource exhausted", ErrorKind::RateLimit),
    ("resourceexhausted", ErrorKind::RateLimit),
    ("quota exceeded", ErrorKind::RateLimit),
    ("quotaexceeded", ErrorKind::RateLimit),
    ("throttlingexception", ErrorKind::RateLimit),
    ("throttlederror", ErrorKind::RateLimit),
    ("request was throttled", ErrorKind::RateLimit),
    ("requests are throttled", ErrorKind::RateLimit),
    ("overloaded_error", ErrorKind::RateLimit),
    ("overloadederror", ErrorKind::RateLimit),
    ("is overloaded", ErrorKind::RateLimit),
    ("currently overloaded", ErrorKind::RateLimit),
    ("error 429", ErrorKind::RateLimit),
    ("error: 429", ErrorKind::RateLimit),
    ("code 429", ErrorKind::RateLimit),
    ("code: 429", ErrorKind::RateLimit),
    ("status 429", ErrorKind::RateLimit),
    ("status: 429", ErrorKind::RateLimit),
    ("status=429", ErrorKind::RateLimit),
    ("status_code=429", ErrorKind::RateLimit),
    ("http 429", ErrorKind::RateLimit),
    ("http/1.1 429", ErrorKind::RateLimit),
    ("http/2 429", ErrorKind::RateLimit),
    ("429 client error", ErrorKind::RateLimit),
    ("returned 429", ErrorKind::RateLimit),
    ("(429)", ErrorKind::RateLimit),
    ("[429 ", ErrorKind::RateLimit),
    ("error 529", ErrorKind::RateLimit),
    ("error: 529", ErrorKind::RateLimit),
    ("code 529", ErrorKind::RateLimit),
    ("code: 529", ErrorKind::RateLimit),
    ("status 529", ErrorKind::RateLimit),
];

/// Returns the kind of a throttling message at the end of a program's standard error.
pub(super) fn classify_throttling(stderr: &str) -> Option<ErrorKind> {
    let start = stderr.char_indices().rev().nth(MAX_SEARCHED_CHARS).map_or(0, |(at, _)| at);
    let text = without_source_lines(&stderr[start..]).to_lowercase();
    PATTERNS.iter().find(|(pattern, _)| text.contains(pattern)).map(|(_, kind)| *kind)
}

/// When a throttled trial is not retried any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryLimits {
    /// Maximum number of retries.
    pub(super) retries: u32,
    /// Time after the start of the first attempt.
    pub(super) timeout: Duration,
}

/// Returns the text without the source lines that Python quotes in stack traces: the code of a program may
/// mention rate limits whatever its error is.
fn without_source_lines(text: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut frame = None;
    let is_kept = |line: &&str| {
        if line.trim_start().starts_with("File \"") {
            frame = Some(indentation(line));
            return false;
        }
        frame = frame.filter(|frame| indentation(line) > *frame);
        frame.is_none()
    };
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// Makes attempts until one is not throttled, within limits and until a cancellation. Between them it waits
/// with increasing delays; `on_retry` receives each delay and the error.
pub(super) async fn retry_throttled<F>(
    key: &TrialKey,
    limits: RetryLimits,
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> F,
    mut on_retry: impl FnMut(Duration, &TrialError),
) -> AttemptOutput
where
    F: Future<Output = AttemptOutput>,
{
    let started = Instant::now();
    let mut earlier = Attempt::default();
    let mut retry = 0;
    loop {
        let mut output = attempt().await;
        add_spending(&mut output.attempt, &earlier, retry);
        let throttled = output.attempt.error.as_ref();
        let Some(error) = throttled.filter(|error| error.kind == ErrorKind::RateLimit) else {
            return output;
        };
        let delay = delay(key, retry);
        let is_late = started.elapsed() + delay >= limits.timeout;
        if retry >= limits.retries || is_late || stop.is_cancelled() {
            return output;
        }
        on_retry(delay, error);
        tokio::select! {
            () = stop.cancelled() => return output,
            () = tokio::time::sleep(delay) => {}
        }
        earlier = output.attempt;
        retry += 1;
    }
}

/// Adds the tokens and the cost of earlier attempts of the same trial: they were spent, too.
fn add_spending(attempt: &mut Attempt, earlier: &Attempt, retries: u32) {
    attempt.timing.retries = retries;
    if let Some(usage) = earlier.usage {
        *attempt.usage.get_or_insert_default() += usage;
    }
    if let Some(cost) = earlier.cost {
        *attempt.cost.get_or_insert_default() += cost;
    }
}

/// Returns the delay before a retry, which differs between trials: they were throttled at the same time.
fn delay(key: &TrialKey, retry: u32) -> Duration {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((key, retry));
    let share = (hash % 1000) as f64 / 1000.0;
    (FIRST_DELAY * 2_u32.saturating_pow(retry)).mul_f64(0.75 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A message for each pattern, in their order.
    const MESSAGES: &[&str] = &[
        "openai.RateLimitError: Error code: 429 - {'code': 'insufficient_quota'}",
        "You exceeded your current quota, please check your plan",
        "Your credit balance is too low to access the API",
        "You are out of credits",
        "You've hit your usage limit. Upgrade to Pro",
        "{'code': 'billing_hard_limit_reached'}",
        "litellm.exceptions.RateLimitError: slow down",
        "RateLimitExceeded: slow down",
        "Client error: RateLimited",
        "Rate limit reached for gpt-4o in organization org-1",
        "{\"type\": \"rate_limit_error\"}",
        "x-rate-limit-remaining: 0",
        "Too Many Requests",
        "botocore.errorfactory.TooManyRequestsException",
        "{\"status\": \"RESOURCE_EXHAUSTED\"}",
        "Resource exhausted, please try again later",
        "google.api_core.exceptions.ResourceExhausted",
        "Quota exceeded for quota metric 'Generate requests'",
        "QuotaExceededError",
        "An error occurred (ThrottlingException) when calling InvokeModel",
        "ThrottledError",
        "Request was throttled. Expected available in 3 seconds",
        "Your requests are throttled",
        "{\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}",
        "anthropic.OverloadedError",
        "The model is overloaded. Please try again later",
        "That model is currently overloaded with other requests",
        "urllib.error.HTTPError: HTTP Error 429",
        "ApiError: 429",
        "Request failed with status code 429",
        "Error code: 429 - {}",
        "status 429",
        "status: 429",
        "failed: status=429",
        "status_code=429",
        "HTTP 429",
        "< HTTP/1.1 429",
        "< HTTP/2 429",
        "requests.exceptions.HTTPError: 429 Client Error",
        "the provider returned 429",
        "unexpected answer (429)",
        "[429 Too many]",
        "Error 529",
        "ApiError: 529",
        "status code 529",
        "Error code: 529",
        "status 529",
    ];

    #[test]
    fn each_pattern_has_a_message_that_it_alone_may_classify() {
        assert_eq!(MESSAGES.len(), PATTERNS.len());
        for (message, (pattern, kind)) in MESSAGES.iter().zip(PATTERNS) {
            assert!(message.to_lowercase().contains(pattern), "{pattern}: {message}");
            assert_eq!(classify_throttling(message), Some(*kind), "{message}");
        }
    }

    #[test]
    fn other_messages_and_old_messages_are_not_classified() {
        for message in [
            "",
            "can't open file '/srv/nofile.py': [Errno 2] No such file or directory",
            "  File \"agent.py\", line 429, in main\nValueError: no",
            "at run (agent.js:429:12)",
            "429 rows read",
            "ModuleNotFoundError: No module named 'ratelimit'",
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    raise RateLimitError if x else y\n          ^^^^^^^^^^^^^^\nNameError: name 'x' is not defined",
            "session 3f2a429b-429c-4290-8429-a429b429c429 ended",
        ] {
            assert_eq!(classify_throttling(message), None, "{message}");
        }
        let trace = "  File \"a.py\", line 3, in f\n    call()\nopenai.RateLimitError: Error";
        assert_eq!(classify_throttling(trace), Some(ErrorKind::RateLimit));
        let old = format!("RateLimitError, retrying\n{}", "é".repeat(MAX_SEARCHED_CHARS));
        assert_eq!(classify_throttling(&old), None);
    }

    fn key() -> TrialKey {
        TrialKey { target: "t".into(), case: "c".into(), trial: 1 }
    }

    fn output(kind: Option<ErrorKind>) -> AttemptOutput {
        let error = kind.map(|kind| TrialError { kind, message: "no".to_owned() });
        let cost = Some(bakeoff_core::NanoDollars(5));
        Attempt { error, cost, ..Attempt::default() }.into()
    }

    /// Runs attempts with these errors; the last repeats. Returns the last attempt, the number of
    /// attempts, and the delays in seconds.
    async fn retry(kinds: &[Option<ErrorKind>], timeout: u64) -> (Attempt, usize, Vec<f64>) {
        let (made, mut delays) = (Cell::new(0), Vec::new());
        let last = retry_throttled(
            &key(),
            RetryLimits { retries: DEFAULT_RETRIES, timeout: Duration::from_secs(timeout) },
            &CancellationToken::new(),
            || {
                let kind = kinds[made.get().min(kinds.len() - 1)];
                made.set(made.get() + 1);
                async move { output(kind) }
            },
            |delay, _| delays.push(delay.as_secs_f64()),
        )
        .await;
        (last.attempt, made.get(), delays)
    }

    #[tokio::test(start_paused = true)]
    async fn throttled_attempt_is_retried_until_it_succeeds() {
        let limited = Some(ErrorKind::RateLimit);
        let (attempt, made, _) = retry(&[limited, limited, None], 600).await;
        assert_eq!((attempt.error, made, attempt.timing.retries), (None, 3, 2));
        assert_eq!(attempt.cost.map(|cost| cost.0), Some(15), "all attempts cost");
    }

    #[tokio::test(start_paused = true)]
    async fn retries_are_bounded_and_their_delays_double() {
        let (attempt, made, delays) = retry(&[Some(ErrorKind::RateLimit)], 600).await;
        assert_eq!((attempt.error.map(|error| error.kind), made), (Some(ErrorKind::RateLimit), 6));
        for (delay, mean) in delays.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0]) {
            assert!((mean * 0.75..mean * 1.25).contains(delay), "{delays:?}");
        }
        let (_, made, _) = retry(&[Some(ErrorKind::RateLimit)], 4).await;
        assert_eq!(made, 2, "the second retry would start after the timeout");
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_are_not_retried() {
        for kind in [ErrorKind::Process, ErrorKind::Quota, ErrorKind::Timeout] {
            assert_eq!(retry(&[Some(kind)], 600).await.1, 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancellation_ends_the_wait() {
        let stop = CancellationToken::new();
        let cancel = |_, _: &TrialError| stop.cancel();
        let attempt = || async { output(Some(ErrorKind::RateLimit)) };
        let started = Instant::now();
        let limits = RetryLimits { retries: 1, timeout: Duration::from_secs(600) };
        retry_throttled(&key(), limits, &stop, attempt, cancel).await;
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
