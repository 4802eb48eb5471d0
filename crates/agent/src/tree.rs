//! The processes of one program: the process group that it leads, and descendants that have left the group.

use crate::identity::Identity;
use crate::scan::{DescendantScan, EXEC_TIMEOUT, ScanResult, process_info, send_signal};
use crate::subreaper;
use bakeoff_core::ProcessGroup;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long to wait until killed processes have exited.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two scans for processes that have been killed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// All processes of one program. Killed when dropped.
pub(crate) struct ProcessTree {
    group: Option<ProcessGroup>,
    scan: DescendantScan,
    is_gone: bool,
}

impl ProcessTree {
    /// Starts a program as leader of a process group of its own. Descendants that have left the group are
    /// recognised by the identity.
    pub(crate) fn spawn(
        command: &mut Command,
        identity: Option<&Identity>,
    ) -> std::io::Result<(Child, ProcessTree)> {
        let (child, group) = subreaper::spawn(command)?;
        let variables = identity.map(Identity::assignments).unwrap_or_default();
        let scan = DescendantScan::new(variables, group);
        Ok((child, ProcessTree { group, scan, is_gone: false }))
    }

    pub(crate) fn group(&self) -> Option<ProcessGroup> {
        self.group
    }

    /// Sends SIGTERM once to each process, without waiting for the result.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::SIGTERM, Duration::ZERO);
    }

    /// Sends SIGKILL to each process, without waiting for the result.
    pub(crate) fn start_kill(&mut self) {
        self.signal(Signal::SIGKILL, Duration::ZERO);
    }

    fn signal(&mut self, signal: Signal, exec_timeout: Duration) -> ScanResult {
        let group = self.group.map(|group| group.id);
        // The group comes last: while its leader is running, its descendants can be found.
        let result = self.scan.scan(exec_timeout, |process| {
            if Some(process.group) != group {
                send_signal(process, signal);
            }
        });
        if let Some(group) = self.group.filter(|group| !is_reused(*group)) {
            // Fails if the group is empty.
            let _ = killpg(Pid::from_raw(group.id), signal);
        }
        result
    }

    /// Kills all processes, including those that they start meanwhile, and waits until they have exited, for
    /// [`KILL_TIMEOUT`] at most. Blocks.
    pub(crate) fn kill(&mut self) {
        let deadline = Instant::now() + KILL_TIMEOUT;
        wait_until_complete(deadline, || self.signal(Signal::SIGKILL, EXEC_TIMEOUT));
        self.is_gone = true;
    }

    /// Returns whether the process group is empty; zombies are members, too, until they are reaped.
    pub(crate) fn is_group_empty(&self) -> bool {
        subreaper::reap_orphans();
        self.group
            .is_none_or(|group| is_reused(group) || killpg(Pid::from_raw(group.id), None).is_err())
    }
}

/// Repeats a scan until it is complete or the deadline has passed. Blocks.
pub(crate) fn wait_until_complete(deadline: Instant, mut scan: impl FnMut() -> ScanResult) {
    loop {
        let result = scan();
        if result.is_complete || Instant::now() >= deadline {
            return;
        }
        if !result.found.is_empty() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns whether another process has the id of the leader now. It cannot get this id while the group has
/// members, so the group is empty then.
fn is_reused(group: ProcessGroup) -> bool {
    group.started != 0
        && process_info(group.id).is_some_and(|process| process.started != group.started)
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.is_gone {
            self.start_kill();
        }
    }
}

impl std::fmt::Debug for ProcessTree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProcessTree").field("group", &self.group).finish_non_exhaustive()
    }
}
