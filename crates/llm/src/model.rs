//! From what the user wrote about a model to something that can be called.

use crate::{PriceSource, Provider, Wire};
use bakeoff_core::{Prices, Redactor};
use bakeoff_pace::{Limits, LimitsError, PoolKey};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// A model as the user wrote it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// Name of a [`Provider`].
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Another address than the provider's.
    pub base_url: Option<String>,
    /// Another environment variable than the provider's.
    pub api_key_env: Option<String>,
    /// Sent with every request; `$NAME` takes the value of an environment variable.
    pub headers: Vec<(String, String)>,
    /// Added to every address; `$NAME` as for headers.
    pub query: Vec<(String, String)>,
    /// How much of it may be used.
    pub limits: Limits,
    /// What it costs, where the catalogue is wrong or silent.
    pub prices: Option<Prices>,
    /// Ask for server-sent events.
    pub stream: bool,
}

/// Why a model cannot be called.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// No such provider.
    #[error("unknown provider `{0}`")]
    UnknownProvider(String),
    /// The provider has no address of its own.
    #[error("provider `{0}` needs a base_url")]
    NoAddress(&'static str),
    /// The address cannot be used.
    #[error("{key} `{url}` cannot be used: {reason}")]
    BadAddress {
        /// The key it was written for.
        key: &'static str,
        /// As written.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The environment variable of the key is missing or empty.
    #[error("environment variable {0} is not set")]
    MissingKey(String),
    /// A header or query names an environment variable that is missing.
    #[error("environment variable {0} is not set")]
    MissingVariable(String),
    /// A header cannot be sent.
    #[error("header `{0}` has a name or a value that HTTP does not allow")]
    BadHeader(String),
    /// The limits are impossible, or do not go together.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
}

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A model that can be called.
#[derive(Debug, Clone)]
pub struct Model {
    provider: &'static str,
    pub(crate) name: String,
    pub(crate) route: Route,
    pub(crate) prices: PriceSource,
    pub(crate) limits: Limits,
    pub(crate) pool: PoolKey,
    pub(crate) stream: bool,
    secrets: Vec<SecretString>,
}

/// How a model is reached.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// The simulated provider in this process.
    Simulated,
    /// A server.
    Http(Box<Server>),
}

/// A server that serves a model.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) wire: Wire,
    pub(crate) base: Url,
    pub(crate) query: Vec<(String, SecretString)>,
    /// With the key; its value is marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// A hash of the headers and parameters that the user added, as written.
    pub(crate) additions: blake3::Hash,
}

impl ModelConfig {
    /// The model that `provider/model` names, with everything at its default.
    pub fn named(provider: &str, model: &str) -> ModelConfig {
        ModelConfig {
            provider: provider.to_owned(),
            model: model.to_owned(),
            ..ModelConfig::default()
        }
    }
}

impl Model {
    /// Resolves addresses, keys and prices. Makes no call.
    pub fn resolve(
        config: &ModelConfig,
        environment: Environment<'_>,
    ) -> Result<Model, ModelError> {
        let provider = Provider::find(&config.provider)
            .ok_or_else(|| ModelError::UnknownProvider(config.provider.clone()))?;
        config.limits.check()?;
        // However it is reached, a simulated model is known by its full name.
        let name = match config.model.strip_prefix("sim/") {
            None if provider.name == "sim" => format!("sim/{}", config.model),
            _ => config.model.clone(),
        };
        let mut secrets = Vec::new();
        let (route, endpoint) = match (&config.base_url, provider.wire) {
            (None, None) => (Route::Simulated, "sim".to_owned()),
            (base_url, wire) => {
                let text = base_url
                    .as_deref()
                    .or(provider.base_url)
                    .ok_or(ModelError::NoAddress(provider.name))?;
                let base = parse_address("base_url", text)?;
                let wire = wire.unwrap_or(Wire::OpenAiChat);
                let headers = headers(config, provider, wire, &base, environment, &mut secrets)?;
                let mut query = Vec::new();
                for (name, value) in &config.query {
                    query.push((name.clone(), expand(name, value, environment, &mut secrets)?));
                }
                let additions = additions_of(config);
                let server = Server { wire, base, query, headers, additions };
                (Route::Http(Box::new(server)), text.to_owned())
            }
        };
        let account = secrets.first().map_or(0, account_of);
        Ok(Model {
            provider: provider.name,
            pool: PoolKey { endpoint, model: name.clone(), account },
            prices: prices(config, provider, &name, &route),
            name,
            limits: config.limits,
            stream: config.stream,
            route,
            secrets,
        })
    }

