//! Connections with a slow set-up, which handlers can reset.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// Listener of the server.
#[derive(Debug)]
pub(super) struct SimListener {
    inner: TcpListener,
    /// Time from the acceptance of a connection until its first request is read.
    set_up: Duration,
}

impl SimListener {
    pub(super) fn new(inner: TcpListener, set_up: Duration) -> SimListener {
        SimListener { inner, set_up }
    }
}

impl Listener for SimListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.inner).await;
        // Small writes must not be delayed. A failure only costs latency, so it is ignored.
        let _ = stream.set_nodelay(true);
        let set_up = (!self.set_up.is_zero()).then(|| Box::pin(sleep(self.set_up)));
        (Connection { stream, set_up, reset: ResetSwitch::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// Switch of a handler that resets its connection.
#[derive(Debug, Clone, Default)]
pub(super) struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    /// Resets the connection at its next write, so that the response of the handler is not sent.
    pub(super) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Connected<IncomingStream<'_, SimListener>> for ResetSwitch {
    fn connect_info(stream: IncomingStream<'_, SimListener>) -> ResetSwitch {
        stream.io().reset.clone()
    }
}

/// Connection to a client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// Rest of the set-up time.
    set_up: Option<Pin<Box<Sleep>>>,
    reset: ResetSwitch,
}

impl Connection {
    /// Fails if a handler has reset the connection. The server drops the connection after the error; with
    /// a linger time of zero, the operating system then sends a reset.
    fn check(&self) -> io::Result<()> {
        if self.reset.is_reset() {
            self.stream.set_zero_linger()?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(set_up) = &mut self.set_up {
            if set_up.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.set_up = None;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
