//! The process group that a program leads.

use crate::system;
use bakeoff_core::ProcessGroup;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp};
use tokio::process::Child;

/// The process group of a program; killed when dropped, so that nothing is left behind.
#[derive(Debug)]
pub(crate) struct Group(Option<ProcessGroup>);

impl Group {
    pub(crate) fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group(id.map(|id| ProcessGroup {
            id,
            // It cannot have been buried yet, so that the number is still its own.
            started: system::look(id).map_or(0, |seen| seen.started),
        }))
    }

    /// Its number, and when its leader started.
    pub(crate) fn id(&self) -> Option<ProcessGroup> {
        self.0
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0.filter(|group| !was_replaced(*group)) {
            // Fails when everybody has gone, which is what we want.
            let _ = killpg(Pid::from_raw(group.id), signal);
        }
    }

    /// Whether anybody is left in it; the dead that nobody has buried count too.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none_or(|group| {
            was_replaced(group) || killpg(Pid::from_raw(group.id), None).is_err()
        })
    }

    /// Whether a number names a group that is not our own, and not everybody.
    pub(crate) fn is_foreign(id: i32) -> bool {
        id > 1 && Pid::from_raw(id) != getpgrp()
    }
}

/// Whether another process has the leader's number now. It cannot get it while the group has
/// members, so then nobody is left.
fn was_replaced(group: ProcessGroup) -> bool {
    group.started != 0 && system::look(group.id).is_some_and(|now| now.started != group.started)
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
