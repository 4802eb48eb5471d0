//! Parameters as they were written: values in which texts may be templates.

use crate::template::{Template, fields};
use bakeoff_check::ParameterType;
use minijinja::Value as Fields;
use serde_json::{Map, Value};

/// A value in which some texts are templates.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    Fixed(Value),
    Text(Template),
    List(Vec<Written>),
    Table(Vec<(String, Written)>),
}

/// Stands for a text that is not known yet. It is a pattern, a JSONPath and a file name, so that
/// nothing complains about it.
const UNKNOWN: &str = "$";

impl Written {
    /// Compiles the templates of a parameter; the error is for people.
    pub(crate) fn read(value: &Value, kind: ParameterType) -> Result<Written, String> {
        match kind {
            ParameterType::Template
            | ParameterType::Templates
            | ParameterType::Value
            | ParameterType::ValueTable
            | ParameterType::TemplateTable => Written::templates(value),
            _ => Ok(Written::Fixed(value.clone())),
        }
    }

    fn templates(value: &Value) -> Result<Written, String> {
        Ok(match value {
            // Most texts are no templates, and need not be compiled to know it.
            Value::String(text) if text.contains('{') => {
                let template = Template::compile(text).map_err(|error| error.in_words(text))?;
                match template.variables().is_empty() {
                    true => match template.render(&fields(&Map::new())) {
                        Ok(text) => Written::Fixed(text.into()),
                        // It fails for every case; who looks at all templates says why.
                        Err(_) => Written::Text(template),
                    },
                    false => Written::Text(template),
                }
            }
            Value::Array(items) => {
                Written::List(items.iter().map(Written::templates).collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => {
                let entry =
                    |(key, value): (&String, &Value)| Ok((key.clone(), Written::templates(value)?));
                Written::Table(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
            other => Written::Fixed(other.clone()),
        })
    }

    /// All templates in it.
    pub(crate) fn visit(&self, found: &mut impl FnMut(&Template)) {
        match self {
            Written::Fixed(_) => {}
            Written::Text(template) => found(template),
            Written::List(items) => items.iter().for_each(|item| item.visit(found)),
            Written::Table(entries) => entries.iter().for_each(|(_, item)| item.visit(found)),
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        let mut fixed = true;
        self.visit(&mut |_| fixed = false);
        fixed
    }

    /// Fills the templates in.
    pub(crate) fn render(&self, fields: &Fields) -> Result<Value, String> {
        self.fill(&|template| template.render(fields))
    }

    /// With something harmless in the place of every template.
    pub(crate) fn without_templates(&self) -> Value {
        self.fill(&|_| Ok(UNKNOWN.to_owned())).unwrap_or_default()
    }

    fn fill(&self, text: &dyn Fn(&Template) -> Result<String, String>) -> Result<Value, String> {
        Ok(match self {
            Written::Fixed(value) => value.clone(),
            Written::Text(template) => text(template)?.into(),
            Written::List(items) => {
                items.iter().map(|item| item.fill(text)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Written::Table(entries) => {
                let entry = |(key, item): &(String, Written)| Ok((key.clone(), item.fill(text)?));
                Value::Object(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
        })
    }
}
