//! How do I make one call to one model?
//!
//! [`Model::resolve`] turns what a user wrote into something callable; [`Client::call`] sends one
//! [`bakeoff_core::Request`] to it through pace, with retries, cache and prices. Below the client:
//! the wire formats of the providers ([`Wire`]), the one table that says what their errors mean
//! ([`classify`]), and the seam to the network ([`Transport`]).
//!
//! ```
//! use bakeoff_core::{Message, Request};
//! use bakeoff_llm::{CallContext, Client, ClientConfig, Model, ModelConfig};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let environment = |name: &str| std::env::var(name).ok();
//! let model = Model::resolve(&ModelConfig::named("sim", "echo"), &environment)?;
//! let client = Client::new(ClientConfig::default());
//! let request = Request { messages: vec![Message::user("hello")], ..Request::default() };
//! let call = client.call(&model, request, &CallContext::default()).await?;
//! assert_eq!(call.response.text(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod attempt;
mod cache;
mod client;
mod failure;
mod flight;
mod masked;
mod memory;
mod model;
mod network;
mod price;
pub mod probe;
mod provider;
mod quota;
mod record;
mod service;
mod settle;
pub mod sse;
mod transport;
mod wire;

pub use cache::{Cache, CacheError, CacheKey, CacheStats, Stored};
pub use client::{Call, CallContext, CallError, Client, ClientConfig, Ordinals, Retry};
pub use failure::{Failure, classify};
pub use memory::{Memory, MemoryError};
pub use model::{Environment, Model, ModelConfig, ModelError};
pub use network::Network;
pub use price::PriceSource;
pub use provider::{PROVIDERS, Provider};
pub use record::{HttpObserver, HttpRecord, Retrying};
pub use service::{Service, ServiceAnswer, ServiceConfig};
pub use transport::{Body, HttpRequest, HttpResponse, Transport, TransportError};
pub use wire::{DecodeError, Delta, KeyError, StreamDecoder, StreamError, Wire};
