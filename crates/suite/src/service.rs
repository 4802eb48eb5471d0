//! `[[target]]` with a `url`.

use super::models::Spans;
use super::resolve;
use super::suite::Refining;
use super::tree::{At, Node};
use super::variables::{Placed, TEMPLATE_HINT};
use super::written::Written;
use crate::problem::Problems;
use crate::template::{Template, with_texts};
use bakeoff_check::ParameterType;
use bakeoff_llm::{Service, ServiceConfig};
use minijinja::Value as Fields;
use serde_json::{Value, json};
use serde_json_path::JsonPath;
use std::ops::Range;

/// Requests in flight when the suite names no number.
const CONNECTIONS: usize = 10;

/// An HTTP service.
#[derive(Debug)]
pub struct ServiceTarget {
    /// Who is asked.
    pub service: Service,
    /// Most requests in flight.
    pub connections: usize,
    /// Where the answer is; all of it when absent.
    pub answer: Option<JsonPath>,
    /// Where tokens and cost are.
    pub usage: UsagePaths,
    body: Body,
}

/// Where tokens and cost are in an answer.
#[derive(Debug, Default)]
pub struct UsagePaths {
    /// Prompt tokens.
    pub input: Option<JsonPath>,
    /// Answer tokens.
    pub output: Option<JsonPath>,
    /// Dollars.
    pub cost: Option<JsonPath>,
}

/// What is sent.
#[derive(Debug)]
enum Body {
    Text(Template),
    Table(Written),
}

impl ServiceTarget {
    /// What is sent for a case; the error is for people.
    pub fn body(&self, fields: &Fields, prompt: &str) -> Result<String, String> {
        let fields = with_texts(fields, [("prompt", prompt)]);
        match &self.body {
            Body::Text(template) => template.render(&fields),
            Body::Table(written) => Ok(written.render(&fields)?.to_string()),
        }
    }

    /// That a body is not the JSON that it is said to be.
    pub fn wrong_body(&self, body: &str) -> Option<String> {
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
    refining: &Refining<'_>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<ServiceTarget> {
    let url = node.text("url")?;
    let mut config =
        ServiceConfig::new(url.value).name(node.text("name").map_or("", |name| name.value));
    config.method = node.text("method").map(|method| method.value.to_owned());
    config.headers = node.text_map("headers");
    let body = body(node, templates, problems);
    let usage = node.table("usage");
    let within = |name| usage.as_ref().and_then(|usage: &Node<'_, '_>| usage.text(name));
    let answer = path(node.text("answer"), problems);
    let [input, output, cost] =
        ["input_tokens", "output_tokens", "cost_usd"].map(|name| path(within(name), problems));
    let service = match Service::resolve(&config, refining.environment) {
        Ok(service) => service,
        Err(error) => {
            let span = |key| node.get(key).map_or(url.span.clone(), |value| value.span());
            let spans = Spans {
                name: span("headers"),
                base_url: url.span.clone(),
                api_key_env: url.span.clone(),
                additions: span("headers"),
            };
            resolve::explain(error, &spans, problems);
            return None;
        }
    };
    if let (Some(value), false) = (node.get("body"), service.has_body()) {
        problems.at(value.span(), "a GET request has no body");
    }
    Some(ServiceTarget {
        service,
        connections: node
            .integer("connections")
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(CONNECTIONS),
        answer: answer?,
        usage: UsagePaths { input: input?, output: output?, cost: cost? },
        body: body?,
    })
}

fn body(
    node: &Node<'_, '_>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<Body> {
    let (compiled, span): (Result<Body, String>, Range<usize>) = match node.get("body") {
        Some(value) if value.get_ref().is_str() => {
            let text = value.get_ref().as_str().unwrap_or_default();
            let template = Template::compile_json(text).map_err(|error| error.in_words(text));
            (template.map(Body::Text), value.span())
        }
        Some(value) => {
            let table = node.table("body").map(|table| table.to_json()).unwrap_or_default();
            (written(&Value::Object(table)), value.span())
        }
        None => (written(&json!({"prompt": "{{ prompt }}"})), node.span.clone()),
    };
    match compiled {
        Ok(body) => {
            let mut place = |template: &Template| {
                let (template, span) = (template.clone(), span.clone());
                templates.push(Placed { template, span, has_prompt: true, step: None });
            };
            match &body {
                Body::Text(template) => place(template),
                Body::Table(written) => written.visit(&mut place),
            }
            Some(body)
        }
        Err(message) => {
            problems.at(span, message).with_hint(TEMPLATE_HINT);
            None
        }
    }
}

fn written(value: &Value) -> Result<Body, String> {
    Written::read(value, ParameterType::ValueTable).map(Body::Table)
}

/// A JSONPath, if there is one. Nothing when it is none.
fn path(text: Option<At<&str>>, problems: &mut Problems<'_>) -> Option<Option<JsonPath>> {
    let Some(text) = text else { return Some(None) };
    match JsonPath::parse(text.value) {
        Ok(path) => Some(Some(path)),
        Err(error) => {
            problems
                .at(text.span, format!("not a JSONPath: {error}"))
                .with_hint("such as `$.choices[0].text`, with `$` for the whole answer");
            None
        }
    }
}
