//! Orphans of programs after [`become_subreaper`]: adoption, assignment to their owner and reaping.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_agent::{ExitReason, Identity, Program, ProgramOutput, become_subreaper, run, start};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Deadline of every wait of these tests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a run id that no other test and no other test process uses.
fn unique_run(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn program(script: &str, folder: &Path, identity: Option<Identity>) -> Program {
    Program::new(
        ["sh", "-c", script].map(Into::into).to_vec(),
        folder.to_owned(),
        Duration::from_secs(60),
        1 << 20,
    )
    .identity(identity)
}

fn identity(run: &str, trial: &str) -> Identity {
    Identity { run: unique_run(run), trial: Some(trial.to_owned()), part: None }
}

/// State letter of a process; `None` if it does not exist.
fn state(id: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

fn is_running(id: &str) -> bool {
    state(id).is_some_and(|state| state != 'Z')
}

fn parent(id: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Waits for a file with a complete line and returns the line.
async fn first_line(path: &Path) -> String {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    wait_until(&path.display().to_string(), || read().ends_with('\n')).await;
    read().trim().to_owned()
}

/// Double fork into a session of its own: the daemon writes its id to the file `$1`.
const DAEMON: &str =
    r#"setsid sh -c 'sh -c "echo \$\$ > $0; exec sleep 600" "$0" & exit' "$1" > /dev/null 2>&1; "#;

/// Starts a daemon, waits for it and exits.
fn daemon_script(file: &str) -> String {
    format!("set -- {file}; {DAEMON} while ! [ -s {file} ]; do sleep 0.01; done; cat {file}")
}

#[tokio::test]
async fn daemon_of_a_finished_program_is_adopted_and_killed() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{}; while ! [ -e go ]; do sleep 0.01; done", daemon_script("daemon"));
    let program = program(&script, folder.path(), Some(identity("adoption", "a/b/1")));
    let running = start(&program).unwrap();
    let daemon = first_line(&folder.path().join("daemon")).await;
    wait_until("adoption", || parent(&daemon) == Some(std::process::id())).await;
    std::fs::write(folder.path().join("go"), "").unwrap();
    let output = running.finish(&CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::Exited(0));
    assert_eq!(output.stdout.trim(), daemon);
    assert_eq!(state(&daemon), None, "the daemon is killed and reaped");
}

#[tokio::test]
async fn daemon_of_a_program_without_identity_is_killed_if_its_parent_is_running() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid env -i sh -c 'echo $$ > child; exec sleep 600' & echo; wait";
    let mut program = program(script, folder.path(), None);
    program.timeout = Duration::from_millis(500);
    let output = run(&program, &CancellationToken::new()).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::TimedOut);
    let child = first_line(&folder.path().join("child")).await;
    assert!(!is_running(&child));
}

#[tokio::test]
async fn member_of_a_session_without_variables_is_killed_with_the_session() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    // Both are orphans in one session; only the first carries the identity.
    let script = "setsid sh -c 'sleep 600 & env -i sh -c \"echo \\$\\$ > child; exec sleep 600\" & exit' \
                  > /dev/null 2>&1; while ! [ -s child ]; do sleep 0.01; done";
    let program = program(script, folder.path(), Some(identity("session", "a/b/1")));
    run(&program, &CancellationToken::new()).await.unwrap();
    let child = first_line(&folder.path().join("child")).await;
    assert_eq!(state(&child), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_trials_do_not_kill_the_daemons_of_each_other() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    // The first trial keeps its daemon while the others start and end with theirs.
    let script = format!("{}; while ! [ -e go ]; do sleep 0.01; done", daemon_script("kept"));
    let long = program(&script, folder.path(), Some(identity("parallel", "a/long/1")));
    let running = start(&long).unwrap();
    let kept = first_line(&folder.path().join("kept")).await;
    let mut trials = tokio::task::JoinSet::new();
    for number in 0..16 {
        let identity = identity("parallel", &format!("a/short/{number}"));
        let script = daemon_script(&format!("daemon-{number}"));
        let program = program(&script, folder.path(), Some(identity));
        trials.spawn(async move { run(&program, &CancellationToken::new()).await.unwrap() });
    }
    let outputs: Vec<ProgramOutput> = trials.join_all().await;
    for output in outputs {
        assert_eq!(output.exit_reason, ExitReason::Exited(0));
        assert!(!is_running(&output.stdout));
    }
    assert!(is_running(&kept));
    std::fs::write(folder.path().join("go"), "").unwrap();
    let output = running.finish(&CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::Exited(0));
    assert_eq!(state(&kept), None);
}

#[tokio::test]
async fn zombies_are_reaped_while_the_program_runs() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sh -c 'sh -c \"echo \\$\\$ > orphan\" & exit' > /dev/null 2>&1; \
                  sh -c '(exec sh -c \"echo \\$\\$ > member\") & exit'; \
                  while ! [ -e go ]; do sleep 0.01; done; exit 7";
    let program = program(script, folder.path(), Some(identity("zombies", "a/b/1")));
    let running = start(&program).unwrap();
    for name in ["orphan", "member"] {
        let id = first_line(&folder.path().join(name)).await;
        wait_until(name, || state(&id).is_none()).await;
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    let output = running.finish(&CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::Exited(7), "the status of the program is not lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exit_statuses_of_programs_are_never_lost_to_the_reaper() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let mut trials = tokio::task::JoinSet::new();
    for number in 0..200 {
        let code = number % 100;
        // Each program leaves an orphan that exits at about the same time.
        let script = format!("sh -c '(setsid true) & exit' > /dev/null 2>&1; exit {code}");
        let identity = identity("statuses", &number.to_string());
        let program = program(&script, folder.path(), Some(identity));
        trials.spawn(async move {
            let output = run(&program, &CancellationToken::new()).await.unwrap();
            assert_eq!(output.exit_reason, ExitReason::Exited(code));
        });
    }
    trials.join_all().await;
}

#[tokio::test]
async fn children_started_by_other_code_keep_their_exit_status() {
    assert!(become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh").args(["-c", "exit 5"]).spawn().unwrap();
    let id = child.id().to_string();
    wait_until("exit", || state(&id) == Some('Z')).await;
    for number in 0..3 {
        let program = program("true", folder.path(), Some(identity("other", &number.to_string())));
        run(&program, &CancellationToken::new()).await.unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// Starts its successor in a session of its own and exits, many times; the last one stays. All of them hold the
/// pipe of the first.
const HOPPER: &str = r#"
export HOP='test $1 -gt 0 || exec sleep 600; setsid sh -c "$HOP" sh $(($1 - 1)) &'
echo started
sh -c "$HOP" sh 60
"#;

#[test]
fn process_that_starts_its_successor_and_exits_is_killed() {
    assert!(become_subreaper());
    for attempt in 0..5 {
        let run = unique_run(&format!("hopper-{attempt}"));
        let identity = Identity { run, trial: None, part: None };
        let mut command = Command::new("sh");
        command.args(["-c", HOPPER]).stdout(Stdio::piped());
        let mut leader = command.envs(identity.variables()).spawn().unwrap();
        let mut pipe = BufReader::new(leader.stdout.take().unwrap());
        pipe.read_line(&mut String::new()).unwrap();
        identity.kill();
        leader.wait().unwrap();
        // If no process holds the pipe any more, it is at its end; otherwise the read would block.
        fcntl(pipe.get_ref(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let read = pipe.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Ok(0), "a process is still running, in attempt {attempt}");
    }
}
