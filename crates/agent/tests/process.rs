//! Programs that behave and programs that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Ended, Finished, Program, ProgramError, run};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn shell(script: &str, input: &str) -> Program {
    Program {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        input: input.to_owned(),
        folder: std::env::temp_dir(),
        environment: BTreeMap::from([("ANSWER".to_owned(), "42".into())]),
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
    assert_eq!(done.stderr, "\u{fffd}");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_and_its_output_kept() {
    let program =
        Program { timeout: Duration::from_secs(2), ..shell("echo begun; exec sleep 600", "") };
    let done = finished(&program).await;
    assert_eq!((done.stdout.as_str(), done.ended), ("begun\n", Ended::TimedOut));
}

#[tokio::test]
async fn children_that_outlive_the_program_are_ended() {
    let done = finished(&shell("sleep 600 & echo $!", "")).await;
    let stat = format!("/proc/{}/stat", done.stdout.trim());
    // A killed process goes when the kernel gets to it; then it is gone or waits to be buried.
    let gone = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("the child lives on");
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
