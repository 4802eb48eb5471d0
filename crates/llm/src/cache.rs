//! Answers that have been paid for already.
//!
//! One SQLite file for all runs, safe for several processes. What is stored belongs to a scope: a
//! run's own id, or one that runs share. Reads are short and happen where the call is; writes go to
//! a thread of their own, many to a transaction.

use bakeoff_core::Response;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Written by this version; a file of a newer one is left alone.
const SCHEMA: i64 = 1;

/// Entries that nobody will resume any more.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Answers waiting for the writer. When it is full, the calls that want to store something wait.
const QUEUE: usize = 1024;

/// Most answers in one transaction.
const BATCH: usize = 256;

/// How long to wait for another process that is writing.
const BUSY: Duration = Duration::from_secs(10);

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder cannot be made.
    #[error("cannot create the folder of {}: {source}", path.display())]
    Folder {
        /// The cache's file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// SQLite refuses.
    #[error("cannot use {}: {source}", path.display())]
    Sqlite {
        /// The cache's file.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// A newer Bakeoff wrote it.
    #[error("{} was written by a newer version of Bakeoff", path.display())]
    Newer {
        /// The cache's file.
        path: PathBuf,
    },
}

/// The name of an answer: everything that it depends on, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// The name of the answer to `request` (the whole of it, or a hash of that, sent to `endpoint`)
    /// for the `ordinal`-th time within that trial.
    pub fn new(scope: &str, endpoint: &str, request: &[u8], trial: u32, ordinal: u32) -> CacheKey {
        let mut hasher = blake3::Hasher::new();
        for part in [scope.as_bytes(), endpoint.as_bytes(), request] {
            // With its length, so that no two lists of parts look the same.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.update(&trial.to_le_bytes()).update(&ordinal.to_le_bytes());
        CacheKey(*hasher.finalize().as_bytes())
    }
}

/// An answer that was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The answer.
    pub response: Response,
    /// How long it took when it was made; unknown of what older versions stored.
    pub latency: Option<Duration>,
}

/// An answer as it is written.
#[derive(Debug, Clone)]
struct Row {
    response: Arc<str>,
    /// In microseconds.
    latency: Option<i64>,
}

impl Row {
    /// What cannot be read counts as missing.
    fn read(&self) -> Option<Stored> {
        let microseconds = self.latency.and_then(|latency| u64::try_from(latency).ok());
        Some(Stored {
            response: serde_json::from_str(&self.response).ok()?,
            latency: microseconds.map(Duration::from_micros),
        })
    }
}

/// Answers that are not in the file yet, so that who asks a moment later finds them all the same.
/// There are never more of them than the queue and a batch hold.
type Unwritten = Arc<Mutex<HashMap<CacheKey, Row>>>;

/// The response cache.
#[derive(Debug)]
pub struct Cache {
    scope: String,
    reader: Mutex<Connection>,
    unwritten: Unwritten,
    queue: Option<SyncSender<(CacheKey, Row)>>,
    writer: Option<JoinHandle<()>>,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    /// Answers.
    pub entries: u64,
    /// Scopes they belong to.
    pub scopes: u64,
    /// Size of the file.
    pub bytes: u64,
}

impl Cache {
    /// Opens the cache for the answers of one scope.
    pub fn open(path: &Path, scope: &str) -> Result<Cache, CacheError> {
        let reader = connect(path)?;
        let connection = connect(path)?;
        let (queue, waiting) = mpsc::sync_channel(QUEUE);
        let unwritten = Unwritten::default();
        let writer = std::thread::Builder::new()
            .name("cache-writer".to_owned())
            .spawn({
                let (scope, unwritten) = (scope.to_owned(), Arc::clone(&unwritten));
                move || write_all(connection, &waiting, &unwritten, &scope)
            })
            .map_err(|source| CacheError::Folder { path: path.to_owned(), source })?;
        Ok(Cache {
            scope: scope.to_owned(),
            reader: Mutex::new(reader),
            unwritten,
            queue: Some(queue),
            writer: Some(writer),
        })
    }

    /// Whose answers these are.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The answer of that name. What cannot be read counts as missing: the call is made again.
    pub fn get(&self, key: &CacheKey) -> Option<Stored> {
        let unwritten = lock(&self.unwritten).get(key).cloned();
        unwritten.or_else(|| self.written(key))?.read()
    }

