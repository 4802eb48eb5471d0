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
//! use bakeoff::select::{Cell, Evaluate, Observation, Options, Role, Space, named, select_best};
//!
//! struct Lookup;
//!
//! #[async_trait::async_trait]
//! impl Evaluate for Lookup {
//!     async fn evaluate(&self, cell: Cell) -> Option<Observation> {
//!         // Here you would ask the models of the combination about the datapoint.
//!         let score = Some(f64::from(cell.datapoint % 4 < cell.combo));
//!         Some(Observation { score, cost: 0.01, paid: 0.01, latency: 1.0 })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let role = |name: &str| Role { name: name.to_owned(), candidates: vec!["a".into(), "b".into()] };
//! let space = Space::full(vec![role("planner"), role("solver")], 100)?;
//! let mut selector = named("auto", &space, &Default::default())?;
//! let found = select_best(&space, selector.as_mut(), &Lookup, Options::default()).await?;
//! assert_eq!(space.describe(found.winner), "planner=b + solver=b");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use bakeoff_agent as agent;
pub use bakeoff_check as check;
pub use bakeoff_core as core;
pub use bakeoff_eval as eval;
pub use bakeoff_history as history;
pub use bakeoff_llm as llm;
pub use bakeoff_map as map;
pub use bakeoff_pace as pace;
pub use bakeoff_race as race;
pub use bakeoff_select as select;
pub use bakeoff_sim as sim;
pub use bakeoff_stats as stats;
pub use bakeoff_suite as suite;
