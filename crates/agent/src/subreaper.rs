//! Adoption of orphans: this process as child subreaper, the registry of children that this crate has started,
//! and the reaping of adopted zombies.

use crate::scan::{
    ChildIndex, ProcessInfo, ProcessKey, ScanResult, own_id, process_info, send_signal,
};
use crate::tree::{KILL_TIMEOUT, wait_until_complete};
use bakeoff_core::ProcessGroup;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How often adopted zombies are reaped while programs run.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// Number of registered children below which exited ones are not removed.
const MIN_PRUNE_LEN: usize = 64;

static IS_SUBREAPER: AtomicBool = AtomicBool::new(false);

/// Held shared while a child is started and registered, and exclusively while a zombie is reaped, so that a
/// child that exits at once is never taken for an orphan.
static SPAWN_LOCK: RwLock<()> = RwLock::new(());

/// Children that this process had before it became a subreaper: those of a shell that was replaced by `exec`.
static INHERITED_CHILDREN: OnceLock<HashSet<ProcessKey>> = OnceLock::new();

static DIRECT_CHILDREN: Mutex<DirectChildren> = Mutex::new(DirectChildren::new());

/// Makes this process the parent of all orphans among its descendants, and returns whether that is possible.
///
/// Call it once at the start of a program that runs agents; a library must leave this to its user. Processes that left the
/// process group of their program, with `setsid` or a double fork, are then found and killed when the program
/// ends. Exited orphans are reaped by a background thread, which starts with the first program.
///
/// Without this call, such a process is found only while its ancestors up to the program are running; a process
/// that outlives its program outside of the process group is left running. The same holds on systems other than
/// Linux, where this function returns `false`.
///
/// After this call, children of this process that have a process group of their own and were not started by
/// this crate count as orphans: their exit statuses are discarded. Children in the process group of this
/// process, the default of [`std::process::Command`], are not affected.
pub fn become_subreaper() -> bool {
    #[cfg(target_os = "linux")]
    let is_subreaper = nix::sys::prctl::set_child_subreaper(true).is_ok();
    #[cfg(not(target_os = "linux"))]
    let is_subreaper = false;
    if is_subreaper {
        INHERITED_CHILDREN.get_or_init(|| children().map(|process| process.key()).collect());
    }
    IS_SUBREAPER.store(is_subreaper, Ordering::SeqCst);
    is_subreaper
}

/// Kills and reaps all processes that this crate has started and all orphans that this process has adopted, with
/// their descendants. Blocks until they have exited, for a few seconds at most. Does nothing unless this process
/// is a subreaper.
///
/// Call it at the very end of the program. A process that has left its session, cleared its environment and lost
/// its parent cannot be assigned to a program, so it keeps running until this call.
pub fn kill_descendants() {
    if !IS_SUBREAPER.load(Ordering::SeqCst) || !has_children() {
        return;
    }
    let inherited = INHERITED_CHILDREN.get();
    let is_own = |process: &ProcessInfo| {
        !process.is_zombie
            && process.group != getpgrp().as_raw()
            && !inherited.is_some_and(|keys| keys.contains(&process.key()))
    };
    // Repeated, because the children of a killed process are adopted in turn.
    wait_until_complete(Instant::now() + KILL_TIMEOUT, || {
        // No other code waits for them any more.
        while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
            waitpid(None, Some(WaitPidFlag::WNOHANG))
        {}
        let found: Vec<ProcessInfo> = children().filter(is_own).collect();
        for process in &found {
            send_signal(process, Signal::SIGKILL);
        }
        ScanResult { is_complete: found.is_empty(), found }
    });
}

/// Returns the children of this process, zombies included.
fn children() -> impl Iterator<Item = ProcessInfo> {
    ChildIndex::new().children(own_id()).into_iter().filter_map(process_info)
}

/// Children that this crate has started and tokio waits for. Exited ones are removed from time to time only: a
/// key is never reused, so a stale entry is harmless. The start time is 0 if it is unknown.
struct DirectChildren {
    keys: Option<HashSet<ProcessKey>>,
    prune_len: usize,
}

