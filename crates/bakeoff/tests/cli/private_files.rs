//! Prompts and answers on disk can be read by their owner only.

use crate::support::{CommandOutput, TestDir};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// User without rights on most systems.
const OTHER_USER: u32 = 65_534;

const SUITE: &str = r#"
[suite]
name = "private"
[cases]
inline = [{ id = "a" }]
[[check]]
kind = "contains"
value = "a"
[[target]]
name = "model"
model = "sim/echo"
prompt = "{{ id }}"
[[target]]
name = "program"
command = ["cat"]
prompt = "{{ id }}"
"#;

const RACE: [&str; 8] =
    ["race", "Hi", "--model", "sim/a", "--strategy", "first", "--session", "talk.jsonl"];

/// Runs a command with the file mode mask that most systems have.
fn run_with_usual_umask(dir: &TestDir, words: &[&str]) -> CommandOutput {
    let command = dir.command(words);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(command.get_program()).args(words);
    shell.current_dir(dir.path()).env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let output = CommandOutput::from(shell.output().unwrap());
    assert_eq!(output.code, 0, "{}", output.transcript());
    output
}

/// Returns a folder that everyone can enter, with a run, a race session and a map job.
fn dir_with_runs() -> TestDir {
    let task = "instructions = \"Repeat the item.\"\n[output]\nanswer = { type = \"string\" }\n";
    let dir = TestDir::with_suite(SUITE).write("task.toml", task).write("rows.csv", "item\nx\n");
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    run_with_usual_umask(&dir, &["run"]);
    run_with_usual_umask(&dir, &RACE);
    let map = ["map", "rows.csv", "--task", "task.toml", "--model", "sim/map", "--out", "out.csv"];
    run_with_usual_umask(&dir, &map);
    dir
}

/// Returns all files below a folder that Bakeoff has written without a name from the user.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    let named_by_user = ["bakeoff.toml", "task.toml", "rows.csv", "out.csv"];
    found.retain(|path| !named_by_user.iter().any(|name| path.ends_with(name)));
    found
}

#[test]
fn runs_caches_and_sessions_are_private() {
    let dir = dir_with_runs();
    let files = files(dir.path());
    for name in ["journal.jsonl", "stdout.txt", "responses.sqlite", "talk.jsonl"] {
        assert!(files.iter().any(|path| path.ends_with(name)), "{name}: {files:?}");
    }
    for path in files {
        let mode = path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
    }
    for folder in [dir.run_folder(), dir.path().join("cache")] {
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700, "{}", folder.display());
    }
}

#[test]
fn another_user_cannot_read_runs_caches_and_sessions() {
    let dir = dir_with_runs();
    let cat = |path: &Path| Command::new("cat").arg(path).uid(OTHER_USER).output();
    match cat(&dir.path().join("bakeoff.toml")) {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => {
            eprintln!("skipped: only root can become another user ({error})");
            return;
        }
    }
    for path in files(dir.path()) {
        let output = cat(&path).unwrap();
        assert!(!output.status.success(), "{}", path.display());
    }
}

#[test]
fn wider_modes_are_reported_once_and_kept() {
    let dir = dir_with_runs();
    let (run, cache) = (dir.run_folder(), dir.path().join("cache"));
    let (database, session) = (cache.join("responses.sqlite"), dir.path().join("talk.jsonl"));
    assert!(!dir.run(&["run", "--resume", "last"]).stderr.contains("OPEN_TO_OTHERS"));
    for path in [&run, &cache] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    for path in [&database, &session] {
        std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let resumed = dir.run(&["run", "--resume", "last"]).stderr;
    assert_eq!(resumed.matches("OPEN_TO_OTHERS").count(), 2, "{resumed}");
    let raced = dir.run(&RACE).stderr;
    assert_eq!(raced.matches("OPEN_TO_OTHERS").count(), 2, "{raced}");
    assert!(raced.contains("talk.jsonl") && raced.contains("chmod -R go="), "{raced}");
    assert_eq!(run.metadata().unwrap().mode() & 0o777, 0o755);
}
