//! Which crate may know which: the table of `docs/architecture.md`, enforced.

use serde_json::Value;
use std::process::Command;

/// The house, from the bottom up. A crate may use those on lower lines, and those to its left on
/// its own line.
const LINES: [&[&str]; 7] = [
    &["core", "stats"],
    &["pace", "sim", "journal", "select"],
    &["llm", "check"],
    &["agent", "race", "map", "gateway"],
    &["suite", "eval", "history"],
    &["report", "bench"],
    &["bakeoff"],
];

/// What the lines would allow and the idea of the crate does not.
const FORBIDDEN: [(&str, &str, &str); 9] = [
    ("stats", "core", "statistics are pure functions of numbers"),
    ("sim", "pace", "a provider does not know who calls it"),
    ("journal", "core", "a journal does not know what its lines mean"),
    ("journal", "pace", "a journal does not know what its lines mean"),
    ("journal", "sim", "a journal does not know what its lines mean"),
    ("select", "sim", "selectors see observations and nothing else"),
    ("check", "llm", "judges are injected"),
    ("report", "eval", "a report reads results, however they were made"),
    ("report", "history", "a report reads results, however they were made"),
];

/// Fails when a crate depends on one that it must not know.
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

/// Pairs of our own crates, user first. Tests may use what they like.
fn dependencies(metadata: &Value) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for package in array(&metadata["packages"]) {
        let Some(user) = folder(&package["name"]) else { continue };
        for dependency in array(&package["dependencies"]) {
            let is_for_tests = dependency["kind"] == "dev";
            if let (Some(used), false) = (folder(&dependency["name"]), is_for_tests) {
                pairs.push((user.clone(), used));
            }
        }
    }
    pairs
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The folder of one of our crates.
fn folder(name: &Value) -> Option<String> {
    let name = name.as_str()?;
    if name == "bakeoff" {
        return Some(name.to_owned());
    }
    name.strip_prefix("bakeoff-").map(str::to_owned)
}

fn problem(user: &str, used: &str) -> Option<String> {
    let place = |name: &str| {
        let line = LINES.iter().position(|line| line.contains(&name))?;
        Some((line, LINES[line].iter().position(|entry| *entry == name)?))
    };
    let forbidden = FORBIDDEN.iter().find(|(one, other, _)| (*one, *other) == (user, used));
    match (place(user), place(used), forbidden) {
        (_, _, Some((_, _, reason))) => Some(format!("{user} must not use {used}: {reason}")),
        (None, _, _) => Some(format!("{user} is on no line of the house")),
        (_, None, _) => Some(format!("{used} is on no line of the house")),
        (Some((line, column)), Some((used_line, used_column)), None) => {
            let allowed = used_line < line || (used_line == line && used_column < column);
            (!allowed).then(|| format!("{user} must not use {used}: it lies above or to the right"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_lines_and_left_neighbours_are_allowed_and_nothing_else() {
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
        assert!(problem("stranger", "core").is_some());
    }

    #[test]
    fn test_dependencies_do_not_count() {
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
