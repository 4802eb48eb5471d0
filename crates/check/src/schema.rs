//! JSON Schema validation.

use crate::{Error, Inconclusive};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Steps after which a search for a match is given up; about 20 ms.
const MAX_BACKTRACKS: usize = 200_000;

/// A compiled JSON Schema; draft 2020-12 unless `$schema` names another. References to other documents are
/// not followed.
#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    /// Validators of the patterns whose search can exceed [`MAX_BACKTRACKS`].
    backtracking: Arc<[Validator]>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema.
    ///
    /// Patterns match in linear time, unless one of them has a lookaround or a backreference.
    ///
    /// # Errors
    ///
    /// The value is not a JSON Schema.
    pub fn new(schema: &Value) -> Result<Schema, Error> {
        if let Ok(validator) = compile_linear(schema) {
            return Ok(Schema { validator: Arc::new(validator), backtracking: Arc::new([]) });
        }
        let validator = compile_backtracking(schema)
            .map_err(|error| Error::new("schema", format!("not a JSON Schema: {error}")))?;
        let mut patterns = Vec::new();
        collect_patterns(schema, &mut patterns);
        let schemas = patterns.into_iter().map(|pattern| json!({ "pattern": pattern }));
        let backtracking = schemas
            .filter(|schema| compile_linear(schema).is_err())
            .filter_map(|schema| compile_backtracking(&schema).ok())
            .collect();
        Ok(Schema { validator: Arc::new(validator), backtracking })
    }

    pub(crate) fn matches(&self, value: &Value) -> Result<bool, Inconclusive> {
        self.require_decidable(value)?;
        Ok(self.validator.is_valid(value))
    }

    /// Returns why and where a value does not match; `None` if it matches.
    ///
    /// # Errors
    ///
    /// Inconclusive if the search for a pattern takes too long.
    pub fn problem(&self, value: &Value) -> Result<Option<String>, Inconclusive> {
        self.require_decidable(value)?;
        let Some(error) = self.validator.iter_errors(value).next() else { return Ok(None) };
        let message: String = error.to_string().chars().take(300).collect();
        Ok(Some(match error.instance_path().as_str() {
            "" => message,
            path => format!("{message} at {path}"),
        }))
    }

    /// Fails if a search exceeds its limit. The validator treats such a text as one without a match, which `not` and
    /// `anyOf` turn into either result, so each text is searched in advance. This includes texts to which a pattern does
    /// not apply.
    fn require_decidable(&self, value: &Value) -> Result<(), Inconclusive> {
        if self.backtracking.is_empty() {
            return Ok(());
        }
        match value {
            Value::String(_) => {
                let mut errors = self.backtracking.iter().flat_map(|one| one.validate(value).err());
                let is_undecided = |error: ValidationError<'_>| {
                    matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })
                };
                match errors.any(is_undecided) {
                    true => Err(Inconclusive(
                        "the search for a `pattern` of the schema took too many steps; a pattern without lookaround \
                         and backreferences has no such limit"
                            .to_owned(),
                    )),
                    false => Ok(()),
                }
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.require_decidable(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
                // `patternProperties` and `propertyNames` apply to names.
                self.require_decidable(&Value::from(name.as_str()))?;
                self.require_decidable(item)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}

fn compile_linear(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema)
}

fn compile_backtracking(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let options = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
    jsonschema::options().with_pattern_options(options).build(schema)
}

/// Collects the patterns of a schema. Examples and constants may look like patterns, which does no harm.
fn collect_patterns<'s>(schema: &'s Value, patterns: &mut Vec<&'s str>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) => patterns.push(pattern),
                    ("patternProperties", Value::Object(properties)) => {
                        patterns.extend(properties.keys().map(String::as_str));
                    }
                    _ => {}
                }
                collect_patterns(value, patterns);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, patterns)),
        _ => {}
    }
}
