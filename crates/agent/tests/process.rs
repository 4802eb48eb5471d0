//! Execution of external programs: output, exit reasons, timeouts and child processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{
    ExitReason, Identity, Program, ProgramError, ProgramOutput, become_subreaper, run, start,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn shell(script: &str, input: &str) -> Program {
    Program::new(
        ["sh", "-c", script].map(Into::into).to_vec(),
        std::env::temp_dir(),
        Duration::from_secs(60),
        1 << 20,
    )
    .input(input.to_owned())
    .environment(BTreeMap::from([("ANSWER".to_owned(), "42".into())]))
}

async fn run_to_end(program: &Program) -> ProgramOutput {
    run(program, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn input_is_written_and_outputs_are_captured() {
    let done = run_to_end(&shell("cat; echo $ANSWER; echo oops >&2; exit 3", "hello ")).await;
    assert_eq!(done.stdout, "hello 42\n");
    assert_eq!(done.stderr, "oops\n");
    assert_eq!(done.exit_reason, ExitReason::Exited(3));
}

#[tokio::test]
async fn long_input_and_output_do_not_deadlock() {
    let prompt = "x".repeat(1 << 20);
    assert_eq!(run_to_end(&shell("cat", &prompt)).await.stdout.len(), prompt.len());
}

#[tokio::test]
async fn program_may_close_its_input() {
    let done = run_to_end(&shell("exec <&-; echo ok", &"x".repeat(1 << 20))).await;
    assert_eq!(done.stdout, "ok\n");
}

#[tokio::test]
async fn output_beyond_the_limit_is_counted_and_dropped() {
    let mut program = shell("printf 0123456789; printf '\\377' >&2", "");
    program.max_output_bytes = 5;
    let done = run_to_end(&program).await;
    assert_eq!((done.stdout.as_str(), done.dropped_bytes), ("01234", 5));
    assert_eq!(done.dropped_stdout_bytes, 5);
    assert_eq!(done.stderr, "\u{fffd}");
}

#[tokio::test]
async fn program_that_times_out_is_terminated_and_its_output_kept() {
    let mut program = shell("echo started; exec sleep 600", "");
    program.timeout = Duration::from_secs(2);
    let done = run_to_end(&program).await;
    assert_eq!((done.stdout.as_str(), done.exit_reason), ("started\n", ExitReason::TimedOut));
}

/// Runs a program until its first output and cancels it then.
async fn run_until_output(program: &Program) -> ProgramOutput {
    let cancel = CancellationToken::new();
    let running = start(program).unwrap();
    let mut on_stdout = |_: &[u8]| cancel.cancel();
    let finish = running.finish(&cancel, &mut on_stdout);
    tokio::time::timeout(Duration::from_secs(30), finish).await.unwrap().unwrap()
}

/// Waits until a process has exited; the kernel ends a killed process asynchronously.
async fn wait_for_exit(id: &str) {
    let stat = format!("/proc/{}/stat", id.trim());
    let exited = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), exited)
        .await
        .expect("the process is still running");
}

#[tokio::test]
async fn child_that_outlives_the_program_is_killed() {
    let done = run_to_end(&shell("sleep 600 & echo $!", "")).await;
    wait_for_exit(&done.stdout).await;
}

#[tokio::test]
async fn child_that_ignores_sigterm_is_killed_and_does_not_block() {
    // The child holds the pipe. Its parent exits on SIGTERM without waiting for it.
    let script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 600; done' & wait";
    let done = run_until_output(&shell(script, "")).await;
    assert_eq!(done.exit_reason, ExitReason::Cancelled);
    wait_for_exit(&done.stdout).await;
}

#[tokio::test]
async fn child_may_clean_up_on_sigterm() {
    let script = "trap : TERM; (trap 'echo cleaned; exit' TERM; echo ready; while :; do sleep 0.01; done) & \
                  wait; exit 0";
    let done = run_until_output(&shell(script, "")).await;
    assert_eq!(
        (done.stdout.as_str(), done.exit_reason),
        ("ready\ncleaned\n", ExitReason::Cancelled)
    );
}

fn marked(script: &str) -> Program {
    let unique = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let identity = Identity { run: unique, trial: Some("a/b/1".to_owned()), part: None };
    shell(script, "").identity(identity)
}

#[tokio::test]
async fn program_gets_its_run_and_trial_as_variables() {
    let program = marked("echo $BAKEOFF_TRIAL_ID; echo $BAKEOFF_RUN_ID");
    let run = program.identity.as_ref().unwrap().run.clone();
    assert_eq!(run_to_end(&program).await.stdout, format!("a/b/1\n{run}\n"));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn child_that_left_the_group_is_killed() {
    assert!(become_subreaper());
    // The child holds the pipe and ignores SIGTERM; the program waits until it has started.
    let hide = "trap \"\" TERM; echo $$; exec sleep 600";
    let script = format!("mkfifo p$$; setsid sh -c '{hide}' | tee p$$ & read id < p$$; rm p$$");
    let folder = tempfile::tempdir().unwrap();
    let here = |script: &str| {
        let mut program = marked(script);
        program.folder = folder.path().to_owned();
        program
    };
    let done = [
        run_to_end(&here(&script)).await,
        run_until_output(&here(&format!("{script}; exec sleep 600"))).await,
    ];
    assert_eq!(
        done.each_ref().map(|done| done.exit_reason),
        [ExitReason::Exited(0), ExitReason::Cancelled]
    );
    for done in done {
        wait_for_exit(&done.stdout).await;
    }
}

#[tokio::test]
async fn group_is_known_before_the_program_ends() {
    let program = shell("ps -o pgid= -p $$ | tr -d ' '", "");
    let running = start(&program).unwrap();
    let group = running.group().unwrap();
    assert_eq!(group.started > 0, cfg!(target_os = "linux"));
    let done = running.finish(&CancellationToken::new(), &mut |_| {}).await.unwrap();
    assert_eq!(done.stdout.trim(), group.id.to_string());
}

#[tokio::test]
async fn dropping_a_program_kills_it() {
    let program = shell("exec sleep 600", "");
    let running = start(&program).unwrap();
    let id = running.group().unwrap().id;
    drop(running);
    wait_for_exit(&id.to_string()).await;
}

#[tokio::test]
async fn gigabyte_of_output_is_counted_and_dropped() {
    let mut program = shell("head -c 1073741824 /dev/zero", "");
    program.max_output_bytes = 1000;
    let mut received = 0_u64;
    let done = start(&program)
        .unwrap()
        .finish(&CancellationToken::new(), &mut |piece| received += piece.len() as u64)
        .await
        .unwrap();
    assert_eq!((done.stdout.len(), done.dropped_bytes), (1000, (1 << 30) - 1000));
    assert_eq!(received, 1 << 30);
}

#[tokio::test]
async fn cancelling_terminates_the_program() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = run(&shell("exec sleep 600", ""), &cancel).await.unwrap();
    assert_eq!(done.exit_reason, ExitReason::Cancelled);
}

#[tokio::test]
async fn missing_program_is_an_error_that_names_it() {
    let mut program = shell("", "");
    program.command = vec!["no-such-program".into()];
    let error = run(&program, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, ProgramError::Start { .. }));
    assert!(error.to_string().contains("no-such-program"), "{error}");
    assert!(!error.is_exhaustion());
}
