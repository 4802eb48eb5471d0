//! Logs of a run's traffic: `http.jsonl`, `limits.jsonl`, and the state of the pools as events.

use crate::Error;
use crate::best_effort_log::BestEffortLog;
use crate::folder::RunFolder;
use crate::tally::kind_name;
use crate::timestamp::rfc3339;
use crate::trial::milliseconds;
use bakeoff_core::{ErrorKind, Event, HttpEntry, LimitRecord, PoolState, PoolSummary};
use bakeoff_llm::{Client, HttpObserver, HttpRecord};
use bakeoff_pace::{BindingLimit, ChangeReason, PoolChange, PoolSnapshot};
use chrono::Utc;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

/// Changes of each model's limit that the summary has.
const MAX_CHANGES: usize = 200;

/// Logs the HTTP requests and limit changes of a run.
#[derive(Debug)]
pub(crate) struct TrafficLog {
    http: Arc<BestEffortLog>,
    limits: BestEffortLog,
    history: BTreeMap<String, VecDeque<LimitRecord>>,
    /// Models whose stop has been reported.
    stopped: HashSet<String>,
}

impl TrafficLog {
    pub(crate) fn open(folder: &RunFolder) -> Result<TrafficLog, Error> {
        Ok(TrafficLog {
            http: Arc::new(BestEffortLog::open(&folder.http())?),
            limits: BestEffortLog::open(&folder.limits())?,
            history: BTreeMap::new(),
            stopped: HashSet::new(),
        })
    }

    /// Returns an observer that logs every request and passes it to the callback.
    pub(crate) fn observer(&self, callback: Option<HttpCallback>) -> HttpObserver {
        let http = Arc::clone(&self.http);
        HttpObserver::new(move |record| {
            let entry = http_entry(record);
            http.push(&entry);
            if let Some(HttpCallback(callback)) = &callback {
                callback(&entry);
            }
        })
    }

    /// Logs the limit changes since the last call and returns them as events.
    pub(crate) fn take_changes(&mut self, client: &Client) -> Vec<Event> {
        let mut events = Vec::new();
        for pool in client.pools() {
            let is_paused = pool.snapshot().is_paused;
            for change in pool.take_changes() {
                let is_pause = is_paused && change.change.reason == ChangeReason::Manual;
                let mut change = limit_record(&change);
                if is_pause {
                    change.binding = Some("paused".to_owned());
                }
                self.limits.push(&change);
                let history = self.history.entry(change.model.clone()).or_default();
                if history.len() == MAX_CHANGES {
                    history.pop_front();
                }
                history.push_back(change.clone());
                events.push(Event::Limit { change });
            }
            if let Some(stopped) = pool.stopped()
                && self.stopped.insert(pool.model().to_owned())
            {
                let code = match stopped.kind {
                    ErrorKind::Quota => "PACE_QUOTA_USED_UP",
                    _ => "PACE_STOPPED",
                };
                let message = stopped.reason.to_string();
                events.push(Event::Warning { code: code.to_owned(), message });
            }
        }
        events
    }

    /// Returns the state of the pools as events.
    pub(crate) fn pool_states(client: &Client) -> Vec<Event> {
        let event = |snapshot| Event::Pool { pool: pool_state(snapshot) };
        client.pools().into_iter().map(|pool| event(pool.snapshot())).collect()
    }

    /// Returns the calls to each model so far, and the limits that were found.
    pub(crate) fn pool_summaries(client: &Client) -> Vec<PoolSummary> {
        let snapshots = client.pools().into_iter().map(|pool| pool.snapshot());
        let summary = |snapshot: PoolSnapshot| PoolSummary {
            model: snapshot.model.to_string(),
            answered: snapshot.answered,
            rejected: snapshot.rejected,
            failed: snapshot.failed,
            limit: snapshot.binding.filter(|limit| limit.is_found()).map(|limit| limit.to_string()),
        };
        snapshots.map(summary).collect()
    }

