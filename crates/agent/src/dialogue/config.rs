//! Configuration of an agent loop.

use super::prompt_template::PromptTemplate;
use super::tool::Tool;
use bakeoff_core::{NanoDollars, Request, Thinking};
use bakeoff_llm::{Client, Model};
use bakeoff_pace::RunTag;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Configuration of a loop: model, request settings and limits, and optionally prompts and tools of its own, with
/// which the configs of a race can differ.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentLoopConfig {
    /// Client for the calls; loops with the same client share its pools.
    pub client: Arc<Client>,
    /// Model to call.
    pub model: Model,
    /// Name of the config in loop ids; derived from the model if absent.
    pub config_id: Option<String>,
    /// Instructions instead of those of the context.
    pub system_prompt: Option<String>,
    /// Wording of the prompts; they are sent unchanged if absent.
    pub prompt_template: Option<PromptTemplate>,
    /// Tools instead of those of the context.
    pub tools: Option<Vec<Arc<dyn Tool>>>,
    /// Settings of every request, such as the temperature. The loop sets messages and tools.
    pub request: Request,
    /// Limits that stop the loop.
    pub limits: ExecutionLimits,
    /// Compaction to the context window of the model; `None` sends the whole conversation.
    pub context_config: Option<ContextConfig>,
    /// Time limit of tools without a timeout of their own.
    pub tool_timeout: Duration,
    /// Run, sample and trial that the calls belong to.
    pub scope: CallScope,
}

impl AgentLoopConfig {
    /// Creates a config for a model with default settings.
    pub fn new(client: &Arc<Client>, model: Model) -> AgentLoopConfig {
        AgentLoopConfig {
            client: Arc::clone(client),
            model,
            config_id: None,
            system_prompt: None,
            prompt_template: None,
            tools: None,
            request: Request { stream: true, ..Request::default() },
            limits: ExecutionLimits::default(),
            context_config: None,
            tool_timeout: Duration::from_secs(120),
            scope: CallScope::default(),
        }
    }

    /// Sets the name of the config in loop ids.
    #[must_use]
    pub fn config_id(mut self, config_id: impl Into<String>) -> AgentLoopConfig {
        self.config_id = Some(config_id.into());
        self
    }

    /// Sets instructions that replace those of the context.
    #[must_use]
    pub fn system_prompt(mut self, system_prompt: impl Into<String>) -> AgentLoopConfig {
        self.system_prompt = Some(system_prompt.into());
        self
    }

    /// Sets the wording in which prompts are sent.
    #[must_use]
    pub fn prompt_template(mut self, template: PromptTemplate) -> AgentLoopConfig {
        self.prompt_template = Some(template);
        self
    }

    /// Sets tools that replace those of the context.
    #[must_use]
    pub fn tools(mut self, tools: Vec<Arc<dyn Tool>>) -> AgentLoopConfig {
        self.tools = Some(tools);
        self
    }

    /// Sets the reasoning effort in the terms of the provider: low, medium, high, …
    #[must_use]
    pub fn thinking(mut self, effort: impl Into<String>) -> AgentLoopConfig {
        self.request.thinking = Some(Thinking::Effort(effort.into()));
        self
    }

    /// Sets the settings of every request, such as the temperature. Set `stream` for message updates.
    #[must_use]
    pub fn request(mut self, request: Request) -> AgentLoopConfig {
        self.request = request;
        self
    }

    /// Sets the limits that stop the loop.
    #[must_use]
    pub fn limits(mut self, limits: ExecutionLimits) -> AgentLoopConfig {
        self.limits = limits;
        self
    }

    /// Compacts the conversation to the context window of the model.
    #[must_use]
    pub fn context_config(mut self, context_config: ContextConfig) -> AgentLoopConfig {
        self.context_config = Some(context_config);
        self
    }

    /// Sets the time limit of tools without a timeout of their own.
    #[must_use]
    pub fn tool_timeout(mut self, tool_timeout: Duration) -> AgentLoopConfig {
        self.tool_timeout = tool_timeout;
        self
    }

    /// Sets the run, sample and trial that the calls belong to.
    #[must_use]
    pub fn scope(mut self, scope: CallScope) -> AgentLoopConfig {
        self.scope = scope;
        self
    }

