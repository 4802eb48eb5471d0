//! The JSON Schema of the suite file, for editors.

use super::spec::{CHECK_COMMON, Field, SUITE_FILE, Section, Shape, own_fields};
use bakeoff_check::KINDS;
use serde_json::{Map, Value, json};

/// JSON Schema (draft 2020-12) of `bakeoff.toml`.
pub fn schema() -> Value {
    let mut root = section(&SUITE_FILE);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("bakeoff.toml");
    root
}

fn section(section: &Section) -> Value {
    let mut value = object(section.fields());
    value["description"] = json!(section.about);
    value
}

fn object<'f>(fields: impl Iterator<Item = &'f Field> + Clone) -> Value {
    let properties: Map<String, Value> =
        fields.clone().map(|field| (field.name.to_owned(), described(field))).collect();
    let required: Vec<&str> =
        fields.filter(|field| field.required).map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn described(field: &Field) -> Value {
    let mut value = shape(&field.shape);
    value["description"] = json!(field.about);
    value
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text | Shape::Template => json!({"type": "string"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Integer { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Shape::Number { least, most: f64::MAX } => json!({"type": "number", "minimum": least}),
        Shape::Number { least, most } => {
            json!({"type": "number", "minimum": least, "maximum": most})
        }
        Shape::Connections { most } => json!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": most},
            {"type": "string", "pattern": "^[0-9]+(-[0-9]+){0,2}$"},
        ]}),
        Shape::Choice(words) => json!({"enum": words}),
        Shape::Texts { some } => {
            json!({"type": "array", "items": {"type": "string"}, "minItems": i32::from(*some)})
        }
        Shape::Words(words) => json!({"type": "array", "items": {"enum": words}}),
        Shape::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Shape::TextLists => json!({
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        }),
        Shape::Table(table) => section(table),
        Shape::Tables(table) => json!({"type": "array", "items": section(table)}),
        Shape::Named(table) => json!({"type": "object", "additionalProperties": section(table)}),
        Shape::Open => json!({"type": "object"}),
        Shape::TextOrOpen => json!({"type": ["string", "object"]}),
        Shape::Any => json!({}),
        Shape::OpenList => json!({"type": "array", "items": {"type": "object"}}),
        Shape::Checks => json!({"type": "array", "items": {"oneOf": checks()}}),
    }
}

/// One alternative per kind of check.
fn checks() -> Vec<Value> {
    KINDS
        .iter()
        .map(|kind| {
            let mut check = object(CHECK_COMMON.fields());
            check["description"] = json!(kind.about);
            check["properties"]["kind"] = json!({"const": kind.name});
            for field in own_fields(kind) {
                check["properties"][field.name] = described(&field);
                if field.required
                    && let Some(required) = check["required"].as_array_mut()
                {
                    required.push(json!(field.name));
                }
            }
            check
        })
        .collect()
}
