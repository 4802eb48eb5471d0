//! The response cache.
//!
//! One SQLite file for all runs, safe for concurrent processes. Every entry belongs to a scope: the id of one
//! run, or a scope shared by runs. Reads are short and happen on the task of the call. Writes go to a
//! dedicated thread, which batches them into transactions.

use bakeoff_core::Response;
use bakeoff_journal::{create_private_folders, private_file_options};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Version of the schema. Files with a newer one are rejected.
const SCHEMA_VERSION: i64 = 1;

/// How long entries are kept.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Capacity of the queue to the writer. When it is full, storing a response blocks.
const QUEUE_CAPACITY: usize = 1024;

/// Maximum number of entries per transaction.
const MAX_BATCH: usize = 256;

/// Time to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The folder cannot be created.
    #[error("cannot create the folder of {}: {source}", path.display())]
    CreateDirectory {
        /// File of the cache.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    CreateFile {
        /// File of the cache.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The writer thread cannot be started.
    #[error("cannot start the writer thread of {}: {source}", path.display())]
    StartWriter {
        /// File of the cache.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A damaged file cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// SQLite reports an error.
    #[error("cannot use {}: {source}", path.display())]
    Sqlite {
        /// File of the cache.
        path: PathBuf,
        /// Cause.
        source: rusqlite::Error,
    },
    /// The schema is newer than this version.
    #[error("{} was written by a newer version of Bakeoff", path.display())]
    NewerSchema {
        /// File of the cache.
        path: PathBuf,
    },
}

/// Key of a cached response: a hash of everything that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Returns the key of the response to the `ordinal`-th occurrence of a request within a trial. `request`
    /// is the whole request to `endpoint`, or a hash of it.
    pub fn new(scope: &str, endpoint: &str, request: &[u8], trial: u32, ordinal: u32) -> CacheKey {
        let mut hasher = blake3::Hasher::new();
        for part in [scope.as_bytes(), endpoint.as_bytes(), request] {
            // Preceded by its length, so that different lists of parts cannot hash the same bytes.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.update(&trial.to_le_bytes()).update(&ordinal.to_le_bytes());
        CacheKey(*hasher.finalize().as_bytes())
    }
}

/// A cached response.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheEntry {
    /// Response of the model.
    pub response: Response,
    /// Latency of the original request; `None` in entries of versions that did not record it.
    pub latency: Option<Duration>,
}

/// An entry as stored in the file.
#[derive(Debug, Clone)]
struct CacheRow {
    response: Arc<str>,
    latency_us: Option<i64>,
}

impl CacheRow {
    /// Decodes the row; an undecodable one counts as missing.
    fn decode(&self) -> Option<CacheEntry> {
        let microseconds = self.latency_us.and_then(|latency| u64::try_from(latency).ok());
        Some(CacheEntry {
            response: serde_json::from_str(&self.response).ok()?,
            latency: microseconds.map(Duration::from_micros),
        })
    }
}

/// Entries that are queued but not written yet; reads must find them too. Their number is bounded by the
/// queue and one batch.
type PendingWrites = Arc<Mutex<HashMap<CacheKey, CacheRow>>>;

/// The response cache.
#[derive(Debug)]
pub struct Cache {
    scope: String,
    reader: Mutex<Connection>,
    pending: PendingWrites,
    queue: Option<SyncSender<(CacheKey, CacheRow)>>,
    writer: Option<JoinHandle<()>>,
}

/// Size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    /// Number of responses.
    pub entries: u64,
    /// Number of scopes.
    pub scopes: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Cache {
    /// Opens the cache for one scope.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or created, or has a newer schema.
    pub fn open(path: &Path, scope: &str) -> Result<Cache, CacheError> {
        let reader = connect(path)?;
        let connection = connect(path)?;
        let (queue, receiver) = mpsc::sync_channel(QUEUE_CAPACITY);
        let pending = PendingWrites::default();
        let writer = std::thread::Builder::new()
            .name("cache-writer".to_owned())
            .spawn({
                let (scope, pending) = (scope.to_owned(), Arc::clone(&pending));
                move || run_writer(connection, &receiver, &pending, &scope)
            })
            .map_err(|source| CacheError::StartWriter { path: path.to_owned(), source })?;
        Ok(Cache {
            scope: scope.to_owned(),
            reader: Mutex::new(reader),
            pending,
            queue: Some(queue),
            writer: Some(writer),
        })
    }

    /// Returns the scope of the entries.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the entry of a key. An unreadable one counts as missing, so that the call is made again.
    pub fn get(&self, key: &CacheKey) -> Option<CacheEntry> {
        let pending = lock(&self.pending).get(key).cloned();
        pending.or_else(|| self.read_row(key))?.decode()
    }

    fn read_row(&self, key: &CacheKey) -> Option<CacheRow> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = reader
            .prepare_cached("SELECT response, latency_us FROM responses WHERE key = ?1")
            .ok()?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(CacheRow { response: row.get::<_, String>(0)?.into(), latency_us: row.get(1)? })
        };
        statement.query_row([key.0], row).optional().ok().flatten()
    }

    /// Stores a response and its latency. This process sees the entry at once; the file is written later.
    pub fn put(&self, key: CacheKey, response: &Response, latency: Duration) {
        if let (Some(queue), Ok(json)) = (&self.queue, serde_json::to_string(response)) {
            let latency_us = i64::try_from(latency.as_micros()).ok();
            let row = CacheRow { response: json.into(), latency_us };
            lock(&self.pending).insert(key, row.clone());
            // Fails only if the writer has exited; the response is not cached then.
            if queue.send((key, row)).is_err() {
                lock(&self.pending).remove(&key);
            }
        }
    }

    /// Returns the size of the cache at `path`.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be read.
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

    /// Removes all entries and returns their number.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be changed.
    pub fn clear(path: &Path) -> Result<u64, CacheError> {
        if !path.exists() {
            return Ok(0);
        }
        match delete_all(path) {
            Err(CacheError::Sqlite { source, .. }) if is_damage(&source) => {
                remove_files(path).map(|()| 0)
            }
            removed => removed,
        }
    }
}

