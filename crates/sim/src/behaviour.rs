//! Extension point for simulated models of other crates.
//!
//! A simulated model that parses the prompts of a crate lives in that crate and implements
//! [`ModelBehaviour`]. The engine receives it through [`crate::Config::behaviours`].

use crate::SimModel;
use crate::model::AnswerContext;
use bakeoff_core::{Message, Request};
use std::fmt;

/// Behaviour of one or more simulated models.
///
/// The engine handles limits, latency, prepared answers, planned tool calls, thinking and token
/// counts; a behaviour only generates the answer. Answers must depend only on the context, so that
/// they are reproducible.
///
/// ```
/// use bakeoff_core::{Message, Request};
/// use bakeoff_sim::{
///     AnswerContext, Config, Engine, ModelAnswer, ModelBehaviour, Outcome, SimRequest,
///     last_user_text,
/// };
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// #[derive(Debug)]
/// struct WordCount;
///
/// impl ModelBehaviour for WordCount {
///     fn has_name(&self, name: &str) -> bool {
///         name == "word-count"
///     }
///
///     fn answer(&self, context: &AnswerContext<'_>) -> ModelAnswer {
///         let words = last_user_text(context.request()).split_whitespace().count();
///         ModelAnswer::text(words.to_string())
///     }
/// }
///
/// let engine = Engine::new(Config::default().behaviours(vec![Arc::new(WordCount)]));
/// let request = Request {
///     model: "sim/word-count".into(),
///     messages: vec![Message::user("three short words")],
///     ..Request::default()
/// };
/// let request = SimRequest { request: &request, trial: 1, ordinal: 0, now: Duration::ZERO };
/// let Outcome::Answer(answer) = engine.respond(&request).outcome else { panic!("no answer") };
/// assert_eq!(answer.text(), "3");
/// ```
pub trait ModelBehaviour: fmt::Debug + Send + Sync {
    /// Whether the behaviour applies to this model name, which is without the prefix `sim/`. It takes
    /// precedence over built-in models.
    fn has_name(&self, name: &str) -> bool;

    /// Whether the behaviour applies to a model with this definition whose name neither a behaviour
    /// nor a built-in model has.
    fn has_definition(&self, definition: &SimModel) -> bool {
        let _ = definition;
        false
    }

    /// Returns the names for the server's list of models, without the prefix `sim/`.
    fn listed_names(&self) -> &[&'static str] {
        &[]
    }

    /// Returns the HTTP status with which the model rejects a request for its content.
    fn rejection(&self, name: &str, request: &Request) -> Option<u16> {
        let _ = (name, request);
        None
    }

    /// Generates the answer.
    fn answer(&self, context: &AnswerContext<'_>) -> ModelAnswer;
}

/// Answer of a [`ModelBehaviour`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    pub(crate) text: String,
    pub(crate) number: Option<i64>,
}

impl ModelAnswer {
    /// Creates an answer that is always text.
    pub fn text(text: impl Into<String>) -> ModelAnswer {
        ModelAnswer { text: text.into(), number: None }
    }

    /// Creates an answer with the meaning of a number. If the request demands JSON or a tool call, the
    /// number fills its schema; otherwise the answer is the text.
    pub fn number(number: i64, text: impl Into<String>) -> ModelAnswer {
        ModelAnswer { text: text.into(), number: Some(number) }
    }
}

/// Returns the text of the last user message; empty without one.
pub fn last_user_text(request: &Request) -> String {
    request.messages.iter().rev().find(is_user).map(Message::text).unwrap_or_default()
}

/// Returns the text of the first user message; empty without one.
pub fn first_user_text(request: &Request) -> String {
    request.messages.iter().find(is_user).map(Message::text).unwrap_or_default()
}

fn is_user(message: &&Message) -> bool {
    matches!(message, Message::User { .. })
}
