//! Reading of `[[target]]` with a `command` or an `agent`.

use super::models::NamedModel;
use super::resolve;
use super::roles::variable;
use super::spec::choice;
use super::suite::LoadContext;
use super::tree::{Node, SourceText};
use crate::problem::Problems;
use bakeoff_agent::CodingAgent;
use bakeoff_llm::Environment;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Program as a target: prompt on standard input, output on standard output.
#[derive(Debug, Clone)]
pub struct ProgramTarget {
    /// Program and its arguments; names of files next to the suite file are absolute paths.
    pub command: Vec<OsString>,
    /// Folder that is copied for each trial; trials start with an empty folder when absent.
    pub workspace: Option<PathBuf>,
    /// Protocol between Bakeoff and the program.
    pub protocol: Protocol,
    /// Coding agent and its model name, if the program is a known agent.
    pub agent: Option<(CodingAgent, Option<String>)>,
    /// Additional arguments of the agent.
    pub(crate) extra_arguments: Vec<OsString>,
    /// Environment variables with the models of its roles: `BAKEOFF_MODEL_<ROLE>` and
    /// `provider/model`.
    pub variables: BTreeMap<String, String>,
}

/// Protocol between Bakeoff and a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One process per trial: prompt on standard input, output on standard output.
    Text,
    /// One process for many trials: one JSON object per line in both directions.
    JsonLines,
}

/// Words of `protocol` with their values.
pub(crate) const PROTOCOL_CHOICES: [(&str, Protocol); 2] =
    [("text", Protocol::Text), ("jsonl", Protocol::JsonLines)];

/// Placeholder for the prompt in an argument.
pub const PROMPT_PLACEHOLDER: &str = "{prompt}";

