//! Persistent workers: replies, failures and replacement.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_agent::{WorkerError, WorkerProgram, Workers};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(60);

fn workers(script: &str, count: usize) -> Workers {
    let command = ["sh", "-c", script].map(Into::into).to_vec();
    let mut program = WorkerProgram::new(command, std::env::temp_dir(), 1 << 20);
    program.environment = BTreeMap::from([("ANSWER".to_owned(), "42".into())]);
    Workers::new(program, NonZeroUsize::new(count).unwrap())
}

async fn request(workers: &Workers, line: &str) -> Result<String, WorkerError> {
    workers.request(line, TIMEOUT, &CancellationToken::new()).await
}

/// Replies to each line with its process id, the number of the line and the line.
const COUNTING: &str = "n=0; while read -r line; do n=$((n+1)); echo \"$$ $n $line\"; done";

fn process_of(reply: &str) -> &str {
    reply.split(' ').next().unwrap()
}

/// Waits until a process has exited; the kernel ends a killed process asynchronously.
async fn wait_for_exit(process: &str) {
    let stat = format!("/proc/{process}/stat");
    let exited = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, exited).await.expect("the process is still running");
}

#[tokio::test]
async fn worker_replies_line_by_line() {
    let workers = workers(COUNTING, 1);
    let (one, two) =
        (request(&workers, "a").await.unwrap(), request(&workers, "b c").await.unwrap());
    assert!(one.ends_with(" 1 a") && two.ends_with(" 2 b c"), "{one} {two}");
    assert_eq!(process_of(&one), process_of(&two));
}

#[tokio::test]
async fn workers_run_concurrently_up_to_their_count() {
    // Each request waits for the file of the other, so one worker alone would never reply.
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd '{}'; while read -r own other; do touch $own; \
         while [ ! -e $other ]; do :; done; echo $ANSWER; done",
        folder.path().display()
    );
    let two = workers(&script, 2);
    let (one, other) = tokio::join!(request(&two, "x y"), request(&two, "y x"));
    assert_eq!((one.unwrap(), other.unwrap()), ("42".to_owned(), "42".to_owned()));
    let one = workers(COUNTING, 1);
    let lines: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let replies = futures_util::future::join_all(lines.iter().map(|n| request(&one, n))).await;
    let processes: std::collections::BTreeSet<String> =
        replies.into_iter().map(|reply| process_of(&reply.unwrap()).to_owned()).collect();
    assert_eq!(processes.len(), 1);
}

#[tokio::test]
async fn long_lines_are_transferred_in_both_directions() {
    let line = "x".repeat(1 << 19);
    assert_eq!(request(&workers("exec cat", 1), &line).await.unwrap(), line);
}

#[tokio::test]
async fn worker_that_exits_reports_its_status_and_is_replaced() {
    let script = "while read -r line; do [ $line = die ] && { echo why >&2; exit 7; }; \
                  echo $$ $line; done";
    let workers = workers(script, 1);
    let first = request(&workers, "a").await.unwrap();
    let error = request(&workers, "die").await.unwrap_err();
    assert!(matches!(&error, WorkerError::Exited { .. }), "{error:?}");
    assert_eq!(error.to_string(), "ended without an answer (exit code 7): why");
    let next = request(&workers, "b").await.unwrap();
    assert_ne!(process_of(&first), process_of(&next));
}

#[tokio::test]
async fn worker_that_exits_while_idle_is_replaced() {
    let workers = workers(COUNTING, 1);
    let first = request(&workers, "a").await.unwrap();
    let process = process_of(&first);
    let killed = std::process::Command::new("kill").args(["-9", process]).status().unwrap();
    assert!(killed.success());
    wait_for_exit(process).await;
    let next = request(&workers, "b").await.unwrap();
    assert_ne!(process_of(&next), process);
}

#[tokio::test]
async fn worker_that_times_out_is_killed_with_its_children_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "while read -r line; do case $line in slow) sleep 600 & echo $! > '{0}/child'; wait;; \
         *) echo $$ $line;; esac; done",
        folder.path().display()
    );
    let workers = workers(&script, 1);
    let first = request(&workers, "a").await.unwrap();
    let cancel = CancellationToken::new();
    let error = workers.request("slow", Duration::from_secs(2), &cancel).await.unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut { .. }), "{error:?}");
    assert_eq!(error.to_string(), "no answer within 2 s");
    wait_for_exit(process_of(&first)).await;
    wait_for_exit(std::fs::read_to_string(folder.path().join("child")).unwrap().trim()).await;
    assert!(request(&workers, "b").await.unwrap().ends_with(" b"));
}

#[tokio::test]
async fn dropping_the_workers_kills_them() {
    let workers = workers(COUNTING, 1);
    let reply = request(&workers, "a").await.unwrap();
    drop(workers);
    wait_for_exit(process_of(&reply)).await;
}

#[tokio::test]
async fn reply_to_a_dropped_request_is_not_used_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "while read -r line; do if [ $line = held ]; then echo > '{0}/read'; \
         while [ ! -e '{0}/go' ]; do :; done; fi; echo $line; done",
        folder.path().display()
    );
    let workers = workers(&script, 1);
    let held = request(&workers, "held");
    let read = folder.path().join("read");
    let is_read = async {
        while !read.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        reply = held => panic!("{reply:?}"),
        () = is_read => {}
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(request(&workers, "next").await.unwrap(), "next");
}

#[tokio::test]
async fn cancelling_ends_the_request() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = workers("exec sleep 600", 1).request("a", TIMEOUT, &cancel).await.unwrap_err();
    assert!(matches!(error, WorkerError::Cancelled), "{error:?}");
}

#[tokio::test]
async fn invalid_replies_are_errors() {
    let program = |script: &str, max_reply_bytes| {
        let command = ["sh", "-c", script].map(Into::into).to_vec();
        WorkerProgram::new(command, std::env::temp_dir(), max_reply_bytes)
    };
    let of = |script: &str| Workers::new(program(script, 100), NonZeroUsize::MIN);
    let endless = request(&of("yes | tr -d '\\n'"), "a").await.unwrap_err();
    assert_eq!(endless.to_string(), "the answer is longer than 100 bytes");
    let binary = request(&of("read line; printf '\\377\\n'; exec cat"), "a").await.unwrap_err();
    assert_eq!(binary.to_string(), "the answer is not UTF-8");
    // An incomplete last line is no reply.
    let torn = request(&of("read line; printf half"), "a").await.unwrap_err();
    assert!(matches!(torn, WorkerError::Exited { .. }), "{torn:?}");
}

#[tokio::test]
async fn worker_that_replies_with_two_lines_is_replaced() {
    let workers = workers("while read -r line; do printf 'one\\ntwo\\n'; done", 1);
    assert_eq!(request(&workers, "a").await.unwrap(), "one");
    assert_eq!(request(&workers, "b").await.unwrap(), "one");
}

#[tokio::test]
async fn full_standard_error_does_not_block_the_reply() {
    let script = "while read -r line; do yes complaint | head -c 300000 >&2; echo $line; done";
    assert_eq!(request(&workers(script, 1), "a").await.unwrap(), "a");
}

#[tokio::test]
async fn missing_program_is_an_error_that_names_it() {
    let program = WorkerProgram::new(vec!["no-such-program".into()], std::env::temp_dir(), 10);
    let error = request(&Workers::new(program, NonZeroUsize::MIN), "a").await.unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
}
