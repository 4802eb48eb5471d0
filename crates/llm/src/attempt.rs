//! One attempt: encode, send, read, decode.

use crate::client::{CallContext, Client};
use crate::failure::classify;
use crate::model::{Model, Route};
use crate::record::Traffic;
use crate::transport::{Body, HttpRequest, TransportError};
use crate::wire::{DecodeError, StreamDecoder, StreamError};
use crate::{Delta, Failure, Wire};
use bakeoff_core::{Content, ErrorKind, Request, Response};
use bakeoff_sim::{Ask, Fault, Outcome};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use secrecy::ExposeSecret;
use std::time::{Duration, SystemTime};
use url::{Position, Url};

/// Answers longer than this are refused: nothing a model says is this long, and memory is finite.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The media type of server-sent events; parameters may follow it.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// How long a stream may stay open after its last event.
const AFTER_THE_END: Duration = Duration::from_millis(100);

/// Tells the simulated provider which trial is asking; sent to nobody else.
const TRIAL_HEADER: HeaderName = HeaderName::from_static("x-bakeoff-trial");

/// Stands for an address where there is none.
const SIMULATED: &str = "sim:";

/// A request in the words of its provider.
#[derive(Debug)]
pub(crate) struct Prepared {
    request: Request,
    body: Bytes,
}

impl Prepared {
    pub(crate) fn new(model: &Model, request: Request) -> Prepared {
        let stream = request.stream || model.stream;
        let request = Request { model: model.name.clone(), stream, ..request };
        let body = match &model.route {
            Route::Http(server) => server.wire.encode(&request),
            // Encoding a plain struct cannot fail; if it ever did, only the cache would suffer.
            Route::Simulated => serde_json::to_vec(&request).unwrap_or_default().into(),
        };
        Prepared { request, body }
    }

    /// Tokens of the prompt, at four characters each.
    pub(crate) fn input_tokens(&self) -> u64 {
        let texts = self.request.messages.iter().flat_map(|message| message.content());
        let characters: usize = texts
            .map(|part| match part {
                Content::Text { text } | Content::Thinking { text, .. } => text.chars().count(),
                _ => 0,
            })
            .sum();
        (characters as u64).div_ceil(4)
    }

    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.request.max_tokens
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Everything that the answer depends on, hashed; not the key.
    pub(crate) fn identity(&self, model: &Model) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        if let Route::Http(server) = &model.route {
            hasher.update(server.additions.as_bytes());
            // Gemini's body does not name the model, but its path does.
            hasher.update(blake3::hash(server.wire.path(&self.request).as_bytes()).as_bytes());
        }
        hasher.update(&self.body).finalize()
    }
}

/// An answer with its headers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) headers: HeaderMap,
}

impl Client {
    pub(crate) async fn attempt(
        &self,
        model: &Model,
        prepared: &Prepared,
        ordinal: u32,
        context: &CallContext<'_>,
        traffic: &mut Traffic,
    ) -> Result<Answer, Failure> {
        let Route::Http(server) = &model.route else {
            return self.ask_simulator(prepared, ordinal, context, traffic).await;
        };
        let wire = server.wire;
        let mut url = address(&server.base, &wire.path(&prepared.request));
        for (name, value) in &server.query {
            url.query_pairs_mut().append_pair(name, value.expose_secret());
        }
        if self.on_http.is_some() {
            traffic.url.push_str(&url[..Position::AfterPath]);
        }
        let mut headers = server.headers.clone();
        if model.is_simulated()
            && let Ok(trial) = HeaderValue::try_from(format!("{}/{ordinal}", context.trial))
        {
            headers.insert(TRIAL_HEADER, trial);
        }
        let body = prepared.body.clone();
        let request = HttpRequest { method: Method::POST, url, headers, body };
        let response = self.transport.send(request).await.map_err(lost)?;
        let headers = response.headers;
        traffic.status = Some(response.status.as_u16());
        let bytes = &mut traffic.response_bytes;
        if let (true, Some(to)) = (response.status.is_redirection(), headers.get(LOCATION)) {
            return Err(redirected(response.status, to));
        }
        if response.status != StatusCode::OK {
            let body = self.scrub(&read_error(response.body, bytes).await);
            let status = response.status.as_u16();
            return Err(classify(wire, status, &headers, body.as_bytes(), SystemTime::now()));
        }
        let is_stream = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.as_bytes().get(..EVENT_STREAM.len()))
            .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM));
        let response = if is_stream {
            read_stream(wire, response.body, context, bytes).await?
        } else {
            // Some servers answer in one piece although they were asked to stream.
            self.decode(wire, &read_whole(response.body, bytes).await?)?
        };
        Ok(Answer { response, headers })
    }

    fn decode(&self, wire: Wire, body: &[u8]) -> Result<Response, Failure> {
        wire.decode(body).map_err(|error| match error {
            DecodeError::Provider(failure) => failure,
            DecodeError::Malformed { problem, .. } => {
                let body = self.scrub(body);
                malformed(DecodeError::malformed(problem, body.as_bytes()).to_string())
            }
        })
    }

    /// A body without secrets. Messages show only its start, and half a secret would not be known
    /// as one any more.
    pub(crate) fn scrub(&self, body: &[u8]) -> String {
        self.redactor.scrub(String::from_utf8_lossy(body).into_owned())
    }

    async fn ask_simulator(
        &self,
        prepared: &Prepared,
        ordinal: u32,
        context: &CallContext<'_>,
        traffic: &mut Traffic,
    ) -> Result<Answer, Failure> {
        let now = self.started.elapsed();
        let request = &prepared.request;
        traffic.url.push_str(SIMULATED);
        let reply = self.simulator.ask(&Ask { request, trial: context.trial, ordinal, now });
        match (&reply.outcome, context.on_delta) {
            (Outcome::Answer(response), Some(on_delta)) if request.stream => {
                speak(response, reply.delay, on_delta).await;
            }
            _ if reply.delay.is_zero() => {}
            _ => tokio::time::sleep(reply.delay).await,
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &reply.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        match reply.outcome {
            Outcome::Answer(response) => {
                traffic.status = Some(200);
                Ok(Answer { response, headers })
            }
            Outcome::Refused { status, code, message } => {
                traffic.status = Some(status);
                let error = serde_json::json!({"error": {"code": code, "message": message}});
                let body = error.to_string();
                let now = SystemTime::now();
                Err(classify(Wire::OpenAiChat, status, &headers, body.as_bytes(), now))
            }
            Outcome::Broken(fault) => {
                let message = format!("the simulated answer is broken: {fault:?}");
                // As over HTTP, where a connection that ends early is worth another attempt.
                let is_lost = fault == Fault::Truncated;
                Err(if is_lost { lost(TransportError(message)) } else { malformed(message) })
            }
        }
    }
}

