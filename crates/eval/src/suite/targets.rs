//! `[[target]]`.

use super::models::{NamedModel, Spans};
use super::tree::{At, Node};
use super::{Placed, Refining, compile};
use crate::problem::{Problems, suggest};
use crate::template::Template;
use bakeoff_core::{OutputFormat, Request, TargetName, Thinking};
use bakeoff_llm::{Environment, Model, ModelConfig, ModelError, PROVIDERS, Provider};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is under test.
#[derive(Debug)]
pub struct Target {
    /// Its name in results.
    pub name: TargetName,
    /// Whether it counts for the run's verdict.
    pub gate: bool,
    /// What it is asked.
    pub prompt: Template,
    /// What it is.
    pub kind: TargetKind,
}

/// What a target is.
#[derive(Debug)]
pub enum TargetKind {
    /// A model with a prompt.
    Model(Box<ModelTarget>),
    /// A program.
    Program(ProgramTarget),
}

/// A model with its settings.
#[derive(Debug)]
pub struct ModelTarget {
    /// The model.
    pub model: Model,
    /// As written: `provider/model`.
    pub label: String,
    /// Its instructions.
    pub system: Option<Template>,
    /// Settings of every request; the messages are filled in.
    pub request: Request,
}

/// A program: the prompt on standard input, the answer on standard output.
#[derive(Debug)]
pub struct ProgramTarget {
    /// The program and its arguments; those that name a file beside the suite are absolute.
    pub command: Vec<OsString>,
}

impl Target {
    /// Whether it is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.kind, TargetKind::Program(_))
    }
}

