//! One HTTP request of a call: encode, send, read, decode.

use crate::failure::classify;
use crate::model::{Model, Route, Server};
use crate::record::RequestTraffic;
use crate::retry::ModelCall;
use crate::transport::{Body, HttpRequest, TransportError, TransportErrorKind};
use crate::wire::{DecodeError, StreamDecoder, StreamError};
use crate::{CallContext, Client, Delta, Failure, Wire};
use bakeoff_core::{Content, ErrorKind, Request, Response, UNITS_PER_TOKEN, token_units};
use bakeoff_sim::{Fault, Outcome, SimRequest};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use secrecy::ExposeSecret;
use std::time::{Duration, SystemTime};
use url::{Position, Url};

/// Maximum size of a response body. It bounds memory and is far above the output of any model.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of an error body that are read; enough to classify the error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Media type of server-sent events; parameters may follow it.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Time that a stream may stay open after its last event.
const STREAM_CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Header that names the trial and the ordinal; sent only to simulated models.
const TRIAL_HEADER: HeaderName = HeaderName::from_static("x-bakeoff-trial");

/// URL recorded for the simulated provider in this process.
const SIMULATED_URL: &str = "sim:";

/// Maximum number of deltas of a simulated response.
const MAX_SIMULATED_DELTAS: usize = 8;

/// A request together with its body in the wire format of its provider.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    request: Request,
    body: Bytes,
}

impl PreparedRequest {
    pub(crate) fn new(model: &Model, request: Request) -> PreparedRequest {
        let request = model.settings().apply_to(request);
        let stream = request.stream || model.stream;
        let request = Request { model: model.name.clone(), stream, ..request };
        let body = match &model.route {
            Route::Http(server) => server.encode(&request),
            // Encoding a plain struct cannot fail, and here the body serves only as a cache key.
            Route::Simulated => serde_json::to_vec(&request).unwrap_or_default().into(),
        };
        PreparedRequest { request, body }
    }

    /// Estimates the tokens of the prompt, and those of its images and files.
    pub(crate) fn input_tokens(&self) -> u64 {
        let parts = || self.request.messages.iter().flat_map(|message| message.content());
        let units: u64 = parts()
            .map(|part| match part {
                Content::Text { text } | Content::Thinking { text, .. } => token_units(text),
                _ => 0,
            })
            .sum();
        let media: u64 = parts().map(Content::media_tokens).sum();
        units.div_ceil(UNITS_PER_TOKEN) + media
    }

    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.request.max_tokens
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Hashes everything that the response depends on; the API key is not part of it.
    pub(crate) fn identity(&self, model: &Model) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        if let Route::Http(server) = &model.route {
            hasher.update(server.additions.as_bytes());
            // Gemini names the model in the path and not in the body.
            hasher.update(blake3::hash(server.wire.path(&self.request).as_bytes()).as_bytes());
        }
        hasher.update(&self.body).finalize()
    }
}

/// A decoded response with its headers.
#[derive(Debug)]
pub(crate) struct ProviderResponse {
    pub(crate) response: Response,
    pub(crate) headers: HeaderMap,
}

/// Sends the request of a call once. `traffic` is filled in as the exchange proceeds.
pub(crate) async fn send(
    call: ModelCall<'_>,
    traffic: &mut RequestTraffic,
) -> Result<ProviderResponse, Failure> {
    match &call.model.route {
        Route::Http(server) => send_http(call, server, traffic).await,
        Route::Simulated => send_to_simulator(call, traffic).await,
    }
}

