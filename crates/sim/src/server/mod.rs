//! HTTP server in front of the engine, in the formats of OpenAI (Chat Completions) and Anthropic
//! (Messages), plain or streamed.
//!
//! Only this module reads a clock. API keys and version headers are ignored.

mod anthropic;
mod body;
mod call;
mod completion;
mod connection;
mod fault;
mod openai;
mod read;
mod wire;

use crate::{BatchSlot, Engine};
use anthropic::Anthropic;
use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use connection::{ResetSwitch, SimListener};
use openai::OpenAi;
use serde_json::json;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::time::Instant;
use wire::ApiFormat;

/// Length of the queue of pending connections. Load tests open thousands at once; the operating
/// system reduces the value to its own maximum.
const BACKLOG: u32 = 4096;

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    app: ServerState,
    stop: watch::Sender<()>,
}

/// Shared state of the handlers.
#[derive(Debug, Clone)]
struct ServerState {
    engine: Arc<Engine>,
    start: Instant,
    /// Number of requests so far, for request ids.
    requests: Arc<AtomicU64>,
    /// Closed when the server stops, which ends stalled requests.
    stop: watch::Receiver<()>,
}

impl Server {
    /// Binds the address and starts the engine's time; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound.
    pub async fn bind(engine: Arc<Engine>, addr: SocketAddr) -> io::Result<Server> {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As in the standard library, so that a restarted server can bind its port at once. On other
        // systems the option would let two servers share a port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(addr)?;
        let listener = socket.listen(BACKLOG)?;
        let local_addr = listener.local_addr()?;
        engine.set_epoch(since_1970());
        let (sender, stop) = watch::channel(());
        let app = ServerState { engine, start: Instant::now(), requests: Arc::default(), stop };
        Ok(Server { listener, local_addr, app, stop: sender })
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` completes and the requests in flight are answered.
    ///
    /// # Errors
    ///
    /// Fails if the listening socket fails.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let set_up = self.app.engine.connect_time();
        let router = Router::new()
            .route("/v1/chat/completions", post(call::handle::<OpenAi>))
            .route("/chat/completions", post(call::handle::<OpenAi>))
            .route("/v1/messages", post(call::handle::<Anthropic>))
            .route("/v1/models", get(models))
            .route("/stats", get(stats))
            .fallback(unknown_path)
            .method_not_allowed_fallback(wrong_method)
            .with_state(self.app);
        let service = router.into_make_service_with_connect_info::<ResetSwitch>();
        let stop = self.stop;
        let shutdown = async move {
            shutdown.await;
            drop(stop);
        };
        let listener = SimListener::new(self.listener, set_up);
        axum::serve(listener, service).with_graceful_shutdown(shutdown).await
    }
}

impl ServerState {
    /// Returns the time since the engine's start.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time until a batched request ends.
    fn time_left(&self, slot: BatchSlot) -> Option<Duration> {
        self.engine.time_left(slot, self.now())
    }

    /// Waits until the server stops.
    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        while stop.changed().await.is_ok() {}
    }
}

/// Returns the time since 1970; zero if the system clock is set before 1970.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Lists the models, with the fields of both providers.
async fn models(State(app): State<ServerState>) -> Response {
    let names = app.engine.model_names();
    let models: Vec<_> = names
        .iter()
        .map(|name| {
            json!({
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": "bakeoff-sim",
                "type": "model",
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
            })
        })
        .collect();
    let list = json!({
        "object": "list",
        "data": models,
        "has_more": false,
        "first_id": names.first(),
        "last_id": names.last(),
    });
    body::json(StatusCode::OK, &list)
}

async fn stats(State(app): State<ServerState>) -> Response {
    body::json(StatusCode::OK, &json!(app.engine.stats_at(app.now())))
}

async fn unknown_path(method: Method, uri: Uri) -> Response {
    let message = format!("Invalid URL ({method} {})", uri.path());
    body::json(StatusCode::NOT_FOUND, &OpenAi::error(404, "unknown_url", &message, ""))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("Not allowed to {method} on {}", uri.path());
    let error = OpenAi::error(405, "method_not_supported", &message, "");
    body::json(StatusCode::METHOD_NOT_ALLOWED, &error)
}

#[cfg(test)]
mod tests;
