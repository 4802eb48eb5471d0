//! `[[target]]` with a `model` and tools.

use super::programs::{beside, find_program, workspace};
use super::suite::Refining;
use super::tree::{At, Node};
use crate::problem::Problems;
use bakeoff_agent::McpServer;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Calls of the model when the suite names no number.
const MAX_TURNS: u32 = 50;

/// Seconds that a tool may take when the suite names no number.
const TOOL_TIMEOUT: Duration = Duration::from_secs(120);

/// How a model works with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// Names of tools that Bakeoff has.
    pub tools: Vec<String>,
    /// Programs that have more.
    pub mcp: Vec<McpServer>,
    /// Most calls of the model.
    pub max_turns: u32,
    /// The folder that each trial gets a copy of; an empty one when absent.
    pub workspace: Option<PathBuf>,
    /// Hosts that pages may be fetched from.
    pub fetch_hosts: Vec<String>,
    /// Keeps what is sent within the model's window; everything is sent when absent.
    pub max_context_tokens: Option<u64>,
    /// How long a tool may take.
    pub tool_timeout: Duration,
}

impl AgentSettings {
    /// Whether it starts programs, which take room on this machine.
    pub fn starts_programs(&self) -> bool {
        !self.mcp.is_empty() || self.tools.iter().any(|tool| tool == "run_command")
    }
}

/// Reads how a model works with tools.
pub(super) fn read(
    node: &Node<'_, '_>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> AgentSettings {
    let tools = node.texts("tools").unwrap_or_default();
    let mut seen = BTreeSet::new();
    for tool in tools.iter().filter(|tool| !seen.insert(tool.value)) {
        problems.at(tool.span.clone(), format!("the tool `{}` is named twice", tool.value));
    }
    let fetch_hosts = fetch_hosts(node, &tools, problems);
    AgentSettings {
        tools: tools.iter().map(|tool| tool.value.to_owned()).collect(),
        mcp: servers(node, refining, problems),
        max_turns: node
            .integer("max_turns")
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(MAX_TURNS),
        workspace: workspace(node, refining, problems),
        fetch_hosts,
        max_context_tokens: node
            .integer("max_context_tokens")
            .and_then(|number| u64::try_from(number).ok()),
        tool_timeout: node
            .number("tool_timeout_seconds")
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(TOOL_TIMEOUT),
    }
}

/// The hosts that pages may be fetched from; nobody fetches anything without saying from where.
fn fetch_hosts(
    node: &Node<'_, '_>,
    tools: &[At<&str>],
    problems: &mut Problems<'_>,
) -> Vec<String> {
    let fetch = tools.iter().find(|tool| tool.value == "http_fetch");
    let hosts = node.texts("fetch_hosts");
    match (fetch, &hosts, node.get("fetch_hosts")) {
        (Some(fetch), _, None) => {
            problems.at(fetch.span.clone(), "`http_fetch` needs `fetch_hosts`").with_hint(
                "add `fetch_hosts = [\"example.com\"]` with the hosts that may be fetched from, or \
                 `[\"*\"]` for all",
            );
        }
        (None, _, Some(value)) => {
            let message = "`fetch_hosts` is for the tool `http_fetch`, which this target has not";
            problems.at(value.span(), message);
        }
        _ => {}
    }
    let hosts = hosts.unwrap_or_default();
    let is_host = |host: &str| {
        let odd = |letter: char| letter.is_whitespace() || "/@?#".contains(letter);
        !host.is_empty() && !host.contains(odd) && (host == "*" || !host.contains('*'))
    };
    for host in hosts.iter().filter(|host| !is_host(host.value)) {
        problems
            .at(host.span.clone(), format!("`{}` is no host", host.value))
            .with_hint("such as `example.com`, `127.0.0.1:8080`, or `*` for all hosts");
    }
    hosts.iter().map(|host| host.value.to_owned()).collect()
}

/// The MCP servers.
fn servers(
    node: &Node<'_, '_>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Vec<McpServer> {
    let mut names = BTreeSet::new();
    let server = |node: Node<'_, '_>| {
        let name = node.text("name")?;
        if name.value.trim().is_empty() {
            problems.at(name.span.clone(), "a server's name must not be empty");
        }
        if !names.insert(name.value.to_owned()) {
            problems.at(name.span, format!("two servers are named `{}`", name.value));
        }
        let command = node.texts("command")?;
        let words = command.iter().map(|word| beside(refining.folder(), word.value));
        let words: Vec<_> = words.collect();
        if let (Some(path), Some(word)) = (words.first(), command.first())
            && let Err(reason) = find_program(path, refining.environment)
        {
            problems
                .at(word.span.clone(), format!("cannot run `{}`: {reason}", word.value))
                .with_hint("name a program on the PATH, or an executable file beside the suite");
        }
        let only = |tools: Vec<At<&str>>| tools.iter().map(|tool| tool.value.to_owned()).collect();
        Some(McpServer {
            name: name.value.to_owned(),
            command: words,
            tools: node.texts("tools").map(only),
        })
    };
    node.tables("mcp").into_iter().filter_map(server).collect()
}
