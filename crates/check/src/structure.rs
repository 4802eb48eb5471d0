//! Checks of the output's structure.

use crate::excerpt::excerpt;
use crate::info::{KindInfo, ParameterInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::part::first_json;
use crate::schema::Schema;
use crate::text::regex;
use crate::{CheckFinding, Error, Inconclusive, xml};
use granit_parser::{ErrorKind, Event, Parser};
use regex::Regex;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json_path::JsonPath;

/// A condition on the structure of the output.
#[derive(Debug, Clone)]
pub enum StructureCheck {
    /// One JSON value.
    IsJson,
    /// JSON that matches a schema.
    JsonSchema(Schema),
    /// JSON with a part that meets an expectation.
    JsonPath {
        /// Selects the parts (RFC 9535).
        path: Box<JsonPath>,
        /// What one of them must meet.
        expectation: PathExpectation,
    },
    /// Well-formed XML.
    IsXml,
    /// A YAML mapping or list.
    IsYaml,
    /// A JSON object or list anywhere in the output, optionally one that matches a schema.
    ContainsJson(Option<Schema>),
}

/// What a selected part of a JSON document must meet.
#[derive(Debug, Clone)]
pub enum PathExpectation {
    /// The part exists.
    Present,
    /// Equal to this value; `1` equals `1.0`, and a string also equals the number or boolean that it spells.
    Equal(Value),
    /// The pattern matches the string, or the JSON of any other value.
    Match(Regex),
}

const SCHEMA: ParameterInfo = optional(
    "schema",
    ParameterType::Table,
    "The JSON Schema; draft 2020-12 unless `$schema` names another.",
);

const FILE: ParameterInfo =
    optional("file", ParameterType::Text, "File with the JSON Schema, next to the suite.");

pub(crate) const IS_JSON: KindInfo =
    KindInfo::for_text("is_json", "The output is one JSON value.", &[], "kind = \"is_json\"");

pub(crate) const JSON_SCHEMA: KindInfo = KindInfo::for_text(
    "json_schema",
    "The output is JSON that matches a schema, given as `schema` or `file`.",
    &[SCHEMA, FILE],
    "kind = \"json_schema\"\nschema = { type = \"object\", required = [\"capital\"] }",
);

pub(crate) const JSON_PATH: KindInfo = KindInfo::for_text(
    "json_path",
    "The output is JSON, and one of the values that the path selects meets `equals` or `matches`; without either, it is sufficient that the path selects a value.",
    &[
        required("path", ParameterType::Template, "A JSONPath (RFC 9535)."),
        optional(
            "equals",
            ParameterType::Value,
            "The value; a string also equals the number or boolean that it spells.",
        ),
        optional(
            "matches",
            ParameterType::Template,
            "A regular expression for a string, or for the JSON of any other value.",
        ),
    ],
    "kind = \"json_path\"\npath = \"$.cities[0].name\"\nequals = \"{{ expected }}\"",
);

pub(crate) const IS_XML: KindInfo =
    KindInfo::for_text("is_xml", "The output is well-formed XML.", &[], "kind = \"is_xml\"");

pub(crate) const IS_YAML: KindInfo = KindInfo::for_text(
    "is_yaml",
    "The output is a YAML mapping or list; a plain scalar, which is also valid YAML, fails.",
    &[],
    "kind = \"is_yaml\"",
);

pub(crate) const CONTAINS_JSON: KindInfo = KindInfo::for_text(
    "contains_json",
    "The output contains a JSON object or list, which matches the schema if one is given.",
    &[SCHEMA, FILE],
    "kind = \"contains_json\"\nschema = { required = [\"capital\"] }",
);

impl StructureCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<StructureCheck>, Error> {
        let schema = || parameters.value("schema").map(Schema::new).transpose();
        Ok(Some(match name {
            "is_json" => StructureCheck::IsJson,
            "json_schema" => match schema()? {
                Some(schema) => StructureCheck::JsonSchema(schema),
                None => return Err(Error::new("kind", "the check needs `schema` or `file`")),
            },
            "json_path" => StructureCheck::JsonPath {
                path: Box::new(
                    JsonPath::parse(&parameters.non_empty_text("path")?)
                        .map_err(|error| Error::new("path", format!("not a JSONPath: {error}")))?,
                ),
                expectation: expectation(parameters)?,
            },
            "is_xml" => StructureCheck::IsXml,
            "is_yaml" => StructureCheck::IsYaml,
            "contains_json" => StructureCheck::ContainsJson(schema()?),
            _ => return Ok(None),
        }))
    }

    /// Tests a text. If the text is cut off, only findings that its rest cannot change are conclusive.
    pub(crate) fn find(
        &self,
        text: &str,
        completeness: Result<(), Inconclusive>,
    ) -> Result<CheckFinding, Inconclusive> {
        if !matches!(self, StructureCheck::ContainsJson(_)) {
            completeness.clone()?;
        }
        let well_formed = |name: &str, problem: Option<String>| match problem {
            None => CheckFinding::new(true, format!("is {name}")),
            Some(problem) => CheckFinding::new(false, format!("not {name}: {problem}")),
        };
        Ok(match self {
            StructureCheck::IsJson => {
                let problem = serde_json::from_str::<IgnoredAny>(text).err();
                well_formed("JSON", problem.map(|error| error.to_string()))
            }
            StructureCheck::IsXml => well_formed("XML", xml::problem(text.trim())),
            StructureCheck::IsYaml => well_formed("YAML", yaml_problem(text)?),
            StructureCheck::JsonSchema(schema) => match parse_json(text)? {
                Err(problem) => CheckFinding::new(false, problem),
                Ok(value) => match schema.problem(&value)? {
                    None => CheckFinding::new(true, "matches the schema"),
                    Some(problem) => CheckFinding::new(false, problem),
                },
            },
            StructureCheck::JsonPath { path, expectation } => match parse_json(text)? {
                Err(problem) => CheckFinding::new(false, problem),
                Ok(value) => test_path(path, expectation, &value),
            },
            StructureCheck::ContainsJson(schema) => {
                let found = match schema {
                    Some(schema) => {
                        first_json(text, &completeness, |part| schema.matches(&parse_part(part)?))?
                    }
                    None => first_json(text, &completeness, |_| Ok(true))?,
                };
                match (found, schema) {
                    (Some(part), _) => {
                        CheckFinding::new(true, format!("contains {}", excerpt(part)))
                    }
                    (None, None) => CheckFinding::new(
                        false,
                        format!("no JSON object or list in {}", excerpt(text)),
                    ),
                    (None, Some(_)) => CheckFinding::new(
                        false,
                        format!("no JSON that matches the schema in {}", excerpt(text)),
                    ),
                }
            }
        })
    }
}

