//! Process information from `/proc`. On systems without `/proc` every query returns nothing.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Maximum number of bytes read of a process's environment or arguments.
const MAX_ENVIRONMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Initial buffer for environments and child lists, so that most of them need one read.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// Buffer for `/proc/<pid>/stat`: 52 numbers and a name of at most 64 bytes.
const STAT_BUFFER_BYTES: usize = 2048;

/// How long to wait for the environment of a process that has neither arguments nor an environment. Such a
/// process is usually in the middle of `execve`; some never have any.
pub(crate) const EXEC_TIMEOUT: Duration = Duration::from_millis(200);

/// Flag of kernel threads in `/proc/<pid>/stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process, as `/proc/<pid>/stat` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessInfo {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Start time in clock ticks since boot.
    pub(crate) started: u64,
    /// The process has exited and has not been reaped.
    pub(crate) is_zombie: bool,
    /// Kernel threads have no environment.
    pub(crate) is_kernel_thread: bool,
}

/// Process id and start time. Unlike the id alone, the pair is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProcessKey {
    pub(crate) id: i32,
    pub(crate) started: u64,
}

impl ProcessInfo {
    pub(crate) fn key(&self) -> ProcessKey {
        ProcessKey { id: self.id, started: self.started }
    }
}

/// Reads one process; `None` if it does not exist.
pub(crate) fn process_info(id: i32) -> Option<ProcessInfo> {
    let mut buffer = [0; STAT_BUFFER_BYTES];
    // The kernel returns the whole line in one read.
    let count = File::open(format!("/proc/{id}/stat")).ok()?.read(&mut buffer).ok()?;
    parse_stat(id, &String::from_utf8_lossy(&buffer[..count]))
}

/// Parses `12 (a name) S 1 12 12 …`. The name can contain parentheses and spaces.
fn parse_stat(id: i32, stat: &str) -> Option<ProcessInfo> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcessInfo {
        id,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        is_kernel_thread: fields.get(6)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
    })
}

