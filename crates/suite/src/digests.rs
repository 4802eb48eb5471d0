//! Digests of the parts of a suite that results depend on. A run resumes only with unchanged parts.

use super::spec::{Effect, MODEL, SIM, SUITE};
use super::tree::Node;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of a file whose content is hashed; for larger files only the size counts.
const MAX_HASHED_BYTES: u64 = 16 * 1024 * 1024;

/// Returns the digests of targets, checks, models and settings, including the files that they name.
///
/// The keys are stored in `run.json` and compared on resume.
pub(super) fn part_digests(root: &Node<'_, '_>, folder: &Path) -> BTreeMap<String, String> {
    let digest = |fields: Map<String, Value>| digest(&Value::Object(fields), folder);
    let mut parts = BTreeMap::new();
    if let Some(suite) = root.table("suite") {
        let settings = suite.to_json();
        for field in SUITE.fields().filter(|field| field.effect == Effect::Verdict) {
            if let Some(value) = settings.get(field.name) {
                parts.insert(format!("`{}` of the suite", field.name), value.to_string());
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
    let models = [("models", &MODEL, "model"), ("sim", &SIM, "simulated model")];
    for (key, section, what) in models {
        let Some(tables) = root.table(key) else { continue };
        let changes_calls_only =
            |key: &str| section.field(key).is_some_and(|field| field.effect == Effect::Call);
        for (name, mut fields) in tables.to_json() {
            if let Some(fields) = fields.as_object_mut() {
                fields.retain(|key, _| !changes_calls_only(key));
                parts.insert(format!("{what} `{name}`"), digest(fields.clone()));
            }
        }
    }
    parts
}

fn digest(value: &Value, folder: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(value.to_string().as_bytes());
    let servers = value["mcp"].as_array().into_iter().flatten();
    let commands = servers.map(|server| &server["command"]).chain([&value["command"]]);
    let words = commands.filter_map(Value::as_array).flatten();
    // `file.py:function` names a file.
    let function = value["function"].as_str().and_then(|text| text.split(':').next());
    let files = words.filter_map(Value::as_str).chain(value["file"].as_str()).chain(function);
    for name in files.filter(|name| Path::new(name).is_relative() && !name.is_empty()) {
        add_file(&folder.join(name), &mut hasher);
    }
    if let Some(workspace) = value["workspace"].as_str() {
        add_folder(&folder.join(workspace), &mut hasher);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Adds a file such as a program's source or a schema, if it exists.
fn add_file(path: &Path, hasher: &mut blake3::Hasher) {
    let Ok(data) = path.metadata() else { return };
    if !data.is_file() {
        return;
    }
    hasher.update(&data.len().to_le_bytes());
    if data.len() <= MAX_HASHED_BYTES
        && let Ok(contents) = std::fs::read(path)
    {
        hasher.update(&contents);
    }
}

/// Adds all files of a folder in the order of their names; does not follow links.
fn add_folder(folder: &Path, hasher: &mut blake3::Hasher) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<std::fs::DirEntry> = entries.collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if is_excluded(&entry.path()) {
            continue;
        }
        hasher.update(entry.file_name().as_encoded_bytes()).update(b"\0");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_folder(&entry.path(), hasher),
            Ok(kind) if kind.is_file() => add_file(&entry.path(), hasher),
            _ => {}
        }
    }
}

/// Returns whether a folder is excluded because it changes independently of the suite: `.git` and runs.
fn is_excluded(path: &Path) -> bool {
    let is_run = |path: &Path| path.join("journal.jsonl").is_file();
    let mut inner = std::fs::read_dir(path).into_iter().flatten().flatten();
    path.file_name().is_some_and(|name| name == ".git")
        || is_run(path)
        || inner.any(|entry| is_run(&entry.path()))
}
