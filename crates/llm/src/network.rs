//! The real network, over several `reqwest` clients.
//!
//! hyper keeps one HTTP/2 connection per origin and silently queues requests beyond the server's stream
//! limit, which is 100 at the big providers. Requests are therefore spread over as many clients as needed,
//! and a request counts as in flight until its body is dropped.

use crate::model::is_loopback;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError, TransportErrorKind};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Concurrent streams that every big provider allows on one connection.
const STREAMS_PER_CLIENT: usize = 100;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Transport that sends requests over the network.
#[derive(Debug, Default)]
pub struct Network {
    /// Clients for plain HTTP on this machine, without proxy and certificates.
    local: Shards,
    remote: Shards,
}

impl Transport for Network {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let is_local = request.url.scheme() == "http" && is_loopback(&request.url);
        let permit = match is_local {
            true => self.local.acquire(|| build_client(true)),
            false => self.remote.acquire(|| build_client(false)),
        };
        async move {
            let permit = permit?;
            let response = permit
                .client
                .request(request.method, request.url.clone())
                .headers(request.headers)
                .body(request.body)
                .send()
                .await
                .map_err(|error| describe(error, &request.url))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let url = request.url;
            let body = response.bytes_stream().map_err(move |error| describe(error, &url));
            // The closure owns the permit, so that it lives as long as the body.
            let body = body
                .inspect(move |_| {
                    let _ = &permit;
                })
                .boxed();
            Ok(HttpResponse { status, headers, body })
        }
        .boxed()
    }
}

/// HTTP clients; earlier ones are filled first.
#[derive(Debug, Default)]
struct Shards {
    shards: Mutex<Vec<Arc<Shard>>>,
}

#[derive(Debug)]
struct Shard {
    client: reqwest::Client,
    in_flight: AtomicUsize,
}

/// Right to send one request on a shard; returned on drop.
#[derive(Debug)]
struct ShardPermit {
    client: reqwest::Client,
    shard: Arc<Shard>,
}

impl Drop for ShardPermit {
    fn drop(&mut self) {
        self.shard.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shards {
    fn acquire(
        &self,
        build: impl FnOnce() -> Result<reqwest::Client, TransportError>,
    ) -> Result<ShardPermit, TransportError> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let has_capacity =
            |shard: &&Arc<Shard>| shard.in_flight.load(Ordering::Relaxed) < STREAMS_PER_CLIENT;
        let shard = match shards.iter().find(has_capacity) {
            Some(shard) => Arc::clone(shard),
            None => {
                let shard = Arc::new(Shard { client: build()?, in_flight: AtomicUsize::new(0) });
                shards.push(Arc::clone(&shard));
                shard
            }
        };
        shard.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(ShardPermit { client: shard.client.clone(), shard })
    }
}

fn build_client(is_local: bool) -> Result<reqwest::Client, TransportError> {
    // Fails when the process has a default crypto provider already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("bakeoff/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    if is_local {
        builder = builder.no_proxy().tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        let message = format!("cannot create HTTP client: {error}");
        TransportError::new(TransportErrorKind::Setup, message).with_source(error)
    })
}

/// Describes an error by host and innermost cause. The URL is left out, because its query may contain a
/// secret.
fn describe(error: reqwest::Error, url: &Url) -> TransportError {
    let host = url.host_str().unwrap_or("the server");
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let kind = error_kind(&error);
    let problem = match kind {
        TransportErrorKind::Timeout => "timed out waiting for",
        TransportErrorKind::ConnectionLost => "lost connection to",
        TransportErrorKind::HostNotFound => "cannot find the host",
        TransportErrorKind::Proxy => "cannot use the proxy for",
        TransportErrorKind::Setup
        | TransportErrorKind::Connect
        | TransportErrorKind::Certificate => "cannot connect to",
    };
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = if error.source().is_some() { format!(": {cause}") } else { String::new() };
    TransportError::new(kind, format!("{problem} {host}{port}{cause}"))
        .with_source(error.without_url())
}

/// Whether an error comes from the TLS library. It may be inside I/O errors, which hide it from `source`.
fn is_tls_error(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls_error(inner))
}

fn error_kind(error: &reqwest::Error) -> TransportErrorKind {
    if !error.is_connect() {
        return match error.is_timeout() {
            true => TransportErrorKind::Timeout,
            false => TransportErrorKind::ConnectionLost,
        };
    }
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if is_tls_error(error) {
            return TransportErrorKind::Certificate;
        }
        // The HTTP library has no types for these.
        match error.to_string().as_str() {
            "dns error" => return TransportErrorKind::HostNotFound,
            "tunnel error: unsuccessful" | "proxy authorization required" => {
                return TransportErrorKind::Proxy;
            }
            _ => cause = error.source(),
        }
    }
    TransportErrorKind::Connect
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_client_adds_another_and_dropped_permits_free_capacity() {
        let shards = Shards::default();
        let acquire = || shards.acquire(|| build_client(true)).unwrap();
        let mut permits: Vec<ShardPermit> = (0..STREAMS_PER_CLIENT).map(|_| acquire()).collect();
        assert_eq!(shards.shards.lock().unwrap().len(), 1);
        permits.push(acquire());
        assert_eq!(shards.shards.lock().unwrap().len(), 2);
        permits.remove(0);
        let next = acquire();
        assert!(Arc::ptr_eq(&next.shard, &shards.shards.lock().unwrap()[0]));
    }
}
