//! Programs as targets: workspaces, output, environment and termination.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Returns a suite with one program and one case, `a`.
fn suite(settings: &str, command: &str, more: &str) -> String {
    format!(
        "[suite]\n{settings}\n[[target]]\nname = \"p\"\ncommand = {command}\nprompt = \"{{{{ id }}}}\"\n{more}\n"
    )
}

fn shell(script: &str) -> String {
    format!("[\"sh\", \"-c\", {}]", Value::from(script))
}

const CASE: &str = "[[cases.inline]]\nid = \"a\"\n";

fn trial_output(trial: &Value) -> &str {
    trial["attempt"]["output"].as_str().unwrap()
}

#[test]
fn each_trial_gets_a_fresh_copy_of_the_workspace() {
    let script = "cat box.txt; ls; echo more >> box.txt; mkdir sub; echo new > sub/made";
    let suite = suite("trials = 3", &shell(script), &format!("workspace = \"box\"\n{CASE}"));
    let dir = TestDir::with_suite(&suite).with("box/box.txt", "original\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    for trial in dir.trials() {
        assert_eq!(trial_output(&trial), "original\nbox.txt\n");
        let files = &trial["attempt"]["files"];
        assert_eq!(files["box.txt"]["text"], "original\nmore\n");
        assert_eq!(files["sub/made"], serde_json::json!({"bytes": 4, "text": "new\n"}));
    }
    let original = std::fs::read_to_string(dir.path().join("box/box.txt")).unwrap();
    assert_eq!(original, "original\n");
    assert!(!dir.left_workspaces());
}

#[test]
fn cases_can_set_workspace_and_working_directory() {
    let cases = "[[cases.inline]]\nid = \"a\"\n\
                 [[cases.inline]]\nid = \"b\"\nworkspace = \"other\"\n\
                 [[cases.inline]]\nid = \"c\"\nworkspace_subdir = \"deep\"\n\
                 [[cases.inline]]\nid = \"d\"\nworkspace = \"\"\n";
    let suite = suite("", &shell("ls; ls .."), &format!("workspace = \"box\"\n{cases}"));
    let dir = TestDir::with_suite(&suite)
        .with("box/one", "")
        .with("box/deep/two", "")
        .with("other/three", "");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let seen: Vec<String> = dir
        .trials()
        .iter()
        .map(|trial| trial_output(trial).lines().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        seen,
        ["deep one workspace", "three workspace", "two deep one", "deep one workspace"]
    );
    let files = dir.trials()[2]["attempt"]["files"].clone();
    assert_eq!(files, serde_json::json!({"two": {"bytes": 0}}));
}

