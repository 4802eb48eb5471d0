//! The one table of what providers mean.

use crate::Wire;
use bakeoff_core::ErrorKind::{self, *};

/// One meaning. All conditions must hold.
pub(super) struct Row {
    wire: Option<Wire>,
    status: Status,
    sign: Sign,
    pub(super) kind: ErrorKind,
}

enum Status {
    Any,
    /// The error came inside an answer.
    Absent,
    OneOf(&'static [u16]),
    /// Both ends included.
    Between(u16, u16),
    /// The request is at fault: 400 to 499 without 429, or no status.
    Refused,
}

enum Sign {
    Any,
    /// A code, type, status or reason of the body is one of these, in any case.
    Code(&'static [&'static str]),
    /// A code contains one of these.
    CodePart(&'static str),
    /// The message contains one of these; they are lower case.
    Text(&'static [&'static str]),
}

const fn row(status: Status, sign: Sign, kind: ErrorKind) -> Row {
    Row { wire: None, status, sign, kind }
}

const fn only(wire: Wire, status: Status, sign: Sign, kind: ErrorKind) -> Row {
    Row { wire: Some(wire), status, sign, kind }
}

/// The first row that holds decides, so the special stands before the general: terminal limits
/// look like rate limits, and both look like refused requests.
pub(super) const TABLE: &[Row] = &[
    // Nothing left: waiting does not help.
    row(
        Status::Any,
        Sign::Code(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "insufficient_credits",
            "enforced_spend_limit_reached",
        ]),
        Quota,
    ),
    row(Status::OneOf(&[402]), Sign::Any, Quota),
    row(Status::Any, Sign::CodePart("PerDay"), Quota),
    row(
        Status::Any,
        Sign::Text(&[
            "credit balance is too low",
            "insufficient balance",
            "spend limit",
            "reached your specified api usage limits",
            "billing hard limit",
        ]),
        Quota,
    ),
    // Google uses OpenAI's sentence about the quota for limits per minute too, also through its
    // OpenAI-compatible door, so its code must be read first.
    row(Status::OneOf(&[429, 503]), Sign::Code(&["RESOURCE_EXHAUSTED"]), RateLimit),
    row(Status::Absent, Sign::Code(&["RESOURCE_EXHAUSTED"]), RateLimit),
    only(
        Wire::OpenAiChat,
        Status::OneOf(&[429]),
        Sign::Text(&["exceeded your current quota"]),
        Quota,
    ),
    only(
        Wire::OpenAiResponses,
        Status::OneOf(&[429]),
        Sign::Text(&["exceeded your current quota"]),
        Quota,
    ),
    // Too long.
    row(
        Status::Any,
        Sign::Code(&["context_length_exceeded", "request_too_large", "string_above_max_length"]),
        ContextOverflow,
    ),
    row(Status::OneOf(&[413]), Sign::Any, ContextOverflow),
    // One request above the whole limit per minute: no wait makes it fit.
    row(Status::OneOf(&[429]), Sign::Text(&["request too large for"]), ContextOverflow),
    row(
        Status::Refused,
        Sign::Text(&[
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
    // Refused for what it says.
    row(
        Status::Any,
        Sign::Code(&[
            "content_filter",
            "content_policy_violation",
            "ResponsibleAIPolicyViolation",
            "moderation_blocked",
            "PROHIBITED_CONTENT",
        ]),
        ContentFilter,
    ),
    row(
        Status::Refused,
        Sign::Text(&[
            "content management policy",
            "content filtering policy",
            "rejected as a result of our safety system",
            "was flagged",
        ]),
        ContentFilter,
    ),
    // Overload of everyone says nothing about this account's limit, whatever its status.
    row(
        Status::Any,
        Sign::Code(&["overloaded_error", "engine_overloaded_error", "engine_overloaded"]),
        Transient,
    ),
    // Slower, please.
    row(
        Status::Any,
        Sign::Code(&[
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
    row(Status::OneOf(&[429, 498]), Sign::Any, RateLimit),
    // The key. Google answers a wrong one with 400.
    row(
        Status::Any,
        Sign::Code(&[
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
    row(Status::OneOf(&[401, 403]), Sign::Any, Auth),
    // Later may help. 409 is a lock that was not had in time.
    row(Status::OneOf(&[408, 409, 425]), Sign::Any, Transient),
    row(Status::Between(500, 599), Sign::Any, Transient),
    // As it is, never. A redirect means a wrong base URL.
    row(Status::Between(300, 499), Sign::Any, InvalidRequest),
    row(
        Status::Absent,
        Sign::Code(&[
            "invalid_request_error",
            "not_found_error",
            "invalid_prompt",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "FAILED_PRECONDITION",
        ]),
        InvalidRequest,
    ),
    // An error in the middle of an answer that names no cause is the server's.
    row(Status::Any, Sign::Any, Transient),
];

/// The kind of an error. `text` is its message in lower case.
pub(super) fn kind(wire: Wire, status: Option<u16>, codes: &[String], text: &str) -> ErrorKind {
    let found = TABLE.iter().find(|row| row.holds(wire, status, codes, text));
    found.map_or(Transient, |row| row.kind)
}

impl Row {
    pub(super) fn holds(
        &self,
        wire: Wire,
        status: Option<u16>,
        codes: &[String],
        text: &str,
    ) -> bool {
        self.wire.is_none_or(|only| only == wire)
            && self.status.holds(status)
            && self.sign.holds(codes, text)
    }
}

impl Status {
    fn holds(&self, status: Option<u16>) -> bool {
        match (self, status) {
            (Status::Any, _) => true,
            (Status::Absent, status) => status.is_none(),
            (Status::Refused, None) => true,
            (Status::Refused, Some(status)) => (400..500).contains(&status) && status != 429,
            (Status::OneOf(list), Some(status)) => list.contains(&status),
            (Status::Between(low, high), Some(status)) => (*low..=*high).contains(&status),
            (Status::OneOf(_) | Status::Between(..), None) => false,
        }
    }
}

impl Sign {
    fn holds(&self, codes: &[String], text: &str) -> bool {
        match self {
            Sign::Any => true,
            Sign::Code(names) => {
                codes.iter().any(|code| names.iter().any(|name| name.eq_ignore_ascii_case(code)))
            }
            Sign::CodePart(part) => codes.iter().any(|code| code.contains(part)),
            Sign::Text(parts) => parts.iter().any(|part| text.contains(part)),
        }
    }
}