/// Reads a program.
pub(super) fn read(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<ProgramTarget> {
    let command = node.texts("command")?;
    let program =
        command.first().map(|word| (absolute_if_file(context.folder(), word.value), word));
    if let Some((path, word)) = program
        && let Err(reason) = find_program(&path, context.environment)
    {
        problems
            .at(word.span.clone(), format!("cannot run `{}`: {reason}", word.value))
            .with_hint("use a program on the PATH, or an executable file next to the suite file");
    }
    let protocol = node
        .text("protocol")
        .and_then(|word| choice(&PROTOCOL_CHOICES, word.value))
        .unwrap_or(Protocol::Text);
    if protocol == Protocol::JsonLines {
        let constraint = "a program with `protocol = \"jsonl\"` serves all trials";
        if let Some(value) = node.get("workspace") {
            problems.at(value.span(), format!("{constraint} and cannot have a workspace"));
        }
        if let Some(word) = command.iter().find(|word| word.value.contains(PROMPT_PLACEHOLDER)) {
            problems.at(
                word.span.clone(),
                format!("{constraint} and cannot take the prompt as an argument"),
            );
        }
    }
    let argument = |word: &SourceText<'_>| absolute_if_file(context.folder(), word.value);
    Some(ProgramTarget {
        command: command.iter().map(argument).collect(),
        workspace: workspace(node, context, problems),
        protocol,
        agent: None,
        extra_arguments: Vec::new(),
        variables: variables(node, models, context, problems),
    })
}

/// Returns the environment variables with the models of a program's roles.
fn variables(
    node: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for role in node.texts("roles").unwrap_or_default() {
        let name = variable(role.value);
        match taken.insert(name.clone(), role.value) {
            Some(other) if other == role.value => {
                problems.at(role.span, format!("duplicate role `{other}`"));
                continue;
            }
            Some(other) => {
                problems
                    .at(
                        role.span,
                        format!(
                            "roles `{other}` and `{}` share the environment variable `{name}`",
                            role.value
                        ),
                    )
                    .with_hint("rename one of them");
                continue;
            }
            None => {}
        }
        let Some(model) = context.roles.require(&role, problems) else { continue };
        let label = resolve::label(&model, models);
        // The program makes the calls itself, so only the name is validated.
        if resolve::find(model, models, problems).is_some() {
            variables.insert(name, label);
        }
    }
    variables
}

/// Reads a coding agent.
pub(super) fn read_agent(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<ProgramTarget> {
    let name = node.text("agent")?;
    // The validation has reported unknown names.
    let agent = CodingAgent::find(name.value)?;
    let extra_arguments: Vec<OsString> =
        node.texts("args").unwrap_or_default().iter().map(|word| word.value.into()).collect();
    let model = match node.text("model") {
        Some(model) => Some(context.roles.resolve(model, problems)?.value),
        None => None,
    };
    let workspace = workspace(node, context, problems);
    let Some(target) = agent_target(agent, model, &extra_arguments, context.environment) else {
        let problem = problems.at(name.span, unavailable(agent));
        problem.code = Some(UNAVAILABLE);
        problem.hint = Some(INSTALL.to_owned());
        return None;
    };
    Some(ProgramTarget { workspace, ..target })
}

/// Error code of an agent that is not installed.
pub(super) const UNAVAILABLE: &str = "EVAL_AGENT_UNAVAILABLE";

/// Hint for an agent that is not installed.
pub(super) const INSTALL: &str = "install it, or add its folder to the PATH";

pub(super) fn unavailable(agent: CodingAgent) -> String {
    let names: Vec<String> = agent.programs().iter().map(|name| format!("`{name}`")).collect();
    format!("agent {} is not installed: no {} on the PATH", agent.name(), names.join(" or "))
}

/// Returns the program of an agent, if it is installed.
pub(super) fn agent_target(
    agent: CodingAgent,
    model: Option<&str>,
    extra_arguments: &[OsString],
    environment: Environment<'_>,
) -> Option<ProgramTarget> {
    let is_installed = |name: &&&str| find_program(OsStr::new(name), environment).is_ok();
    let program = agent.programs().iter().find(is_installed)?;
    let target = ProgramTarget {
        command: vec![OsString::from(program)],
        workspace: None,
        protocol: Protocol::Text,
        agent: Some((agent, None)),
        extra_arguments: extra_arguments.to_vec(),
        variables: BTreeMap::new(),
    };
    Some(target.with_model(model))
}

impl ProgramTarget {
    /// Returns the agent with another model.
    pub(super) fn with_model(self, model: Option<&str>) -> ProgramTarget {
        let Some((agent, _)) = self.agent else { return self };
        let program = self.command.iter().take(1).cloned();
        ProgramTarget {
            command: program.chain(agent.arguments(model, &self.extra_arguments)).collect(),
            agent: Some((agent, model.map(str::to_owned))),
            ..self
        }
    }
}

/// Reads the folder that is copied for each trial.
pub(super) fn workspace(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<PathBuf> {
    let name = node.text("workspace")?;
    let path = context.folder().join(name.value);
    if !path.is_dir() {
        problems
            .at(name.span, format!("no such folder `{}`", name.value))
            .with_hint("`workspace` is relative to the suite file");
        return None;
    }
    std::path::absolute(&path).ok()
}

/// Returns the absolute path of a word that names a file next to the suite file, and other words unchanged.
///
/// A trial runs in its own folder, where relative names would not be found.
pub(super) fn absolute_if_file(folder: &Path, word: &str) -> OsString {
    let path = folder.join(word);
    match std::path::absolute(&path) {
        Ok(absolute) if !word.is_empty() && path.is_file() => absolute.into_os_string(),
        _ => word.into(),
    }
}

/// Checks that the system would find and run the program; the error is the reason if not.
pub(super) fn find_program(
    program: &OsStr,
    environment: Environment<'_>,
) -> Result<(), &'static str> {
    use std::os::unix::fs::PermissionsExt;
    let check = |path: &Path| match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Err("not a file"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err("not executable"),
        Ok(_) => Ok(()),
        Err(_) => Err("program not found"),
    };
    if program.as_bytes().contains(&b'/') {
        return check(Path::new(program));
    }
    let folders = environment("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).any(|folder| check(&folder.join(program)).is_ok());
    if found { Ok(()) } else { Err("program not found") }
}
