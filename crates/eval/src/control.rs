//! The control socket of a run: another process of the same user changes the limits of its pools.
//!
//! The protocol is one JSON object per line: a [`TuneRequest`], answered by a [`TuneReply`]. The socket is in
//! a folder that only its user can enter, because run folders may be shared and their paths too long for
//! sockets.

use bakeoff_core::RunId;
use bakeoff_llm::Client;
use bakeoff_pace::{LimitTuning, Pool};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;

/// Maximum length of a request or a reply.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Time limit for one exchange.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of the folder's path. Paths of sockets are limited to about 100 bytes.
const MAX_FOLDER_BYTES: usize = 75;

/// Age from which a socket that nothing listens on is removed.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// A change of limits in a running run; absent parts stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneRequest {
    /// Name of the model whose pools change; all models when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Maximum number of requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Requests per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// Whether no further requests are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// The pools after a change, or an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneReply {
    /// The pools that changed.
    pub pools: Vec<TunedPool>,
    /// Why nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A pool after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedPool {
    /// Name of the model.
    pub model: String,
    /// Concurrency limit; absent if there is none.
    pub limit: Option<u32>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Whether no further requests are sent.
    pub paused: bool,
}

/// Reason why the limits of a run cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// No process executes the run.
    #[error("the run is not running")]
    NotRunning,
    /// Another user of the machine executes the run.
    #[error("the run belongs to another user")]
    OtherUser,
    /// The run rejected the change.
    #[error("{0}")]
    Rejected(String),
    /// The exchange with the run failed.
    #[error("cannot reach the run: {0}")]
    Exchange(#[from] io::Error),
}

/// Sends a change to the process that executes a run. `socket` is the path in `run.json`.
///
/// # Errors
///
/// When no process executes the run, or it rejects the change.
pub fn tune(socket: &Path, request: &TuneRequest) -> Result<TuneReply, TuneError> {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let mut stream = match std::os::unix::net::UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => {
            return Err(TuneError::NotRunning);
        }
        Err(error) if error.kind() == PermissionDenied => return Err(TuneError::OtherUser),
        Err(error) => return Err(error.into()),
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = serde_json::to_string(request).map_err(io::Error::from)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    let reply: TuneReply = serde_json::from_str(&line).map_err(io::Error::from)?;
    match reply.error {
        Some(reason) => Err(TuneError::Rejected(reason)),
        None => Ok(reply),
    }
}

/// Returns the path of a run's socket, and creates its folder.
///
/// # Errors
///
/// When the folder cannot be created, or others can access it.
pub(crate) fn socket_path(run: &RunId) -> io::Result<PathBuf> {
    let uid = Uid::effective();
    let is_short = |path: &PathBuf| path.as_os_str().len() <= MAX_FOLDER_BYTES;
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute()).map(|path| path.join("bakeoff"));
    let temporary = std::env::temp_dir().join(format!("bakeoff-{uid}"));
    let folder = match runtime.filter(is_short) {
        Some(folder) if create_private_folder(&folder, uid).is_ok() => folder,
        _ => {
            create_private_folder(&temporary, uid)?;
            temporary
        }
    };
    let name = blake3::hash(run.as_str().as_bytes()).to_hex();
    Ok(folder.join(format!("{}.sock", &name[..16])))
}

/// Creates a folder that only its owner can access. An existing one must be of that kind.
fn create_private_folder(path: &Path, uid: Uid) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Not through a link, which may belong to another user.
    let metadata = fs::symlink_metadata(path)?;
    let is_private =
        metadata.is_dir() && metadata.uid() == uid.as_raw() && metadata.mode() & 0o077 == 0;
    match is_private {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} is accessible to others", path.display()))),
    }
}

/// Removes the sockets of killed runs that are at least this old.
fn remove_stale_sockets(folder: &Path, min_age: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_old_socket = fs::symlink_metadata(&path).is_ok_and(|metadata| {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            metadata.file_type().is_socket() && age.is_some_and(|age| age >= min_age)
        });
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_old_socket && std::os::unix::net::UnixStream::connect(&path).is_err_and(is_refused) {
            // Another run may have removed it at the same time.
            let _ = fs::remove_file(&path);
        }
    }
}

/// The open socket of a run. Dropping it removes the socket.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    server: AbortHandle,
}

impl ControlSocket {
    /// Opens the socket and serves changes to the pools of the client.
    pub(crate) fn open(path: PathBuf, client: &Arc<Client>) -> io::Result<ControlSocket> {
        // An earlier process of this run may have left its socket. The folder is private, so it is ours.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(folder) = path.parent() {
            remove_stale_sockets(folder, STALE_AFTER);
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let server = tokio::spawn(serve(listener, Arc::downgrade(client)));
        Ok(ControlSocket { path, server: server.abort_handle() })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.server.abort();
        // The folder may have been removed; the next run replaces a socket that stays.
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, client: Weak<Client>) {
    while let Ok((stream, _)) = listener.accept().await {
        // A client that fails or is too slow only loses its reply.
        let _ = tokio::time::timeout(TIMEOUT, answer(stream, &client)).await;
    }
}

async fn answer(mut stream: UnixStream, client: &Weak<Client>) -> io::Result<()> {
    let is_own = stream.peer_cred()?.uid() == Uid::effective().as_raw();
    let reply = if is_own {
        let (read, _) = stream.split();
        let mut line = Vec::new();
        let mut reader = tokio::io::BufReader::new(read.take(MAX_LINE_BYTES));
        reader.read_until(b'\n', &mut line).await?;
        let pools = client.upgrade().map(|client| client.pools()).unwrap_or_default();
        apply(&line, &pools)
    } else {
        rejection("the run belongs to another user")
    };
    let mut line = serde_json::to_string(&reply).map_err(io::Error::from)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).await
}

