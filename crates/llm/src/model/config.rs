//! Configuration of a model.

use super::settings::ModelSettings;
use bakeoff_core::Prices;
use bakeoff_pace::Limits;

/// Configuration of a [`Model`](crate::Model).
///
/// ```
/// use bakeoff_llm::ModelConfig;
///
/// let config = ModelConfig::named("openai", "llama3").base_url("http://localhost:8000/v1").stream(true);
/// # drop(config);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Name of a [`Provider`](crate::Provider).
    pub provider: String,
    /// Name of the model at its provider.
    pub model: String,
    /// Base URL instead of the provider's.
    pub base_url: Option<String>,
    /// Environment variable with the API key, instead of the provider's.
    pub api_key_env: Option<String>,
    /// Headers sent with every request; `$NAME` is replaced by the environment variable.
    pub headers: Vec<(String, String)>,
    /// Query parameters added to every URL; `$NAME` as for headers.
    pub query: Vec<(String, String)>,
    /// Rate and concurrency limits.
    pub limits: Limits,
    /// Prices; they override the catalogue.
    pub prices: Option<Prices>,
    /// Whether to request server-sent events.
    pub stream: bool,
    /// Settings of all requests that do not set them.
    pub settings: ModelSettings,
}

impl ModelConfig {
    /// Creates a configuration for `provider/model`, with defaults for everything else.
    pub fn named(provider: &str, model: &str) -> ModelConfig {
        ModelConfig {
            provider: provider.to_owned(),
            model: model.to_owned(),
            ..ModelConfig::default()
        }
    }

    /// Sets the base URL.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the environment variable with the API key.
    #[must_use]
    pub fn api_key_env(mut self, variable: impl Into<String>) -> Self {
        self.api_key_env = Some(variable.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// Sets whether to request server-sent events.
    #[must_use]
    pub fn stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Sets the settings of all requests that do not set them.
    #[must_use]
    pub fn settings(mut self, settings: ModelSettings) -> Self {
        self.settings = settings;
        self
    }
}