    /// Name of its [`Provider`].
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// The provider's name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much of it may be used.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether calls of both go through one pool: the same account, endpoint and model.
    pub fn shares_pool_with(&self, other: &Model) -> bool {
        self.pool == other.pool
    }

    /// The same model with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Model {
        Model { limits, ..self }
    }

    /// Whether its price is known.
    pub fn is_priced(&self) -> bool {
        self.prices != PriceSource::Unknown
    }

    /// What the given usage would cost.
    pub fn cost(&self, usage: &bakeoff_core::Usage) -> Option<bakeoff_core::NanoDollars> {
        self.prices.cost(usage)
    }

    /// Makes sure that nothing of its keys is ever written or shown.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        for secret in &self.secrets {
            redactor.add(secret.expose_secret());
        }
    }

    /// Whether the simulated provider in this process answers.
    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self.route, Route::Simulated)
    }

    /// Whether a simulated model answers, here or behind HTTP.
    pub fn is_simulated(&self) -> bool {
        self.name.starts_with("sim/")
    }
}

/// The simulated models are free unless the user gives a price, and what a server on this machine
/// costs only the user can know; everything else is looked up.
fn prices(config: &ModelConfig, provider: &Provider, name: &str, route: &Route) -> PriceSource {
    let is_local = matches!(route, Route::Http(server) if is_loopback(&server.base));
    match config.prices {
        Some(prices) => PriceSource::Given(prices),
        None if name.starts_with("sim/") => PriceSource::Given(Prices::default()),
        None if is_local => PriceSource::Unknown,
        None => PriceSource::look_up(provider.catalogue_id, name),
    }
}

pub(crate) fn parse_address(key: &'static str, text: &str) -> Result<Url, ModelError> {
    let bad = |reason: String| ModelError::BadAddress { key, url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("it must begin with http:// or https://".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it must not hold a user name or password".to_owned()));
    }
    Ok(url)
}

/// Whether the address is on this machine, where no key is needed.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Headers that carry a key at one provider or another.
const KEY_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// Everything sent with each request. The key's secret comes first, so that it names the account.
fn headers(
    config: &ModelConfig,
    provider: &Provider,
    wire: Wire,
    base: &Url,
    environment: Environment<'_>,
    secrets: &mut Vec<SecretString>,
) -> Result<HeaderMap, ModelError> {
    let variable = config.api_key_env.as_deref().unwrap_or(provider.key_variable);
    let key = environment(variable).filter(|key| !key.trim().is_empty());
    let given = |name: &str| config.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut headers = HeaderMap::new();
    for (name, value) in wire.headers() {
        headers.insert(name, value);
    }
    match key {
        Some(key) => {
            let key = key.trim();
            secrets.push(key.to_owned().into());
            let bad = |_| ModelError::BadHeader(variable.to_owned());
            match provider.key_header {
                Some(name) => {
                    let mut value = HeaderValue::from_str(key)
                        .map_err(|_| ModelError::BadHeader(variable.to_owned()))?;
                    value.set_sensitive(true);
                    headers.insert(HeaderName::from_static(name), value);
                }
                None => headers.extend(wire.auth_headers(key).map_err(bad)?),
            }
        }
        // A local server, and a key in a header of the user's own, need no variable.
        None if is_loopback(base) || KEY_HEADERS.iter().any(|name| given(name)) => {}
        None => return Err(ModelError::MissingKey(variable.to_owned())),
    }
    add_headers(&mut headers, &config.headers, environment, secrets)?;
    Ok(headers)
}

/// Adds the user's own headers, with environment variables put in.
pub(crate) fn add_headers(
    headers: &mut HeaderMap,
    own: &[(String, String)],
    environment: Environment<'_>,
    secrets: &mut Vec<SecretString>,
) -> Result<(), ModelError> {
    for (name, value) in own {
        let bad = || ModelError::BadHeader(name.clone());
        let value = expand(name, value, environment, secrets)?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(())
}

/// Puts environment variables in for `$NAME` and `${NAME}`; `$$` is a dollar sign.
///
/// What comes from the environment is a secret, and so is what a name such as `authorization` or
/// `api_token` carries. Other values are not: taking `application/json` out of answers would change
/// them.
fn expand(
    name: &str,
    value: &str,
    environment: Environment<'_>,
    secrets: &mut Vec<SecretString>,
) -> Result<SecretString, ModelError> {
    let mut expanded = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let (variable, after) =
            match after.strip_prefix('{').and_then(|after| after.split_once('}')) {
                Some(braced) => braced,
                None => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
                }
            };
        let found = environment(variable)
            .ok_or_else(|| ModelError::MissingVariable(variable.to_owned()))?;
        expanded.push_str(&found);
        secrets.push(found.into());
        rest = after;
    }
    expanded.push_str(rest);
    if names_a_secret(name) {
        // In `Bearer …` only the last word is one.
        let secret = expanded.rsplit(' ').next().unwrap_or(&expanded);
        secrets.push(secret.to_owned().into());
    }
    Ok(expanded.into())
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "key", "pass", "secret", "sig", "token"]
        .iter()
        .any(|part| name.contains(part))
}

