//! Child processes of programs in a process that is no subreaper: those in the process group and those whose
//! ancestors are running are killed.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{ExitReason, Identity, Program, run, start};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn program(script: &str, folder: &Path) -> Program {
    let run = format!("library-{}", std::process::id());
    Program::new(
        ["sh", "-c", script].map(Into::into).to_vec(),
        folder.to_owned(),
        Duration::from_secs(60),
        1 << 20,
    )
    .identity(Identity { run, trial: Some("a/b/1".to_owned()), part: None })
}

async fn wait_for_exit(id: &str) {
    let stat = format!("/proc/{}/stat", id.trim());
    let exited = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), exited).await.expect("still running");
}

/// Ignores SIGTERM in a session of its own, without the identity.
const ESCAPED: &str = "setsid env -i PATH=\"$PATH\" sh -c 'trap \"\" TERM; echo $$; while :; do sleep 600; done' & wait";

#[tokio::test]
async fn child_that_left_the_group_is_killed_when_the_program_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(ESCAPED, folder.path());
    let cancel = CancellationToken::new();
    let running = start(&program).unwrap();
    let mut on_stdout = |_: &[u8]| cancel.cancel();
    let output = running.finish(&cancel, &mut on_stdout).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::Cancelled);
    wait_for_exit(&output.stdout).await;
}

#[tokio::test]
async fn child_that_left_the_group_is_killed_when_the_program_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("child");
    let script = ESCAPED.replace("echo $$", &format!("echo $$ > {}", file.display()));
    let program = program(&script, folder.path());
    let running = start(&program).unwrap();
    let id = || std::fs::read_to_string(&file).unwrap_or_default();
    while !id().ends_with('\n') {
        tokio::task::yield_now().await;
    }
    drop(running);
    wait_for_exit(&id()).await;
}

#[tokio::test]
async fn child_in_the_group_is_killed_when_the_program_exits() {
    let folder = tempfile::tempdir().unwrap();
    let program = program("sleep 600 & echo $!", folder.path());
    let output = run(&program, &CancellationToken::new()).await.unwrap();
    assert_eq!(output.exit_reason, ExitReason::Exited(0));
    wait_for_exit(&output.stdout).await;
}
