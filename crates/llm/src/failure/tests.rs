use super::table::TABLE;
use super::*;
use crate::Wire::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
use bakeoff_core::ErrorKind::{
    self, Auth, ContentFilter, ContextOverflow, InvalidRequest, Quota, RateLimit, Transient,
};
use http::{HeaderName, HeaderValue};
use serde_json::json;

/// One example per rule of the table, in its order; that rule must be the first match.
const EXAMPLES: &[(Wire, Option<u16>, &str, ErrorKind)] = &[
    (
        OpenAiChat,
        Some(429),
        r#"{"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}"#,
        Quota,
    ),
    (
        OpenAiChat,
        Some(402),
        r#"{"error": {"message": "Insufficient credits", "code": 402}}"#,
        Quota,
    ),
    (
        Gemini,
        Some(429),
        r#"{"error": {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED",
            "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}"#,
        Quota,
    ),
    (
        Anthropic,
        Some(400),
        r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}}"#,
        Quota,
    ),
    (
        Gemini,
        Some(503),
        r#"{"error": {"code": 503, "message": "busy", "status": "RESOURCE_EXHAUSTED"}}"#,
        RateLimit,
    ),
    (Gemini, None, r#"{"message": "busy", "status": "RESOURCE_EXHAUSTED"}"#, RateLimit),
    (
        OpenAiChat,
        Some(429),
        r#"{"error": {"message": "You exceeded your current quota, please check your plan"}}"#,
        Quota,
    ),
    (
        OpenAiResponses,
        Some(429),
        r#"{"error": {"message": "You exceeded your current quota, please check your plan"}}"#,
        Quota,
    ),
    (
        OpenAiChat,
        Some(400),
        r#"{"error": {"message": "Too many tokens", "code": "context_length_exceeded"}}"#,
        ContextOverflow,
    ),
    (OpenAiChat, Some(413), "<html>too large</html>", ContextOverflow),
    (
        OpenAiChat,
        Some(429),
        r#"{"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000", "code": "rate_limit_exceeded"}}"#,
        ContextOverflow,
    ),
    (
        Anthropic,
        Some(400),
        r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}"#,
        ContextOverflow,
    ),
    (
        OpenAiChat,
        Some(400),
        r#"{"error": {"message": "filtered", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}"#,
        ContentFilter,
    ),
    (
        Anthropic,
        Some(400),
        r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}"#,
        ContentFilter,
    ),
    (
        Anthropic,
        Some(529),
        r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#,
        Transient,
    ),
    (
        Anthropic,
        Some(400),
        r#"{"__type": "com.amazon.coral.service#ThrottlingException", "message": "Too many tokens, please wait"}"#,
        RateLimit,
    ),
    (OpenAiChat, Some(498), "", RateLimit),
    (
        Gemini,
        Some(400),
        r#"{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}"#,
        Auth,
    ),
    (OpenAiChat, Some(403), r#"{"error": {"message": "Country not supported"}}"#, Auth),
    (OpenAiChat, Some(409), r#"{"error": {"message": "lock timeout"}}"#, Transient),
    (OpenAiChat, Some(500), r#"{"error": {"message": "The server had an error"}}"#, Transient),
    (
        OpenAiChat,
        Some(404),
        r#"{"error": {"message": "The model `gpt-9` does not exist", "code": "model_not_found"}}"#,
        InvalidRequest,
    ),
    (Anthropic, None, r#"{"type": "invalid_request_error", "message": "no"}"#, InvalidRequest),
    (OpenAiChat, None, r#"{"message": "it broke"}"#, Transient),
];

#[test]
fn every_rule_is_the_first_match_of_its_example() {
    assert_eq!(EXAMPLES.len(), TABLE.len(), "one example per rule");
    for (index, (wire, status, body, kind)) in EXAMPLES.iter().enumerate() {
        let report = ErrorReport::parse(body.as_bytes());
        let message = report.message.clone().unwrap_or_default().to_lowercase();
        let first =
            TABLE.iter().position(|rule| rule.matches(*wire, *status, &report.codes, &message));
        assert_eq!(first, Some(index), "{body}");
        assert_eq!(TABLE[index].kind, *kind, "{body}");
        let failure = match status {
            Some(status) => classified(*wire, *status, &[], body),
            None => Failure::from_error_object(*wire, &serde_json::from_str(body).unwrap()),
        };
        assert_eq!(failure.kind, *kind, "{body}");
    }
}

fn classified(wire: Wire, status: u16, headers: &[(&'static str, &str)], body: &str) -> Failure {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect();
    classify(wire, status, &headers, body.as_bytes(), now())
}

/// 2026-01-01 00:00:00 UTC.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)
}

#[test]
fn empty_body_is_classified_by_status() {
    let cases = [
        (301, InvalidRequest),
        (400, InvalidRequest),
        (401, Auth),
        (404, InvalidRequest),
        (408, Transient),
        (422, InvalidRequest),
        (425, Transient),
        (429, RateLimit),
        (502, Transient),
        (503, Transient),
        (504, Transient),
        (529, Transient),
    ];
    for (status, kind) in cases {
        for wire in [OpenAiChat, OpenAiResponses, Anthropic, Gemini] {
            assert_eq!(classified(wire, status, &[], "").kind, kind, "{status}");
        }
    }
}

#[test]
fn google_quota_message_per_minute_is_a_rate_limit_in_both_formats() {
    let per_minute = r#"[{"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}]}}]"#;
    for wire in [Gemini, OpenAiChat] {
        let failure = classified(wire, 429, &[], per_minute);
        assert_eq!(failure.kind, RateLimit);
        assert_eq!(failure.message, "You exceeded your current quota.");
    }
}

#[test]
fn server_error_that_mentions_tokens_is_transient() {
    let body = r#"{"error": {"message": "prompt is too long or the server is too small"}}"#;
    assert_eq!(classified(OpenAiChat, 500, &[], body).kind, Transient);
}

#[test]
fn message_and_code_come_from_the_body_or_the_status() {
    let message = |status, body: &str| classified(OpenAiChat, status, &[], body).message;
    assert_eq!(message(404, r#"{"error": {"message": "no model `x`"}}"#), "no model `x`");
    assert_eq!(message(400, r#"{"error": "bad", "message": "worse"}"#), "worse");
    assert_eq!(message(400, r#"{"error": "bad"}"#), "bad");
    assert_eq!(message(422, r#"{"detail": "field required"}"#), "field required");
    assert_eq!(message(502, " <html>nginx</html>\n"), "<html>nginx</html>");
    assert_eq!(message(503, ""), "Service Unavailable");
    assert_eq!(message(503, "{}"), "Service Unavailable");
    assert_eq!(message(599, ""), "status 599");
    assert_eq!(message(502, &"ü".repeat(300)), "ü".repeat(200));
    let long = json!({"error": {"message": "ü".repeat(600)}}).to_string();
    assert_eq!(message(400, &long), "ü".repeat(500));
    let lines = json!({"error": {"message": "over\r\n\u{1b}[2J\tloaded\n", "code": "a\nb"}});
    assert_eq!(message(500, &lines.to_string()), "over [2J loaded");
    assert_eq!(classified(OpenAiChat, 500, &[], &lines.to_string()).code.unwrap(), "a b");
    let local = Failure::local(Transient, "provider:\n  overloaded");
    assert_eq!(local.message, "provider: overloaded");
    let bytes = classify(OpenAiChat, 502, &HeaderMap::new(), b"a\xffb", now());
    assert_eq!(bytes.message, "a\u{fffd}b");

    let body = r#"{"error": {"message": "m", "type": "t", "code": "c"}}"#;
    assert_eq!(classified(OpenAiChat, 400, &[], body).code.as_deref(), Some("c"));
    let body = r#"{"error": {"message": "m", "code": 404, "status": "NOT_FOUND"}}"#;
    assert_eq!(classified(Gemini, 404, &[], body).code.as_deref(), Some("NOT_FOUND"));
    assert_eq!(classified(OpenAiChat, 404, &[], "").code, None);
    assert_eq!(classified(OpenAiChat, 404, &[], "").status, Some(404));
}

#[test]
fn gateway_error_includes_upstream_message_and_code() {
    let error = json!({"code": 400, "message": "Provider returned error", "metadata": {
        "provider_name": "OpenAI",
        "raw": r#"{"error": {"message": "too many tokens", "code": "context_length_exceeded"}}"#,
    }});
    let failure = Failure::from_error_object(OpenAiChat, &error);
    assert_eq!(failure.kind, ContextOverflow);
    assert_eq!(failure.message, "Provider returned error: too many tokens");
    assert_eq!(failure.status, Some(400));
}

#[test]
fn retry_delay_comes_from_the_most_precise_source() {
    let secs = Duration::from_secs_f64;
    let body = |message: &str| json!({"error": {"message": message}}).to_string();
    let delay = json!({"error": {"code": 429, "message": "Please retry in 8.94s.", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s"}]}})
    .to_string();
    let zero = ("x-ratelimit-remaining-requests", "0");
    let (left, reset) =
        (("x-ratelimit-remaining-tokens", "5"), ("x-ratelimit-reset-tokens", "6m0s"));
    type Case<'a> = (&'a [(&'static str, &'a str)], &'a str, Option<Duration>);
    let cases: &[Case<'_>] = &[
        (&[("retry-after-ms", "1500"), ("retry-after", "2")], "", Some(secs(1.5))),
        (&[("retry-after-ms", "soon"), ("retry-after", "2")], &delay, Some(secs(2.0))),
        (&[("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT")], "", Some(secs(7.0))),
        (&[], &delay, Some(secs(36.5))),
        (&[], &body("Quota exceeded. Please retry in 8.94s."), Some(secs(8.94))),
        (&[], &body("Please try again in 1.2s. Visit the page."), Some(secs(1.2))),
        (&[], &body("Please try again in 6m0s."), Some(secs(360.0))),
        (&[], &body("Please try again in 250ms."), Some(secs(0.25))),
        (&[], &body("Try later, try again in 20 seconds"), Some(secs(20.0))),
        (&[], &body("Please retry in 2 minutes."), Some(secs(120.0))),
        (&[], &body("please try again in a while"), None),
        (&[zero, ("x-ratelimit-reset-requests", "1.5s"), left, reset], "", Some(secs(1.5))),
        (
            &[
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:05Z"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-01-01T00:00:15Z"),
                ("anthropic-ratelimit-input-tokens-remaining", "1000"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:01:00Z"),
            ],
            "",
            Some(secs(15.0)),
        ),
        (&[left, reset], "", None),
        (&[("retry-after", "soon")], "", None),
    ];
    for (headers, body, wait) in cases {
        assert_eq!(
            classified(OpenAiChat, 429, headers, body).retry_after,
            *wait,
            "{headers:?} {body}"
        );
    }
}

#[test]
fn retry_delay_is_absent_where_waiting_does_not_help() {
    let header = [("retry-after", "5")];
    assert_eq!(classified(OpenAiChat, 401, &header, "").retry_after, None);
    assert_eq!(classified(OpenAiChat, 402, &header, "").retry_after, None);
    assert_eq!(classified(OpenAiChat, 503, &header, "").retry_after, Some(Duration::from_secs(5)));
}

#[test]
fn daily_limits_are_quotas_unless_the_provider_names_a_wait() {
    let table = [
        (
            "Rate limit reached for model `llama-3.3-70b` on tokens per day (TPD): Limit 100000, Used 99990, \
             Requested 900. Please try again in 7h12m9.6s.",
            (RateLimit, Some(25_929.6)),
        ),
        (
            "Rate limit reached for gpt-4o on requests per day (RPD): Limit 200. Please try again in 7m12s.",
            (RateLimit, Some(432.0)),
        ),
        ("Rate limit reached for gpt-4o on requests per day (RPD): Limit 200.", (Quota, None)),
        ("This request would exceed your organization's daily rate limit.", (Quota, None)),
        ("Too many tokens per day, please wait before trying again.", (Quota, None)),
        ("Too many requests, try again in 3 hours.", (RateLimit, Some(10_800.0))),
        ("Too many requests.", (RateLimit, None)),
    ];
    for (message, (kind, wait)) in table {
        let body =
            json!({"error": {"code": "rate_limit_exceeded", "message": message}}).to_string();
        let now = SystemTime::UNIX_EPOCH;
        let failure = classify(OpenAiChat, 429, &HeaderMap::new(), body.as_bytes(), now);
        let seconds = failure.retry_after.map(|wait| wait.as_secs_f64());
        assert_eq!((failure.kind, seconds), (kind, wait), "{message}");
    }
}
