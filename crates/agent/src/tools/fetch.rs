//! The tool `http_fetch`.

use super::{parse_arguments, truncate};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use bakeoff_llm::{HttpRequest, HttpResponse, SendTime, Transport};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use url::Url;

/// Maximum number of bytes returned of a page.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Wildcard for all hosts.
const ALL_HOSTS: &str = "*";

/// Permitted hosts and the transport for requests to them.
#[derive(Debug, Clone)]
pub struct FetchAccess {
    /// Transport for the requests. It must not follow redirects; [`bakeoff_llm::Network`] does not.
    pub transport: Arc<dyn Transport>,
    /// Hosts such as `example.com`, with the default ports, or `127.0.0.1:8080`; `*` permits all.
    pub hosts: Vec<String>,
}

impl FetchAccess {
    /// Returns whether a URL may be fetched.
    fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        // The port is `None` if it is the default of the scheme.
        let authority = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        self.hosts.iter().any(|host| host == ALL_HOSTS || host.eq_ignore_ascii_case(&authority))
    }
}

/// Tool that fetches pages of permitted hosts. Requests contain no secrets.
#[derive(Debug)]
pub struct HttpFetch {
    definition: bakeoff_core::ToolDefinition,
    access: FetchAccess,
}

#[derive(Deserialize)]
struct Arguments {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    body: Option<String>,
}

impl HttpFetch {
    pub(super) const NAME: &str = "http_fetch";

    /// Creates the tool for the permitted hosts.
    pub fn new(access: FetchAccess) -> HttpFetch {
        let hosts = match access.hosts.iter().any(|host| host == ALL_HOSTS) {
            true => "any host".to_owned(),
            false => access.hosts.join(", "),
        };
        let definition = bakeoff_core::ToolDefinition {
            name: HttpFetch::NAME.to_owned(),
            description: format!(
                "Fetches a text over HTTP from {hosts}, at most {} KiB of it. Redirects are not \
                 followed: the answer says where they lead.",
                MAX_OUTPUT_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "url": { "type": "string", "description": "Begins with http:// or https://." },
                    "method": {
                        "type": "string",
                        "enum": ["GET", "POST"],
                        "description": "GET when absent.",
                    },
                    "body": { "type": "string", "description": "What a POST sends." },
                },
                "required": ["url"],
                "additionalProperties": false,
            }),
        };
        HttpFetch { definition, access }
    }

    fn build_request(&self, arguments: Arguments) -> Result<HttpRequest, ToolError> {
        let text = &arguments.url;
        let url = Url::parse(text)
            .map_err(|error| ToolError::Failed(format!("`{text}` is no address: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let message = format!("`{text}` is refused: only http and https are fetched");
            return Err(ToolError::Failed(message));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "the address is refused: it must not contain a user name or password";
            return Err(ToolError::Failed(message.to_owned()));
        }
        if !self.access.allows(&url) {
            return Err(ToolError::Failed(format!(
                "`{text}` is refused: only these hosts are allowed: {}",
                self.access.hosts.join(", ")
            )));
        }
        let is_post = arguments.method.as_deref() == Some("POST");
        if arguments.body.is_some() && !is_post {
            return Err(ToolError::Failed("a GET request has no body".to_owned()));
        }
        let body = arguments.body.unwrap_or_default();
        let mut headers = HeaderMap::new();
        if is_post {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
            let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let method = if is_post { Method::POST } else { Method::GET };
        let sent = SendTime::default();
        Ok(HttpRequest { method, url, headers, body: Bytes::from(body), sent })
    }
}

#[async_trait::async_trait]
impl Tool for HttpFetch {
    fn definition(&self) -> &bakeoff_core::ToolDefinition {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let request = self.build_request(parse_arguments(arguments)?)?;
        let url = request.url.clone();
        let work = async {
            let failed = |error: bakeoff_llm::TransportError| ToolError::Failed(error.to_string());
            let response = self.access.transport.send(request).await.map_err(failed)?;
            if response.status.is_redirection()
                && let Some(location) = header(&response.headers, LOCATION)
            {
                let target = url.join(location).map_or(location.to_owned(), |url| url.to_string());
                let status = response.status.as_u16();
                return Ok(format!("status {status}; not followed, it leads to {target}").into());
            }
            format_response(response).await
        };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Failed("cancelled".to_owned())),
            output = work => output,
        }
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Formats status, content type and text, truncated to the limit.
async fn format_response(mut response: HttpResponse) -> Result<ToolOutput, ToolError> {
    let mut bytes = Vec::new();
    // One byte beyond the limit shows that the text is longer.
    while bytes.len() <= MAX_OUTPUT_BYTES {
        match response.body.next().await {
            Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
            Some(Err(error)) => return Err(ToolError::Failed(error.to_string())),
            None => break,
        }
    }
    let is_truncated = bytes.len() > MAX_OUTPUT_BYTES;
    bytes.truncate(MAX_OUTPUT_BYTES);
    let kind = header(&response.headers, CONTENT_TYPE).unwrap_or("unknown");
    let status = response.status.as_u16();
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // The limit split the last character.
        Err(error) if is_truncated && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => {
            return Err(ToolError::Failed(format!(
                "status {status}, but the body is no text (content-type: {kind})"
            )));
        }
    };
    let note = if is_truncated { "\n[there is more, which is not shown]" } else { "" };
    let text = truncate(text, MAX_OUTPUT_BYTES);
    Ok(format!("status {status}\ncontent-type: {kind}\n\n{text}{note}").into())
}
