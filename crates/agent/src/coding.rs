//! Coding agents that are known by name: how each is started, and what its stream of events says.
//!
//! All of them are given the prompt on standard input and print one JSON object per line. Their
//! formats have little in common, so each has a reader of its own; what comes out is the same for
//! all ([`Said`]).

mod claude;
mod codex;
mod cursor;
mod gemini;
mod lines;
mod opencode;
mod recent;
mod said;
mod trouble;

pub use said::Said;
pub use trouble::trouble;

use lines::{Line, Lines};
use serde_json::Value;
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
    /// Cursor's agent.
    Cursor,
}

impl CodingAgent {
    /// All of them.
    pub const ALL: [CodingAgent; 5] = [
        CodingAgent::Claude,
        CodingAgent::Codex,
        CodingAgent::Gemini,
        CodingAgent::OpenCode,
        CodingAgent::Cursor,
    ];

    /// The agent of that name.
    pub fn find(name: &str) -> Option<CodingAgent> {
        match name {
            // As FastSkill calls it, now and in the past.
            "cursor" | "agent" => Some(CodingAgent::Cursor),
            _ => CodingAgent::ALL.into_iter().find(|agent| agent.name() == name),
        }
    }

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            CodingAgent::Claude => "claude",
            CodingAgent::Codex => "codex",
            CodingAgent::Gemini => "gemini",
            CodingAgent::OpenCode => "opencode",
            CodingAgent::Cursor => "cursor-agent",
        }
    }

    /// Names that its program may have; the first that is there is taken.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            CodingAgent::Cursor => &["cursor-agent", "agent"],
            CodingAgent::Claude => &["claude"],
            CodingAgent::Codex => &["codex"],
            CodingAgent::Gemini => &["gemini"],
            CodingAgent::OpenCode => &["opencode"],
        }
    }

    /// Its arguments: the prompt from standard input, a stream of events, no questions. `more` are the
    /// user's own.
    pub fn arguments(self, model: Option<&str>, more: &[OsString]) -> Vec<OsString> {
        let model = |flag: &str| {
            let model = model.filter(|model| !model.trim().is_empty());
            model.map(|model| [flag.into(), OsString::from(model)]).into_iter().flatten()
        };
        let words = |words: &'static [&'static str]| words.iter().map(OsString::from);
        let more = more.iter().cloned();
        match self {
            CodingAgent::Claude => words(&["-p", "-", "--dangerously-skip-permissions"])
                .chain(model("--model"))
                .chain(words(&["--output-format", "stream-json", "--verbose"]))
                .chain(more)
                .collect(),
            // A workspace need not be a repository, and without one it would not start.
            CodingAgent::Codex => words(&["exec"])
                .chain(model("-m"))
                .chain(words(&["--yolo", "--json", "--skip-git-repo-check"]))
                .chain(more)
                .chain(words(&["--", "-"]))
                .collect(),
            CodingAgent::Gemini => {
                words(&["--prompt", "-", "--output-format", "stream-json", "--yolo"])
                    .chain(model("--model"))
                    .chain(more)
                    .collect()
            }
            CodingAgent::OpenCode => model("-m")
                .chain(words(&["run", "--dangerously-skip-permissions", "--format", "json"]))
                .chain(more)
                .chain(words(&["-"]))
                .collect(),
            CodingAgent::Cursor => words(&["--print", "--output-format", "stream-json"])
                .chain(model("--model"))
                .chain(words(&["--force"]))
                .chain(more)
                .collect(),
        }
    }

    /// Someone who understands what it says.
    pub fn listener(self) -> Listener {
        let dialect: Box<dyn Dialect> = match self {
            CodingAgent::Claude => Box::<claude::Claude>::default(),
            CodingAgent::Codex => Box::<codex::Codex>::default(),
            CodingAgent::Gemini => Box::<gemini::Gemini>::default(),
            CodingAgent::OpenCode => Box::<opencode::OpenCode>::default(),
            CodingAgent::Cursor => Box::<cursor::Cursor>::default(),
        };
        Listener { lines: Lines::default(), dialect, said: Said::default() }
    }
}

/// Reads the events of one agent.
trait Dialect: Send + std::fmt::Debug {
    /// Takes note of an event.
    fn hear(&mut self, event: &Value, said: &mut Said);

    /// Nothing more will come, perhaps because the agent was ended.
    fn end(&mut self, said: &mut Said) {
        let _ = said;
    }
}

/// Listens to an agent's standard output while it comes, so that its end is understood however long
/// it gets.
#[derive(Debug)]
pub struct Listener {
    lines: Lines,
    dialect: Box<dyn Dialect>,
    said: Said,
}

impl Listener {
    /// Takes the next piece.
    pub fn hear(&mut self, piece: &[u8]) {
        let Listener { lines, dialect, said } = self;
        lines.push(piece, |line| hear(dialect.as_mut(), line, said));
    }

    /// What was said in all.
    pub fn finish(self) -> Said {
        let Listener { lines, mut dialect, mut said } = self;
        lines.finish(|line| hear(dialect.as_mut(), line, &mut said));
        dialect.end(&mut said);
        said
    }
}

/// Lines that are no JSON are talk of the program around the agent. What cannot be read because there
/// is too much of it may be anything.
fn hear(dialect: &mut dyn Dialect, line: Line<'_>, said: &mut Said) {
    match line {
        Line::Lost(bytes) => said.lose(bytes),
        Line::Read(line) => match serde_json::from_slice(line) {
            Ok(event @ Value::Object(_)) => dialect.hear(&event, said),
            // It has no name for it but these words.
            Err(error) if error.to_string().starts_with("recursion limit") => {
                said.lose(line.len() as u64);
            }
            _ => {}
        },
    }
}