    fn written(&self, key: &CacheKey) -> Option<Row> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = reader
            .prepare_cached("SELECT response, latency_us FROM responses WHERE key = ?1")
            .ok()?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(Row { response: row.get::<_, String>(0)?.into(), latency: row.get(1)? })
        };
        statement.query_row([key.0], row).optional().ok().flatten()
    }

    /// Stores an answer and how long it took: in the file soon, for this process at once.
    pub fn put(&self, key: CacheKey, response: &Response, latency: Duration) {
        if let (Some(queue), Ok(json)) = (&self.queue, serde_json::to_string(response)) {
            let row =
                Row { response: json.into(), latency: i64::try_from(latency.as_micros()).ok() };
            lock(&self.unwritten).insert(key, row.clone());
            // Fails only when the writer has died; then nothing is stored, and nothing is lost.
            if queue.send((key, row)).is_err() {
                lock(&self.unwritten).remove(&key);
            }
        }
    }

    /// What the cache at `path` holds.
    pub fn stats(path: &Path) -> Result<CacheStats, CacheError> {
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        if bytes == 0 {
            return Ok(CacheStats { entries: 0, scopes: 0, bytes: 0 });
        }
        let count = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (entries, scopes) = connect(path)?
            .query_row("SELECT count(*), count(DISTINCT scope) FROM responses", [], count)
            .map_err(|source| CacheError::Sqlite { path: path.to_owned(), source })?;
        // Counts are never negative.
        Ok(CacheStats { entries: entries.unsigned_abs(), scopes: scopes.unsigned_abs(), bytes })
    }

    /// Forgets everything and says how many answers that were.
    pub fn clear(path: &Path) -> Result<u64, CacheError> {
        if !path.exists() {
            return Ok(0);
        }
        let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
        let connection = connect(path)?;
        let removed = connection.execute("DELETE FROM responses", []).map_err(error)?;
        connection.execute_batch("VACUUM").map_err(error)?;
        Ok(removed as u64)
    }
}

/// Waits until everything is stored.
impl Drop for Cache {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn connect(path: &Path) -> Result<Connection, CacheError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| CacheError::Folder { path: path.to_owned(), source })?;
    }
    let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(error)?;
    connection.busy_timeout(BUSY).map_err(error)?;
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(error)?;
    if version > SCHEMA {
        return Err(CacheError::Newer { path: path.to_owned() });
    }
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = 16384;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS responses (
                 id INTEGER PRIMARY KEY,
                 key BLOB NOT NULL,
                 scope TEXT NOT NULL,
                 created INTEGER NOT NULL,
                 response TEXT NOT NULL,
                 latency_us INTEGER
             );
             CREATE UNIQUE INDEX IF NOT EXISTS responses_by_key ON responses (key);
             CREATE INDEX IF NOT EXISTS responses_by_age ON responses (created);
             PRAGMA user_version = {SCHEMA};"
        ))
        .map_err(error)?;
    add_latency(&connection).map_err(error)?;
    Ok(connection)
}

/// Gives files of older versions the column that they lack. Those versions can still use the file:
/// they name the columns that they know, and this one may be empty.
fn add_latency(connection: &Connection) -> rusqlite::Result<()> {
    let has_it = |connection: &Connection| {
        let sql = "SELECT count(*) FROM pragma_table_info('responses') WHERE name = 'latency_us'";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
    };
    if has_it(connection)? {
        return Ok(());
    }
    match connection.execute_batch("ALTER TABLE responses ADD COLUMN latency_us INTEGER") {
        // Another process was faster.
        Err(_) if has_it(connection)? => Ok(()),
        added => added,
    }
}

fn lock(unwritten: &Unwritten) -> std::sync::MutexGuard<'_, HashMap<CacheKey, Row>> {
    unwritten.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores what arrives until nobody can send any more.
fn write_all(
    mut connection: Connection,
    waiting: &Receiver<(CacheKey, Row)>,
    unwritten: &Unwritten,
    scope: &str,
) {
    let oldest = seconds_since_epoch() - KEPT.as_secs() as i64;
    // An old entry too many is no harm.
    let _ = connection.execute("DELETE FROM responses WHERE created < ?1", [oldest]);
    while let Ok(first) = waiting.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).take(BATCH).collect();
        // A full disk costs the cache, not the run.
        let _ = write_batch(&mut connection, &batch, scope);
        let mut unwritten = lock(unwritten);
        for (key, _) in &batch {
            unwritten.remove(key);
        }
    }
}

fn write_batch(
    connection: &mut Connection,
    batch: &[(CacheKey, Row)],
    scope: &str,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO responses (key, scope, created, response, latency_us)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key) DO NOTHING",
        )?;
        let now = seconds_since_epoch();
        for (key, row) in batch {
            insert.execute(params![key.0, scope, now, &*row.response, row.latency])?;
        }
    }
    transaction.commit()
}

fn seconds_since_epoch() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