fn rejection(reason: impl Into<String>) -> TuneReply {
    TuneReply { pools: Vec::new(), error: Some(reason.into()) }
}

/// Applies a request to the pools of its model.
fn apply(line: &[u8], pools: &[Pool]) -> TuneReply {
    let request: TuneRequest = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return rejection(format!("invalid request: {error}")),
    };
    let TuneRequest { model, max_connections, rpm, paused } = request;
    if max_connections == Some(0) || rpm == Some(0) {
        return rejection("a limit must be at least 1; pause the run instead");
    }
    let is_selected = |pool: &&Pool| model.as_deref().is_none_or(|model| pool.model() == model);
    let selected: Vec<&Pool> = pools.iter().filter(is_selected).collect();
    if selected.is_empty() {
        let names: Vec<&str> = pools.iter().map(Pool::model).collect();
        return rejection(match &model {
            Some(model) => {
                format!("no calls to `{model}` in this run; its models: {}", names.join(", "))
            }
            None => "the run has made no model call yet".to_owned(),
        });
    }
    let tuned = selected.into_iter().map(|pool| {
        pool.tune(LimitTuning { max_connections, rpm, paused });
        let snapshot = pool.snapshot();
        TunedPool {
            model: pool.model().to_owned(),
            limit: (snapshot.limit < u32::MAX).then_some(snapshot.limit),
            in_flight: snapshot.in_flight,
            paused: snapshot.is_paused,
        }
    });
    TuneReply { pools: tuned.collect(), error: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_pace::Limits;

    #[test]
    fn request_changes_the_pools_of_its_model() {
        let pools = ["a", "b"].map(|model| Pool::new(model, Limits::fixed(10)).unwrap());
        let reply = apply(br#"{"model": "a", "max_connections": 3}"#, &pools);
        let pool = TunedPool { model: "a".to_owned(), limit: Some(3), ..TunedPool::default() };
        assert_eq!(reply, TuneReply { pools: vec![pool], error: None });
        assert_eq!((pools[0].limit(), pools[1].limit()), (3, 10));
        assert_eq!(apply(br#"{"paused": true}"#, &pools).pools.len(), 2);
        assert_eq!((pools[0].limit(), pools[1].limit()), (0, 0));
        apply(br#"{"paused": false}"#, &pools);
        assert_eq!((pools[0].limit(), pools[1].limit()), (3, 10));
    }

    #[test]
    fn invalid_requests_change_nothing() {
        let pools = [Pool::new("a", Limits::fixed(10)).unwrap()];
        let table = [
            ("", "invalid request"),
            ("{", "invalid request"),
            ("\u{0}", "invalid request"),
            (r#"{"limit": 3}"#, "unknown field"),
            (r#"{"rpm": -3}"#, "invalid request"),
            (r#"{"max_connections": 0}"#, "at least 1"),
            (r#"{"model": "c", "rpm": 3}"#, "no calls to `c` in this run; its models: a"),
        ];
        for (line, expected) in table {
            let error = apply(line.as_bytes(), &pools).error.unwrap();
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert!(pools[0].take_changes().is_empty());
        assert!(apply(b"{}", &[]).error.is_some());
        assert!(apply(b"\xff\xfe", &pools).error.is_some());
    }

    #[test]
    fn only_old_sockets_without_a_listener_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let bind = |name: &str| std::os::unix::net::UnixListener::bind(path(name)).unwrap();
        let _listening = bind("listening.sock");
        drop(bind("dead.sock"));
        fs::write(path("other"), "").unwrap();
        let is_there = |name: &str| path(name).exists();
        remove_stale_sockets(folder.path(), STALE_AFTER);
        assert!(is_there("dead.sock"), "it is new");
        remove_stale_sockets(folder.path(), Duration::ZERO);
        assert!(is_there("listening.sock") && is_there("other"));
        assert!(!is_there("dead.sock"));
    }

    #[test]
    fn folder_of_sockets_must_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let (uid, path) = (Uid::effective(), folder.path().join("sockets"));
        create_private_folder(&path, uid).unwrap();
        create_private_folder(&path, uid).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(create_private_folder(&path, uid).is_err());
        let link = folder.path().join("link");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(create_private_folder(&link, uid).is_err());
        assert!(create_private_folder(&path, Uid::from_raw(uid.as_raw() + 1)).is_err());
    }
}
