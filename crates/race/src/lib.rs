//! Races: one prompt through several configs concurrently, and the selection of the best answer.
//!
//! [`agent_loop_parallel`] runs the branches, lets an [`EvaluationStrategy`] select the winner, and returns
//! the winner's context, with which the session continues. A branch that fails, panics or is cancelled does
//! not affect the others and never wins.
//!
//! The examples use the simulated provider. For a real one, export its API key and name a model, such as
//! `ModelConfig::named("anthropic", "claude-haiku-4-5")`.
//!
//! # Two configs, one winner
//!
//! ```
//! use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
//! use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use bakeoff_race::{PickFirstEvaluation, agent_loop_parallel};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // One client, so that all calls share the same pools.
//! let client = Arc::new(Client::new(ClientConfig::default()));
//! let environment = |name: &str| std::env::var(name).ok();
//! let model = |name| Model::resolve(&ModelConfig::named("sim", name), &environment);
//! let mut config_a = AgentLoopConfig::new(&client, model("a")?);
//! config_a.request.temperature = Some(0.2);
//! let config_b = AgentLoopConfig::new(&client, model("b")?);
//!
//! let result = agent_loop_parallel(
//!     vec![AgentMessage::user("Explain quantum entanglement.")],
//!     AgentContext::default().with_system_prompt("Be concise."),
//!     vec![config_a, config_b],
//!     Arc::new(PickFirstEvaluation), // or any other strategy
//!     EventSender::disabled(),
//!     CancellationToken::new(),
//! )
//! .await?;
//! assert_eq!(result.selected_index, 0);
//! println!("{} says: {}", result.selected.loop_id, result.answer());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A judge, events, and continuing with the winner
//!
//! ```
//! use bakeoff_agent::{
//!     AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, ContextConfig, EventSender,
//!     event_channel,
//! };
//! use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use bakeoff_race::{LlmJudgeEvaluation, VerdictKind, agent_loop_parallel};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let simulated = [bakeoff_check::judge::simulated_judge()];
//! # let client = Client::new(ClientConfig::default().simulated_models(simulated));
//! # let client = Arc::new(client);
//! # let model = |name| Model::resolve(&ModelConfig::named("sim", name), &|_| None);
//! let config = |name| model(name).map(|model| AgentLoopConfig::new(&client, model));
//! // The judge's prompt is compacted to this window.
//! let window = ContextConfig::new(200_000);
//! let judge = LlmJudgeEvaluation::new(config("judge")?.context_config(window));
//! let (tx, mut rx) = event_channel(1024);
//! let listener = tokio::spawn(async move {
//!     let mut done = 0;
//!     while let Some(event) = rx.recv().await {
//!         if let AgentEvent::AgentEnd { loop_id, .. } = event {
//!             println!("{loop_id} is done");
//!             done += 1;
//!         }
//!     }
//!     done
//! });
//! let question = "What is the most important discovery in physics of the 20th century?";
//! let mut result = agent_loop_parallel(
//!     vec![AgentMessage::user(question)],
//!     AgentContext::default(),
//!     vec![config("a")?, config("b")?],
//!     Arc::new(judge),
//!     tx,
//!     CancellationToken::new(),
//! )
//! .await?;
//! assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
//! assert_eq!(listener.await?, 4, "two branches, and the judge in both orders");
//! println!("{} tokens: {}", result.total_usage.total(), result.verdict.reasons.join("; "));
//!
//! // The session continues with the winner, here with another config.
//! let (next, tx) = (config("echo")?, EventSender::disabled());
//! let message = AgentMessage::user("Why?");
//! let end = result.continue_with(message, &next, tx, CancellationToken::new()).await?;
//! assert_eq!(end.loop_id.number(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A custom strategy
//!
//! ```
//! use async_trait::async_trait;
//! use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
//! use bakeoff_core::Usage;
//! use bakeoff_race::{
//!     EvaluationDecision, EvaluationStrategy, ParallelLoopOutcome, agent_loop_parallel,
//! };
//! # use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! struct LongestResponse;
//!
//! #[async_trait]
//! impl EvaluationStrategy for LongestResponse {
//!     async fn evaluate(
//!         &self,
//!         _prompts: &[AgentMessage],
//!         outcomes: &[ParallelLoopOutcome],
//!         _tx: &EventSender,
//!         _cancel: CancellationToken,
//!     ) -> (EvaluationDecision, Usage) {
//!         let eligible = outcomes.iter().filter(|outcome| outcome.is_eligible());
//!         let longest = eligible.max_by_key(|outcome| outcome.answer().len());
//!         let index = longest.map_or(0, |outcome| outcome.config_index);
//!         (EvaluationDecision::select(index, "the longest answer"), Usage::default())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let client = Arc::new(Client::new(ClientConfig::default()));
//! # let model = |name| Model::resolve(&ModelConfig::named("sim", name), &|_| None);
//! # let config = |name| model(name).map(|model| AgentLoopConfig::new(&client, model));
//! let result = agent_loop_parallel(
//!     vec![AgentMessage::user("Hi")],
//!     AgentContext::default(),
//!     vec![config("echo")?, config("a")?, config("fault-400")?],
//!     Arc::new(LongestResponse),
//!     EventSender::disabled(),
//!     CancellationToken::new(),
//! )
//! .await?;
//! assert_eq!(result.selected_index, 1);
//! assert_eq!(result.verdict.reasons, ["the longest answer"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Continue mode
//!
//! Without prompts, the branches answer the last message of the context:
//!
//! ```
//! # use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
//! # use bakeoff_core::Message;
//! # use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! # use bakeoff_race::{TokenEfficientEvaluation, agent_loop_parallel};
//! # use std::sync::Arc;
//! # use tokio_util::sync::CancellationToken;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let client = Arc::new(Client::new(ClientConfig::default()));
//! # let model = |name| Model::resolve(&ModelConfig::named("sim", name), &|_| None);
//! # let config = |name| model(name).map(|model| AgentLoopConfig::new(&client, model));
//! let mut context = AgentContext::default();
//! context.messages.push(Message::user("What is quantum mechanics?").into());
//! context.messages.push(Message::assistant("A branch of physics.").into());
//! context.messages.push(Message::user("And entanglement?").into());
//! let result = agent_loop_parallel(
//!     vec![],
//!     context,
//!     vec![config("a")?, config("echo")?],
//!     Arc::new(TokenEfficientEvaluation),
//!     EventSender::disabled(),
//!     CancellationToken::new(),
//! )
//! .await?;
//! assert_eq!(result.selected.original_context_len, 3);
//! assert_eq!(result.answer(), "And entanglement?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod judge;
mod names;
mod outcome;
mod panics;
mod parallel;
mod session;
mod strategies;
mod strategy;
#[cfg(test)]
mod testing;
mod tie;

pub use bakeoff_check::judge::simulated_judge;
pub use error::{BranchFailure, RaceError};
pub use judge::{LlmJudgeEvaluation, Orders};
pub use outcome::{ParallelLoopOutcome, ParallelLoopResult, SelectedBranch};
pub use parallel::{Race, agent_loop_parallel};
pub use session::{RecordedRace, RecordedSession, SessionError, SessionFile, UnfinishedRace};
pub use strategies::{
    CheapestEvaluation, ElaborateEvaluation, Extraction, Extractor, FastestEvaluation,
    MajorityEvaluation, PairwiseEvaluation, PanelEvaluation, PickFirstEvaluation, ProgramVerifier,
    TokenEfficientEvaluation, TransparentEvaluation, Verification, VerifierEvaluation, Verify,
};
pub use strategy::{Ballot, EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
