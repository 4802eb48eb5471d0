//! Scan of the descendants of this process for those of one owner. Its cost depends on the number of threads
//! and descendants of this process, not on the number of processes of the machine.
//!
//! Orphans are descendants of this process if it is a subreaper ([`crate::become_subreaper`]) or the init
//! process of a container. Otherwise the scan finds only processes whose ancestors are still running, and
//! processes that an earlier scan of the same owner has found.

use super::procfs::{
    self, ChildIndex, ProcessInfo, ProcessKey, VariableMatch, own_id, process_info,
};
use super::{ScanResult, ScanState};
use crate::subreaper;
use bakeoff_core::ProcessGroup;
use nix::unistd::{getpgrp, getsid};
use std::collections::HashSet;
use std::time::Duration;

/// A scan of the descendants that is repeated until it is complete.
///
/// A process belongs to the owner if one of these holds:
/// - it is the leader, or a descendant of a process of the owner;
/// - it is in the process group or session of a process of the owner, unless this process is, too;
/// - it was started with all identity variables of the owner;
/// - an earlier scan has found it.
pub(crate) struct DescendantScan {
    /// Identity variables, each written `NAME=value`; empty if the owner has no identity.
    variables: Vec<String>,
    /// The program that was started for the owner; `None` if there can be several.
    leader: Option<ProcessKey>,
    found: HashSet<ProcessKey>,
    groups: HashSet<i32>,
    sessions: HashSet<i32>,
    state: ScanState,
}

enum Ownership {
    Owned,
    Foreign,
    /// The process exited before its owner was known.
    Unknown,
}

impl DescendantScan {
    /// Creates a scan for processes with these identity variables and for those of the program that leads
    /// this group.
    pub(crate) fn new(variables: Vec<String>, leader: Option<ProcessGroup>) -> DescendantScan {
        DescendantScan {
            variables,
            leader: leader.map(|group| ProcessKey { id: group.id, started: group.started }),
            found: HashSet::new(),
            groups: leader.iter().map(|group| group.id).collect(),
            sessions: HashSet::new(),
            state: ScanState::default(),
        }
    }

    /// Scans once and reaps zombies that this process has adopted. Calls `on_found` for each process
    /// immediately, because some exit before the scan is over. Waits at most `exec_timeout` for the environment
    /// of a process that is in the middle of `execve`.
    pub(crate) fn scan(
        &mut self,
        exec_timeout: Duration,
        mut on_found: impl FnMut(&ProcessInfo),
    ) -> ScanResult {
        // A found process that has exited by now has passed its children on, so they are in the list below.
        self.found.retain(|key| {
            process_info(key.id).is_some_and(|now| now.key() == *key && !now.is_zombie)
        });
        let mut zombies = HashSet::new();
        if self.found.is_empty() && !subreaper::has_children() {
            let is_complete = self.state.is_complete(true, false, zombies);
            return ScanResult { found: Vec::new(), is_complete };
        }
        let index = ChildIndex::new();
        let roots = index.children(own_id()).into_iter().chain(self.found.iter().map(|key| key.id));
        // Each id with whether an ancestor belongs to the owner.
        let mut pending: Vec<(i32, bool)> = roots.map(|id| (id, false)).collect();
        let mut visited = HashSet::new();
        let (mut found, mut foreign) = (Vec::new(), Vec::<ProcessInfo>::new());
        let mut saw_vanished_process = false;
        while let Some((id, has_owned_ancestor)) = pending.pop() {
            if !visited.insert(id) {
                continue;
            }
            let Some(process) = process_info(id) else {
                saw_vanished_process = true;
                continue;
            };
            if process.is_zombie {
                if subreaper::reap(&process) {
                    saw_vanished_process = true;
                } else if !subreaper::is_direct_child(&process) {
                    zombies.insert(process.key());
                }
                continue;
            }
            match self.ownership(&process, has_owned_ancestor, exec_timeout) {
                Ownership::Owned => {}
                Ownership::Foreign => {
                    foreign.push(process);
                    continue;
                }
                Ownership::Unknown => {
                    saw_vanished_process = true;
                    continue;
                }
            }
            // The children are listed before the process is signalled: if it exits, this process may not
            // be their new parent.
            pending.extend(index.children(id).into_iter().map(|child| (child, true)));
            on_found(&process);
            found.push(process);
            self.record(&process);
            // Processes visited earlier can share the group or session of this one.
            let (related, unrelated): (Vec<_>, Vec<_>) =
                foreign.into_iter().partition(|other| self.is_related(other));
            foreign = unrelated;
            for other in related {
                visited.remove(&other.id);
                pending.push((other.id, true));
            }
        }
        let is_complete = self.state.is_complete(found.is_empty(), saw_vanished_process, zombies);
        ScanResult { found, is_complete }
    }

    fn ownership(
        &mut self,
        process: &ProcessInfo,
        has_owned_ancestor: bool,
        exec_timeout: Duration,
    ) -> Ownership {
        if has_owned_ancestor || self.found.contains(&process.key()) {
            return Ownership::Owned;
        }
        if let Some(leader) = self.leader {
            // The start time is 0 if it is unknown.
            if leader.id == process.id && [process.started, 0].contains(&leader.started) {
                return Ownership::Owned;
            }
            if leader.id == process.id {
                // The id of the leader was reused, so its group was empty by then.
                self.groups.remove(&leader.id);
            }
            // Other programs that this crate has started are stopped by their own scans, even if they have
            // the same identity.
            if subreaper::is_direct_child(process) {
                return Ownership::Foreign;
            }
        }
        if self.is_related(process) {
            return Ownership::Owned;
        }
        if self.variables.is_empty() {
            return Ownership::Foreign;
        }
        match procfs::match_variables(process, &self.variables, exec_timeout) {
            VariableMatch::All => Ownership::Owned,
            VariableMatch::NotAll => Ownership::Foreign,
            VariableMatch::Unreadable => Ownership::Unknown,
        }
    }

    fn record(&mut self, process: &ProcessInfo) {
        self.found.insert(process.key());
        if process.group != getpgrp().as_raw() {
            self.groups.insert(process.group);
        }
        if getsid(None).is_ok_and(|own| own.as_raw() != process.session) {
            self.sessions.insert(process.session);
        }
    }

    fn is_related(&self, process: &ProcessInfo) -> bool {
        self.groups.contains(&process.group) || self.sessions.contains(&process.session)
    }
}
