//! Known coding agents: their command lines and the formats of their event streams.
//!
//! All of them read the prompt from standard input and print one JSON object per line. Their formats have little
//! in common, so each has a parser of its own; the result has the same form for all ([`AgentOutput`]).

mod aikit;
mod claude;
mod codex;
mod cursor;
mod failure;
mod gemini;
mod lines;
mod opencode;
mod output;
mod pi;
mod recent_ids;

pub use failure::classify_failure;
pub use output::{AgentOutput, ToolExchange, ToolResult};

use lines::{LineSplitter, StreamLine};
use serde_json::{Value, json};
use std::ffi::OsString;

/// A coding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingAgent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    OpenCode,
    /// Cursor Agent.
    Cursor,
    /// pi.
    Pi,
    /// The agent built into aikit.
    Aikit,
}

impl CodingAgent {
    /// All known agents.
    pub const ALL: [CodingAgent; 7] = [
        CodingAgent::Claude,
        CodingAgent::Codex,
        CodingAgent::Gemini,
        CodingAgent::OpenCode,
        CodingAgent::Cursor,
        CodingAgent::Pi,
        CodingAgent::Aikit,
    ];

    /// Returns the agent with this name.
    pub fn find(name: &str) -> Option<CodingAgent> {
        match name {
            // Current and former name in FastSkill.
            "cursor" | "agent" => Some(CodingAgent::Cursor),
            _ => CodingAgent::ALL.into_iter().find(|agent| agent.name() == name),
        }
    }

    /// Returns the name of the agent in suites.
    pub const fn name(self) -> &'static str {
        match self {
            CodingAgent::Claude => "claude",
            CodingAgent::Codex => "codex",
            CodingAgent::Gemini => "gemini",
            CodingAgent::OpenCode => "opencode",
            CodingAgent::Cursor => "cursor-agent",
            CodingAgent::Pi => "pi",
            CodingAgent::Aikit => "aikit",
        }
    }

    /// Returns possible names of its program; the first that is installed is used.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            CodingAgent::Cursor => &["cursor-agent", "agent"],
            CodingAgent::Claude => &["claude"],
            CodingAgent::Codex => &["codex"],
            CodingAgent::Gemini => &["gemini"],
            CodingAgent::OpenCode => &["opencode"],
            CodingAgent::Pi => &["pi"],
            CodingAgent::Aikit => &["aikit"],
        }
    }

    /// Returns its arguments: prompt from standard input, event stream on standard output, no confirmations, and
    /// the additional arguments `more` of the user.
    pub fn arguments(self, model: Option<&str>, more: &[OsString]) -> Vec<OsString> {
        let model = |flag: &str| {
            let model = model.filter(|model| !model.trim().is_empty());
            model.map(|model| [flag.into(), OsString::from(model)]).into_iter().flatten()
        };
        let flags = |flags: &'static [&'static str]| flags.iter().map(OsString::from);
        let more = more.iter().cloned();
        match self {
            CodingAgent::Claude => flags(&["-p", "-", "--dangerously-skip-permissions"])
                .chain(model("--model"))
                .chain(flags(&["--output-format", "stream-json", "--verbose"]))
                .chain(more)
                .collect(),
            // Without the last flag, Codex does not start outside of a Git repository.
            CodingAgent::Codex => flags(&["exec"])
                .chain(model("-m"))
                .chain(flags(&["--yolo", "--json", "--skip-git-repo-check"]))
                .chain(more)
                .chain(flags(&["--", "-"]))
                .collect(),
            CodingAgent::Gemini => {
                flags(&["--prompt", "-", "--output-format", "stream-json", "--yolo"])
                    .chain(model("--model"))
                    .chain(more)
                    .collect()
            }
            CodingAgent::OpenCode => model("-m")
                .chain(flags(&["run", "--dangerously-skip-permissions", "--format", "json"]))
                .chain(more)
                .chain(flags(&["-"]))
                .collect(),
            CodingAgent::Cursor => flags(&["--print", "--output-format", "stream-json"])
                .chain(model("--model"))
                .chain(flags(&["--force"]))
                .chain(more)
                .collect(),
            CodingAgent::Pi => {
                flags(&["--mode", "rpc"]).chain(model("--model")).chain(more).collect()
            }
            CodingAgent::Aikit => flags(&["run", "--agent", "aikit", "--yolo", "--events"])
                .chain(model("--model"))
                .chain(more)
                .collect(),
        }
    }

    /// Returns what it reads from standard input for a prompt.
    pub fn input(self, prompt: &str) -> String {
        match self {
            CodingAgent::Pi => format!("{}\n", json!({"type": "prompt", "message": prompt})),
            _ => prompt.to_owned(),
        }
    }

    /// Returns whether standard input must stay open until [`AgentOutputParser::is_settled`].
    pub fn keeps_input_open(self) -> bool {
        self == CodingAgent::Pi
    }

    /// Whether its event stream contains the cost; the others report tokens only.
    pub fn reports_cost(self) -> bool {
        matches!(self, CodingAgent::Claude | CodingAgent::OpenCode)
    }

    /// Returns a parser for its standard output.
    pub fn parser(self) -> AgentOutputParser {
        let format: Box<dyn EventFormat> = match self {
            CodingAgent::Claude => Box::<claude::Claude>::default(),
            CodingAgent::Codex => Box::<codex::Codex>::default(),
            CodingAgent::Gemini => Box::<gemini::Gemini>::default(),
            CodingAgent::OpenCode => Box::<opencode::OpenCode>::default(),
            CodingAgent::Cursor => Box::<cursor::Cursor>::default(),
            CodingAgent::Pi => Box::<pi::Pi>::default(),
            CodingAgent::Aikit => Box::<aikit::Aikit>::default(),
        };
        AgentOutputParser { lines: LineSplitter::default(), format, output: AgentOutput::default() }
    }
}