#[test]
fn directory_of_runs_is_never_copied() {
    let suite = suite("trials = 2", &shell("ls -a"), &format!("workspace = \".\"\n{CASE}"));
    let dir = TestDir::with_suite(&suite);
    for _ in 0..2 {
        let output = dir.run(&["run", "--quiet"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
    }
    let newest = dir.run(&["list", "--json"]).done()["runs"][0].clone();
    let stdout = dir.path().join(newest["run_dir"].as_str().unwrap()).join("a/trial-2/stdout.txt");
    assert_eq!(std::fs::read_to_string(stdout).unwrap(), ".\n..\nbakeoff.toml\ncache\n");
}

#[test]
fn keep_stores_workspaces_of_failed_trials() {
    let script = "read id; echo $id > left; test $id = a";
    let cases = "[[cases.inline]]\nid = \"a\"\n[[cases.inline]]\nid = \"b\"\n";
    let dir = TestDir::with_suite(&suite("", &shell(script), cases));
    assert_eq!(dir.run(&["run", "--keep", "--out", "kept"]).code, 1);
    assert_eq!(dir.run(&["run"]).code, 1);
    let folder = std::fs::read_dir(dir.path().join("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("b/trial-1/workspace/left")).unwrap(), "b\n");
    assert!(!folder.join("a/trial-1/workspace").exists());
    let result: Value =
        serde_json::from_slice(&std::fs::read(folder.join("b/trial-1/result.json")).unwrap())
            .unwrap();
    assert_eq!(result["attempt"]["workspace"], "b/trial-1/workspace");
    assert!(!dir.run_folder().join("b/trial-1/workspace").exists());
}

#[test]
fn prompt_can_be_an_argument() {
    let command =
        r#"["sh", "-c", "echo \"$1\" \"$2\"; cat", "sh", "<{prompt}>", "{prompt}{prompt}"]"#;
    let suite = suite("", command, CASE).replace("{{ id }}", "say $(id) \\\"{{ id }}\\\"");
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let expected = "<say $(id) \"a\"> say $(id) \"a\"say $(id) \"a\"\n";
    assert_eq!(trial_output(&dir.trials()[0]), expected);
}

#[test]
fn long_prompts_and_answers_are_passed() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; cat | wc -c >&2";
    let suite =
        suite("", &shell(script), CASE).replace("{{ id }}", "{{ range(60000) | join(',') }}");
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let attempt = &dir.trials()[0]["attempt"];
    assert_eq!(attempt["output"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(attempt["dropped_bytes"], 3_000_000 - (1 << 20));
    let read: usize = attempt["stderr"].as_str().unwrap().trim().parse().unwrap();
    assert!(read > 300_000, "{read}");
}

#[test]
fn programs_get_pwd_and_git_ceiling_of_their_workspace() {
    let dir = TestDir::with_suite(&suite("", "[\"env\"]", CASE));
    let mut command = dir.command(&["run"]);
    command.env("PWD", dir.path()).env("GIT_CEILING_DIRECTORIES", "/else");
    let output = CommandOutput::from(command.output().unwrap());
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trial = dir.trials().remove(0);
    let variable = |name: &str| {
        let start = format!("{name}=");
        trial_output(&trial).lines().find_map(|line| line.strip_prefix(&start)).unwrap().to_owned()
    };
    let work = variable("GIT_CEILING_DIRECTORIES").strip_suffix(":/else").unwrap().to_owned();
    assert_eq!(Some(Path::new(&work)), dir.work_folder().as_deref());
    assert!(variable("PWD").starts_with(&format!("{work}/")), "{}", variable("PWD"));
}

#[test]
fn target_timeout_overrides_the_suite() {
    let suite = suite("", &shell("exec sleep 600"), &format!("timeout_seconds = 0.5\n{CASE}"));
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(
        output.stdout.contains("still running after 0.5 s [EVAL_CASE_TIMEOUT]"),
        "{}",
        output.stdout
    );
}

#[test]
fn processes_that_ignore_sigterm_are_killed() {
    // A child in the process group and one outside; both hold the pipe and ignore SIGTERM.
    let stubborn = "trap \"\" TERM; echo $$; exec sleep 600";
    let script = format!("sh -c '{stubborn}' & setsid sh -c '{stubborn}' & wait");
    let suite = suite("timeout_seconds = 4", &shell(&script), CASE);
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let trial = dir.trials().remove(0);
    let ids: Vec<&str> = trial_output(&trial).lines().collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    for id in ids {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or(") Z ".to_owned());
        assert!(stat.contains(") Z "), "{stat}");
    }
}

#[test]
fn daemon_that_hides_from_its_trial_is_killed_at_the_end_of_the_run() {
    // Without the variables of the trial, in a session of its own, and its parent exits at once.
    let script = r#"
sh -c 'env -i PATH="$PATH" setsid sh -c "echo \$\$ > daemon; exec sleep 600" > /dev/null 2>&1 & exit'
while ! [ -s daemon ]; do :; done; cat daemon"#;
    let dir = TestDir::with_suite(&suite("", &shell(script), CASE));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let id = trial_output(&dir.trials().remove(0)).trim().to_owned();
    assert!(id.parse::<u32>().is_ok(), "{id}");
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or(") Z ".to_owned());
    assert!(stat.contains(") Z "), "{stat}");
}

#[test]
fn child_of_a_shell_that_became_bakeoff_is_not_killed() {
    let dir = TestDir::with_suite(&suite("", &shell("echo ok"), CASE));
    let bakeoff = dir.command(&["run", "--quiet"]);
    let mut wrapper = std::process::Command::new("sh");
    let script = "setsid sleep 600 > /dev/null 2>&1 & echo $!; exec \"$0\" \"$@\"";
    wrapper.args(["-c", script]).arg(bakeoff.get_program()).args(bakeoff.get_args());
    wrapper.envs(bakeoff.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = wrapper.current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let id: i32 = text.lines().next().unwrap().parse().unwrap();
    // Fails if the process does not exist any more.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}

#[test]
fn program_start_is_journaled() {
    let dir = TestDir::with_suite(&suite("", &shell("ps -o pgid= -p $$"), CASE));
    assert_eq!(dir.run(&["run"]).code, 0);
    let text = std::fs::read_to_string(dir.run_folder().join("journal.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started = events.iter().find(|event| event["event"] == "program_started").unwrap();
    assert_eq!(trial_output(&dir.trials()[0]).trim(), started["group"]["id"].to_string());
    assert!(started["group"]["started"].as_u64().unwrap() > 0);
}

#[test]
fn exhausted_file_descriptors_fail_trials_but_not_the_run() {
    let dir = TestDir::new();
    let fifo = dir.path().join("release");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("read line < {}; echo ok", fifo.display());
    let settings =
        "trials = 64\nparallel = 64\nartifacts = \"none\"\ncache = \"none\"\nmax_error_rate = 1";
    let dir = dir.write("bakeoff.toml", suite(settings, &shell(&script), CASE));
    // Each running program needs three pipes, so that not all fit.
    let bakeoff = dir.command(&["run", "--json", "--no-memory"]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""])
        .arg(bakeoff.get_program())
        .args(bakeoff.get_args())
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .stdout(Stdio::piped());
    let mut child = limited.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The others wait, so the first finished trial has failed.
    let is_over = |line: &String| line.contains("\"event\":\"trial_finished\"");
    let first = lines.by_ref().map(Result::unwrap).find(is_over).unwrap();
    // One line for every program, waiting or yet to start.
    let release = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
    std::io::Write::write_all(&mut &release, &[b'\n'; 128]).unwrap();
    let statuses: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(first.contains("EVAL_PARALLEL_EXHAUSTION"), "{first}");
    let done: Value = serde_json::from_str(statuses.last().unwrap()).unwrap();
    let target = &done["summary"]["targets"][0];
    let (passed, errors) =
        (target["pass_count"].as_u64().unwrap(), target["errors"].as_u64().unwrap());
    assert!(passed > 0 && errors > 0 && passed + errors == 64, "{target}");
}

/// Returns the status, error kind and error message of the only trial.
fn outcome(dir: &TestDir) -> (String, String, String) {
    let trial = dir.trials().remove(0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &trial["attempt"]["error"];
    (text(&trial["status"]), text(&error["kind"]), text(&error["message"]))
}

const NEGATED: &str = "[[check]]\nkind = \"contains\"\nvalue = \"bad\"\nnegate = true\n";

#[test]
fn program_that_cannot_do_its_work_is_an_error_and_passes_no_negated_check() {
    let suite = suite("", r#"["python3", "nofile.py"]"#, &format!("{CASE}{NEGATED}"));
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let (status, kind, message) = outcome(&dir);
    assert_eq!((status.as_str(), kind.as_str()), ("error", "process"));
    assert!(
        message.starts_with("exited with code 2: ") && message.contains("nofile.py"),
        "{message}"
    );
}

#[test]
fn exit_code_is_a_result_if_a_check_tests_it_or_there_is_no_other() {
    let exit_code = "[[check]]\nkind = \"exit_code\"\nvalue = 7\n";
    for (checks, code, status) in [
        (exit_code.to_owned(), 0, "passed"),
        (format!("{exit_code}{NEGATED}"), 0, "passed"),
        (exit_code.replace('7', "0"), 1, "failed"),
        (String::new(), 1, "failed"),
    ] {
        let dir = TestDir::with_suite(&suite("", &shell("exit 7"), &format!("{CASE}{checks}")));
        let output = dir.run(&["run"]);
        assert_eq!(output.code, code, "{checks}\n{}", output.transcript());
        assert_eq!(outcome(&dir), (status.to_owned(), String::new(), String::new()), "{checks}");
    }
}

#[test]
fn added_exit_code_check_decides_about_stored_outputs() {
    let without = suite("", &shell("exit 7"), &format!("{CASE}{NEGATED}"));
    let dir = TestDir::with_suite(&without);
    assert_eq!(dir.run(&["run"]).code, 3);
    let with = format!("{without}[[check]]\nkind = \"exit_code\"\nvalue = 7\n");
    let dir = dir.write("bakeoff.toml", with);
    let output = dir.run(&["score"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn throttled_program_is_retried() {
    // The workspace of each attempt is new, so the attempts are counted elsewhere.
    let script = "import os, sys\npath = os.environ['HOME'] + '/tries'\nopen(path, 'a').write('x')\nif os.path.getsize(path) == 1:\n    print('openai.RateLimitError: Error code: 429', file=sys.stderr)\n    sys.exit(1)\nprint('fine')\n";
    let more = format!("workspace = \"box\"\n{CASE}{NEGATED}");
    let dir = TestDir::with_suite(&suite("", r#"["python3", "agent.py"]"#, &more))
        .with("box/agent.py", script);
    let output = dir.run(&["run", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trial = dir.trials().remove(0);
    assert_eq!(
        (trial_output(&trial), &trial["attempt"]["timing"]["retries"]),
        ("fine\n", &1.into())
    );
    let retry = output.events().into_iter().find(|event| event["event"] == "retry").unwrap();
    assert!(retry["reason"].as_str().unwrap().contains("RateLimitError"), "{retry}");
}

#[test]
fn program_that_stays_throttled_is_an_error() {
    let script = "echo 'RateLimitError: 429' >&2; exit 1";
    for checks in [NEGATED, "[[check]]\nkind = \"exit_code\"\n", ""] {
        let dir = TestDir::with_suite(&suite("", &shell(script), &format!("{CASE}{checks}")));
        let output = dir.run(&["run", "--max-retries", "0"]);
        assert_eq!(output.code, 3, "{checks}\n{}", output.transcript());
        assert_eq!(outcome(&dir).1, "rate_limit");
    }
}
