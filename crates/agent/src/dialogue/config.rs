//! How a loop goes about it.

use bakeoff_core::{NanoDollars, Request, Thinking};
use bakeoff_llm::{Client, Model};
use bakeoff_pace::RunTag;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a loop goes about it: which model, with which settings and limits.
#[derive(Debug, Clone)]
pub struct AgentLoopConfig {
    /// Makes the calls; its pools are shared by all loops that have it.
    pub client: Arc<Client>,
    /// The model.
    pub model: Model,
    /// Names the config in ids of loops; made from the model when absent.
    pub config_id: Option<String>,
    /// Settings of every request, such as the temperature; messages and tools are filled in.
    pub request: Request,
    /// When it has to stop.
    pub limits: ExecutionLimits,
    /// Keeps what is sent within the model's window; everything is sent when absent.
    pub context_config: Option<ContextConfig>,
    /// How long a tool may take that does not say so itself.
    pub tool_timeout: Duration,
    /// Whose calls they are.
    pub behalf: Behalf,
}

impl AgentLoopConfig {
    /// A model with everything else at its default.
    pub fn new(client: &Arc<Client>, model: Model) -> AgentLoopConfig {
        AgentLoopConfig {
            client: Arc::clone(client),
            model,
            config_id: None,
            request: Request { stream: true, ..Request::default() },
            limits: ExecutionLimits::default(),
            context_config: None,
            tool_timeout: Duration::from_secs(120),
            behalf: Behalf::default(),
        }
    }

    /// The config's part of a loop's id: its `config_id`, or `provider.model-slug[.thinking]`.
    pub fn segment(&self) -> String {
        if let Some(id) = &self.config_id {
            return id.clone();
        }
        let thinks = match &self.request.thinking {
            None | Some(Thinking::Budget(0)) => false,
            Some(Thinking::Effort(effort)) => effort != "none",
            Some(Thinking::Budget(_)) => true,
        };
        let thinking = if thinks { ".thinking" } else { "" };
        let name = self.model.name();
        // Simulated models have the provider in their names.
        let name = name.strip_prefix("sim/").unwrap_or(name);
        format!("{}.{}{thinking}", self.model.provider(), slug(name))
    }
}

/// Everything but letters, digits and `-` becomes `-`.
fn slug(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || letter == '-';
    name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect()
}

/// When a loop has to stop, however far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionLimits {
    /// Most calls of the model.
    pub max_turns: u32,
    /// Most tokens of all its calls, prompts included.
    pub max_tokens: u64,
    /// Most time, waiting for permits and retries included.
    pub max_time: Duration,
    /// Most money. Where the price is unknown it cannot be kept, and the loop fails at once.
    pub max_cost: Option<NanoDollars>,
}

impl Default for ExecutionLimits {
    fn default() -> ExecutionLimits {
        ExecutionLimits {
            max_turns: 50,
            max_tokens: 1_000_000,
            max_time: Duration::from_secs(600),
            max_cost: None,
        }
    }
}

/// How much of a conversation is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextConfig {
    /// The model's window.
    pub max_context_tokens: u64,
    /// Messages at the beginning that are kept when those in the middle are left out.
    pub keep_first: usize,
    /// Messages at the end that are kept when those in the middle are left out.
    pub keep_recent: usize,
    /// Lines that are kept of a tool's output when it has to be cut, half of them from its end.
    pub tool_output_lines: usize,
}

impl Default for ContextConfig {
    fn default() -> ContextConfig {
        ContextConfig {
            max_context_tokens: 100_000,
            keep_first: 2,
            keep_recent: 10,
            tool_output_lines: 50,
        }
    }
}

/// Whose calls a loop makes. Answers are never shared between samples and trials.
#[derive(Debug, Clone, Default)]
pub struct Behalf {
    /// Which run; runs on one pool take turns.
    pub run: RunTag,
    /// What the answers are samples of.
    pub sample: String,
    /// Which trial.
    pub trial: u32,
    /// Lets a call that is under way finish, and makes no other.
    pub stop: CancellationToken,
}
