//! What the system knows of processes, read from `/proc`. Where there is none, nothing is known.

use std::fs::File;
use std::io::Read;

/// Longer environments are not read to their end.
const MOST_ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// A process as the system sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// In ticks since the system was booted. With the id it names a process for ever.
    pub(crate) started: u64,
    /// It has ended, and nobody has asked how.
    pub(crate) is_dead: bool,
}

/// Looks at one process.
pub(crate) fn look(id: i32) -> Option<Seen> {
    parse(id, &std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// `12 (a name) S 1 12 12 …`: the name may hold anything, parentheses and spaces too.
fn parse(id: i32, stat: &str) -> Option<Seen> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Seen {
        id,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// All processes that are alive.
pub(crate) fn all() -> Vec<Seen> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(look)
        .filter(|seen| !seen.is_dead)
        .collect()
}

/// This process and those that it was started by.
pub(crate) fn ancestors() -> Vec<i32> {
    let mut ids = Vec::new();
    let mut next = i32::try_from(std::process::id()).ok();
    while let Some(id) = next.filter(|id| !ids.contains(id)) {
        ids.push(id);
        next = look(id).map(|seen| seen.parent);
    }
    ids
}

/// Whether a process was started with all of these variables, each written `NAME=value`.
pub(crate) fn was_given(process: &Seen, variables: &[String]) -> bool {
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(format!("/proc/{}/environ", process.id)).ok()?;
        file.take(MOST_ENVIRONMENT).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    // Those of other users cannot be read, and are none of our business.
    let Some(bytes) = read() else { return false };
    let has = |wanted: &String| bytes.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
    variables.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "42 (a) R (b) S 1 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let seen = Seen { id: 42, parent: 1, group: 40, started: 777, is_dead: false };
        assert_eq!(parse(42, stat), Some(seen));
        assert_eq!(parse(42, "42 (short) S 1"), None);
        assert_eq!(parse(42, ""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_among_all() {
        let id = i32::try_from(std::process::id()).unwrap();
        let own = look(id).unwrap();
        assert!(all().contains(&own));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(was_given(&own, std::slice::from_ref(&path)));
        assert!(!was_given(&own, &[path[..path.len() - 1].to_owned()]));
    }
}
