//! Reading of `[[target]]`.

use super::agents::{self, AgentSettings};
use super::chain::{self, ChainTarget};
use super::models::{self, NamedModel};
use super::pricing::TrialPricing;
use super::programs::{self, ProgramTarget, Protocol};
use super::resolve::{label, resolve};
use super::roles::roles_of;
use super::service::{self, ServiceTarget};
use super::spec::{Field, STEP, TARGET, TargetType};
use super::suite::LoadContext;
use super::tree::Node;
use super::variables::{TemplateUse, compile};
use crate::problem::Problems;
use crate::template::Template;
use bakeoff_core::{OutputFormat, Request, TargetName};
use bakeoff_llm::Model;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// System under test.
#[derive(Debug)]
pub struct Target {
    /// Name in results.
    pub name: TargetName,
    /// Whether the target counts for the verdict of the run.
    pub gate: bool,
    /// Prompt template; for a chain, that of its first step.
    pub prompt: Template,
    /// Time limit of a program, service or model with tools; that of the suite when absent.
    pub timeout: Option<Duration>,
    /// Kind with its settings.
    pub kind: TargetKind,
    /// Cost of the trials of a program or service.
    pub pricing: TrialPricing,
    /// Roles with the names of their models in the suite file.
    pub roles: Vec<(String, String)>,
    /// Target that this one is a combination of. Outputs are samples of that target, so that combinations
    /// share the outputs of equal steps.
    pub sample: Option<TargetName>,
}

/// Kind of a target.
#[derive(Debug)]
pub enum TargetKind {
    /// Model with a prompt.
    Model(Box<ModelTarget>),
    /// Models called in sequence.
    Chain(ChainTarget),
    /// Program or coding agent.
    Program(ProgramTarget),
    /// HTTP service.
    Service(Box<ServiceTarget>),
}

/// Model with its settings.
#[derive(Debug, Clone)]
pub struct ModelTarget {
    /// Model.
    pub model: Model,
    /// Name in results: `provider/model`.
    pub label: String,
    /// System prompt.
    pub system: Option<Template>,
    /// Settings of every request, without messages.
    pub request: Request,
    /// Settings for tools; the model is called once when absent.
    pub agent: Option<AgentSettings>,
}

impl Target {
    /// Returns whether the target is a program or coding agent.
    pub fn is_program(&self) -> bool {
        matches!(self.kind, TargetKind::Program(_))
    }

    /// Returns the name in the suite file; for a combination, the name of its target.
    pub fn base(&self) -> &TargetName {
        self.sample.as_ref().unwrap_or(&self.name)
    }

    /// Returns the models that Bakeoff calls; programs make their calls themselves.
    pub fn models(&self) -> Vec<&ModelTarget> {
        match &self.kind {
            TargetKind::Model(model) => vec![model],
            TargetKind::Chain(chain) => chain.steps.iter().map(|step| &step.model).collect(),
            TargetKind::Program(_) | TargetKind::Service(_) => Vec::new(),
        }
    }

    /// Returns the settings for tools of a model with tools.
    pub fn agent(&self) -> Option<&AgentSettings> {
        match &self.kind {
            TargetKind::Model(model) => model.agent.as_ref(),
            TargetKind::Chain(_) | TargetKind::Program(_) | TargetKind::Service(_) => None,
        }
    }

    /// Returns the folder that is copied for each trial, `Some(None)` for an empty folder, and `None` if
    /// trials have no folder.
    pub fn workspace(&self) -> Option<Option<&Path>> {
        match &self.kind {
            TargetKind::Program(program) if program.protocol == Protocol::Text => {
                Some(program.workspace.as_deref())
            }
            _ => self.agent().map(|agent| agent.workspace.as_deref()),
        }
    }
}

