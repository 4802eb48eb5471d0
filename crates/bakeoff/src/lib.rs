//! Compare language models, prompts and agents, and find the best one.
//!
//! Bakeoff runs model calls as fast as the providers allow and reports the uncertainty of every result. This crate
//! is the library; the command line of the same name is built on it. There is one feature per job:
//!
//! | feature | module | job |
//! |---|---|---|
//! | `eval` | [`eval`] | run a suite of cases on several targets, check the outputs, and decide by confidence intervals |
//! | `race` | [`race`] | send one prompt through several configs at once, and continue with the best answer |
//! | `select` | [`select`] | find the best combination of models for the roles of an agent, with few evaluations |
//! | `map` | [`map`] | pack many items into few requests, and get one answer per item |
//! | `agent` | [`agent`] | run a model with tools, or an external program, on one task |
//! | `llm` | [`llm`] | call one model: providers, retries, cache, prices |
//! | `pace` | [`pace`] | send requests of any kind as fast as a rate limit allows |
//! | `cli` | | build the command line (default) |
//!
//! A program needs only the features that it uses:
//!
//! ```toml
//! [dependencies]
//! bakeoff = { version = "0.1", default-features = false, features = ["race"] }
//! ```
//!
//! The examples below are complete programs. They run on [`tokio`], which this crate exports; with tokio among your own
//! dependencies, `#[tokio::main]` is enough. They use the simulated provider `sim`, which needs no key and no
//! network. For a real model, write its name as `provider/model`, such as `openai/gpt-4.1-mini` or
//! `anthropic/claude-sonnet-4-5`, and set the provider's key in the environment (`OPENAI_API_KEY`,
//! `ANTHROPIC_API_KEY`). Calls to the same model share a pool, which finds the rate limit and stays just below it;
//! no setting is needed.
//!
//! # Race
//!
//! Two models answer the same question, a third one judges, and the conversation continues with the winner:
//!
#![cfg_attr(feature = "race", doc = "```")]
#![cfg_attr(not(feature = "race"), doc = "```ignore")]
//! use bakeoff::CancellationToken;
//! use bakeoff::agent::{AgentContext, AgentLoopConfig, AgentMessage, EventSender};
//! use bakeoff::llm::{Client, ClientConfig, Model};
//! use bakeoff::race::{LlmJudgeEvaluation, agent_loop_parallel, simulated_judge};
//! use std::sync::Arc;
//!
//! #[bakeoff::tokio::main(crate = "bakeoff::tokio")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Real models need no simulated judge: `Client::default()` is enough for them.
//!     let simulated = ClientConfig::default().simulated_models([simulated_judge()]);
//!     let client = Arc::new(Client::new(simulated));
//!     let config = |name| Model::from_env(name).map(|model| AgentLoopConfig::new(&client, model));
//!     let judge = LlmJudgeEvaluation::new(config("sim/judge")?);
//!     let mut race = agent_loop_parallel(
//!         vec![AgentMessage::user("Name three uses of a brick.")],
//!         AgentContext::default(),
//!         vec![config("sim/small")?, config("sim/large")?],
//!         Arc::new(judge),
//!         EventSender::disabled(),
//!         CancellationToken::new(),
//!     )
//!     .await?;
//!     println!("config {} won: {}", race.selected_index, race.answer());
//!
//!     let (message, next) = (AgentMessage::user("Explain the first one."), config("sim/large")?);
//!     let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
//!     let end = race.continue_with(message, &next, tx, cancel).await?;
//!     println!("{} ({} tokens)", end.answer(), end.usage.total());
//!     Ok(())
//! }
//! ```
//!
//! # Select
//!
//! An agent has two roles, and each role has candidates. The closure scores one combination on one datapoint. It can
//! call models in any way; the search decides which combinations are worth evaluating:
//!
#![cfg_attr(feature = "select", doc = "```")]
#![cfg_attr(not(feature = "select"), doc = "```ignore")]
//! use bakeoff::core::NanoDollars;
//! use bakeoff::select::{CellScore, Selection};
//!
//! #[bakeoff::tokio::main(crate = "bakeoff::tokio")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let result = Selection::new()
//!         .role("planner", ["small", "large"])
//!         .role("solver", ["small", "large"])
//!         .datapoints(100)
//!         .run(|combination, datapoint| async move {
//!             // Call the models of the combination here. An error is missing data, not a score of 0.
//!             let large = combination.iter().filter(|(_, model)| *model == "large").count();
//!             Ok(CellScore::from(datapoint % 4 < large + 1).cost(NanoDollars(250_000)))
//!         })
//!         .await?;
//!     println!("{} scores {:.2}", result.winner, result.score);
//!     println!("{} cells evaluated, {} spent", result.outcome.cells, result.spent);
//!     assert_eq!(result.winner.to_string(), "planner=large + solver=large");
//!     Ok(())
//! }
//! ```
//!
//! # Map
//!
//! Several items share a request. Every item gets its own answer, matched by an id and checked against the fields of
//! the task. Items without a valid answer are requested again in smaller packs:
//!
#![cfg_attr(feature = "map", doc = "```")]
#![cfg_attr(not(feature = "map"), doc = "```ignore")]
//! use bakeoff::llm::{Client, ClientConfig, Model};
//! use bakeoff::map::{Task, map_items, simulated_models};
//! use std::sync::Arc;
//!
//! #[bakeoff::tokio::main(crate = "bakeoff::tokio")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Real models need no simulated ones: `Client::default()` is enough for them.
//!     let simulated = ClientConfig::default().simulated_models([simulated_models()]);
//!     let client = Arc::new(Client::new(simulated));
//!     let model = Model::from_env("sim/map")?;
//!     let task = Task::parse(
//!         r#"
//!         instructions = "Classify each review."
//!         [output.sentiment]
//!         type = "string"
//!         enum = ["good", "bad"]
//!         "#,
//!     )?;
//!     let reviews = vec!["Great value.", "Broke after a day.", "Would buy again."];
//!     let answers = map_items(&client, &model, &task, &reviews).await?;
//!     for (review, answer) in reviews.iter().zip(answers) {
//!         match answer {
//!             Ok(answer) => println!("{review} -> {}", answer["sentiment"]),
//!             Err(error) => println!("{review} has no answer: {error}"),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Eval
//!
//! A suite names targets, cases and checks. A run executes every case on every target, writes each result to disk
//! before it counts, and ends with a verdict per target:
//!
#![cfg_attr(feature = "eval", doc = "```")]
#![cfg_attr(not(feature = "eval"), doc = "```ignore")]
//! use bakeoff::core::Verdict;
//! use bakeoff::eval::{Run, RunConfig, Stopper};
//! use bakeoff::suite::Suite;
//!
//! const SUITE: &str = r#"
//! target = [{ name = "echo", model = "sim/echo", prompt = "Say {{ word }}." }]
//! cases.inline = [{ word = "hello" }, { word = "bye" }]
//! check = [{ kind = "contains", value = "{{ word }}" }]
//! "#;
//!
//! #[bakeoff::tokio::main(crate = "bakeoff::tokio")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = std::env::temp_dir().join("bakeoff-example");
//!     std::fs::create_dir_all(&folder)?;
//!     let path = folder.join("bakeoff.toml");
//!     std::fs::write(&path, SUITE)?;
//!     let suite = Suite::load(&path, &|name| std::env::var(name).ok())?;
//!     let run = Run::new(suite, RunConfig::new(folder.join("runs")))?;
//!     let finished = run.execute(&Stopper::default(), &mut |_event| {}).await?;
//!     for target in &finished.summary.targets {
//!         println!("{}: {} of {} cases passed", target.target, target.passed, target.total_cases);
//!     }
//!     assert_eq!(finished.summary.verdict, Verdict::Passed);
//!     Ok(())
//! }
//! ```
//!
//! # Single calls
//!
//! All jobs are built on [`llm`]. One call to one model, with retries, prices and pacing:
//!
#![cfg_attr(feature = "llm", doc = "```")]
#![cfg_attr(not(feature = "llm"), doc = "```ignore")]
//! use bakeoff::core::{Message, Request};
//! use bakeoff::llm::{CallContext, Client, Model};
//!
//! #[bakeoff::tokio::main(crate = "bakeoff::tokio")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::default();
//!     let model = Model::from_env("sim/echo")?;
//!     let request = Request { messages: vec![Message::user("hello")], ..Request::default() };
//!     let call = client.call(&model, request, &CallContext::default()).await?;
//!     println!("{} after {:?}", call.response.text(), call.latency);
//!     assert_eq!(call.response.text(), "hello");
//!     Ok(())
//! }
//! ```
//!
//! The folder `examples` of the repository has runnable programs for [`agent`], [`race`], [`select`], [`map`] and
//! [`pace`].
//!
//! # Conventions
//!
//! - Errors are values: every fallible function returns a type that implements [`std::error::Error`]. A model call
//!   that fails is data in the result of a job, not an error of the job.
//! - Money is an integer number of nano-dollars ([`core::NanoDollars`]); a cost of `None` means that the price is
//!   unknown.
//! - Futures can be dropped at any time, which cancels their requests. A [`CancellationToken`] stops a job and keeps
//!   its results.

