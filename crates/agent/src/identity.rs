//! The owner of a program: environment variables that name its run and trial. Child processes inherit them, so
//! a process that has left the process group of its program can still be recognised.

use crate::scan::{DescendantScan, EXEC_TIMEOUT, ProcessKey, ProcessScan, send_signal};
use crate::tree::{KILL_TIMEOUT, wait_until_complete};
use bakeoff_core::ProcessGroup;
use nix::sys::signal::Signal;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable with the id of the run.
pub const RUN_VARIABLE: &str = "BAKEOFF_RUN_ID";

/// Environment variable with the id of the trial.
pub const TRIAL_VARIABLE: &str = "BAKEOFF_TRIAL_ID";

/// Environment variable that distinguishes the programs of one trial.
pub const PART_VARIABLE: &str = "BAKEOFF_PART_ID";

/// How long orphans may take to exit after SIGTERM.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two scans for orphans that have been signalled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Number of the next part. A process that resumes a run terminates the orphans of its predecessor before it
/// starts any program, so parts with the same number cannot meet.
static NEXT_PART: AtomicU64 = AtomicU64::new(1);

/// Owner of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Id of the run.
    pub run: String,
    /// Id of the trial; `None` for programs that serve several trials.
    pub trial: Option<String>,
    /// Program within the trial; `None` if there is only one, and to address all of them.
    pub part: Option<String>,
}

impl Identity {
    /// Returns the environment variables that carry this identity.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        // An environment variable cannot contain a zero byte.
        let clean = |text: &str| text.replace('\0', "\u{fffd}");
        let trial = self.trial.as_deref().map(|trial| (TRIAL_VARIABLE, clean(trial)));
        let part = self.part.as_deref().map(|part| (PART_VARIABLE, clean(part)));
        [(RUN_VARIABLE, clean(&self.run))].into_iter().chain(trial).chain(part)
    }

    /// Returns the variables in the form `NAME=value`.
    pub(crate) fn assignments(&self) -> Vec<String> {
        self.variables().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Returns this identity with a new part, so that its program can be killed without the others.
    #[must_use]
    pub fn with_next_part(&self) -> Identity {
        let number = NEXT_PART.fetch_add(1, Ordering::Relaxed);
        Identity { part: Some(number.to_string()), ..self.clone() }
    }

    /// Kills all descendants of this process with this identity, including those that they start meanwhile.
    /// Blocks until they have exited, for a few seconds at most.
    ///
    /// Orphans are descendants only after [`become_subreaper`](crate::become_subreaper).
    pub fn kill(&self) {
        let mut scan = DescendantScan::new(self.assignments(), None);
        wait_until_complete(Instant::now() + KILL_TIMEOUT, || {
            scan.scan(EXEC_TIMEOUT, |process| send_signal(process, Signal::SIGKILL))
        });
    }
}

/// Terminates the orphans of an earlier process of a run: the members of these process groups, unless the ids
/// of the groups have been reused, and all processes of the machine that were started with the id of the run.
/// Waits a few seconds at most until they have exited, and returns how many are still running.
///
/// Reads information about every process of the machine, so it is meant for the start of a resumed run.
pub fn terminate_orphans(run: &str, groups: &[ProcessGroup]) -> usize {
    let identity = Identity { run: run.to_owned(), trial: None, part: None };
    let mut scan = ProcessScan::new(&identity, groups);
    let mut signal_all = |signal: Signal, timeout: Duration| {
        let deadline = Instant::now() + timeout;
        let mut signalled: HashSet<ProcessKey> = HashSet::new();
        loop {
            // Once per process: some programs abort their cleanup at the second signal.
            let result = scan.scan(|process| {
                if signalled.insert(process.key()) {
                    send_signal(process, signal);
                }
            });
            if result.is_complete {
                return 0;
            }
            if Instant::now() >= deadline {
                return result.found.len();
            }
            if !result.found.is_empty() {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    };
    if signal_all(Signal::SIGTERM, TERMINATE_TIMEOUT) == 0 {
        return 0;
    }
    signal_all(Signal::SIGKILL, KILL_TIMEOUT)
}
