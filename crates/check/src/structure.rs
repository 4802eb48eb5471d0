//! Checks of the output's structure.

use crate::extract::first_json;
use crate::info::{KindInfo, ParameterInfo, ParameterType, optional, required};
use crate::parameters::Parameters;
use crate::schema::Schema;
use crate::text::regex;
use crate::words::excerpt;
use crate::{CannotSay, Error, Finding, xml};
use granit_parser::{Event, Parser};
use regex::Regex;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json_path::JsonPath;

/// How the output must be built.
#[derive(Debug, Clone)]
pub enum Structure {
    /// One JSON value.
    IsJson,
    /// JSON that fits a schema.
    JsonSchema(Schema),
    /// JSON of which a part is as wanted.
    JsonPath {
        /// Which parts (RFC 9535).
        path: Box<JsonPath>,
        /// What one of them must be.
        wanted: Wanted,
    },
    /// Well-formed XML.
    IsXml,
    /// A YAML mapping or list.
    IsYaml,
    /// A JSON object or list somewhere in it, perhaps one that fits a schema.
    ContainsJson(Option<Schema>),
}

/// What a part of a JSON document must be.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// There.
    Present,
    /// This value; `1` is `1.0`, and a text is also a number or truth value that is written so.
    Equal(Value),
    /// A text in which the pattern matches; of other values, their JSON.
    Match(Regex),
}

const SCHEMA: ParameterInfo = optional(
    "schema",
    ParameterType::Table,
    "The JSON Schema, draft 2020-12 unless it says otherwise.",
);

const FILE: ParameterInfo =
    optional("file", ParameterType::Text, "A file beside the suite with the JSON Schema.");

pub(crate) const IS_JSON: KindInfo =
    KindInfo::of_text("is_json", "The output is one JSON value.", &[], "kind = \"is_json\"");

pub(crate) const JSON_SCHEMA: KindInfo = KindInfo::of_text(
    "json_schema",
    "The output is JSON that fits a schema: either `schema` or `file`.",
    &[SCHEMA, FILE],
    "kind = \"json_schema\"\nschema = { type = \"object\", required = [\"capital\"] }",
);

pub(crate) const JSON_PATH: KindInfo = KindInfo::of_text(
    "json_path",
    "The output is JSON, and one of the values that the path selects is as wanted; without `equals` and `matches`, that there is one is enough.",
    &[
        required("path", ParameterType::Template, "A JSONPath (RFC 9535)."),
        optional(
            "equals",
            ParameterType::Value,
            "The value; a text also equals a number or a truth value that is written so.",
        ),
        optional(
            "matches",
            ParameterType::Template,
            "A regular expression for a text, or for the JSON of another value.",
        ),
    ],
    "kind = \"json_path\"\npath = \"$.cities[0].name\"\nequals = \"{{ expected }}\"",
);

pub(crate) const IS_XML: KindInfo =
    KindInfo::of_text("is_xml", "The output is well-formed XML.", &[], "kind = \"is_xml\"");

pub(crate) const IS_YAML: KindInfo = KindInfo::of_text(
    "is_yaml",
    "The output is a YAML mapping or list; a mere text, which YAML allows, is not enough.",
    &[],
    "kind = \"is_yaml\"",
);

pub(crate) const CONTAINS_JSON: KindInfo = KindInfo::of_text(
    "contains_json",
    "A JSON object or list stands somewhere in the output, and fits the schema when there is one.",
    &[SCHEMA, FILE],
    "kind = \"contains_json\"\nschema = { required = [\"capital\"] }",
);

impl Structure {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Structure>, Error> {
        let schema = || parameters.value("schema").map(Schema::new).transpose();
        Ok(Some(match name {
            "is_json" => Structure::IsJson,
            "json_schema" => match schema()? {
                Some(schema) => Structure::JsonSchema(schema),
                None => return Err(Error::new("kind", "the check needs `schema` or `file`")),
            },
            "json_path" => Structure::JsonPath {
                path: Box::new(
                    JsonPath::parse(&parameters.some_text("path")?)
                        .map_err(|error| Error::new("path", format!("not a JSONPath: {error}")))?,
                ),
                wanted: wanted(parameters)?,
            },
            "is_xml" => Structure::IsXml,
            "is_yaml" => Structure::IsYaml,
            "contains_json" => Structure::ContainsJson(schema()?),
            _ => return Ok(None),
        }))
    }