// A link to a module that is not compiled in is plain text.
#![cfg_attr(
    not(all(feature = "eval", feature = "race", feature = "select", feature = "map")),
    allow(rustdoc::broken_intra_doc_links)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Makes traits with async methods usable as trait objects; for implementations of tools and strategies.
#[cfg(any(feature = "agent", feature = "select"))]
pub use async_trait::async_trait;
#[cfg(feature = "agent")]
pub use bakeoff_agent as agent;
#[cfg(feature = "eval")]
pub use bakeoff_check as check;
pub use bakeoff_core as core;
#[cfg(feature = "eval")]
pub use bakeoff_eval as eval;
#[cfg(feature = "eval")]
pub use bakeoff_history as history;
#[cfg(feature = "llm")]
pub use bakeoff_llm as llm;
#[cfg(feature = "map")]
pub use bakeoff_map as map;
#[cfg(feature = "pace")]
pub use bakeoff_pace as pace;
#[cfg(feature = "race")]
pub use bakeoff_race as race;
#[cfg(feature = "select")]
pub use bakeoff_select as select;
#[cfg(feature = "llm")]
pub use bakeoff_sim as sim;
#[cfg(feature = "eval")]
pub use bakeoff_stats as stats;
#[cfg(feature = "eval")]
pub use bakeoff_suite as suite;
/// JSON values, for the arguments and schemas of tools.
#[cfg(feature = "agent")]
pub use serde_json::{Value, json};
/// The asynchronous runtime of this crate.
pub use tokio;
pub use tokio_util::sync::CancellationToken;

/// The example of the page about races.
#[cfg(all(doctest, feature = "race"))]
#[doc = include_str!("../../../docs/race.md")]
struct RacePage;
