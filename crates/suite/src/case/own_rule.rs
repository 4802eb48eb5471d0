//! Number of trials and threshold of a single case: the fields `trials` and `threshold`.

use crate::spec::MAX_TRIALS;
use bakeoff_stats::Threshold;
use serde_json::{Map, Value};

/// Values of a case that replace those of the suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnRule {
    /// Number of trials.
    pub trials: Option<u32>,
    /// Share of the trials that must pass.
    pub threshold: Option<Threshold>,
}

impl OwnRule {
    /// Whether the case has no own value.
    pub fn is_empty(self) -> bool {
        self == OwnRule::default()
    }

    /// Reads the fields of a case.
    pub(super) fn read(fields: &Map<String, Value>) -> Result<OwnRule, String> {
        Ok(OwnRule { trials: trials(fields)?, threshold: threshold(fields)? })
    }
}

fn trials(fields: &Map<String, Value>) -> Result<Option<u32>, String> {
    let Some(text) = number(fields.get("trials")) else { return Ok(None) };
    let trials = text.parse().ok().filter(|trials| (1..=MAX_TRIALS).contains(trials));
    trials.map(Some).ok_or_else(|| {
        format!("case `trials` must be an integer from 1 to {MAX_TRIALS}, not `{text}`")
    })
}

fn threshold(fields: &Map<String, Value>) -> Result<Option<Threshold>, String> {
    let Some(text) = number(fields.get("threshold")) else { return Ok(None) };
    let threshold = text.parse().map(Some);
    threshold
        .map_err(|_| format!("case `threshold` must be a plain decimal from 0 to 1, not `{text}`"))
}

/// Returns the text of a field, which is a number in most formats and a string in CSV files.
fn number(field: Option<&Value>) -> Option<String> {
    match field? {
        Value::Null => None,
        // Empty cell of a CSV file.
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.trim().to_owned()),
        other => Some(other.to_string()),
    }
}
