//! Whose program it is. Every program carries the names of its run and trial in its environment, and
//! hands them on to whatever it starts: by them even a process that left the group is found.

use crate::search::Search;
use crate::system::{self, Seen};
use bakeoff_core::ProcessGroup;
use nix::sys::signal::Signal;
use std::collections::HashSet;
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

    /// Asks all that this process has started for it to go. Gives how many there were.
    pub(crate) fn terminate(&self) -> usize {
        let mut search = Search::of(self).of_this_process();
        search.look(|process| signal_one(process, Signal::SIGTERM)).ours.len()
    }

    /// Kills all that this process has started for it, and those that they start meanwhile. Blocks
    /// for a moment.
    pub fn kill(&self) {
        let mut search = Search::of(self).of_this_process();
        let deadline = Instant::now() + BURIAL;
        loop {
            let seen = search.look(|process| signal_one(process, Signal::SIGKILL));
            if seen.is_last || Instant::now() >= deadline {
                return;
            }
            if !seen.ours.is_empty() {
                std::thread::sleep(LOOK);
            }
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
    let mut search = Search::of(&identity).or_in(groups);
    let mut end = |signal: Signal, patience: Duration| {
        let deadline = Instant::now() + patience;
        let mut told: HashSet<(i32, u64)> = HashSet::new();
        loop {
            // Once each: some take the second signal for more than the first.
            let seen = search.look(|process| {
                if told.insert((process.id, process.started)) {
                    signal_one(process, signal);
                }
            });
            if seen.is_last {
                return 0;
            }
            if Instant::now() >= deadline {
                return seen.ours.len();
            }
            if !seen.ours.is_empty() {
                std::thread::sleep(LOOK);
            }
        }
    };
    if end(Signal::SIGTERM, GRACE) == 0 { 0 } else { end(Signal::SIGKILL, BURIAL) }
}
