//! Headers of a model: API key, configured headers, and environment variables in their values.

use super::{Environment, ModelConfig, ModelError, is_loopback};
use crate::provider::PROVIDERS;
use crate::{Provider, Wire};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// Parts of header and parameter names whose values are secrets.
const SECRET_NAME_PARTS: [&str; 7] = ["auth", "cookie", "key", "pass", "secret", "sig", "token"];

/// Returns the headers sent with every request. The API key becomes the first secret, because that one
/// identifies the account.
pub(super) fn model_headers(
    config: &ModelConfig,
    provider: &Provider,
    wire: Wire,
    base: &Url,
    environment: Environment<'_>,
    secrets: &mut Vec<SecretString>,
) -> Result<HeaderMap, ModelError> {
    let variable = config.api_key_env.as_deref().unwrap_or(provider.key_variable);
    let key = environment(variable).filter(|key| !key.trim().is_empty());
    let mut headers = HeaderMap::new();
    for (name, value) in wire.headers() {
        headers.insert(name, value);
    }
    match key {
        Some(key) => {
            let key = key.trim();
            secrets.push(key.to_owned().into());
            let invalid = || ModelError::InvalidHeader(variable.to_owned());
            match provider.key_header {
                Some(name) => {
                    let mut value = HeaderValue::from_str(key).map_err(|_| invalid())?;
                    value.set_sensitive(true);
                    headers.insert(HeaderName::from_static(name), value);
                }
                None => headers.extend(wire.auth_headers(key).map_err(|_| invalid())?),
            }
        }
        // A local server needs no key, and a key in a configured header needs no variable.
        None if is_loopback(base) || has_key_header(config) => {}
        None => return Err(ModelError::MissingKey(variable.to_owned())),
    }
    add_headers(&mut headers, &config.headers, environment, secrets)?;
    Ok(headers)
}

/// Whether a configured header carries the API key of any provider.
fn has_key_header(config: &ModelConfig) -> bool {
    let is_configured = |header: HeaderName| {
        config.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header.as_str()))
    };
    PROVIDERS.iter().filter_map(Provider::key_header).any(is_configured)
}

/// Adds the configured headers, with environment variables expanded.
pub(crate) fn add_headers(
    headers: &mut HeaderMap,
    configured: &[(String, String)],
    environment: Environment<'_>,
    secrets: &mut Vec<SecretString>,
) -> Result<(), ModelError> {
    for (name, value) in configured {
        let invalid = || ModelError::InvalidHeader(name.clone());
        let value = expand_variables(name, value, environment, secrets)?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
    }
    Ok(())
}

/// Replaces `$NAME` and `${NAME}` by environment variables; `$$` is a dollar sign.
///
/// Values from the environment are secrets, and so are the values of names such as `authorization` or
/// `api_token`. Other values are not: redacting `application/json` in responses would change them.
///
/// # Errors
///
/// [`ModelError::MissingVariable`].
pub fn expand_variables(
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
    if is_secret_name(name) {
        // In `Bearer …` only the last word is secret.
        let secret = expanded.rsplit(' ').next().unwrap_or(&expanded);
        secrets.push(secret.to_owned().into());
    }
    Ok(expanded.into())
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAME_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_become_secrets() {
        let environment = |name: &str| (name == "TOKEN").then(|| "token-value".to_owned());
        let expanded = |name: &str, value: &str| {
            let mut secrets = Vec::new();
            let value = expand_variables(name, value, &environment, &mut secrets)?;
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
}