    /// Looks at a text. Of one that is cut off, only what stands in it for certain is said.
    pub(crate) fn find(
        &self,
        text: &str,
        is_whole: Result<(), CannotSay>,
    ) -> Result<Finding, CannotSay> {
        if !matches!(self, Structure::ContainsJson(_)) {
            is_whole.clone()?;
        }
        let formed = |name: &str, problem: Option<String>| match problem {
            None => Finding::new(true, format!("is {name}")),
            Some(problem) => Finding::new(false, format!("not {name}: {problem}")),
        };
        Ok(match self {
            Structure::IsJson => {
                let problem = serde_json::from_str::<IgnoredAny>(text).err();
                formed("JSON", problem.map(|error| error.to_string()))
            }
            Structure::IsXml => formed("XML", xml::problem(text.trim())),
            Structure::IsYaml => formed("YAML", yaml_problem(text)),
            Structure::JsonSchema(schema) => match serde_json::from_str(text) {
                Err(error) => Finding::new(false, format!("not JSON: {error}")),
                Ok(value) => match schema.problem(&value) {
                    None => Finding::new(true, "fits the schema"),
                    Some(problem) => Finding::new(false, problem),
                },
            },
            Structure::JsonPath { path, wanted } => match serde_json::from_str(text) {
                Err(error) => Finding::new(false, format!("not JSON: {error}")),
                Ok(value) => selected(path, wanted, &value),
            },
            Structure::ContainsJson(schema) => {
                let fits = |value: &Value| schema.as_ref().is_none_or(|schema| schema.fits(value));
                match (first_json(text, &is_whole, fits)?, schema) {
                    (Some(part), _) => Finding::new(true, format!("there is {}", excerpt(part))),
                    (None, None) => {
                        Finding::new(false, format!("no JSON object or list in {}", excerpt(text)))
                    }
                    (None, Some(_)) => Finding::new(
                        false,
                        format!("no JSON that fits the schema in {}", excerpt(text)),
                    ),
                }
            }
        })
    }
}

fn wanted(parameters: Parameters<'_>) -> Result<Wanted, Error> {
    match (parameters.value("equals"), parameters.text("matches")) {
        (Some(_), Some(_)) => {
            Err(Error::new("matches", "the check has either `equals` or `matches`, not both"))
        }
        (Some(value), None) => Ok(Wanted::Equal(value.clone())),
        (None, Some(pattern)) => Ok(Wanted::Match(regex("matches", pattern, false)?)),
        (None, None) => Ok(Wanted::Present),
    }
}

fn selected(path: &JsonPath, wanted: &Wanted, value: &Value) -> Finding {
    let nodes = path.query(value).all();
    if nodes.is_empty() {
        return Finding::new(
            false,
            format!("{path} selects nothing in {}", excerpt(&value.to_string())),
        );
    }
    let holds = nodes.iter().any(|node| match wanted {
        Wanted::Present => true,
        Wanted::Equal(value) => same(node, value),
        Wanted::Match(pattern) => match node {
            Value::String(text) => pattern.is_match(text),
            other => pattern.is_match(&other.to_string()),
        },
    });
    const SHOWN: usize = 3;
    let shown: Vec<String> =
        nodes.iter().take(SHOWN).map(|node| excerpt(&node.to_string())).collect();
    let more = if nodes.len() > SHOWN { ", …" } else { "" };
    let found = format!("{path} is {}{more}", shown.join(", "));
    Finding::new(
        holds,
        match wanted {
            Wanted::Equal(value) if !holds => {
                format!("{found}, expected {}", excerpt(&value.to_string()))
            }
            Wanted::Match(pattern) if !holds => format!("{found}, expected a match of /{pattern}/"),
            _ => found,
        },
    )
}

pub(crate) fn same(node: &Value, wanted: &Value) -> bool {
    match (node, wanted) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64())
        }
        (Value::Number(number), Value::String(text)) => number.to_string() == *text,
        (Value::Bool(truth), Value::String(text)) => truth.to_string() == *text,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|wanted| same(value, wanted)))
        }
        _ => node == wanted,
    }
}

/// Why a text is not YAML with a mapping or a list at its top. Events are read one by one, so that
/// depth costs no stack and aliases are not followed.
fn yaml_problem(text: &str) -> Option<String> {
    let mut composed = false;
    let mut depth = 0_usize;
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::MappingStart(..) | Event::SequenceStart(..), _)) => {
                composed |= depth == 0;
                depth += 1;
            }
            Ok((Event::MappingEnd | Event::SequenceEnd, _)) => depth = depth.saturating_sub(1),
            Ok((Event::Scalar(..) | Event::Alias(..), _)) if depth == 0 => {
                return Some("neither a mapping nor a list".to_owned());
            }
            Ok(_) => {}
            Err(error) => return Some(error.to_string()),
        }
    }
    (!composed).then(|| "neither a mapping nor a list".to_owned())
}
