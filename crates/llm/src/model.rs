//! Models: from configuration to something that can be called.

mod config;
mod headers;
mod settings;

pub use config::ModelConfig;
pub(crate) use headers::add_headers;
pub use headers::expand_variables;
pub use settings::ModelSettings;

use crate::{PriceSource, Provider, TokenLimitField, UnsupportedSetting, Wire};
use bakeoff_core::{Prices, Redactor, Request};
use bakeoff_pace::{Limits, LimitsError, PoolKey};
use bytes::Bytes;
use headers::model_headers;
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// Reason why a model or a service cannot be called.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The name of the model is not of the form `provider/model`.
    #[error("invalid model name `{0}`: expected `provider/model`")]
    InvalidName(String),
    /// The provider does not exist.
    #[error("unknown provider `{0}`")]
    UnknownProvider(String),
    /// The provider has no base URL of its own.
    #[error("provider `{0}` needs a base_url")]
    MissingBaseUrl(&'static str),
    /// The URL is invalid.
    #[error("invalid {key} `{url}`: {source}")]
    InvalidUrl {
        /// Configuration key of the URL.
        key: &'static str,
        /// The URL as configured.
        url: String,
        /// Problem with the URL.
        source: UrlError,
    },
    /// The environment variable of the API key is missing or empty.
    #[error("environment variable {0} is not set")]
    MissingKey(String),
    /// A header or query parameter names an environment variable that is missing.
    #[error("environment variable {0} is not set")]
    MissingVariable(String),
    /// A header has an invalid name or value.
    #[error("header `{0}` has an invalid name or value")]
    InvalidHeader(String),
    /// The limits are invalid or contradict each other.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
}

/// Problem with a configured URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not a URL.
    #[error(transparent)]
    Syntax(#[from] url::ParseError),
    /// It is not an HTTP URL with a host.
    #[error("must start with http:// or https://")]
    Scheme,
    /// It contains credentials, which belong in a header.
    #[error("must not contain a user name or password")]
    Credentials,
}

/// Lookup of environment variables.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A model that can be called.
#[derive(Debug, Clone)]
pub struct Model {
    provider: &'static str,
    /// Environment variable of the API key, for error messages.
    pub(crate) key_variable: String,
    pub(crate) name: String,
    pub(crate) route: Route,
    pub(crate) prices: PriceSource,
    pub(crate) limits: Limits,
    pub(crate) pool: PoolKey,
    pub(crate) stream: bool,
    settings: ModelSettings,
    secrets: Vec<SecretString>,
}

/// Destination of the requests of a model.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// The simulated provider in this process.
    Simulated,
    /// An HTTP server.
    Http(Box<Server>),
}

/// HTTP server of a model.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) wire: Wire,
    limit_field: TokenLimitField,
    pub(crate) base: Url,
    pub(crate) query: Vec<(String, SecretString)>,
    /// Includes the API key, whose value is marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// Hash of the headers and query parameters that the user added, before expansion.
    pub(crate) additions: blake3::Hash,
}

impl Server {
    /// Encodes a request in the format of the server.
    pub(crate) fn encode(&self, request: &Request) -> Bytes {
        self.wire.encode_with(request, self.limit_field)
    }
}

impl ModelConfig {
    /// Returns the name of the model at its provider. Simulated models have the prefix `sim/` in process and
    /// over HTTP.
    fn name_at(&self, provider: &Provider) -> String {
        match self.model.strip_prefix("sim/") {
            None if provider.name == "sim" => format!("sim/{}", self.model),
            _ => self.model.clone(),
        }
    }

    /// Returns the source of the model's prices. Without configured prices, simulated models are free, and the
    /// price of a server on this machine is unknown. All others are looked up in the catalogue.
    pub fn price_source(&self) -> PriceSource {
        let Some(provider) = Provider::find(&self.provider) else { return PriceSource::Unknown };
        let name = self.name_at(provider);
        let base_url = self.base_url.as_deref().and_then(|url| Url::parse(url).ok());
        match self.prices {
            Some(prices) => PriceSource::Configured(prices),
            None if name.starts_with("sim/") => PriceSource::Configured(Prices::default()),
            None if base_url.is_some_and(|url| is_loopback(&url)) => PriceSource::Unknown,
            None => PriceSource::look_up(provider.catalogue_id, &name),
        }
    }
}

