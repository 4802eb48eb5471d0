//! `[[target]]`.

use super::agents::{self, AgentSettings};
use super::chain::{self, ChainTarget};
use super::models::NamedModel;
use super::programs::{self, ProgramTarget, Protocol};
use super::resolve::{label, resolve};
use super::roles::roles_of;
use super::service::{self, ServiceTarget};
use super::spec::{Field, STEP, TARGET, TargetSort};
use super::suite::Refining;
use super::tree::Node;
use super::variables::{Placed, compile};
use crate::problem::Problems;
use crate::template::Template;
use bakeoff_core::{OutputFormat, Request, TargetName, Thinking};
use bakeoff_llm::Model;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// What is under test.
#[derive(Debug)]
pub struct Target {
    /// Its name in results.
    pub name: TargetName,
    /// Whether it counts for the run's verdict.
    pub gate: bool,
    /// What it is asked; of a chain, what its first step is asked.
    pub prompt: Template,
    /// How long a program, a service or a model with tools may take; the suite's timeout when absent.
    pub timeout: Option<Duration>,
    /// What it is.
    pub kind: TargetKind,
    /// Who fills its roles: their names, and candidates as they are written.
    pub roles: Vec<(String, String)>,
    /// The target that it is a combination of. Its answers are samples of that one, so that
    /// combinations share the answers of steps that are the same.
    pub sample: Option<TargetName>,
}

/// What a target is.
#[derive(Debug)]
pub enum TargetKind {
    /// A model with a prompt.
    Model(Box<ModelTarget>),
    /// Models that are asked one after the other.
    Chain(ChainTarget),
    /// A program, or an agent that is known by name.
    Program(ProgramTarget),
    /// An HTTP service.
    Service(Box<ServiceTarget>),
}

/// A model with its settings.
#[derive(Debug, Clone)]
pub struct ModelTarget {
    /// The model.
    pub model: Model,
    /// As written: `provider/model`.
    pub label: String,
    /// Its instructions.
    pub system: Option<Template>,
    /// Settings of every request; the messages are filled in.
    pub request: Request,
    /// How it works with tools; it is asked once when absent.
    pub agent: Option<AgentSettings>,
}

impl Target {
    /// Whether it is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.kind, TargetKind::Program(_))
    }

    /// The name in the suite file: that of the target that it is a combination of, or its own.
    pub fn base(&self) -> &TargetName {
        self.sample.as_ref().unwrap_or(&self.name)
    }

    /// The models that it asks itself: those of programs are their own business.
    pub fn models(&self) -> Vec<&ModelTarget> {
        match &self.kind {
            TargetKind::Model(model) => vec![model],
            TargetKind::Chain(chain) => chain.steps.iter().map(|step| &step.model).collect(),
            TargetKind::Program(_) | TargetKind::Service(_) => Vec::new(),
        }
    }

    /// How it works with tools, if it is a model that does.
    pub fn agent(&self) -> Option<&AgentSettings> {
        match &self.kind {
            TargetKind::Model(model) => model.agent.as_ref(),
            TargetKind::Chain(_) | TargetKind::Program(_) | TargetKind::Service(_) => None,
        }
    }

    /// The folder that its trials get a copy of, or an empty one; `None` when they have no folder.
    pub fn workspace(&self) -> Option<Option<&Path>> {
        match &self.kind {
            TargetKind::Program(program) if program.protocol == Protocol::Text => {
                Some(program.workspace.as_deref())
            }
            _ => self.agent().map(|agent| agent.workspace.as_deref()),
        }
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
            if node.get("prompt").is_none() && node.get("chain").is_none() {
                problems
                    .at(node.span.clone(), "[[target]] has no `prompt`")
                    .with_hint("add `prompt`: what it is asked.");
            }
            let prompt = node.text("prompt").and_then(|text| compile(text, templates, problems));
            let kind = kind(node, models, refining, templates, problems);
            let prompt = match &kind {
                Some(TargetKind::Chain(chain)) => {
                    chain.steps.first().map(|step| step.prompt.clone())
                }
                _ => prompt,
            };
            let roles = roles_of(node).into_iter().filter_map(|role| {
                let filler = refining.roles.filler(role.value)?;
                Some((role.value.to_owned(), filler.value.to_owned()))
            });
            Some(Target {
                name: name.value.into(),
                roles: roles.collect(),
                sample: None,
                gate: node.boolean("gate").unwrap_or(true),
                prompt: prompt?,
                timeout: node
                    .number("timeout_seconds")
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
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
    let sort = sort(node, problems)?;
    only_its_own(node, sort, problems);
    match sort {
        TargetSort::Model | TargetSort::Loop => {
            let agent = (sort == TargetSort::Loop).then(|| agents::read(node, refining, problems));
            let model = node.text("model")?;
            let system = node.text("system").map(|text| compile(text, templates, problems));
            let request = request(node, problems);
            let model = refining.roles.who(model, problems)?;
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
                agent,
            })))
        }
        TargetSort::Chain => {
            let chain = chain::read(node, models, refining, templates, problems)?;
            Some(TargetKind::Chain(chain))
        }
        TargetSort::Program => {
            programs::read(node, models, refining, problems).map(TargetKind::Program)
        }
        TargetSort::Agent => {
            programs::read_agent(node, refining, problems).map(TargetKind::Program)
        }
        TargetSort::Service => {
            let service = service::read(node, refining, templates, problems)?;
            Some(TargetKind::Service(Box::new(service)))
        }
    }
}

