//! What runs have found out about pools, for the next one to begin with.
//!
//! One small JSON file. A pool is known by a hash of its key, so that nothing in the file tells
//! which provider, model or account it is about.

use crate::Model;
use bakeoff_journal::write_atomic;
use bakeoff_pace::{LearnedLimit, PoolKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Limits change; what is older is not believed.
const OLDEST: Duration = Duration::from_secs(7 * 86_400);

/// Nobody has more connections than that.
const MOST_CONNECTIONS: u32 = 100_000;

/// Requests per second that are believed. With fewer, a run that believed them would not even find
/// out that they are wrong; with more they would be no limit.
const RATES: std::ops::RangeInclusive<f64> = 0.01..=100_000.0;

/// Version of the file. Another one is as good as no file.
const VERSION: u32 = 1;

/// What earlier runs have found out.
#[derive(Debug, Default)]
pub struct Memory {
    entries: BTreeMap<String, Entry>,
}

/// What cannot be remembered, and why.
#[derive(Debug, thiserror::Error)]
#[error("what was learned about limits cannot be saved in {}", path.display())]
pub struct MemoryError {
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
    /// Seconds since 1970.
    learned_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connections: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
}

impl Memory {
    /// Reads the file. One that is not there or not readable holds nothing: it is only a help.
    pub fn read(path: &Path, now: SystemTime) -> Memory {
        let file = std::fs::read(path).ok();
        let file: Option<File> = file.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut entries =
            file.filter(|file| file.version == VERSION).map(|file| file.pools).unwrap_or_default();
        let (now, oldest) = (seconds(now), OLDEST.as_secs());
        // A time to come is that of a clock that was wrong.
        entries
            .retain(|_, entry| now.checked_sub(entry.learned_at).is_some_and(|age| age <= oldest));
        Memory { entries }
    }

    /// What is known of a pool.
    pub fn recall(&self, key: &PoolKey) -> Option<LearnedLimit> {
        let entry = self.entries.get(&name(key))?;
        let is_possible = |cap: &u32| (1..=MOST_CONNECTIONS).contains(cap);
        let cap = entry.connections.filter(is_possible).map(LearnedLimit::Cap);
        let rate = entry.requests_per_second.filter(|rate| RATES.contains(rate));
        cap.or(rate.map(LearnedLimit::Rate))
    }

    /// What is known of the pool that calls of a model go through.
    pub fn about(&self, model: &Model) -> Option<LearnedLimit> {
        self.recall(&model.pool)
    }

    /// Adds what was learned to the file. It is read again before, because other runs write it
    /// too; of two that write at the same moment one may be lost, which costs nothing but time.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(
        path: &Path,
        learned: &[(PoolKey, LearnedLimit)],
        now: SystemTime,
    ) -> Result<(), MemoryError> {
        if learned.is_empty() {
            return Ok(());
        }
        let mut pools = Memory::read(path, now).entries;
        for (key, learned) in learned {
            let mut entry =
                Entry { learned_at: seconds(now), connections: None, requests_per_second: None };
            match learned {
                LearnedLimit::Cap(connections) => entry.connections = Some(*connections),
                LearnedLimit::Rate(rate) => entry.requests_per_second = Some(*rate),
            }
            pools.insert(name(key), entry);
        }
        let error = |source| MemoryError { path: path.to_owned(), source };
        let json = serde_json::to_vec_pretty(&File { version: VERSION, pools })
            .map_err(|source| error(source.into()))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| error(source.into()))?;
        }
        write_atomic(path, &json).map_err(|source| error(source.into()))
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A hash of a pool's key. Each part with its length, so that no two keys look the same.
fn name(key: &PoolKey) -> String {
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
    fn what_was_learned_is_known_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there/yet/limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        assert_eq!(Memory::read(&path, now).recall(&key("a")), None);
        Memory::save(&path, &[(key("a"), LearnedLimit::Cap(30))], now).unwrap();
        Memory::save(&path, &[(key("b"), LearnedLimit::Rate(2.5))], now + DAY).unwrap();
        let recall = |model, days| Memory::read(&path, now + days * DAY).recall(&key(model));
        assert_eq!(recall("a", 2), Some(LearnedLimit::Cap(30)));
        assert_eq!(recall("b", 2), Some(LearnedLimit::Rate(2.5)));
        assert_eq!(recall("c", 2), None);
        assert_eq!((recall("a", 8), recall("b", 8)), (None, Some(LearnedLimit::Rate(2.5))));
        assert_eq!(Memory::read(&path, now - DAY).recall(&key("a")), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("api.example"), "{text}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_not_ours_holds_nothing_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        for contents in ["", "{", "[]", r#"{"version": 2, "pools": {}}"#, "\u{0}"] {
            std::fs::write(&path, contents).unwrap();
            assert_eq!(Memory::read(&path, now).recall(&key("a")), None, "{contents:?}");
        }
        Memory::save(&path, &[(key("a"), LearnedLimit::Cap(30))], now).unwrap();
        assert_eq!(Memory::read(&path, now).recall(&key("a")), Some(LearnedLimit::Cap(30)));
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let recalled = |learned_at: u64, what: &str| {
            let entry = format!("{{\"learned_at\": {learned_at}, {what}}}");
            let pool = name(&key("a"));
            let text = format!("{{\"version\": 1, \"pools\": {{\"{pool}\": {entry}}}}}");
            std::fs::write(&path, text).unwrap();
            Memory::read(&path, now).recall(&key("a"))
        };
        let today = seconds(now);
        assert_eq!(recalled(today, "\"connections\": 7"), Some(LearnedLimit::Cap(7)));
        for time in [0, today + 1, u64::MAX] {
            assert_eq!(recalled(time, "\"connections\": 7"), None, "{time}");
        }
        for what in [
            "\"connections\": 0",
            "\"connections\": 4294967295",
            "\"connections\": -1",
            "\"requests_per_second\": 0",
            "\"requests_per_second\": -2.5",
            "\"requests_per_second\": 1e-9",
            "\"requests_per_second\": 1e300",
        ] {
            assert_eq!(recalled(today, what), None, "{what}");
        }
    }

    #[test]
    fn nothing_learned_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        Memory::save(&path, &[], SystemTime::now()).unwrap();
        assert!(!path.exists());
    }
}