impl Model {
    /// Resolves a model by its full name, `provider/model`, with default settings. API keys come from the
    /// environment of the process, such as `OPENAI_API_KEY`.
    ///
    /// ```
    /// let model = bakeoff_llm::Model::from_env("sim/echo")?;
    /// assert_eq!(model.provider(), "sim");
    /// # Ok::<(), bakeoff_llm::ModelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Model::resolve`].
    pub fn from_env(name: &str) -> Result<Model, ModelError> {
        let (provider, model) = name.split_once('/').unwrap_or((name, ""));
        if model.is_empty() {
            return Err(ModelError::InvalidName(name.to_owned()));
        }
        Model::resolve(&ModelConfig::named(provider, model), &|name| std::env::var(name).ok())
    }

    /// Resolves URL, API key and prices. Sends nothing.
    ///
    /// # Errors
    ///
    /// When the provider is unknown, a URL, header or limit is invalid, or an environment variable is not
    /// set.
    pub fn resolve(
        config: &ModelConfig,
        environment: Environment<'_>,
    ) -> Result<Model, ModelError> {
        let provider = Provider::find(&config.provider)
            .ok_or_else(|| ModelError::UnknownProvider(config.provider.clone()))?;
        config.limits.check()?;
        let name = config.name_at(provider);
        let mut secrets = Vec::new();
        let (route, endpoint) = match (&config.base_url, provider.wire) {
            (None, None) => (Route::Simulated, "sim".to_owned()),
            (base_url, wire) => {
                let text = base_url
                    .as_deref()
                    .or(provider.base_url)
                    .ok_or(ModelError::MissingBaseUrl(provider.name))?;
                let base = parse_url("base_url", text)?;
                let wire = wire.unwrap_or(Wire::OpenAiChat);
                let headers =
                    model_headers(config, provider, wire, &base, environment, &mut secrets)?;
                let mut query = Vec::new();
                for (name, value) in &config.query {
                    query.push((
                        name.clone(),
                        expand_variables(name, value, environment, &mut secrets)?,
                    ));
                }
                let additions = hash_additions(config);
                let limit_field = provider.limit_field;
                let server = Server { wire, limit_field, base, query, headers, additions };
                (Route::Http(Box::new(server)), text.to_owned())
            }
        };
        let account = secrets.first().map_or(0, account_number);
        let key_variable = config.api_key_env.as_deref().unwrap_or(provider.key_variable);
        Ok(Model {
            provider: provider.name,
            key_variable: key_variable.to_owned(),
            pool: PoolKey { endpoint, model: name.clone(), account },
            prices: config.price_source(),
            name,
            limits: config.limits,
            stream: config.stream,
            settings: config.settings.clone(),
            route,
            secrets,
        })
    }

    /// Returns the name of the [`Provider`].
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// Returns the name of the model at its provider.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limits of the model.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the settings of all requests that do not set them.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Whether both models use one pool: the same account, endpoint and model.
    pub fn shares_pool_with(&self, other: &Model) -> bool {
        self.pool == other.pool
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Model {
        Model { limits, ..self }
    }

    /// Whether the price of the model is known.
    pub fn is_priced(&self) -> bool {
        self.prices != PriceSource::Unknown
    }

    /// Returns the cost of a usage, or `None` if no price is known or no usage was reported: a call of a model
    /// that is not free never uses no token.
    pub fn cost(&self, usage: &bakeoff_core::Usage) -> Option<bakeoff_core::NanoDollars> {
        let cost = self.prices.cost(usage)?;
        let is_free = || {
            let token = bakeoff_core::Usage { input: 1_000_000, output: 1_000_000, ..*usage };
            self.prices.cost(&token).is_some_and(|cost| cost.is_zero())
        };
        (usage.total() > 0 || is_free()).then_some(cost)
    }

    /// Returns the wire format and the settings of a request that it has no field for, which are ignored. The
    /// simulated provider in this process has no wire format and no such settings.
    pub fn unsupported_settings(
        &self,
        request: &Request,
    ) -> Option<(Wire, Vec<UnsupportedSetting>)> {
        match &self.route {
            Route::Simulated => None,
            Route::Http(server) => {
                let request = self.settings.apply_to(request.clone());
                Some((server.wire, server.wire.unsupported_settings(&request)))
            }
        }
    }

    /// Returns the wire format if it does not accept files of this media type. The simulated provider in this process
    /// accepts all of them.
    pub fn rejects_media(&self, media_type: &str) -> Option<Wire> {
        match &self.route {
            Route::Http(server) if !server.wire.accepts_media(media_type) => Some(server.wire),
            Route::Http(_) | Route::Simulated => None,
        }
    }

    /// Adds the secrets of the model to a redactor.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        for secret in &self.secrets {
            redactor.add(secret.expose_secret());
        }
    }

    /// Whether the simulated provider in this process serves the model.
    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self.route, Route::Simulated)
    }

    /// Whether the model is simulated, in this process or over HTTP.
    pub fn is_simulated(&self) -> bool {
        self.name.starts_with("sim/")
    }
}

