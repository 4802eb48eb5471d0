//! `http_fetch`.

use super::{parse_arguments, truncate};
use crate::dialogue::{Tool, ToolContext, ToolError, ToolOutput};
use bakeoff_llm::{HttpRequest, HttpResponse, Transport};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use url::Url;

/// Most bytes of a page that are shown.
const MOST_SHOWN: usize = 64 * 1024;

/// Stands for all hosts.
const ALL: &str = "*";

/// Which pages may be fetched, and how requests travel.
#[derive(Debug, Clone)]
pub struct FetchAccess {
    /// Carries the requests. It must not follow redirects; [`bakeoff_llm::Network`] does not.
    pub transport: Arc<dyn Transport>,
    /// Hosts such as `example.com`, with the usual ports, or `127.0.0.1:8080`; `*` is all of them.
    pub hosts: Vec<String>,
}

impl FetchAccess {
    /// Whether an address may be fetched.
    fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        // The port is absent when it is the scheme's own.
        let place = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        self.hosts.iter().any(|known| known == ALL || known.eq_ignore_ascii_case(&place))
    }
}

/// Fetches pages of chosen hosts. Nothing that is secret is sent along.
#[derive(Debug)]
pub struct HttpFetch {
    definition: bakeoff_core::Tool,
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

    /// The tool for some hosts.
    pub fn new(access: FetchAccess) -> HttpFetch {
        let hosts = match access.hosts.iter().any(|host| host == ALL) {
            true => "any host".to_owned(),
            false => access.hosts.join(", "),
        };
        let definition = bakeoff_core::Tool {
            name: HttpFetch::NAME.to_owned(),
            description: format!(
                "Fetches a text over HTTP from {hosts}, at most {} KiB of it. Redirects are not \
                 followed: the answer says where they lead.",
                MOST_SHOWN / 1024
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

    fn request(&self, arguments: Arguments) -> Result<HttpRequest, ToolError> {
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
        Ok(HttpRequest { method, url, headers, body: Bytes::from(body) })
    }
}

#[async_trait::async_trait]
impl Tool for HttpFetch {
    fn definition(&self) -> &bakeoff_core::Tool {
        &self.definition
    }

    async fn execute(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let request = self.request(parse_arguments(arguments)?)?;
        let url = request.url.clone();
        let work = async {
            let failed = |error: bakeoff_llm::TransportError| ToolError::Failed(error.to_string());
            let response = self.access.transport.send(request).await.map_err(failed)?;
            if response.status.is_redirection()
                && let Some(place) = header(&response.headers, LOCATION)
            {
                let place = url.join(place).map_or(place.to_owned(), |place| place.to_string());
                let status = response.status.as_u16();
                return Ok(format!("status {status}; not followed, it leads to {place}").into());
            }
            show(response).await
        };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Failed("cancelled".to_owned())),
            shown = work => shown,
        }
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The status, what kind of text it is, and the text as far as there is room.
async fn show(mut response: HttpResponse) -> Result<ToolOutput, ToolError> {
    let mut bytes = Vec::new();
    // One byte more than fits shows that there is more.
    while bytes.len() <= MOST_SHOWN {
        match response.body.next().await {
            Some(Ok(piece)) => bytes.extend_from_slice(&piece),
            Some(Err(error)) => return Err(ToolError::Failed(error.to_string())),
            None => break,
        }
    }
    let is_cut = bytes.len() > MOST_SHOWN;
    bytes.truncate(MOST_SHOWN);
    let kind = header(&response.headers, CONTENT_TYPE).unwrap_or("unknown");
    let status = response.status.as_u16();
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // The last character was cut in two.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => {
            return Err(ToolError::Failed(format!(
                "status {status}, but the body is no text (content-type: {kind})"
            )));
        }
    };
    let note = if is_cut { "\n[there is more, which is not shown]" } else { "" };
    let text = truncate(text, MOST_SHOWN);
    Ok(format!("status {status}\ncontent-type: {kind}\n\n{text}{note}").into())
}
