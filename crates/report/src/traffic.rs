//! Lines for request records, limit changes and pools.

use bakeoff_core::{HttpEntry, LimitRecord, PoolState};

/// Returns the column names of [`http_line`].
pub fn http_header() -> String {
    format!(
        "{:<12}  {:<6}  {:<18}  {:>8}  {:>9}  {:>7}  {:>7}  {:>8}  {}",
        "time", "status", "error", "latency", "in flight", "attempt", "sent", "received", "what"
    )
}

/// Formats one attempt of a call.
pub fn http_line(entry: &HttpEntry) -> String {
    let status = entry.status.map_or_else(|| "–".to_owned(), |status| status.to_string());
    let error = entry.error.map_or_else(|| "–".to_owned(), |kind| snake(&format!("{kind:?}")));
    let retry = match (&entry.retry_reason, entry.retry_after_ms) {
        (Some(reason), Some(0)) => format!("  retry queued: {reason}"),
        (Some(reason), Some(ms)) => format!("  retry in {}: {reason}", seconds(ms)),
        _ => String::new(),
    };
    format!(
        "{:<12}  {status:<6}  {error:<18}  {:>8}  {:>9}  {:>7}  {:>7}  {:>8}  {} {} {}{retry}",
        time_of_day(&entry.timestamp),
        latency(entry.latency_ms),
        entry.in_flight,
        entry.attempt,
        bytes(entry.request_bytes),
        bytes(entry.response_bytes),
        entry.model,
        entry.method,
        entry.url,
    )
}

/// Returns the column names of [`limit_line`].
pub fn limit_header() -> String {
    format!("{:<12}  {:>5}  {:>5}  {:<15}  {}", "time", "from", "to", "reason", "model")
}

/// Formats one change of a limit.
pub fn limit_line(change: &LimitRecord) -> String {
    let rate = change.rpm.map(|rpm| format!("{rpm} requests per minute"));
    let notes = [rate, change.binding.clone()].into_iter().flatten();
    let notes: String = notes.map(|note| format!("  {note}")).collect();
    format!(
        "{:<12}  {:>5}  {:>5}  {:<15}  {}{notes}",
        time_of_day(&change.timestamp),
        change.old_limit,
        change.new_limit,
        change.reason,
        change.model
    )
}

/// Formats the state of a pool during a run.
pub fn pool_line(pool: &PoolState) -> String {
    if pool.stopped.is_some() {
        return format!("{}  stopped after {} answers", pool.model, pool.answered);
    }
    let limit = pool.limit.map_or_else(String::new, |limit| format!("/{limit}"));
    let mut line = format!(
        "{}  {}{limit} in flight · {:.1}/s",
        pool.model, pool.in_flight, pool.answers_per_second
    );
    let counts = [
        (pool.rejected, "throttled"),
        (pool.failed, "failed"),
        (u64::from(pool.backing_off), "backing off"),
        (pool.waiting, "waiting"),
    ];
    for (count, state) in counts {
        if count > 0 {
            line.push_str(&format!(" · {count} {state}"));
        }
    }
    // Shorter waits change too fast to be readable.
    if let (None, Some(ms @ 1_000..)) = (pool.blocked_ms, pool.next_ms) {
        line.push_str(&format!(" · next in {}", seconds(ms)));
    }
    if let Some(binding) = &pool.binding {
        line.push_str(&format!(" · {binding}"));
    }
    line
}

/// Converts a name such as `RateLimit` to snake case, as in files.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Returns the time of day of an RFC 3339 timestamp, in milliseconds.
fn time_of_day(timestamp: &str) -> String {
    let time = timestamp.split_once('T').map_or(timestamp, |(_, time)| time);
    let time = time.trim_end_matches('Z');
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    format!("{whole}.{fraction}")
}

fn latency(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.1} ms"),
        ..10_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1e3),
    }
}

fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1e3),
        10_000..120_000 => format!("{:.0} s", ms as f64 / 1e3),
        _ => format!("{:.0} min", ms as f64 / 6e4),
    }
}

fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{number} B"),
        10_000..10_000_000 => format!("{:.0} kB", number as f64 / 1e3),
        _ => format!("{:.0} MB", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::ErrorKind;

    fn entry() -> HttpEntry {
        HttpEntry {
            timestamp: "2026-11-15T04:23:59.1234567Z".to_owned(),
            model: "gpt-4o-mini".to_owned(),
            method: "POST".to_owned(),
            url: "https://api.openai.com/v1/chat/completions".to_owned(),
            status: Some(200),
            error: None,
            latency_ms: 812.345,
            request_bytes: 412,
            response_bytes: 12_345,
            in_flight: 12,
            attempt: 1,
            retry_reason: None,
            retry_after_ms: None,
        }
    }

    #[test]
    fn http_lines_show_status_error_and_retry() {
        let throttled = HttpEntry {
            status: Some(429),
            error: Some(ErrorKind::RateLimit),
            retry_reason: Some("rate_limit_exceeded".to_owned()),
            retry_after_ms: Some(3_210),
            ..entry()
        };
        let queued = HttpEntry { retry_after_ms: Some(0), attempt: 2, ..throttled.clone() };
        let lost = HttpEntry {
            timestamp: "2026-11-15T04:23:59Z".to_owned(),
            status: None,
            error: Some(ErrorKind::Timeout),
            latency_ms: 60_000.0,
            response_bytes: 0,
            ..entry()
        };
        let mut lines = vec![http_header()];
        lines.extend([entry(), throttled, queued, lost].iter().map(http_line));
        insta::assert_snapshot!(lines.join("\n"), @r"
        time          status  error                latency  in flight  attempt     sent  received  what
        04:23:59.123  200     –                     812 ms         12        1    412 B     12 kB  gpt-4o-mini POST https://api.openai.com/v1/chat/completions
        04:23:59.123  429     rate_limit            812 ms         12        1    412 B     12 kB  gpt-4o-mini POST https://api.openai.com/v1/chat/completions  retry in 3.2 s: rate_limit_exceeded
        04:23:59.123  429     rate_limit            812 ms         12        2    412 B     12 kB  gpt-4o-mini POST https://api.openai.com/v1/chat/completions  retry queued: rate_limit_exceeded
        04:23:59.000  –       timeout               60.0 s         12        1    412 B       0 B  gpt-4o-mini POST https://api.openai.com/v1/chat/completions
        ");
    }

    #[test]
    fn limit_lines_show_old_and_new_limit() {
        let change = LimitRecord {
            timestamp: "2026-11-15T04:23:59.1Z".to_owned(),
            model: "gpt-4o-mini".to_owned(),
            old_limit: 20,
            new_limit: 16,
            reason: "rate_limit".to_owned(),
            rpm: None,
            binding: Some("cap 16".to_owned()),
        };
        let manual = LimitRecord { reason: "manual".to_owned(), rpm: Some(300), ..change.clone() };
        let lines = [limit_header(), limit_line(&change), limit_line(&manual)];
        insta::assert_snapshot!(lines.join("\n"), @r"
        time           from     to  reason           model
        04:23:59.100     20     16  rate_limit       gpt-4o-mini  cap 16
        04:23:59.100     20     16  manual           gpt-4o-mini  300 requests per minute  cap 16
        ");
    }

    #[test]
    fn pool_lines_show_load_and_waits() {
        let idle = PoolState {
            model: "gpt-4o-mini".to_owned(),
            in_flight: 3,
            limit: None,
            waiting: 0,
            backing_off: 0,
            answers_per_second: 0.0,
            answered: 17,
            rejected: 0,
            failed: 0,
            blocked_ms: None,
            next_ms: Some(30),
            binding: None,
            stopped: None,
        };
        let busy = PoolState {
            limit: Some(20),
            waiting: 40,
            backing_off: 1,
            answers_per_second: 12.34,
            rejected: 5,
            failed: 2,
            blocked_ms: Some(42_000),
            binding: Some("waiting until 14:03:00 UTC (Retry-After)".to_owned()),
            ..idle.clone()
        };
        let paced = PoolState { next_ms: Some(150_000), ..idle.clone() };
        let stopped = PoolState { stopped: Some("why".to_owned()), ..idle.clone() };
        let lines: Vec<String> = [idle, busy, paced, stopped].iter().map(pool_line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        gpt-4o-mini  3 in flight · 0.0/s
        gpt-4o-mini  3/20 in flight · 12.3/s · 5 throttled · 2 failed · 1 backing off · 40 waiting · waiting until 14:03:00 UTC (Retry-After)
        gpt-4o-mini  3 in flight · 0.0/s · next in 2 min
        gpt-4o-mini  stopped after 17 answers
        ");
    }
}