impl DirectChildren {
    const fn new() -> DirectChildren {
        DirectChildren { keys: None, prune_len: MIN_PRUNE_LEN }
    }

    fn insert(&mut self, key: ProcessKey) {
        let keys = self.keys.get_or_insert_default();
        if keys.len() >= self.prune_len {
            keys.retain(|key| {
                process_info(key.id).is_some_and(|now| [now.started, 0].contains(&key.started))
            });
            self.prune_len = MIN_PRUNE_LEN.max(2 * keys.len());
        }
        keys.insert(key);
    }

    fn contains(&self, key: ProcessKey) -> bool {
        let is_registered = |keys: &HashSet<_>| {
            keys.contains(&key) || keys.contains(&ProcessKey { started: 0, ..key })
        };
        self.keys.as_ref().is_some_and(is_registered)
    }
}

fn direct_children() -> MutexGuard<'static, DirectChildren> {
    DIRECT_CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program as leader of a process group of its own and registers it. The group is `None` if the id of
/// the process is unknown.
pub(crate) fn spawn(command: &mut Command) -> std::io::Result<(Child, Option<ProcessGroup>)> {
    static REAPER: Once = Once::new();
    let _spawning = SPAWN_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    let child = command.process_group(0).spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let group = id.map(|id| ProcessGroup {
        id,
        // The child has not been reaped yet, so the id is still its own. The time is unknown without `/proc`,
        // and when this process has no free file descriptor.
        started: process_info(id).map_or(0, |process| process.started),
    });
    if let Some(ProcessGroup { id, started }) = group {
        direct_children().insert(ProcessKey { id, started });
    }
    if IS_SUBREAPER.load(Ordering::SeqCst) {
        REAPER.call_once(|| {
            // Without this thread, zombies are reaped when a program ends.
            let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(reap_periodically);
        });
    }
    Ok((child, group))
}

/// Returns whether this crate has started the process.
pub(crate) fn is_direct_child(process: &ProcessInfo) -> bool {
    direct_children().contains(process.key())
}

/// Returns whether this process has any children, zombies included.
pub(crate) fn has_children() -> bool {
    poll_children() != Err(Errno::ECHILD)
}

#[cfg(target_os = "linux")]
fn poll_children() -> nix::Result<WaitStatus> {
    use nix::sys::wait::{Id, waitid};
    waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT)
}

/// Other systems have no subreaper, so the state of the children is not needed.
#[cfg(not(target_os = "linux"))]
fn poll_children() -> nix::Result<WaitStatus> {
    Ok(WaitStatus::StillAlive)
}

fn reap_periodically() {
    loop {
        std::thread::sleep(REAP_INTERVAL);
        reap_orphans();
    }
}

/// Reaps all adopted zombies.
pub(crate) fn reap_orphans() {
    let has_zombie = !matches!(poll_children(), Ok(WaitStatus::StillAlive) | Err(_));
    if has_zombie && IS_SUBREAPER.load(Ordering::SeqCst) {
        for process in children() {
            reap(&process);
        }
    }
}

/// Reaps a zombie if this process has adopted it, and returns whether it did. The exit statuses of other
/// children belong to the code that started them.
pub(crate) fn reap(process: &ProcessInfo) -> bool {
    let is_adopted = |process: &ProcessInfo| {
        process.is_zombie && process.parent == own_id() && process.group != getpgrp().as_raw()
    };
    if !IS_SUBREAPER.load(Ordering::SeqCst) || !is_adopted(process) {
        return false;
    }
    let _no_spawn = SPAWN_LOCK.write().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have reaped it, and the id may belong to a new child by now.
    let is_unchanged = || process_info(process.id).is_some_and(|now| now == *process);
    if is_direct_child(process) || !is_unchanged() {
        return false;
    }
    let status = waitpid(Pid::from_raw(process.id), Some(WaitPidFlag::WNOHANG));
    matches!(status, Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
}
