//! Text and JSON of a probe report.

use bakeoff_llm::probe::{
    HeaderLimit, LimitFinding, ProbeLevel, ProbeReport, ProbeStop, connections_for_rate,
};
use bakeoff_pace::Dimension;
use serde_json::{Value, json};

/// Returns the progress line of a finished level.
pub(super) fn progress(level: &ProbeLevel) -> String {
    format!("{}: {} of {} accepted", level_name(level), level.accepted, level.sent)
}

fn level_name(level: &ProbeLevel) -> String {
    match level.per_second {
        Some(rate) => format!("{} {rate:.1}/s", level.purpose.as_str()),
        None => format!("{} {}", level.purpose.as_str(), level.connections),
    }
}

/// Returns the report as lines: the levels, the finding, and last the line for a suite.
pub(super) fn lines(model: &str, report: &ProbeReport) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<16} {:>5} {:>8} {:>8} {:>6} {:>8} {:>8} {:>9}",
        "level", "sent", "accepted", "rejected", "failed", "p50", "p95", "tokens/s"
    )];
    lines.extend(report.levels.iter().map(row));
    lines.push(String::new());
    lines.extend(report.header_limits.iter().map(header_limit));
    if let Some(wait) = report.longest_wait {
        lines.push(format!("longest requested wait: {:.1} s", wait.as_secs_f64()));
    }
    lines.push(format!("{model}: {}", finding(report)));
    let cost = report.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    lines.push(format!("{} requests, {:.0} s{cost}", report.requests, report.seconds));
    if let Some(stop) = report.stop {
        lines.push(format!("stopped early: {}", stop_reason(stop)));
    }
    if let Some(failure) = &report.last_failure {
        lines.push(format!("last failure: {failure}"));
    }
    if let Some(advice) = report.recommendation {
        let confirmed = if report.is_confirmed { "confirmed" } else { "not confirmed" };
        lines.push(format!("recommended, 5 % below the limit ({confirmed}):"));
        lines.push(advice.to_string());
    }
    lines
}

fn row(level: &ProbeLevel) -> String {
    let time = |seconds: Option<f64>| {
        seconds.map_or("-".to_owned(), |seconds| match seconds < 1.0 {
            true => format!("{:.0} ms", seconds * 1e3),
            false => format!("{seconds:.1} s"),
        })
    };
    format!(
        "{:<16} {:>5} {:>8} {:>8} {:>6} {:>8} {:>8} {:>9.0}",
        level_name(level),
        level.sent,
        level.accepted,
        level.rejected,
        level.failed,
        time(level.p50_seconds),
        time(level.p95_seconds),
        level.tokens_per_second,
    )
}

fn dimension(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
        Dimension::InputTokens => "input tokens",
        Dimension::OutputTokens => "output tokens",
    }
}

fn header_limit(limit: &HeaderLimit) -> String {
    let window = match (limit.window_seconds, limit.per_minute()) {
        (Some(window), Some(minute)) => format!(" in {window:.1} s, {minute:.0} per minute"),
        _ => String::new(),
    };
    let unit = dimension(limit.dimension);
    format!(
        "headers: {:.0} {unit}{window}; least remaining {:.0}",
        limit.limit, limit.min_remaining
    )
}

/// Describes the throughput of a rate limit, and the concurrency that it needs with slow responses.
fn paced_throughput(report: &ProbeReport, per_second: f64) -> String {
    let (rpm, slow) = ((per_second * 60.0) as u64, report.slow_seconds_per_request);
    let usual = connections_for_rate(rpm, report.seconds_per_request);
    let connections = match connections_for_rate(rpm, slow) {
        most if most == usual => usual.to_string(),
        most => format!("{usual} to {most}"),
    };
    format!(
        "about {:.0} tokens per minute; with {:.2} s per response, {slow:.2} s for slow ones, the rate needs \
         {connections} requests in flight",
        per_second * 60.0 * report.tokens_per_request,
        report.seconds_per_request,
    )
}

/// Describes the throughput at a concurrency.
fn throughput(report: &ProbeReport, per_minute: f64) -> String {
    let (rpm, seconds) = (per_minute as u64, report.seconds_per_request);
    format!(
        "about {:.0} tokens per minute; {rpm} rpm × {seconds:.2} s / 60 = {} in flight",
        per_minute * report.tokens_per_request,
        connections_for_rate(rpm, seconds),
    )
}

fn finding(report: &ProbeReport) -> String {
    let at_once = |connections: f64| connections * 60.0 / report.seconds_per_request.max(1e-3);
    match report.limit {
        LimitFinding::NotReached { connections } => format!(
            "no limit found with up to {connections} requests in flight; {}",
            throughput(report, at_once(connections.into()))
        ),
        LimitFinding::Cap { connections } => format!(
            "at most {connections:.0} requests in flight (rejections depend on concurrency, not on \
             rate); {}",
            throughput(report, at_once(connections))
        ),
        LimitFinding::Rate { per_second } => format!(
            "at most {:.0} requests per minute, {per_second:.1} per second (rejections depend on rate, \
             not on concurrency); {}",
            per_second * 60.0,
            paced_throughput(report, per_second)
        ),
        LimitFinding::RateAndCap { per_second, connections } => format!(
            "at most {:.0} requests per minute, {per_second:.1} per second, and at most {connections:.0} \
             requests in flight; {}",
            per_second * 60.0,
            paced_throughput(report, per_second)
        ),
        LimitFinding::Knee { connections } => format!(
            "no rejections, but latency grows with more than {connections:.0} requests in flight; {}",
            throughput(report, at_once(connections))
        ),
        LimitFinding::Unknown => undetermined(report).to_owned(),
    }
}

