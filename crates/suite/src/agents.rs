//! Reading of `[[target]]` with a `model` and tools.

use super::models::ModelSpans;
use super::programs::{absolute_if_file, find_program, workspace};
use super::resolve;
use super::suite::LoadContext;
use super::tree::{Node, SourceText};
use crate::problem::Problems;
use bakeoff_agent::{McpEndpoint, McpServer};
use bakeoff_llm::ModelError;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Default maximum number of model calls in a trial.
const DEFAULT_MAX_TURNS: u32 = 50;

/// Default time limit of a tool call.
const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of a model with tools.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Names of built-in tools.
    pub tools: Vec<String>,
    /// MCP servers that provide more tools.
    pub mcp: Vec<McpServer>,
    /// Maximum number of model calls in a trial.
    pub max_turns: u32,
    /// Folder that is copied for each trial; trials start with an empty folder when absent.
    pub workspace: Option<PathBuf>,
    /// Hosts that `http_fetch` may access.
    pub fetch_hosts: Vec<String>,
    /// Context window in tokens; longer conversations are shortened. Unlimited when absent.
    pub max_context_tokens: Option<u64>,
    /// Time limit of a tool call.
    pub tool_timeout: Duration,
}

impl AgentSettings {
    /// Returns whether trials start processes, which need local resources.
    pub fn starts_programs(&self) -> bool {
        let is_program =
            |server: &McpServer| matches!(server.endpoint, McpEndpoint::Program { .. });
        self.mcp.iter().any(is_program) || self.tools.iter().any(|tool| tool == "run_command")
    }
}

/// Reads the settings of a model with tools.
pub(super) fn read(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> AgentSettings {
    let tools = node.texts("tools").unwrap_or_default();
    let mut seen = BTreeSet::new();
    for tool in tools.iter().filter(|tool| !seen.insert(tool.value)) {
        problems.at(tool.span.clone(), format!("duplicate tool `{}`", tool.value));
    }
    let fetch_hosts = fetch_hosts(node, &tools, problems);
    AgentSettings {
        tools: tools.iter().map(|tool| tool.value.to_owned()).collect(),
        mcp: servers(node, context, problems),
        max_turns: node
            .integer("max_turns")
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(DEFAULT_MAX_TURNS),
        workspace: workspace(node, context, problems),
        fetch_hosts,
        max_context_tokens: node
            .integer("max_context_tokens")
            .and_then(|number| u64::try_from(number).ok()),
        tool_timeout: node
            .number("tool_timeout_seconds")
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(DEFAULT_TOOL_TIMEOUT),
    }
}

/// Reads the allowed hosts of `http_fetch`, which are required for that tool.
fn fetch_hosts(
    node: &Node<'_, '_>,
    tools: &[SourceText<'_>],
    problems: &mut Problems<'_>,
) -> Vec<String> {
    let fetch = tools.iter().find(|tool| tool.value == "http_fetch");
    let hosts = node.texts("fetch_hosts");
    match (fetch, &hosts, node.get("fetch_hosts")) {
        (Some(fetch), _, None) => {
            problems.at(fetch.span.clone(), "`http_fetch` needs `fetch_hosts`").with_hint(
                "add the allowed hosts, such as `fetch_hosts = [\"example.com\"]`, or `[\"*\"]` for all",
            );
        }
        (None, _, Some(value)) => {
            let message =
                "`fetch_hosts` needs the tool `http_fetch`, which this target does not have";
            problems.at(value.span(), message);
        }
        _ => {}
    }
    let hosts = hosts.unwrap_or_default();
    let is_host = |host: &str| {
        let is_forbidden = |letter: char| letter.is_whitespace() || "/@?#".contains(letter);
        !host.is_empty() && !host.contains(is_forbidden) && (host == "*" || !host.contains('*'))
    };
    for host in hosts.iter().filter(|host| !is_host(host.value)) {
        problems
            .at(host.span.clone(), format!("`{}` is not a host", host.value))
            .with_hint("for example `example.com`, `127.0.0.1:8080`, or `*` for all hosts");
    }
    hosts.iter().map(|host| host.value.to_owned()).collect()
}

/// Reads the MCP servers.
fn servers(
    node: &Node<'_, '_>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Vec<McpServer> {
    let mut names = BTreeSet::new();
    let server = |node: Node<'_, '_>| {
        let name = node.text("name")?;
        if name.value.trim().is_empty() {
            problems.at(name.span.clone(), "empty server name");
        }
        if !names.insert(name.value.to_owned()) {
            problems.at(name.span, format!("duplicate server name `{}`", name.value));
        }
        let server = match (node.texts("command"), node.text("url")) {
            (Some(command), None) => program(&node, name.value, command, context, problems)?,
            (None, Some(url)) => {
                let headers = node.text_map("headers");
                let server = McpServer::http(name.value, url.value, &headers, context.environment);
                resolved(server, &node, &url.span, problems)?
            }
            (command, _) => {
                let message = match command {
                    Some(_) => "a server cannot have both `command` and `url`",
                    None => "the server has neither `command` nor `url`",
                };
                problems.at(node.span.clone(), message).with_hint(
                    "`command` starts a program; `url` is the address of a server over HTTP",
                );
                return None;
            }
        };
        let other = if node.get("url").is_some() { "env" } else { "headers" };
        if let Some(value) = node.get(other) {
            let scope = if other == "env" { "command" } else { "url" };
            problems.at(value.span(), format!("`{other}` is for servers with `{scope}`"));
        }
        let names =
            |tools: Vec<SourceText<'_>>| tools.iter().map(|tool| tool.value.to_owned()).collect();
        Some(server.tools(node.texts("tools").map(names)))
    };
    node.tables("mcp").into_iter().filter_map(server).collect()
}

/// Reads a server that is a program.
fn program(
    node: &Node<'_, '_>,
    name: &str,
    command: Vec<SourceText<'_>>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<McpServer> {
    let words = command.iter().map(|word| absolute_if_file(context.folder(), word.value));
    let words: Vec<_> = words.collect();
    if let (Some(path), Some(word)) = (words.first(), command.first())
        && let Err(reason) = find_program(path, context.environment)
    {
        problems
            .at(word.span.clone(), format!("cannot run `{}`: {reason}", word.value))
            .with_hint("use a program on the PATH, or an executable file next to the suite file");
    }
    let server = McpServer::new(name, words);
    let server = server.environment(&node.text_map("env"), context.environment);
    resolved(server, node, &node.span, problems)
}

/// Reports why a server cannot be reached.
fn resolved(
    server: Result<McpServer, ModelError>,
    node: &Node<'_, '_>,
    url: &Range<usize>,
    problems: &mut Problems<'_>,
) -> Option<McpServer> {
    match server {
        Ok(server) => Some(server),
        Err(error) => {
            let additions = node.get("headers").or(node.get("env"));
            let additions = additions.map_or(url.clone(), |value| value.span());
            let spans = ModelSpans {
                name: additions.clone(),
                base_url: url.clone(),
                api_key_env: url.clone(),
                additions,
            };
            resolve::report(error, &spans, problems);
            None
        }
    }
}
