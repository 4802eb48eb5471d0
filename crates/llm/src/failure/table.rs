//! The classification table for provider errors.

use crate::Wire;
use bakeoff_core::ErrorKind::{self, *};

/// One rule. It applies when all conditions match.
pub(super) struct ErrorRule {
    wire: Option<Wire>,
    status: StatusPattern,
    text: TextPattern,
    pub(super) kind: ErrorKind,
}

/// Condition on the HTTP status.
enum StatusPattern {
    Any,
    /// No status: the error object came inside a response or a stream.
    Absent,
    OneOf(&'static [u16]),
    /// Both ends included.
    Between(u16, u16),
    /// An error of the request: 400 to 499 without 429, or no status.
    RequestError,
}

/// Condition on the codes and the message.
enum TextPattern {
    Any,
    /// A code, type, status or reason of the body equals one of these, ignoring case.
    Code(&'static [&'static str]),
    /// A code contains this.
    CodePart(&'static str),
    /// The message contains one of these, which are lower case.
    Message(&'static [&'static str]),
}

/// A rule for all wire formats.
const fn any(status: StatusPattern, text: TextPattern, kind: ErrorKind) -> ErrorRule {
    ErrorRule { wire: None, status, text, kind }
}

/// A rule for one wire format.
const fn only(wire: Wire, status: StatusPattern, text: TextPattern, kind: ErrorKind) -> ErrorRule {
    ErrorRule { wire: Some(wire), status, text, kind }
}

/// All rules. The first match decides, so specific rules come before general ones: exhausted quotas resemble
/// rate limits, and both resemble invalid requests.
pub(super) const TABLE: &[ErrorRule] = &[
    // Exhausted quota: waiting does not help.
    any(
        StatusPattern::Any,
        TextPattern::Code(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "insufficient_credits",
            "enforced_spend_limit_reached",
        ]),
        Quota,
    ),
    any(StatusPattern::OneOf(&[402]), TextPattern::Any, Quota),
    any(StatusPattern::Any, TextPattern::CodePart("PerDay"), Quota),
    any(
        StatusPattern::Any,
        TextPattern::Message(&[
            "credit balance is too low",
            "insufficient balance",
            "spend limit",
            "reached your specified api usage limits",
            "billing hard limit",
        ]),
        Quota,
    ),
    // Google uses OpenAI's quota message for limits per minute too, also in its OpenAI-compatible API, so its
    // code must be checked before the message.
    any(StatusPattern::OneOf(&[429, 503]), TextPattern::Code(&["RESOURCE_EXHAUSTED"]), RateLimit),
    any(StatusPattern::Absent, TextPattern::Code(&["RESOURCE_EXHAUSTED"]), RateLimit),
    only(
        Wire::OpenAiChat,
        StatusPattern::OneOf(&[429]),
        TextPattern::Message(&["exceeded your current quota"]),
        Quota,
    ),
    only(
        Wire::OpenAiResponses,
        StatusPattern::OneOf(&[429]),
        TextPattern::Message(&["exceeded your current quota"]),
        Quota,
    ),
    // Context overflow.
    any(
        StatusPattern::Any,
        TextPattern::Code(&[
            "context_length_exceeded",
            "request_too_large",
            "string_above_max_length",
        ]),
        ContextOverflow,
    ),
    any(StatusPattern::OneOf(&[413]), TextPattern::Any, ContextOverflow),
    // One request exceeds the limit per minute: waiting does not help.
    any(
        StatusPattern::OneOf(&[429]),
        TextPattern::Message(&["request too large for"]),
        ContextOverflow,
    ),
    any(
        StatusPattern::RequestError,
        TextPattern::Message(&[
            "prompt is too long",
            "input is too long",
            "maximum context length",
            "exceeds the maximum number of tokens",
            "exceed the context window",
            "exceeds the context window",
            "exceed context limit",
            "exceeds the available context size",
        ]),
        ContextOverflow,
    ),
    // Content filter.
    any(
        StatusPattern::Any,
        TextPattern::Code(&[
            "content_filter",
            "content_policy_violation",
            "ResponsibleAIPolicyViolation",
            "moderation_blocked",
            "PROHIBITED_CONTENT",
        ]),
        ContentFilter,
    ),
    any(
        StatusPattern::RequestError,
        TextPattern::Message(&[
            "content management policy",
            "content filtering policy",
            "rejected as a result of our safety system",
            "was flagged",
        ]),
        ContentFilter,
    ),
    // A general overload is unrelated to the limits of this account, whatever its status.
    any(
        StatusPattern::Any,
        TextPattern::Code(&["overloaded_error", "engine_overloaded_error", "engine_overloaded"]),
        Transient,
    ),
    // Rate limit.
    any(
        StatusPattern::Any,
        TextPattern::Code(&[
            "rate_limit_exceeded",
            "rate_limit_error",
            "slow_down",
            "too_many_requests",
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottledException",
            "TooManyRequestsException",
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
        ]),
        RateLimit,
    ),
    any(StatusPattern::OneOf(&[429, 498]), TextPattern::Any, RateLimit),
    // Authentication. Google rejects a wrong key with 400.
    any(
        StatusPattern::Any,
        TextPattern::Code(&[
            "invalid_api_key",
            "API_KEY_INVALID",
            "API_KEY_SERVICE_BLOCKED",
            "authentication_error",
            "permission_error",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
        ]),
        Auth,
    ),
    any(StatusPattern::OneOf(&[401, 403]), TextPattern::Any, Auth),
    // Transient errors. 409 is a lock timeout.
    any(StatusPattern::OneOf(&[408, 409, 425]), TextPattern::Any, Transient),
    any(StatusPattern::Between(500, 599), TextPattern::Any, Transient),
    // Invalid requests. A redirect means a wrong base URL.
    any(StatusPattern::Between(300, 499), TextPattern::Any, InvalidRequest),
    any(
        StatusPattern::Absent,
        TextPattern::Code(&[
            "invalid_request_error",
            "not_found_error",
            "invalid_prompt",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "FAILED_PRECONDITION",
        ]),
        InvalidRequest,
    ),
    // An error object inside a response that names no cause is a server error.
    any(StatusPattern::Any, TextPattern::Any, Transient),
];

