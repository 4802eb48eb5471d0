//! Programs that behave and programs that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Ended, Finished, Identity, Program, ProgramError, run, start};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn shell(script: &str, input: &str) -> Program {
    Program {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        input: input.to_owned(),
        folder: std::env::temp_dir(),
        environment: BTreeMap::from([("ANSWER".to_owned(), "42".into())]),
        identity: None,
        timeout: Duration::from_secs(60),
        most_output: 1 << 20,
    }
}

async fn finished(program: &Program) -> Finished {
    run(program, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn the_prompt_goes_in_and_the_answer_comes_out() {
    let done = finished(&shell("cat; echo $ANSWER; echo oops >&2; exit 3", "hello ")).await;
    assert_eq!(done.stdout, "hello 42\n");
    assert_eq!(done.stderr, "oops\n");
    assert_eq!(done.ended, Ended::Exited(3));
}

#[tokio::test]
async fn long_prompts_and_answers_do_not_wait_for_each_other() {
    let prompt = "x".repeat(1 << 20);
    assert_eq!(finished(&shell("cat", &prompt)).await.stdout.len(), prompt.len());
}

#[tokio::test]
async fn a_program_that_does_not_read_its_prompt_is_fine() {
    let done = finished(&shell("exec <&-; echo ok", &"x".repeat(1 << 20))).await;
    assert_eq!(done.stdout, "ok\n");
}

#[tokio::test]
async fn output_beyond_the_cap_is_counted_and_not_kept() {
    let program = Program { most_output: 5, ..shell("printf 0123456789; printf '\\377' >&2", "") };
    let done = finished(&program).await;
    assert_eq!((done.stdout.as_str(), done.dropped_bytes), ("01234", 5));
    assert_eq!(done.dropped_stdout_bytes, 5);
    assert_eq!(done.stderr, "\u{fffd}");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_and_its_output_kept() {
    let program =
        Program { timeout: Duration::from_secs(2), ..shell("echo begun; exec sleep 600", "") };
    let done = finished(&program).await;
    assert_eq!((done.stdout.as_str(), done.ended), ("begun\n", Ended::TimedOut));
}

/// Runs a program until its first word, and ends it then.
async fn interrupted(program: &Program) -> Finished {
    let cancel = CancellationToken::new();
    let running = start(program).unwrap();
    let finish = running.finish(&cancel, |_| cancel.cancel());
    tokio::time::timeout(Duration::from_secs(30), finish).await.unwrap().unwrap()
}

/// Waits until a process is gone: a killed one goes when the kernel gets to it, and is then gone or
/// waits to be buried.
async fn gone(id: &str) {
    let stat = format!("/proc/{}/stat", id.trim());
    let gone = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("the child lives on");
}

#[tokio::test]
async fn children_that_outlive_the_program_are_ended() {
    let done = finished(&shell("sleep 600 & echo $!", "")).await;
    gone(&done.stdout).await;
}

#[tokio::test]
async fn a_child_that_ignores_the_request_to_end_is_killed_and_holds_nothing_up() {
    // The child has the pipe and is left alone by the leader, which ends when it is asked to.
    let script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 600; done' & wait";
    let done = interrupted(&shell(script, "")).await;
    assert_eq!(done.ended, Ended::Cancelled);
    gone(&done.stdout).await;
}

#[tokio::test]
async fn children_may_tidy_up_when_they_are_asked_to_end() {
    let script = "trap : TERM; (trap 'echo tidied; exit' TERM; echo ready; while :; do sleep 0.01; done) & \
                  wait; exit 0";
    let done = interrupted(&shell(script, "")).await;
    assert_eq!((done.stdout.as_str(), done.ended), ("ready\ntidied\n", Ended::Cancelled));
}

fn named(script: &str) -> Program {
    let unique = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let identity = Identity { run: unique, trial: Some("a/b/1".to_owned()), part: None };
    Program { identity: Some(identity), ..shell(script, "") }
}

#[tokio::test]
async fn a_program_knows_its_run_and_trial() {
    let program = named("echo $BAKEOFF_TRIAL_ID; echo $BAKEOFF_RUN_ID");
    let run = program.identity.as_ref().unwrap().run.clone();
    assert_eq!(finished(&program).await.stdout, format!("a/b/1\n{run}\n"));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn children_that_left_the_group_are_ended_too() {
    // With the pipe in its hands, and the signal ignored; the leader waits until it is there.
    let hide = "trap \"\" TERM; echo $$; exec sleep 600";
    let script = format!("mkfifo p$$; setsid sh -c '{hide}' | tee p$$ & read id < p$$; rm p$$");
    let folder = tempfile::tempdir().unwrap();
    let here = |script: &str| Program { folder: folder.path().to_owned(), ..named(script) };
    let done = [
        finished(&here(&script)).await,
        interrupted(&here(&format!("{script}; exec sleep 600"))).await,
    ];
    assert_eq!(done.each_ref().map(|done| done.ended), [Ended::Exited(0), Ended::Cancelled]);
    for done in done {
        gone(&done.stdout).await;
    }
}

#[tokio::test]
async fn the_group_is_known_before_the_program_ends() {
    let program = shell("ps -o pgid= -p $$ | tr -d ' '", "");
    let running = start(&program).unwrap();
    let group = running.group().unwrap();
    assert_eq!(group.started > 0, cfg!(target_os = "linux"));
    let done = running.finish(&CancellationToken::new(), |_| {}).await.unwrap();
    assert_eq!(done.stdout.trim(), group.id.to_string());
}

#[tokio::test]
async fn dropping_a_program_kills_it() {
    let program = shell("exec sleep 600", "");
    let running = start(&program).unwrap();
    let id = running.group().unwrap().id;
    drop(running);
    gone(&id.to_string()).await;
}

#[tokio::test]
async fn a_gigabyte_is_read_counted_and_not_kept() {
    let program = Program { most_output: 1000, ..shell("head -c 1073741824 /dev/zero", "") };
    let mut heard = 0_u64;
    let done = start(&program)
        .unwrap()
        .finish(&CancellationToken::new(), |piece| heard += piece.len() as u64)
        .await
        .unwrap();
    assert_eq!((done.stdout.len(), done.dropped_bytes), (1000, (1 << 30) - 1000));
    assert_eq!(heard, 1 << 30);
}

#[tokio::test]
async fn cancelling_ends_the_program() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = run(&shell("exec sleep 600", ""), &cancel).await.unwrap();
    assert_eq!(done.ended, Ended::Cancelled);
}

#[tokio::test]
async fn a_missing_program_is_an_error_that_names_it() {
    let mut program = shell("", "");
    program.command = vec!["no-such-program".into()];
    let error = run(&program, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, ProgramError::Start { .. }));
    assert!(error.to_string().contains("no-such-program"), "{error}");
    assert!(!error.is_exhaustion());
}
