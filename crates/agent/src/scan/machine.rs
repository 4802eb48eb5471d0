//! Scan of all processes of the machine. It costs several reads per process, so it is used only for processes
//! that an earlier process of a run left behind; those are not descendants of this process.

use super::procfs::{self, EXEC_TIMEOUT, ProcessInfo, VariableMatch};
use super::{ScanResult, ScanState};
use crate::identity::Identity;
use bakeoff_core::ProcessGroup;
use nix::unistd::{Pid, getpgrp};
use std::collections::HashSet;

/// A scan of the machine that is repeated until it is complete.
pub(crate) struct ProcessScan {
    /// Environment variables of the owner's processes, each written `NAME=value`.
    variables: Vec<String>,
    /// Process groups of the owner, unless their ids have been reused.
    groups: Vec<ProcessGroup>,
    /// This process and its ancestors; never part of the result.
    excluded: Vec<i32>,
    state: ScanState,
}

impl ProcessScan {
    /// Creates a scan for processes with these identity variables and for members of these groups.
    pub(crate) fn new(identity: &Identity, groups: &[ProcessGroup]) -> ProcessScan {
        ProcessScan {
            variables: identity.assignments(),
            groups: groups.to_vec(),
            excluded: procfs::ancestor_ids(),
            state: ScanState::default(),
        }
    }

    /// Scans once. Calls `on_found` for each process immediately, because some exit before the scan is over.
    pub(crate) fn scan(&mut self, mut on_found: impl FnMut(&ProcessInfo)) -> ScanResult {
        let (mut running, mut found, mut zombies) = (Vec::new(), Vec::new(), HashSet::new());
        let mut saw_vanished_process = false;
        for id in procfs::process_ids() {
            let Some(process) = procfs::process_info(id) else {
                saw_vanished_process = true;
                continue;
            };
            if process.is_zombie {
                zombies.insert(process.key());
                continue;
            }
            running.push(process);
            if self.excluded.contains(&id) {
                continue;
            }
            match procfs::match_variables(&process, &self.variables, EXEC_TIMEOUT) {
                VariableMatch::All => {
                    on_found(&process);
                    found.push(process);
                }
                VariableMatch::NotAll => {}
                VariableMatch::Unreadable => saw_vanished_process = true,
            }
        }
        for group in &self.groups {
            let members = || running.iter().filter(|process| process.group == group.id);
            let leader = running.iter().find(|process| process.id == group.id);
            let is_same_group = match leader {
                // The id may have been reused since.
                Some(leader) => leader.started == group.started,
                // The id of a group is not reused while the group has members, but the group may have been
                // empty for a while.
                None => members().any(|member| found.contains(member)),
            };
            if is_same_group && is_foreign(group.id) {
                let more: Vec<ProcessInfo> =
                    members().filter(|member| !found.contains(member)).copied().collect();
                more.iter().for_each(&mut on_found);
                found.extend(more);
            }
        }
        let is_complete = self.state.is_complete(found.is_empty(), saw_vanished_process, zombies);
        ScanResult { found, is_complete }
    }
}

/// Returns whether an id names a single process group other than that of this process.
fn is_foreign(id: i32) -> bool {
    id > 1 && Pid::from_raw(id) != getpgrp()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    #[test]
    fn zombie_is_not_found_and_makes_the_scan_inconclusive() {
        let run = format!("scan-{}", std::process::id());
        let identity = Identity { run, trial: None, part: None };
        let mut child = std::process::Command::new("cat")
            .envs(identity.variables())
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let scan = || {
            let mut ids = Vec::new();
            let result = ProcessScan::new(&identity, &[]).scan(|process| ids.push(process.id));
            (ids, result.is_complete)
        };
        assert_eq!(scan(), (vec![id], false));
        // The zombie may have started another process before it exited.
        drop(child.stdin.take());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(Pid::from_raw(id)), flags).unwrap();
        assert_eq!(scan(), (vec![], false));
        child.wait().unwrap();
    }
}
