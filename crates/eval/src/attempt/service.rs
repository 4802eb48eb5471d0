//! Service targets: one HTTP request.

use super::{TrialInput, describe_failure};
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::{failed, milliseconds};
use bakeoff_core::{Attempt, ErrorKind, NanoDollars, Timing, Usage};
use bakeoff_llm::{CallContext, Retry};
use bakeoff_suite::ServiceTarget;
use serde_json::Value;
use serde_json_path::JsonPath;

/// Characters of an invalid response that error messages quote.
const MAX_QUOTED_CHARS: usize = 80;

/// Calls an HTTP service.
pub(super) async fn call_service(
    context: &TrialContext,
    target: &ServiceTarget,
    input: TrialInput<'_>,
) -> (Attempt, Trace) {
    let mut request = serde_json::json!({
        "prompt": context.redactor.scrub(input.prompt.clone()),
        "method": target.service.method(),
        "url": context.redactor.scrub(target.service.address().to_owned()),
    });
    let attempt = send(context, target, input, &mut request).await;
    let trace = Trace::new(context.suite.settings.artifacts, request, &attempt);
    (attempt, trace)
}

/// Sends the request and adds its body to `request`, for the trace.
async fn send(
    context: &TrialContext,
    target: &ServiceTarget,
    input: TrialInput<'_>,
    request: &mut Value,
) -> Attempt {
    let body = match target.body(&input.case.fields, &input.prompt) {
        Ok(body) => body,
        Err(reason) => return failed(ErrorKind::Template, format!("body: {reason}")),
    };
    if let Some(wrong) = target.body_error(&body) {
        return failed(ErrorKind::Template, wrong);
    }
    if target.service.has_body() {
        request["body"] = context.redactor.scrub(body.clone()).into();
    }
    let on_retry = |retry: &Retry<'_>| context.emit_retry(input.key, retry);
    let call_context = CallContext::default()
        .run(context.run)
        .cancel(context.abort.clone())
        .stop(context.stop.clone())
        .on_retry(&on_retry);
    let client = &context.client;
    let response =
        client.call_service(&target.service, body.into(), input.timeout, &call_context).await;
    match response {
        Ok(response) => Attempt {
            timing: Timing {
                latency_ms: milliseconds(response.latency),
                retries: response.retries,
                ..Timing::default()
            },
            ..parse(target, response.body)
        },
        Err(error) => {
            let mut attempt = failed(error.failure.kind, describe_failure(&error.failure));
            attempt.timing.retries = error.retries;
            attempt
        }
    }
}

/// Parses the body of a response.
fn parse(target: &ServiceTarget, body: String) -> Attempt {
    let usage = &target.usage;
    let paths = [&target.answer, &usage.input, &usage.output, &usage.cost];
    if paths.iter().all(|path| path.is_none()) {
        return Attempt { output: body, ..Attempt::default() };
    }
    let json: Value = match serde_json::from_str(&body) {
        Ok(json) => json,
        Err(error) => {
            let start: String = body.chars().take(MAX_QUOTED_CHARS).collect();
            let message = format!("the response is not JSON: {error}; it starts with {start:?}");
            return failed(ErrorKind::MalformedResponse, message);
        }
    };
    let find = |path: &Option<JsonPath>| path.as_ref()?.query(&json).first();
    let output = match (&target.answer, find(&target.answer)) {
        (None, _) => body,
        (Some(_), Some(Value::String(text))) => text.clone(),
        (Some(_), Some(value)) => value.to_string(),
        (Some(path), None) => {
            let start: String = body.chars().take(MAX_QUOTED_CHARS).collect();
            let message = format!("no value at {path} in the response; it starts with {start:?}");
            return failed(ErrorKind::MalformedResponse, message);
        }
    };
    let tokens = |path| find(path).and_then(Value::as_u64);
    let has_usage = usage.input.is_some() || usage.output.is_some();
    let (input, output_tokens) = (tokens(&usage.input), tokens(&usage.output));
    let used = Usage {
        input: input.unwrap_or_default(),
        output: output_tokens.unwrap_or_default(),
        ..Usage::default()
    };
    let cost = find(&usage.cost).and_then(Value::as_f64);
    Attempt {
        output,
        // A missing value is unknown, not zero.
        usage: (has_usage && (input.is_some() || output_tokens.is_some())).then_some(used),
        cost: cost
            .filter(|dollars| dollars.is_finite() && *dollars >= 0.0)
            .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
        ..Attempt::default()
    }
}
