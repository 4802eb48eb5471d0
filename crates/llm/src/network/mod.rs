//! The real network.
//!
//! `reqwest` opens connections and sends HTTP/1.1 requests. HTTP/2 requests are sent on connections of our own
//! (`streams`): `reqwest` keeps one connection per origin and queues requests beyond the server's stream limit,
//! which it does not reveal.

mod body;
mod certificates;
mod connector;
mod failure;
mod http2;
mod proxy;
mod streams;

use crate::model::is_loopback;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError, TransportErrorKind};
use body::TimedBody;
pub(crate) use certificates::certificate_problem;
use certificates::replaced_certificates;
use connector::HandOverLayer;
use failure::{Destination, describe, lost, unusable_proxy};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use http::{HeaderMap, Request, StatusCode};
use http2::StreamError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use streams::{Route, StreamPermit, StreamPool};
use url::{Position, Url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const PRODUCT: &str = concat!("bakeoff/", env!("CARGO_PKG_VERSION"));

/// Maximum number of connections on which a request is tried that servers refuse without processing it.
const MAX_REFUSALS: u32 = 4;

/// Headers that HTTP/2 forbids, and `Host`, which a pseudo-header replaces.
const HTTP1_HEADERS: [HeaderName; 7] = [
    CONNECTION,
    HOST,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Transport that sends requests over the network.
#[derive(Debug, Default)]
pub struct Network {
    /// Certificates of trusted issuers; those of the operating system when empty.
    certificates: Vec<reqwest::Certificate>,
    /// Client for plain HTTP on this machine, without proxy and certificates.
    local: OnceLock<reqwest::Client>,
    /// Client for HTTP/1.1.
    http1: OnceLock<reqwest::Client>,
    /// Client that opens connections for [`StreamPool`].
    connector: OnceLock<reqwest::Client>,
    /// By scheme, host and port.
    origins: Mutex<HashMap<String, Arc<Origin>>>,
}

/// Scheme, host and port of remote servers.
#[derive(Debug)]
struct Origin {
    destination: Destination,
    /// Absent for plain HTTP, which is always HTTP/1.1.
    streams: Option<StreamPool>,
}

impl Network {
    /// Returns a transport that trusts the issuers of the given certificates, in PEM format, instead of those
    /// that the operating system trusts.
    ///
    /// # Errors
    ///
    /// When the text contains no valid certificate.
    pub fn with_certificates(pem: &[u8]) -> Result<Network, TransportError> {
        let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(setup_error)?;
        Ok(Network { certificates, ..Network::default() })
    }

    async fn send_remote(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let origin = self.origin(&request.url)?;
        let Some(streams) = &origin.streams else { return self.send_http1(&origin, request).await };
        let mut refusals = 0;
        loop {
            let mut permit = match streams.acquire().await? {
                Route::Stream(permit) => permit,
                Route::Http1 => return self.send_http1(&origin, request).await,
            };
            let head = http2_request(&request, &origin.destination)?;
            match permit.send(head, request.body.clone(), &request.sent).await {
                Ok(response) => return Ok(http2_response(response, permit, origin)),
                Err(StreamError::Unprocessed(_)) if refusals < MAX_REFUSALS => refusals += 1,
                Err(StreamError::Unprocessed(error) | StreamError::Lost(error)) => {
                    return Err(lost(error, &origin.destination));
                }
            }
        }
    }

    async fn send_http1(
        &self,
        origin: &Origin,
        request: HttpRequest,
    ) -> Result<HttpResponse, TransportError> {
        let client = get_client(&self.http1, || self.remote_client().http1_only())?;
        send_with(client, request, origin.destination.clone()).await
    }

    fn origin(&self, url: &Url) -> Result<Arc<Origin>, TransportError> {
        let name = &url[..Position::BeforePath];
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origins.get(name) {
            return Ok(Arc::clone(origin));
        }
        let mut root = url.clone();
        root.set_path("");
        root.set_query(None);
        root.set_fragment(None);
        let destination = proxy::destination(&root, &|name| std::env::var(name).ok())?;
        let streams = match url.scheme() {
            "https" => {
                let build = || self.remote_client().connector_layer(HandOverLayer);
                let connector = get_client(&self.connector, build)?.clone();
                Some(StreamPool::new(destination.clone(), connector))
            }
            _ => None,
        };
        let origin = Arc::new(Origin { destination, streams });
        origins.insert(name.to_owned(), Arc::clone(&origin));
        Ok(origin)
    }

    fn remote_client(&self) -> reqwest::ClientBuilder {
        let builder = client_builder();
        let certificates = match self.certificates.is_empty() {
            true => replaced_certificates(),
            false => self.certificates.clone(),
        };
        match certificates.is_empty() {
            true => builder,
            false => builder.tls_certs_only(certificates),
        }
    }
}

impl Transport for Network {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let is_local = request.url.scheme() == "http" && is_loopback(&request.url);
        async move {
            if !is_local {
                return self.send_remote(request).await;
            }
            let client =
                get_client(&self.local, || client_builder().no_proxy().tls_certs_only([]))?;
            let destination = Destination { url: request.url.clone(), proxy: None };
            send_with(client, request, destination).await
        }
        .boxed()
    }
}

/// Sends a request over HTTP/1.1.
async fn send_with(
    client: &reqwest::Client,
    request: HttpRequest,
    destination: Destination,
) -> Result<HttpResponse, TransportError> {
    let response = client
        .request(request.method, request.url)
        .headers(request.headers)
        .body(reqwest::Body::wrap(TimedBody::new(request.body, request.sent)))
        .send()
        .await
        .map_err(|error| describe(error, &destination))?;
    let (status, headers) = (response.status(), response.headers().clone());
    // Over plain HTTP, the proxy answers instead of the server.
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(unusable_proxy(&destination, status));
    }
    let body = response.bytes_stream().map_err(move |error| describe(error, &destination)).boxed();
    Ok(HttpResponse { status, headers, body })
}

