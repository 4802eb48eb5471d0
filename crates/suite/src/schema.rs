//! JSON Schema of the suite file, for editors.

use super::spec::{CHECK_COMMON, Field, SUITE_FILE, Section, ValueType, kind_fields};
use bakeoff_check::KINDS;
use serde_json::{Map, Value, json};

/// Returns the JSON Schema (draft 2020-12) of `bakeoff.toml`.
pub fn schema() -> Value {
    let mut root = section_schema(&SUITE_FILE);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("bakeoff.toml");
    root
}

fn section_schema(section: &Section) -> Value {
    let mut value = object_schema(section.fields());
    value["description"] = json!(section.about);
    value
}

fn object_schema<'f>(fields: impl Iterator<Item = &'f Field> + Clone) -> Value {
    let properties: Map<String, Value> =
        fields.clone().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    let required: Vec<&str> =
        fields.filter(|field| field.required).map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn field_schema(field: &Field) -> Value {
    let mut value = type_schema(&field.value_type);
    value["description"] = json!(field.about);
    value
}

fn type_schema(value_type: &ValueType) -> Value {
    match value_type {
        ValueType::Text | ValueType::Template => json!({"type": "string"}),
        ValueType::Boolean => json!({"type": "boolean"}),
        ValueType::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ValueType::Number { min, max: f64::MAX } => json!({"type": "number", "minimum": min}),
        ValueType::Number { min, max } => {
            json!({"type": "number", "minimum": min, "maximum": max})
        }
        ValueType::Connections { max } => json!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": max},
            {"type": "string", "pattern": "^[0-9]+(-[0-9]+){0,2}$"},
        ]}),
        // Editors suggest the words in lower case.
        ValueType::Choice(words) | ValueType::AnyCaseChoice(words) => json!({"enum": words}),
        ValueType::TextList { non_empty } => {
            json!({"type": "array", "items": {"type": "string"}, "minItems": i32::from(*non_empty)})
        }
        ValueType::ChoiceList(words) => json!({"type": "array", "items": {"enum": words}}),
        ValueType::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ValueType::TextListMap => json!({
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        }),
        ValueType::Table(table) => section_schema(table),
        ValueType::Tables(table) => json!({"type": "array", "items": section_schema(table)}),
        ValueType::NamedTables(table) => {
            json!({"type": "object", "additionalProperties": section_schema(table)})
        }
        ValueType::OpenTable => json!({"type": "object"}),
        ValueType::TextOrTable => json!({"type": ["string", "object"]}),
        ValueType::Any => json!({}),
        ValueType::OpenTables => json!({"type": "array", "items": {"type": "object"}}),
        ValueType::Checks => json!({"type": "array", "items": {"oneOf": check_schemas()}}),
    }
}

/// Returns one schema per check kind.
fn check_schemas() -> Vec<Value> {
    KINDS
        .iter()
        .map(|kind| {
            let mut check = object_schema(CHECK_COMMON.fields());
            check["description"] = json!(kind.about);
            check["properties"]["kind"] = json!({"const": kind.name});
            for field in kind_fields(kind) {
                check["properties"][field.name] = match field.value_type {
                    // The checks of a group have the form of all checks.
                    ValueType::Checks => json!({
                        "description": field.about,
                        "type": "array",
                        "minItems": 1,
                        "items": {"$ref": "#/properties/check/items"},
                    }),
                    _ => field_schema(&field),
                };
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