/// Event format of one agent.
trait EventFormat: Send + std::fmt::Debug {
    /// Applies an event to the output.
    fn apply(&mut self, event: &Value, output: &mut AgentOutput);

    /// Returns whether the agent has reported that nothing follows; only some agents do.
    fn is_settled(&self) -> bool {
        false
    }

    /// Completes the output after the last event. The agent may have been terminated.
    fn finish(&mut self, output: &mut AgentOutput) {
        let _ = output;
    }
}

/// Incremental parser for the standard output of an agent. Its memory is bounded, so the last events are parsed
/// regardless of the length of the stream.
#[derive(Debug)]
pub struct AgentOutputParser {
    lines: LineSplitter,
    format: Box<dyn EventFormat>,
    output: AgentOutput,
}

impl AgentOutputParser {
    /// Parses the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let AgentOutputParser { lines, format, output } = self;
        lines.push(bytes, |line| parse_line(format.as_mut(), line, output));
    }

    /// Returns whether the agent has reported that nothing follows.
    pub fn is_settled(&self) -> bool {
        self.format.is_settled()
    }

    /// Parses an incomplete last line and returns the output.
    pub fn finish(self) -> AgentOutput {
        let AgentOutputParser { lines, mut format, mut output } = self;
        lines.finish(|line| parse_line(format.as_mut(), line, &mut output));
        format.finish(&mut output);
        output
    }
}

/// Applies one line. Lines that are no JSON objects are ignored: they come from programs around the agent. Lines
/// that exceed a limit may contain anything, so they are recorded as dropped.
fn parse_line(format: &mut dyn EventFormat, line: StreamLine<'_>, output: &mut AgentOutput) {
    match line {
        StreamLine::Dropped(bytes) => output.drop_line(bytes),
        StreamLine::Complete(line) => match serde_json::from_slice(line) {
            Ok(event @ Value::Object(_)) => format.apply(&event, output),
            // serde_json identifies this error by its message only.
            Err(error) if error.to_string().starts_with("recursion limit") => {
                output.drop_line(line.len() as u64);
            }
            _ => {}
        },
    }
}