/// Parses the URL that is configured under `key`.
pub(crate) fn parse_url(key: &'static str, text: &str) -> Result<Url, ModelError> {
    let invalid = |source| ModelError::InvalidUrl { key, url: text.to_owned(), source };
    let url = Url::parse(text).map_err(|error| invalid(error.into()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid(UrlError::Scheme));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(UrlError::Credentials));
    }
    Ok(url)
}

/// Whether the URL points to this machine, where no API key is needed.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Hashes the headers and query parameters that the user added, because responses may depend on them.
/// Variables count by name, so that a new key does not invalidate cached responses.
fn hash_additions(config: &ModelConfig) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for list in [&config.headers, &config.query] {
        hasher.update(&(list.len() as u64).to_le_bytes());
        for text in list.iter().flat_map(|(name, value)| [name, value]) {
            // Preceded by its length, so that different lists cannot hash the same bytes.
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.finalize()
}

/// Returns a number that distinguishes accounts and does not reveal the key.
fn account_number(key: &SecretString) -> u64 {
    let hash = blake3::hash(key.expose_secret().as_bytes());
    let (first, _) = hash.as_bytes().split_at(8);
    first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_environment(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn missing_key_error_names_the_variable() {
        let config = ModelConfig::named("anthropic", "claude-haiku-4-5");
        let error = Model::resolve(&config, &no_environment).unwrap_err();
        assert_eq!(error.to_string(), "environment variable ANTHROPIC_API_KEY is not set");
        let error =
            Model::resolve(&config.api_key_env("MY_KEY"), &|_| Some("  ".to_owned())).unwrap_err();
        assert_eq!(error, ModelError::MissingKey("MY_KEY".to_owned()));
    }

    #[test]
    fn model_names_the_variable_of_its_key() {
        let key = |_: &str| Some("sk-key".to_owned());
        let config = ModelConfig::named("openai", "gpt-4o-mini");
        assert_eq!(Model::resolve(&config, &key).unwrap().key_variable, "OPENAI_API_KEY");
        let config = config.api_key_env("MY_KEY");
        assert_eq!(Model::resolve(&config, &key).unwrap().key_variable, "MY_KEY");
    }

    #[test]
    fn local_server_needs_no_key() {
        for base_url in ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:1/v1"] {
            let config = ModelConfig::named("openai", "sim/echo").base_url(base_url);
            assert!(Model::resolve(&config, &no_environment).is_ok(), "{base_url}");
        }
    }

    #[test]
    fn configured_key_header_of_any_provider_replaces_the_variable() {
        for name in ["Authorization", "x-api-key", "x-goog-api-key", "api-key"] {
            let config = ModelConfig::named("openai", "m").header(name, "secret-value");
            assert!(Model::resolve(&config, &no_environment).is_ok(), "{name}");
        }
        let config = ModelConfig::named("openai", "m").header("x-team", "secret-value");
        assert!(Model::resolve(&config, &no_environment).is_err());
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for base_url in ["", "api.openai.com", "ftp://host/", "https://me:secret@host/v1"] {
            let config = ModelConfig::named("openai", "x").base_url(base_url);
            let error = Model::resolve(&config, &no_environment).unwrap_err();
            assert!(matches!(error, ModelError::InvalidUrl { .. }), "{base_url}: {error}");
        }
        let azure = ModelConfig::named("azure", "x");
        assert_eq!(
            Model::resolve(&azure, &no_environment).unwrap_err(),
            ModelError::MissingBaseUrl("azure")
        );
    }

    #[test]
    fn keys_separate_pools_and_are_redacted() {
        let config = ModelConfig::named("openai", "gpt-4o-mini").header("x-team", "$TEAM_TOKEN");
        let resolve = |key: &'static str| {
            Model::resolve(&config, &move |name| match name {
                "TEAM_TOKEN" => Some("team-token-value".to_owned()),
                _ => Some(key.to_owned()),
            })
            .unwrap()
        };
        let (one, other) = (resolve("sk-first-key"), resolve("sk-second-key"));
        assert_ne!(one.pool, other.pool);
        assert_eq!(one.pool, resolve("sk-first-key").pool);
        let shown = format!("{one:?}");
        assert!(!shown.contains("sk-first-key") && !shown.contains("team-token-value"), "{shown}");
        let mut redactor = Redactor::default();
        one.add_secrets(&mut redactor);
        let text = redactor.scrub("bad key sk-first-key of team-token-value".to_owned());
        assert_eq!(text, "bad key [redacted] of [redacted]");
    }
}
