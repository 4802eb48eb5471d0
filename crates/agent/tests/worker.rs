//! Workers that answer, and workers that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_agent::{WorkerError, WorkerProgram, Workers};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(60);

fn workers(script: &str, count: usize) -> Workers {
    let program = WorkerProgram {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        folder: std::env::temp_dir(),
        environment: BTreeMap::from([("ANSWER".to_owned(), "42".into())]),
        most_answer: 1 << 20,
    };
    Workers::new(program, NonZeroUsize::new(count).unwrap())
}

async fn ask(workers: &Workers, question: &str) -> Result<String, WorkerError> {
    workers.ask(question, LONG, &CancellationToken::new()).await
}

/// Answers each line with its process id, the line's number and the line.
const COUNTING: &str = "n=0; while read -r line; do n=$((n+1)); echo \"$$ $n $line\"; done";

fn process_of(answer: &str) -> &str {
    answer.split(' ').next().unwrap()
}

/// A killed process goes when the kernel gets to it; then it is gone or waits to be buried.
async fn gone(process: &str) {
    let stat = format!("/proc/{process}/stat");
    let gone = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("the process lives on");
}

#[tokio::test]
async fn one_worker_answers_line_by_line() {
    let workers = workers(COUNTING, 1);
    let (one, two) = (ask(&workers, "a").await.unwrap(), ask(&workers, "b c").await.unwrap());
    assert!(one.ends_with(" 1 a") && two.ends_with(" 2 b c"), "{one} {two}");
    assert_eq!(process_of(&one), process_of(&two));
}

#[tokio::test]
async fn as_many_work_at_once_as_there_are() {
    // Each waits for the other's file, so that one alone would never answer.
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd '{}'; while read -r own other; do touch $own; \
         while [ ! -e $other ]; do :; done; echo $ANSWER; done",
        folder.path().display()
    );
    let two = workers(&script, 2);
    let (one, other) = tokio::join!(ask(&two, "x y"), ask(&two, "y x"));
    assert_eq!((one.unwrap(), other.unwrap()), ("42".to_owned(), "42".to_owned()));
    let one = workers(COUNTING, 1);
    let asked: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let answers = futures_util::future::join_all(asked.iter().map(|n| ask(&one, n))).await;
    let processes: std::collections::BTreeSet<String> =
        answers.into_iter().map(|answer| process_of(&answer.unwrap()).to_owned()).collect();
    assert_eq!(processes.len(), 1);
}

#[tokio::test]
async fn long_lines_go_both_ways() {
    let line = "x".repeat(1 << 19);
    assert_eq!(ask(&workers("exec cat", 1), &line).await.unwrap(), line);
}

#[tokio::test]
async fn one_that_dies_says_how_and_is_replaced() {
    let script = "while read -r line; do [ $line = die ] && { echo why >&2; exit 7; }; \
                  echo $$ $line; done";
    let workers = workers(script, 1);
    let first = ask(&workers, "a").await.unwrap();
    let error = ask(&workers, "die").await.unwrap_err();
    assert!(matches!(&error, WorkerError::Died { .. }), "{error:?}");
    assert_eq!(error.to_string(), "ended without an answer (exit code 7): why");
    let next = ask(&workers, "b").await.unwrap();
    assert_ne!(process_of(&first), process_of(&next));
}

#[tokio::test]
async fn one_that_died_while_it_waited_is_replaced() {
    let workers = workers(COUNTING, 1);
    let first = ask(&workers, "a").await.unwrap();
    let process = process_of(&first);
    let killed = std::process::Command::new("kill").args(["-9", process]).status().unwrap();
    assert!(killed.success());
    gone(process).await;
    let next = ask(&workers, "b").await.unwrap();
    assert_ne!(process_of(&next), process);
}

#[tokio::test]
async fn one_that_takes_too_long_is_killed_with_its_children_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "while read -r line; do case $line in slow) sleep 600 & echo $! > '{0}/child'; wait;; \
         *) echo $$ $line;; esac; done",
        folder.path().display()
    );
    let workers = workers(&script, 1);
    let first = ask(&workers, "a").await.unwrap();
    let cancel = CancellationToken::new();
    let error = workers.ask("slow", Duration::from_secs(2), &cancel).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { .. }), "{error:?}");
    assert_eq!(error.to_string(), "no answer within 2 s");
    gone(process_of(&first)).await;
    gone(std::fs::read_to_string(folder.path().join("child")).unwrap().trim()).await;
    assert!(ask(&workers, "b").await.unwrap().ends_with(" b"));
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let workers = workers(COUNTING, 1);
    let answer = ask(&workers, "a").await.unwrap();
    drop(workers);
    gone(process_of(&answer)).await;
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_does_not_answer_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "while read -r line; do if [ $line = held ]; then echo > '{0}/read'; \
         while [ ! -e '{0}/go' ]; do :; done; fi; echo $line; done",
        folder.path().display()
    );
    let workers = workers(&script, 1);
    let held = ask(&workers, "held");
    let read = folder.path().join("read");
    let seen = async {
        while !read.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = held => panic!("{answer:?}"),
        () = seen => {}
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(ask(&workers, "next").await.unwrap(), "next");
}

#[tokio::test]
async fn cancelling_ends_the_wait() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = workers("exec sleep 600", 1).ask("a", LONG, &cancel).await.unwrap_err();
    assert!(matches!(error, WorkerError::Cancelled), "{error:?}");
}

#[tokio::test]
async fn answers_that_cannot_be_used_are_errors() {
    let program = |script: &str, most_answer| WorkerProgram {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        folder: std::env::temp_dir(),
        environment: BTreeMap::new(),
        most_answer,
    };
    let of = |script: &str| Workers::new(program(script, 100), NonZeroUsize::MIN);
    let endless = ask(&of("yes | tr -d '\\n'"), "a").await.unwrap_err();
    assert_eq!(endless.to_string(), "the answer is longer than 100 bytes");
    let binary = ask(&of("read line; printf '\\377\\n'; exec cat"), "a").await.unwrap_err();
    assert_eq!(binary.to_string(), "the answer is not UTF-8");
    // Half a line at the end is no answer.
    let torn = ask(&of("read line; printf half"), "a").await.unwrap_err();
    assert!(matches!(torn, WorkerError::Died { .. }), "{torn:?}");
}

#[tokio::test]
async fn one_that_says_too_much_is_replaced() {
    let workers = workers("while read -r line; do printf 'one\\ntwo\\n'; done", 1);
    assert_eq!(ask(&workers, "a").await.unwrap(), "one");
    assert_eq!(ask(&workers, "b").await.unwrap(), "one");
}

#[tokio::test]
async fn complaints_do_not_hold_up_the_answer() {
    let script = "while read -r line; do yes complaint | head -c 300000 >&2; echo $line; done";
    assert_eq!(ask(&workers(script, 1), "a").await.unwrap(), "a");
}

#[tokio::test]
async fn a_missing_program_is_an_error_that_names_it() {
    let program = WorkerProgram {
        command: vec!["no-such-program".into()],
        folder: std::env::temp_dir(),
        environment: BTreeMap::new(),
        most_answer: 10,
    };
    let error = ask(&Workers::new(program, NonZeroUsize::MIN), "a").await.unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
}