async fn send_http(
    call: ModelCall<'_>,
    server: &Server,
    traffic: &mut RequestTraffic,
) -> Result<ProviderResponse, Failure> {
    let ModelCall { client, model, request: prepared, ordinal, context } = call;
    let wire = server.wire;
    let mut url = join_path(&server.base, &wire.path(&prepared.request));
    for (name, value) in &server.query {
        url.query_pairs_mut().append_pair(name, value.expose_secret());
    }
    if client.on_http.is_some() {
        traffic.url.push_str(&url[..Position::AfterPath]);
    }
    let mut headers = server.headers.clone();
    if model.is_simulated()
        && let Ok(trial) = HeaderValue::try_from(format!("{}/{ordinal}", context.trial))
    {
        headers.insert(TRIAL_HEADER, trial);
    }
    let body = prepared.body.clone();
    let sent = traffic.sent.clone();
    let request = HttpRequest { method: Method::POST, url, headers, body, sent };
    let response = client.transport.send(request).await.map_err(transport_failure)?;
    let headers = response.headers;
    traffic.status = Some(response.status.as_u16());
    let bytes = &mut traffic.response_bytes;
    if let (true, Some(to)) = (response.status.is_redirection(), headers.get(LOCATION)) {
        return Err(redirect_failure(response.status, to, "base_url"));
    }
    if !response.status.is_success() {
        let body = client.redact_body(&read_error_body(response.body, bytes).await);
        let status = response.status.as_u16();
        let failure = classify(wire, status, &headers, body.as_bytes(), SystemTime::now());
        // Without the query, which may contain a key.
        let url = join_path(&server.base, &wire.path(&prepared.request));
        let address = &url[..Position::AfterPath];
        return Err(failure.with_address(address, "check base_url and the model name"));
    }
    let is_stream = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.as_bytes().get(..EVENT_STREAM.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM));
    let response = if is_stream {
        read_stream(wire, response.body, context, bytes).await?
    } else {
        // Some servers return a plain response to a streaming request.
        decode(client, wire, &read_body(response.body, bytes).await?)?
    };
    Ok(ProviderResponse { response, headers })
}

fn decode(client: &Client, wire: Wire, body: &[u8]) -> Result<Response, Failure> {
    wire.decode(body).map_err(|error| match error {
        DecodeError::Provider(failure) => failure,
        DecodeError::Malformed { problem, .. } => {
            let body = client.redact_body(body);
            malformed_response(DecodeError::malformed(problem, body.as_bytes()).to_string())
        }
    })
}

