//! The real network, over several `reqwest` clients.
//!
//! hyper keeps one HTTP/2 connection per origin and silently queues beyond the server's limit of
//! streams, 100 at the big providers. So requests are spread over as many clients as needed, and a
//! request counts as in flight until its body is dropped.

use crate::model::is_loopback;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Streams that every big provider allows on one connection.
const STREAMS_PER_CLIENT: usize = 100;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests over the network.
#[derive(Debug, Default)]
pub struct Network {
    /// For plain HTTP on this machine: no proxy, no certificates to load.
    local: Shards,
    remote: Shards,
}

impl Transport for Network {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let local = request.url.scheme() == "http" && is_loopback(&request.url);
        let shard =
            if local { self.local.pick(|| build(true)) } else { self.remote.pick(|| build(false)) };
        async move {
            let shard = shard?;
            let response = shard
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
            // The guard lives as long as the body.
            let body = body
                .inspect(move |_| {
                    let _ = &shard;
                })
                .boxed();
            Ok(HttpResponse { status, headers, body })
        }
        .boxed()
    }
}

/// Clients, the first of which are filled first.
#[derive(Debug, Default)]
struct Shards {
    shards: Mutex<Vec<Arc<Shard>>>,
}

#[derive(Debug)]
struct Shard {
    client: reqwest::Client,
    in_flight: AtomicUsize,
}

/// One request's place on a client; given up on drop.
#[derive(Debug)]
struct Place {
    client: reqwest::Client,
    shard: Arc<Shard>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shard.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shards {
    fn pick(
        &self,
        build: impl FnOnce() -> Result<reqwest::Client, TransportError>,
    ) -> Result<Place, TransportError> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let free =
            |shard: &&Arc<Shard>| shard.in_flight.load(Ordering::Relaxed) < STREAMS_PER_CLIENT;
        let shard = match shards.iter().find(free) {
            Some(shard) => Arc::clone(shard),
            None => {
                let shard = Arc::new(Shard { client: build()?, in_flight: AtomicUsize::new(0) });
                shards.push(Arc::clone(&shard));
                shard
            }
        };
        shard.in_flight.fetch_add(1, Ordering::Relaxed);
        Ok(Place { client: shard.client.clone(), shard })
    }
}

fn build(local: bool) -> Result<reqwest::Client, TransportError> {
    // Fails when somebody has chosen a provider already, and then that one is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("bakeoff/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    if local {
        builder = builder.no_proxy().tls_certs_only([]);
    }
    builder.build().map_err(|error| TransportError(format!("cannot set up HTTP: {error}")))
}

/// Says which host and the innermost reason; a whole URL could hold a secret in its query.
fn describe(error: reqwest::Error, url: &Url) -> TransportError {
    let host = url.host_str().unwrap_or("the server");
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let what = if error.is_connect() {
        "cannot connect to"
    } else if error.is_timeout() {
        "no answer in time from"
    } else {
        "lost the connection to"
    };
    let mut reason: &dyn std::error::Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let reason = if error.source().is_some() { format!(": {reason}") } else { String::new() };
    TransportError(format!("{what} {host}{port}{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_takes_a_hundred_and_places_come_back() {
        let shards = Shards::default();
        let pick = || shards.pick(|| build(true)).unwrap();
        let mut places: Vec<Place> = (0..STREAMS_PER_CLIENT).map(|_| pick()).collect();
        assert_eq!(shards.shards.lock().unwrap().len(), 1);
        places.push(pick());
        assert_eq!(shards.shards.lock().unwrap().len(), 2);
        places.remove(0);
        let next = pick();
        assert!(Arc::ptr_eq(&next.shard, &shards.shards.lock().unwrap()[0]));
    }
}
