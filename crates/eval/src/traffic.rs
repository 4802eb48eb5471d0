//! How a run's calls go out, watched and written down: `http.jsonl`, `limits.jsonl`, and the
//! figures of the pools.

use crate::Error;
use crate::folder::RunFolder;
use bakeoff_core::{ErrorKind, Event, HttpEntry, LimitRecord, PoolState};
use bakeoff_llm::{Client, HttpObserver, HttpRecord};
use bakeoff_pace::{PoolChange, PoolSnapshot};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Changes of each model's limit in the summary.
const MOST_CHANGES: usize = 200;

/// What is kept back before it is written; a call waits for that write, once in a few hundred.
const BUFFER_BYTES: usize = 64 * 1024;

/// A file of JSON lines that is a help and not a record: when it cannot be written, the run goes
/// on, and the first reason is kept.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    file: BufWriter<File>,
    problem: Option<std::io::Error>,
}

impl Lines {
    /// Makes a new file, or goes on with one.
    fn open(path: &Path) -> Result<Lines, Error> {
        let open = || {
            let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            bakeoff_journal::cut_torn_line(&file)?;
            Ok(file)
        };
        let file = open().map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Lines { path: path.to_owned(), writer: Mutex::new(Writer { file, problem: None }) })
    }

    fn push(&self, entry: &impl Serialize) {
        // Whole lines only, so that only the last one can be torn.
        if let Ok(mut line) = serde_json::to_vec(entry) {
            line.push(b'\n');
            self.write(|file| file.write_all(&line));
        }
    }

    fn flush(&self) {
        self.write(Write::flush);
    }

    fn write(&self, act: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.problem.is_none()
            && let Err(problem) = act(&mut writer.file)
        {
            writer.problem = Some(problem);
        }
    }

    fn problem(&self) -> Option<String> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = writer.problem.take()?;
        Some(format!("{} is not complete: {problem}", self.path.display()))
    }
}

/// Writes down how calls go out.
#[derive(Debug)]
pub(crate) struct Traffic {
    http: Arc<Lines>,
    limits: Lines,
    history: BTreeMap<String, VecDeque<LimitRecord>>,
    /// Models about which it has been told that they were stopped.
    stopped: HashSet<String>,
}

impl Traffic {
    pub(crate) fn open(folder: &RunFolder) -> Result<Traffic, Error> {
        Ok(Traffic {
            http: Arc::new(Lines::open(&folder.http())?),
            limits: Lines::open(&folder.limits())?,
            history: BTreeMap::new(),
            stopped: HashSet::new(),
        })
    }

    /// Writes every attempt down, and tells it to whoever else wants to know.
    pub(crate) fn observer(&self, other: Option<LiveHttp>) -> HttpObserver {
        let http = Arc::clone(&self.http);
        HttpObserver::new(move |record| {
            let entry = entry(record);
            http.push(&entry);
            if let Some(LiveHttp(tell)) = &other {
                tell(&entry);
            }
        })
    }

    /// What has happened in the pools since the last time.
    pub(crate) fn changes(&mut self, client: &Client) -> Vec<Event> {
        let mut events = Vec::new();
        for pool in client.pools() {
            for change in pool.take_changes() {
                let change = record(&change);
                self.limits.push(&change);
                let history = self.history.entry(change.model.clone()).or_default();
                if history.len() == MOST_CHANGES {
                    history.pop_front();
                }
                history.push_back(change.clone());
                events.push(Event::Limit { change });
            }
            if let Some(stopped) = pool.stopped()
                && self.stopped.insert(pool.model().to_owned())
            {
                let code = "PACE_QUOTA_USED_UP".to_owned();
                events.push(Event::Warning { code, message: stopped.reason.to_string() });
            }
        }
        events
    }

    /// How the pools are doing.
    pub(crate) fn pools(client: &Client) -> Vec<Event> {
        let state = |snapshot| Event::Pool { pool: state(snapshot) };
        client.pools().into_iter().map(|pool| state(pool.snapshot())).collect()
    }

    /// Hands what was kept back to the operating system.
    pub(crate) fn flush(&self) {
        self.http.flush();
        self.limits.flush();
    }

    /// The last changes of each model's limit, and what could not be written.
    pub(crate) fn finish(self) -> (Vec<LimitRecord>, Vec<Event>) {
        self.flush();
        let problems = [self.http.problem(), self.limits.problem()];
        let warning = |message| Event::Warning { code: "EVAL_LOG_INCOMPLETE".to_owned(), message };
        let history = self.history.into_values().flatten().collect();
        (history, problems.into_iter().flatten().map(warning).collect())
    }
}

/// Told of every attempt while the run goes on.
#[derive(Clone)]
pub struct LiveHttp(Arc<dyn Fn(&HttpEntry) + Send + Sync>);

impl LiveHttp {
    /// Calls the function; calls wait for it, so it should not take long.
    pub fn new(tell: impl Fn(&HttpEntry) + Send + Sync + 'static) -> LiveHttp {
        LiveHttp(Arc::new(tell))
    }
}

impl std::fmt::Debug for LiveHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveHttp").finish_non_exhaustive()
    }
}

fn entry(record: &HttpRecord<'_>) -> HttpEntry {
    let reason = |code: Option<&str>| match (code, record.error) {
        (Some(code), _) => code.to_owned(),
        (None, error) => error.map(word).unwrap_or_default(),
    };
    HttpEntry {
        timestamp: timestamp(record.time),
        model: record.model.to_owned(),
        method: record.method.to_owned(),
        url: record.url.to_owned(),
        status: record.status,
        error: record.error,
        // Microseconds are enough.
        latency_ms: (record.latency.as_secs_f64() * 1e6).round() / 1e3,
        request_bytes: record.request_bytes,
        response_bytes: record.response_bytes,
        in_flight: record.in_flight,
        attempt: record.attempt,
        retry_reason: record.retry.map(|retry| reason(retry.code)),
        retry_after_ms: record.retry.map(|retry| milliseconds(retry.pause)),
    }
}

/// An error's kind as it stands in files.
fn word(kind: ErrorKind) -> String {
    let word = serde_json::to_value(kind).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn record(change: &PoolChange) -> LimitRecord {
    LimitRecord {
        timestamp: timestamp(change.time),
        model: change.model.to_string(),
        old_limit: change.change.old_limit,
        new_limit: change.change.new_limit,
        reason: change.change.reason.as_str().to_owned(),
    }
}

fn state(snapshot: PoolSnapshot) -> PoolState {
    PoolState {
        model: snapshot.model.to_string(),
        in_flight: snapshot.in_flight,
        limit: (snapshot.limit < u32::MAX).then_some(snapshot.limit),
        waiting: snapshot.waiting as u64,
        resting: snapshot.backing_off,
        answers_per_second: (snapshot.answers_per_second * 10.0).round() / 10.0,
        answered: snapshot.answered,
        rejected: snapshot.rejected,
        failed: snapshot.failed,
        blocked_ms: snapshot.blocked_for.map(milliseconds),
        next_ms: snapshot.next_in.map(milliseconds),
        stopped: snapshot.stopped.map(|reason| reason.to_string()),
    }
}

fn timestamp(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap_or_default().to_string()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
