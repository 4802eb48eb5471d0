//! Finding the error in a body, wherever the provider put it.

use serde_json::Value;

/// What a body says about an error.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The sentence for people.
    pub(crate) message: Option<String>,
    /// All names the body gives the error, the most telling first: codes, types, reasons, quotas.
    pub(crate) codes: Vec<String>,
    /// Google's `RetryInfo.retryDelay`, or a gateway's `retry_after`.
    pub(crate) retry_delay: Option<String>,
    /// The body was JSON.
    pub(crate) is_json: bool,
}

impl Report {
    pub(crate) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self::default(),
        }
    }

    /// From a whole body or only its error object.
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut report = Report { is_json: true, ..Self::default() };
        // Gemini wraps the body of a refused stream into an array.
        let body = value.get(0).unwrap_or(value);
        match body.get("error") {
            Some(Value::Object(_)) => report.object(&body["error"]),
            Some(Value::String(text)) => {
                report.message = body["message"].as_str().or(Some(text)).map(str::to_owned);
                report.code(&body["error"]);
            }
            _ => {}
        }
        report.object(body);
        report
    }

    fn object(&mut self, error: &Value) {
        let message = ["message", "Message", "detail"].iter().find_map(|key| error[*key].as_str());
        if self.message.is_none() {
            self.message = message.filter(|text| !text.trim().is_empty()).map(str::to_owned);
        }
        for key in ["code", "type", "status", "reason", "__type"] {
            self.code(&error[key]);
        }
        for inner in ["innererror", "inner_error", "metadata"] {
            for key in ["code", "error_type", "reason"] {
                self.code(&error[inner][key]);
            }
        }
        // A gateway's own sentence says only that its upstream failed; the upstream's says why.
        if let Some(raw) = error["metadata"]["raw"].as_str() {
            let upstream = Self::read(raw.as_bytes());
            let said = upstream.message.unwrap_or_else(|| raw.to_owned());
            self.message = Some(match self.message.take() {
                Some(own) => format!("{own}: {said}"),
                None => said,
            });
            self.codes.extend(upstream.codes);
        }
        for detail in error["details"].as_array().map_or(&[][..], Vec::as_slice) {
            self.code(&detail["reason"]);
            for violation in detail["violations"].as_array().map_or(&[][..], Vec::as_slice) {
                self.code(&violation["quotaId"]);
            }
            if let Some(delay) = detail["retryDelay"].as_str() {
                self.retry_delay = Some(delay.to_owned());
            }
        }
    }

    fn code(&mut self, value: &Value) {
        let code = match value {
            Value::String(text) if !text.is_empty() => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return,
        };
        // AWS writes `com.amazon.coral.service#ThrottlingException`.
        let code = code.rsplit('#').next().unwrap_or_default().to_owned();
        if !self.codes.contains(&code) {
            self.codes.push(code);
        }
    }

    /// The first code that is a word; a number there only repeats the status.
    pub(crate) fn name(&self) -> Option<String> {
        let is_number = |code: &&String| code.bytes().all(|byte| byte.is_ascii_digit());
        let word = self.codes.iter().find(|code| !is_number(code));
        word.or(self.codes.first()).cloned()
    }
}
