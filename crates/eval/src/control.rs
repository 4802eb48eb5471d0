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
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum length of a request or a reply.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Time limit of the run for one exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that [`tune`] waits for the reply; longer than the run needs for others before it.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of exchanges at the same time; others wait until one ends.
const MAX_EXCHANGES: usize = 32;

/// Pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum length of the folder's path. Paths of sockets are limited to about 100 bytes.
const MAX_FOLDER_BYTES: usize = 75;

/// Folder for temporary files with a short path, which every Unix system has.
const SHORT_TEMPORARY_FOLDER: &str = "/tmp";

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
    /// No process listens on the socket.
    #[error("no process listens on the control socket of the run")]
    NoSocket,
    /// The process that executes the run is busy or stopped.
    #[error("the run did not reply within {} s", REPLY_TIMEOUT.as_secs())]
    NoReply,
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
/// When no process listens on the socket, or it rejects the change.
pub fn tune(socket: &Path, request: &TuneRequest) -> Result<TuneReply, TuneError> {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let mut stream = match std::os::unix::net::UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => {
            return Err(TuneError::NoSocket);
        }
        Err(error) if error.kind() == PermissionDenied => return Err(TuneError::OtherUser),
        Err(error) => return Err(error.into()),
    };
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut line = serde_json::to_string(request).map_err(io::Error::from)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(exchange_error)?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line).map_err(exchange_error)?;
    let reply: TuneReply = serde_json::from_str(&line).map_err(io::Error::from)?;
    match reply.error {
        Some(reason) => Err(TuneError::Rejected(reason)),
        None => Ok(reply),
    }
}

fn exchange_error(error: io::Error) -> TuneError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => TuneError::NoReply,
        _ => TuneError::Exchange(error),
    }
}

/// Returns the folders in which sockets may be created, best first. The last one has a new name, because another
/// user can create the folders with known names.
fn folders(runtime: Option<&OsStr>, temporary: &Path, uid: Uid) -> Vec<PathBuf> {
    // `TMPDIR` and `XDG_RUNTIME_DIR` may be empty.
    let absolute = |path: &Path| path.is_absolute().then(|| path.to_owned());
    let short = Path::new(SHORT_TEMPORARY_FOLDER);
    let name = format!("bakeoff-{uid}");
    let folders = [
        runtime.map(Path::new).and_then(absolute).map(|path| path.join("bakeoff")),
        absolute(temporary).map(|path| path.join(&name)),
        Some(short.join(&name)),
        Some(short.join(format!("{name}-{:08x}", rand::random::<u32>()))),
    ];
    let is_short = |path: &PathBuf| path.as_os_str().len() <= MAX_FOLDER_BYTES;
    folders.into_iter().flatten().filter(is_short).collect()
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
    /// Absent until the run accepts changes; connections wait until then.
    server: Option<AbortHandle>,
}