async fn send_to_simulator(
    call: ModelCall<'_>,
    traffic: &mut RequestTraffic,
) -> Result<ProviderResponse, Failure> {
    let ModelCall { client, request: prepared, ordinal, context, .. } = call;
    let now = client.started.elapsed();
    let request = &prepared.request;
    traffic.url.push_str(SIMULATED_URL);
    let reply =
        client.simulator.respond(&SimRequest { request, trial: context.trial, ordinal, now });
    match (&reply.outcome, context.on_delta) {
        (Outcome::Answer(response), Some(on_delta)) if request.stream => {
            emit_deltas(response, reply.delay, on_delta).await;
        }
        _ if reply.delay.is_zero() => {}
        _ => tokio::time::sleep(reply.delay).await,
    }
    let time_left = |slot| client.simulator.time_left(slot, client.started.elapsed());
    while let Some(left) = reply.slot.and_then(time_left) {
        tokio::time::sleep(left).await;
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    match reply.outcome {
        Outcome::Answer(response) => {
            traffic.status = Some(reply.answer_status);
            Ok(ProviderResponse { response, headers })
        }
        Outcome::Refused { status, code, message } => {
            traffic.status = Some(status);
            let error = serde_json::json!({"error": {"code": code, "message": message}});
            let body = error.to_string();
            let now = SystemTime::now();
            Err(classify(Wire::OpenAiChat, status, &headers, body.as_bytes(), now))
        }
        Outcome::Broken(fault) => {
            let message = format!("simulated fault: {fault:?}");
            // As over HTTP, a connection that ends early is retried and other faults are not.
            Err(match fault {
                Fault::Truncated | Fault::Reset => connection_lost(message),
                _ => malformed_response(message),
            })
        }
    }
}

/// Emits a simulated response as a few deltas, spread over its delay.
async fn emit_deltas(
    response: &Response,
    delay: Duration,
    on_delta: &(dyn Fn(&Delta) + Send + Sync),
) {
    let text = response.text();
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let words_per_delta = words.len().div_ceil(MAX_SIMULATED_DELTAS).max(1);
    let deltas: Vec<String> = words.chunks(words_per_delta).map(|words| words.concat()).collect();
    let pause = delay / (deltas.len().max(1) as u32);
    for delta in &deltas {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        on_delta(&Delta::Text(delta.clone()));
    }
    if deltas.is_empty() && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Appends a path, and possibly a query, to the base URL.
fn join_path(base: &Url, path: &str) -> Url {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if query.is_some() {
        url.set_query(query);
    }
    url
}

/// Reads a whole body and counts its bytes in `bytes`.
pub(crate) async fn read_body(mut body: Body, bytes: &mut u64) -> Result<Bytes, Failure> {
    let Some(first) = body.next().await else { return Ok(Bytes::new()) };
    let first = first.map_err(transport_failure)?;
    *bytes += first.len() as u64;
    let Some(second) = body.next().await else {
        // A body of one chunk, the usual case, needs no copy.
        return if first.len() > MAX_RESPONSE_BYTES {
            Err(oversized_response())
        } else {
            Ok(first)
        };
    };
    let mut whole = BytesMut::from(&first[..]);
    let mut next = Some(second);
    while let Some(chunk) = next {
        whole.extend_from_slice(&chunk.map_err(transport_failure)?);
        *bytes = whole.len() as u64;
        if whole.len() > MAX_RESPONSE_BYTES {
            return Err(oversized_response());
        }
        next = body.next().await;
    }
    Ok(whole.freeze())
}

/// Reads the start of an error body. A connection that fails ends it.
pub(crate) async fn read_error_body(mut body: Body, bytes: &mut u64) -> BytesMut {
    let mut start = BytesMut::new();
    while let Some(Ok(chunk)) = body.next().await {
        start.extend_from_slice(&chunk);
        *bytes = start.len() as u64;
        if start.len() >= MAX_ERROR_BYTES {
            break;
        }
    }
    start
}

async fn read_stream(
    wire: Wire,
    mut body: Body,
    context: &CallContext<'_>,
    bytes: &mut u64,
) -> Result<Response, Failure> {
    let mut decoder: StreamDecoder = wire.stream();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(transport_failure)?;
        *bytes += chunk.len() as u64;
        if *bytes > MAX_RESPONSE_BYTES as u64 {
            return Err(oversized_response());
        }
        let deltas = decoder.feed(&chunk).map_err(stream_failure)?;
        if let Some(on_delta) = context.on_delta {
            deltas.iter().for_each(on_delta);
        }
        if decoder.is_complete() {
            // The connection is reusable if the body ends; if it stays open, dropping the body closes it.
            let _ = tokio::time::timeout(STREAM_CLOSE_TIMEOUT, body.next()).await;
            break;
        }
    }
    decoder.finish().map_err(stream_failure)
}

fn stream_failure(error: StreamError) -> Failure {
    match error {
        StreamError::Provider(failure) => failure,
        StreamError::Truncated => connection_lost(error.to_string()),
        other => malformed_response(other.to_string()),
    }
}

pub(crate) fn transport_failure(error: TransportError) -> Failure {
    let kind = match error.kind() {
        // Repeating the request cannot help.
        TransportErrorKind::Setup => ErrorKind::InvalidRequest,
        _ => ErrorKind::Transient,
    };
    Failure { cause: Some(error.kind()), ..Failure::local(kind, error.to_string()) }
}

fn connection_lost(message: String) -> Failure {
    transport_failure(TransportError::new(TransportErrorKind::ConnectionLost, message))
}

pub(crate) fn malformed_response(message: impl Into<String>) -> Failure {
    Failure::local(ErrorKind::MalformedResponse, message)
}

fn oversized_response() -> Failure {
    malformed_response(format!("response exceeds {} MiB", MAX_RESPONSE_BYTES / (1024 * 1024)))
}

/// Returns the failure for a redirect. APIs do not redirect, so the URL that is configured under `key` is wrong.
pub(crate) fn redirect_failure(status: StatusCode, to: &HeaderValue, key: &str) -> Failure {
    let to = String::from_utf8_lossy(to.as_bytes());
    Failure {
        status: Some(status.as_u16()),
        ..Failure::local(
            ErrorKind::InvalidRequest,
            format!("unexpected redirect to {to}; check {key}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_appended_to_base_url() {
        let table = [
            ("http://host/v1", "/chat/completions", "http://host/v1/chat/completions"),
            ("http://host/v1/", "/messages", "http://host/v1/messages"),
            ("http://host", "/models/a:b?alt=sse", "http://host/models/a:b?alt=sse"),
            ("http://host/x?v=1", "/responses", "http://host/x/responses?v=1"),
        ];
        for (base, path, expected) in table {
            assert_eq!(join_path(&Url::parse(base).unwrap(), path).as_str(), expected);
        }
    }
}