/// Parses JSON; the inner error is a message for the user.
///
/// # Errors
///
/// Inconclusive if the text is JSON that cannot be represented: it is nested too deeply, or has a number that is too
/// large.
fn parse_json(text: &str) -> Result<Result<Value, String>, Inconclusive> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(Ok(value)),
        Err(error) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            Err(Inconclusive(format!("the JSON cannot be tested: {error}")))
        }
        Err(error) => Ok(Err(format!("not JSON: {error}"))),
    }
}

/// Parses a text that is known to be JSON.
fn parse_part(text: &str) -> Result<Value, Inconclusive> {
    parse_json(text)?.map_err(Inconclusive)
}

fn expectation(parameters: Parameters<'_>) -> Result<PathExpectation, Error> {
    match (parameters.value("equals"), parameters.text("matches")) {
        (Some(_), Some(_)) => {
            Err(Error::new("matches", "the check has either `equals` or `matches`, not both"))
        }
        (Some(value), None) => Ok(PathExpectation::Equal(value.clone())),
        (None, Some(pattern)) => Ok(PathExpectation::Match(regex("matches", pattern, false)?)),
        (None, None) => Ok(PathExpectation::Present),
    }
}

fn test_path(path: &JsonPath, expectation: &PathExpectation, value: &Value) -> CheckFinding {
    let nodes = path.query(value).all();
    if nodes.is_empty() {
        return CheckFinding::new(
            false,
            format!("{path} selects nothing in {}", excerpt(&value.to_string())),
        );
    }
    let holds = nodes.iter().any(|node| match expectation {
        PathExpectation::Present => true,
        PathExpectation::Equal(value) => is_equal(node, value),
        PathExpectation::Match(pattern) => match node {
            Value::String(text) => pattern.is_match(text),
            other => pattern.is_match(&other.to_string()),
        },
    });
    const MAX_SHOWN: usize = 3;
    let shown: Vec<String> =
        nodes.iter().take(MAX_SHOWN).map(|node| excerpt(&node.to_string())).collect();
    let more = if nodes.len() > MAX_SHOWN { ", …" } else { "" };
    let found = format!("{path} is {}{more}", shown.join(", "));
    CheckFinding::new(
        holds,
        match expectation {
            PathExpectation::Equal(value) if !holds => {
                format!("{found}, expected {}", excerpt(&value.to_string()))
            }
            PathExpectation::Match(pattern) if !holds => {
                format!("{found}, expected a match of /{pattern}/")
            }
            _ => found,
        },
    )
}

/// Returns whether two values are equal, as documented at [`PathExpectation::Equal`].
pub(crate) fn is_equal(node: &Value, expected: &Value) -> bool {
    match (node, expected) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64())
        }
        (Value::Number(number), Value::String(text)) => number.to_string() == *text,
        (Value::Bool(boolean), Value::String(text)) => boolean.to_string() == *text,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| {
                    other.get(key).is_some_and(|expected| is_equal(value, expected))
                })
        }
        _ => node == expected,
    }
}

/// Returns why a text is not YAML with a mapping or a list at the top level. It reads a stream of events, so
/// depth uses no stack and aliases are not expanded.
fn yaml_problem(text: &str) -> Result<Option<String>, Inconclusive> {
    let mut is_collection = false;
    let mut depth = 0_usize;
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::MappingStart(..) | Event::SequenceStart(..), _)) => {
                is_collection |= depth == 0;
                depth += 1;
            }
            Ok((Event::MappingEnd | Event::SequenceEnd, _)) => depth = depth.saturating_sub(1),
            Ok((Event::Scalar(..) | Event::Alias(..), _)) if depth == 0 => {
                return Ok(Some("neither a mapping nor a list".to_owned()));
            }
            Ok(_) => {}
            Err(error) if is_limit(error.kind()) => {
                return Err(Inconclusive(format!("the YAML cannot be tested: {error}")));
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
    Ok((!is_collection).then(|| "neither a mapping nor a list".to_owned()))
}

/// Whether the parser gave up on a document that may be valid.
fn is_limit(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::RecursionLimitExceeded
            | ErrorKind::AnchorCountOverflow
            | ErrorKind::DirectiveByteLimitExceeded { .. }
            | ErrorKind::TooManyReservedDirectiveParams { .. }
    )
}
