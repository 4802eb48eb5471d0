//! JSON values whose strings may be templates, for check parameters and request bodies.

use crate::template::{RenderError, Template, fields};
use bakeoff_check::ParameterType;
use minijinja::Value as Fields;
use serde_json::{Map, Value};

/// JSON value in which strings may be templates.
#[derive(Debug, Clone)]
pub(crate) enum TemplateValue {
    Fixed(Value),
    Text(Template),
    List(Vec<TemplateValue>),
    Table(Vec<(String, TemplateValue)>),
}

/// Placeholder for the text of a template: valid as a regular expression, a JSONPath and a file name.
const PLACEHOLDER: &str = "$";

impl TemplateValue {
    /// Compiles the templates of a parameter. The error is a message for the user.
    pub(crate) fn read(value: &Value, kind: ParameterType) -> Result<TemplateValue, String> {
        match kind {
            ParameterType::Template
            | ParameterType::Templates
            | ParameterType::Value
            | ParameterType::ValueTable
            | ParameterType::TemplateTable => TemplateValue::compile(value),
            _ => Ok(TemplateValue::Fixed(value.clone())),
        }
    }

    fn compile(value: &Value) -> Result<TemplateValue, String> {
        Ok(match value {
            // Strings without a brace are not templates and need no compilation.
            Value::String(text) if text.contains('{') => {
                let template = Template::compile(text).map_err(|error| error.describe(text))?;
                match template.variables().is_empty() {
                    true => match template.render(&fields(&Map::new())) {
                        Ok(text) => TemplateValue::Fixed(text.into()),
                        // It fails for all cases; `check_variables` reports the reason.
                        Err(_) => TemplateValue::Text(template),
                    },
                    false => TemplateValue::Text(template),
                }
            }
            Value::Array(items) => TemplateValue::List(
                items.iter().map(TemplateValue::compile).collect::<Result<_, _>>()?,
            ),
            Value::Object(entries) => {
                let entry = |(key, value): (&String, &Value)| {
                    Ok((key.clone(), TemplateValue::compile(value)?))
                };
                TemplateValue::Table(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
            other => TemplateValue::Fixed(other.clone()),
        })
    }

    /// Calls `visitor` for each template.
    pub(crate) fn visit(&self, visitor: &mut impl FnMut(&Template)) {
        match self {
            TemplateValue::Fixed(_) => {}
            TemplateValue::Text(template) => visitor(template),
            TemplateValue::List(items) => items.iter().for_each(|item| item.visit(visitor)),
            TemplateValue::Table(entries) => {
                entries.iter().for_each(|(_, item)| item.visit(visitor))
            }
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        let mut fixed = true;
        self.visit(&mut |_| fixed = false);
        fixed
    }

    /// Renders the templates.
    pub(crate) fn render(&self, fields: &Fields) -> Result<Value, RenderError> {
        self.render_with(&|template| template.render(fields))
    }

    /// Returns the value with a placeholder for each template.
    pub(crate) fn without_templates(&self) -> Value {
        self.render_with(&|_| Ok(PLACEHOLDER.to_owned())).unwrap_or_default()
    }

    fn render_with(
        &self,
        text: &dyn Fn(&Template) -> Result<String, RenderError>,
    ) -> Result<Value, RenderError> {
        Ok(match self {
            TemplateValue::Fixed(value) => value.clone(),
            TemplateValue::Text(template) => text(template)?.into(),
            TemplateValue::List(items) => items
                .iter()
                .map(|item| item.render_with(text))
                .collect::<Result<Vec<_>, _>>()?
                .into(),
            TemplateValue::Table(entries) => {
                let entry = |(key, item): &(String, TemplateValue)| {
                    Ok((key.clone(), item.render_with(text)?))
                };
                Value::Object(entries.iter().map(entry).collect::<Result<_, RenderError>>()?)
            }
        })
    }
}
