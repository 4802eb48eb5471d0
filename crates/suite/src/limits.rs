//! `[models.*].limits`.

use super::tree::Node;
use crate::problem::Problems;
use bakeoff_pace::{Connections, Limits, LimitsError, RetryAfter, Strategy};
use std::time::Duration;

/// Reads the limits of a model. What does not go together is reported where it stands.
pub(super) fn read(model: &Node<'_, '_>, problems: &mut Problems<'_>) -> Limits {
    let Some(table) = model.table("limits") else { return Limits::default() };
    let limits = as_written(&table);
    let Err(error) = limits.check() else { return limits };
    let place = table.get(error.key()).map_or(table.span.clone(), |value| value.span());
    problems.at(place, error.to_string()).hint = hint(&error);
    // Whatever else is wrong with the model is found with limits that are right.
    Limits::default()
}

/// What is out of range has been reported already, and is left out here.
fn as_written(table: &Node<'_, '_>) -> Limits {
    let word = |name| table.text(name).map(|text| text.value);
    let whole = |name| table.integer(name).and_then(|number| u64::try_from(number).ok());
    let rate = |name| whole(name).filter(|rate| *rate > 0);
    let share = |name| table.number(name).filter(|share| (0.0..=1.0).contains(share));
    let seconds = |name| {
        let seconds = table.number(name).filter(|seconds| *seconds > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let mut limits = Limits::new(
        word("strategy").and_then(|name| name.parse::<Strategy>().ok()).unwrap_or_default(),
    );
    limits.connections = match table.text("connections") {
        Some(text) => text.value.parse().ok(),
        None => rate("connections").and_then(|n| u32::try_from(n).ok()).map(Connections::Max),
    };
    limits.rpm = rate("rpm");
    limits.tpm = rate("tpm");
    limits.itpm = rate("itpm");
    limits.otpm = rate("otpm");
    limits.burst = rate("burst").and_then(|number| u32::try_from(number).ok());
    limits.cooldown_seconds = table.number("cooldown_seconds").filter(|seconds| *seconds >= 0.0);
    limits.decrease_factor = share("decrease_factor");
    limits.scale_up_percent = share("scale_up_percent");
    limits.retry_after = match word("retry_after") {
        Some("strict") => Some(RetryAfter::Strict),
        Some("test") => Some(RetryAfter::Test),
        _ => None,
    };
    limits.max_retries = whole("max_retries").and_then(|number| u32::try_from(number).ok());
    limits.timeout = seconds("timeout");
    limits.attempt_timeout = seconds("attempt_timeout");
    limits
}

fn hint(error: &LimitsError) -> Option<String> {
    Some(match error {
        LimitsError::RateUnused { .. } => {
            "leave it out, or `strategy = \"proactive\"` keeps to it".to_owned()
        }
        LimitsError::NotAdaptive { .. } | LimitsError::Range(_) => {
            "`strategy = \"adaptive\"` uses it".to_owned()
        }
        LimitsError::BurstUnused => {
            "leave it out, or use `strategy = \"proactive\"` with `rpm`".to_owned()
        }
        LimitsError::RetryAfterUnused(_) => "`strategy = \"auto\"` uses it".to_owned(),
        LimitsError::NoRate => {
            "add the limit of your account, such as `rpm = 500`, or let `auto` find it out"
                .to_owned()
        }
        _ => return None,
    })
}

/// The limits as `run.json` tells them.
pub fn describe(limits: &Limits) -> serde_json::Value {
    let connections = limits.connections.map(|connections| match connections {
        Connections::Max(most) => serde_json::json!(most),
        Connections::Range(bounds) => {
            serde_json::json!(format!("{}-{}-{}", bounds.min, bounds.start, bounds.max))
        }
    });
    let retry_after = limits.retry_after.map(|meaning| match meaning {
        RetryAfter::Strict => "strict",
        RetryAfter::Test => "test",
    });
    let mut value = serde_json::json!({
        "strategy": limits.strategy.as_str(),
        "connections": connections,
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "itpm": limits.itpm,
        "otpm": limits.otpm,
        "burst": limits.burst,
        "cooldown_seconds": limits.cooldown_seconds,
        "decrease_factor": limits.decrease_factor,
        "scale_up_percent": limits.scale_up_percent,
        "retry_after": retry_after,
        "max_retries": limits.max_retries,
        "timeout": limits.timeout.map(|time| time.as_secs_f64()),
        "attempt_timeout": limits.attempt_timeout.map(|time| time.as_secs_f64()),
    });
    if let Some(entries) = value.as_object_mut() {
        entries.retain(|_, entry| !entry.is_null());
    }
    value
}
