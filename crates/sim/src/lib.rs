//! A model provider that does not exist: deterministic answers, latency and limits.
//!
//! One [`Engine`] answers every request. It never looks at a clock: the caller says what time it
//! is, so a test or a benchmark can let simulated hours pass in milliseconds. The same engine
//! stands behind a real HTTP server (feature `server`) that speaks the formats of OpenAI and
//! Anthropic.
//!
//! What an answer says depends on the seed, the model's name, the conversation, the trial and the
//! request's ordinal within the trial, and on nothing else. Whether and when it comes depends on
//! the [`Profile`]: a provider's limits, outages and latency, read from a TOML file.
//!
//! ```
//! use bakeoff_core::{Message, Request};
//! use bakeoff_sim::{Ask, Config, Engine, Outcome};
//! use std::time::Duration;
//!
//! let engine = Engine::new(Config::default());
//! let request = Request {
//!     model: "sim/echo".into(),
//!     messages: vec![Message::user("hello")],
//!     ..Request::default()
//! };
//! let reply = engine.ask(&Ask { request: &request, trial: 1, ordinal: 0, now: Duration::ZERO });
//! let Outcome::Answer(answer) = reply.outcome else { panic!("echo always answers") };
//! assert_eq!(answer.text(), "hello");
//! ```

mod ask;
mod clock;
mod engine;
mod error;
mod headers;
mod key;
mod latency;
mod limit;
mod model;
mod number;
mod persona;
mod profile;
mod stats;
mod tokens;

#[cfg(feature = "server")]
pub mod server;

pub use ask::{Ask, Estimate, Fault, Outcome, Reply};
pub use engine::{Config, Engine};
pub use error::Error;
pub use latency::Latency;
pub use persona::{Canned, Persona, PlannedCall};
pub use profile::{
    FixedWindow, Foreign, HeaderStyle, Knee, Outage, Profile, Rate, RetryHint, Step,
};
pub use stats::Stats;
pub use tokens::TokenCount;

#[cfg(feature = "server")]
pub use server::Server;
