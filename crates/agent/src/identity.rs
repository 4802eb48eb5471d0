//! Whose program it is. Every program carries the names of its run and trial in its environment, and
//! hands them on to whatever it starts: by them even a process that left the group is found.

use crate::group::Group;
use crate::system::{self, Seen};
use bakeoff_core::ProcessGroup;
use nix::sys::signal::Signal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The environment variable with the run's id.
pub const RUN_VARIABLE: &str = "BAKEOFF_RUN_ID";

/// The environment variable with the trial's id.
pub const TRIAL_VARIABLE: &str = "BAKEOFF_TRIAL_ID";

/// The environment variable that tells the programs of one trial apart.
pub const PART_VARIABLE: &str = "BAKEOFF_PART_ID";

/// How long programs that were left behind may take to go after they were asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long it may take until processes that were killed are gone.
const BURIAL: Duration = Duration::from_secs(5);

/// How often it is looked whether they are gone.
const LOOK: Duration = Duration::from_millis(10);

/// Parts so far. Those of a process that has died are not taken for its successor's: the successor
/// ends them before it starts anything.
static PARTS: AtomicU64 = AtomicU64::new(1);

/// Whose program it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The run's id.
    pub run: String,
    /// The trial's id; absent for programs that serve several.
    pub trial: Option<String>,
    /// Which of the trial's programs it is; absent when there is only one, and when all are meant.
    pub part: Option<String>,
}

impl Identity {
    /// The environment variables that say so.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        // A zero byte ends a variable, and none can be given on.
        let clean = |text: &str| text.replace('\0', "\u{fffd}");
        let trial = self.trial.as_deref().map(|trial| (TRIAL_VARIABLE, clean(trial)));
        let part = self.part.as_deref().map(|part| (PART_VARIABLE, clean(part)));
        [(RUN_VARIABLE, clean(&self.run))].into_iter().chain(trial).chain(part)
    }

    /// The same with a part of its own, so that it can be ended without the others.
    #[must_use]
    pub fn of_next_part(&self) -> Identity {
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        Identity { part: Some(number.to_string()), ..self.clone() }
    }

    /// Living processes that were started with these variables; never this one, nor who started it.
    pub(crate) fn processes(&self) -> Vec<Seen> {
        let wanted: Vec<String> =
            self.variables().map(|(name, value)| format!("{name}={value}")).collect();
        let own = system::ancestors();
        let mut processes = system::all();
        processes
            .retain(|process| !own.contains(&process.id) && system::was_given(process, &wanted));
        processes
    }

    /// Asks all of them to go. Gives how many there were.
    pub(crate) fn terminate(&self) -> usize {
        let processes = self.processes();
        processes.iter().for_each(|process| signal_one(process, Signal::SIGTERM));
        processes.len()
    }

    /// Kills all of them, and those that they start meanwhile. Blocks for a moment.
    pub fn kill(&self) {
        let deadline = Instant::now() + BURIAL;
        loop {
            let processes = self.processes();
            processes.iter().for_each(|process| signal_one(process, Signal::SIGKILL));
            if processes.is_empty() || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Signals the process that was seen, and no other that got its number since.
fn signal_one(process: &Seen, signal: Signal) {
    if system::look(process.id).is_some_and(|now| now.started == process.started) {
        // Fails when it has gone, which is what we want.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process.id), signal);
    }
}

/// Ends what an earlier process of a run has left behind: the groups that it started, as far as they
/// are still the same, and every process that was started with the run's id. Waits until they are
/// gone, a few seconds at most; then says how many are not.
pub fn end_left_behind(run: &str, groups: &[ProcessGroup]) -> usize {
    let identity = Identity { run: run.to_owned(), trial: None, part: None };
    let left = || {
        let mut left = identity.processes();
        let all = system::all();
        for group in groups {
            let members = || all.iter().filter(|process| process.group == group.id);
            let leader = all.iter().find(|process| process.id == group.id);
            let is_ours = match leader {
                // The number may have been given to another one since.
                Some(leader) => leader.started == group.started,
                // A group's number is not given away as long as it has members; but it may have
                // had none for a while.
                None => members().any(|member| left.contains(member)),
            };
            if is_ours && Group::is_foreign(group.id) {
                let more: Vec<Seen> =
                    members().filter(|one| !left.contains(one)).copied().collect();
                left.extend(more);
            }
        }
        left
    };
    let end = |signal: Signal, patience: Duration| {
        let deadline = Instant::now() + patience;
        let mut told: Vec<Seen> = Vec::new();
        loop {
            let remaining = left();
            if remaining.is_empty() {
                return 0;
            }
            // Once each: some take the second signal for more than the first.
            let new: Vec<Seen> =
                remaining.iter().filter(|process| !told.contains(process)).copied().collect();
            new.iter().for_each(|process| signal_one(process, signal));
            told.extend(new);
            if Instant::now() >= deadline {
                return remaining.len();
            }
            std::thread::sleep(LOOK);
        }
    };
    if end(Signal::SIGTERM, GRACE) == 0 { 0 } else { end(Signal::SIGKILL, BURIAL) }
}
