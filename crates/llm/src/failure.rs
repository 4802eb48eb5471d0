//! Why did a provider not answer?
//!
//! One table turns what providers say into the kinds that the rest of Bakeoff knows. Whether and
//! when to try again is decided elsewhere; here is only what the provider said about it.

mod report;
mod table;
mod wait;

use crate::Wire;
use bakeoff_core::ErrorKind;
use http::{HeaderMap, StatusCode};
use report::Report;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// A call that the provider refused or could not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What happened, in the provider's words where it has any.
    pub message: String,
    /// The HTTP status; absent when the error came inside an answer.
    pub status: Option<u16>,
    /// The provider's own name of the error.
    pub code: Option<String>,
    /// How long the provider asks to wait; only where waiting can help.
    pub retry_after: Option<Duration>,
    /// The answer's headers: limits can be learned from refusals too. Empty when there was none.
    pub headers: Box<HeaderMap>,
}

impl Failure {
    /// A failure that is not the provider's own.
    pub(crate) fn local(kind: ErrorKind, message: impl Into<String>) -> Self {
        Failure {
            kind,
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            headers: Box::default(),
        }
    }

    /// The failure that an error object inside an answer or a stream describes.
    pub(crate) fn inside(wire: Wire, error: &Value) -> Self {
        let report = Report::from_value(error);
        // Gateways pass the upstream status on as a number in `code`.
        let status = report
            .codes
            .iter()
            .find_map(|code| code.parse::<u16>().ok().filter(|status| (400..600).contains(status)));
        let message = report.message.clone().unwrap_or_else(|| {
            let json = error.to_string();
            format!("the provider reported an error: {}", cut(&json, MAX_BODY_CHARS))
        });
        Self::new(wire, status, message, report, None, SystemTime::UNIX_EPOCH)
    }

    fn new(
        wire: Wire,
        status: Option<u16>,
        message: String,
        report: Report,
        headers: Option<&HeaderMap>,
        now: SystemTime,
    ) -> Self {
        let text = message.to_lowercase();
        let kind = table::kind(wire, status, &report.codes, &text);
        let retry_after = matches!(kind, ErrorKind::RateLimit | ErrorKind::Transient)
            .then(|| wait::hint(headers, &report, &message, now))
            .flatten();
        let code = report.name();
        Failure {
            kind,
            message: cut(&message, MAX_MESSAGE_CHARS).to_owned(),
            status,
            code,
            retry_after,
            headers: Box::new(headers.cloned().unwrap_or_default()),
        }
    }
}

const MAX_MESSAGE_CHARS: usize = 500;
const MAX_BODY_CHARS: usize = 200;

/// What a reply with an error status means. `now` is when its headers came: some name dates.
pub fn classify(
    wire: Wire,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Failure {
    let report = Report::read(body);
    let message = match (&report.message, report.is_json) {
        (Some(message), _) => message.clone(),
        (None, false) if !body.trim_ascii().is_empty() => {
            // Four bytes is the longest character, so this is always enough.
            let start = &body.trim_ascii()[..body.trim_ascii().len().min(4 * MAX_BODY_CHARS)];
            cut(&String::from_utf8_lossy(start), MAX_BODY_CHARS).to_owned()
        }
        _ => StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .map_or_else(|| format!("status {status}"), str::to_owned),
    };
    Failure::new(wire, Some(status), message, report, Some(headers), now)
}

/// The first `chars` characters.
pub(crate) fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