/// Waits until all entries are written.
impl Drop for Cache {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Cache {
    /// Returns the number of entries that were stored before this time.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be read.
    pub fn count_before(path: &Path, before: SystemTime) -> Result<u64, CacheError> {
        if !path.exists() {
            return Ok(0);
        }
        let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
        let query = "SELECT count(*) FROM responses WHERE created < ?1";
        let number: i64 =
            connect(path)?.query_row(query, [seconds(before)], |row| row.get(0)).map_err(error)?;
        Ok(number.unsigned_abs())
    }

    /// Removes the entries that were stored before this time, and returns their number.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be changed.
    pub fn delete_before(path: &Path, before: SystemTime) -> Result<u64, CacheError> {
        if !path.exists() {
            return Ok(0);
        }
        let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
        let connection = connect(path)?;
        let statement = "DELETE FROM responses WHERE created < ?1";
        let removed = connection.execute(statement, [seconds(before)]).map_err(error)?;
        connection.execute_batch("VACUUM").map_err(error)?;
        Ok(removed as u64)
    }
}

/// Returns the time in seconds since 1970.
fn seconds(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn delete_all(path: &Path) -> Result<u64, CacheError> {
    let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
    let connection = connect(path)?;
    let removed = connection.execute("DELETE FROM responses", []).map_err(error)?;
    connection.execute_batch("VACUUM").map_err(error)?;
    Ok(removed as u64)
}

/// Returns whether the file is damaged, or is not a database at all.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(NotADatabase | DatabaseCorrupt))
}

/// Removes the file of a cache and those that SQLite keeps next to it.
fn remove_files(path: &Path) -> Result<(), CacheError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match std::fs::remove_file(&file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(CacheError::Remove { path: file.into(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, CacheError> {
    if let Some(folder) = path.parent() {
        create_private_folders(folder)
            .map_err(|source| CacheError::CreateDirectory { path: path.to_owned(), source })?;
    }
    let error = |source| CacheError::Sqlite { path: path.to_owned(), source };
    // SQLite would create it for everyone. Its other files get the mode of this one.
    private_file_options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|source| CacheError::CreateFile { path: path.to_owned(), source })?;
    let connection = Connection::open(path).map_err(error)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(error)?;
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(error)?;
    if version > SCHEMA_VERSION {
        return Err(CacheError::NewerSchema { path: path.to_owned() });
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
             PRAGMA user_version = {SCHEMA_VERSION};"
        ))
        .map_err(error)?;
    add_latency_column(&connection).map_err(error)?;
    Ok(connection)
}

/// Adds the latency column to files of older versions. Those versions can still use the file, because they
/// name their columns and this one is nullable.
fn add_latency_column(connection: &Connection) -> rusqlite::Result<()> {
    let has_column = |connection: &Connection| {
        let sql = "SELECT count(*) FROM pragma_table_info('responses') WHERE name = 'latency_us'";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
    };
    if has_column(connection)? {
        return Ok(());
    }
    match connection.execute_batch("ALTER TABLE responses ADD COLUMN latency_us INTEGER") {
        // Another process added it in the meantime.
        Err(_) if has_column(connection)? => Ok(()),
        added => added,
    }
}

fn lock(pending: &PendingWrites) -> std::sync::MutexGuard<'_, HashMap<CacheKey, CacheRow>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes expired entries, then writes queued entries until the queue closes.
fn run_writer(
    mut connection: Connection,
    receiver: &Receiver<(CacheKey, CacheRow)>,
    pending: &PendingWrites,
    scope: &str,
) {
    let expiry = seconds_since_epoch() - RETENTION.as_secs() as i64;
    // An expired entry that stays does no harm.
    let _ = connection.execute("DELETE FROM responses WHERE created < ?1", [expiry]);
    while let Ok(first) = receiver.recv() {
        let batch: Vec<_> =
            std::iter::once(first).chain(receiver.try_iter()).take(MAX_BATCH).collect();
        // A write error, such as a full disk, must not fail the run.
        let _ = write_batch(&mut connection, &batch, scope);
        let mut pending = lock(pending);
        for (key, _) in &batch {
            pending.remove(key);
        }
    }
}

fn write_batch(
    connection: &mut Connection,
    batch: &[(CacheKey, CacheRow)],
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
            insert.execute(params![key.0, scope, now, &*row.response, row.latency_us])?;
        }
    }
    transaction.commit()
}

fn seconds_since_epoch() -> i64 {
    seconds(SystemTime::now())
}

#[cfg(test)]
mod tests;
