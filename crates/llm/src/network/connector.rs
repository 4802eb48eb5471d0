//! Connections to an origin, opened by `reqwest` and handed over before a request is sent on them.
//!
//! `reqwest` resolves names, uses proxies and performs the TLS handshake, but it hides the number of streams
//! that an HTTP/2 server allows. A layer around its connector therefore ends each attempt with an error that
//! carries the connection.

use super::failure::{Destination, describe};
use crate::transport::{TransportError, TransportErrorKind};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_layer::Layer;
use tower_service::Service;

/// An open connection, with TLS.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Opens a connection. Returns `None` if the server speaks HTTP/1.1.
pub(super) async fn open(
    client: &reqwest::Client,
    destination: &Destination,
) -> Result<Option<Box<dyn Io>>, TransportError> {
    let Err(error) = client.get(destination.url.clone()).send().await else {
        let message = "the connector returned a connection instead of handing it over";
        return Err(TransportError::new(TransportErrorKind::Setup, message));
    };
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(OpenConnection(io)) = error.downcast_ref() {
            return Ok(io.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        cause = error.source();
    }
    Err(describe(error, destination))
}

/// Layer for connectors; see [`HandOver`].
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOverLayer;

impl<S> Layer<S> for HandOverLayer {
    type Service = HandOver<S>;

    fn layer(&self, connector: S) -> HandOver<S> {
        HandOver { connector }
    }
}

/// Connector that returns an [`OpenConnection`] as error for each connection.
#[derive(Debug, Clone)]
pub(super) struct HandOver<S> {
    connector: S,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl<S, Destination> Service<Destination> for HandOver<S>
where
    S: Service<Destination, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Connection + Send + 'static,
    TokioIo<S::Response>: Io,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, destination: Destination) -> Self::Future {
        let connecting = self.connector.call(destination);
        async move {
            let connection = connecting.await?;
            let is_http2 = connection.connected().is_negotiated_h2();
            let io = is_http2.then(|| Box::new(TokioIo::new(connection)) as Box<dyn Io>);
            Err(Box::new(OpenConnection(Mutex::new(io))) as BoxError)
        }
        .boxed()
    }
}

/// Error that carries an HTTP/2 connection, or nothing if the server speaks HTTP/1.1.
struct OpenConnection(Mutex<Option<Box<dyn Io>>>);

impl Error for OpenConnection {}

impl fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenConnection").finish()
    }
}

impl fmt::Display for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection handed over")
    }
}
