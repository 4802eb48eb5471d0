//! Simulated model provider with deterministic answers, latency and limits.
//!
//! One [`Engine`] answers every request. It reads no clock: the caller passes the time, so a test or
//! a benchmark can simulate hours in milliseconds. An HTTP server (feature `server`) offers the same
//! engine in the formats of OpenAI and Anthropic.
//!
//! The text of an answer depends only on the seed, the model's name, the conversation, the trial and
//! the request's ordinal within the trial. Whether and when an answer arrives depends on the
//! [`Profile`]: limits, outages and latency of a provider, read from a TOML file.
//!
//! ```
//! use bakeoff_core::{Message, Request};
//! use bakeoff_sim::{SimRequest, Config, Engine, Outcome};
//! use std::time::Duration;
//!
//! let engine = Engine::new(Config::default());
//! let request = Request {
//!     model: "sim/echo".into(),
//!     messages: vec![Message::user("hello")],
//!     ..Request::default()
//! };
//! let reply = engine.respond(&SimRequest { request: &request, trial: 1, ordinal: 0, now: Duration::ZERO });
//! let Outcome::Answer(answer) = reply.outcome else { panic!("echo always answers") };
//! assert_eq!(answer.text(), "hello");
//! ```

mod behaviour;
mod clock;
mod engine;
mod error;
mod headers;
mod key;
mod latency;
mod limit;
mod model;
mod number;
mod profile;
mod request;
mod sim_model;
mod stats;
mod tokens;

#[cfg(feature = "server")]
pub mod server;

pub use behaviour::{ModelAnswer, ModelBehaviour, first_user_text, last_user_text};
pub use engine::{Config, Engine};
pub use error::Error;
pub use latency::{Latency, standard_normal};
pub use limit::BatchSlot;
pub use model::AnswerContext;
pub use profile::{
    Batching, ConcurrencyStep, Faults, FixedWindow, ForeignTraffic, HeaderStyle, Knee, Outage,
    Profile, Rate, RateStep, RetryHint, SlidingWindow,
};
pub use request::{Fault, Outcome, Reply, RequestEstimate, SimRequest};
pub use sim_model::{CannedAnswer, PlannedCall, SimModel};
pub use stats::Stats;
pub use tokens::TokenCount;

#[cfg(feature = "server")]
pub use server::Server;