    /// Writes buffered lines.
    pub(crate) fn flush(&self) {
        self.http.flush();
        self.limits.flush();
    }

    /// Returns the last changes of each model's limit, and warnings about incomplete logs.
    pub(crate) fn finish(self) -> (Vec<LimitRecord>, Vec<Event>) {
        self.flush();
        let errors = [self.http.take_error(), self.limits.take_error()];
        let warning = |message| Event::Warning { code: "EVAL_LOG_INCOMPLETE".to_owned(), message };
        let history = self.history.into_values().flatten().collect();
        (history, errors.into_iter().flatten().map(warning).collect())
    }
}

/// Callback that receives every HTTP request during the run.
#[derive(Clone)]
pub struct HttpCallback(Arc<dyn Fn(&HttpEntry) + Send + Sync>);

impl HttpCallback {
    /// Creates a callback. Model calls wait for it, so it must be fast.
    pub fn new(callback: impl Fn(&HttpEntry) + Send + Sync + 'static) -> HttpCallback {
        HttpCallback(Arc::new(callback))
    }
}

impl std::fmt::Debug for HttpCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpCallback").finish_non_exhaustive()
    }
}

fn http_entry(record: &HttpRecord<'_>) -> HttpEntry {
    let reason = |code: Option<&str>| match (code, record.error) {
        (Some(code), _) => code.to_owned(),
        (None, error) => error.map(kind_name).unwrap_or_default(),
    };
    HttpEntry {
        timestamp: rfc3339(record.time),
        model: record.model.to_owned(),
        method: record.method.to_owned(),
        url: record.url.to_owned(),
        status: record.status,
        error: record.error,
        // Rounded to microseconds.
        latency_ms: (record.latency.as_secs_f64() * 1e6).round() / 1e3,
        request_bytes: record.request_bytes,
        response_bytes: record.response_bytes,
        in_flight: record.in_flight,
        attempt: record.attempt,
        retry_reason: record.retry.map(|retry| reason(retry.code)),
        retry_after_ms: record.retry.map(|retry| milliseconds(retry.pause)),
    }
}

fn limit_record(change: &PoolChange) -> LimitRecord {
    LimitRecord {
        timestamp: rfc3339(change.time),
        model: change.model.to_string(),
        old_limit: change.change.old_limit,
        new_limit: change.change.new_limit,
        reason: change.change.reason.as_str().to_owned(),
        rpm: change.change.rpm,
        binding: change.change.binding.map(|binding| binding.to_string()),
    }
}

/// Describes what determines how fast a pool sends requests.
fn binding(snapshot: &PoolSnapshot) -> Option<String> {
    if snapshot.is_paused {
        return Some("paused".to_owned());
    }
    if let Some(outage) = snapshot.outage {
        return Some(format!("provider down for {} s", outage.as_secs()));
    }
    if let Some(left) = snapshot.blocked_for {
        let end = Utc::now() + left;
        return Some(format!("waiting until {} UTC (Retry-After)", end.format("%H:%M:%S")));
    }
    let is_limited = |limit: &BindingLimit| *limit != BindingLimit::Growing || snapshot.waiting > 0;
    snapshot.binding.filter(is_limited).map(|limit| limit.to_string())
}

fn pool_state(snapshot: PoolSnapshot) -> PoolState {
    PoolState {
        model: snapshot.model.to_string(),
        in_flight: snapshot.in_flight,
        limit: (snapshot.limit < u32::MAX).then_some(snapshot.limit),
        waiting: snapshot.waiting as u64,
        backing_off: snapshot.backing_off,
        answers_per_second: (snapshot.answers_per_second * 10.0).round() / 10.0,
        answered: snapshot.answered,
        rejected: snapshot.rejected,
        failed: snapshot.failed,
        blocked_ms: snapshot.blocked_for.map(milliseconds),
        next_ms: snapshot.next_in.map(milliseconds),
        binding: binding(&snapshot),
        stopped: snapshot.stopped.map(|reason| reason.to_string()),
    }
}
