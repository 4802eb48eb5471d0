use super::table::TABLE;
use super::*;
use crate::Wire::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
use bakeoff_core::ErrorKind::{
    self, Auth, ContentFilter, ContextOverflow, InvalidRequest, Quota, RateLimit, Transient,
};
use http::{HeaderName, HeaderValue};
use serde_json::json;

/// One example per row of the table, in its order: it must be decided by that row.
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
fn every_row_decides_its_example() {
    assert_eq!(EXAMPLES.len(), TABLE.len(), "one example per row");
    for (place, (wire, status, body, kind)) in EXAMPLES.iter().enumerate() {
        let report = Report::read(body.as_bytes());
        let text = report.message.clone().unwrap_or_default().to_lowercase();
        let decided = TABLE.iter().position(|row| row.holds(*wire, *status, &report.codes, &text));
        assert_eq!(decided, Some(place), "{body}");
        assert_eq!(TABLE[place].kind, *kind, "{body}");
        let failure = match status {
            Some(status) => at(*wire, *status, &[], body),
            None => Failure::inside(*wire, &serde_json::from_str(body).unwrap()),
        };
        assert_eq!(failure.kind, *kind, "{body}");
    }
}

fn at(wire: Wire, status: u16, headers: &[(&'static str, &str)], body: &str) -> Failure {
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
fn statuses_alone() {
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
            assert_eq!(at(wire, status, &[], "").kind, kind, "{status}");
        }
    }
}

#[test]
fn googles_sentence_about_the_quota_is_a_rate_limit_also_through_openais_format() {
    let per_minute = r#"[{"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}]}}]"#;
    for wire in [Gemini, OpenAiChat] {
        let failure = at(wire, 429, &[], per_minute);
        assert_eq!(failure.kind, RateLimit);
        assert_eq!(failure.message, "You exceeded your current quota.");
    }
}

#[test]
fn a_server_error_that_mentions_tokens_is_still_one() {
    let body = r#"{"error": {"message": "prompt is too long or the server is too small"}}"#;
    assert_eq!(at(OpenAiChat, 500, &[], body).kind, Transient);
}

#[test]
fn messages_and_codes() {
    let message = |status, body: &str| at(OpenAiChat, status, &[], body).message;
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
    let bytes = classify(OpenAiChat, 502, &HeaderMap::new(), b"a\xffb", now());
    assert_eq!(bytes.message, "a\u{fffd}b");

    let body = r#"{"error": {"message": "m", "type": "t", "code": "c"}}"#;
    assert_eq!(at(OpenAiChat, 400, &[], body).code.as_deref(), Some("c"));
    let body = r#"{"error": {"message": "m", "code": 404, "status": "NOT_FOUND"}}"#;
    assert_eq!(at(Gemini, 404, &[], body).code.as_deref(), Some("NOT_FOUND"));
    assert_eq!(at(OpenAiChat, 404, &[], "").code, None);
    assert_eq!(at(OpenAiChat, 404, &[], "").status, Some(404));
}

#[test]
fn a_gateways_error_tells_what_its_upstream_said() {
    let error = json!({"code": 400, "message": "Provider returned error", "metadata": {
        "provider_name": "OpenAI",
        "raw": r#"{"error": {"message": "too many tokens", "code": "context_length_exceeded"}}"#,
    }});
    let failure = Failure::inside(OpenAiChat, &error);
    assert_eq!(failure.kind, ContextOverflow);
    assert_eq!(failure.message, "Provider returned error: too many tokens");
    assert_eq!(failure.status, Some(400));
}

#[test]
fn the_wait_comes_from_the_most_exact_source() {
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
        assert_eq!(at(OpenAiChat, 429, headers, body).retry_after, *wait, "{headers:?} {body}");
    }
}

#[test]
fn there_is_no_wait_where_waiting_does_not_help() {
    let header = [("retry-after", "5")];
    assert_eq!(at(OpenAiChat, 401, &header, "").retry_after, None);
    assert_eq!(at(OpenAiChat, 402, &header, "").retry_after, None);
    assert_eq!(at(OpenAiChat, 503, &header, "").retry_after, Some(Duration::from_secs(5)));
}
