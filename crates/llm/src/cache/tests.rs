use super::*;
use bakeoff_core::{Content, FinishReason, Usage};

fn response(text: &str) -> Response {
    Response {
        id: None,
        model: None,
        content: vec![Content::text(text)],
        finish: FinishReason::Stop,
        usage: Usage { input: 1, output: 2, ..Usage::default() },
        extra: serde_json::Map::new(),
    }
}

fn key(scope: &str, trial: u32, ordinal: u32) -> CacheKey {
    CacheKey::new(scope, "endpoint", b"request", trial, ordinal)
}

#[test]
fn reopened_cache_returns_stored_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/cache.sqlite");
    let cache = Cache::open(&path, "run").unwrap();
    for trial in 0..1000 {
        let latency = Duration::from_micros(trial.into());
        cache.put(key("run", trial, 0), &response(&trial.to_string()), latency);
    }
    drop(cache);
    let cache = Cache::open(&path, "run").unwrap();
    let found = CacheEntry { response: response("7"), latency: Some(Duration::from_micros(7)) };
    assert_eq!(cache.get(&key("run", 7, 0)), Some(found));
    assert_eq!(cache.get(&key("run", 1000, 0)), None);
    assert_eq!(Cache::stats(&path).unwrap().entries, 1000);
    assert_eq!(Cache::clear(&path).unwrap(), 1000);
    assert_eq!(cache.get(&key("run", 7, 0)), None);
}

#[test]
fn entries_before_a_time_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let now = SystemTime::now();
    assert_eq!(Cache::delete_before(&path, now).unwrap(), 0);
    let cache = Cache::open(&path, "run").unwrap();
    for trial in 0..3 {
        cache.put(key("run", trial, 0), &response("x"), Duration::ZERO);
    }
    drop(cache);
    let (past, future) = (now - Duration::from_secs(60), now + Duration::from_secs(60));
    assert_eq!(Cache::count_before(&path, past).unwrap(), 0);
    assert_eq!(Cache::delete_before(&path, past).unwrap(), 0);
    assert_eq!(Cache::count_before(&path, future).unwrap(), 3);
    assert_eq!(Cache::delete_before(&path, future).unwrap(), 3);
    assert_eq!(Cache::stats(&path).unwrap().entries, 0);
}

#[test]
fn entry_is_found_before_it_is_written_and_leaves_memory_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let cache = Cache::open(&path, "run").unwrap();
    // An open transaction of another connection blocks the writer.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    cache.put(key("run", 1, 0), &response("x"), Duration::ZERO);
    assert_eq!(cache.get(&key("run", 1, 0)).unwrap().response, response("x"));
    other.execute_batch("COMMIT").unwrap();
    let pending = Arc::clone(&cache.pending);
    drop(cache);
    assert!(lock(&pending).is_empty());
}

#[test]
fn file_without_latency_column_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE responses (id INTEGER PRIMARY KEY, key BLOB NOT NULL,
             scope TEXT NOT NULL, created INTEGER NOT NULL, response TEXT NOT NULL);
         CREATE UNIQUE INDEX responses_by_key ON responses (key);
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let json = serde_json::to_string(&response("old")).unwrap();
    let now = seconds_since_epoch();
    let insert = |trial: u32| {
        let sql = "INSERT INTO responses (key, scope, created, response) VALUES (?1, ?2, ?3, ?4)";
        old.execute(sql, params![key("run", trial, 0).0, "run", now, json]).unwrap();
    };
    insert(1);
    let cache = Cache::open(&path, "run").unwrap();
    let found = CacheEntry { response: response("old"), latency: None };
    assert_eq!(cache.get(&key("run", 1, 0)), Some(found.clone()));
    // The older version can still write to it.
    insert(2);
    assert_eq!(cache.get(&key("run", 2, 0)), Some(found));
}

#[test]
fn trial_ordinal_and_scope_change_the_key() {
    let keys = [key("a", 1, 0), key("a", 1, 1), key("a", 2, 0), key("b", 1, 0)];
    for (index, one) in keys.iter().enumerate() {
        assert!(keys[..index].iter().all(|other| other != one), "{index}");
    }
    let split = |scope, endpoint| CacheKey::new(scope, endpoint, b"", 0, 0);
    assert_ne!(split("ab", "c"), split("a", "bc"));
}

#[test]
fn file_with_newer_schema_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(Cache::open(&path, "run"), Err(CacheError::NewerSchema { .. })));
}

#[test]
fn file_that_is_no_database_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    std::fs::write(&path, "this is not a database").unwrap();
    let error = Cache::open(&path, "run").unwrap_err();
    assert!(error.to_string().contains("cache.sqlite"), "{error}");
}

#[test]
fn clear_removes_a_file_that_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    std::fs::write(&path, "this is not a database").unwrap();
    assert_eq!(Cache::clear(&path).unwrap(), 0);
    assert!(!path.exists());
    Cache::open(&path, "run").unwrap();
}

#[test]
fn missing_cache_is_empty_and_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    assert_eq!(Cache::stats(&path).unwrap().entries, 0);
    assert_eq!(Cache::clear(&path).unwrap(), 0);
    assert!(!path.exists());
}
