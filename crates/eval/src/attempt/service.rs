//! An HTTP service is asked.

use super::describe;
use crate::trial::{Asked, Trace, Trials, failed, milliseconds};
use bakeoff_core::{Attempt, ErrorKind, NanoDollars, Timing, Usage};
use bakeoff_llm::{CallContext, Retry};
use bakeoff_suite::ServiceTarget;
use serde_json::Value;
use serde_json_path::JsonPath;

impl Trials {
    pub(crate) async fn ask_service(
        &self,
        target: &ServiceTarget,
        asked: Asked<'_>,
    ) -> (Attempt, Trace) {
        let mut request = serde_json::json!({
            "prompt": self.redactor.scrub(asked.prompt.clone()),
            "method": target.service.method(),
            "url": self.redactor.scrub(target.service.address().to_owned()),
        });
        let attempt = self.exchange(target, asked, &mut request).await;
        let trace = self.trace(request, &attempt);
        (attempt, trace)
    }

    /// Sends what is asked, which is noted in the request.
    async fn exchange(
        &self,
        target: &ServiceTarget,
        asked: Asked<'_>,
        request: &mut Value,
    ) -> Attempt {
        let body = match target.body(&asked.case.fields, &asked.prompt) {
            Ok(body) => body,
            Err(reason) => return failed(ErrorKind::Template, format!("body: {reason}")),
        };
        if let Some(wrong) = target.wrong_body(&body) {
            return failed(ErrorKind::Template, wrong);
        }
        if target.service.has_body() {
            request["body"] = self.redactor.scrub(body.clone()).into();
        }
        let on_retry = |retry: &Retry<'_>| self.tell_retry(asked.key, retry);
        let context = CallContext {
            run: self.run,
            cancel: self.abort.clone(),
            stop: self.stop.clone(),
            on_retry: Some(&on_retry),
            ..CallContext::default()
        };
        let answered =
            self.client.ask_service(&target.service, body.into(), asked.timeout, &context).await;
        match answered {
            Ok(answer) => Attempt {
                timing: Timing {
                    latency_ms: milliseconds(answer.latency),
                    retries: answer.retries,
                    ..Timing::default()
                },
                ..read(target, answer.body)
            },
            Err(error) => {
                let mut attempt = failed(error.failure.kind, describe(&error.failure));
                attempt.timing.retries = error.retries;
                attempt
            }
        }
    }
}

/// The attempt that an answer makes.
fn read(target: &ServiceTarget, body: String) -> Attempt {
    let usage = &target.usage;
    let paths = [&target.answer, &usage.input, &usage.output, &usage.cost];
    if paths.iter().all(|path| path.is_none()) {
        return Attempt { output: body, ..Attempt::default() };
    }
    let json: Value = match serde_json::from_str(&body) {
        Ok(json) => json,
        Err(error) => {
            let start: String = body.chars().take(80).collect();
            let message = format!("the answer is not JSON: {error}; it starts with {start:?}");
            return failed(ErrorKind::MalformedResponse, message);
        }
    };
    let find = |path: &Option<JsonPath>| path.as_ref()?.query(&json).first();
    let output = match (&target.answer, find(&target.answer)) {
        (None, _) => body,
        (Some(_), Some(Value::String(text))) => text.clone(),
        (Some(_), Some(value)) => value.to_string(),
        (Some(path), None) => {
            let start: String = body.chars().take(80).collect();
            let message =
                format!("there is nothing at {path} in the answer; it starts with {start:?}");
            return failed(ErrorKind::MalformedResponse, message);
        }
    };
    let tokens = |path| find(path).and_then(Value::as_u64);
    let has_usage = usage.input.is_some() || usage.output.is_some();
    let (input, written) = (tokens(&usage.input), tokens(&usage.output));
    let used = Usage {
        input: input.unwrap_or_default(),
        output: written.unwrap_or_default(),
        ..Usage::default()
    };
    let cost = find(&usage.cost).and_then(Value::as_f64);
    Attempt {
        output,
        // What is not there is not known, and not nothing.
        usage: (has_usage && (input.is_some() || written.is_some())).then_some(used),
        cost: cost
            .filter(|dollars| dollars.is_finite() && *dollars >= 0.0)
            .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
        ..Attempt::default()
    }
}
