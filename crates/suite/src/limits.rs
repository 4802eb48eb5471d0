//! Reading of `[models.*.limits]`.

use super::spec::choice;
use super::tree::Node;
use crate::problem::Problems;
use bakeoff_pace::{Connections, Limits, LimitsError, RetryAfter, Strategy};
use std::time::Duration;

/// Words of `retry_after` with their values.
pub(crate) const RETRY_AFTER_CHOICES: [(&str, RetryAfter); 2] =
    [("strict", RetryAfter::Strict), ("test", RetryAfter::Test)];

/// Reads the limits of a model. Reports contradictory limits at the position of the key at fault.
pub(super) fn read(model: &Node<'_, '_>, problems: &mut Problems<'_>) -> Limits {
    let Some(table) = model.table("limits") else { return Limits::default() };
    let limits = from_table(&table);
    let Err(error) = limits.check() else { return limits };
    let span = table.get(error.key()).map_or(table.span.clone(), |value| value.span());
    problems.at(span, error.to_string()).hint = hint(&error);
    // Valid limits let the caller find further problems of the model.
    Limits::default()
}

/// Reads the table and skips values out of range, which the validation has reported.
fn from_table(table: &Node<'_, '_>) -> Limits {
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
    limits.retry_after = word("retry_after").and_then(|word| choice(&RETRY_AFTER_CHOICES, word));
    limits.max_retries = whole("max_retries").and_then(|number| u32::try_from(number).ok());
    limits.timeout = seconds("timeout");
    limits.attempt_timeout = seconds("attempt_timeout");
    limits
}

fn hint(error: &LimitsError) -> Option<String> {
    Some(match error {
        LimitsError::RateUnused { .. } => "remove it, or use `strategy = \"proactive\"`".to_owned(),
        LimitsError::NotAdaptive { .. } | LimitsError::Range(_) => {
            "use `strategy = \"adaptive\"`".to_owned()
        }
        LimitsError::BurstUnused => {
            "remove it, or use `strategy = \"proactive\"` with `rpm`".to_owned()
        }
        LimitsError::RetryAfterUnused(_) => "use `strategy = \"auto\"`".to_owned(),
        LimitsError::NoRate => {
            "add the limit of your account, such as `rpm = 500`, or use `auto`, which detects it"
                .to_owned()
        }
        _ => return None,
    })
}

/// Returns the limits as stored in `run.json`: the keys of the table that have a value.
pub fn describe(limits: &Limits) -> serde_json::Value {
    let connections = limits.connections.map(|connections| match connections {
        Connections::Max(max) => serde_json::json!(max),
        Connections::Range(bounds) => {
            serde_json::json!(format!("{}-{}-{}", bounds.min, bounds.start, bounds.max))
        }
    });
    let retry_after = limits.retry_after.and_then(|value| {
        RETRY_AFTER_CHOICES.iter().find(|(_, choice)| *choice == value).map(|(word, _)| word)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::LIMITS;
    use bakeoff_pace::AdaptiveBounds;

    #[test]
    fn description_has_all_keys_of_the_limits_table() {
        let mut limits = Limits::default();
        limits.connections = Some(Connections::Range(AdaptiveBounds { min: 1, start: 2, max: 3 }));
        limits.rpm = Some(1);
        limits.tpm = Some(1);
        limits.itpm = Some(1);
        limits.otpm = Some(1);
        limits.burst = Some(1);
        limits.cooldown_seconds = Some(1.0);
        limits.decrease_factor = Some(0.5);
        limits.scale_up_percent = Some(0.5);
        limits.retry_after = Some(RetryAfter::Test);
        limits.max_retries = Some(1);
        limits.timeout = Some(Duration::from_secs(1));
        limits.attempt_timeout = Some(Duration::from_secs(1));
        let described = describe(&limits);
        let mut keys: Vec<&str> = LIMITS.fields().map(|field| field.name).collect();
        keys.sort_unstable();
        let mut described: Vec<&str> =
            described.as_object().unwrap().keys().map(String::as_str).collect();
        described.sort_unstable();
        assert_eq!(described, keys);
    }
}
