//! Request settings of a model.

use bakeoff_core::{Request, Thinking};
use serde_json::{Map, Value};

/// Settings of all requests to a model. A request overrides them.
///
/// ```
/// use bakeoff_core::Request;
/// use bakeoff_llm::ModelSettings;
///
/// let settings = ModelSettings { temperature: Some(0.2), ..ModelSettings::default() };
/// assert_eq!(settings.apply_to(Request::default()).temperature, Some(0.2));
/// let own = Request { temperature: Some(1.0), ..Request::default() };
/// assert_eq!(settings.apply_to(own).temperature, Some(1.0));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling probability.
    pub top_p: Option<f64>,
    /// Maximum number of answer tokens.
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Thinking effort or budget.
    pub thinking: Option<Thinking>,
    /// Additional fields of the provider's body.
    pub extra: Map<String, Value>,
}

impl ModelSettings {
    /// Returns the request with these settings in place of those that it lacks. Fields of `extra` are merged.
    #[must_use]
    pub fn apply_to(&self, mut request: Request) -> Request {
        request.temperature = request.temperature.or(self.temperature);
        request.top_p = request.top_p.or(self.top_p);
        request.max_tokens = request.max_tokens.or(self.max_tokens);
        request.thinking = request.thinking.or_else(|| self.thinking.clone());
        if request.stop.is_empty() {
            request.stop.clone_from(&self.stop);
        }
        for (name, value) in &self.extra {
            request.extra.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        request
    }
}
