//! Isolation of trials: what a program finds in the folders above its own.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::path::Path;

/// Script that writes a file, waits until both trials have done so, and lists every folder from its own up to the
/// root, with the folders in them. The pipe `HERE` passes one line per trial.
const SEARCH: &str = r#"
echo mine > secret-of-$BAKEOFF_TRIAL_ID_NAME
echo ready > HERE/arrived
read line < HERE/released
folder=$PWD
while test "$folder" != /; do
    folder=$(dirname "$folder")
    ls -A "$folder" 2> /dev/null | sed "s|^|$folder/|"
    cat "$folder/CLAUDE.md" 2> /dev/null
done
true
"#;

fn suite(script: &str) -> String {
    format!(
        "[suite]\nname = \"private\"\nparallel = 2\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", {}]\n\
         prompt = \"\"\nworkspace = \"box\"\n[cases]\ninline = [{{ id = \"a\" }}, {{ id = \"b\" }}]\n",
        Value::from(script)
    )
}

#[test]
fn trial_finds_no_file_of_the_user_or_of_other_trials_above_it() {
    let dir = TestDir::new();
    let here = dir.path().display().to_string();
    let pipe = |name: &str| {
        let path = dir.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Open for reading and writing, so that neither side blocks or sees the end of the pipe.
        std::fs::File::options().read(true).write(true).open(path).unwrap()
    };
    let (arrived, released) = (pipe("arrived"), pipe("released"));
    let script = SEARCH.replace("HERE", &here).replace("$BAKEOFF_TRIAL_ID_NAME", "$$");
    let dir = dir
        .write("bakeoff.toml", suite(&script))
        .write("CLAUDE.md", "instructions of the user")
        .with("box/input.txt", "input");
    let child = dir.command(&["run"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(arrived));
    // Both trials have written their files.
    assert!(lines.by_ref().take(2).all(|line| line.is_ok()));
    std::io::Write::write_all(&mut &released, b"go\ngo\n").unwrap();
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, 0, "{}", output.transcript());
    for trial in dir.trials() {
        let seen = trial["attempt"]["output"].as_str().unwrap();
        // The script has searched: the folder of workspaces is a descendant of the root.
        assert!(seen.lines().any(|line| line == "//var" || line == "/var"), "{seen}");
        for hidden in
            ["instructions", "bakeoff.toml", "input.txt", "journal.jsonl", "secret-of-", &here]
        {
            assert!(!seen.contains(hidden), "{hidden}\n{seen}");
        }
        // The first folder above contains nothing else.
        let first: Vec<&str> =
            seen.lines().take_while(|line| line.ends_with("/workspace")).collect();
        assert_eq!(first.len(), 1, "{seen}");
        let files = trial["attempt"]["files"].as_object().unwrap();
        let secrets = files.keys().filter(|name| name.starts_with("secret-of-"));
        assert_eq!(secrets.count(), 1, "{files:?}");
    }
    assert!(!dir.left_workspaces());
}

#[test]
fn folder_of_workspaces_can_be_chosen() {
    let dir = TestDir::with_suite(&suite("pwd; exit 1")).with("box/input.txt", "input");
    let other = tempfile::tempdir().unwrap();
    let run = |folder: &Path| {
        let mut command = dir.command(&["run", "--keep"]);
        CommandOutput::from(command.env("BAKEOFF_WORK_DIR", folder).output().unwrap())
    };
    let output = run(&other.path().join("new"));
    assert_eq!(output.code, 1, "{}", output.transcript());
    let prefix = other.path().join("new/bakeoff-").display().to_string();
    for trial in dir.trials() {
        assert!(trial["attempt"]["output"].as_str().unwrap().starts_with(&prefix), "{trial}");
        let kept = dir.run_folder().join(trial["attempt"]["workspace"].as_str().unwrap());
        assert!(kept.join("input.txt").is_file());
    }
    assert_eq!(std::fs::read_dir(other.path().join("new")).unwrap().count(), 0);
    std::fs::write(other.path().join("file"), "").unwrap();
    let output = run(&other.path().join("file"));
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("cannot create the folder of workspaces"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: set `BAKEOFF_WORK_DIR`"), "{}", output.stderr);
    // No further run was created.
    assert!(dir.run_folder().is_dir());
}

#[test]
fn folder_of_workspaces_within_the_project_is_rejected() {
    let dir = TestDir::with_suite(&suite("pwd")).with("box/input.txt", "input");
    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path(), other.path().join("link")).unwrap();
    for folder in [dir.path().to_owned(), dir.path().join("new/work"), other.path().join("link")] {
        let mut command = dir.command(&["run"]);
        let output = command.env("BAKEOFF_WORK_DIR", &folder).output().unwrap();
        let output = CommandOutput::from(output);
        assert_eq!(output.code, 2, "{}", output.transcript());
        let message = "error: the folder of workspaces would be in ";
        assert!(output.stderr.contains(message), "{}", output.transcript());
        assert!(output.stderr.contains("hint: set `BAKEOFF_WORK_DIR`"), "{}", output.transcript());
        assert!(!dir.path().join("runs").exists() && !dir.path().join("new").exists());
    }
}

#[test]
fn files_above_the_workspaces_are_reported() {
    let dir = TestDir::with_suite(&suite("pwd")).with("box/input.txt", "input");
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("CLAUDE.md"), "").unwrap();
    let mut command = dir.command(&["run", "--no-fail"]);
    let output = command.env("BAKEOFF_WORK_DIR", other.path().join("work")).output().unwrap();
    let output = CommandOutput::from(output);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let path = other.path().canonicalize().unwrap().join("CLAUDE.md");
    let warning = format!("programs may find {} in a folder above", path.display());
    assert!(output.stderr.contains(&warning), "{}", output.transcript());
    assert!(output.stderr.contains("EVAL_NOT_ISOLATED"), "{}", output.transcript());
}

#[test]
fn model_without_tools_needs_no_folder() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"m\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n[[cases.inline]]\nid = \"a\"\n\
         [[check]]\nkind = \"contains\"\nvalue = \"x\"\n",
    );
    let mut command = dir.command(&["run"]);
    let output = command.env("BAKEOFF_WORK_DIR", dir.path().join("bakeoff.toml")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(dir.work_folder(), None);
}
