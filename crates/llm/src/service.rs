//! HTTP services that are not models: send a request, possibly retry it, return the body of the response.
//!
//! The content of the bodies is up to the caller.

use crate::call::{CallContext, CallError, Retry};
use crate::failure::classify;
use crate::model::{Environment, ModelError, add_headers, parse_url};
use crate::record::{RequestGuard, RequestInfo, RequestTraffic, RetryInfo};
use crate::request::{
    malformed_response, read_body, read_error_body, redirect_failure, transport_failure,
};
use crate::transport::HttpRequest;
use crate::{Client, Failure, Wire};
use bakeoff_core::{ErrorKind, Redactor};
use bakeoff_pace::{FailedAttempt, RetryMode, RetryPolicy, RetryProgress};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use std::time::{Duration, SystemTime};
use url::{Position, Url};

/// Maximum number of retries of a rejected request.
const MAX_RETRIES: u32 = 4;

/// Configuration of a [`Service`].
///
/// ```
/// use bakeoff_llm::{Service, ServiceConfig};
///
/// let config = ServiceConfig::new("http://localhost:8080/summarise").method("PUT");
/// let service = Service::resolve(&config, &|_| None)?;
/// assert_eq!(service.method(), "PUT");
/// # Ok::<(), bakeoff_llm::ModelError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Name for logs.
    pub name: String,
    /// URL of the service.
    pub url: String,
    /// HTTP method; `POST` when absent.
    pub method: Option<String>,
    /// Headers sent with every request; `$NAME` is replaced by the environment variable.
    pub headers: Vec<(String, String)>,
}

impl ServiceConfig {
    /// Creates a configuration for a URL, with defaults for everything else.
    pub fn new(url: impl Into<String>) -> Self {
        ServiceConfig { url: url.into(), ..ServiceConfig::default() }
    }

    /// Sets the name for logs.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the HTTP method.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// A service that can be called.
#[derive(Debug, Clone)]
pub struct Service {
    name: String,
    url: Url,
    method: Method,
    headers: HeaderMap,
    secrets: Vec<SecretString>,
}

/// Response of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceResponse {
    /// Body, with secrets redacted.
    pub body: String,
    /// Latency of the successful request.
    pub latency: Duration,
    /// Number of failed requests before the successful one.
    pub retries: u32,
}

impl Service {
    /// Resolves the URL and the headers. Sends nothing.
    ///
    /// # Errors
    ///
    /// When the URL or a header is invalid, or an environment variable is not set.
    pub fn resolve(
        config: &ServiceConfig,
        environment: Environment<'_>,
    ) -> Result<Service, ModelError> {
        let mut secrets = Vec::new();
        let url = parse_url("url", &config.url)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        add_headers(&mut headers, &config.headers, environment, &mut secrets)?;
        let method = config.method.as_deref().unwrap_or("POST");
        Ok(Service {
            name: config.name.clone(),
            url,
            // The suite reader validates method names.
            method: Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST),
            headers,
            secrets,
        })
    }

    /// Returns the URL, whose query may contain a key.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the headers of all requests; values from the configuration are marked as sensitive.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the URL without its query, which may contain a key.
    pub fn address(&self) -> &str {
        &self.url[..Position::AfterPath]
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Whether requests have a body.
    pub fn has_body(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether request bodies are JSON according to the headers.
    pub fn sends_json(&self) -> bool {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.has_body() && kind.is_some_and(|kind| kind.contains("json"))
    }

    /// Adds the secrets of the service to a redactor.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        for secret in &self.secrets {
            redactor.add(secret.expose_secret());
        }
    }
}

/// One call of a service.
pub(crate) struct ServiceCall<'a> {
    pub(crate) client: &'a Client,
    pub(crate) service: &'a Service,
    pub(crate) body: Bytes,
    pub(crate) context: &'a CallContext<'a>,
}

