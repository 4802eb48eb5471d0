//! `[[target]]` with a `command` or an `agent`.

use super::models::NamedModel;
use super::resolve;
use super::roles::variable;
use super::suite::Refining;
use super::tree::{At, Node};
use crate::problem::Problems;
use bakeoff_agent::CodingAgent;
use bakeoff_llm::Environment;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program: the prompt on standard input, the answer on standard output.
#[derive(Debug, Clone)]
pub struct ProgramTarget {
    /// The program and its arguments; those that name a file beside the suite are absolute.
    pub command: Vec<OsString>,
    /// The folder that each trial gets a copy of; an empty one when absent.
    pub workspace: Option<PathBuf>,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// The agent that it is, and its name of the model, when it is known by name.
    pub agent: Option<(CodingAgent, Option<String>)>,
    /// More arguments of such an agent.
    pub(crate) more: Vec<OsString>,
    /// Environment variables that say who fills its roles: `BAKEOFF_MODEL_<ROLE>` and
    /// `provider/model`.
    pub variables: BTreeMap<String, String>,
}

/// How a program is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// It is started for each trial: text in, text out.
    Text,
    /// It stays: one JSON object per line in, one per line out.
    JsonLines,
}

/// The argument, or the part of one, that stands for the prompt.
pub const PROMPT_PLACEHOLDER: &str = "{prompt}";

/// Reads a program.
pub(super) fn read(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<ProgramTarget> {
    let command = node.texts("command")?;
    let program = command.first().map(|word| (beside(refining.folder(), word.value), word));
    if let Some((path, word)) = program
        && let Err(reason) = find_program(&path, refining.environment)
    {
        problems
            .at(word.span.clone(), format!("cannot run `{}`: {reason}", word.value))
            .with_hint("name a program on the PATH, or an executable file beside the suite");
    }
    let protocol = match node.text("protocol") {
        Some(word) if word.value == "jsonl" => Protocol::JsonLines,
        _ => Protocol::Text,
    };
    if protocol == Protocol::JsonLines {
        let stays = "a program with `protocol = \"jsonl\"` stays from trial to trial";
        if let Some(value) = node.get("workspace") {
            problems.at(value.span(), format!("{stays}, so that no trial has a workspace"));
        }
        if let Some(word) = command.iter().find(|word| word.value.contains(PROMPT_PLACEHOLDER)) {
            problems
                .at(word.span.clone(), format!("{stays}, so that no argument can be the prompt"));
        }
    }
    let argument = |word: &At<&str>| beside(refining.folder(), word.value);
    Some(ProgramTarget {
        command: command.iter().map(argument).collect(),
        workspace: workspace(node, refining, problems),
        protocol,
        agent: None,
        more: Vec::new(),
        variables: variables(node, models, refining, problems),
    })
}

/// The variables that tell a program who fills its roles.
fn variables(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for role in node.texts("roles").unwrap_or_default() {
        let name = variable(role.value);
        match taken.insert(name.clone(), role.value) {
            Some(other) if other == role.value => {
                problems.at(role.span, format!("the role `{other}` is named twice"));
                continue;
            }
            Some(other) => {
                problems
                    .at(
                        role.span,
                        format!(
                            "the roles `{other}` and `{}` are both told as `{name}`",
                            role.value
                        ),
                    )
                    .with_hint("give one of them another name");
                continue;
            }
            None => {}
        }
        let Some(filler) = refining.roles.fill(&role, problems) else { continue };
        let label = resolve::label(&filler, models);
        // The program makes its calls itself, so that the name is all that must be right.
        if resolve::find(filler, models, problems).is_some() {
            variables.insert(name, label);
        }
    }
    variables
}

/// Reads an agent that is known by name.
pub(super) fn read_agent(
    node: &Node<'_, '_>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<ProgramTarget> {
    let name = node.text("agent")?;
    // Other words have been reported already.
    let agent = CodingAgent::find(name.value)?;
    let more: Vec<OsString> =
        node.texts("args").unwrap_or_default().iter().map(|word| word.value.into()).collect();
    let model = match node.text("model") {
        Some(model) => Some(refining.roles.who(model, problems)?.value),
        None => None,
    };
    let workspace = workspace(node, refining, problems);
    let Some(target) = agent_target(agent, model, &more, refining.environment) else {
        let problem = problems.at(name.span, unavailable(agent));
        problem.code = Some(UNAVAILABLE);
        problem.hint = Some(INSTALL.to_owned());
        return None;
    };
    Some(ProgramTarget { workspace, ..target })
}

/// Printed when an agent's program is not there.
pub(super) const UNAVAILABLE: &str = "EVAL_AGENT_UNAVAILABLE";

/// What to do about it.
pub(super) const INSTALL: &str = "install it, or put the folder of its program on the PATH";

pub(super) fn unavailable(agent: CodingAgent) -> String {
    let names: Vec<String> = agent.programs().iter().map(|name| format!("`{name}`")).collect();
    format!("the agent {} is not installed: there is no {}", agent.name(), names.join(" and no "))
}

/// The program of an agent, when it is there.
pub(super) fn agent_target(
    agent: CodingAgent,
    model: Option<&str>,
    more: &[OsString],
    environment: Environment<'_>,
) -> Option<ProgramTarget> {
    let is_there = |name: &&&str| find_program(OsStr::new(name), environment).is_ok();
    let program = agent.programs().iter().find(is_there)?;
    let target = ProgramTarget {
        command: vec![OsString::from(program)],
        workspace: None,
        protocol: Protocol::Text,
        agent: Some((agent, None)),
        more: more.to_vec(),
        variables: BTreeMap::new(),
    };
    Some(target.with_model(model))
}

impl ProgramTarget {
    /// The same agent with a model of that name.
    pub(super) fn with_model(self, model: Option<&str>) -> ProgramTarget {
        let Some((agent, _)) = self.agent else { return self };
        let program = self.command.iter().take(1).cloned();
        ProgramTarget {
            command: program.chain(agent.arguments(model, &self.more)).collect(),
            agent: Some((agent, model.map(str::to_owned))),
            ..self
        }
    }
}

/// The folder that each trial gets a copy of.
pub(super) fn workspace(
    node: &Node<'_, '_>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<PathBuf> {
    let name = node.text("workspace")?;
    let path = refining.folder().join(name.value);
    if !path.is_dir() {
        problems
            .at(name.span, format!("there is no folder `{}`", name.value))
            .with_hint("`workspace` is relative to the suite file");
        return None;
    }
    std::path::absolute(&path).ok()
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