/// Returns the head of an HTTP/2 request. It does not offer compression, which model responses are too small to
/// need.
fn http2_request(
    request: &HttpRequest,
    destination: &Destination,
) -> Result<Request<()>, TransportError> {
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = request.url[..Position::AfterQuery].parse().map_err(|error| {
        let message = format!("invalid URL for {destination}: {error}");
        TransportError::new(TransportErrorKind::Setup, message)
    })?;
    *head.headers_mut() = http2_headers(request);
    Ok(head)
}

fn http2_headers(request: &HttpRequest) -> HeaderMap {
    let mut headers = request.headers.clone();
    for name in &HTTP1_HEADERS {
        headers.remove(name);
    }
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(PRODUCT));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    if !request.body.is_empty() {
        headers.insert(CONTENT_LENGTH, request.body.len().into());
    }
    headers
}

fn http2_response(
    response: http::Response<h2::RecvStream>,
    permit: StreamPermit,
    origin: Arc<Origin>,
) -> HttpResponse {
    let (head, body) = response.into_parts();
    // The permit lives as long as the body.
    let body = stream::try_unfold((body, permit, origin), |(mut body, permit, origin)| async {
        let Some(chunk) = body.data().await else { return Ok(None) };
        let chunk = chunk.map_err(|error| lost(error, &origin.destination))?;
        permit.mark_received();
        // Fails only for a stream that has ended and needs no capacity.
        let _ = body.flow_control().release_capacity(chunk.len());
        Ok(Some((chunk, (body, permit, origin))))
    });
    HttpResponse { status: head.status, headers: head.headers, body: body.boxed() }
}

/// Returns a client, built on first use.
fn get_client(
    cell: &OnceLock<reqwest::Client>,
    builder: impl FnOnce() -> reqwest::ClientBuilder,
) -> Result<&reqwest::Client, TransportError> {
    if let Some(client) = cell.get() {
        return Ok(client);
    }
    // Fails when the process has a default crypto provider already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = builder().build().map_err(setup_error)?;
    Ok(cell.get_or_init(|| client))
}

fn client_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(PRODUCT)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
}

fn setup_error(error: reqwest::Error) -> TransportError {
    let message = match certificate_problem() {
        Some(problem) => problem,
        None => format!("cannot create HTTP client: {error}"),
    };
    TransportError::new(TransportErrorKind::Setup, message).with_source(error)
}
