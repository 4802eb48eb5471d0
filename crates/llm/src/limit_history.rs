//! Limits learned by earlier runs, the starting point of the pools of the next run.
//!
//! They are stored in one small JSON file. A pool is identified by a hash of its key, so that the file does
//! not reveal provider, model or account.

use crate::Model;
use bakeoff_journal::{create_private_folders, write_atomic};
use bakeoff_pace::{LearnedLimit, PoolKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long entries are valid; limits change.
const RETENTION: Duration = Duration::from_secs(7 * 86_400);

/// Maximum plausible concurrency cap.
const MAX_CONNECTIONS: u32 = 100_000;

/// Plausible rates, in requests per second. A pool that started with a lower one could not detect that it is
/// wrong; a higher one is no limit.
const PLAUSIBLE_RATES: std::ops::RangeInclusive<f64> = 0.01..=100_000.0;

/// Version of the file format. Files of other versions are ignored.
const VERSION: u32 = 1;

/// Limits learned by earlier runs.
#[derive(Debug, Default)]
pub struct LimitHistory {
    entries: BTreeMap<String, Entry>,
}

/// Failure to save learned limits.
#[derive(Debug, thiserror::Error)]
#[error("cannot save learned limits to {}", path.display())]
pub struct LimitHistoryError {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    version: u32,
    pools: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// Seconds since the Unix epoch.
    learned_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connections: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
}

impl LimitHistory {
    /// Reads the file. A missing or unreadable file counts as empty, because the history is optional.
    pub fn read(path: &Path, now: SystemTime) -> LimitHistory {
        let file = std::fs::read(path).ok();
        let file: Option<File> = file.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut entries =
            file.filter(|file| file.version == VERSION).map(|file| file.pools).unwrap_or_default();
        let (now, max_age) = (unix_seconds(now), RETENTION.as_secs());
        // An entry from the future was written with a wrong clock.
        entries
            .retain(|_, entry| now.checked_sub(entry.learned_at).is_some_and(|age| age <= max_age));
        LimitHistory { entries }
    }

    /// Returns the learned limit of a pool.
    pub fn recall(&self, key: &PoolKey) -> Option<LearnedLimit> {
        let entry = self.entries.get(&hash(key))?;
        let is_plausible = |cap: &u32| (1..=MAX_CONNECTIONS).contains(cap);
        let cap = entry.connections.filter(is_plausible).map(LearnedLimit::Cap);
        let rate = entry.requests_per_second.filter(|rate| PLAUSIBLE_RATES.contains(rate));
        cap.or(rate.map(LearnedLimit::Rate))
    }

    /// Returns the learned limit of the pool of a model.
    pub fn recall_model(&self, model: &Model) -> Option<LearnedLimit> {
        self.recall(&model.pool)
    }

    /// Merges learned limits into the file.
    ///
    /// The file is read again first, because other runs write it too. If two runs write at the same moment,
    /// the entries of one may be lost; its next run then learns them again.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn save(
        path: &Path,
        learned: &[(PoolKey, LearnedLimit)],
        now: SystemTime,
    ) -> Result<(), LimitHistoryError> {
        if learned.is_empty() {
            return Ok(());
        }
        let mut pools = LimitHistory::read(path, now).entries;
        for (key, learned) in learned {
            let mut entry = Entry {
                learned_at: unix_seconds(now),
                connections: None,
                requests_per_second: None,
            };
            match learned {
                LearnedLimit::Cap(connections) => entry.connections = Some(*connections),
                LearnedLimit::Rate(rate) => entry.requests_per_second = Some(*rate),
            }
            pools.insert(hash(key), entry);
        }
        let error = |source| LimitHistoryError { path: path.to_owned(), source };
        let json = serde_json::to_vec_pretty(&File { version: VERSION, pools })
            .map_err(|source| error(source.into()))?;
        if let Some(folder) = path.parent() {
            create_private_folders(folder).map_err(|source| error(source.into()))?;
        }
        write_atomic(path, &json).map_err(|source| error(source.into()))
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Hashes a pool key. Each part is preceded by its length, so that different keys cannot hash the same bytes.
fn hash(key: &PoolKey) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [key.endpoint.as_bytes(), key.model.as_bytes(), &key.account.to_le_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str) -> PoolKey {
        PoolKey {
            endpoint: "https://api.example/v1".to_owned(),
            model: model.to_owned(),
            account: 7,
        }
    }

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn learned_limits_are_recalled_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there/yet/limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        assert_eq!(LimitHistory::read(&path, now).recall(&key("a")), None);
        LimitHistory::save(&path, &[(key("a"), LearnedLimit::Cap(30))], now).unwrap();
        LimitHistory::save(&path, &[(key("b"), LearnedLimit::Rate(2.5))], now + DAY).unwrap();
        let recall = |model, days| LimitHistory::read(&path, now + days * DAY).recall(&key(model));
        assert_eq!(recall("a", 2), Some(LearnedLimit::Cap(30)));
        assert_eq!(recall("b", 2), Some(LearnedLimit::Rate(2.5)));
        assert_eq!(recall("c", 2), None);
        assert_eq!((recall("a", 8), recall("b", 8)), (None, Some(LearnedLimit::Rate(2.5))));
        assert_eq!(LimitHistory::read(&path, now - DAY).recall(&key("a")), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("api.example"), "{text}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn unreadable_file_counts_as_empty_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        for contents in ["", "{", "[]", r#"{"version": 2, "pools": {}}"#, "\u{0}"] {
            std::fs::write(&path, contents).unwrap();
            assert_eq!(LimitHistory::read(&path, now).recall(&key("a")), None, "{contents:?}");
        }
        LimitHistory::save(&path, &[(key("a"), LearnedLimit::Cap(30))], now).unwrap();
        assert_eq!(LimitHistory::read(&path, now).recall(&key("a")), Some(LearnedLimit::Cap(30)));
    }

    #[test]
    fn implausible_entries_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let recall = |learned_at: u64, field: &str| {
            let entry = format!("{{\"learned_at\": {learned_at}, {field}}}");
            let pool = hash(&key("a"));
            let text = format!("{{\"version\": 1, \"pools\": {{\"{pool}\": {entry}}}}}");
            std::fs::write(&path, text).unwrap();
            LimitHistory::read(&path, now).recall(&key("a"))
        };
        let today = unix_seconds(now);
        assert_eq!(recall(today, "\"connections\": 7"), Some(LearnedLimit::Cap(7)));
        for time in [0, today + 1, u64::MAX] {
            assert_eq!(recall(time, "\"connections\": 7"), None, "{time}");
        }
        for field in [
            "\"connections\": 0",
            "\"connections\": 4294967295",
            "\"connections\": -1",
            "\"requests_per_second\": 0",
            "\"requests_per_second\": -2.5",
            "\"requests_per_second\": 1e-9",
            "\"requests_per_second\": 1e300",
        ] {
            assert_eq!(recall(today, field), None, "{field}");
        }
    }

    #[test]
    fn saving_nothing_writes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        LimitHistory::save(&path, &[], SystemTime::now()).unwrap();
        assert!(!path.exists());
    }
}
