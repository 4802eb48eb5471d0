//! Templates with case fields, for prompts and check parameters.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Instruction limit of a rendering: enough for any prompt, and a bound for endless loops.
const FUEL: u64 = 1_000_000;

/// Compiled template.
#[derive(Debug, Clone)]
pub struct Template {
    source: Arc<str>,
    environment: Arc<Environment<'static>>,
    variables: BTreeSet<String>,
}

const NAME: &str = "template";

/// Converts the fields of a case into a template value.
pub(crate) fn fields(row: &serde_json::Map<String, serde_json::Value>) -> Value {
    Value::from(Serde(row))
}

/// Returns the fields of a case with additional strings, which have precedence.
pub fn with_texts<'n>(
    fields: &Value,
    texts: impl IntoIterator<Item = (&'n str, &'n str)>,
) -> Value {
    let texts: BTreeMap<&str, Value> =
        texts.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
    if texts.is_empty() {
        return fields.clone();
    }
    // The first map has precedence.
    minijinja::value::merge_maps([Value::from(texts), fields.clone()])
}

/// Adds the models of roles to the fields, as `roles`.
pub(crate) fn with_roles(fields: &Value, roles: &BTreeMap<String, String>) -> Value {
    if roles.is_empty() {
        return fields.clone();
    }
    let models = roles.iter().map(|(role, model)| (role.as_str(), Value::from(model.as_str())));
    let models: BTreeMap<&str, Value> = models.collect();
    let roles = BTreeMap::from([("roles", Value::from(models))]);
    minijinja::value::merge_maps([Value::from(roles), fields.clone()])
}

/// Compilation error of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateError {
    pub(crate) message: String,
    /// Byte range of the error in the template, if known.
    pub(crate) span: Option<Range<usize>>,
}

impl TemplateError {
    /// Describes the error with the text near it.
    pub(crate) fn describe(&self, source: &str) -> String {
        let shown = self.span.clone().and_then(|span| source.get(span));
        let near = shown.filter(|shown| !shown.is_empty());
        let near = near.map(|shown| format!(", near `{shown}`")).unwrap_or_default();
        format!("not a template: {}{near}", self.message)
    }
}

/// Rendering error of a template. The message is meant for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    message: String,
    is_undefined: bool,
}

impl RenderError {
    /// Returns whether a field is missing, which another case may have.
    pub fn is_undefined(&self) -> bool {
        self.is_undefined
    }
}

impl Template {
    /// Compiles the template of a stored run; `None` if it is invalid.
    pub fn stored(source: &str) -> Option<Template> {
        Template::compile(source).ok()
    }

    pub(crate) fn compile(source: &str) -> Result<Template, TemplateError> {
        Template::compile_in(Environment::new(), source)
    }

    /// Compiles a JSON template: strings are escaped for use within quotation marks, other values are
    /// written as JSON.
    pub(crate) fn compile_json(source: &str) -> Result<Template, TemplateError> {
        let mut environment = Environment::new();
        environment.set_formatter(|out, _, value| {
            // The output of filters such as `tojson` is JSON.
            let text = match value.as_str() {
                Some(text) if value.is_safe() => text.to_owned(),
                Some(text) => {
                    let quoted = serde_json::Value::from(text).to_string();
                    quoted[1..quoted.len() - 1].to_owned()
                }
                None => serde_json::to_string(value).map_err(|error| {
                    minijinja::Error::new(ErrorKind::BadSerialization, error.to_string())
                })?,
            };
            out.write_str(&text).map_err(minijinja::Error::from)
        });
        Template::compile_in(environment, source)
    }

    fn compile_in(
        mut environment: Environment<'static>,
        source: &str,
    ) -> Result<Template, TemplateError> {
        let error = |error: minijinja::Error| TemplateError {
            message: describe_error(&error),
            span: error.range(),
        };
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build().map_err(error)?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(true);
        environment.add_template_owned(NAME, source.to_owned()).map_err(error)?;
        let globals: BTreeSet<&str> = environment.globals().map(|(name, _)| name).collect();
        let variables = environment
            .get_template(NAME)
            .map_err(error)?
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !globals.contains(name.as_str()))
            .collect();
        Ok(Template { source: source.into(), environment: Arc::new(environment), variables })
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the names of the fields that the template uses.
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// Renders the template with the fields of a stored case.
    ///
    /// # Errors
    ///
    /// As for [`Template::render`].
    pub fn render_row(
        &self,
        row: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String, RenderError> {
        self.render(&fields(row))
    }

    /// Renders the template.
    ///
    /// # Errors
    ///
    /// When a field is missing, or the template cannot be evaluated.
    pub fn render(&self, fields: &Value) -> Result<String, RenderError> {
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(fields.clone()))
            .map_err(|error| RenderError {
                message: describe_error(&error),
                is_undefined: error.kind() == ErrorKind::UndefinedError,
            })
    }
}

/// Describes an error without the internal template name.
fn describe_error(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: serde_json::Value) -> Value {
        super::fields(value.as_object().unwrap())
    }

    #[test]
    fn rendering_does_not_escape_and_keeps_newlines() {
        let template = Template::compile("<{{ a }}> & {{ b | upper }}\n").unwrap();
        let fields = fields(serde_json::json!({"a": "x < y", "b": "z"}));
        assert_eq!(template.render(&fields).unwrap(), "<x < y> & Z\n");
        assert_eq!(template.variables().iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn missing_field_is_an_error() {
        let template = Template::compile("{{ gone }}").unwrap();
        let error = template.render(&fields(serde_json::json!({}))).unwrap_err();
        assert!(error.is_undefined() && error.to_string().contains("undefined"), "{error}");
    }

    #[test]
    fn compile_error_has_a_span() {
        let error = Template::compile("ok {{ a").unwrap_err();
        assert!(error.span.is_some(), "{error:?}");
    }

    #[test]
    fn values_in_json_templates_are_escaped() {
        let source =
            r#"{"q": "{{ a }}", "n": {{ n }}, "list": {{ list | tojson }}, "more": {{ list }}}"#;
        let template = Template::compile_json(source).unwrap();
        let value = serde_json::json!({"a": "say \"hi\"\n</b>", "n": 1.5, "list": ["x\"", null]});
        let rendered = template.render(&fields(value)).unwrap();
        let sent: serde_json::Value = serde_json::from_str(&rendered).unwrap();
        let list = serde_json::json!(["x\"", null]);
        let expected =
            serde_json::json!({"q": "say \"hi\"\n</b>", "n": 1.5, "list": list, "more": list});
        assert_eq!(sent, expected, "{rendered}");
        let missing = Template::compile_json("{{ gone }}").unwrap();
        assert!(missing.render(&fields(serde_json::json!({}))).is_err());
    }

    #[test]
    fn endless_loop_is_an_error() {
        let source =
            "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}";
        let template = Template::compile(source).unwrap();
        assert!(template.render(&fields(serde_json::json!({}))).is_err());
    }
}
