//! Model calls: providers, wire formats, error classification, prices, cache and the client.
//!
//! [`Model::resolve`] turns a [`ModelConfig`] into a callable [`Model`]. [`Client::call`] sends one
//! [`bakeoff_core::Request`] to it through pace, with retries, cache and prices. Below the client lie the
//! wire formats of the providers ([`Wire`]), the table that classifies their errors ([`classify`]) and the
//! interface to the network ([`Transport`]). Cases and trials are out of scope.
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

mod budget;
mod cache;
mod call;
mod client;
mod failure;
mod flight;
mod limit_history;
mod model;
mod network;
mod pool_stop;
mod price;
pub mod probe;
mod provider;
mod quota;
mod record;
mod redact;
mod request;
mod retry;
mod service;
pub mod sse;
mod transport;
mod wire;

pub use budget::ANSWER_TOKENS;
pub use cache::{Cache, CacheEntry, CacheError, CacheKey, CacheStats};
pub use call::{Call, CallContext, CallError, Ordinals, Retry};
pub use client::{Client, ClientConfig};
pub use failure::{Failure, classify};
pub use limit_history::{LimitHistory, LimitHistoryError};
pub use model::{
    Environment, Model, ModelConfig, ModelError, ModelSettings, UrlError, expand_variables,
};
pub use network::Network;
pub use price::PriceSource;
pub use provider::{PROVIDERS, Provider};
pub use record::{HttpObserver, HttpRecord, RetryInfo};
pub use service::{Service, ServiceConfig, ServiceResponse};
pub use transport::{
    Body, HttpRequest, HttpResponse, SendTime, Transport, TransportError, TransportErrorKind,
};
pub use wire::{
    DecodeError, Delta, KeyError, Setting, StreamDecoder, StreamError, TokenLimitField,
    UnsupportedSetting, Wire,
};
