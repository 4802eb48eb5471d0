//! The parts of a suite that results depend on, so that a run goes on only with what it began with.

use super::tree::Node;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Larger files are data that a program reads, and not read here.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// Keys of a model that change how it is called but not what it answers.
const NOT_ANSWERS: [&str; 5] = ["limits", "prices", "headers", "api_key_env", "query"];

/// Settings that verdicts depend on.
const VERDICTS: [&str; 4] = ["trials", "threshold", "early_stop", "alpha"];

/// Digests of targets, checks, models and settings, with the files beside the suite that they name.
pub(super) fn digests(root: &Node<'_, '_>, folder: &Path) -> BTreeMap<String, String> {
    let digest = |fields: Map<String, Value>| digest(&Value::Object(fields), folder);
    let mut parts = BTreeMap::new();
    if let Some(suite) = root.table("suite") {
        let settings = suite.to_json();
        for key in VERDICTS {
            if let Some(value) = settings.get(key) {
                parts.insert(format!("`{key}` of the suite"), value.to_string());
            }
        }
    }
    for target in root.tables("target") {
        let name = target.text("name").map_or("", |name| name.value);
        parts.insert(format!("target `{name}`"), digest(target.to_json()));
    }
    for (number, check) in root.tables("check").iter().enumerate() {
        let name = match (check.text("id"), check.text("kind")) {
            (Some(id), _) => format!("check `{}`", id.value),
            (None, kind) => {
                format!("check {} ({})", number + 1, kind.map_or("", |kind| kind.value))
            }
        };
        parts.insert(name, digest(check.to_json()));
    }
    for (section, what) in [("models", "model"), ("sim", "simulated model")] {
        let Some(tables) = root.table(section) else { continue };
        for (name, mut fields) in tables.to_json() {
            if let Some(fields) = fields.as_object_mut() {
                fields.retain(|key, _| !NOT_ANSWERS.contains(&key.as_str()));
                parts.insert(format!("{what} `{name}`"), digest(fields.clone()));
            }
        }
    }
    parts
}

fn digest(value: &Value, folder: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(value.to_string().as_bytes());
    add_files(value, folder, &mut hasher);
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Adds the contents of files that texts name, such as a program's source or a schema.
fn add_files(value: &Value, folder: &Path, hasher: &mut blake3::Hasher) {
    match value {
        Value::String(text) => {
            // `file.py:function` names a file, too.
            for name in [text.as_str(), text.split(':').next().unwrap_or_default()] {
                let path = folder.join(name);
                let is_small =
                    |data: &std::fs::Metadata| data.is_file() && data.len() <= LARGEST_FILE;
                if Path::new(name).is_relative()
                    && !name.is_empty()
                    && path.metadata().is_ok_and(|data| is_small(&data))
                    && let Ok(contents) = std::fs::read(&path)
                {
                    hasher.update(&contents);
                    return;
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_files(item, folder, hasher)),
        Value::Object(fields) => {
            fields.values().for_each(|field| add_files(field, folder, hasher));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
