//! Ending what a killed run has left behind, and nothing else.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{Identity, end_left_behind};
use bakeoff_core::ProcessGroup;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process that lives until it is ended; killed with its group at the end of the test.
struct Sleeper {
    leader: Child,
    /// What it printed first: the id of a process.
    id: i32,
}

impl Sleeper {
    /// The script prints an id when it is ready.
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

    fn lives(&self) -> bool {
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

/// Ignores the request to end.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 600; done";

/// A child in the group of a leader that has gone.
const ORPHAN: &str = "sh -c 'trap \"\" TERM; echo $$; exec sleep 600' & exit";

/// A name that no other test and no other run uses.
fn run(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn groups_whose_leader_is_the_same_are_ended() {
    let left = Sleeper::start(STUBBORN, None);
    assert_eq!(end_left_behind(&run("same"), &[left.group()]), 0);
    assert!(!left.lives());
}

#[test]
fn a_later_group_with_the_same_number_is_left_alone() {
    let other = Sleeper::start(STUBBORN, None);
    let group = ProcessGroup { started: other.group().started + 1, ..other.group() };
    assert_eq!(end_left_behind(&run("later"), &[group]), 0);
    assert!(other.lives());
}

#[test]
fn without_a_leader_a_member_must_carry_the_run() {
    let run = run("orphan");
    for (carried, ended) in [(Some(run.as_str()), true), (None, false), (Some("other"), false)] {
        let mut orphan = Sleeper::start(ORPHAN, carried);
        let group = orphan.group();
        orphan.leader.wait().unwrap();
        assert_eq!(end_left_behind(&run, &[group]), 0);
        assert_eq!(!orphan.lives(), ended, "{carried:?}");
    }
}

#[test]
fn members_that_dropped_their_environment_go_with_their_group() {
    let run = run("mixed");
    // The first one carries the run, the second does not; the leader has gone.
    let script = "sleep 600 > /dev/null & env -i sh -c 'echo $$; exec sleep 600' & exit";
    let mut left = Sleeper::start(script, Some(&run));
    let group = left.group();
    left.leader.wait().unwrap();
    assert_eq!(end_left_behind(&run, &[group]), 0);
    assert!(!left.lives());
}

#[test]
fn processes_that_carry_the_run_are_ended_wherever_they_are() {
    let run = run("anywhere");
    let mine = Sleeper::start(STUBBORN, Some(&run));
    let escaped = Sleeper::start("setsid sh -c 'echo $$; exec sleep 600' & wait", Some(&run));
    let longer = Sleeper::start(STUBBORN, Some(&format!("{run}-2")));
    let nobody = Sleeper::start(STUBBORN, None);
    assert_eq!(end_left_behind(&run, &[]), 0);
    let lives = [&mine, &escaped, &longer, &nobody].map(Sleeper::lives);
    assert_eq!(lives, [false, false, true, true]);
}

#[test]
fn neither_everybody_nor_ourselves_are_a_group_to_end() {
    let own = nix::unistd::getpgrp().as_raw();
    let groups = [-1, 0, 1, own].map(|id| ProcessGroup { id, started: started(id).unwrap_or(0) });
    assert_eq!(end_left_behind(&run("nobody"), &groups), 0);
}

/// Starts its successor in a session of its own and goes, many times; the last one stays. All of them
/// hold the pipe that it was started with.
const HOPPER: &str = r#"
export HOP='test $1 -gt 0 || exec sleep 600; setsid sh -c "$HOP" sh $(($1 - 1)) &'
echo started
sh -c "$HOP" sh 60
"#;

#[test]
fn one_that_starts_its_successor_and_goes_is_caught() {
    for attempt in 0..5 {
        let identity = Identity { run: run(&format!("hopper-{attempt}")), trial: None, part: None };
        let mut command = Command::new("sh");
        command.args(["-c", HOPPER]).process_group(0).stdout(Stdio::piped());
        let mut leader = command.envs(identity.variables()).spawn().unwrap();
        let mut held = BufReader::new(leader.stdout.take().unwrap());
        held.read_line(&mut String::new()).unwrap();
        identity.kill();
        leader.wait().unwrap();
        // A pipe that nobody holds any more is at its end; another one would have to be waited for.
        fcntl(held.get_ref(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let read = held.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Ok(0), "somebody lives, in attempt {attempt}");
    }
}