    /// Returns the part of loop ids that names the config: `config_id`, or `provider.model-slug[.thinking]`.
    pub fn segment(&self) -> String {
        if let Some(id) = &self.config_id {
            return id.clone();
        }
        let thinking = self.request.thinking.as_ref().or(self.model.settings().thinking.as_ref());
        let has_thinking = match thinking {
            None | Some(Thinking::Budget(0)) => false,
            Some(Thinking::Effort(effort)) => effort != "none",
            Some(Thinking::Budget(_)) => true,
        };
        let thinking = if has_thinking { ".thinking" } else { "" };
        let name = self.model.name();
        // Names of simulated models include the provider.
        let name = name.strip_prefix("sim/").unwrap_or(name);
        format!("{}.{}{thinking}", self.model.provider(), slug(name))
    }
}

/// Replaces all characters except letters, digits and `-` by `-`.
fn slug(name: &str) -> String {
    let is_kept = |letter: char| letter.is_alphanumeric() || letter == '-';
    name.chars().map(|letter| if is_kept(letter) { letter } else { '-' }).collect()
}

/// Limits that stop a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutionLimits {
    /// Maximum number of model calls.
    pub max_turns: u32,
    /// Maximum number of tokens of all calls, prompts included.
    pub max_tokens: u64,
    /// Maximum duration, including waits for permits and retries.
    pub max_time: Duration,
    /// Maximum cost. A loop with this limit cannot start if the price of the model is unknown.
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

impl ExecutionLimits {
    /// Sets the maximum number of model calls.
    #[must_use]
    pub fn max_turns(mut self, max_turns: u32) -> ExecutionLimits {
        self.max_turns = max_turns;
        self
    }

    /// Sets the maximum number of tokens of all calls, prompts included.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> ExecutionLimits {
        self.max_tokens = max_tokens;
        self
    }

    /// Sets the maximum duration.
    #[must_use]
    pub fn max_time(mut self, max_time: Duration) -> ExecutionLimits {
        self.max_time = max_time;
        self
    }

    /// Sets the maximum cost.
    #[must_use]
    pub fn max_cost(mut self, max_cost: NanoDollars) -> ExecutionLimits {
        self.max_cost = Some(max_cost);
        self
    }
}

/// Compaction of conversations.
///
/// ```
/// use bakeoff_agent::ContextConfig;
///
/// let config = ContextConfig::new(200_000).keep_recent(20);
/// assert_eq!((config.max_context_tokens, config.keep_recent), (200_000, 20));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextConfig {
    /// Context window of the model.
    pub max_context_tokens: u64,
    /// Number of messages kept at the beginning when the middle is omitted.
    pub keep_first: usize,
    /// Number of messages kept at the end when the middle is omitted.
    pub keep_recent: usize,
    /// Number of lines kept of a tool result that is shortened, half of them from its end.
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

impl ContextConfig {
    /// Creates a config for a model with this context window.
    pub fn new(max_context_tokens: u64) -> ContextConfig {
        ContextConfig { max_context_tokens, ..ContextConfig::default() }
    }

    /// Sets the number of messages kept at the beginning.
    #[must_use]
    pub fn keep_first(mut self, messages: usize) -> ContextConfig {
        self.keep_first = messages;
        self
    }

    /// Sets the number of messages kept at the end.
    #[must_use]
    pub fn keep_recent(mut self, messages: usize) -> ContextConfig {
        self.keep_recent = messages;
        self
    }

    /// Sets the number of lines kept of a shortened tool result.
    #[must_use]
    pub fn tool_output_lines(mut self, lines: usize) -> ContextConfig {
        self.tool_output_lines = lines;
        self
    }
}

/// Run, sample and trial of the calls of a loop. Cached responses are not shared between samples or trials.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallScope {
    /// Run; runs with the same pool alternate.
    pub run: RunTag,
    /// Name of what the responses are samples of.
    pub sample: String,
    /// Number of the trial.
    pub trial: u32,
    /// When cancelled, a call in flight completes and no further call is made.
    pub stop: CancellationToken,
}
