//! Layer check: enforces the dependency rules of `docs/architecture.md`.

use serde_json::Value;
use std::process::Command;

/// Layers from the bottom up. A crate may depend on crates of lower layers and on crates to its left in
/// its own layer.
const LAYERS: [&[&str]; 7] = [
    &["core", "stats"],
    &["pace", "sim", "journal", "select"],
    &["llm", "check"],
    &["agent", "race", "map", "gateway"],
    &["suite", "eval", "history"],
    &["report", "bench"],
    &["bakeoff"],
];

/// Dependencies that the layers permit but the responsibility of the crate does not.
const FORBIDDEN: [(&str, &str, &str); 9] = [
    ("stats", "core", "statistics are pure functions of numbers"),
    ("sim", "pace", "the provider must not depend on its client"),
    ("journal", "core", "the journal is independent of the meaning of its records"),
    ("journal", "pace", "the journal is independent of the meaning of its records"),
    ("journal", "sim", "the journal is independent of the meaning of its records"),
    ("select", "sim", "selectors receive only observations"),
    ("check", "llm", "judges are injected"),
    ("report", "eval", "reports are independent of how a run was executed"),
    ("report", "history", "reports are independent of how a run was executed"),
];

/// Checks the dependencies of all crates.
pub(crate) fn check() -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let problems: Vec<String> = dependencies(&metadata)
        .into_iter()
        .filter_map(|(user, used)| problem(&user, &used))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Returns the dependencies between workspace crates, dependent first. Dev-dependencies are unrestricted.
fn dependencies(metadata: &Value) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for package in array(&metadata["packages"]) {
        let Some(user) = folder(&package["name"]) else { continue };
        for dependency in array(&package["dependencies"]) {
            let is_dev = dependency["kind"] == "dev";
            if let (Some(used), false) = (folder(&dependency["name"]), is_dev) {
                pairs.push((user.clone(), used));
            }
        }
    }
    pairs
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the folder of a workspace crate.
fn folder(name: &Value) -> Option<String> {
    let name = name.as_str()?;
    if name == "bakeoff" {
        return Some(name.to_owned());
    }
    name.strip_prefix("bakeoff-").map(str::to_owned)
}

fn problem(user: &str, used: &str) -> Option<String> {
    let position = |name: &str| {
        let layer = LAYERS.iter().position(|layer| layer.contains(&name))?;
        Some((layer, LAYERS[layer].iter().position(|entry| *entry == name)?))
    };
    let forbidden = FORBIDDEN.iter().find(|(one, other, _)| (*one, *other) == (user, used));
    match (position(user), position(used), forbidden) {
        (_, _, Some((_, _, reason))) => Some(format!("{user} must not depend on {used}: {reason}")),
        (None, _, _) => Some(format!("{user} is not in a layer")),
        (_, None, _) => Some(format!("{used} is not in a layer")),
        (Some((layer, column)), Some((used_layer, used_column)), None) => {
            let is_allowed = used_layer < layer || (used_layer == layer && used_column < column);
            (!is_allowed)
                .then(|| format!("{user} must not depend on {used}: it is above or to the right"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_layers_and_left_neighbours_are_permitted() {
        for (user, used) in [
            ("llm", "pace"),
            ("eval", "agent"),
            ("eval", "suite"),
            ("history", "eval"),
            ("bakeoff", "eval"),
            ("bakeoff", "core"),
        ] {
            assert_eq!(problem(user, used), None, "{user} → {used}");
        }
        for (user, used) in [
            ("pace", "llm"),
            ("llm", "check"),
            ("core", "stats"),
            ("sim", "pace"),
            ("eval", "report"),
            ("suite", "eval"),
            ("eval", "history"),
        ] {
            assert!(problem(user, used).is_some(), "{user} → {used}");
        }
        assert!(problem("unknown", "core").is_some());
    }

    #[test]
    fn dev_dependencies_are_ignored() {
        let metadata = serde_json::json!({"packages": [{
            "name": "bakeoff-pace",
            "dependencies": [
                {"name": "bakeoff-core", "kind": null},
                {"name": "bakeoff-llm", "kind": "dev"},
                {"name": "serde", "kind": null},
            ],
        }]});
        assert_eq!(dependencies(&metadata), [("pace".to_owned(), "core".to_owned())]);
    }
}
