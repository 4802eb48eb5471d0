//! Classification of error messages of coding agents.

use bakeoff_core::ErrorKind;

/// Patterns by kind; the first match decides. Numbers match as whole words only, not within ids.
const PATTERNS: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::RateLimit, &["per minute", "per second", "rate limit", "rate_limit", "rate-limit"]),
    (
        ErrorKind::Quota,
        &[
            "usage limit",
            "hit your limit",
            "limit reached",
            "hour limit",
            "daily limit",
            "weekly limit",
            "spending limit",
            "insufficient_quota",
            "exceeded your current quota",
            "quota exceeded",
            "quota_exceeded",
            "exhausted your",
            "credit balance",
            "out of credits",
            "payment required",
            "402",
        ],
    ),
    (
        ErrorKind::RateLimit,
        &["429", "too many requests", "resource_exhausted", "resource exhausted"],
    ),
    (
        ErrorKind::Auth,
        &[
            "401",
            "403",
            "unauthorized",
            "unauthenticated",
            "invalid api key",
            "invalid_api_key",
            "invalid x-api-key",
            "authentication",
            "not logged in",
            "please log in",
            "please run /login",
            "api key not found",
        ],
    ),
    (
        ErrorKind::ContextOverflow,
        &[
            "prompt is too long",
            "context window",
            "context_length_exceeded",
            "maximum context length",
        ],
    ),
    (
        ErrorKind::Transient,
        &[
            "500",
            "502",
            "503",
            "504",
            "529",
            "overloaded",
            "internal server error",
            "service unavailable",
            "bad gateway",
            "connection error",
            "connection refused",
            "connection reset",
            "econnreset",
            "econnrefused",
            "enotfound",
            "network error",
            "stream disconnected",
            "fetch failed",
        ],
    ),
];

/// Returns the kind of a provider error by the message of an agent; `None` if it is no provider error. The message
/// must be an error message: in an answer these patterns have no meaning.
pub fn classify_failure(message: &str) -> Option<ErrorKind> {
    let message = message.to_lowercase();
    let matches = |pattern: &&str| {
        let is_number = pattern.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { has_word(&message, pattern) } else { message.contains(*pattern) }
    };
    PATTERNS.iter().find(|(_, patterns)| patterns.iter().any(matches)).map(|(kind, _)| *kind)
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        // A full stop ends a sentence, unless another character follows it directly.
        let next = match after.next() {
            Some('.') => after.next(),
            next => next,
        };
        !before.is_some_and(is_part) && !next.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_messages_are_classified() {
        use ErrorKind::{Auth, ContextOverflow, Quota, RateLimit, Transient};
        let table = [
            ("Claude AI usage limit reached|1760000000", Some(Quota)),
            ("You've hit your limit · resets 3am (UTC)", Some(Quota)),
            ("5-hour limit reached ∙ resets 7pm", Some(Quota)),
            ("Credit balance is too low", Some(Quota)),
            (
                "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"…\"}}",
                Some(RateLimit),
            ),
            (
                "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
                Some(Transient),
            ),
            ("Invalid API key · Please run /login", Some(Auth)),
            ("You've hit your usage limit. Upgrade to Pro", Some(Quota)),
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(RateLimit)),
            ("unexpected status 401 Unauthorized: Missing bearer", Some(Auth)),
            ("stream disconnected before completion", Some(Transient)),
            ("Quota exceeded for metric: requests per day, limit: 250", Some(Quota)),
            ("Quota exceeded for requests per minute", Some(RateLimit)),
            ("429: RESOURCE_EXHAUSTED", Some(RateLimit)),
            ("You have exhausted your daily quota on this model.", Some(Quota)),
            ("Prompt is too long", Some(ContextOverflow)),
            ("error_max_turns", None),
            ("session 3f2a429b-429c-4290-8429-a429b429c429 ended", None),
            ("wrote 1.429 lines, id-429", None),
            ("status 429.", Some(RateLimit)),
            ("", None),
        ];
        for (message, kind) in table {
            assert_eq!(classify_failure(message), kind, "{message}");
        }
    }
}
