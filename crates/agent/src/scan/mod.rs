//! Scans for the processes of one owner: among the descendants of this process ([`DescendantScan`]), or among
//! all processes of the machine ([`ProcessScan`]).
//!
//! A process that starts a child and exits during a scan leaves a child that was not listed yet, and its own
//! environment can no longer be read. So a scan is repeated when a process exited before its owner was known.

mod descendants;
mod machine;
mod procfs;

pub(crate) use descendants::DescendantScan;
pub(crate) use machine::ProcessScan;
pub(crate) use procfs::{ChildIndex, EXEC_TIMEOUT, ProcessInfo, ProcessKey, own_id, process_info};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::collections::HashSet;

/// Inconclusive scans in a row after which a scan that finds nothing counts as complete. Some machines start
/// and end processes all the time.
const MAX_INCONCLUSIVE_SCANS: u32 = 20;

/// Result of one scan.
pub(crate) struct ScanResult {
    /// Running processes of the owner.
    pub(crate) found: Vec<ProcessInfo>,
    /// No process is left, and none is likely to have been missed.
    pub(crate) is_complete: bool,
}

/// Decides when repeated scans are complete.
#[derive(Default)]
struct ScanState {
    /// Zombies of the scan before.
    known_zombies: HashSet<ProcessKey>,
    /// Scans in a row that found nothing while processes with unknown owner exited.
    inconclusive: u32,
}

impl ScanState {
    /// Takes the observations of one scan. A new zombie may have started a child after the scan began.
    fn is_complete(
        &mut self,
        found_none: bool,
        saw_vanished_process: bool,
        zombies: HashSet<ProcessKey>,
    ) -> bool {
        let is_conclusive = !saw_vanished_process && zombies.is_subset(&self.known_zombies);
        self.known_zombies = zombies;
        self.inconclusive = if found_none && !is_conclusive { self.inconclusive + 1 } else { 0 };
        found_none && (is_conclusive || self.inconclusive >= MAX_INCONCLUSIVE_SCANS)
    }
}

/// Sends a signal to this process, and to no other process that has the same id by now.
pub(crate) fn send_signal(process: &ProcessInfo, signal: Signal) {
    if process_info(process.id).is_some_and(|now| now.key() == process.key()) {
        // Fails if the process has exited.
        let _ = nix::sys::signal::kill(Pid::from_raw(process.id), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zombie(id: i32, started: u64) -> HashSet<ProcessKey> {
        HashSet::from([ProcessKey { id, started }])
    }

    #[test]
    fn scan_is_repeated_after_an_unidentified_exit() {
        let none = HashSet::new;
        assert!(ScanState::default().is_complete(true, false, none()));
        assert!(!ScanState::default().is_complete(false, false, none()));
        let mut state = ScanState::default();
        assert!(!state.is_complete(true, true, none()));
        assert!(state.is_complete(true, false, none()));
    }

    #[test]
    fn zombie_causes_one_more_scan_only() {
        let mut state = ScanState::default();
        assert!(!state.is_complete(true, false, zombie(7, 1)));
        assert!(state.is_complete(true, false, zombie(7, 1)));
        // The same id, but another process.
        assert!(!state.is_complete(true, false, zombie(7, 2)));
    }

    #[test]
    fn inconclusive_scans_are_bounded() {
        let mut state = ScanState::default();
        let mut scan = |found_none| state.is_complete(found_none, true, HashSet::new());
        assert!((1..MAX_INCONCLUSIVE_SCANS).all(|_| !scan(true)));
        // A scan that finds a process restarts the count.
        assert!(!scan(false));
        assert!((1..MAX_INCONCLUSIVE_SCANS).all(|_| !scan(true)));
        assert!(scan(true));
    }
}
