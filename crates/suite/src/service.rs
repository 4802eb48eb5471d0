//! Reading of `[[target]]` with a `url`.

use super::models::ModelSpans;
use super::resolve;
use super::suite::LoadContext;
use super::template_value::TemplateValue;
use super::tree::{Node, SourceText};
use super::variables::{TEMPLATE_HINT, TemplateUse};
use crate::problem::Problems;
use crate::template::{RenderError, Template, with_roles, with_texts};
use bakeoff_check::ParameterType;
use bakeoff_llm::{Service, ServiceConfig};
use minijinja::Value as Fields;
use serde_json::{Value, json};
use serde_json_path::JsonPath;
use std::collections::BTreeMap;
use std::ops::Range;

/// Default maximum number of requests in flight.
const DEFAULT_CONNECTIONS: usize = 10;

/// HTTP service as a target.
#[derive(Debug, Clone)]
pub struct ServiceTarget {
    /// Resolved service.
    pub service: Service,
    /// Maximum number of requests in flight.
    pub connections: usize,
    /// JSONPath of the output in the response; the whole response when absent.
    pub answer: Option<JsonPath>,
    /// JSONPaths of token counts and cost.
    pub usage: UsagePaths,
    body: BodyTemplate,
    /// Model of each role, as written, for the body.
    roles: BTreeMap<String, String>,
}

/// JSONPaths of token counts and cost in a response.
#[derive(Debug, Clone, Default)]
pub struct UsagePaths {
    /// Prompt tokens.
    pub input: Option<JsonPath>,
    /// Completion tokens.
    pub output: Option<JsonPath>,
    /// Cost in dollars.
    pub cost: Option<JsonPath>,
}

/// Template of the request body.
#[derive(Debug, Clone)]
enum BodyTemplate {
    Text(Template),
    Table(TemplateValue),
}

impl ServiceTarget {
    /// Renders the request body for a case.
    ///
    /// # Errors
    ///
    /// When a template of the body cannot be rendered.
    pub fn body(&self, fields: &Fields, prompt: &str) -> Result<String, RenderError> {
        let fields = with_roles(&with_texts(fields, [("prompt", prompt)]), &self.roles);
        match &self.body {
            BodyTemplate::Text(template) => template.render(&fields),
            BodyTemplate::Table(value) => Ok(value.render(&fields)?.to_string()),
        }
    }

    /// Returns the service with other models for some roles.
    pub(super) fn with_roles<'r>(
        mut self,
        models: impl IntoIterator<Item = (&'r str, &'r str)>,
    ) -> ServiceTarget {
        let models = models.into_iter();
        self.roles.extend(models.map(|(role, model)| (role.to_owned(), model.to_owned())));
        self
    }

    /// Returns a message if the service sends JSON and the body is not valid JSON.
    pub fn body_error(&self, body: &str) -> Option<String> {
        if !self.service.sends_json() {
            return None;
        }
        let error = serde_json::from_str::<serde::de::IgnoredAny>(body).err()?;
        Some(format!("the body is not JSON: {error}"))
    }
}

/// Reads a service.
pub(super) fn read(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<ServiceTarget> {
    let url = node.text("url")?;
    let mut config =
        ServiceConfig::new(url.value).name(node.text("name").map_or("", |name| name.value));
    config.method = node.text("method").map(|method| method.value.to_owned());
    config.headers = node.text_map("headers");
    let roles = roles(node, context, problems);
    let body = body(node, &roles, templates, problems);
    let usage = node.table("usage");
    let within = |name| usage.as_ref().and_then(|usage: &Node<'_, '_>| usage.text(name));
    let answer = path(node.text("answer"), problems);
    let [input, output, cost] =
        ["input_tokens", "output_tokens", "cost_usd"].map(|name| path(within(name), problems));
    let service = match Service::resolve(&config, context.environment) {
        Ok(service) => service,
        Err(error) => {
            let span = |key| node.get(key).map_or(url.span.clone(), |value| value.span());
            let spans = ModelSpans {
                name: span("headers"),
                base_url: url.span.clone(),
                api_key_env: url.span.clone(),
                additions: span("headers"),
            };
            resolve::report(error, &spans, problems);
            return None;
        }
    };
    if let (Some(value), false) = (node.get("body"), service.has_body()) {
        problems.at(value.span(), "a GET request has no body");
    }
    if let (Some(value), false) = (node.get("roles"), service.has_body()) {
        problems.at(value.span(), "a GET request has no body, which would contain the roles");
    }
    Some(ServiceTarget {
        service,
        connections: node
            .integer("connections")
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(DEFAULT_CONNECTIONS),
        answer: answer?,
        usage: UsagePaths { input: input?, output: output?, cost: cost? },
        body: body?,
        roles,
    })
}

/// Reads the roles. Services have their own model names.
fn roles(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, String> {
    let listed = node.texts("roles").unwrap_or_default();
    let model = |role: SourceText<'_>| {
        Some((role.value.to_owned(), context.roles.require(&role, problems)?.value.to_owned()))
    };
    listed.into_iter().filter_map(model).collect()
}

fn body(
    node: &Node<'_, '_>,
    roles: &BTreeMap<String, String>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<BodyTemplate> {
    let (compiled, span): (Result<BodyTemplate, String>, Range<usize>) = match node.get("body") {
        Some(value) if value.get_ref().is_str() => {
            let text = value.get_ref().as_str().unwrap_or_default();
            let template = Template::compile_json(text).map_err(|error| error.describe(text));
            (template.map(BodyTemplate::Text), value.span())
        }
        Some(value) => {
            let table = node.table("body").map(|table| table.to_json()).unwrap_or_default();
            (table_body(&Value::Object(table)), value.span())
        }
        None => (table_body(&json!({"prompt": "{{ prompt }}"})), node.span.clone()),
    };
    match compiled {
        Ok(body) => {
            let mut add = |template: &Template| {
                let (template, span) = (template.clone(), span.clone());
                let (has_prompt, roles) = (true, roles.clone());
                templates.push(TemplateUse { template, span, has_prompt, roles, step: None });
            };
            match &body {
                BodyTemplate::Text(template) => add(template),
                BodyTemplate::Table(value) => value.visit(&mut add),
            }
            Some(body)
        }
        Err(message) => {
            problems.at(span, message).with_hint(TEMPLATE_HINT);
            None
        }
    }
}

fn table_body(value: &Value) -> Result<BodyTemplate, String> {
    TemplateValue::read(value, ParameterType::ValueTable).map(BodyTemplate::Table)
}

/// Parses an optional JSONPath; `None` if it is invalid.
fn path(text: Option<SourceText<'_>>, problems: &mut Problems<'_>) -> Option<Option<JsonPath>> {
    let Some(text) = text else { return Some(None) };
    match JsonPath::parse(text.value) {
        Ok(path) => Some(Some(path)),
        Err(error) => {
            problems
                .at(text.span, format!("not a JSONPath: {error}"))
                .with_hint("for example `$.choices[0].text`; `$` is the whole response");
            None
        }
    }
}
