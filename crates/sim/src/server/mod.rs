//! The engine behind real HTTP, in the formats of OpenAI (Chat Completions) and Anthropic
//! (Messages), plain or streamed.
//!
//! This is the only place that looks at a clock. Keys and versions in headers are not looked at.

mod anthropic;
mod body;
mod call;
mod fault;
mod openai;
mod read;
mod wire;

use crate::Engine;
use anthropic::Anthropic;
use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use openai::OpenAi;
use serde_json::json;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;
use wire::Wire;

/// Connections that may wait to be accepted. Load tests open thousands at once; the operating
/// system lowers the figure to what it allows.
const BACKLOG: u32 = 4096;

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    app: App,
}

/// What every handler knows.
#[derive(Debug, Clone)]
struct App {
    engine: Arc<Engine>,
    start: Instant,
    /// Numbers requests, for their ids.
    requests: Arc<AtomicU64>,
}

impl Server {
    /// Starts to listen; port 0 takes any free one. The engine's time starts now.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on.
    pub async fn bind(engine: Arc<Engine>, addr: SocketAddr) -> io::Result<Server> {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As the standard library does: a restarted server gets its port back at once. Elsewhere
        // the option would let two servers share one port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(addr)?;
        let listener = socket.listen(BACKLOG)?;
        let local_addr = listener.local_addr()?;
        engine.set_epoch(since_1970());
        let app = App { engine, start: Instant::now(), requests: Arc::default() };
        Ok(Server { listener, local_addr, app })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` is ready, and then until the requests in flight are answered.
    ///
    /// # Errors
    ///
    /// When the listening socket breaks.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let router = Router::new()
            .route("/v1/chat/completions", post(call::answer::<OpenAi>))
            .route("/chat/completions", post(call::answer::<OpenAi>))
            .route("/v1/messages", post(call::answer::<Anthropic>))
            .route("/v1/models", get(models))
            .route("/stats", get(stats))
            .fallback(nowhere)
            .method_not_allowed_fallback(wrong_method)
            .with_state(self.app);
        let listener = self.listener.tap_io(|stream| {
            // Small pieces must not wait for each other; a socket that cannot do it works as well.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await
    }
}

impl App {
    /// Time since the engine's start.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The time of the day, as a clock that was set before 1970 cannot tell it.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The models, with the fields that either provider's clients want.
async fn models(State(app): State<App>) -> Response {
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

async fn stats(State(app): State<App>) -> Response {
    body::json(StatusCode::OK, &json!(app.engine.stats_at(app.now())))
}

async fn nowhere(method: Method, uri: Uri) -> Response {
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
