//! Extraction of error fields from a body, in the layouts of all providers.

use serde_json::Value;

/// Error fields of a body.
#[derive(Debug, Default)]
pub(crate) struct ErrorReport {
    /// Human-readable message.
    pub(crate) message: Option<String>,
    /// All codes of the error, most specific first: codes, types, reasons, quota ids.
    pub(crate) codes: Vec<String>,
    /// Google's `RetryInfo.retryDelay`.
    pub(crate) retry_delay: Option<String>,
    /// Whether the body is JSON.
    pub(crate) is_json: bool,
}

impl ErrorReport {
    /// Parses a body; a body that is not JSON yields an empty report.
    pub(crate) fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self::default(),
        }
    }

    /// Reads a whole body, or only its error object.
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut report = ErrorReport { is_json: true, ..Self::default() };
        // Gemini wraps the error of a streaming request into an array.
        let body = value.get(0).unwrap_or(value);
        match body.get("error") {
            Some(Value::Object(_)) => report.add_object(&body["error"]),
            Some(Value::String(text)) => {
                report.message = body["message"].as_str().or(Some(text)).map(str::to_owned);
                report.add_code(&body["error"]);
            }
            _ => {}
        }
        report.add_object(body);
        report
    }

    fn add_object(&mut self, error: &Value) {
        let message = ["message", "Message", "detail"].iter().find_map(|key| error[*key].as_str());
        if self.message.is_none() {
            self.message = message.filter(|text| !text.trim().is_empty()).map(str::to_owned);
        }
        for key in ["code", "type", "status", "reason", "__type"] {
            self.add_code(&error[key]);
        }
        for inner in ["innererror", "inner_error", "metadata"] {
            for key in ["code", "error_type", "reason"] {
                self.add_code(&error[inner][key]);
            }
        }
        // The message of a gateway only states that its upstream failed; the upstream's names the reason.
        if let Some(raw) = error["metadata"]["raw"].as_str() {
            let upstream = Self::parse(raw.as_bytes());
            let reason = upstream.message.unwrap_or_else(|| raw.to_owned());
            self.message = Some(match self.message.take() {
                Some(message) => format!("{message}: {reason}"),
                None => reason,
            });
            self.codes.extend(upstream.codes);
        }
        for detail in error["details"].as_array().map_or(&[][..], Vec::as_slice) {
            self.add_code(&detail["reason"]);
            for violation in detail["violations"].as_array().map_or(&[][..], Vec::as_slice) {
                self.add_code(&violation["quotaId"]);
            }
            if let Some(delay) = detail["retryDelay"].as_str() {
                self.retry_delay = Some(delay.to_owned());
            }
        }
    }

    fn add_code(&mut self, value: &Value) {
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

    /// Returns the first code that is not a number; numbers only repeat the status.
    pub(crate) fn code(&self) -> Option<String> {
        let is_number = |code: &&String| code.bytes().all(|byte| byte.is_ascii_digit());
        let name = self.codes.iter().find(|code| !is_number(code));
        name.or(self.codes.first()).cloned()
    }
}