/// Parts of messages about limits per day, in lower case.
pub(super) const DAILY_LIMIT: &[&str] = &["per day", "per-day", "(rpd)", "(tpd)", "daily"];

/// Returns the kind of an error. `message` is its message in lower case.
pub(super) fn classify(
    wire: Wire,
    status: Option<u16>,
    codes: &[String],
    message: &str,
) -> ErrorKind {
    let rule = TABLE.iter().find(|rule| rule.matches(wire, status, codes, message));
    rule.map_or(Transient, |rule| rule.kind)
}

impl ErrorRule {
    pub(super) fn matches(
        &self,
        wire: Wire,
        status: Option<u16>,
        codes: &[String],
        message: &str,
    ) -> bool {
        self.wire.is_none_or(|only| only == wire)
            && self.status.matches(status)
            && self.text.matches(codes, message)
    }
}

impl StatusPattern {
    fn matches(&self, status: Option<u16>) -> bool {
        match (self, status) {
            (StatusPattern::Any, _) => true,
            (StatusPattern::Absent, status) => status.is_none(),
            (StatusPattern::RequestError, None) => true,
            (StatusPattern::RequestError, Some(status)) => {
                (400..500).contains(&status) && status != 429
            }
            (StatusPattern::OneOf(list), Some(status)) => list.contains(&status),
            (StatusPattern::Between(low, high), Some(status)) => (*low..=*high).contains(&status),
            (StatusPattern::OneOf(_) | StatusPattern::Between(..), None) => false,
        }
    }
}

impl TextPattern {
    fn matches(&self, codes: &[String], message: &str) -> bool {
        match self {
            TextPattern::Any => true,
            TextPattern::Code(names) => {
                codes.iter().any(|code| names.iter().any(|name| name.eq_ignore_ascii_case(code)))
            }
            TextPattern::CodePart(part) => codes.iter().any(|code| code.contains(part)),
            TextPattern::Message(parts) => parts.iter().any(|part| message.contains(part)),
        }
    }
}
