//! Processor time and memory of processes.

use nix::sys::resource::{UsageWho, getrusage};
use std::time::Duration;

/// Processor time and peak memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu: Duration,
    /// Maximum of any single process.
    pub(crate) peak_bytes: u64,
}

/// Returns the usage of this process.
pub(crate) fn of_self() -> ProcessUsage {
    read(UsageWho::RUSAGE_SELF)
}

/// Returns the usage of all finished children.
pub(crate) fn of_children() -> ProcessUsage {
    read(UsageWho::RUSAGE_CHILDREN)
}

/// Returns the resident memory of this process; 0 where it is unknown.
pub(crate) fn resident_bytes() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn read(who: UsageWho) -> ProcessUsage {
    let Ok(usage) = getrusage(who) else { return ProcessUsage::default() };
    let micros = |time: nix::sys::time::TimeVal| {
        use nix::sys::time::TimeValLike;
        Duration::from_micros(time.num_microseconds().unsigned_abs())
    };
    // Linux reports kilobytes, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    ProcessUsage {
        cpu: micros(usage.user_time()) + micros(usage.system_time()),
        peak_bytes: usage.max_rss().unsigned_abs() * unit,
    }
}