/// Tells a simulated answer in a few pieces, spread over the time that it takes.
async fn speak(response: &Response, delay: Duration, on_delta: &(dyn Fn(&Delta) + Send + Sync)) {
    const PIECES: usize = 8;
    let text = response.text();
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let pieces: Vec<String> =
        words.chunks(words.len().div_ceil(PIECES).max(1)).map(|words| words.concat()).collect();
    let pause = delay / (pieces.len().max(1) as u32);
    for piece in &pieces {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        on_delta(&Delta::Text(piece.clone()));
    }
    if pieces.is_empty() && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// The base address with a path, and perhaps a query, appended.
fn address(base: &Url, path: &str) -> Url {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if query.is_some() {
        url.set_query(query);
    }
    url
}

/// What a body holds; `bytes` counts what has come of it.
pub(crate) async fn read_whole(mut body: Body, bytes: &mut u64) -> Result<Bytes, Failure> {
    let Some(first) = body.next().await else { return Ok(Bytes::new()) };
    let first = first.map_err(lost)?;
    *bytes += first.len() as u64;
    let Some(second) = body.next().await else { return within(first) };
    let mut whole = BytesMut::from(&first[..]);
    let mut next = Some(second);
    while let Some(chunk) = next {
        whole.extend_from_slice(&chunk.map_err(lost)?);
        *bytes = whole.len() as u64;
        if whole.len() > MOST_BYTES {
            return Err(too_long());
        }
        next = body.next().await;
    }
    Ok(whole.freeze())
}

fn within(body: Bytes) -> Result<Bytes, Failure> {
    if body.len() > MOST_BYTES { Err(too_long()) } else { Ok(body) }
}

/// As much of an error's body as is needed to say what happened.
pub(crate) async fn read_error(mut body: Body, bytes: &mut u64) -> BytesMut {
    const ENOUGH: usize = 64 * 1024;
    let mut start = BytesMut::new();
    while let Some(Ok(chunk)) = body.next().await {
        start.extend_from_slice(&chunk);
        *bytes = start.len() as u64;
        if start.len() >= ENOUGH {
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
        let chunk = chunk.map_err(lost)?;
        *bytes += chunk.len() as u64;
        if *bytes > MOST_BYTES as u64 {
            return Err(too_long());
        }
        let deltas = decoder.feed(&chunk).map_err(stream_failure)?;
        if let Some(on_delta) = context.on_delta {
            deltas.iter().for_each(on_delta);
        }
        if decoder.is_complete() {
            // A body that ends can be used again; one that stays open is given up.
            let _ = tokio::time::timeout(AFTER_THE_END, body.next()).await;
            break;
        }
    }
    decoder.finish().map_err(stream_failure)
}

fn stream_failure(error: StreamError) -> Failure {
    match error {
        StreamError::Provider(failure) => failure,
        StreamError::Truncated => lost(TransportError(error.to_string())),
        other => malformed(other.to_string()),
    }
}

pub(crate) fn lost(error: TransportError) -> Failure {
    Failure::local(ErrorKind::Transient, error.0)
}

pub(crate) fn malformed(message: String) -> Failure {
    Failure::local(ErrorKind::MalformedResponse, message)
}

fn too_long() -> Failure {
    malformed(format!("the answer is longer than {} MiB", MOST_BYTES / (1024 * 1024)))
}

/// Providers do not send their callers elsewhere: the address is wrong.
fn redirected(status: StatusCode, to: &HeaderValue) -> Failure {
    let to = String::from_utf8_lossy(to.as_bytes());
    Failure {
        status: Some(status.as_u16()),
        ..Failure::local(
            ErrorKind::InvalidRequest,
            format!("redirected to {to}; is the base_url right?"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_appended_to_the_base() {
        let table = [
            ("http://host/v1", "/chat/completions", "http://host/v1/chat/completions"),
            ("http://host/v1/", "/messages", "http://host/v1/messages"),
            ("http://host", "/models/a:b?alt=sse", "http://host/models/a:b?alt=sse"),
            ("http://host/x?v=1", "/responses", "http://host/x/responses?v=1"),
        ];
        for (base, path, expected) in table {
            assert_eq!(address(&Url::parse(base).unwrap(), path).as_str(), expected);
        }
    }
}
