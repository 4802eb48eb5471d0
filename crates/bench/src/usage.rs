//! What processes consume.

use nix::sys::resource::{UsageWho, getrusage};
use std::time::Duration;

/// Processor time and memory, so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// The most that any one process ever had.
    pub(crate) peak_bytes: u64,
}

/// Of this process.
pub(crate) fn of_self() -> Usage {
    read(UsageWho::RUSAGE_SELF)
}

/// Of all children that have ended.
pub(crate) fn of_children() -> Usage {
    read(UsageWho::RUSAGE_CHILDREN)
}

/// Memory that this process has now; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn read(who: UsageWho) -> Usage {
    let Ok(usage) = getrusage(who) else { return Usage::default() };
    let micros = |time: nix::sys::time::TimeVal| {
        use nix::sys::time::TimeValLike;
        Duration::from_micros(time.num_microseconds().unsigned_abs())
    };
    // Linux counts kilobytes, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Usage {
        cpu: micros(usage.user_time()) + micros(usage.system_time()),
        peak_bytes: usage.max_rss().unsigned_abs() * unit,
    }
}
