//! HTTP services that are no models: one request, perhaps another, and the body of the answer.
//!
//! What stands in the bodies is for others.

use crate::attempt::{lost, malformed, read_error, read_whole};
use crate::client::{CallContext, CallError, Client, Retry, cancelled};
use crate::failure::classify;
use crate::model::{Environment, ModelError, add_headers, parse_address};
use crate::record::{Asked, Attempting, Retrying, Traffic};
use crate::transport::HttpRequest;
use crate::{Failure, Wire};
use bakeoff_core::{ErrorKind, Redactor};
use bakeoff_pace::{RetryPolicy, RetryProgress};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use std::time::{Duration, SystemTime};
use url::{Position, Url};

/// Most retries of a request that the service did not take.
const MOST_RETRIES: u32 = 4;

/// A service as the user wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Its name, for logs.
    pub name: String,
    /// The address.
    pub url: String,
    /// The method; `POST` when absent.
    pub method: Option<String>,
    /// Sent with every request; `$NAME` takes the value of an environment variable.
    pub headers: Vec<(String, String)>,
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

/// What a service answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAnswer {
    /// The body, without secrets.
    pub body: String,
    /// How long the successful attempt took.
    pub latency: Duration,
    /// Attempts that failed before.
    pub retries: u32,
}

impl Service {
    /// Resolves address and headers. Makes no call.
    ///
    /// # Errors
    ///
    /// The address or a header cannot be used, or an environment variable is missing.
    pub fn resolve(
        config: &ServiceConfig,
        environment: Environment<'_>,
    ) -> Result<Service, ModelError> {
        let mut secrets = Vec::new();
        let url = parse_address("url", &config.url)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        add_headers(&mut headers, &config.headers, environment, &mut secrets)?;
        let method = config.method.as_deref().unwrap_or("POST");
        Ok(Service {
            name: config.name.clone(),
            url,
            // Words for methods are checked where they are read.
            method: Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST),
            headers,
            secrets,
        })
    }

    /// The address without its query, which may hold a key.
    pub fn address(&self) -> &str {
        &self.url[..Position::AfterPath]
    }

    /// The method of its requests.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Whether requests have a body.
    pub fn has_body(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether bodies are JSON, as far as headers tell.
    pub fn sends_json(&self) -> bool {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.has_body() && kind.is_some_and(|kind| kind.contains("json"))
    }

    /// Makes sure that nothing of its keys is ever written or shown.
    pub fn add_secrets(&self, redactor: &mut Redactor) {
        for secret in &self.secrets {
            redactor.add(secret.expose_secret());
        }
    }
}

impl Client {
    /// Sends a request to a service and waits for its answer. Requests that the service did not take
    /// (429, 503) are made again a few times, when it says so; nothing else is, because it may have
    /// been done already.
    ///
    /// # Errors
    ///
    /// There is no answer, or one that is no success.
    pub async fn ask_service(
        &self,
        service: &Service,
        body: Bytes,
        timeout: Duration,
        context: &CallContext<'_>,
    ) -> Result<ServiceAnswer, CallError> {
        let retry = RetryPolicy { timeout, max_retries: Some(MOST_RETRIES), ..self.retry };
        let mut waited = RetryProgress::default();
        let work = self.ask_until_settled(service, &body, &retry, context, &mut waited);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(cancelled(0)),
            answer = work => answer,
        }
    }

    async fn ask_until_settled(
        &self,
        service: &Service,
        body: &Bytes,
        retry: &RetryPolicy,
        context: &CallContext<'_>,
        waited: &mut RetryProgress,
    ) -> Result<ServiceAnswer, CallError> {
        let asked = Asked { name: &service.name, method: name(&service.method) };
        loop {
            let (observer, number) = (self.on_http.as_ref(), waited.retries + 1);
            let mut attempt = Attempting::new(observer, asked, body.len(), 0, number);
            let left = retry.timeout.saturating_sub(waited.spent);
            let once = self.ask_once(service, body.clone(), &mut attempt.traffic);
            let answered = tokio::time::timeout(left, once).await.unwrap_or_else(|_| {
                let seconds = retry.timeout.as_secs_f64();
                Err(Failure::local(ErrorKind::Timeout, format!("no answer within {seconds} s")))
            });
            let latency = attempt.sent.elapsed();
            let failure = match answered {
                Ok(body) => {
                    attempt.over(latency, None, None);
                    return Ok(ServiceAnswer { body, latency, retries: waited.retries });
                }
                Err(failure) => self.without_secrets_in(failure),
            };
            waited.spent += latency;
            let was_not_taken = matches!(failure.status, Some(429 | 503));
            let pause = retry
                .pause(failure.kind, *waited, failure.retry_after, rand::random())
                .filter(|_| was_not_taken && !context.stop.is_cancelled());
            let retrying = pause.map(|pause| Retrying { code: failure.code.as_deref(), pause });
            attempt.over(latency, Some(failure.kind), retrying);
            let Some(pause) = pause else {
                return Err(CallError { failure, retries: waited.retries });
            };
            if let Some(on_retry) = context.on_retry {
                on_retry(&Retry { model: &service.name, pause, failure: &failure });
            }
            tokio::select! {
                () = context.stop.cancelled() => {
                    return Err(CallError { failure, retries: waited.retries });
                }
                () = tokio::time::sleep(pause) => {}
            }
            waited.spent += pause;
            waited.retries += 1;
            waited.transient += u32::from(failure.kind != ErrorKind::RateLimit);
        }
    }

    async fn ask_once(
        &self,
        service: &Service,
        body: Bytes,
        traffic: &mut Traffic,
    ) -> Result<String, Failure> {
        traffic.url.push_str(service.address());
        let request = HttpRequest {
            method: service.method.clone(),
            url: service.url.clone(),
            headers: service.headers.clone(),
            body: if service.has_body() { body } else { Bytes::new() },
        };
        let response = self.transport.send(request).await.map_err(lost)?;
        traffic.status = Some(response.status.as_u16());
        let bytes = &mut traffic.response_bytes;
        if !response.status.is_success() {
            let body = self.scrub(&read_error(response.body, bytes).await);
            return Err(refused(response.status, &response.headers, &body));
        }
        let body = read_whole(response.body, bytes).await?;
        let text = std::str::from_utf8(&body)
            .map_err(|_| malformed("the answer is not UTF-8".to_owned()))?;
        Ok(self.redactor.scrub(text.to_owned()))
    }
}

/// What a status means that is no success.
fn refused(status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let number = status.as_u16();
    let failure = classify(Wire::OpenAiChat, number, headers, body.as_bytes(), SystemTime::now());
    let kind = match number {
        // The words tell whether waiting helps.
        429 => failure.kind,
        401 | 403 => ErrorKind::Auth,
        408 | 500.. => ErrorKind::Transient,
        _ => ErrorKind::InvalidRequest,
    };
    Failure { kind, ..failure }
}

fn name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "POST",
    }
}
