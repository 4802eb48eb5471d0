//! Classification of provider errors.
//!
//! One table maps the errors of all providers to [`ErrorKind`]. Retries are decided elsewhere; this module
//! only extracts the wait that the provider asks for.

mod report;
mod retry_delay;
mod table;

use crate::Wire;
use crate::transport::TransportErrorKind;
use bakeoff_core::{ErrorKind, one_line};
use http::{HeaderMap, StatusCode};
use report::ErrorReport;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Maximum length of an error message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Maximum length of a body quoted in an error message, in characters.
const MAX_BODY_CHARS: usize = 200;

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Message on one line, from the provider if it sent one.
    pub message: String,
    /// HTTP status; absent when the error object came with a successful status or inside a stream.
    pub status: Option<u16>,
    /// Error code of the provider.
    pub code: Option<String>,
    /// Wait that the provider asks for; only for kinds where waiting helps.
    pub retry_after: Option<Duration>,
    /// Error of the network, if there was no response.
    pub cause: Option<TransportErrorKind>,
    /// Headers of the response, because error responses carry rate limits too. Empty without a response.
    pub headers: Box<HeaderMap>,
}

impl Failure {
    /// Creates a failure that the provider did not report.
    pub(crate) fn local(kind: ErrorKind, message: impl Into<String>) -> Self {
        Failure {
            kind,
            message: one_line(&message.into()),
            status: None,
            code: None,
            retry_after: None,
            cause: None,
            headers: Box::default(),
        }
    }

    /// Adds the address and a remedy if the status means that the address is wrong.
    pub(crate) fn with_address(self, address: &str, remedy: &str) -> Failure {
        match self.status {
            Some(404 | 405) => {
                let message = self.message.trim_end_matches('.');
                Failure { message: format!("{message} ({address}); {remedy}"), ..self }
            }
            _ => self,
        }
    }

    /// Creates the failure for an error object inside a response or a stream.
    pub(crate) fn from_error_object(wire: Wire, error: &Value) -> Self {
        let report = ErrorReport::from_value(error);
        // Gateways put the upstream status into `code` as a number.
        let status = report
            .codes
            .iter()
            .find_map(|code| code.parse::<u16>().ok().filter(|status| (400..600).contains(status)));
        let message = report.message.clone().unwrap_or_else(|| {
            let json = error.to_string();
            format!("provider error: {}", truncate(&json, MAX_BODY_CHARS))
        });
        Self::new(wire, status, message, report, None, SystemTime::UNIX_EPOCH)
    }

    fn new(
        wire: Wire,
        status: Option<u16>,
        message: String,
        report: ErrorReport,
        headers: Option<&HeaderMap>,
        now: SystemTime,
    ) -> Self {
        let text = message.to_lowercase();
        let kind = table::classify(wire, status, &report.codes, &text);
        let retry_after = matches!(kind, ErrorKind::RateLimit | ErrorKind::Transient)
            .then(|| retry_delay::find(headers, &report, &message, now))
            .flatten();
        let code = report.code().map(|code| one_line(&code));
        // A daily limit without the time of its renewal: waiting does not help within a run.
        let is_daily = table::DAILY_LIMIT.iter().any(|part| text.contains(part));
        let kind = match kind {
            ErrorKind::RateLimit if is_daily && retry_after.is_none() => ErrorKind::Quota,
            kind => kind,
        };
        Failure {
            kind,
            message: truncate(&one_line(&message), MAX_MESSAGE_CHARS).to_owned(),
            status,
            code,
            retry_after,
            cause: None,
            headers: Box::new(headers.cloned().unwrap_or_default()),
        }
    }
}

/// Classifies a response with an error status. `now` is the time of its headers, some of which contain dates.
pub fn classify(
    wire: Wire,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Failure {
    let report = ErrorReport::parse(body);
    let message = match (&report.message, report.is_json) {
        (Some(message), _) => message.clone(),
        (None, false) if !body.trim_ascii().is_empty() => {
            // A character has at most four bytes.
            let start = &body.trim_ascii()[..body.trim_ascii().len().min(4 * MAX_BODY_CHARS)];
            truncate(&String::from_utf8_lossy(start), MAX_BODY_CHARS).to_owned()
        }
        _ => StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .map_or_else(|| format!("status {status}"), str::to_owned),
    };
    Failure::new(wire, Some(status), message, report, Some(headers), now)
}

/// Returns the first `chars` characters.
pub(crate) fn truncate(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