/// Returns the ids of all processes of the machine, newest first: new processes are the most likely to exit
/// during a scan.
pub(crate) fn process_ids() -> Vec<i32> {
    let mut ids = numeric_entries("/proc");
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

fn numeric_entries(folder: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Returns whether the same process still exists and has not exited.
pub(crate) fn is_running(process: &ProcessInfo) -> bool {
    process_info(process.id).is_some_and(|now| now.key() == process.key() && !now.is_zombie)
}

/// Returns the id of this process; 0, which no process has, if it does not fit.
pub(crate) fn own_id() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// Returns the ids of this process and its ancestors.
pub(crate) fn ancestor_ids() -> Vec<i32> {
    let mut ids = Vec::new();
    let mut next = Some(own_id());
    while let Some(id) = next.filter(|id| !ids.contains(id)) {
        ids.push(id);
        next = process_info(id).map(|process| process.parent);
    }
    ids
}

/// Source of the children of a process.
///
/// `/proc/<pid>/task/<tid>/children` lists them directly. Kernels built without `CONFIG_PROC_CHILDREN` lack
/// this file; there, the parents of all processes of the machine are read once for each index, which costs one
/// read per process.
pub(crate) enum ChildIndex {
    Kernel,
    Snapshot(HashMap<i32, Vec<i32>>),
}

impl ChildIndex {
    pub(crate) fn new() -> ChildIndex {
        static HAS_CHILD_LISTS: OnceLock<bool> = OnceLock::new();
        let own = own_id();
        let has_child_lists = || Path::new(&format!("/proc/{own}/task/{own}/children")).exists();
        if *HAS_CHILD_LISTS.get_or_init(has_child_lists) {
            ChildIndex::Kernel
        } else {
            ChildIndex::snapshot()
        }
    }

    fn snapshot() -> ChildIndex {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for process in process_ids().into_iter().filter_map(process_info) {
            children.entry(process.parent).or_default().push(process.id);
        }
        ChildIndex::Snapshot(children)
    }

    /// Returns the ids of the children of a process, zombies included. A child that exits or changes its
    /// parent during the call can be missing.
    pub(crate) fn children(&self, id: i32) -> Vec<i32> {
        match self {
            ChildIndex::Snapshot(children) => children.get(&id).cloned().unwrap_or_default(),
            // The kernel keeps a list for each thread that forks.
            ChildIndex::Kernel => numeric_entries(&format!("/proc/{id}/task"))
                .into_iter()
                .flat_map(|thread| child_list(id, thread))
                .collect(),
        }
    }
}

fn child_list(id: i32, thread: i32) -> Vec<i32> {
    let list = read_file(&format!("/proc/{id}/task/{thread}/children")).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Result of a comparison with the environment of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableMatch {
    All,
    NotAll,
    /// The process exited before its environment was read.
    Unreadable,
}

/// Checks whether a process was started with all of these variables, each written `NAME=value`. Waits at most
/// `exec_timeout` for a process that is in the middle of `execve`.
pub(crate) fn match_variables(
    process: &ProcessInfo,
    variables: &[String],
    exec_timeout: Duration,
) -> VariableMatch {
    let read = || read_file(&format!("/proc/{}/environ", process.id));
    match has_all_variables(variables, exec_timeout, read, || is_executing(process)) {
        Some(true) => VariableMatch::All,
        Some(false) => VariableMatch::NotAll,
        // Kernel threads, and some other processes, have no environment.
        None if is_running(process) => VariableMatch::NotAll,
        None => VariableMatch::Unreadable,
    }
}

/// Returns whether the environment contains all of these variables, or `None` if it is empty. The environment
/// is empty during `execve`, so it is read again until that is over.
fn has_all_variables(
    variables: &[String],
    exec_timeout: Duration,
    mut read: impl FnMut() -> Option<Vec<u8>>,
    mut is_executing: impl FnMut() -> bool,
) -> Option<bool> {
    let deadline = Instant::now() + exec_timeout;
    // Environments of other users are unreadable; their processes cannot be signalled either.
    let mut bytes = read()?;
    let mut is_final = false;
    while bytes.is_empty() && !is_final {
        // `execve` can finish between a read and this check, so the last read follows the check.
        is_final = !is_executing() || Instant::now() >= deadline;
        std::thread::yield_now();
        bytes = read().unwrap_or_default();
    }
    let has = |variable: &String| {
        bytes.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    (!bytes.is_empty()).then(|| variables.iter().all(has))
}

/// Returns whether a running process has no arguments, as during `execve` or exit.
fn is_executing(process: &ProcessInfo) -> bool {
    let has_no_arguments = || {
        read_file(&format!("/proc/{}/cmdline", process.id))
            .is_some_and(|arguments| arguments.is_empty())
    };
    !process.is_kernel_thread && has_no_arguments() && is_running(process)
}

fn read_file(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(READ_BUFFER_BYTES);
    File::open(path).ok()?.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_parentheses_in_the_name_is_parsed() {
        let stat = "42 (a) R (b) S 1 40 39 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let process = ProcessInfo {
            id: 42,
            parent: 1,
            group: 40,
            session: 39,
            started: 777,
            is_zombie: false,
            is_kernel_thread: false,
        };
        assert_eq!(parse_stat(42, stat), Some(process));
        let kernel_thread = parse_stat(2, &stat.replace("4194560", "2129984")).unwrap();
        assert!(kernel_thread.is_kernel_thread);
        assert_eq!(parse_stat(42, "42 (short) S 1"), None);
        assert_eq!(parse_stat(42, ""), None);
    }

    #[test]
    fn empty_environment_is_read_again_during_exec() {
        let variables = ["ID=1".to_owned()];
        let readings = [&b""[..], b"", b"HOME=/\0ID=1\0"].map(|bytes| Some(bytes.to_vec()));
        let has_all = |read: &mut dyn FnMut() -> Option<Vec<u8>>,
                       is_executing: &mut dyn FnMut() -> bool| {
            has_all_variables(&variables, EXEC_TIMEOUT, read, is_executing)
        };
        // `execve` ends between the second read and the third.
        let mut executing = [true, false].into_iter();
        let mut read = readings.clone().into_iter();
        assert_eq!(has_all(&mut || read.next()?, &mut || executing.next().unwrap()), Some(true));
        // A process with arguments and an empty environment has no variables.
        let mut read = readings.into_iter();
        assert_eq!(has_all(&mut || read.next()?, &mut || false), None);
        // The process does not exist any more.
        assert_eq!(has_all(&mut || None, &mut || true), None);
        assert_eq!(has_all(&mut || Some(b"ID=12\0".to_vec()), &mut || true), Some(false));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_process_is_listed_with_its_environment() {
        let id = own_id();
        let own = process_info(id).unwrap();
        assert!(process_ids().contains(&id));
        assert!(is_running(&own));
        assert!(!is_running(&ProcessInfo { started: own.started + 1, ..own }));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        let matches = |process: &ProcessInfo, variable: &str| {
            match_variables(process, &[variable.to_owned()], EXEC_TIMEOUT)
        };
        assert_eq!(matches(&own, &path), VariableMatch::All);
        let shorter = &path[..path.len() - 1];
        assert_eq!(matches(&own, shorter), VariableMatch::NotAll);
        let missing = ProcessInfo { id: i32::MAX, ..own };
        assert_eq!(matches(&missing, shorter), VariableMatch::Unreadable);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn child_lists_and_the_snapshot_agree() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let id = i32::try_from(child.id()).unwrap();
        for index in [ChildIndex::new(), ChildIndex::snapshot()] {
            assert!(index.children(own_id()).contains(&id));
            assert!(index.children(id).is_empty());
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!ChildIndex::new().children(own_id()).contains(&id));
    }
}