impl TargetSort {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            TargetSort::Model => ("a model", "models"),
            TargetSort::Loop => ("a model with tools", "models with tools"),
            TargetSort::Chain => ("a chain", "chains"),
            TargetSort::Program => ("a program", "programs"),
            TargetSort::Agent => ("an agent", "agents"),
            TargetSort::Service => ("a service", "services"),
        }
    }
}

fn sort(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<TargetSort> {
    let mut given: Vec<(&str, TargetSort)> = TARGET
        .fields()
        .filter(|field| node.get(field.name).is_some())
        .filter_map(|field| Some((field.name, field.defines?)))
        .collect();
    let has_tools = given.iter().any(|(_, sort)| *sort == TargetSort::Loop);
    given.retain(|(_, sort)| *sort != TargetSort::Loop);
    given.sort_by_key(|(_, sort)| *sort);
    let mut given = given.into_iter();
    match (given.next(), given.next()) {
        (Some((_, TargetSort::Model)), None) if has_tools => Some(TargetSort::Loop),
        (Some((_, sort)), None) => Some(sort),
        // An agent may be told which model to use.
        (Some((_, TargetSort::Agent)), Some((_, TargetSort::Model))) => Some(TargetSort::Agent),
        // That a chain has no model of its own is said with other keys that it has not.
        (Some((_, TargetSort::Chain)), Some((_, TargetSort::Model))) => Some(TargetSort::Chain),
        (Some((one, _)), Some((other, _))) => {
            let span = node.get(other).map_or(node.span.clone(), |value| value.span());
            problems
                .at(span, format!("a target has either `{one}` or `{other}`"))
                .with_hint("make two targets of it");
            None
        }
        (None, _) => {
            problems
                .at(
                    node.span.clone(),
                    "the target has none of `model`, `chain`, `command`, `agent` and `url`",
                )
                .with_hint(
                    "write `model = \"sim/echo\"` or `command = [\"python3\", \"agent.py\"]`",
                );
            None
        }
    }
}

/// Finds keys that are for other kinds of targets.
fn only_its_own(node: &Node<'_, '_>, sort: TargetSort, problems: &mut Problems<'_>) {
    let given = || TARGET.fields().filter_map(|field| Some((field, node.get(field.name)?)));
    // A step has a name, too, and so has the chain.
    let is_of_steps = |field: &Field| field.name != "name" && STEP.field(field.name).is_some();
    for (field, value) in given() {
        let key = field.name;
        if sort == TargetSort::Chain && is_of_steps(field) {
            problems
                .at(value.span(), format!("a chain has no `{key}` of its own"))
                .with_hint(format!("its steps have: write `{key}` under [[target.chain]]"));
        } else if !field.sorts.is_empty() && !field.sorts.contains(&sort) {
            // Where all models are meant, those with tools need no mention.
            let has_models = field.sorts.contains(&TargetSort::Model);
            let is_told = |sort: &&TargetSort| **sort != TargetSort::Loop || !has_models;
            let told = field.sorts.iter().filter(is_told).map(|sort| sort.words().1);
            let whom = match told.collect::<Vec<_>>().as_slice() {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} and {last}", first.join(", "))
                }
                only => only.concat(),
            };
            let message = format!("`{key}` is for {whom}; this target is {}", sort.words().0);
            problems.at(value.span(), message);
        }
    }
}

pub(super) fn request(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Request> {
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