/// Reads all targets.
pub(super) fn read(
    root: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Vec<Target> {
    let nodes = root.tables("target");
    if let Some(empty) = root.get("target")
        && empty.get_ref().as_array().is_some_and(|targets| targets.is_empty())
    {
        problems.at(empty.span(), "there are no targets").with_hint("add a [[target]]");
    }
    let mut names = BTreeSet::new();
    nodes
        .iter()
        .filter(|node| refining.wants(node))
        .filter_map(|node| {
            let name = node.text("name")?;
            if name.value.trim().is_empty() {
                problems.at(name.span.clone(), "a target's name must not be empty");
            }
            if !names.insert(name.value) {
                problems
                    .at(name.span, format!("two targets are named `{}`", name.value))
                    .with_hint("names of targets must be unique");
            }
            let prompt = node.text("prompt").and_then(|text| compile(text, templates, problems));
            let kind = kind(node, models, refining, templates, problems);
            Some(Target {
                name: name.value.into(),
                gate: node.boolean("gate").unwrap_or(true),
                prompt: prompt?,
                kind: kind?,
            })
        })
        .collect()
}

fn kind(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<TargetKind> {
    match (node.text("model"), node.texts("command")) {
        (Some(model), None) => {
            let system = node.text("system").map(|text| compile(text, templates, problems));
            let request = request(node, problems);
            let label = label(&model, models);
            let model = resolve(model, models, refining, problems)?;
            Some(TargetKind::Model(Box::new(ModelTarget {
                model,
                label,
                system: match system {
                    Some(system) => Some(system?),
                    None => None,
                },
                request: request?,
            })))
        }
        (None, Some(command)) => {
            only_for_models(node, problems);
            let program = command.first().map(|word| (beside(refining.folder(), word.value), word));
            if let Some((path, word)) = program
                && let Err(reason) = find_program(&path, refining.environment)
            {
                problems
                    .at(word.span.clone(), format!("cannot run `{}`: {reason}", word.value))
                    .with_hint(
                        "name a program on the PATH, or an executable file beside the suite",
                    );
            }
            let argument = |word: &At<&str>| beside(refining.folder(), word.value);
            Some(TargetKind::Program(ProgramTarget {
                command: command.iter().map(argument).collect(),
            }))
        }
        (Some(model), Some(_)) => {
            problems
                .at(model.span, "a target has either `model` or `command`")
                .with_hint("make two targets of it");
            None
        }
        (None, None) => {
            // A value of the wrong type has been reported already.
            if node.get("model").is_none() && node.get("command").is_none() {
                problems
                    .at(node.span.clone(), "the target has neither `model` nor `command`")
                    .with_hint(
                        "write `model = \"sim/echo\"` or `command = [\"python3\", \"agent.py\"]`",
                    );
            }
            None
        }
    }
}

/// A trial runs in a folder of its own, so words that name a file beside the suite become absolute.
pub(super) fn beside(folder: &Path, word: &str) -> OsString {
    let path = folder.join(word);
    match std::path::absolute(&path) {
        Ok(absolute) if !word.is_empty() && path.is_file() => absolute.into_os_string(),
        _ => word.into(),
    }
}

/// Whether the system would find the program; the error says why not.
pub(super) fn find_program(
    program: &OsStr,
    environment: Environment<'_>,
) -> Result<(), &'static str> {
    use std::os::unix::fs::PermissionsExt;
    let runnable = |path: &Path| match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Err("it is no file"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err("it is not executable"),
        Ok(_) => Ok(()),
        Err(_) => Err("there is no such program"),
    };
    if program.as_bytes().contains(&b'/') {
        return runnable(Path::new(program));
    }
    let folders = environment("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).any(|folder| runnable(&folder.join(program)).is_ok());
    if found { Ok(()) } else { Err("there is no such program") }
}

fn only_for_models(node: &Node<'_, '_>, problems: &mut Problems<'_>) {
    const KEYS: [&str; 10] = [
        "system",
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "thinking",
        "thinking_tokens",
        "json",
        "json_schema",
        "extra",
    ];
    for key in KEYS {
        if let Some(value) = node.get(key) {
            problems.at(value.span(), format!("`{key}` is for models; this target is a program"));
        }
    }
}

fn request(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Request> {
    let count = |name| node.integer(name).and_then(|number| u64::try_from(number).ok());
    let exclusive = |one, other, problems: &mut Problems<'_>| match (node.get(one), node.get(other))
    {
        (Some(_), Some(value)) => {
            problems.at(value.span(), format!("a target has either `{one}` or `{other}`"));
            None
        }
        _ => Some(()),
    };
    exclusive("thinking", "thinking_tokens", problems)?;
    exclusive("json", "json_schema", problems)?;
    let effort = node.text("thinking").map(|effort| Thinking::Effort(effort.value.to_owned()));
    let schema = node.table("json_schema").map(|schema| OutputFormat::Schema {
        name: "answer".to_owned(),
        schema: schema.to_json().into(),
    });
    let json = node.boolean("json").unwrap_or(false).then_some(OutputFormat::Json);
    Some(Request {
        temperature: node.number("temperature"),
        top_p: node.number("top_p"),
        max_tokens: count("max_tokens"),
        stop: node
            .texts("stop")
            .unwrap_or_default()
            .into_iter()
            .map(|text| text.value.to_owned())
            .collect(),
        thinking: effort.or_else(|| count("thinking_tokens").map(Thinking::Budget)),
        output: schema.or(json),
        extra: node.table("extra").map(|extra| extra.to_json()).unwrap_or_default(),
        ..Request::default()
    })
}

fn label(model: &At<&str>, models: &BTreeMap<String, NamedModel>) -> String {
    match models.get(model.value) {
        Some(named) => format!("{}/{}", named.config.provider, named.config.model),
        None => model.value.to_owned(),
    }
}

/// Finds the model that a target names, with its key.
pub(super) fn resolve(
    model: At<&str>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<Model> {
    let (config, spans) = match (models.get(model.value), model.value.split_once('/')) {
        (Some(named), _) => (named.config.clone(), named.spans.clone()),
        (None, Some((provider, name))) if !name.is_empty() => {
            (ModelConfig::named(provider, name), Spans::all(model.span.clone()))
        }
        (None, _) => {
            let problem = problems.at(model.span, format!("there is no model `{}`", model.value));
            let names = models.keys().map(String::as_str);
            problem.hint = match suggest(model.value, names) {
                Some(hint) if hint.starts_with("did you mean") => Some(hint),
                _ => Some("name a table under [models], or write provider/model such as `openai/gpt-4o-mini`".to_owned()),
            };
            return None;
        }
    };
    match Model::resolve(&config, refining.environment) {
        Ok(model) => Some(model),
        Err(error) => {
            explain(error, &spans, problems);
            None
        }
    }
}

fn explain(error: ModelError, spans: &Spans, problems: &mut Problems<'_>) {
    let hint = match &error {
        ModelError::UnknownProvider(name) => {
            suggest(name, PROVIDERS.iter().map(|provider: &Provider| provider.name))
        }
        ModelError::MissingVariable(name) => {
            Some(format!("`export {name}=…`; a dollar sign itself is written `$$`"))
        }
        ModelError::MissingKey(name) => Some(format!(
            "`export {name}=…`, or name another variable with `api_key_env` under [models]; `sim/…` models need no key"
        )),
        ModelError::NoAddress(_) => Some("define it under [models] with a `base_url`".to_owned()),
        ModelError::BadAddress { .. } => {
            Some("such as `base_url = \"http://127.0.0.1:8080/v1\"`".to_owned())
        }
        ModelError::BadHeader(_) | ModelError::Limits(_) => None,
    };
    let span = match &error {
        ModelError::BadAddress { .. } => &spans.base_url,
        ModelError::MissingKey(_) => &spans.api_key_env,
        ModelError::MissingVariable(_) => &spans.additions,
        _ => &spans.name,
    };
    problems.at(span.clone(), error.to_string()).hint = hint;
}
