//! Streamable HTTP of the Model Context Protocol, over the transport of this program.
//!
//! `rmcp` implements the sessions; this client sends single requests. It opens no stream of its own to the server:
//! servers have nothing to send without a request, because the client offers no capabilities.

use bakeoff_llm::{HttpRequest, HttpResponse, SendTime, Transport, TransportError};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Number of bytes of an error response that messages show.
const MAX_SHOWN_BYTES: usize = 200;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

const JSON: &str = "application/json";

const EVENT_STREAM: &str = "text/event-stream";

type Headers = HashMap<HeaderName, HeaderValue>;

type McpHttpError = StreamableHttpError<TransportError>;

/// Client for one server.
#[derive(Debug, Clone)]
pub(super) struct McpHttpClient {
    pub(super) transport: Arc<dyn Transport>,
}

impl McpHttpClient {
    async fn send(
        &self,
        method: Method,
        url: &str,
        session_id: Option<Arc<str>>,
        additional: Headers,
        body: Bytes,
    ) -> Result<HttpResponse, McpHttpError> {
        let url = Url::parse(url).map_err(|error| unexpected(format!("invalid URL: {error}")))?;
        let mut headers = HeaderMap::from_iter(additional);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(id) = session_id {
            let id = HeaderValue::from_str(&id);
            headers
                .insert(SESSION_ID, id.map_err(|_| unexpected("invalid session id".to_owned()))?);
        }
        let request = HttpRequest { method, url, headers, body, sent: SendTime::default() };
        self.transport.send(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = TransportError;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        let has_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?.into();
        let response = self.send(Method::POST, &url, session_id, headers, body).await?;
        let status = response.status;
        let session_id = response.headers.get(SESSION_ID);
        let session_id = session_id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let content_type = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let ClientJsonRpcMessage::Request(request) = &message else {
            return match status.is_success() {
                // There is nothing in the response to a notification.
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(status_error(response).await),
            };
        };
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && content_type.starts_with(EVENT_STREAM) {
            let events = SseStream::from_bytes_stream(limited(response)).boxed();
            return Ok(StreamableHttpPostResponse::Sse(events, session_id));
        }
        if status.is_success() && !content_type.starts_with(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(content_type)));
        }
        let is_rejection = status.is_client_error()
            && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !status.is_success() && !is_rejection {
            return Err(status_error(response).await);
        }
        let body = read(response).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            // The body of a rejection need not have the id of the request.
            Ok(ServerJsonRpcMessage::Error(error)) if is_rejection => {
                let answer = ServerJsonRpcMessage::error(error.error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, session_id))
            }
            Ok(answer) if !is_rejection => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
            _ if is_rejection => {
                let error = ErrorData::invalid_request(describe(status, &body), None);
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, session_id))
            }
            _ => Err(unexpected(describe(status, &body))),
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session_id: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), McpHttpError> {
        // Servers need not support it, and the session is not used any more.
        self.send(Method::DELETE, &url, Some(session_id), headers, Bytes::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        _url: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _token: Option<String>,
        _headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, McpHttpError> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// Returns the body up to the size limit; a longer one ends with an error.
fn limited(response: HttpResponse) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
    let mut received = 0;
    let chunks = response.body.map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        received += chunk.len();
        match received <= MAX_RESPONSE_BYTES {
            true => Ok(chunk),
            false => Err(std::io::Error::other("the response exceeds 16 MiB")),
        }
    });
    chunks.boxed()
}

async fn read(response: HttpResponse) -> Result<Bytes, McpHttpError> {
    let mut chunks = limited(response);
    let mut body = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
    }
    Ok(body.freeze())
}

async fn status_error(response: HttpResponse) -> McpHttpError {
    let status = response.status;
    let body = read(response).await.unwrap_or_default();
    unexpected(describe(status, &body))
}

fn unexpected(message: String) -> McpHttpError {
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

/// Describes a response by its status and the start of its body.
fn describe(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = bakeoff_core::one_line(crate::tools::truncate(&text, MAX_SHOWN_BYTES));
    match text.is_empty() {
        true => format!("HTTP {status}"),
        false => format!("HTTP {status}: {text}"),
    }
}