/// Describes a limit that was not determined.
fn undetermined(report: &ProbeReport) -> &'static str {
    // More requests help only if the bounds ended the probe.
    let is_bounded = !matches!(
        report.stop,
        Some(ProbeStop::Quota | ProbeStop::AllRejected | ProbeStop::Failures)
    );
    match is_bounded && report.levels.iter().any(|level| level.rejected > 0) {
        true => {
            "limit not determined: there were rejections, but too few requests to tell a rate limit from a \
             concurrency cap or to measure it; raise `--max-seconds` or `--max-requests`"
        }
        false => "limit not determined",
    }
}

fn stop_reason(stop: ProbeStop) -> &'static str {
    match stop {
        ProbeStop::Requests => "maximum number of requests reached; raise `--max-requests`",
        ProbeStop::Time => "maximum duration reached; raise `--max-seconds`",
        ProbeStop::Cost => "maximum cost reached; raise `--max-cost`",
        ProbeStop::AllRejected => "all requests were rejected; try again later",
        ProbeStop::Failures => {
            "most requests failed for reasons other than limits (see the last failure)"
        }
        ProbeStop::Quota => "quota exhausted, or blocked for long (see the last failure)",
        ProbeStop::Interrupted => "interrupted",
    }
}

/// Returns the report as the fields of the `done` event.
pub(super) fn to_json(model: &str, report: &ProbeReport) -> Value {
    let limits = report.recommendation.map(|advice| advice.limits());
    let limit = match report.limit {
        LimitFinding::NotReached { connections } => {
            json!({"kind": "not_reached", "connections": connections})
        }
        LimitFinding::Cap { connections } => json!({"kind": "cap", "connections": connections}),
        LimitFinding::Rate { per_second } => {
            json!({"kind": "rate", "per_second": per_second, "rpm": per_second * 60.0})
        }
        LimitFinding::RateAndCap { per_second, connections } => json!({
            "kind": "rate_and_cap",
            "per_second": per_second,
            "rpm": per_second * 60.0,
            "connections": connections,
        }),
        LimitFinding::Knee { connections } => json!({"kind": "knee", "connections": connections}),
        LimitFinding::Unknown => json!({"kind": "unknown"}),
    };
    let stop = report.stop.map(|stop| match stop {
        ProbeStop::Requests => "requests",
        ProbeStop::Time => "time",
        ProbeStop::Cost => "cost",
        ProbeStop::AllRejected => "all_rejected",
        ProbeStop::Failures => "failures",
        ProbeStop::Quota => "quota",
        ProbeStop::Interrupted => "interrupted",
    });
    json!({
        "model": model,
        "limit": limit,
        "recommended": limits.map(|limits| json!({
            "strategy": limits.strategy.as_str(),
            "connections": report.recommendation.and_then(|advice| advice.connections()),
            "rpm": limits.rpm,
            "tpm": limits.tpm,
            "burst": limits.burst,
        })),
        "line": report.recommendation.map(|advice| advice.to_string()),
        "confirmed": report.is_confirmed,
        "stopped": stop,
        "headers": report.header_limits.iter().map(|limit| json!({
            "counts": dimension(limit.dimension),
            "limit": limit.limit,
            "least_remaining": limit.min_remaining,
            "window_seconds": limit.window_seconds,
            "per_minute": limit.per_minute(),
        })).collect::<Vec<_>>(),
        "last_failure": report.last_failure,
        "longest_wait_seconds": report.longest_wait.map(|wait| wait.as_secs_f64()),
        "requests": report.requests,
        "seconds": report.seconds,
        "seconds_per_request": report.seconds_per_request,
        "slow_seconds_per_request": report.slow_seconds_per_request,
        "tokens_per_request": report.tokens_per_request,
        "cost_dollars": report.cost.map(|cost| cost.as_dollars()),
        "levels": report.levels.iter().map(level_to_json).collect::<Vec<_>>(),
    })
}

/// Returns the fields of a `level` event.
pub(super) fn level_to_json(level: &ProbeLevel) -> Value {
    json!({
        "purpose": level.purpose.as_str(),
        "connections": level.connections,
        "per_second": level.per_second,
        "sent": level.sent,
        "accepted": level.accepted,
        "rejected": level.rejected,
        "failed": level.failed,
        "seconds": level.seconds,
        "p50_seconds": level.p50_seconds,
        "p95_seconds": level.p95_seconds,
        "tokens_per_second": level.tokens_per_second,
    })
}