/// Tells apart what users add to requests: answers may depend on it. Variables count by name, so
/// that a new key changes nothing.
fn additions_of(config: &ModelConfig) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for list in [&config.headers, &config.query] {
        hasher.update(&(list.len() as u64).to_le_bytes());
        for text in list.iter().flat_map(|(name, value)| [name, value]) {
            // With its length, so that no two lists look the same.
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.finalize()
}

/// A number that tells accounts apart and from which no key can be guessed.
fn account_of(key: &SecretString) -> u64 {
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
    fn a_missing_key_names_its_variable() {
        let config = ModelConfig::named("anthropic", "claude-haiku-4-5");
        let error = Model::resolve(&config, &no_environment).unwrap_err();
        assert_eq!(error.to_string(), "environment variable ANTHROPIC_API_KEY is not set");
        let own = ModelConfig { api_key_env: Some("MY_KEY".to_owned()), ..config };
        let error = Model::resolve(&own, &|_| Some("  ".to_owned())).unwrap_err();
        assert_eq!(error, ModelError::MissingKey("MY_KEY".to_owned()));
    }

    #[test]
    fn a_local_server_needs_no_key() {
        for base_url in ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:1/v1"] {
            let config = ModelConfig {
                base_url: Some(base_url.to_owned()),
                ..ModelConfig::named("openai", "sim/echo")
            };
            assert!(Model::resolve(&config, &no_environment).is_ok(), "{base_url}");
        }
    }

    #[test]
    fn variables_are_put_in_wherever_they_stand() {
        let environment = |name: &str| (name == "TOKEN").then(|| "token-value".to_owned());
        let expanded = |name: &str, value: &str| {
            let mut secrets = Vec::new();
            let value = expand(name, value, &environment, &mut secrets)?;
            let secrets = secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect();
            Ok::<(String, Vec<String>), ModelError>((value.expose_secret().to_owned(), secrets))
        };
        let found = |value: &str, secrets: &[&str]| {
            Ok((value.to_owned(), secrets.iter().map(|&secret| secret.to_owned()).collect()))
        };
        assert_eq!(expanded("x", "$TOKEN"), found("token-value", &["token-value"]));
        assert_eq!(expanded("x", "a ${TOKEN}b"), found("a token-valueb", &["token-value"]));
        assert_eq!(expanded("x", "costs $$5"), found("costs $5", &[]));
        assert_eq!(expanded("Authorization", "Bearer abc"), found("Bearer abc", &["abc"]));
        assert_eq!(expanded("accept", "application/json"), found("application/json", &[]));
        let missing = ModelError::MissingVariable("GONE".to_owned());
        assert_eq!(expanded("x", "Bearer $GONE"), Err(missing));
    }

    #[test]
    fn bad_addresses_are_refused() {
        for base_url in ["", "api.openai.com", "ftp://host/", "https://me:secret@host/v1"] {
            let config = ModelConfig {
                base_url: Some(base_url.to_owned()),
                ..ModelConfig::named("openai", "x")
            };
            let error = Model::resolve(&config, &no_environment).unwrap_err();
            assert!(matches!(error, ModelError::BadAddress { .. }), "{base_url}: {error}");
        }
        let azure = ModelConfig::named("azure", "x");
        assert_eq!(
            Model::resolve(&azure, &no_environment).unwrap_err(),
            ModelError::NoAddress("azure")
        );
    }

    #[test]
    fn keys_tell_pools_apart_and_are_never_shown() {
        let config = ModelConfig {
            headers: vec![("x-team".to_owned(), "$TEAM_TOKEN".to_owned())],
            ..ModelConfig::named("openai", "gpt-4o-mini")
        };
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
