//! Find out which model, prompt or agent is best, and how sure that is.
//!
//! This crate is the door for programs that embed Bakeoff; it only re-exports. [`llm`] makes single
//! calls, paced, retried, cached and priced; [`agent`] runs a model with tools, [`race`] several
//! configs beside each other; [`map`] packs many rows into few requests; [`eval`] runs whole suites;
//! [`select`] finds the best of many combinations of anything that can be scored.
//!
//! One call to one model (here the simulated one, which needs no key):
//!
//! ```
//! use bakeoff::core::{Message, Request};
//! use bakeoff::llm::{CallContext, Client, ClientConfig, Model, ModelConfig};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let environment = |name: &str| std::env::var(name).ok();
//! let model = Model::resolve(&ModelConfig::named("sim", "echo"), &environment)?;
//! let client = Client::new(ClientConfig::default());
//! let request = Request { messages: vec![Message::user("hello")], ..Request::default() };
//! let call = client.call(&model, request, &CallContext::default()).await?;
//! assert_eq!(call.response.text(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A whole suite:
//!
//! ```
//! use bakeoff::core::Verdict;
//! use bakeoff::eval::{Run, RunConfig, Stopper};
//! use bakeoff::suite::Suite;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("bakeoff.toml");
//! std::fs::write(&path, r#"
//!     target = [{ name = "echo", model = "sim/echo", prompt = "Say {{ word }}." }]
//!     cases.inline = [{ word = "hello" }, { word = "bye" }]
//!     check = [{ kind = "contains", value = "{{ word }}" }]
//! "#)?;
//! let environment = |name: &str| std::env::var(name).ok();
//! let suite = Suite::load(&path, &environment)?;
//! let config = RunConfig { out: folder.path().join("runs"), ..RunConfig::default() };
//! let mut events = 0;
//! let run = Run::new(suite, config)?;
//! let finished = run.execute(&Stopper::default(), &mut |_event| events += 1).await?;
//! assert_eq!(finished.summary.verdict, Verdict::Passed);
//! assert!(events >= 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The best combination, of whatever can be scored:
//!
//! ```
//! use bakeoff::core::NanoDollars;
//! use bakeoff::select::{Score, Selection};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let result = Selection::new()
//!     .role("planner", ["a", "b"])
//!     .role("solver", ["a", "b"])
//!     .datapoints(100)
//!     .run(|combination, datapoint| async move {
//!         // Call the models of the combination here; an error is missing data, not a score of 0.
//!         let skilled = combination.iter().filter(|(_, model)| *model == "b").count();
//!         Ok(Score::from(datapoint % 4 < skilled + 1).cost(NanoDollars(10_000_000)))
//!     })
//!     .await?;
//! assert_eq!(result.winner.to_string(), "planner=b + solver=b");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