impl ServiceCall<'_> {
    /// Sends requests until one succeeds, no retry is allowed, or the call is cancelled.
    pub(crate) async fn run(self, timeout: Duration) -> Result<ServiceResponse, CallError> {
        let retry = self.client.retry.timeout(timeout).max_retries(MAX_RETRIES);
        let mut waited = RetryProgress::default();
        tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => Err(CallError::cancelled(0)),
            result = self.run_with_retries(&retry, &mut waited) => result,
        }
    }

    async fn run_with_retries(
        &self,
        retry: &RetryPolicy,
        waited: &mut RetryProgress,
    ) -> Result<ServiceResponse, CallError> {
        let ServiceCall { client, service, context, .. } = *self;
        let info = RequestInfo { name: &service.name, method: method_name(&service.method) };
        loop {
            let (observer, number) = (client.on_http.as_ref(), waited.retries + 1);
            let mut guard = RequestGuard::new(observer, info, self.body.len(), 0, number);
            let left = retry.timeout.saturating_sub(waited.spent);
            let response = self.send(&mut guard.traffic);
            let result = tokio::time::timeout(left, response).await.unwrap_or_else(|_| {
                let seconds = retry.timeout.as_secs_f64();
                let message = format!("no response within {seconds} s");
                Err(Failure::local(ErrorKind::Timeout, message))
            });
            let latency = guard.latency();
            let failure = match result {
                Ok(body) => {
                    guard.finish(latency, None, None);
                    return Ok(ServiceResponse { body, latency, retries: waited.retries });
                }
                Err(failure) => client.redact_failure(failure),
            };
            waited.spent += latency;
            let retries = waited.retries;
            let attempt = FailedAttempt {
                kind: failure.kind,
                hint: failure.retry_after,
                mode: RetryMode::Backoff,
                outage: None,
            };
            let was_rejected = matches!(failure.status, Some(429 | 503));
            let delay = (was_rejected && !context.stop.is_cancelled())
                .then(|| retry.retry(attempt, waited, rand::random()))
                .flatten();
            let pause = delay.map(|delay| delay.pause);
            let info = pause.map(|pause| RetryInfo { code: failure.code.as_deref(), pause });
            guard.finish(latency, Some(failure.kind), info);
            let Some(pause) = pause else { return Err(CallError::new(failure, retries)) };
            if let Some(on_retry) = context.on_retry {
                on_retry(&Retry { model: &service.name, pause, failure: &failure });
            }
            tokio::select! {
                () = context.stop.cancelled() => {
                    return Err(CallError::new(failure, retries));
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sends one request and returns the body of its response.
    async fn send(&self, traffic: &mut RequestTraffic) -> Result<String, Failure> {
        let (client, service) = (self.client, self.service);
        traffic.url.push_str(service.address());
        let request = HttpRequest {
            method: service.method.clone(),
            url: service.url.clone(),
            headers: service.headers.clone(),
            body: if service.has_body() { self.body.clone() } else { Bytes::new() },
            sent: traffic.sent.clone(),
        };
        let response = client.transport.send(request).await.map_err(transport_failure)?;
        traffic.status = Some(response.status.as_u16());
        let bytes = &mut traffic.response_bytes;
        let headers = &response.headers;
        if let (true, Some(to)) = (response.status.is_redirection(), headers.get(LOCATION)) {
            return Err(redirect_failure(response.status, to, "url"));
        }
        if !response.status.is_success() {
            let body = client.redact_body(&read_error_body(response.body, bytes).await);
            let failure = classify_status(response.status, headers, &body);
            return Err(failure.with_address(service.address(), "check url"));
        }
        let body = read_body(response.body, bytes).await?;
        let text =
            std::str::from_utf8(&body).map_err(|_| malformed_response("response is not UTF-8"))?;
        Ok(client.redactor.scrub(text.to_owned()))
    }
}

/// Classifies a response without a success status.
fn classify_status(status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let number = status.as_u16();
    let failure = classify(Wire::OpenAiChat, number, headers, body.as_bytes(), SystemTime::now());
    let kind = match number {
        // The body decides between a rate limit and an exhausted quota.
        429 => failure.kind,
        401 | 403 => ErrorKind::Auth,
        408 | 500.. => ErrorKind::Transient,
        _ => ErrorKind::InvalidRequest,
    };
    Failure { kind, ..failure }
}

fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "POST",
    }
}
