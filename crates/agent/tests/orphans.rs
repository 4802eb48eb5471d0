//! Termination of the orphans of a killed run, and of no other process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Identity, terminate_orphans};
use bakeoff_core::ProcessGroup;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process that runs until it is killed; killed with its group at the end of the test.
struct Sleeper {
    leader: Child,
    /// The process id that it printed first.
    id: i32,
}

impl Sleeper {
    /// Starts a script that prints a process id when it is ready.
    fn start(script: &str, run: Option<&str>) -> Sleeper {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        if let Some(run) = run {
            let identity = Identity { run: run.to_owned(), trial: None, part: None };
            command.envs(identity.variables());
        }
        let mut leader = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Sleeper { leader, id: line.trim().parse().unwrap() }
    }

    fn group(&self) -> ProcessGroup {
        let id = i32::try_from(self.leader.id()).unwrap();
        ProcessGroup { id, started: started(id).unwrap_or_default() }
    }

    fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(i32::try_from(self.leader.id()).unwrap());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.id),
            nix::sys::signal::Signal::SIGKILL,
        );
        let _ = self.leader.wait();
    }
}

fn started(id: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 600; done";

/// A child in the group of a leader that has exited.
const ORPHAN: &str = "sh -c 'trap \"\" TERM; echo $$; exec sleep 600' & exit";

/// Returns a run id that no other test and no other test process uses.
fn unique_run(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn group_with_the_same_leader_is_terminated() {
    let orphan = Sleeper::start(STUBBORN, None);
    assert_eq!(terminate_orphans(&unique_run("same"), &[orphan.group()]), 0);
    assert!(!orphan.is_running());
}

#[test]
fn group_with_a_reused_id_is_not_terminated() {
    let other = Sleeper::start(STUBBORN, None);
    let group = ProcessGroup { started: other.group().started + 1, ..other.group() };
    assert_eq!(terminate_orphans(&unique_run("later"), &[group]), 0);
    assert!(other.is_running());
}

#[test]
fn group_without_leader_is_terminated_only_if_a_member_carries_the_run() {
    let run = unique_run("orphan");
    for (carried, is_terminated) in
        [(Some(run.as_str()), true), (None, false), (Some("other"), false)]
    {
        let mut orphan = Sleeper::start(ORPHAN, carried);
        let group = orphan.group();
        orphan.leader.wait().unwrap();
        assert_eq!(terminate_orphans(&run, &[group]), 0);
        assert_eq!(!orphan.is_running(), is_terminated, "{carried:?}");
    }
}

#[test]
fn member_without_environment_is_terminated_with_its_group() {
    let run = unique_run("mixed");
    // The first child carries the run, the second does not; the leader has exited.
    let script = "sleep 600 > /dev/null & env -i sh -c 'echo $$; exec sleep 600' & exit";
    let mut orphan = Sleeper::start(script, Some(&run));
    let group = orphan.group();
    orphan.leader.wait().unwrap();
    assert_eq!(terminate_orphans(&run, &[group]), 0);
    assert!(!orphan.is_running());
}

#[test]
fn process_that_carries_the_run_is_terminated_in_any_group_and_session() {
    let run = unique_run("anywhere");
    let marked = Sleeper::start(STUBBORN, Some(&run));
    let escaped = Sleeper::start("setsid sh -c 'echo $$; exec sleep 600' & wait", Some(&run));
    let longer = Sleeper::start(STUBBORN, Some(&format!("{run}-2")));
    let unmarked = Sleeper::start(STUBBORN, None);
    assert_eq!(terminate_orphans(&run, &[]), 0);
    let running = [&marked, &escaped, &longer, &unmarked].map(Sleeper::is_running);
    assert_eq!(running, [false, false, true, true]);
}

#[test]
fn own_group_and_special_group_ids_are_not_terminated() {
    let own = nix::unistd::getpgrp().as_raw();
    let groups = [-1, 0, 1, own].map(|id| ProcessGroup { id, started: started(id).unwrap_or(0) });
    assert_eq!(terminate_orphans(&unique_run("own"), &groups), 0);
}
