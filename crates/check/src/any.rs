//! The kind `any`: a group of checks of which one must pass.

use crate::info::{KindInfo, ParameterType, required};
use crate::parameters::{Parameters, missing};
use crate::{Check, CheckFinding, CheckKind, Error};
use bakeoff_core::CheckResult;
use serde_json::{Map, Value};

/// Alternatives of which one must pass.
#[derive(Debug, Clone)]
pub struct AnyCheck {
    /// The alternatives.
    pub members: Vec<Check>,
}

pub(crate) const ANY: KindInfo = KindInfo::new(
    "any",
    "At least one of the checks in `checks` passes.",
    &[required(
        "checks",
        ParameterType::Checks,
        "Alternatives, each with `kind`, the parameters of its kind, and optionally `id` and `negate`.",
    )],
    "kind = \"any\"\nchecks = [\n    { kind = \"contains\", value = \"{{ expected }}\" },\n    { kind = \"regex\", value = '(?i)city of light' },\n]",
);

impl AnyCheck {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<AnyCheck, Error> {
        let tables = parameters.value("checks").and_then(Value::as_array);
        let tables = tables.filter(|tables| !tables.is_empty()).ok_or_else(|| missing("checks"))?;
        let member =
            |table: &Value| build_member(table.as_object().ok_or_else(|| missing("checks"))?);
        Ok(AnyCheck { members: tables.iter().map(member).collect::<Result<_, Error>>()? })
    }

    /// Returns whether a result decides the group, so that its further members need not run.
    pub fn is_decided_by(result: &CheckResult) -> bool {
        result.passed && result.score >= 1.0
    }

    /// Combines the results of the members: the group passes if one passes, and its score is the highest.
    pub fn combine(results: &[CheckResult]) -> CheckFinding {
        let finding = match results.iter().find(|result| result.passed) {
            Some(passed) => CheckFinding::new(true, format!("`{}` passed", passed.check)),
            None => {
                let reasons =
                    results.iter().map(|result| format!("{}: {}", result.check, result.message));
                CheckFinding::new(false, reasons.collect::<Vec<_>>().join("; "))
            }
        };
        let is_graded = results.iter().any(|result| result.graded);
        let highest = results.iter().map(|result| result.score).fold(0.0, f64::max);
        if is_graded { finding.with_score(highest) } else { finding }
    }
}

/// Builds a member. Errors name the parameter of the group, which is all that a caller knows.
fn build_member(table: &Map<String, Value>) -> Result<Check, Error> {
    let text = |key: &str| table.get(key).and_then(Value::as_str);
    let name = text("kind").and_then(KindInfo::find).map(|kind| kind.name);
    let name = name.ok_or_else(|| Error::new("checks", "a check has no known `kind`"))?;
    let kind = CheckKind::build(name, table)
        .map_err(|error| Error::new("checks", format!("`{name}`: {}", error.message)))?;
    Ok(Check {
        id: text("id").unwrap_or(name).to_owned(),
        kind,
        negate: table.get("negate").and_then(Value::as_bool).unwrap_or(false),
        required: true,
        weight: 1.0,
        min_score: table.get("min_score").and_then(Value::as_f64),
    })
}
