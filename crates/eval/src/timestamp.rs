//! Timestamps in files and events.

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats a time as RFC 3339 in UTC, such as `2026-01-31T09:30:00.250Z`.
pub(crate) fn rfc3339(time: impl Into<DateTime<Utc>>) -> String {
    time.into().to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