/// Reads the selected targets.
pub(super) fn read(
    root: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Vec<Target> {
    let nodes = root.tables("target");
    if root.get("target").is_none() && root.get("matrix").is_none() {
        problems
            .at(0..0, "the suite has no `target`")
            .with_hint("add [[target]] tables, or a [matrix] of prompts and models");
    }
    if let Some(empty) = root.get("target")
        && empty.get_ref().as_array().is_some_and(|targets| targets.is_empty())
    {
        problems.at(empty.span(), "no targets").with_hint("add a [[target]]");
    }
    let mut names = BTreeSet::new();
    nodes
        .iter()
        .filter(|node| context.is_selected(node))
        .filter_map(|node| {
            let name = node.text("name")?;
            if name.value.trim().is_empty() {
                problems.at(name.span.clone(), "empty target name");
            }
            if !names.insert(name.value) {
                problems
                    .at(name.span, format!("duplicate target name `{}`", name.value))
                    .with_hint("target names must be unique");
            }
            if node.get("prompt").is_none() && node.get("chain").is_none() {
                problems
                    .at(node.span.clone(), "[[target]] has no `prompt`")
                    .with_hint("add `prompt`: prompt template");
            }
            let prompt = node.text("prompt").and_then(|text| compile(text, templates, problems));
            let kind = kind(node, models, context, templates, problems);
            let prompt = match &kind {
                Some(TargetKind::Chain(chain)) => {
                    chain.steps.first().map(|step| step.prompt.clone())
                }
                _ => prompt,
            };
            let roles = roles_of(node).into_iter().filter_map(|role| {
                let model = context.roles.get(role.value)?;
                Some((role.value.to_owned(), model.value.to_owned()))
            });
            let roles: Vec<(String, String)> = roles.collect();
            Some(Target {
                name: name.value.into(),
                pricing: TrialPricing::read(node, &roles, models, problems),
                roles,
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
    context: &LoadContext<'_>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<TargetKind> {
    let target_type = target_type(node, problems)?;
    check_allowed_keys(node, target_type, problems);
    match target_type {
        TargetType::Model | TargetType::ToolModel => {
            let agent = (target_type == TargetType::ToolModel)
                .then(|| agents::read(node, context, problems));
            let model = node.text("model")?;
            let system = node.text("system").map(|text| compile(text, templates, problems));
            let request = request(node, problems);
            let model = context.roles.resolve(model, problems)?;
            let label = label(&model, models);
            let model = resolve(model, models, context, problems)?;
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
        TargetType::Chain => {
            let chain = chain::read(node, models, context, templates, problems)?;
            Some(TargetKind::Chain(chain))
        }
        TargetType::Program => {
            programs::read(node, models, context, problems).map(TargetKind::Program)
        }
        TargetType::Agent => programs::read_agent(node, context, problems).map(TargetKind::Program),
        TargetType::Service => {
            let service = service::read(node, context, templates, problems)?;
            Some(TargetKind::Service(Box::new(service)))
        }
    }
}

impl TargetType {
    /// Returns singular with article and plural, for messages.
    fn display_names(self) -> (&'static str, &'static str) {
        match self {
            TargetType::Model => ("a model", "models"),
            TargetType::ToolModel => ("a model with tools", "models with tools"),
            TargetType::Chain => ("a chain", "chains"),
            TargetType::Program => ("a program", "programs"),
            TargetType::Agent => ("an agent", "agents"),
            TargetType::Service => ("a service", "services"),
        }
    }
}

/// Determines the type of a target by its keys.
fn target_type(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<TargetType> {
    let mut given: Vec<(&str, TargetType)> = TARGET
        .fields()
        .filter(|field| node.get(field.name).is_some())
        .filter_map(|field| Some((field.name, field.implies?)))
        .collect();
    let has_tools = given.iter().any(|(_, target_type)| *target_type == TargetType::ToolModel);
    given.retain(|(_, target_type)| *target_type != TargetType::ToolModel);
    given.sort_by_key(|(_, target_type)| *target_type);
    let mut given = given.into_iter();
    match (given.next(), given.next()) {
        (Some((_, TargetType::Model)), None) if has_tools => Some(TargetType::ToolModel),
        (Some((_, target_type)), None) => Some(target_type),
        // `model` is an option of agents.
        (Some((_, TargetType::Agent)), Some((_, TargetType::Model))) => Some(TargetType::Agent),
        // `check_allowed_keys` reports the model of a chain together with other keys.
        (Some((_, TargetType::Chain)), Some((_, TargetType::Model))) => Some(TargetType::Chain),
        (Some((one, _)), Some((other, _))) => {
            let span = node.get(other).map_or(node.span.clone(), |value| value.span());
            problems
                .at(span, format!("a target cannot have both `{one}` and `{other}`"))
                .with_hint("split it into two targets");
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

/// Returns whether a key belongs to the steps of a chain.
pub(super) fn is_step_key(field: &Field) -> bool {
    // Chains and steps both have a name.
    field.name != "name" && STEP.field(field.name).is_some()
}

/// Reports keys that are not allowed for the type of the target.
fn check_allowed_keys(node: &Node<'_, '_>, target_type: TargetType, problems: &mut Problems<'_>) {
    let given = || TARGET.fields().filter_map(|field| Some((field, node.get(field.name)?)));
    for (field, value) in given() {
        let key = field.name;
        if target_type == TargetType::Chain && is_step_key(field) {
            problems
                .at(value.span(), format!("`{key}` is not allowed for chains"))
                .with_hint(format!("move `{key}` to the steps under [[target.chain]]"));
        } else if !field.target_types.is_empty() && !field.target_types.contains(&target_type) {
            // `models` includes models with tools.
            let has_models = field.target_types.contains(&TargetType::Model);
            let is_listed = |listed: &&TargetType| **listed != TargetType::ToolModel || !has_models;
            let names =
                field.target_types.iter().filter(is_listed).map(|listed| listed.display_names().1);
            let allowed = match names.collect::<Vec<_>>().as_slice() {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} and {last}", first.join(", "))
                }
                only => only.concat(),
            };
            let message = format!(
                "`{key}` is for {allowed}; this target is {}",
                target_type.display_names().0
            );
            problems.at(value.span(), message);
        }
    }
}

/// Pairs of keys of which a target can have one.
pub(super) const EXCLUSIVE_KEYS: [[&str; 2]; 2] =
    [["thinking", "thinking_tokens"], ["json", "json_schema"]];

/// Reports keys that exclude each other.
pub(super) fn check_exclusive_keys(
    node: &Node<'_, '_>,
    subject: &str,
    problems: &mut Problems<'_>,
) -> Option<()> {
    for [one, other] in EXCLUSIVE_KEYS {
        if let (Some(_), Some(value)) = (node.get(one), node.get(other)) {
            let message = format!("{subject} cannot have both `{one}` and `{other}`");
            problems.at(value.span(), message);
            return None;
        }
    }
    Some(())
}

pub(super) fn request(node: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Request> {
    check_exclusive_keys(node, "a target", problems)?;
    let schema = node.table("json_schema").map(|schema| OutputFormat::Schema {
        name: "answer".to_owned(),
        schema: schema.to_json().into(),
    });
    let json = node.boolean("json").unwrap_or(false).then_some(OutputFormat::Json);
    let request = Request { output: schema.or(json), ..Request::default() };
    Some(models::settings(node).apply_to(request))
}