impl ControlSocket {
    /// Opens the socket of a run, in the first folder where that is possible. Returns the listener for
    /// [`ControlSocket::serve`].
    ///
    /// # Errors
    ///
    /// When no folder is private, or the socket cannot be created.
    pub(crate) fn open(run: &RunId) -> io::Result<(ControlSocket, UnixListener)> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR");
        let uid = Uid::effective();
        ControlSocket::open_in(folders(runtime.as_deref(), &std::env::temp_dir(), uid), uid, run)
    }

    fn open_in(
        folders: Vec<PathBuf>,
        uid: Uid,
        run: &RunId,
    ) -> io::Result<(ControlSocket, UnixListener)> {
        let name = blake3::hash(run.as_str().as_bytes()).to_hex();
        let mut problem = io::Error::other("no folder for its control socket");
        for folder in folders {
            let path = folder.join(format!("{}.sock", &name[..16]));
            let opened = create_private_folder(&folder, uid).and_then(|()| listen(&path));
            match opened {
                Ok(listener) => return Ok((ControlSocket { path, server: None }, listener)),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Serves changes to the pools of the client.
    pub(crate) fn serve(&mut self, listener: UnixListener, client: &Arc<Client>) {
        let server = tokio::spawn(serve(listener, Arc::downgrade(client)));
        self.server = Some(server.abort_handle());
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
        // The folder may have been removed; the next run replaces a socket that stays.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates a socket that only its owner can open.
fn listen(path: &Path) -> io::Result<UnixListener> {
    // An earlier process of this run may have left its socket. The folder is private, so it is ours.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        remove_stale_sockets(folder, STALE_AFTER);
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(listener: UnixListener, client: Weak<Client>) {
    let mut exchanges = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if exchanges.len() < MAX_EXCHANGES => match accepted {
                Ok((stream, _)) => {
                    let client = Weak::clone(&client);
                    exchanges.spawn(async move {
                        // A client that fails or is too slow only loses its reply.
                        let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, answer(stream, &client)).await;
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = exchanges.join_next() => {}
        }
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
    use bakeoff_llm::ClientConfig;
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

    #[test]
    fn folders_of_sockets_are_absolute_and_short() {
        let uid = Uid::from_raw(7);
        let long = format!("/{}", "x".repeat(100));
        let text = |runtime: Option<&str>, temporary: &str| {
            let found = folders(runtime.map(OsStr::new), Path::new(temporary), uid);
            let texts = found.iter().map(|path| path.to_str().unwrap().to_owned());
            texts.collect::<Vec<_>>()
        };
        let table: [(Option<&str>, &str, &[&str]); 4] = [
            (Some("/run/user/7"), "/var/tmp", &["/run/user/7/bakeoff", "/var/tmp/bakeoff-7"]),
            (None, &long, &[]),
            (Some(&long), "/tmp", &["/tmp/bakeoff-7"]),
            (Some(""), "", &[]),
        ];
        for (runtime, temporary, expected) in table {
            let found = text(runtime, temporary);
            let (last, first) = found.split_last().unwrap();
            assert_eq!(first[..first.len() - 1], *expected, "{runtime:?} {temporary}");
            assert_eq!(first[first.len() - 1], "/tmp/bakeoff-7");
            assert!(last.starts_with("/tmp/bakeoff-7-") && *last != text(None, "").pop().unwrap());
        }
    }

    #[tokio::test]
    async fn socket_is_opened_in_the_first_usable_folder() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        // Like the folder of another user: not private.
        fs::create_dir(path("other")).unwrap();
        fs::set_permissions(path("other"), fs::Permissions::from_mode(0o755)).unwrap();
        let folders = vec![path("missing/folder"), path("other"), path("own"), path("unused")];
        let (uid, run) = (Uid::effective(), RunId::from("run"));
        let (socket, _listener) = ControlSocket::open_in(folders, uid, &run).unwrap();
        assert_eq!(socket.path().parent().unwrap(), path("own"));
        assert_eq!(fs::metadata(socket.path()).unwrap().mode() & 0o777, 0o600);
        assert!(!path("unused").exists());
        let path = socket.path().to_owned();
        drop(socket);
        assert!(!path.exists());
        let missing = vec![parent.path().join("missing/folder")];
        let error = ControlSocket::open_in(missing, uid, &run).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn idle_clients_do_not_delay_others() {
        let folder = tempfile::tempdir().unwrap();
        let (uid, run) = (Uid::effective(), RunId::from("run"));
        let folders = vec![folder.path().join("sockets")];
        let (mut socket, listener) = ControlSocket::open_in(folders, uid, &run).unwrap();
        socket.serve(listener, &Arc::new(Client::new(ClientConfig::default())));
        let path = socket.path().to_owned();
        let connect = || std::os::unix::net::UnixStream::connect(&path).unwrap();
        let _idle: Vec<_> = (0..MAX_EXCHANGES - 1).map(|_| connect()).collect();
        let request = TuneRequest { paused: Some(true), ..TuneRequest::default() };
        for _ in 0..3 {
            let (path, request) = (path.clone(), request.clone());
            let reply = tokio::task::spawn_blocking(move || tune(&path, &request)).await.unwrap();
            // The run has no pools.
            assert!(matches!(reply, Err(TuneError::Rejected(_))), "{reply:?}");
        }
    }
}
